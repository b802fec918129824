//! The `tdd` tool: runs red, green and optionally refactor for each criterion in one call. Each
//! phase is an engine call with its own proof and log entry; phases share an id, a budget and the
//! session. The first criterion that fails ends the cycle. Earlier criteria are kept and the
//! failed one is undone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::call;
use super::cycle_report::{CriterionOutcome, CycleReport, PHASE_CANCELLED};
use super::params::{
    Criteria, CycleParams, GreenParams, RedParams, RefactorParams, StopAt, TddRequest,
};
use crate::common::commit::message_of;
use crate::common::{Commit, CommitError, Repository, count_criteria};
use crate::{App, Call};
use supervisor_engine as engine;
use supervisor_engine::archive::archive;
use supervisor_engine::call::{
    CallArguments, CallEnvironment, CycleContext, EnvironmentProvider as _,
};
use supervisor_engine::event::{CallKey, Listener, ProgressLine};
use supervisor_engine::result::{CANCELLED, Status};
use supervisor_engine::{CallResult, More};
use supervisor_settings::{CallOverrides, Route};
use supervisor_text::words;
use supervisor_workspace::{UndoRecord, UndoStore};

/// Larger numbers of criteria are hard to follow; they belong in several calls.
const MAX_CRITERIA: usize = 20;

/// Runs one `tdd` call. Errors are reported in the result.
pub(super) async fn run(app: &App, params: &CycleParams, call: &Call) -> CallResult {
    let began = Instant::now();
    let criteria = params.criteria.list();
    let mut report = CycleReport::new(criteria.len());
    let prepared = check_criteria(&criteria).and_then(|()| Cycle::prepare(app, params, call));
    let mut cycle = match prepared {
        Ok(cycle) => cycle,
        Err(why) => return report.error_result(why),
    };
    if params.common().dry_run {
        return cycle.plan(&criteria).await;
    }
    report.session_id.clone_from(&cycle.session);
    let mut commits = params.commit;
    for (n, criterion) in criteria.iter().enumerate() {
        cycle.position = (n + 1, criteria.len());
        let own = match commits {
            true => Some(cycle.uncommitted().await),
            false => None,
        };
        let mut outcome = cycle.run_criterion(criterion, &mut report).await;
        if let Some(own) = own.filter(|_| outcome.is_green()) {
            let committed = cycle.commit(criterion, &outcome.files, own).await;
            // Later criteria build on this one, so they are not committed without it.
            commits = committed.is_ok();
            outcome.committed = Some(committed);
        } else if params.commit && outcome.is_green() {
            let why = String::from("the criterion before it is not committed");
            outcome.committed = Some(Err(why));
        }
        let continues = outcome.continues;
        let done = n + usize::from(outcome.succeeded());
        let remaining = &criteria[done..];
        // Of a single criterion, the phase that failed says what to do.
        if !continues
            && !remaining.is_empty()
            && criteria.len() > 1
            && cycle.last_phase != StopAt::Red
        {
            report.set_next(cycle.next_call(remaining));
        }
        report.criteria.push(outcome);
        if !continues {
            break;
        }
    }
    let state = cycle.environment.state.clone();
    let (full, compact) = report.conclude(began.elapsed());
    let archived = archive(&state, full).await.more;
    CallResult {
        more: More {
            full_result: archived.full_result,
            diff_path: archived.diff_path,
            ..compact.more
        },
        ..compact
    }
}

fn check_criteria(criteria: &[String]) -> Result<(), String> {
    match criteria.len() {
        0 => Err(String::from(
            "criteria is required: the argument `criteria` is empty; one behaviour in a sentence, or a list of them",
        )),
        n if n > MAX_CRITERIA => Err(format!(
            "criteria: {n} are more than {MAX_CRITERIA}; give the first {MAX_CRITERIA}, and the rest in a further call"
        )),
        _ => Ok(()),
    }
}

/// State shared by the phases of one `tdd` call.
struct Cycle<'a> {
    app: &'a App,
    params: &'a CycleParams,
    call: &'a Call,
    environment: CallEnvironment,
    route: Route,
    session: String,
    ties: CycleContext,
    last_phase: StopAt,
    /// Number of the current criterion (from 1), and the total.
    position: (usize, usize),
}

/// What the engine calls of one call have in common.
pub(super) struct CycleTies {
    pub(super) environment: CallEnvironment,
    pub(super) route: Route,
    pub(super) session: String,
    pub(super) context: CycleContext,
}

/// Begins a call that consists of several engine calls: they share an id, a budget and a session.
pub(super) fn begin_cycle(
    app: &App,
    skill: &str,
    common: &CallArguments,
    root: &Path,
) -> Result<CycleTies, String> {
    let environment = app.environment()?;
    let overrides = CallOverrides {
        budget_usd: common.budget_usd,
        project_root: root.canonicalize().ok(),
        stay_local: common.stay_local,
        ..CallOverrides::default()
    };
    let route = environment.settings.routing.route(skill, &overrides);
    let route = route.map_err(|e| e.to_string())?;
    let session = environment
        .services
        .recorder
        .session(common.session_id.as_deref())?;
    let project = overrides.project_root.as_deref().unwrap_or(root);
    let project = project.display().to_string();
    let budgets = &environment.services.budgets;
    let id = getrandom::u64().map_err(|e| format!("there is no random number: {e}"))?;
    let context = CycleContext {
        id: format!("cycle-{id:016x}"),
        budget: Some(budgets.call(&session, &project, route.budget)),
        undo: None,
    };
    Ok(CycleTies {
        environment,
        route,
        session,
        context,
    })
}

impl<'a> Cycle<'a> {
    fn prepare(app: &'a App, params: &'a CycleParams, call: &'a Call) -> Result<Self, String> {
        let root = Path::new(&params.project_root);
        let CycleTies {
            environment,
            route,
            session,
            context: ties,
        } = begin_cycle(app, "tdd", &params.common(), root)?;
        let last_phase = params.stop_at.unwrap_or(if params.refactor {
            StopAt::Refactor
        } else {
            StopAt::Green
        });
        Ok(Self {
            app,
            params,
            call,
            environment,
            route,
            session,
            ties,
            last_phase,
            position: (1, 1),
        })
    }

    /// Dry run: plans the first red phase. Later phases depend on the test it would write.
    async fn plan(&self, criteria: &[String]) -> CallResult {
        let mut plan = self
            .run_phase(self.red_params(&criteria[0]).into(), None)
            .await;
        if plan.status == Status::Pass {
            plan.message = format!(
                "dry run of the first phase of {}: {}",
                count_criteria(criteria.len()),
                plan.message
            );
        }
        CallResult {
            skill: "tdd".into(),
            ..plan
        }
    }

    /// The same call for the criteria that are left.
    fn next_call(&self, criteria: &[String]) -> Value {
        let params = CycleParams {
            criteria: Criteria::Several(criteria.to_vec()),
            session_id: Some(self.session.clone()),
            ..self.params.clone()
        };
        let mut arguments = crate::common::input(&params);
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.retain(|_, value| *value != false);
        }
        json!({"tool": "tdd", "arguments": arguments})
    }

    /// The user's own uncommitted files, or why nothing can be committed.
    async fn uncommitted(&self) -> Result<BTreeSet<PathBuf>, CommitError> {
        self.repository().await?.uncommitted().await
    }

    async fn repository(&self) -> Result<Repository<'_>, CommitError> {
        let root = Path::new(&self.params.project_root);
        Repository::open(&self.environment.launcher, root, &self.call.stop).await
    }

    /// Commits the files of a green criterion. If that fails, they stay as they are.
    async fn commit(
        &self,
        criterion: &str,
        files: &BTreeSet<PathBuf>,
        own: Result<BTreeSet<PathBuf>, CommitError>,
    ) -> Result<Commit, String> {
        let own = own.map_err(|why| why.to_string())?;
        let files: Vec<PathBuf> = files.iter().cloned().collect();
        let committed = async {
            let repository = self.repository().await?;
            repository
                .commit(&files, &own, &message_of(criterion))
                .await
        };
        let commit = committed.await.map_err(|why| why.to_string())?;
        let store = UndoStore::of(&self.environment.state);
        if let Err(why) = store.note_commit(&self.ties.id, &commit.id) {
            let id = &commit.id;
            tracing::warn!("`supervisor undo` will not know commit {id}: {why}");
        }
        Ok(commit)
    }

    async fn run_criterion(&self, criterion: &str, report: &mut CycleReport) -> CriterionOutcome {
        let undo = Arc::new(Mutex::new(None));
        let red = self
            .run_phase(self.red_params(criterion).into(), Some(Arc::clone(&undo)))
            .await;
        report.add_phase(self.position.0, &red);
        if red.status != Status::Pass {
            return CriterionOutcome::failure("red", &red, String::new());
        }
        if self.last_phase == StopAt::Red {
            report.add_changes(&red);
            report.set_next(red.more.next.clone());
            return CriterionOutcome::success(criterion, &red, None).and_stop();
        }
        let green = match self.next_params::<GreenParams>(&red) {
            Ok(green) => green,
            Err(why) => {
                return CriterionOutcome::failure(
                    "green",
                    &report.error_result(why),
                    self.undo_red(&undo).await,
                );
            }
        };
        let green = GreenParams {
            allow_dependencies: self.params.allow_dependencies.clone(),
            ..green
        };
        let green = self.run_phase(green.into(), None).await;
        report.add_phase(self.position.0, &green);
        if green.status != Status::Pass {
            return CriterionOutcome::failure("green", &green, self.undo_red(&undo).await);
        }
        let mut outcome = CriterionOutcome::success(criterion, &red, Some(&green));
        report.add_changes(&red);
        report.add_changes(&green);
        if self.last_phase == StopAt::Refactor {
            match self.next_params::<RefactorParams>(&green) {
                Ok(refactor) => {
                    let refactor = RefactorParams {
                        allow_dependencies: self.params.allow_dependencies.clone(),
                        ..refactor
                    };
                    let refactor = self.run_phase(refactor.into(), None).await;
                    report.add_phase(self.position.0, &refactor);
                    report.add_changes(&refactor);
                    outcome.add_files(&refactor);
                    outcome.add_refactoring(&refactor);
                }
                Err(why) => outcome.add_refactoring(&report.error_result(why)),
            }
        }
        outcome
    }

    fn red_params(&self, criterion: &str) -> RedParams {
        let params = self.params;
        RedParams {
            project_root: params.project_root.clone(),
            spec: criterion.to_owned(),
            test_path: params.test_path.clone(),
            test_cmd: params.test_cmd.clone(),
            test_report: params.test_report.clone(),
            model: params.model.clone(),
            session_id: Some(self.session.clone()),
            context: params.context.clone(),
            timeout_s: params.timeout_s,
            max_attempts: params.max_attempts,
            budget_usd: params.budget_usd,
            stay_local: params.stay_local,
            dry_run: params.dry_run,
            show_prompt: params.show_prompt,
        }
    }

    /// Parameters for the call that `result` suggests next, plus the caller's arguments that apply
    /// to all phases.
    fn next_params<P: DeserializeOwned>(&self, result: &CallResult) -> Result<P, String> {
        let mut arguments = result.more.next["arguments"].clone();
        if let (Some(arguments), Ok(Value::Object(caller_arguments))) =
            (arguments.as_object_mut(), serde_json::to_value(self.params))
        {
            let shared_names = [
                "model",
                "context",
                "timeout_s",
                "max_attempts",
                "budget_usd",
                "stay_local",
            ];
            arguments.extend(
                caller_arguments
                    .into_iter()
                    .filter(|(name, _)| shared_names.contains(&name.as_str())),
            );
        }
        serde_json::from_value(arguments)
            .map_err(|e| format!("the next phase cannot be begun: {e}"))
    }

    async fn run_phase(
        &self,
        request: TddRequest,
        undo: Option<Arc<Mutex<Option<UndoRecord>>>>,
    ) -> CallResult {
        let (n, total) = self.position;
        let listener = CriterionListener {
            inner: &self.call.progress,
            prefix: if total == 1 {
                String::new()
            } else {
                format!("{n}/{total} · ")
            },
        };
        let ties = CycleContext {
            undo,
            ..self.ties.clone()
        };
        let mut result =
            call::run_in_cycle(self.app, request, &listener, &self.call.stop, ties).await;
        // What became of the files depends on the phases before this one.
        if result.message == CANCELLED {
            result.message = String::from(PHASE_CANCELLED);
        }
        result
    }

    /// Undoes the red test after green failed. Returns a clause that says what happened to it.
    async fn undo_red(&self, undo: &Mutex<Option<UndoRecord>>) -> String {
        let Some(record) = undo.lock().take() else {
            return String::from(
                "Its red test could not be removed, because what it replaced is not known",
            );
        };
        let root = Path::new(&self.params.project_root);
        match engine::call::undo(&self.environment, root, self.route.limits.lock_wait, record).await
        {
            Ok(report) if report.left.is_empty() => String::from("Its red test was removed"),
            Ok(report) => {
                let left = words::list(
                    report
                        .left
                        .iter()
                        .map(|path| path.to_string_lossy().into_owned())
                        .collect::<Vec<_>>()
                        .iter()
                        .map(String::as_str),
                    3,
                );
                format!("Its red test stays, because {left} was edited meanwhile")
            }
            Err(why) => format!("Its red test could not be removed: {why}"),
        }
    }
}

/// Prefixes each progress line with the criterion it belongs to.
struct CriterionListener<'a> {
    inner: &'a dyn Listener,
    prefix: String,
}

impl Listener for CriterionListener<'_> {
    fn on_event(&self, progress: &ProgressLine) {
        self.inner.on_event(&ProgressLine {
            line: format!("{}{}", self.prefix, progress.line),
            ..progress.clone()
        });
    }

    fn on_detached(&self, key: &CallKey) {
        self.inner.on_detached(key);
    }

    fn background_since(&self) -> Option<Instant> {
        self.inner.background_since()
    }
}
