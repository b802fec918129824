//! Tests of another hand: a tier other than the worker's writes tests from the task alone, which the worker never sees.
//! Knows who is asked and what that took. What the tests are worth is for the skill to find out.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::json;

use super::attempt::Attempt;
use super::budget::worst_case;
use super::event::{ChainPlace, Event};
use super::walk::WalkContext;
use supervisor_models::{Ask, Power, Usage};
use supervisor_settings::Tier;
use supervisor_text::prompts;
use supervisor_text::prompts::Nonce;
use supervisor_text::words;

/// Bytes of a test file that the author is shown, and that it may write.
const LONGEST: usize = 48 * 1024;

/// A model that writes further tests for the work of another.
pub struct TestAuthor<'a> {
    context: WalkContext<'a>,
    at: &'a ChainPlace,
    /// `None` where the chain has no tier but the worker's.
    tier: Option<&'a Tier>,
    count: u32,
    used: Mutex<Option<Usage>>,
    exhibit: Mutex<String>,
}

/// What the author is told: the task and the tests that are known, and nothing of the work.
#[derive(Debug, Clone, Copy)]
pub struct AuthorBrief<'a> {
    pub task: &'a str,
    pub path: &'a str,
    pub tests: &'a str,
}

impl<'a> TestAuthor<'a> {
    /// `None` where no further tests are wanted. The strongest tier of the way that is not the worker's.
    pub(super) fn for_work_of(
        worker: &Tier,
        at: &'a ChainPlace,
        context: WalkContext<'a>,
    ) -> Option<Self> {
        let count = context.route.twins;
        let others = context
            .route
            .chain
            .tiers()
            .filter(|tier| tier.name != worker.name);
        (count > 0).then(|| Self {
            context,
            at,
            tier: others.last(),
            count,
            used: Mutex::default(),
            exhibit: Mutex::default(),
        })
    }

    /// How many tests are wanted.
    pub fn count(&self) -> u32 {
        self.count
    }

    pub fn model(&self) -> Option<String> {
        self.tier.map(|tier| tier.name.to_string())
    }

    /// A whole test file, or why there is none, as a clause.
    pub async fn write(&self, brief: AuthorBrief<'_>) -> Result<String, String> {
        let tier = self.tier.ok_or("the chain has no tier but the worker's")?;
        let WalkContext {
            means,
            budget,
            teller,
            stop,
            ..
        } = self.context;
        let nonce = Nonce::fresh().map_err(|error| format!("no random bytes: {error}"))?;
        let shown = |label, text: &str| {
            prompts::fence(
                &nonce,
                label,
                &words::cut_middle(&means.redactor.redact_known(text), LONGEST),
            )
        };
        let template = means
            .prompts
            .load("tdd/twins")
            .map_err(|error| error.to_string())?;
        let prompt = template.fill(&[
            ("nonce", nonce.as_str()),
            ("count", &self.count.to_string()),
            ("path", brief.path),
            ("task", &shown("task", brief.task)),
            ("tests", &shown("tests", brief.tests)),
        ]);
        let schema = json!({
            "type": "object",
            "properties": {"tests": {"type": "string"}},
            "required": ["tests"],
            "additionalProperties": false,
        });
        let rules = "You write tests from a specification and answer with one JSON object.";
        // It is given no project: what it should see is in the prompt.
        let mut ask = Ask::new(
            rules,
            prompt.map_err(|error| error.to_string())?,
            schema,
            "/",
        );
        ask.power = Power::None;
        ask.limit = tier.limit;
        let backend = means.backends.of(tier).map_err(|error| error.message())?;
        let reserved = budget
            .reserve(worst_case(&ask, tier))
            .map_err(|exceeded| exceeded.to_string())?;
        ask.budget_usd = reserved.granted().usd;
        if let Some(time) = reserved.granted().time {
            ask.limit = ask.limit.min(time);
        }
        teller.tell(Event::Checking {
            at: self.at.clone(),
            what: format!("asking `{}` for further tests", tier.name),
        });
        let began = Instant::now();
        let answered = backend.ask(&ask, tier, stop, &|_| {}).await;
        let usage = answered
            .as_ref()
            .map_or_else(|failure| failure.usage, |reply| reply.usage);
        reserved.settle(&usage, began.elapsed());
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Some(usage);
        let reply = answered.map_err(|failure| failure.why.message())?;
        match reply.body["tests"].as_str() {
            Some(text) if text.len() > LONGEST => {
                Err(String::from("the test file it wrote is too long"))
            }
            Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
            _ => Err(String::from("its answer holds no tests")),
        }
    }

    /// What the verifier sees of the tests, and the worker never does.
    pub fn show_verifier(&self, exhibit: String) {
        *self.exhibit.lock().unwrap_or_else(PoisonError::into_inner) = exhibit;
    }

    pub(super) fn exhibit(&self) -> String {
        self.exhibit
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Adds what was used to the attempt that it was used for.
    pub(super) fn note(&self, attempt: &mut Attempt) {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(tier), Some(usage)) = (self.tier, used) {
            attempt.note_author(tier, &usage);
        }
    }
}
