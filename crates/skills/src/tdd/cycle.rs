//! `tdd`: red, green and, if wanted, refactor for one criterion after the other, in one call. Each phase is a call of the
//! engine with its own proof and its own log entry; what they share is an id, a budget and the session.
//! The first criterion that cannot be had ends the cycle: what was accepted stays, the failed one leaves nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::call;
use super::cycle_report::{CriterionEnd, CycleReport, count_criteria};
use super::params::{CycleParams, GreenParams, RedParams, RefactorParams, StopAt, TddRequest};
use crate::{App, Call};
use supervisor_engine as engine;
use supervisor_engine::archive::archive;
use supervisor_engine::call::{CallHost as _, CycleTies, Surroundings};
use supervisor_engine::event::{CallKey, Listener, StoryLine};
use supervisor_engine::result::Status;
use supervisor_engine::{CallResult, More};
use supervisor_settings::{CallOverrides, Route};
use supervisor_text::words;
use supervisor_workspace::UndoRecord;

/// More criteria than a caller can oversee are better given in several calls.
const MOST: usize = 20;

/// Answers one `tdd`; whatever goes wrong is in the answer.
pub(super) async fn run(app: &App, asked: &CycleParams, call: &Call) -> CallResult {
    let began = Instant::now();
    let criteria = asked.criteria.list();
    let mut report = CycleReport::new(criteria.len());
    let prepared = check_criteria(&criteria).and_then(|()| Cycle::prepare(app, asked, call));
    let mut cycle = match prepared {
        Ok(cycle) => cycle,
        Err(why) => return report.refused(why),
    };
    if asked.common().dry_run {
        return cycle.plan(&criteria).await;
    }
    report.session_id.clone_from(&cycle.session);
    for (n, criterion) in criteria.iter().enumerate() {
        cycle.place = (n + 1, criteria.len());
        let end = cycle.criterion(criterion, &mut report).await;
        let goes_on = end.goes_on;
        report.criteria.push(end);
        if !goes_on {
            break;
        }
    }
    let state = cycle.surroundings.state.clone();
    let (whole, compact) = report.conclude(began.elapsed());
    let full_result = archive(&state, whole).await.more.full_result;
    CallResult {
        more: More {
            full_result,
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
        n if n > MOST => Err(format!(
            "criteria: {n} are more than {MOST}; give the first {MOST}, and the rest in a further call"
        )),
        _ => Ok(()),
    }
}

/// What the phases of one `tdd` call share.
struct Cycle<'a> {
    app: &'a App,
    asked: &'a CycleParams,
    call: &'a Call,
    surroundings: Surroundings,
    route: Route,
    session: String,
    ties: CycleTies,
    last_phase: StopAt,
    /// The criterion at work, of how many.
    place: (usize, usize),
}

impl<'a> Cycle<'a> {
    fn prepare(app: &'a App, asked: &'a CycleParams, call: &'a Call) -> Result<Self, String> {
        let surroundings = app.surroundings()?;
        let common = asked.common();
        let overrides = CallOverrides {
            budget_usd: common.budget_usd,
            ..CallOverrides::default()
        };
        let route = surroundings
            .settings
            .routing
            .route("tdd", &overrides)
            .map_err(|e| e.to_string())?;
        let session = surroundings
            .means
            .recorder
            .session(common.session_id.as_deref())?;
        let id = getrandom::u64().map_err(|e| format!("no random number can be had: {e}"))?;
        let ties = CycleTies {
            id: format!("cycle-{id:016x}"),
            budget: Some(surroundings.means.budgets.call(&session, route.budget)),
            undo: None,
        };
        let last_phase = asked.stop_at.unwrap_or(if asked.refactor {
            StopAt::Refactor
        } else {
            StopAt::Green
        });
        Ok(Self {
            app,
            asked,
            call,
            surroundings,
            route,
            session,
            ties,
            last_phase,
            place: (1, 1),
        })
    }

    /// The plan of the first red, which is all that can be known before a test is written.
    async fn plan(&self, criteria: &[String]) -> CallResult {
        let mut plan = self.phase(self.red(&criteria[0]).into(), None).await;
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

    async fn criterion(&self, criterion: &str, report: &mut CycleReport) -> CriterionEnd {
        let undo = Arc::new(Mutex::new(None));
        let red = self
            .phase(self.red(criterion).into(), Some(Arc::clone(&undo)))
            .await;
        report.add(self.place.0, &red);
        if red.status != Status::Pass {
            return CriterionEnd::missed("red", &red, String::new());
        }
        if self.last_phase == StopAt::Red {
            report.keep_files(&red);
            return CriterionEnd::had(criterion, &red, None).ending_here();
        }
        let green = match self.following::<GreenParams>(&red) {
            Ok(green) => green,
            Err(why) => {
                return CriterionEnd::missed(
                    "green",
                    &report.refused(why),
                    self.take_back(&undo).await,
                );
            }
        };
        let green = GreenParams {
            allow_dependencies: self.asked.allow_dependencies.clone(),
            ..green
        };
        let green = self.phase(green.into(), None).await;
        report.add(self.place.0, &green);
        if green.status != Status::Pass {
            return CriterionEnd::missed("green", &green, self.take_back(&undo).await);
        }
        let mut end = CriterionEnd::had(criterion, &red, Some(&green));
        report.keep_files(&red);
        report.keep_files(&green);
        if self.last_phase == StopAt::Refactor {
            match self.following::<RefactorParams>(&green) {
                Ok(refactor) => {
                    let refactor = RefactorParams {
                        allow_dependencies: self.asked.allow_dependencies.clone(),
                        ..refactor
                    };
                    let refactor = self.phase(refactor.into(), None).await;
                    report.add(self.place.0, &refactor);
                    report.keep_files(&refactor);
                    end.refactored(&refactor);
                }
                Err(why) => end.refactored(&report.refused(why)),
            }
        }
        end
    }

    fn red(&self, criterion: &str) -> RedParams {
        let asked = self.asked;
        RedParams {
            project_root: asked.project_root.clone(),
            spec: criterion.to_owned(),
            test_path: asked.test_path.clone(),
            test_cmd: asked.test_cmd.clone(),
            test_report: asked.test_report.clone(),
            model: asked.model.clone(),
            session_id: Some(self.session.clone()),
            context: asked.context.clone(),
            timeout_s: asked.timeout_s,
            max_attempts: asked.max_attempts,
            budget_usd: asked.budget_usd,
            dry_run: asked.dry_run,
            show_prompt: asked.show_prompt,
        }
    }

    /// The call that a result names as the next, with what the caller said about all phases.
    fn following<P: DeserializeOwned>(&self, result: &CallResult) -> Result<P, String> {
        let mut arguments = result.more.next["arguments"].clone();
        if let (Some(arguments), Ok(Value::Object(said))) =
            (arguments.as_object_mut(), serde_json::to_value(self.asked))
        {
            let for_all = [
                "model",
                "context",
                "timeout_s",
                "max_attempts",
                "budget_usd",
            ];
            arguments.extend(
                said.into_iter()
                    .filter(|(name, _)| for_all.contains(&name.as_str())),
            );
        }
        serde_json::from_value(arguments)
            .map_err(|e| format!("the next phase cannot be begun: {e}"))
    }

    async fn phase(
        &self,
        asked: TddRequest,
        undo: Option<Arc<Mutex<Option<UndoRecord>>>>,
    ) -> CallResult {
        let (n, of) = self.place;
        let listener = Criterion {
            of: &self.call.progress,
            prefix: if of == 1 {
                String::new()
            } else {
                format!("{n}/{of} · ")
            },
        };
        let ties = CycleTies {
            undo,
            ..self.ties.clone()
        };
        call::run_in_cycle(self.app, asked, &listener, &self.call.stop, ties).await
    }

    /// The red test of a green that could not be had goes again. Says what became of it.
    async fn take_back(&self, undo: &Mutex<Option<UndoRecord>>) -> String {
        let Some(record) = undo.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return String::from(
                "its red test could not be taken back, because what it replaced is not known",
            );
        };
        let root = std::path::Path::new(&self.asked.project_root);
        match engine::call::undo(
            &self.surroundings,
            root,
            self.route.limits.lock_wait,
            record,
        )
        .await
        {
            Ok(report) if report.left.is_empty() => String::from("its red test was taken back"),
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
                format!("its red test stays, because {left} was edited meanwhile")
            }
            Err(why) => format!("its red test could not be taken back: {why}"),
        }
    }
}

/// Says in each line which criterion it is about.
struct Criterion<'a> {
    of: &'a dyn Listener,
    prefix: String,
}

impl Listener for Criterion<'_> {
    fn hear(&self, told: &StoryLine) {
        self.of.hear(&StoryLine {
            line: format!("{}{}", self.prefix, told.line),
            ..told.clone()
        });
    }

    fn on_set_apart(&self, key: &CallKey) {
        self.of.on_set_apart(key);
    }
}
