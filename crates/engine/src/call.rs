//! Runs one call from its arguments to its result and log entry: begin, lock, take a snapshot,
//! prepare, walk the chain, conclude, log. In between it calls the methods of the [`Skill`], which
//! need to know nothing else.

mod dry_run;
mod request;

use std::convert::Infallible;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub(super) use request::CallHeader;
pub use request::{CallArguments, CallEnvironment, CallRequest, CycleContext, EnvironmentProvider};

use super::Cause;
use super::archive::archive;
use super::conclude::{ConcludeContext, Unaided, conclude, redact_result, refused_result};
use super::entry::{self, Entry, VERSION};
use super::event::{CallKey, Event, EventReporter, Listener, ProgressLine};

use super::policy::{
    PolicyDecision, TaskClass, advise, apply_decision, choose_route, choose_samples,
};
use super::project_access::{Site, blocking};
use super::reach;
use super::result::{CANCELLED, CallResult, Status};
use super::services::{LiveHeader, LiveRecord, OpenRecord, RecallRequest};
use super::skill::{Access, Preparation, PreparedCall, RefusedCall, Skill};
use super::top_tier;
use super::walk::{WalkContext, walk_chain};
use supervisor_models::model_list;
use supervisor_settings::{
    CallOverrides, Model, ModelName, Recall, Route, RoutingError, StateSettings, WorkspaceSettings,
};
use supervisor_workspace::{
    EditError, Lease, LockError, Mode, OpenError, Scope, SnapshotError, SnapshotLimits,
    StateBounds, UndoRecord, UndoReport, UndoStore, Workspace, end_at,
};

/// Runs one call. Failures are reported in the result. Except for dry runs, every call that could
/// begin is in the log when this returns.
pub async fn run<S: Skill>(
    host: &impl EnvironmentProvider,
    request: CallRequest,
    params: &S::Params,
    listener: &dyn Listener,
    stop: &CancellationToken,
) -> CallResult {
    let began = Instant::now();
    let empty_header = CallHeader {
        skill: request.skill.clone(),
        phase: request.phase.clone(),
        session_id: String::new(),
        call: String::new(),
        cycle_id: String::new(),
        project_root: String::new(),
        input: Value::Null,
    };
    let environment = match check_arguments(&request).and_then(|()| host.environment()) {
        Ok(environment) => environment,
        Err(why) => return refused_result(&empty_header, RefusedCall::error(why)),
    };
    let call = match OpenCall::begin(environment, request, stop).await {
        Ok(call) => call,
        Err(why) => return refused_result(&empty_header, RefusedCall::error(why)),
    };
    let services = &call.environment.services;
    let reporter = || {
        EventReporter::new(&call.header.skill, listener)
            .with_redactor(Arc::clone(&services.redactor))
    };
    if call.dry_run {
        let reporter = reporter();
        return with_heartbeat(&reporter, call.plan::<S>(params, &reporter)).await;
    }
    if let Err(why) = services.recorder.ready(&call.header.session_id) {
        // Never run a call that cannot be logged.
        return refused_result(&call.header, RefusedCall::error(why));
    }
    let open = match services.recorder.begin(&call.entry()) {
        Ok(open) => open,
        Err(why) => return refused_result(&call.header, RefusedCall::error(why)),
    };
    let live = services.recorder.show_live(&call.live_header());
    let watcher = LiveForwarder(&*live);
    let reporter = reporter().with_watcher(&watcher);
    let work = with_heartbeat(&reporter, call.walk::<S>(params, &reporter, &*open));
    let CallOutcome {
        mut result,
        class,
        policy,
    } = tokio::select! {
        walked = work => walked,
        never = cancel_when_requested(&*live, stop) => match never {},
    };
    result.more.duration_ms = Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    redact_result(&services.redactor, &mut result);
    if !result.more.attempts.is_empty() {
        result.more.top_tier = Some(top_tier::estimate_cost(&call.route, &result.more.attempts));
    }
    // Nothing was asked or run for arguments that cannot be meant.
    let cause =
        (result.status == Status::Error && S::access(params).is_err()).then_some(Cause::Arguments);
    let foreground = listener
        .background_since()
        .map(|since| since.saturating_duration_since(began));
    let facts = CallFacts {
        cause,
        class,
        policy,
        foreground,
    };
    call.record(&mut result, open, facts).await;
    archive(&call.environment.state, result).await
}

/// Why an accepted change could not be undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Arm(#[from] SnapshotError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("the change could not be undone: {0}")]
    Io(#[from] std::io::Error),
}

/// Undoes the accepted change of an earlier call of the same cycle. Runs even after a cancel: it
/// takes milliseconds, and otherwise half of the cycle would remain.
pub async fn undo(
    environment: &CallEnvironment,
    root: &Path,
    wait: Duration,
    record: UndoRecord,
) -> Result<UndoReport, UndoError> {
    let caps = caps_of(&environment.settings.routing.workspace);
    let workspace = Workspace::open(root, caps, &environment.state)?;
    let lease = workspace
        .lock(Mode::Exclusive, "tdd", wait, &CancellationToken::new())
        .await?;
    let store = UndoStore::of(&environment.state);
    blocking(move || {
        let mut armed = lease.take_snapshot()?;
        let report = armed.undo(&record)?;
        armed.accept()?;
        if report.left.is_empty() {
            // `supervisor undo` must not take it for a part of what was kept.
            let undone = store.list().into_iter().find(|one| one.record == record);
            undone.map_or(Ok(()), |one| store.remove(&one.call))?;
        }
        Ok(report)
    })
    .await
}

/// Snapshot limits from the settings.
pub fn caps_of(settings: &WorkspaceSettings) -> SnapshotLimits {
    SnapshotLimits {
        max_files: settings.max_files,
        max_file_bytes: settings.max_file_bytes,
        max_total_bytes: settings.max_total_bytes,
        max_ignored_file_bytes: settings.max_ignored_file_bytes,
        exclude: settings.exclude.clone(),
    }
}

/// Retention limits of project state from the settings.
pub fn bounds_of(settings: StateSettings) -> StateBounds {
    StateBounds {
        age: Duration::from_secs(u64::from(settings.days) * 24 * 60 * 60),
        bytes: settings.mb.saturating_mul(1_000_000),
    }
}

/// Runs `work` and reports progress while it takes long.
async fn with_heartbeat<T>(reporter: &EventReporter<'_>, work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        never = reporter.send_heartbeats() => match never {},
    }
}

/// Forwards progress to a record that other processes can read.
struct LiveForwarder<'a>(&'a dyn LiveRecord);

impl Listener for LiveForwarder<'_> {
    fn on_event(&self, line: &ProgressLine) {
        self.0.on_event(line);
    }
}

/// How often to check whether an observer asked to stop the call.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Cancels the call when an observer asks for it. Never returns; it is dropped with the work.
async fn cancel_when_requested(live: &dyn LiveRecord, stop: &CancellationToken) -> Infallible {
    while !live.is_stop_requested() {
        tokio::time::sleep(STOP_POLL_INTERVAL).await;
    }
    stop.cancel();
    std::future::pending().await
}

/// How long a gateway may take to list its models.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// Lets a gateway serve a model that no pattern names, if it offers it. Returns what the gateways
/// offer, if they were asked.
async fn with_offered_model(
    environment: &mut CallEnvironment,
    overrides: &CallOverrides,
) -> Vec<String> {
    let routing = &mut environment.settings.routing;
    let model = overrides.model.as_deref();
    let Some(model) = model.filter(|model| routing.backend_for(model).is_none()) else {
        return Vec::new();
    };
    let env = &environment.env;
    let lists = routing
        .gateways(overrides)
        .into_iter()
        .map(async |gateway| {
            let names = model_list::offered(gateway, env, LIST_TIMEOUT).await;
            (gateway.name.clone(), names.unwrap_or_default())
        });
    let lists = join_all(lists).await;
    let serving = lists
        .iter()
        .find(|(_, names)| model_list::offers(names, model));
    if let Some((gateway, _)) = serving {
        let served = Model {
            backend: Some(gateway.clone()),
            ..Model::named(model.to_owned(), routing.default_context)
        };
        routing.models.insert(ModelName(model.to_owned()), served);
    }
    lists.into_iter().flat_map(|(_, names)| names).collect()
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

/// A finished walk, with the data that only the log needs.
struct CallOutcome {
    result: CallResult,
    /// `None` if no tier was reached.
    class: Option<TaskClass>,
    policy: Option<PolicyDecision>,
}

/// What only the log needs to know about a finished call.
struct CallFacts {
    cause: Option<Cause>,
    class: Option<TaskClass>,
    policy: Option<PolicyDecision>,
    /// How long the caller waited; `None` if until the end.
    foreground: Option<Duration>,
}

/// A call that has begun: session, settings and route are known.
struct OpenCall<'a> {
    environment: CallEnvironment,
    route: Route,
    header: CallHeader,
    dry_run: bool,
    show_prompt: bool,
    cycle: CycleContext,
    stop: &'a CancellationToken,
}

impl<'a> OpenCall<'a> {
    async fn begin(
        mut environment: CallEnvironment,
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
        let session_id = environment
            .services
            .recorder
            .session(arguments.session_id.as_deref())?;
        let given = arguments.project_root;
        let root = Path::new(&given)
            .canonicalize()
            .map_or(given, |root| root.display().to_string());
        let overrides = CallOverrides {
            project_root: Some(PathBuf::from(&root)).filter(|root| root.is_absolute()),
            stay_local: arguments.stay_local,
            model: arguments.model,
            timeout: arguments.timeout_s.map(Duration::from_secs),
            max_attempts: arguments.max_attempts,
            budget_usd: arguments.budget_usd,
            twins: arguments.twins,
            samples: arguments.samples,
        };
        let offered = with_offered_model(&mut environment, &overrides).await;
        let route = environment.settings.routing.route(&skill, &overrides);
        let mut route = route.map_err(|mut error| {
            if let RoutingError::UnknownModel { known, .. } = &mut error {
                known.extend(offered);
            }
            error.to_string()
        })?;
        for tier in std::iter::once(&mut route.chain.first).chain(&mut route.chain.rest) {
            environment
                .services
                .model_history
                .hints(&tier.name.0)
                .apply_to(tier);
        }
        let minute_usd = environment.settings.routing.policy.minute_usd;
        let history = &*environment.services.model_history;
        choose_samples(&mut route, &skill, history, minute_usd);
        let call = format!(
            "{:016x}",
            getrandom::u64().map_err(|error| format!("no random bytes: {error}"))?
        );
        let header = CallHeader {
            skill,
            phase,
            session_id,
            call,
            cycle_id: cycle.id.clone(),
            project_root: root,
            input: arguments.input,
        };
        let (dry_run, show_prompt) = (arguments.dry_run, arguments.show_prompt);
        Ok(Self {
            environment,
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
            call: self.header.call.clone(),
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
        reporter: &EventReporter<'_>,
        record: &dyn OpenRecord,
    ) -> CallOutcome {
        let mut sandbox = String::new();
        let (mut site, call) = match self.prepare::<S>(params, reporter, &mut sandbox).await {
            Ok(prepared) => prepared,
            Err(refused) => {
                let mut result = refused_result(&self.header, refused);
                result.more.sandbox = sandbox;
                return CallOutcome {
                    result,
                    class: None,
                    policy: None,
                };
            }
        };
        let services = &*self.environment.services;
        let class = TaskClass::of(&self.header.skill, call.skill.facts());
        let settled = reach::settle(
            &self.route,
            &self.environment.settings.routing,
            services,
            self.stop,
        )
        .await;
        let policy = choose_route(
            &settled,
            services,
            &self.environment.settings.routing,
            &class,
        );
        let chosen = policy
            .as_ref()
            .map(|decision| apply_decision(&settled, decision));
        let route = chosen.as_ref().unwrap_or(&settled);
        if let Some(decision) = policy
            .as_ref()
            .filter(|decision| !decision.is_configured_chain())
        {
            reporter.report(Event::Noted {
                what: decision.sentence.clone(),
            });
        }
        let routing = &self.environment.settings.routing;
        let advice = advise(&settled, &*services.model_history, routing, &class)
            .filter(|_| self.header.skill.starts_with("tdd"));
        if let Some(what) = advice.clone() {
            reporter.report(Event::Noted { what });
        }
        let budget = match &self.cycle.budget {
            Some(cycle) => cycle.sub_budget(self.route.budget.into()),
            None => services.budgets.call(
                &self.header.session_id,
                &self.header.project_root,
                self.route.budget,
            ),
        };
        let recalled = self.recall(&call.task).await;
        let context = WalkContext {
            services,
            route,
            budget: &budget,
            reporter,
            stop: self.stop,
            record,
            recalled: &recalled,
        };
        let walked = walk_chain(context, &call, &mut site).await;
        let (undo, state) = (self.cycle.undo.as_deref(), &self.environment.state);
        let end = ConcludeContext {
            undo,
            state,
            reporter,
            stop: self.stop,
        };
        let unaided = Unaided {
            finding: call.finding,
            by_hand: call.skill.by_hand(),
        };
        let mut result = conclude(route, &self.header, site, walked, unaided, end).await;
        result.more.advice = advice.unwrap_or_default();
        CallOutcome {
            result,
            class: Some(class),
            policy,
        }
    }

    /// Whether notes are at a service elsewhere, and nothing of this call may leave the machine.
    fn notes_would_leave(&self) -> bool {
        let routing = &self.environment.settings.routing;
        let service = routing.ingest_url.as_deref();
        self.route.stay_local && service.is_some_and(|url| !routing.is_local_address(url))
    }

    /// Looks up notes about the task, if the settings ask for them in the prompt.
    async fn recall(&self, task: &str) -> String {
        let recall = self.route.recall;
        let Some(note_source) = self
            .environment
            .services
            .note_source
            .as_ref()
            .filter(|_| recall != Recall::Off && !self.notes_would_leave())
        else {
            return String::new();
        };
        let request = RecallRequest {
            recall,
            project_root: &self.header.project_root,
            task,
            session: &self.header.session_id,
        };
        note_source.recall(request).await
    }

    /// Opens the project with the access that the skill needs and prepares the skill. A refusal
    /// leaves nothing behind.
    async fn prepare<S: Skill>(
        &self,
        params: &S::Params,
        reporter: &EventReporter<'_>,
        sandbox: &mut String,
    ) -> Result<(Site, PreparedCall<S>), RefusedCall> {
        let access = S::access(params)?;
        let mut site = self.open_site(access, reporter).await?;
        if !self.dry_run && access.leaves_files_alone(site.is_in_place()) {
            reporter.notify_detached(&self.key());
        }
        let mut preparation = Preparation {
            environment: &self.environment,
            route: &self.route,
            session: &self.header.session_id,
            dry_run: self.dry_run,
            site: &mut site,
            stop: self.stop,
            reporter,
        };
        match S::prepare(params, &mut preparation).await {
            Ok(call) => Ok((site, call)),
            Err(refused) => {
                *sandbox = site.sandbox();
                // Undo what commands wrote; nothing else has been changed yet.
                site.discard(Scope::Applied).await?;
                Err(match self.stop.is_cancelled() {
                    true => RefusedCall::error(CANCELLED),
                    false => refused,
                })
            }
        }
    }

    /// Locks the project and takes the snapshot.
    async fn open_site(
        &self,
        access: Access,
        reporter: &EventReporter<'_>,
    ) -> Result<Site, RefusedCall> {
        let root = Path::new(&self.header.project_root);
        let caps = caps_of(&self.environment.settings.routing.workspace);
        let state = &self.environment.state;
        match access {
            // An agent needs some working directory. Without any tools it does not matter which.
            Access::Nothing if self.header.project_root.is_empty() => {
                Ok(Site::without_project("/"))
            }
            Access::Nothing => Ok(Site::without_project(root)),
            Access::Read => {
                let workspace = Workspace::open_read_only(root, caps, state)?;
                let lease = self.lock(&workspace, Mode::Shared).await?;
                Site::read_only(lease).await.map_err(RefusedCall::error)
            }
            Access::RunCommands | Access::Edit => {
                let workspace = Workspace::open(root, caps, state)?;
                let lease = self.lock(&workspace, Mode::Exclusive).await?;
                let strategy = self.environment.settings.routing.workspace.strategy;
                let armed = Site::open_for_edit(lease, &self.environment.launcher, strategy).await;
                let mut site = armed?;
                let armed = site.armed()?;
                let uncovered = armed.unprotected().into_iter();
                reporter.report(Event::Armed {
                    files: armed.files().count(),
                    uncovered: uncovered
                        .map(|one| one.path.display().to_string())
                        .collect(),
                });
                Ok(site)
            }
        }
    }

    async fn lock(&self, workspace: &Workspace, mode: Mode) -> Result<Lease, RefusedCall> {
        let wait = self.route.limits.lock_wait;
        workspace
            .lock(mode, &self.header.skill, wait, self.stop)
            .await
            .map_err(|error| match error {
                LockError::Cancelled => RefusedCall::error(CANCELLED),
                error => RefusedCall::error(error),
            })
    }

    /// The log entry as far as it is known at the start.
    fn entry(&self) -> Entry {
        Entry {
            v: VERSION,
            session_id: self.header.session_id.clone(),
            call: self.header.call.clone(),
            cycle_id: self.cycle.id.clone(),
            timestamp: jiff::Timestamp::now().to_string(),
            skill: entry::skill_of(&self.header.skill).to_owned(),
            tool: self.header.skill.clone(),
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
            foreground_ms: None,
            top_tier: None,
            class: None,
            policy: None,
            sandbox: String::new(),
        }
    }

    /// Writes the entry before the reply is sent. A failure is appended to the message.
    async fn record(&self, result: &mut CallResult, open: Box<dyn OpenRecord>, facts: CallFacts) {
        let CallFacts {
            cause,
            class,
            policy,
            foreground,
        } = facts;
        let entry = Entry {
            foreground_ms: foreground.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
            final_status: result.status,
            cause,
            file_path: result.file_path.clone(),
            model_used: result.model_used.clone(),
            message: result.message.clone(),
            attempts: result.more.attempts.clone(),
            duration_ms: result.more.duration_ms.unwrap_or_default(),
            top_tier: Some(top_tier::estimate_cost(&self.route, &result.more.attempts)),
            class,
            policy,
            sandbox: result.more.sandbox.clone(),
            ..self.entry()
        };
        let services = Arc::clone(&self.environment.services);
        // Off this thread: the disk may be slow, and other calls must not wait for it.
        let recorded = blocking(move || {
            let noted = entry.class.as_ref().map_or(Ok(()), |class| {
                services.model_history.note(class, &entry.attempts)
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
