//! `supervisor verify`: detects the tests, runs them and reports the outcome. The exit code is 0
//! only if they passed.

mod baseline;
mod remember;

use crate::built_in;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(super) use baseline::{BaselineComparison, BaselineStore};

use super::console::Console;
use super::settings_file::SettingsFile;
use super::signals::Signals;
use supervisor_process::{Launcher, environment};
use supervisor_settings::{Routing, load};
use supervisor_text::words;
use supervisor_verify::{
    Alternative, DetectRequest, Outcome, RunEnvironment, Suite, TestRun, TestSandbox,
};

/// Run the project's tests and report the result
///
/// Exit code 0 if they passed, 1 if some failed, 2 if it cannot be told (did not build, no tests, no runner, timed out),
/// 130 if interrupted. Against a baseline: 0 if no test is newly red.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// The project
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,
    /// A file of the project: the manifest nearest to it decides
    #[arg(long, value_name = "FILE")]
    near: Option<PathBuf>,
    /// The command to run, as words, instead of the detected one
    #[arg(long, value_name = "WORDS")]
    test_cmd: Option<String>,
    /// Where the command leaves JUnit reports, as a pattern: `build/**/*.xml`
    #[arg(long, value_name = "GLOB")]
    test_report: Option<String>,
    /// Write the command into your settings, for every later call in this project
    #[arg(long, requires = "test_cmd")]
    remember: bool,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
    /// Seconds until the tests are ended, in place of `limits.tests_s`
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: Option<u64>,
    /// Remember what the tests show, to compare with later
    #[arg(long)]
    record_baseline: bool,
    /// Compare with what was remembered: only newly red tests count, and an unchanged project is not tested again
    #[arg(long, conflicts_with = "record_baseline")]
    against_baseline: bool,
    /// Which baseline, where there are several
    #[arg(long, value_name = "ID", default_value = "")]
    session: String,
}

impl Verify {
    /// Settings to run the detected tests of a project.
    pub(super) fn of_project(project: PathBuf) -> Self {
        Self {
            project,
            near: None,
            test_cmd: None,
            test_report: None,
            remember: false,
            json: false,
            timeout: None,
            record_baseline: false,
            against_baseline: false,
            session: String::new(),
        }
    }

    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let uses_baseline = self.record_baseline || self.against_baseline;
        let store = uses_baseline
            .then(|| BaselineStore::of(&self.project, &self.session))
            .transpose()?;
        let baseline = match &store {
            Some(store) if self.against_baseline => {
                let recorded = store.load();
                Some(
                    recorded
                        .context("no baseline is remembered; make one with `supervisor verify --record-baseline`")?,
                )
            }
            _ => None,
        };
        if let (Some(store), Some(baseline)) = (&store, &baseline)
            && store.manifest()? == baseline.manifest
        {
            super::print(
                out,
                "ok       nothing has changed since the baseline; no test was run\n",
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        let (suite, run) = self.test(config.clone())?;
        let mut text = if self.json {
            as_json(&suite, &run)?
        } else {
            render_text(&suite, &run)
        };
        let mut code = exit_code(run.outcome());
        if let (Some(store), Some(baseline)) = (&store, &baseline) {
            let compared = baseline.compare(&run);
            if !self.json {
                text += &compared.text();
            }
            code = match compared {
                BaselineComparison::NothingNew => ExitCode::SUCCESS,
                BaselineComparison::NewlyRed(_) => ExitCode::from(1),
                BaselineComparison::Unknown(_) => ExitCode::from(2),
            };
            if code == ExitCode::SUCCESS {
                store.save(&run)?;
            }
        } else if let Some(store) = &store {
            store.save(&run)?;
        }
        let tells = matches!(run.outcome(), Outcome::Passed | Outcome::Failed);
        if let Some(test_cmd) = self.test_cmd.as_deref().filter(|_| self.remember && tells) {
            let file = SettingsFile::locate(&built_in::sources(config))?;
            let command = remember::TestCommand {
                test_cmd,
                test_report: self.test_report.as_deref(),
            };
            let name = command.write_to(&file, &self.project.canonicalize()?)?;
            if !self.json {
                text += &format!(
                    "written  [projects.\"{name}\"] in {}\n",
                    file.path().display()
                );
            }
        } else if self.remember && !self.json {
            text += "not written: the command did not tell what the tests do\n";
        }
        super::print(out, &text)?;
        Ok(code)
    }

    /// Finds the tests and runs them.
    pub(super) fn test(&self, config: Option<PathBuf>) -> anyhow::Result<(Suite, TestRun)> {
        let routing = load(&built_in::sources(config))?.routing;
        if let Some(near) = self
            .near
            .as_ref()
            .filter(|near| !self.project.join(near).exists())
        {
            anyhow::bail!(
                "--near `{}` is not there; give a file of the project",
                words::plain(&near.to_string_lossy())
            );
        }
        let root = self.project.canonicalize();
        let root = root.unwrap_or_else(|_| self.project.clone());
        let (test_cmd, test_report) =
            routing.test_command(&root, self.test_cmd.clone(), self.test_report.clone());
        let request = DetectRequest {
            root: &self.project,
            near: self.near.as_deref(),
            test_cmd: test_cmd.as_deref(),
            test_report: test_report.as_deref(),
            path: None,
        };
        let suite = request.detect()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let state = supervisor_workspace::state::StateDir::locate().ok();
        let rules = routing.sandbox.rules(
            home.as_deref(),
            state
                .as_ref()
                .map(supervisor_workspace::state::StateDir::path),
        );
        let launcher = Launcher::this_program().with_rules(rules);
        let run = runtime.block_on(self.run_suite(&suite, &routing, &launcher))?;
        runtime.block_on(launcher.wait_for_all());
        Ok((suite, run))
    }

    async fn run_suite(
        &self,
        suite: &Suite,
        routing: &Routing,
        launcher: &Launcher,
    ) -> anyhow::Result<TestRun> {
        let keys: Vec<String> = routing
            .backends
            .values()
            .filter_map(|b| b.api_key_env.clone())
            .collect();
        let mut bench = RunEnvironment {
            launcher: launcher.clone(),
            env: environment::tests(std::env::vars_os(), &keys, &routing.env_pass),
            limit: self
                .timeout
                .map_or(routing.limits.tests, Duration::from_secs),
            guard: None,
            sandbox: TestSandbox::default(),
            execution: super::remote::of_process(routing)?,
        };
        let stop = CancellationToken::new();
        // Tests may take minutes, so show on a terminal that they run. Dropping the console removes
        // the line.
        let mut console = Console::stderr();
        if console.is_live() {
            console.begin(&format!("running `{}`", suite.command()));
        }
        let mut signals = Signals::new()?;
        let run = supervisor_verify::run_first(suite, &mut bench, None, &stop);
        tokio::pin!(run);
        tokio::select! {
            run = &mut run => return Ok(run),
            _ = signals.next() => stop.cancel(),
        }
        Ok(run.await)
    }
}

fn exit_code(outcome: &Outcome) -> ExitCode {
    match outcome {
        Outcome::Passed => ExitCode::SUCCESS,
        Outcome::Failed => ExitCode::from(1),
        Outcome::Cancelled => ExitCode::from(130),
        Outcome::DidNotBuild { .. }
        | Outcome::NoTests
        | Outcome::CouldNotRun { .. }
        | Outcome::Unclear { .. }
        | Outcome::TimedOut { .. }
        | Outcome::Killed { .. } => ExitCode::from(2),
    }
}

// Paths may not be UTF-8, and JSON is text.
fn alternative(other: &Alternative) -> Value {
    json!({ "manifest": other.manifest.to_string_lossy(), "command": other.command })
}

fn as_json(suite: &Suite, run: &TestRun) -> anyhow::Result<String> {
    let mut value = json!({
        "outcome": run.outcome(),
        "message": run.sentence(),
        "command": run.command(),
        "root": run.root().to_string_lossy(),
        "because": suite.found_by(),
        "runner": suite.runner(),
        "commands": suite.commands(),
        "alternatives": suite.alternatives().iter().map(alternative).collect::<Vec<_>>(),
        "exit_code": run.exit_code(),
        "took_ms": u64::try_from(run.took().as_millis()).unwrap_or(u64::MAX),
        "failed": run.failed().map(|(name, message)| json!({ "name": name, "message": message })).collect::<Vec<_>>(),
        "passed": run.passed().collect::<Vec<_>>(),
        "skipped": run.skipped().collect::<Vec<_>>(),
        "checks": run.checks(),
        "notes": run.notes(),
    });
    if !run.outcome().is_passed() {
        value["output"] = json!(run.output());
    }
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

/// Maximum number of failing tests listed; the rest is counted.
const MAX_LISTED: usize = 20;

fn render_text(suite: &Suite, run: &TestRun) -> String {
    let mut text = format!(
        "tests    {}, because of {}\n",
        words::plain(run.command()),
        words::plain(suite.found_by())
    );
    for command in suite.commands() {
        text += &format!("         runs {}\n", words::plain(&command));
    }
    for other in suite.alternatives() {
        text += &format!(
            "         also there: {} ({})\n",
            other.manifest.display(),
            other.command
        );
    }
    let word = match run.outcome() {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        _ => "unknown",
    };
    text += &format!(
        "{word:<8} {} ({:.1} s)\n",
        run.sentence(),
        run.took().as_secs_f64()
    );
    if let Outcome::DidNotBuild { errors } = run.outcome() {
        for error in errors.iter().take(MAX_LISTED) {
            text += &format!("  {error}\n");
        }
    }
    for (name, message) in run.failed().take(MAX_LISTED) {
        text += &format!("  {name}\n");
        for line in message.lines().filter(|l| !l.trim().is_empty()).take(4) {
            text += &format!("    {}\n", words::cut_end(&words::plain(line), 200));
        }
    }
    for check in run.checks().iter().filter(|check| !check.passed) {
        text += &format!("  {}\n", words::plain(&check.command));
        let tail: Vec<&str> = check
            .output
            .lines()
            .filter(|l| !l.trim().is_empty())
            .rev()
            .take(4)
            .collect();
        for line in tail.iter().rev() {
            text += &format!("    {}\n", words::cut_end(&words::plain(line), 200));
        }
    }
    let more = run.failed().count().saturating_sub(MAX_LISTED);
    if more > 0 {
        text += &format!("  and {}\n", words::count(more, "other"));
    }
    for note in run.notes() {
        text += &format!("note     {}\n", words::plain(note));
    }
    if let Some(first) = run.failed().next().filter(|_| run.failed().count() > 1)
        && let Some(only) = suite.only(first.0)
    {
        text += &format!(
            "hint: run the first one alone: {}\n",
            words::plain(&only.command())
        );
    }
    if !run.outcome().is_conclusive() {
        let tail: Vec<&str> = run.output().lines().rev().take(15).collect();
        for line in tail.iter().rev() {
            text += &format!("  | {}\n", words::cut_end(&words::plain(line), 200));
        }
    }
    text
}
