//! The way into one phase: its arguments, the tests run once, and what a worker is told.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::baseline::{Ground, TestsAsked, split};
use super::brief::TddBrief;
use super::gates::path_texts;
use super::green::{Green, TestFile};
use super::job::{Phase, Tdd};
use super::memory::{Memory, Pending};
use super::params::{Goal, TddRequest};
use super::red::Red;
use super::refactor::Refactor;
use super::repeat;
use super::reply_form::ReplyTexts;
use crate::common::{changed_with, existing, inside};
use crate::{App, Call};
use supervisor_engine as engine;
use supervisor_engine::call::{CallRequest, CycleTies};
use supervisor_engine::event::Listener;
use supervisor_engine::result::{CallResult, Status};
use supervisor_engine::skill::{DryRunPlan, Preparation, PreparedCall, RefusedCall};
use supervisor_text::words;
use supervisor_verify::{Outcome, TestRun};

const RED: &str = "tdd/red";
const GREEN: &str = "tdd/green";
const REFACTOR: &str = "tdd/refactor";

/// Answers one call; whatever goes wrong is in the answer.
pub(super) async fn run(app: &App, asked: TddRequest, call: &Call) -> CallResult {
    run_in_cycle(app, asked, &call.progress, &call.stop, CycleTies::default()).await
}

/// The same as one phase of a cycle.
pub(super) async fn run_in_cycle(
    app: &App,
    asked: TddRequest,
    listener: &dyn Listener,
    stop: &CancellationToken,
    cycle: CycleTies,
) -> CallResult {
    let (skill, phase) = (asked.goal.skill(), asked.goal.phase());
    let request =
        CallRequest::new(skill, phase, asked.common.clone(), &asked.required()).in_cycle(cycle);
    let params = TddCall {
        asked,
        memory: Arc::clone(app.memory()),
        pending: Arc::default(),
    };
    let result = engine::call::run::<Tdd>(app, request, &params, listener, stop).await;
    if result.status == Status::Pass {
        params.pending.settle(&params.memory);
        if let Goal::Red { spec, .. } = &params.asked.goal {
            let root = Path::new(&params.asked.common.project_root);
            let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
            params.memory.keep_spec(root.join(&result.file_path), spec);
        }
    }
    result
}

/// One phase as it was asked for.
pub(super) struct TddCall {
    asked: TddRequest,
    /// What earlier calls have seen of the project's tests.
    memory: Arc<Memory>,
    /// What is worth remembering, should the call end well.
    pending: Arc<Pending>,
}

impl TddCall {
    pub(super) async fn prepare(
        &self,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<Tdd>, RefusedCall> {
        let (prompt, near) = match &self.asked.goal {
            Goal::Red { test_path, .. } => (RED, test_path.as_deref()),
            Goal::Green { test_path } => (GREEN, Some(test_path.as_str())),
            Goal::Refactor { test_path, .. } => (REFACTOR, Some(test_path.as_str())),
        };
        let discipline = call.discipline(prompt)?;
        let tests = TestsAsked {
            test_cmd: self.asked.test_cmd.as_deref(),
            test_report: self.asked.test_report.as_deref(),
            dependencies: self.asked.allow_dependencies.clone(),
        };
        let mut ground = Ground::survey(call, &self.memory, near, &tests).await?;
        if matches!(self.asked.goal, Goal::Green { .. }) {
            ground.flaky = repeat::flaky_reds(&ground, call, ground.repeat).await?;
        }
        let (phase, test) = self.phase(&ground, call.session)?;
        let together = changed_with(
            &call.surroundings.launcher,
            &ground.root,
            &test.path,
            call.stop,
        )
        .await;
        let brief = self.brief(&ground, &phase, test, discipline, ReplyTexts::load(call)?);
        let brief = TddBrief { together, ..brief };
        Ok(PreparedCall {
            discipline: brief.discipline.clone(),
            task: brief.task.clone(),
            finding: None,
            plan: plan(&ground),
            skill: Tdd {
                ground,
                brief,
                phase,
            },
        })
    }

    /// Wrong paths are told before anything is run.
    pub(super) fn check_paths(&self) -> Result<(), RefusedCall> {
        let root = Path::new(&self.asked.common.project_root).canonicalize();
        // What is wrong with the root itself is said when it is opened.
        let Some(root) = root.ok().filter(|root| root.read_dir().is_ok()) else {
            return Ok(());
        };
        match &self.asked.goal {
            Goal::Red {
                test_path: None, ..
            } => {}
            Goal::Red {
                test_path: Some(path),
                ..
            } => {
                inside(&root, path)
                    .map_err(|why| RefusedCall::error(format!("test_path: {why}")))?;
            }
            Goal::Green { test_path } => {
                drop(existing(&root, split(&root, test_path).0, "test_path")?)
            }
            Goal::Refactor {
                test_path,
                impl_path,
            } => {
                existing(&root, split(&root, test_path).0, "test_path")?;
                existing(&root, impl_path, "impl_path")?;
            }
        }
        Ok(())
    }

    /// The phase, and the test in question.
    fn phase(&self, ground: &Ground, session: &str) -> Result<(Phase, TestFile), RefusedCall> {
        let root = &ground.root;
        let test_file = |given: &str| {
            let (path, only) = split(root, given);
            let path = existing(root, path, "test_path")?;
            let source =
                fs::read(root.join(&path)).map(|b| String::from_utf8_lossy(&b).into_owned());
            let source = source
                .map_err(|e| RefusedCall::error(format!("test_path: `{}`: {e}", path.display())))?;
            Ok::<_, RefusedCall>(TestFile {
                path,
                only: only.map(str::to_owned),
                source,
            })
        };
        Ok(match &self.asked.goal {
            Goal::Red { test_path, .. } => {
                let path = test_path
                    .as_deref()
                    .map(|given| inside(root, given))
                    .transpose()
                    .map_err(RefusedCall::error)?;
                let path = path.unwrap_or_default();
                let source = fs::read_to_string(root.join(&path)).unwrap_or_default();
                (
                    Phase::Red(Red::of(
                        ground,
                        self.next(session),
                        Arc::clone(&self.pending),
                    )?),
                    TestFile {
                        path,
                        only: None,
                        source,
                    },
                )
            }
            Goal::Green { test_path } => {
                let test = test_file(test_path)?;
                (
                    Phase::Green(Green::of(
                        ground,
                        test.clone(),
                        &self.memory,
                        self.next(session),
                        Arc::clone(&self.pending),
                    )?),
                    test,
                )
            }
            Goal::Refactor {
                test_path,
                impl_path,
            } => {
                let test = test_file(test_path)?;
                let path = existing(root, impl_path, "impl_path")?;
                (
                    Phase::Refactor(Refactor::of(ground, test.clone(), path)?),
                    test,
                )
            }
        })
    }

    fn brief(
        &self,
        ground: &Ground,
        phase: &Phase,
        test: TestFile,
        discipline: String,
        replies: ReplyTexts,
    ) -> TddBrief {
        let also = match &self.asked.goal {
            Goal::Refactor { impl_path, .. } => {
                inside(&ground.root, impl_path).into_iter().collect()
            }
            Goal::Red { .. } | Goal::Green { .. } => Vec::new(),
        };
        let spec = self.memory.spec(&ground.root.join(&test.path));
        let mut task = format!(
            "phase: {}\nproject_root: {}\ntest_cmd: {}\n",
            self.asked.goal.phase(),
            ground.root.display(),
            ground.suite.command()
        );
        let mut line =
            |key: &str, value: &str| task += &format!("{key}: {}\n", words::plain(value.trim()));
        match (&self.asked.goal, phase) {
            (Goal::Red { spec, test_path }, _) => {
                line("spec", spec);
                if let Some(path) = test_path {
                    line("test_path", path);
                }
                task += "\nWrite one test that fails until the spec is met.\n";
            }
            (Goal::Green { test_path }, Phase::Green(green)) => {
                line("test_path", test_path);
                if let Some(spec) = &spec {
                    line("spec", spec);
                }
                task += &format!("\nMake {} pass.\n", green.target());
            }
            (Goal::Green { test_path }, _) => line("test_path", test_path),
            (
                Goal::Refactor {
                    test_path,
                    impl_path,
                },
                _,
            ) => {
                line("test_path", test_path);
                line("impl_path", impl_path);
                task += "\nImprove the structure of impl_path without changing what it does.\n";
            }
        }
        if let Some(context) = &self.asked.common.context {
            task += &format!("\ncontext: {}\n", words::plain(context));
        }
        let mut named = match (&self.asked.goal, phase) {
            (Goal::Red { spec, .. }, _) => spec.clone(),
            (Goal::Green { .. }, Phase::Green(green)) => {
                format!("{}\n{}", green.target(), spec.unwrap_or_default())
            }
            _ => String::new(),
        };
        if let Some(context) = &self.asked.common.context {
            named = format!("{named}\n{context}");
        }
        TddBrief {
            discipline,
            task,
            named,
            // What passes has nothing more to say, and what fails before a test is written has nothing to do with it.
            output: match (ground.run.outcome(), phase) {
                (Outcome::Passed, _) => ground.run.sentence(),
                (Outcome::Failed, Phase::Red(_)) => failing_already(&ground.run),
                (Outcome::Failed, Phase::Green(green)) => green.told_by(&ground.run),
                _ => ground.run.output().to_owned(),
            },
            failing: match phase {
                Phase::Green(green) => green.target_names(),
                _ => Vec::new(),
            },
            root: ground.root.clone(),
            ecosystem: ground.ecosystem(),
            test_path: test.path,
            test_source: test.source,
            also,
            together: Vec::new(),
            argv: ground.suite.argv().to_vec(),
            replies,
        }
    }

    /// The call that usually follows, with what is known of its arguments.
    fn next(&self, session: &str) -> Value {
        let mut arguments = json!({
            "project_root": self.asked.common.project_root,
            "session_id": session,
        });
        if let Some(command) = &self.asked.test_cmd {
            arguments["test_cmd"] = json!(command);
        }
        if let Some(pattern) = &self.asked.test_report {
            arguments["test_report"] = json!(pattern);
        }
        json!({"tool": "", "arguments": arguments})
    }
}

fn plan(ground: &Ground) -> DryRunPlan {
    DryRunPlan {
        message: format!(
            "dry run: nothing was asked and nothing changed; {}",
            ground.run.sentence()
        ),
        details: json!({
            "runner": ground.suite.runner(),
            "commands": ground.suite.commands(),
            "notes": ground.suite.notes(),
            "command": ground.suite.command(),
            "because": ground.suite.because(),
            "alternatives": ground.suite.alternatives(),
            "sealed_files": ground.sealed,
            "by_products": path_texts(&ground.by_products),
            "baseline": ground.run.sentence(),
        }),
    }
}

/// How the suite stands, and which tests are not the task.
fn failing_already(run: &TestRun) -> String {
    const NAMED: usize = 20;
    let failing: Vec<String> = run.failed().map(|(name, _)| name.to_string()).collect();
    let more = failing.len().saturating_sub(NAMED);
    let mut told = format!(
        "{}\nThese fail already and are not the task:\n",
        run.sentence()
    );
    failing
        .iter()
        .take(NAMED)
        .for_each(|name| told += &format!("- {name}\n"));
    if more > 0 {
        told += &format!("- and {more} more\n");
    }
    told
}
