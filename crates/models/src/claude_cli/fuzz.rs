//! Fuzz target: arbitrary bytes as the agent program's output.

use std::time::Duration;

use super::stream::StreamState;
use super::{Program, verdict};
use crate::{Ask, AskStep, Env};
use supervisor_process::{CapturedOutput, Containment, End, FinishedProcess, SandboxReport};
use supervisor_settings::fuzz::tier_of;
use supervisor_settings::{BackendKind, BackendSettings, Model, TierKind};

/// Checks that progress steps are one short line, and that an answer needs exactly one result and
/// exit code 0.
pub fn claude_stream(data: &[u8]) {
    let (code, lines) = data
        .split_first()
        .map_or((0, data), |(code, rest)| (i32::from(*code), rest));
    let mut seen = StreamState::default();
    for line in lines.split(|byte| *byte == b'\n') {
        if let Some(AskStep::Tool { name, on }) = seen.on_line(line) {
            assert!(!name.contains('\n') && !on.contains('\n') && name.len() + on.len() < 2_000);
        }
    }
    let settings = BackendSettings::named("program", BackendKind::ClaudeCli, TierKind::Subagent);
    let worker = Program::of(&settings, &Env::default());
    let tier = tier_of(settings, Model::named("claude-x", 8192));
    let finished = FinishedProcess {
        end: End::Exited(code),
        stdout: CapturedOutput::default(),
        stderr: CapturedOutput::default(),
        took: Duration::ZERO,
        leaked: 0,
        survivors: 0,
        containment: Containment::HERE,
        sandbox: SandboxReport::off(),
    };
    let ask = Ask::new("", "", serde_json::Value::Null, "/");
    let result = verdict::judge(&worker, &finished, &seen, &ask, &tier, Vec::new());
    match result {
        Ok(reply) => {
            assert!(
                code == 0 && seen.results == 1 && reply.body.is_object(),
                "an answer without a valid result"
            );
            assert_eq!(reply.usage, reply.usage.plausible());
        }
        Err(failure) => assert!(
            failure.why.to_string().len() < 20_000,
            "the error message is too long"
        ),
    }
}
