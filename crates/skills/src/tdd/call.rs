//! Entry point for one TDD phase: validates the arguments, runs the baseline and builds the
//! prompt.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::baseline::{
    TestBaseline, TestOptions, is_test_name, refusal_with_output, split_test_path,
};
use super::brief::TddBrief;
use super::check;
use super::gates::first_paths;
use super::green::{Green, TestFile};
use super::job::{Phase, Tdd};
use super::memory::{PendingMemory, TddMemory};
use super::old_failures;
use super::params::{Goal, TddRequest};
use super::red::Red;
use super::refactor::Refactor;
use super::repeat;
use super::reply_format::ReplyInstructions;
use crate::common::{changed_with, existing, inside};
use crate::{App, Call};
use supervisor_engine as engine;
use supervisor_engine::call::{CallRequest, CycleContext};
use supervisor_engine::event::Listener;
use supervisor_engine::result::{CallResult, Status};
use supervisor_engine::skill::{DryRunPlan, Preparation, PreparedCall, RefusedCall};
use supervisor_languages::Language;
use supervisor_pack::ProjectIndex;
use supervisor_settings::MutantRuns;
use supervisor_text::redact::Redactor;
use supervisor_text::words;
use supervisor_verify::protected::FileRole;
use supervisor_verify::{Outcome, TestName, TestRun};

const RED: &str = "tdd/red";
const GREEN: &str = "tdd/green";
const REFACTOR: &str = "tdd/refactor";

/// Runs one call. Errors are reported in the result.
pub(super) async fn run(app: &App, request: TddRequest, call: &Call) -> CallResult {
    run_in_cycle(
        app,
        request,
        &call.progress,
        &call.stop,
        CycleContext::default(),
    )
    .await
}

/// Runs one phase as part of a `tdd` cycle.
pub(super) async fn run_in_cycle(
    app: &App,
    request: TddRequest,
    listener: &dyn Listener,
    stop: &CancellationToken,
    cycle: CycleContext,
) -> CallResult {
    let (skill, phase) = (request.goal.skill(), request.goal.phase());
    let call_request =
        CallRequest::new(skill, phase, request.common.clone(), &request.required()).in_cycle(cycle);
    let params = TddCall {
        request,
        memory: Arc::clone(app.memory()),
        pending: Arc::default(),
    };
    let mut result = engine::call::run::<Tdd>(app, call_request, &params, listener, stop).await;
    if let Ok(root) = Path::new(&params.request.common.project_root).canonicalize() {
        app.idle_mutants().report(&root, &mut result);
    }
    if result.status == Status::Pass {
        params.pending.commit(&params.memory);
        if let Some(change) = params.pending.take_change()
            && app
                .settings()
                .is_ok_and(|settings| settings.routing.verify.mutants == MutantRuns::After)
        {
            let request = &params.request;
            app.idle_mutants().start(
                app,
                change,
                request.test_cmd.clone(),
                request.test_report.clone(),
                result.more.session_id.clone(),
            );
        }
        if let Goal::Red { spec, .. } = &params.request.goal {
            let root = Path::new(&params.request.common.project_root);
            let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
            params
                .memory
                .remember_spec(root.join(&result.file_path), spec);
        }
    }
    result
}

/// Parameters and state of one phase call.
pub(super) struct TddCall {
    request: TddRequest,
    /// Test results and specifications remembered from earlier calls.
    memory: Arc<TddMemory>,
    /// Stored in `memory` if the call passes.
    pending: Arc<PendingMemory>,
}

impl TddCall {
    pub(super) async fn prepare(
        &self,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<Tdd>, RefusedCall> {
        let (prompt, near) = match &self.request.goal {
            Goal::Red { test_path, .. } => (RED, test_path.as_deref()),
            Goal::Green { test_path } => {
                (GREEN, Some(test_path.as_str()).filter(|p| !p.is_empty()))
            }
            Goal::Refactor { test_path, .. } => (REFACTOR, Some(test_path.as_str())),
        };
        if let Some(check) = &self.request.check {
            check
                .validate(call.root())
                .map_err(|why| RefusedCall::error(why.to_string()))?;
        }
        let discipline = call.discipline(prompt)?;
        let (test_cmd, test_report) = call.routing().test_command(
            call.root(),
            self.request.test_cmd.clone(),
            self.request.test_report.clone(),
        );
        let tests = TestOptions {
            test_cmd: test_cmd.as_deref(),
            test_report: test_report.as_deref(),
            dependencies: self.request.allow_dependencies.clone(),
            check: self.request.check.as_ref(),
        };
        let mut baseline = TestBaseline::run(call, &self.memory, near, &tests).await?;
        if matches!(self.request.goal, Goal::Green { .. }) {
            baseline.flaky = repeat::find_flaky_failures(&baseline, call, baseline.repeat).await?;
        }
        if self.request.check.is_none()
            && matches!(&self.request.goal, Goal::Green { test_path } if test_path.is_empty())
        {
            let found = red_test_file(&baseline)?;
            return self.on(found).prepare_on(baseline, discipline, call).await;
        }
        self.prepare_on(baseline, discipline, call).await
    }

    /// The same green for this test file.
    fn on(&self, test_path: String) -> Self {
        Self {
            request: TddRequest {
                goal: Goal::Green { test_path },
                ..self.request.clone()
            },
            memory: Arc::clone(&self.memory),
            pending: Arc::clone(&self.pending),
        }
    }

    async fn prepare_on(
        &self,
        mut baseline: TestBaseline,
        discipline: String,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<Tdd>, RefusedCall> {
        if let Goal::Green { test_path } = &self.request.goal {
            let test = self.test_file(&baseline, test_path)?;
            baseline.old_failures =
                Box::pin(old_failures::find(&baseline, call, &test, &self.memory)).await?;
        }
        let (phase, test) = self.phase(&baseline, call.session)?;
        let co_changed = changed_with(
            &call.environment.launcher,
            &baseline.root,
            &test.path,
            call.stop,
        )
        .await;
        call.doing("choosing the files to show");
        let brief = self.brief(
            &baseline,
            &phase,
            test,
            discipline,
            ReplyInstructions::load(call)?,
            Arc::clone(&call.environment.services.redactor),
        );
        let brief = TddBrief {
            co_changed,
            ..brief
        };
        Ok(PreparedCall {
            discipline: brief.discipline.clone(),
            task: brief.task.clone(),
            finding: None,
            plan: plan(&baseline),
            skill: Tdd {
                baseline,
                brief,
                phase,
                by_hand: self.by_hand(),
            },
        })
    }

    /// Reports invalid paths before anything is run.
    pub(super) fn check_paths(&self) -> Result<(), RefusedCall> {
        let root = Path::new(&self.request.common.project_root).canonicalize();
        // Problems with the root itself are reported when it is opened.
        let Some(root) = root.ok().filter(|root| root.read_dir().is_ok()) else {
            return Ok(());
        };
        match &self.request.goal {
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
            Goal::Green { test_path } if self.request.check.is_some() => {
                if !test_path.is_empty() {
                    return Err(RefusedCall::error(
                        "`test_path` and `check` both say what must pass; give one of them",
                    ));
                }
            }
            Goal::Green { test_path } if test_path.is_empty() => {}
            Goal::Green { test_path } => check_test_path(&root, test_path)?,
            Goal::Refactor {
                test_path,
                impl_path,
            } => {
                check_test_path(&root, test_path)?;
                existing(&root, impl_path, "impl_path")?;
            }
        }
        Ok(())
    }

    /// Builds the phase and returns it with its test file.
    fn phase(
        &self,
        baseline: &TestBaseline,
        session: &str,
    ) -> Result<(Phase, TestFile), RefusedCall> {
        let root = &baseline.root;
        let test_file = |given: &str| self.test_file(baseline, given);
        Ok(match &self.request.goal {
            Goal::Red { test_path, .. } => {
                let path = test_path
                    .as_deref()
                    .map(|given| inside(root, given))
                    .transpose()
                    .map_err(RefusedCall::error)?;
                let path = path.unwrap_or_default();
                let source = fs::read_to_string(root.join(&path)).unwrap_or_default();
                (
                    Phase::Red(Red::new(
                        baseline,
                        path.clone(),
                        self.next_call(session),
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
                    Phase::Green(Green::new(
                        baseline,
                        test.clone(),
                        &self.memory,
                        self.next_call(session),
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
                    Phase::Refactor(Refactor::new(baseline, test.clone(), path)?),
                    test,
                )
            }
        })
    }

    /// The file of the test, or the one that stands for it.
    fn test_file(&self, baseline: &TestBaseline, given: &str) -> Result<TestFile, RefusedCall> {
        match &self.request.check {
            Some(check) => Ok(check::test_file(check, &baseline.root)),
            None => read_test_file(baseline, given),
        }
    }

    fn brief(
        &self,
        baseline: &TestBaseline,
        phase: &Phase,
        test: TestFile,
        discipline: String,
        replies: ReplyInstructions,
        redactor: Arc<Redactor>,
    ) -> TddBrief {
        let caller_files = match &self.request.goal {
            Goal::Refactor { impl_path, .. } => {
                inside(&baseline.root, impl_path).into_iter().collect()
            }
            Goal::Red { .. } | Goal::Green { .. } => {
                let check = self.request.check.iter();
                let shown = check.flat_map(|check| check.shown_files());
                shown.map(PathBuf::from).collect()
            }
        };
        let spec = self.memory.spec(&baseline.root.join(&test.path));
        let mut task = format!(
            "phase: {}\nproject_root: {}\ntest_cmd: {}\n",
            self.request.goal.phase(),
            baseline.root.display(),
            baseline.suite.command()
        );
        let mut add_line =
            |key: &str, value: &str| task += &format!("{key}: {}\n", words::plain(value.trim()));
        match (&self.request.goal, phase) {
            (Goal::Red { spec, test_path }, _) => {
                add_line("spec", spec);
                if let Some(path) = test_path {
                    add_line("test_path", path);
                }
                task += "\nWrite one test that fails until the spec is met.\n";
            }
            (Goal::Green { test_path }, Phase::Green(green)) => {
                match &self.request.check {
                    Some(check) => add_line("check", &json!(check).to_string()),
                    None => add_line("test_path", test_path),
                }
                if let Some(spec) = &spec {
                    add_line("spec", spec);
                }
                task += &format!("\nMake {} pass.\n", green.target());
            }
            (Goal::Green { test_path }, _) => add_line("test_path", test_path),
            (
                Goal::Refactor {
                    test_path,
                    impl_path,
                },
                _,
            ) => {
                add_line("test_path", test_path);
                add_line("impl_path", impl_path);
                task += "\nImprove the structure of impl_path without changing what it does.\n";
            }
        }
        if let Some(context) = &self.request.common.context {
            task += &format!("\ncontext: {}\n", words::plain(context));
        }
        let mut caller_text = match (&self.request.goal, phase) {
            (Goal::Red { spec, .. }, _) => spec.clone(),
            (Goal::Green { .. }, Phase::Green(green)) => {
                format!("{}\n{}", green.target(), spec.unwrap_or_default())
            }
            _ => String::new(),
        };
        if let Some(context) = &self.request.common.context {
            caller_text = format!("{caller_text}\n{context}");
        }
        TddBrief {
            discipline,
            task,
            caller_text,
            // Output of passing tests adds nothing, and tests that fail before the new test is
            // written are unrelated to it.
            test_output: match (baseline.run.outcome(), phase) {
                (Outcome::Passed, _) => baseline.run.sentence(),
                (Outcome::Failed, Phase::Red(_)) => describe_known_failures(&baseline.run),
                (Outcome::Failed, Phase::Green(green)) => green.failure_output(&baseline.run),
                _ => baseline.run.output().to_owned(),
            },
            failing: match phase {
                Phase::Green(green) => green.target_names(),
                _ => Vec::new(),
            },
            root: baseline.root.clone(),
            project: ProjectIndex::with_parsed(&baseline.root, Arc::clone(&self.memory.parsed)),
            ecosystem: baseline.ecosystem(),
            test_path: test.path,
            test_source: test.source,
            caller_files,
            co_changed: Vec::new(),
            test_argv: match &self.request.check {
                Some(check) => check.argv().unwrap_or_else(|| vec![String::from("true")]),
                None => baseline.suite.argv().to_vec(),
            },
            reply_texts: replies,
            redactor,
        }
    }

    /// The call of `prove` that follows when the caller changes the code.
    fn by_hand(&self) -> Value {
        let mut arguments = json!({"project_root": self.request.common.project_root});
        if let Some(command) = &self.request.test_cmd {
            arguments["test_cmd"] = json!(command);
        }
        json!({"tool": "prove", "arguments": arguments})
    }

    /// Suggests the next call; the tool and its specific arguments are filled in later.
    fn next_call(&self, session: &str) -> Value {
        let mut arguments = json!({
            "project_root": self.request.common.project_root,
            "session_id": session,
        });
        if let Some(command) = &self.request.test_cmd {
            arguments["test_cmd"] = json!(command);
        }
        if let Some(pattern) = &self.request.test_report {
            arguments["test_report"] = json!(pattern);
        }
        json!({"tool": "", "arguments": arguments})
    }
}

/// The name of a test is looked up in the first run.
fn check_test_path(root: &Path, given: &str) -> Result<(), RefusedCall> {
    if !is_test_name(root, given) {
        existing(root, split_test_path(root, given).0, "test_path")?;
    }
    Ok(())
}

/// The file that holds a test of the first run.
fn file_of_test(baseline: &TestBaseline, name: &str) -> Result<TestFile, RefusedCall> {
    let run = &baseline.run;
    let is_same = |test: &TestName| test.0 == name || test.base() == name;
    if !run.named().any(|(test, _)| is_same(test)) {
        let why = format!(
            "test_path: `{}` is neither a file nor the name of a test that ran",
            words::plain(name)
        );
        return Err(refusal_with_output(run, why));
    }
    let mut files: Vec<&Path> = baseline.files_before().collect();
    files.sort_by_key(|path| baseline.role(path) != FileRole::Test);
    let holding = files.into_iter().find_map(|path| {
        let language = Language::of_path(path)?;
        if baseline.ecosystem().is_some_and(|own| own != language) {
            return None;
        }
        let file = TestFile {
            path: path.to_owned(),
            only: Some(name.to_owned()),
            source: String::from_utf8_lossy(&fs::read(baseline.root.join(path)).ok()?).into_owned(),
        };
        (!file.tests_in(baseline, run).is_empty()).then_some(file)
    });
    holding.ok_or_else(|| {
        let why = format!(
            "test_path: the file of `{}` could not be told from its name; give the file",
            words::plain(name)
        );
        refusal_with_output(run, why)
    })
}

fn read_test_file(baseline: &TestBaseline, given: &str) -> Result<TestFile, RefusedCall> {
    let root = &baseline.root;
    if is_test_name(root, given) {
        return file_of_test(baseline, given);
    }
    let (path, only) = split_test_path(root, given);
    let path = existing(root, path, "test_path")?;
    let source = fs::read(root.join(&path))
        .map_err(|e| RefusedCall::error(format!("test_path: `{}`: {e}", path.display())))?;
    Ok(TestFile {
        path,
        only: only.map(str::to_owned),
        source: String::from_utf8_lossy(&source).into_owned(),
    })
}

/// The file of a test that is red now: one that holds a failing test or, if tests do not build, one
/// that the output names.
fn red_test_file(baseline: &TestBaseline) -> Result<String, RefusedCall> {
    let run = &baseline.run;
    let is_named = |path: &Path| run.output().contains(&*path.to_string_lossy());
    let files = baseline.files_before().filter(|path| {
        baseline.role(path) == FileRole::Test || is_named(&baseline.suite_relative(path))
    });
    let failing: Vec<_> = run
        .failed()
        .map(|(name, _)| name.clone())
        .filter(|name| !baseline.flaky.contains(name))
        .collect();
    let mut named = None;
    for path in files {
        let Ok(source) = fs::read(baseline.root.join(path)) else {
            continue;
        };
        let file = TestFile {
            path: path.to_owned(),
            only: None,
            source: String::from_utf8_lossy(&source).into_owned(),
        };
        let here = file.tests_in(baseline, run);
        if here.iter().any(|name| failing.contains(name)) {
            return Ok(path.to_string_lossy().into_owned());
        }
        let is_broken_test = failing.is_empty()
            && !matches!(run.outcome(), Outcome::Passed)
            && is_named(&baseline.suite_relative(path));
        if is_broken_test && (named.is_none() || baseline.role(path) == FileRole::Test) {
            named = Some(path.to_string_lossy().into_owned());
        }
    }
    named.ok_or_else(|| {
        let why = match run.outcome() {
            Outcome::Passed => "write a failing test with `tdd_red` first",
            _ => "no file could be told from the output; name it as `test_path`",
        };
        refusal_with_output(
            run,
            format!("nothing is red now: {}; {why}", run.sentence()),
        )
    })
}

fn plan(baseline: &TestBaseline) -> DryRunPlan {
    DryRunPlan {
        message: format!(
            "dry run: nothing was asked and nothing changed; {}",
            baseline.run.sentence()
        ),
        details: json!({
            "runner": baseline.suite.runner(),
            "commands": baseline.suite.commands(),
            "notes": baseline.suite.notes(),
            "command": baseline.suite.command(),
            "because": baseline.suite.found_by(),
            "alternatives": baseline.suite.alternatives(),
            "sealed_files": baseline.protected_count,
            "by_products": first_paths(&baseline.by_products),
            "baseline": baseline.run.sentence(),
        }),
    }
}

/// Summarises the run and lists the failing tests that are not part of the task.
fn describe_known_failures(run: &TestRun) -> String {
    const MAX_NAMED: usize = 20;
    let failing: Vec<String> = run.failed().map(|(name, _)| name.to_string()).collect();
    let more = failing.len().saturating_sub(MAX_NAMED);
    let mut text = format!(
        "{}\nThese fail already and are not the task:\n",
        run.sentence()
    );
    failing
        .iter()
        .take(MAX_NAMED)
        .for_each(|name| text += &format!("- {name}\n"));
    if more > 0 {
        text += &format!("- and {more} more\n");
    }
    text
}
