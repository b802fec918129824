//! Hidden tests: a tier other than the worker's writes tests from the task alone, and the worker
//! never sees them. This module asks the tier and records the usage; the skill judges the tests.

use parking_lot::Mutex;
use std::time::Instant;

use serde_json::json;

use super::attempt::Attempt;
use super::budget::worst_case;
use super::event::{ChainPosition, Event};
use super::skill::RULES;
use super::walk::WalkContext;
use supervisor_models::{Ask, ToolAccess, Usage};
use supervisor_settings::Tier;
use supervisor_text::prompts;
use supervisor_text::prompts::Nonce;
use supervisor_text::words;

/// Maximum bytes of a test file that the author is shown or may write.
const MAX_TEST_FILE_BYTES: usize = 48 * 1024;

/// A model that writes hidden tests for another model's work.
pub struct TestAuthor<'a> {
    context: WalkContext<'a>,
    at: &'a ChainPosition,
    /// `None` if the chain has no tier besides the worker's.
    tier: Option<&'a Tier>,
    count: u32,
    used: Mutex<Option<Usage>>,
    verifier_text: Mutex<String>,
}

/// Input of the author: the task and the known tests, but nothing of the worker's change.
#[derive(Debug, Clone, Copy)]
pub struct AuthorBrief<'a> {
    pub task: &'a str,
    pub path: &'a str,
    pub tests: &'a str,
}

impl<'a> TestAuthor<'a> {
    /// Picks the last tier of the route that is not the worker's. Returns `None` if no hidden tests
    /// are requested.
    pub(super) fn for_work_of(
        worker: &Tier,
        at: &'a ChainPosition,
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
            verifier_text: Mutex::default(),
        })
    }

    /// How many tests are requested.
    pub fn count(&self) -> u32 {
        self.count
    }

    pub fn model(&self) -> Option<String> {
        self.tier.map(|tier| tier.name.to_string())
    }

    /// Returns a complete test file. The error is a clause.
    pub async fn write(&self, brief: AuthorBrief<'_>) -> Result<String, String> {
        let tier = self.tier.ok_or("the chain has no tier but the worker's")?;
        let WalkContext {
            services,
            budget,
            reporter,
            stop,
            ..
        } = self.context;
        let nonce = Nonce::fresh().map_err(|error| format!("no random bytes: {error}"))?;
        let shown = |label, text: &str| {
            prompts::fence(
                &nonce,
                label,
                &words::cut_middle(&services.redactor.redact_known(text), MAX_TEST_FILE_BYTES),
            )
        };
        let template = services
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
        let rules = services.prompts.load(RULES);
        let rules = rules.and_then(|rules| rules.fill(&[]));
        let rules = format!(
            "{}\nYou write tests from a specification and answer with one JSON object.",
            rules.map_err(|error| error.to_string())?
        );
        // The root is `/` because it gets no project: the prompt contains everything it may see.
        let mut ask = Ask::new(
            rules,
            prompt.map_err(|error| error.to_string())?,
            schema,
            "/",
        );
        ask.tool_access = ToolAccess::None;
        ask.limit = tier.limit;
        let backend = services
            .backends
            .of(tier)
            .map_err(|error| error.message())?;
        let reserved = budget
            .reserve(worst_case(&ask, tier))
            .map_err(|exceeded| exceeded.to_string())?;
        ask.budget_usd = reserved.granted().usd;
        if let Some(time) = reserved.granted().time {
            ask.limit = ask.limit.min(time);
        }
        reporter.report(Event::Checking {
            at: self.at.clone(),
            what: format!("asking `{}` for further tests", tier.name),
        });
        let began = Instant::now();
        let answered = backend.ask(&ask, tier, stop, &|_| {}).await;
        let usage = answered
            .as_ref()
            .map_or_else(|failure| failure.usage, |reply| reply.usage);
        reserved.settle(&usage, began.elapsed());
        *self.used.lock() = Some(usage);
        let reply = answered.map_err(|failure| failure.why.message())?;
        match reply.body["tests"].as_str() {
            Some(text) if text.len() > MAX_TEST_FILE_BYTES => {
                Err(String::from("the test file it wrote is too long"))
            }
            Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
            _ => Err(String::from("its answer holds no tests")),
        }
    }

    /// Sets the text about the tests that the verifier sees. The worker never sees it.
    pub fn set_verifier_text(&self, verifier_text: String) {
        *self.verifier_text.lock() = verifier_text;
    }

    pub(super) fn verifier_text(&self) -> String {
        self.verifier_text.lock().clone()
    }

    /// Adds the author's usage to the attempt.
    pub(super) fn add_usage_to(&self, attempt: &mut Attempt) {
        let used = *self.used.lock();
        if let (Some(tier), Some(usage)) = (self.tier, used) {
            attempt.note_author(tier, &usage);
        }
    }
}
