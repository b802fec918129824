//! The opinion after the facts: a verifier model sees discipline, task, and either the diff with the server's own test
//! output, or the answer in words with what it speaks about.
//! It may reject, never overrule a gate. Whatever is not a clear verdict is no acceptance.

use std::num::NonZeroU32;

use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::job::{Exhibit, Held, Job};
use super::means::Means;
use crate::backend::{Ask, Power, Usage};
use crate::prompts::{self, Nonce, PromptError};
use crate::routing::Tier;
use crate::words;

/// What the verifier said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    Accepted,
    Refused(String),
    /// Garbage, a time-out, an error: nothing was said either way.
    Unclear(String),
    Cancelled,
}

/// Bytes of diff, of test output, of an answer and of its material that a verifier is shown.
const SHOWN: usize = 24 * 1024;

pub(super) async fn judge(
    means: &Means,
    verifier: &Tier,
    job: &dyn Job,
    held: &Held,
    diff: &str,
    stop: &CancellationToken,
) -> (Judgement, Usage) {
    let nonce = match Nonce::fresh() {
        Ok(nonce) => nonce,
        Err(error) => return (Judgement::Unclear(format!("no random bytes: {error}")), Usage::NOTHING),
    };
    let prompt = match prompt(means, &nonce, job, held, diff) {
        Ok(prompt) => prompt,
        Err(error) => return (Judgement::Unclear(error.to_string()), Usage::NOTHING),
    };
    let backend = match means.backends.of(verifier) {
        Ok(backend) => backend,
        Err(error) => return (Judgement::Unclear(error.message()), Usage::NOTHING),
    };
    let schema = json!({
        "type": "object",
        "properties": {"accept": {"type": "boolean"}, "feedback": {"type": "string"}},
        "required": ["accept", "feedback"],
        "additionalProperties": false,
    });
    // It is given no project: what it should see is in the prompt.
    let mut ask = Ask::new("You judge one piece of work and answer with one JSON object.", prompt, schema, "/");
    ask.power = Power::None;
    ask.limit = verifier.limit;
    ask.max_turns = NonZeroU32::new(3);
    match backend.ask(&ask, verifier, stop, &|_| {}).await {
        Ok(reply) => (verdict(reply.body), reply.usage),
        Err(_) if stop.is_cancelled() => (Judgement::Cancelled, Usage::default()),
        Err(failure) => (Judgement::Unclear(failure.why.message()), failure.usage),
    }
}

fn verdict(body: serde_json::Value) -> Judgement {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Said {
        accept: bool,
        #[serde(default)]
        feedback: String,
    }
    if !body.is_object() {
        return Judgement::Unclear(String::from("its answer is no object"));
    }
    match serde_json::from_value::<Said>(body) {
        Ok(Said { accept: true, .. }) => Judgement::Accepted,
        Ok(Said { accept: false, feedback }) if feedback.trim().is_empty() => {
            Judgement::Refused(String::from("the verifier refused it and gave no reason"))
        }
        Ok(Said { accept: false, feedback }) => Judgement::Refused(words::cut_end(feedback.trim(), 1000).into_owned()),
        Err(error) => Judgement::Unclear(format!("its answer is no verdict: {error}")),
    }
}

fn prompt(means: &Means, nonce: &Nonce, job: &dyn Job, held: &Held, diff: &str) -> Result<String, PromptError> {
    let fenced =
        |label, text: &str| prompts::fence(nonce, label, &words::cut_middle(&means.redactor.redact(text), SHOWN));
    let folder = means.prompts.as_deref();
    let discipline = means.redactor.redact_known(job.discipline());
    let task = fenced("task", job.task());
    match &held.exhibit {
        Exhibit::Change => prompts::VERIFIER.load(folder)?.fill(&[
            ("nonce", nonce.as_str()),
            ("discipline", &discipline),
            ("task", &task),
            ("diff", &fenced("diff", diff)),
            ("test_output", &fenced("test output", &held.runner_output)),
        ]),
        Exhibit::Words { answer, material } => prompts::VERIFIER_OF_WORDS.load(folder)?.fill(&[
            ("nonce", nonce.as_str()),
            ("discipline", &discipline),
            ("task", &task),
            ("answer", &fenced("answer", answer)),
            ("material", &fenced("material", material)),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_verdict_counts() {
        assert_eq!(verdict(json!({"accept": true, "feedback": ""})), Judgement::Accepted);
        assert_eq!(verdict(json!({"accept": false, "feedback": " no "})), Judgement::Refused("no".into()));
        for garbage in [json!({}), json!({"accept": "true"}), json!({"accept": true, "verdict": "x"}), json!([true])] {
            assert!(matches!(verdict(garbage.clone()), Judgement::Unclear(_)), "{garbage}");
        }
    }
}
