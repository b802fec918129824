//! What a skill is to the engine: a value with four answers. What does it need of the project, how does it prepare, what
//! is this tier asked, does this answer hold? It never calls back; [`super::call`] owns everything between the answers.

use std::path::Path;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Status;
use super::call::Surroundings;
use super::event::{Event, Teller};
use super::evidence::Evidence;
use super::site::Site;
use super::work::{AcceptedWork, RefusedWork, SubmittedWork};
use supervisor_models::{Edits, Power};
use supervisor_process::environment;
use supervisor_settings::{Route, Routing, Tier};
use supervisor_verify::{Bench, TestWalls};

/// One phase of one skill, prepared for one call.
pub trait Skill: Sized + Send + Sync {
    /// What the caller asks for, read from the tool's arguments.
    type Params: Send + Sync;
    /// What the questions of one attempt showed, handed from [`Skill::ask`] to [`Skill::check`].
    type Shown: Send;

    /// What of the project this call needs. Wrong arguments are refused here, before anything is locked or run.
    fn access(params: &Self::Params) -> Result<Access, RefusedCall>;

    /// Looks at the project, which is locked and, where [`Access`] says so, armed. A refusal ends the call before any
    /// model is asked, and everything is taken back. In a dry run nothing of the caller's may be run.
    fn prepare(
        params: &Self::Params,
        call: &mut Preparation<'_>,
    ) -> impl Future<Output = Result<PreparedCall<Self>, RefusedCall>> + Send;

    /// What this tier is asked for one answer: one question, or several in turn where not all of it fits its window.
    /// The block of [`Evidence::render`] belongs into each prompt.
    fn ask(
        &self,
        tier: &Tier,
        edits: Edits,
        evidence: &Evidence,
    ) -> Result<(Vec<Question>, Self::Shown), TierUnfit>;

    /// What kind of task it is, as far as the skill knows: what models were worth is remembered by it.
    fn facts(&self) -> TaskFacts {
        TaskFacts::default()
    }

    /// Deterministic checks, cheapest first, with the server's own test runs last. Applies the edits of an answer that
    /// carries them; does not clean up: the engine restores whatever is not accepted.
    fn check(
        &self,
        work: SubmittedWork<'_>,
        shown: Self::Shown,
    ) -> impl Future<Output = Result<AcceptedWork, RefusedWork>> + Send;

    /// Puts accepted work where it stays, for a skill whose work is not a change of the project: notes, files of
    /// examples. Nothing comes after it that could refuse the work.
    fn deliver(
        &self,
        work: AcceptedWork,
    ) -> impl Future<Output = Result<AcceptedWork, RefusedWork>> + Send {
        async { Ok(work) }
    }
}

/// What is known about a task before a model is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskFacts {
    /// Of the code in question.
    pub language: Option<&'static str>,
    /// What there is to read at least.
    pub bytes: usize,
}

/// What a call needs of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No project is involved.
    Nothing,
    /// Reading, beside others who read. What is changed meanwhile is noticed.
    Read,
    /// Running the project's commands, alone. Whatever they write is taken back.
    RunCommands,
    /// Changing files, alone, with a snapshot to come back to.
    Edit,
}

impl Access {
    /// Does a call leave the files of the project alone until its end? Of words without a project nothing is known: what
    /// becomes of them is decided outside the call.
    pub(super) fn leaves_files_alone(self, is_in_place: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Read | Self::RunCommands => true,
            Self::Edit => !is_in_place,
        }
    }
}

/// A skill ready to be asked, with what the engine needs to know besides.
#[derive(Debug)]
pub struct PreparedCall<S> {
    pub skill: S,
    /// The rules, as the worker and the verifier are told them.
    pub discipline: String,
    /// What is to be done, in words, for the verifier.
    pub task: String,
    /// What the server itself found before a model was asked; told also when no tier gave an answer.
    pub finding: Option<ServerFinding>,
    /// What a dry run tells beside the chain.
    pub plan: DryRunPlan,
}

/// What is known whatever models say.
#[derive(Debug, Clone)]
pub struct ServerFinding {
    /// Reads after a colon.
    pub sentence: String,
    /// An object.
    pub details: Value,
}

/// A skill's part of the answer to a dry run.
#[derive(Debug, Clone)]
pub struct DryRunPlan {
    pub message: String,
    /// An object.
    pub details: Value,
}

/// What one tier is asked.
#[derive(Debug, Clone)]
pub struct Question {
    pub prompt: String,
    /// What the answer looks like: a JSON schema whose root is an object.
    pub schema: Value,
    pub power: Power,
}

/// Why a tier cannot take a question on at all, such as a window that is too small.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TierUnfit(pub String);

/// A call that ended before any model was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedCall {
    pub status: Status,
    pub message: String,
    pub runner_output: String,
    pub details: Value,
}

impl RefusedCall {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers hand over errors and texts alike"
    )]
    pub fn error(message: impl ToString) -> Self {
        Self {
            status: Status::Error,
            message: message.to_string(),
            runner_output: String::new(),
            details: Value::Null,
        }
    }
}

/// What [`Skill::prepare`] works with.
pub struct Preparation<'a> {
    pub surroundings: &'a Surroundings,
    pub route: &'a Route,
    pub session: &'a str,
    pub dry_run: bool,
    pub site: &'a mut Site,
    pub stop: &'a CancellationToken,
    pub(super) teller: &'a Teller<'a>,
}

impl Preparation<'_> {
    /// The project, canonical.
    pub fn root(&self) -> &Path {
        self.site.root()
    }

    pub fn routing(&self) -> &Routing {
        &self.surroundings.settings.routing
    }

    /// Says what is being done: `running the tests before anything is changed`.
    pub fn doing(&self, what: impl Into<String>) {
        self.teller.tell(Event::Doing { what: what.into() });
    }

    /// Says what was seen: `before: 3 passed`.
    pub fn noted(&self, what: impl Into<String>) {
        self.teller.tell(Event::Noted { what: what.into() });
    }

    /// The text of a skill's rules, the user's own if there is one.
    pub fn discipline(&self, prompt: &str) -> Result<String, RefusedCall> {
        let prompts = &self.surroundings.means.prompts;
        prompts
            .load(prompt)
            .and_then(|text| text.fill(&[]))
            .map_err(RefusedCall::error)
    }

    /// Where commands of the project run. Without a guard: the site gives one when something is run.
    pub fn bench(&self) -> Bench {
        let routing = self.routing();
        let keys: Vec<String> = routing
            .backends
            .values()
            .filter_map(|b| b.api_key_env.clone())
            .collect();
        Bench {
            launcher: self.surroundings.launcher.clone(),
            env: environment::tests(
                self.surroundings.env.vars().clone(),
                &keys,
                &routing.env_pass,
            ),
            limit: self.route.limits.tests,
            guard: None,
            walls: TestWalls::default(),
        }
    }
}
