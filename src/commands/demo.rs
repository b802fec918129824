//! `supervisor demo`: takes one behaviour from red to refactor in a temporary project, with real
//! tests and scripted models. It uses the same client, tools, engine and log as every other call;
//! only the models are not real, and the output says so.

mod fixture;
mod ledger;
mod progress;
mod screen;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::client::{CallReply, Client, whole_result};
use super::console::Console;
use super::signals::Signals;
use fixture::DemoFixture;
use ledger::Ledger;
use screen::Screen;

/// Watch a real red, green and refactor with scripted models, in a minute
///
/// Needs `cargo` and nothing else: no keys, no gateway, no network, none of your settings. Works in a temporary project
/// and keeps nothing but the log it names. Exit code 0, 2 if it cannot be shown, 130 if interrupted.
#[derive(Debug, Args)]
pub(super) struct Demo {}

/// One call of a tool.
struct DemoStep {
    tool: &'static str,
    name: &'static str,
    goal: &'static str,
}

/// How long to wait for a cancelled call after a second Ctrl-C.
const CANCEL_GRACE: Duration = Duration::from_secs(3);
const STEPS: [DemoStep; 3] = [
    DemoStep {
        tool: "tdd_red",
        name: "RED",
        goal: "write one failing test",
    },
    DemoStep {
        tool: "tdd_green",
        name: "GREEN",
        goal: "make it pass, the cheapest model first",
    },
    DemoStep {
        tool: "tdd_refactor",
        name: "REFACTOR",
        goal: "better code, the same behaviour",
    },
];
const SPEC: &str = "9 is IX: a smaller numeral before a larger one is subtracted";
/// The model whose prompt must contain the earlier failures.
const LAST_MODEL: &str = "scripted/large";

enum DemoEnd {
    Completed,
    Interrupted,
}

impl Demo {
    #[expect(
        clippy::unused_self,
        reason = "a command like the others, which has no options yet"
    )]
    pub(super) fn run(self, config: Option<&PathBuf>) -> anyhow::Result<ExitCode> {
        anyhow::ensure!(
            config.is_none(),
            "`demo` brings its own settings and reads none of yours; leave `--config` out"
        );
        let runtime = super::runtime::build_runtime()?;
        let end = runtime.block_on(run_demo());
        // A second Ctrl-C may have left a call running; the shims finish it.
        runtime.shutdown_background();
        Ok(match end? {
            DemoEnd::Completed => ExitCode::SUCCESS,
            DemoEnd::Interrupted => ExitCode::from(130),
        })
    }
}

async fn run_demo() -> anyhow::Result<DemoEnd> {
    // Registered first, so that an early signal leaves nothing behind.
    let mut signals = Signals::new()?;
    let stop = CancellationToken::new();
    let started = Instant::now();
    let fixture = DemoFixture::create()?;
    let mut screen = Screen::new(Console::stdout());
    let result = {
        let run = run_calls(&fixture, &mut screen, &stop);
        tokio::pin!(run);
        tokio::select! {
            result = &mut run => Some(result),
            _ = signals.next() => {
                stop.cancel();
                tokio::select! {
                    result = &mut run => Some(result),
                    // A cancelled call still writes its last line, which would recreate files that
                    // are removed too early.
                    () = signals.second_interrupt() => tokio::time::timeout(CANCEL_GRACE, &mut run).await.ok(),
                }
            }
        }
    };
    screen.clear_live_line();
    let saved_log = match &result {
        Some(Ok(DemoEnd::Completed)) => {
            Some((Ledger::from_log(&fixture.log())?, fixture.save_log()?))
        }
        _ => None,
    };
    let removed = fixture.remove().await;
    let result = result.unwrap_or(Ok(DemoEnd::Interrupted))?;
    removed.context("removing the temporary project")?;
    match saved_log {
        Some((ledger, saved_log)) => screen.print_summary(&ledger, &saved_log, started.elapsed()),
        None => screen.print_interrupted(),
    }
    Ok(result)
}

/// Runs the three calls, each with the arguments that the previous result suggests.
async fn run_calls(
    fixture: &DemoFixture,
    screen: &mut Screen,
    stop: &CancellationToken,
) -> anyhow::Result<DemoEnd> {
    let mut client = Client::start(fixture.app()).await?;
    let result = run_steps(&mut client, fixture, screen, stop).await;
    client.finish().await;
    if stop.is_cancelled() {
        Ok(DemoEnd::Interrupted)
    } else {
        result
    }
}

async fn run_steps(
    client: &mut Client,
    fixture: &DemoFixture,
    screen: &mut Screen,
    stop: &CancellationToken,
) -> anyhow::Result<DemoEnd> {
    let mut arguments = json!({
        "project_root": fixture.project(),
        "spec": SPEC,
        "test_path": "tests/roman.rs",
        "session_id": fixture.session(),
    });
    screen.print_intro();
    for step in STEPS {
        screen.begin_step(step.name, step.goal);
        if let Some(spec) = arguments["spec"].as_str() {
            screen.print_row("task", spec);
        }
        let called = client
            .call(step.tool, arguments, stop, &mut |line| {
                screen.on_progress(line);
            })
            .await?;
        let mut result = match called {
            CallReply::Answered(reply) => whole_result(reply),
            CallReply::Cancelled => return Ok(DemoEnd::Interrupted),
        };
        if result["status"] != "pass" {
            let message = result["message"].as_str().unwrap_or("no message");
            let output = result["runner_output"].as_str().unwrap_or_default();
            anyhow::bail!(
                "the demo cannot go on: `{}` says: {message}\n{}",
                step.tool,
                output.trim_end()
            );
        }
        screen.finish_step(&result, shown_attempts(fixture, &result).as_deref());
        arguments = result["next"]["arguments"].take();
    }
    Ok(DemoEnd::Completed)
}

/// Describes which earlier attempts the last model was shown, read from the prompt it got.
fn shown_attempts(fixture: &DemoFixture, result: &Value) -> Option<String> {
    let question = fixture.prompts_for(LAST_MODEL).pop()?;
    let attempts = result["attempts"].as_array()?;
    let (last, others) = attempts.split_last()?;
    let was_shown = |attempt: &&Value| {
        let (n, model, cause) = (
            &attempt["attempt"],
            attempt["model"].as_str(),
            attempt["cause"].as_str(),
        );
        question.contains(&format!(
            "[{n} · {} · {}]",
            model.unwrap_or_default(),
            cause.unwrap_or_default()
        ))
    };
    let shown_models: Vec<&str> = others
        .iter()
        .filter(was_shown)
        .filter_map(|attempt| attempt["model"].as_str())
        .collect();
    (last["model"] == LAST_MODEL && !shown_models.is_empty()).then(|| {
        format!(
            "{LAST_MODEL} was shown what {} tried, and why it was refused",
            shown_models.join(" and ")
        )
    })
}
