//! Asks a verifier model for its opinion after all checks passed. It sees the discipline, the task,
//! and either the diff with the server's own test output or a text answer with the material it is
//! about. It may reject but never overrule a gate, and an unclear reply does not accept.

use std::num::NonZeroU32;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::services::Services;
use super::work::{AcceptedWork, VerifierMaterial};
use supervisor_models::{Ask, AskError, ToolAccess, Usage};
use supervisor_settings::Tier;
use supervisor_text::prompts;
use supervisor_text::prompts::{Nonce, PromptError};
use supervisor_text::words;

/// The verifier's complete reply.
pub(super) struct VerifierReply {
    pub(super) judgement: VerifierJudgement,
    /// Replies to the flags. A flag without a reply remains.
    pub(super) flags: Vec<FlagAnswer>,
    pub(super) usage: Usage,
}

/// The verifier's reply to one flag.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct FlagAnswer {
    pub(super) id: String,
    pub(super) upheld: bool,
    #[serde(default)]
    pub(super) why: String,
}

/// The verifier's judgement of the work as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VerifierJudgement {
    Accepted,
    Refused(String),
    /// Garbage, a timeout or an error: no judgement either way.
    Unclear(String),
    Cancelled,
}

/// Maximum bytes each of diff, test output, answer and material that a verifier is shown.
const MAX_SHOWN_BYTES: usize = 24 * 1024;

/// Input of the verifier: one answer that passed its checks.
#[derive(Clone, Copy)]
pub(super) struct VerifierCase<'a> {
    pub(super) discipline: &'a str,
    pub(super) task: &'a str,
    pub(super) work: &'a AcceptedWork,
    pub(super) diff: &'a str,
    /// Hidden tests with their results; empty if there are none.
    pub(super) further_tests: &'a str,
}

pub(super) async fn judge(
    services: &Services,
    verifier: &Tier,
    case: VerifierCase<'_>,
    stop: &CancellationToken,
) -> VerifierReply {
    let unasked = |why: String| VerifierReply {
        judgement: VerifierJudgement::Unclear(why),
        flags: Vec::new(),
        usage: Usage::ZERO,
    };
    let nonce = match Nonce::fresh() {
        Ok(nonce) => nonce,
        Err(error) => return unasked(format!("no random bytes: {error}")),
    };
    let prompt = match prompt(services, &nonce, case) {
        Ok(prompt) => prompt,
        Err(error) => return unasked(error.to_string()),
    };
    let backend = match services.backends.of(verifier) {
        Ok(backend) => backend,
        Err(error) => return unasked(error.message()),
    };
    let flag = json!({
        "type": "object",
        "properties": {"id": {"type": "string"}, "upheld": {"type": "boolean"}, "why": {"type": "string"}},
        "required": ["id", "upheld", "why"],
        "additionalProperties": false,
    });
    let required: &[&str] = if case.work.flags.is_empty() {
        &["accept", "feedback"]
    } else {
        &["accept", "feedback", "flags"]
    };
    let schema = json!({
        "type": "object",
        "properties": {
            "accept": {"type": "boolean"},
            "feedback": {"type": "string"},
            "flags": {"type": "array", "items": flag},
        },
        "required": required,
        "additionalProperties": false,
    });
    // The root is `/` because it gets no project: the prompt contains everything it should see.
    let mut ask = Ask::new(
        "You judge one piece of work and answer with one JSON object.",
        prompt,
        schema,
        "/",
    );
    ask.tool_access = ToolAccess::None;
    ask.limit = verifier.limit;
    ask.max_turns = NonZeroU32::new(3);
    match backend.ask(&ask, verifier, stop, &|_| {}).await {
        Ok(reply) => {
            let (judgement, flags) = verdict(reply.body);
            VerifierReply {
                judgement,
                flags,
                usage: reply.usage,
            }
        }
        Err(failure) => {
            let judgement = match &failure.why {
                _ if stop.is_cancelled() => VerifierJudgement::Cancelled,
                error @ AskError::TimedOut { .. } => {
                    VerifierJudgement::Unclear(format!("{error}; raise `limits.verifier_s`"))
                }
                error => VerifierJudgement::Unclear(error.message()),
            };
            VerifierReply {
                judgement,
                flags: Vec::new(),
                usage: failure.usage,
            }
        }
    }
}

fn verdict(body: Value) -> (VerifierJudgement, Vec<FlagAnswer>) {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct JudgeReply {
        accept: bool,
        #[serde(default)]
        feedback: String,
        #[serde(default)]
        flags: Vec<Value>,
    }
    if !body.is_object() {
        return (
            VerifierJudgement::Unclear(String::from("its answer is not an object")),
            Vec::new(),
        );
    }
    let mut reply = serde_json::from_value::<JudgeReply>(body);
    // An entry that cannot be parsed leaves its flag unanswered.
    let given = reply
        .as_mut()
        .map(|reply| std::mem::take(&mut reply.flags))
        .unwrap_or_default();
    let flags = given
        .into_iter()
        .filter_map(|flag| serde_json::from_value(flag).ok())
        .collect();
    let judgement = match reply {
        Ok(JudgeReply { accept: true, .. }) => VerifierJudgement::Accepted,
        Ok(JudgeReply {
            accept: false,
            feedback,
            ..
        }) if feedback.trim().is_empty() => {
            VerifierJudgement::Refused(String::from("the verifier refused it and gave no reason"))
        }
        Ok(JudgeReply {
            accept: false,
            feedback,
            ..
        }) => VerifierJudgement::Refused(words::cut_end(feedback.trim(), 1000).into_owned()),
        Err(error) => VerifierJudgement::Unclear(format!("its answer is not a verdict: {error}")),
    };
    (judgement, flags)
}

fn prompt(
    services: &Services,
    nonce: &Nonce,
    case: VerifierCase<'_>,
) -> Result<String, PromptError> {
    let fenced = |label, text: &str| {
        prompts::fence(
            nonce,
            label,
            &words::cut_middle(&services.redactor.redact(text), MAX_SHOWN_BYTES),
        )
    };
    let discipline = services.redactor.redact_known(case.discipline);
    let task = fenced("task", case.task);
    let flags = if case.work.flags.is_empty() {
        String::from("There are none.")
    } else {
        fenced(
            "flags",
            &case
                .work
                .flags
                .iter()
                .map(|flag| format!("{flag}\n"))
                .collect::<String>(),
        )
    };
    let further_tests = match case.further_tests {
        "" => String::new(),
        text => format!(
            "\n\nAnother model wrote these tests from the task alone; the worker never sees them, so do not quote them in \
             your feedback. They may be wrong: a flag of kind `twin` is upheld only if the task itself asks for what the \
             test expects.\n\n{}",
            fenced("further tests", text)
        ),
    };
    let flags = flags + &further_tests;
    match &case.work.exhibit {
        VerifierMaterial::Change => services.prompts.load("verifier")?.fill(&[
            ("nonce", nonce.as_str()),
            ("discipline", &discipline),
            ("task", &task),
            ("diff", &fenced("diff", case.diff)),
            (
                "test_output",
                &fenced("test output", &case.work.runner_output),
            ),
            ("flags", &flags),
        ]),
        VerifierMaterial::Text { answer, material } => {
            services.prompts.load("verifier_words")?.fill(&[
                ("nonce", nonce.as_str()),
                ("discipline", &discipline),
                ("task", &task),
                ("answer", &fenced("answer", answer)),
                ("material", &fenced("material", material)),
                ("flags", &flags),
            ])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_verdict_counts() {
        assert_eq!(
            verdict(json!({"accept": true, "feedback": ""})),
            (VerifierJudgement::Accepted, vec![])
        );
        assert_eq!(
            verdict(json!({"accept": false, "feedback": " no "})).0,
            VerifierJudgement::Refused("no".into())
        );
        for garbage in [
            json!({}),
            json!({"accept": "true"}),
            json!({"accept": true, "verdict": "x"}),
            json!([true]),
        ] {
            assert!(
                matches!(verdict(garbage.clone()).0, VerifierJudgement::Unclear(_)),
                "{garbage}"
            );
        }
    }

    #[test]
    fn unreadable_flag_replies_are_ignored() {
        let flags = json!([{"id": "vague", "upheld": true, "why": "no unit"}, {"id": "praise"}, "vague-2", {"upheld": true}]);
        let (judgement, flags) = verdict(json!({"accept": true, "feedback": "", "flags": flags}));
        let vague = FlagAnswer {
            id: "vague".into(),
            upheld: true,
            why: "no unit".into(),
        };
        assert_eq!(
            (judgement, flags),
            (VerifierJudgement::Accepted, vec![vague])
        );
    }
}
