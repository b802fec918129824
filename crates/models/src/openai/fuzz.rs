//! Fuzz target: arbitrary bytes as the body of a chat completion.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::json;

use super::answer;
use crate::server::{Server, ServerResponse, refusal};
use crate::{Ask, extract};
use supervisor_settings::fuzz::tier_of;
use supervisor_settings::{BackendKind, BackendSettings, Model, TierKind};

/// Checks that an accepted answer is an object with plausible usage, and that a rejection has a
/// short message.
pub fn chat_completion(data: &[u8]) {
    let (choice, body) = data
        .split_first()
        .map_or((0, data), |(choice, rest)| (*choice, rest));
    let settings = BackendSettings::named("gateway", BackendKind::Openai, TierKind::Local);
    let tier = tier_of(settings, Model::named("m", 8192));
    let server = Server::unconnected();
    let schema = json!({"type": "object", "required": ["edits"]});
    let ask = Ask::new("", "", schema.clone(), "/");
    let status = if choice < 200 {
        200
    } else {
        300 + u16::from(choice)
    };
    let response = ServerResponse {
        status,
        headers: HeaderMap::new(),
        body: body.to_vec(),
        truncated: false,
        took: Duration::ZERO,
    };
    let failure = if status == 200 {
        let sent = usize::from(choice) * 100;
        let first = answer::read_all(&server, response, &ask, &tier, sent)
            .and_then(|mut answers| answers.swap_remove(0));
        match first {
            Ok(reply) => {
                assert!(reply.body.is_object() && reply.usage == reply.usage.plausible());
                return;
            }
            Err(failure) => failure,
        }
    } else {
        refusal::failure(&server, &response, &ask, &tier)
    };
    assert!(
        failure.why.to_string().len() < 20_000,
        "the error message is too long"
    );
    let text = String::from_utf8_lossy(body);
    let found = extract::object(&text, &extract::required(&schema));
    assert_eq!(
        found,
        extract::object(&text, &extract::required(&schema)),
        "extraction is not deterministic"
    );
}
