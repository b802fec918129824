//! The interface between the engine and a skill. A skill states which access to the project it
//! needs, prepares the call, writes the questions for a tier and checks the answer. It never calls
//! back; [`super::call`] owns everything else.

use std::path::Path;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Status;
use super::call::CallEnvironment;
use super::event::{Event, EventReporter};
use super::evidence::Evidence;
use super::project_access::Site;
use super::work::{AcceptedWork, RefusedWork, Screening, SeenEdits, SubmittedWork};
use supervisor_models::{Edits, ToolAccess};
use supervisor_process::environment;
use supervisor_settings::{Route, Routing, Tier};
use supervisor_verify::{RunEnvironment, TestSandbox};

/// One phase of one skill, prepared for one call.
pub trait Skill: Sized + Send + Sync {
    /// The tool's parsed arguments.
    type Params: Send + Sync;
    /// What the questions of one attempt showed; passed from [`Skill::ask`] to [`Skill::check`].
    type Shown: Send + Sync + Clone;

    /// The access to the project that this call needs. Rejects wrong arguments before anything is
    /// locked or run.
    fn access(params: &Self::Params) -> Result<Access, RefusedCall>;

    /// Examines the project, which is locked and, depending on [`Access`], has a snapshot. A
    /// refusal ends the call before any model is asked, and everything is undone. In a dry run no
    /// command of the caller may be run.
    fn prepare(
        params: &Self::Params,
        call: &mut Preparation<'_>,
    ) -> impl Future<Output = Result<PreparedCall<Self>, RefusedCall>> + Send;

    /// The questions for this tier: one, or several in turn if not everything fits its window. Each
    /// prompt should contain the block of [`Evidence::render`].
    fn ask(
        &self,
        tier: &Tier,
        edits: Edits,
        evidence: &Evidence,
    ) -> Result<(Vec<Question>, Self::Shown), TierUnfit>;

    /// The call that the caller can make after doing the work without us, for when no tier's work
    /// is accepted: tool and arguments, or null if there is none.
    fn by_hand(&self) -> Value {
        Value::Null
    }

    /// Facts about the task. The results of models are recorded per kind of task.
    fn facts(&self) -> TaskFacts {
        TaskFacts::default()
    }

    /// Deterministic checks, cheapest first, with the server's own test runs last. Applies the
    /// edits of an answer that carries them. It does not clean up: the engine restores everything
    /// that is not accepted.
    fn check(
        &self,
        work: SubmittedWork<'_>,
        shown: Self::Shown,
    ) -> impl Future<Output = Result<AcceptedWork, RefusedWork>> + Send;

    /// The cheap checks of one of several candidates: whether its edits can be applied, whether
    /// another candidate made the same ones, and whether the tests in question pass. Like
    /// [`Skill::check`] it does not clean up.
    fn screen(
        &self,
        work: SubmittedWork<'_>,
        shown: Self::Shown,
        seen: &mut SeenEdits,
    ) -> impl Future<Output = Result<Screening, RefusedWork>> + Send {
        let _ = (work, shown, seen);
        async { Ok(Screening::Passed) }
    }

    /// Stores accepted work, for a skill whose work is not a change of the project, such as notes
    /// or example files. Runs last: nothing can refuse the work afterwards.
    fn deliver(
        &self,
        work: AcceptedWork,
    ) -> impl Future<Output = Result<AcceptedWork, RefusedWork>> + Send {
        async { Ok(work) }
    }
}

/// Facts about a task that are known before a model is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskFacts {
    /// Language of the code in question.
    pub language: Option<&'static str>,
    /// Minimum number of bytes to read.
    pub bytes: usize,
}

/// The access to the project that a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No project is involved.
    Nothing,
    /// Reading, shared with other readers. Concurrent changes are detected.
    Read,
    /// Exclusive; runs the project's commands. Everything they write is undone.
    RunCommands,
    /// Exclusive; changes files, with a snapshot to restore.
    Edit,
}

impl Access {
    /// Whether a call leaves the project's files alone until its end. Without a project nothing is
    /// known: the caller decides what happens with the answer.
    pub(super) fn leaves_files_alone(self, is_in_place: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Read | Self::RunCommands => true,
            Self::Edit => !is_in_place,
        }
    }
}

/// A prepared skill, with what else the engine needs.
#[derive(Debug)]
pub struct PreparedCall<S> {
    pub skill: S,
    /// The rules, as given to the worker and the verifier.
    pub discipline: String,
    /// Description of the task, for the verifier.
    pub task: String,
    /// What the server found before a model was asked. Reported even if no tier gave an answer.
    pub finding: Option<ServerFinding>,
    /// The skill's part of a dry run.
    pub plan: DryRunPlan,
}

/// A finding that does not depend on any model.
#[derive(Debug, Clone)]
pub struct ServerFinding {
    /// Text that follows a colon.
    pub sentence: String,
    /// A JSON object.
    pub details: Value,
}

/// A skill's part of the reply to a dry run.
#[derive(Debug, Clone)]
pub struct DryRunPlan {
    pub message: String,
    /// A JSON object.
    pub details: Value,
}

/// One question to a tier.
#[derive(Debug, Clone)]
pub struct Question {
    pub prompt: String,
    /// JSON schema of the answer; its root is an object.
    pub schema: Value,
    pub tool_access: ToolAccess,
}

/// Why a tier cannot be asked at all, such as a window that is too small.
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

impl<E: std::error::Error> From<E> for RefusedCall {
    fn from(error: E) -> Self {
        Self::error(error)
    }
}

/// The prompt with the rules of all skills.
pub const RULES: &str = "rules";

/// Context of [`Skill::prepare`].
pub struct Preparation<'a> {
    pub environment: &'a CallEnvironment,
    pub route: &'a Route,
    pub session: &'a str,
    pub dry_run: bool,
    pub site: &'a mut Site,
    pub stop: &'a CancellationToken,
    pub(super) reporter: &'a EventReporter<'a>,
}

impl Preparation<'_> {
    /// Canonical path of the project.
    pub fn root(&self) -> &Path {
        self.site.root()
    }

    pub fn routing(&self) -> &Routing {
        &self.environment.settings.routing
    }

    /// Reports what is being done: `running the tests before anything is changed`.
    pub fn doing(&self, what: impl Into<String>) {
        self.reporter.report(Event::Doing { what: what.into() });
    }

    /// Reports what was seen: `before: 3 passed`.
    pub fn noted(&self, what: impl Into<String>) {
        self.reporter.report(Event::Noted { what: what.into() });
    }

    /// The rules of all skills and those of this one, or the user's own version of each.
    pub fn discipline(&self, prompt: &str) -> Result<String, RefusedCall> {
        let prompts = &self.environment.services.prompts;
        let text = |name: &str| prompts.load(name)?.fill(&[]);
        let both = text(RULES).and_then(|rules| Ok(format!("{rules}\n{}", text(prompt)?)));
        both.map_err(RefusedCall::error)
    }

    /// The environment in which the project's commands run. It has no guard: the site provides one
    /// when something is run.
    pub fn bench(&self) -> RunEnvironment {
        let routing = self.routing();
        let keys: Vec<String> = routing
            .backends
            .values()
            .filter_map(|b| b.api_key_env.clone())
            .collect();
        RunEnvironment {
            launcher: self.environment.launcher.clone(),
            env: environment::tests(
                self.environment.env.vars().clone(),
                &keys,
                &routing.env_pass,
            ),
            limit: self.route.limits.tests,
            guard: None,
            sandbox: TestSandbox::default(),
            execution: self.environment.services.execution.clone(),
        }
    }
}
