//! `supervisor verify`: detect the tests, run them, say what they showed. Exit code 0 only for passed.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::console::Console;
use crate::process::{Launcher, environment};
use crate::routing::{Routing, Sources, load};
use crate::verify::{Alternative, Bench, Outcome, Suite, TestRun, detect};
use crate::words;

/// Run the project's tests and tell what they showed
///
/// Exit code 0 if they passed, 1 if some failed, 2 if it cannot be told (did not build, no tests, no runner, timed out),
/// 130 if interrupted.
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
    /// Answer in JSON
    #[arg(long)]
    json: bool,
    /// Seconds until the tests are ended, in place of `limits.tests_s`
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: Option<u64>,
}

impl Verify {
    pub(super) fn run(self, config: Option<PathBuf>, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let routing = load(&Sources::of_process(config))?.routing;
        if let Some(near) = self.near.as_ref().filter(|near| !self.project.join(near).exists()) {
            anyhow::bail!(
                "--near `{}` is not there; give a file of the project",
                words::plain(&near.to_string_lossy())
            );
        }
        let suite = detect(&self.project, self.near.as_deref(), self.test_cmd.as_deref())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let launcher = Launcher::this_program();
        let run = runtime.block_on(self.watched(&suite, &routing, &launcher))?;
        runtime.block_on(launcher.settled());
        let text = if self.json { as_json(&suite, &run)? } else { for_people(&suite, &run) };
        super::print(out, &text)?;
        Ok(exit_code(run.outcome()))
    }

    async fn watched(&self, suite: &Suite, routing: &Routing, launcher: &Launcher) -> anyhow::Result<TestRun> {
        let keys: Vec<String> = routing.backends.values().filter_map(|b| b.api_key_env.clone()).collect();
        let bench = Bench {
            launcher: launcher.clone(),
            env: environment::tests(std::env::vars_os(), &keys, &routing.env_pass),
            limit: self.timeout.map_or(routing.limits.tests, Duration::from_secs),
            guard: None,
        };
        let stop = CancellationToken::new();
        // Tests may take minutes, and somebody at a terminal wants to see that they run. Goes with this function.
        let mut console = Console::stderr();
        if console.is_live() {
            console.begin(&format!("running `{}`", suite.command()));
        }
        let run = suite.run(&bench, &stop);
        tokio::pin!(run);
        let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            run = &mut run => return Ok(run),
            _ = tokio::signal::ctrl_c() => stop.cancel(),
            _ = terminated.recv() => stop.cancel(),
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

// Names are bytes, and JSON is text.
fn alternative(other: &Alternative) -> Value {
    json!({ "manifest": other.manifest.to_string_lossy(), "command": other.command })
}

fn as_json(suite: &Suite, run: &TestRun) -> anyhow::Result<String> {
    let mut value = json!({
        "outcome": run.outcome(),
        "message": run.sentence(),
        "command": run.command(),
        "root": run.root().to_string_lossy(),
        "because": suite.because(),
        "alternatives": suite.alternatives().iter().map(alternative).collect::<Vec<_>>(),
        "exit_code": run.exit_code(),
        "took_ms": u64::try_from(run.took().as_millis()).unwrap_or(u64::MAX),
        "failed": run.failed().map(|(name, message)| json!({ "name": name, "message": message })).collect::<Vec<_>>(),
        "passed": run.passed().collect::<Vec<_>>(),
        "skipped": run.skipped().collect::<Vec<_>>(),
        "notes": run.notes(),
    });
    if !run.outcome().is_passed() {
        value["output"] = json!(run.output());
    }
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

/// Failing tests shown one by one; the rest is counted.
const SHOWN: usize = 20;

fn for_people(suite: &Suite, run: &TestRun) -> String {
    let mut text = format!("tests    {}, because of {}\n", words::plain(run.command()), words::plain(suite.because()));
    for other in suite.alternatives() {
        text += &format!("         also there: {} ({})\n", other.manifest.display(), other.command);
    }
    let word = match run.outcome() {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        _ => "unknown",
    };
    text += &format!("{word:<8} {} ({:.1} s)\n", run.sentence(), run.took().as_secs_f64());
    if let Outcome::DidNotBuild { errors } = run.outcome() {
        for error in errors.iter().take(SHOWN) {
            text += &format!("  {error}\n");
        }
    }
    for (name, message) in run.failed().take(SHOWN) {
        text += &format!("  {name}\n");
        for line in message.lines().filter(|l| !l.trim().is_empty()).take(4) {
            text += &format!("    {}\n", words::cut_end(&words::plain(line), 200));
        }
    }
    let more = run.failed().count().saturating_sub(SHOWN);
    if more > 0 {
        text += &format!("  and {}\n", words::count(more, "other"));
    }
    for note in run.notes() {
        text += &format!("note     {}\n", words::plain(note));
    }
    if let Some(first) = run.failed().next().filter(|_| run.failed().count() > 1)
        && let Some(only) = suite.only(first.0)
    {
        text += &format!("hint: run the first one alone: {}\n", words::plain(&only.command()));
    }
    if !run.outcome().speaks_about_the_code() {
        let tail: Vec<&str> = run.output().lines().rev().take(15).collect();
        for line in tail.iter().rev() {
            text += &format!("  | {}\n", words::cut_end(&words::plain(line), 200));
        }
    }
    text
}
