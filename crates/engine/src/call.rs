//! One call from its arguments to its one result and one log entry, whatever happens on the way: begin, lock, arm,
//! prepare, walk, conclude, log. A skill is asked four questions in between ([`Skill`]) and knows nothing of the rest.

mod dry_run;
mod request;

use std::convert::Infallible;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub(super) use request::CallHeader;
pub use request::{CallArguments, CallHost, CallRequest, CycleTies, Surroundings};

use super::archive::archive;
use super::conclude::{CallEnd, conclude, refuse, tidy};
use super::entry::{Entry, VERSION};
use super::event::{CallKey, Event, Listener, StoryLine, Teller};
use super::means::{LiveHeader, LiveRecord, OpenRecord, RecallRequest};
use super::policy::{PolicyDecision, TaskClass, along, choose_way};
use super::result::{CallResult, Status};
use super::site::{Site, blocking};
use super::skill::{Access, Preparation, PreparedCall, RefusedCall, Skill};
use super::top_tier;
use super::walk::{WalkContext, walk_chain};
use supervisor_settings::{CallOverrides, Recall, Route, StateSettings, WorkspaceSettings};
use supervisor_workspace::{
    ArmError, Caps, EditError, Lease, LockError, Mode, OpenError, Scope, StateBounds, UndoRecord,
    UndoReport, Workspace, end_at,
};

/// Answers one call; whatever goes wrong is in the answer. Every call that could begin is in the log before this
/// returns, dry runs aside.
pub async fn run<S: Skill>(
    host: &impl CallHost,
    request: CallRequest,
    params: &S::Params,
    listener: &dyn Listener,
    stop: &CancellationToken,
) -> CallResult {
    let began = Instant::now();
    let unbegun = CallHeader {
        skill: request.skill.clone(),
        phase: request.phase.clone(),
        session_id: String::new(),
        call: String::new(),
        project_root: String::new(),
        input: Value::Null,
    };
    let surroundings = match check_arguments(&request).and_then(|()| host.surroundings()) {
        Ok(surroundings) => surroundings,
        Err(why) => return refuse(&unbegun, RefusedCall::error(why)),
    };
    let call = match OpenCall::begin(surroundings, request, stop) {
        Ok(call) => call,
        Err(why) => return refuse(&unbegun, RefusedCall::error(why)),
    };
    let means = &call.surroundings.means;
    let teller =
        || Teller::new(&call.header.skill, listener).redacting(Arc::clone(&means.redactor));
    if call.dry_run {
        let teller = teller();
        return told(&teller, call.plan::<S>(params, &teller)).await;
    }
    if let Err(why) = means.recorder.ready(&call.header.session_id) {
        // A call that cannot be written down is not begun.
        return refuse(&call.header, RefusedCall::error(why));
    }
    let open = match means.recorder.begin(&call.entry()) {
        Ok(open) => open,
        Err(why) => return refuse(&call.header, RefusedCall::error(why)),
    };
    let live = means.recorder.show_live(&call.live_header());
    let watcher = ToWatcher(&*live);
    let teller = teller().watched(&watcher);
    let work = told(&teller, call.walk::<S>(params, &teller, &*open));
    let WalkedCall {
        mut result,
        class,
        policy,
    } = tokio::select! {
        walked = work => walked,
        never = stop_on_wish(&*live, stop) => match never {},
    };
    result.more.duration_ms = Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    tidy(&means.redactor, &mut result);
    call.record(&mut result, open, class, policy).await;
    archive(&call.surroundings.state, result).await
}

/// Why an accepted change could not be taken back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Arm(#[from] ArmError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("the change could not be taken back: {0}")]
    Io(#[from] std::io::Error),
}

/// Takes back what an earlier call of the same cycle had accepted. Also after a cancel: it takes milliseconds, and
/// otherwise half a cycle would stay.
pub async fn undo(
    surroundings: &Surroundings,
    root: &Path,
    wait: Duration,
    record: UndoRecord,
) -> Result<UndoReport, UndoError> {
    let caps = caps_of(&surroundings.settings.routing.workspace);
    let workspace = Workspace::open(root, caps, &surroundings.state)?;
    let lease = workspace
        .lock(Mode::Exclusive, "tdd", wait, &CancellationToken::new())
        .await?;
    blocking(move || {
        let mut armed = lease.arm()?;
        let report = armed.undo(&record)?;
        armed.accept()?;
        Ok(report)
    })
    .await
}

/// What the settings say about how much is protected.
pub fn caps_of(settings: &WorkspaceSettings) -> Caps {
    Caps {
        max_files: settings.max_files,
        max_file_bytes: settings.max_file_bytes,
        max_total_bytes: settings.max_total_bytes,
        max_ignored_file_bytes: settings.max_ignored_file_bytes,
        exclude: settings.exclude.clone(),
    }
}

/// What the settings say about how much of projects is kept.
pub fn bounds_of(settings: StateSettings) -> StateBounds {
    StateBounds {
        age: Duration::from_secs(u64::from(settings.days) * 24 * 60 * 60),
        bytes: settings.mb.saturating_mul(1_000_000),
    }
}

/// The work, with a word to the listener while it takes long.
async fn told<T>(teller: &Teller<'_>, work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        never = teller.keep_telling() => match never {},
    }
}

/// Passes the story on to a record that others can read.
struct ToWatcher<'a>(&'a dyn LiveRecord);

impl Listener for ToWatcher<'_> {
    fn hear(&self, line: &StoryLine) {
        self.0.hear(line);
    }
}

/// How often a wish from outside is looked for.
const WISHES: Duration = Duration::from_millis(500);

/// Cancels the call when an observer asks for that. Never ends: it is dropped with the work.
async fn stop_on_wish(live: &dyn LiveRecord, stop: &CancellationToken) -> Infallible {
    while !live.is_stop_wanted() {
        tokio::time::sleep(WISHES).await;
    }
    stop.cancel();
    std::future::pending().await
}

fn check_arguments(request: &CallRequest) -> Result<(), String> {
    match request.missing.as_slice() {
        [] => Ok(()),
        [one] => Err(format!("{one} is required: the argument `{one}` is empty")),
        many => Err(format!(
            "{} are required: the arguments `{}` are empty",
            many.join(", "),
            many.join("`, `")
        )),
    }
}

/// A call that was walked, with what the log keeps besides its result.
struct WalkedCall {
    result: CallResult,
    /// Absent where no tier was reached.
    class: Option<TaskClass>,
    policy: Option<PolicyDecision>,
}

/// A call that has begun: session, settings and route are known.
struct OpenCall<'a> {
    surroundings: Surroundings,
    route: Route,
    header: CallHeader,
    dry_run: bool,
    show_prompt: bool,
    cycle: CycleTies,
    stop: &'a CancellationToken,
}

impl<'a> OpenCall<'a> {
    fn begin(
        surroundings: Surroundings,
        request: CallRequest,
        stop: &'a CancellationToken,
    ) -> Result<Self, String> {
        let CallRequest {
            skill,
            phase,
            arguments,
            cycle,
            ..
        } = request;
        let session_id = surroundings
            .means
            .recorder
            .session(arguments.session_id.as_deref())?;
        let overrides = CallOverrides {
            model: arguments.model,
            timeout: arguments.timeout_s.map(Duration::from_secs),
            max_attempts: arguments.max_attempts,
            budget_usd: arguments.budget_usd,
            twins: arguments.twins,
        };
        let mut route = surroundings
            .settings
            .routing
            .route(&skill, &overrides)
            .map_err(|e| e.to_string())?;
        for tier in std::iter::once(&mut route.chain.first).chain(&mut route.chain.rest) {
            surroundings
                .means
                .experience
                .hints(&tier.name.0)
                .applied_to(tier);
        }
        let given = arguments.project_root;
        let root = Path::new(&given)
            .canonicalize()
            .map_or(given, |root| root.display().to_string());
        let call = format!(
            "{:016x}",
            getrandom::u64().map_err(|error| format!("no random bytes: {error}"))?
        );
        let header = CallHeader {
            skill,
            phase,
            session_id,
            call,
            project_root: root,
            input: arguments.input,
        };
        let (dry_run, show_prompt) = (arguments.dry_run, arguments.show_prompt);
        Ok(Self {
            surroundings,
            route,
            header,
            dry_run,
            show_prompt,
            cycle,
            stop,
        })
    }

    fn key(&self) -> CallKey {
        CallKey {
            session_id: self.header.session_id.clone(),
            call: self.header.call.clone(),
        }
    }

    fn live_header(&self) -> LiveHeader {
        LiveHeader {
            session_id: self.header.session_id.clone(),
            skill: self.header.skill.clone(),
            phase: self.header.phase.clone(),
            project_root: self.header.project_root.clone(),
            began: jiff::Timestamp::now().to_string(),
            chain: self
                .route
                .chain
                .tiers()
                .map(|tier| tier.name.to_string())
                .collect(),
        }
    }

    /// Prepares, walks the chain and concludes.
    async fn walk<S: Skill>(
        &self,
        params: &S::Params,
        teller: &Teller<'_>,
        open: &dyn OpenRecord,
    ) -> WalkedCall {
        let mut sandbox = String::new();
        let (mut site, call) = match self.prepare::<S>(params, teller, &mut sandbox).await {
            Ok(prepared) => prepared,
            Err(refused) => {
                let mut result = refuse(&self.header, refused);
                result.more.sandbox = sandbox;
                return WalkedCall {
                    result,
                    class: None,
                    policy: None,
                };
            }
        };
        let means = &*self.surroundings.means;
        let class = TaskClass::of(&self.header.skill, call.skill.facts());
        let policy = choose_way(
            &self.route,
            means,
            &self.surroundings.settings.routing,
            &class,
        );
        let chosen = policy.as_ref().map(|decision| along(&self.route, decision));
        let route = chosen.as_ref().unwrap_or(&self.route);
        if let Some(decision) = policy
            .as_ref()
            .filter(|decision| !decision.keeps_the_chain())
        {
            teller.tell(Event::Noted {
                what: decision.sentence.clone(),
            });
        }
        let budget = match &self.cycle.budget {
            Some(cycle) => cycle.part(self.route.budget.into()),
            None => means
                .budgets
                .call(&self.header.session_id, self.route.budget),
        };
        let recalled = self.recall(&call.task).await;
        let context = WalkContext {
            means,
            route,
            budget: &budget,
            teller,
            stop: self.stop,
            open,
            recalled: &recalled,
        };
        let walked = walk_chain(context, &call, &mut site).await;
        let (undo, state) = (self.cycle.undo.as_deref(), &self.surroundings.state);
        let end = CallEnd {
            undo,
            state,
            teller,
            stop: self.stop,
        };
        let result = conclude(route, &self.header, site, walked, call.finding, end).await;
        WalkedCall {
            result,
            class: Some(class),
            policy,
        }
    }

    /// What earlier work says about the task, if the settings want it in the brief.
    async fn recall(&self, task: &str) -> String {
        let recall = self.route.recall;
        let Some(recollection) = self
            .surroundings
            .means
            .recollection
            .as_ref()
            .filter(|_| recall != Recall::Off)
        else {
            return String::new();
        };
        let request = RecallRequest {
            recall,
            project_root: &self.header.project_root,
            task,
            session: &self.header.session_id,
        };
        recollection.recall(request).await
    }

    /// The project, held as the skill needs it, and the skill ready to be asked. A refusal leaves nothing behind.
    async fn prepare<S: Skill>(
        &self,
        params: &S::Params,
        teller: &Teller<'_>,
        sandbox: &mut String,
    ) -> Result<(Site, PreparedCall<S>), RefusedCall> {
        let access = S::access(params)?;
        let mut site = self.open_site(access, teller).await?;
        if !self.dry_run && access.leaves_files_alone(site.is_in_place()) {
            teller.set_apart(&self.key());
        }
        let mut preparation = Preparation {
            surroundings: &self.surroundings,
            route: &self.route,
            session: &self.header.session_id,
            dry_run: self.dry_run,
            site: &mut site,
            stop: self.stop,
            teller,
        };
        match S::prepare(params, &mut preparation).await {
            Ok(call) => Ok((site, call)),
            Err(refused) => {
                *sandbox = site.sandbox();
                // What commands wrote is taken away again; nothing else was touched.
                site.leave(Scope::Applied)
                    .await
                    .map_err(RefusedCall::error)?;
                Err(refused)
            }
        }
    }

    /// Locks and arms.
    async fn open_site(&self, access: Access, teller: &Teller<'_>) -> Result<Site, RefusedCall> {
        let root = Path::new(&self.header.project_root);
        let caps = caps_of(&self.surroundings.settings.routing.workspace);
        let state = &self.surroundings.state;
        match access {
            // An agent must be started somewhere; without any power it is all the same where.
            Access::Nothing if self.header.project_root.is_empty() => Ok(Site::words("/")),
            Access::Nothing => Ok(Site::words(root)),
            Access::Read => {
                let workspace =
                    Workspace::open_to_read(root, caps, state).map_err(RefusedCall::error)?;
                let lease = self.lock(&workspace, Mode::Shared).await?;
                Site::watching(lease).await.map_err(RefusedCall::error)
            }
            Access::RunCommands | Access::Edit => {
                let workspace = Workspace::open(root, caps, state).map_err(RefusedCall::error)?;
                let lease = self.lock(&workspace, Mode::Exclusive).await?;
                let strategy = self.surroundings.settings.routing.workspace.strategy;
                let armed = Site::arm_private(lease, &self.surroundings.launcher, strategy).await;
                let mut site = armed.map_err(RefusedCall::error)?;
                let armed = site.armed().map_err(RefusedCall::error)?;
                let (files, unprotected) = (armed.files().count(), armed.unprotected().len());
                teller.tell(Event::Armed { files, unprotected });
                Ok(site)
            }
        }
    }

    async fn lock(&self, workspace: &Workspace, mode: Mode) -> Result<Lease, RefusedCall> {
        let wait = self.route.limits.lock_wait;
        workspace
            .lock(mode, &self.header.skill, wait, self.stop)
            .await
            .map_err(RefusedCall::error)
    }

    /// What is known of the call before anything has happened.
    fn entry(&self) -> Entry {
        Entry {
            v: VERSION,
            session_id: self.header.session_id.clone(),
            call: self.header.call.clone(),
            cycle_id: self.cycle.id.clone(),
            timestamp: jiff::Timestamp::now().to_string(),
            skill: self.header.skill.clone(),
            phase: self.header.phase.clone(),
            final_status: Status::Error,
            cause: None,
            project_root: self.header.project_root.clone(),
            file_path: String::new(),
            model_used: String::new(),
            message: String::new(),
            input: self.header.input.clone(),
            attempts: Vec::new(),
            duration_ms: 0,
            top_tier: None,
            class: None,
            policy: None,
            sandbox: String::new(),
        }
    }

    /// Writes the entry before the reply leaves; a failure is told in the reply.
    async fn record(
        &self,
        result: &mut CallResult,
        open: Box<dyn OpenRecord>,
        class: Option<TaskClass>,
        policy: Option<PolicyDecision>,
    ) {
        let entry = Entry {
            final_status: result.status,
            file_path: result.file_path.clone(),
            model_used: result.model_used.clone(),
            message: result.message.clone(),
            attempts: result.more.attempts.clone(),
            duration_ms: result.more.duration_ms.unwrap_or_default(),
            top_tier: Some(top_tier::of(&self.route, &result.more.attempts)),
            class,
            policy,
            sandbox: result.more.sandbox.clone(),
            ..self.entry()
        };
        let means = Arc::clone(&self.surroundings.means);
        // The disk may be slow, and other calls must not wait for it.
        let recorded = blocking(move || {
            let noted = entry.class.as_ref().map_or(Ok(()), |class| {
                means.experience.note(class, &entry.attempts)
            });
            if let Err(why) = noted {
                tracing::warn!("what the models were worth in this call is not remembered: {why}");
            }
            open.close(&entry)
        });
        let recorded = recorded.await;
        end_at("CallLogged");
        if let Err(why) = recorded {
            let _ = write!(result.message, " (not in the session log: {why})");
        }
    }
}
