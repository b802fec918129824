//! `demo`: one behaviour from red to refactor, in a project of its own, with real tests and scripted models.
//! A client like any other: the same tools, the same engine, the same log. Only the models are not real, and it says so.

mod heard;
mod ledger;
mod screen;
mod stage;

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
use ledger::Ledger;
use screen::Screen;
use stage::Stage;

/// Watch a real red, green and refactor with scripted models, in a minute
///
/// Needs `cargo` and nothing else: no keys, no gateway, no network, none of your settings. Works in a temporary project
/// and keeps nothing but the log it names. Exit code 0, 2 if it cannot be shown, 130 if interrupted.
#[derive(Debug, Args)]
pub(super) struct Demo {}

/// One call of a tool.
struct Act {
    tool: &'static str,
    name: &'static str,
    goal: &'static str,
}

/// How long a cancelled call may take to end after a second Ctrl-C.
const IMPATIENT: Duration = Duration::from_secs(3);
const ACTS: [Act; 3] = [
    Act {
        tool: "tdd_red",
        name: "RED",
        goal: "write one failing test",
    },
    Act {
        tool: "tdd_green",
        name: "GREEN",
        goal: "make it pass, the cheapest model first",
    },
    Act {
        tool: "tdd_refactor",
        name: "REFACTOR",
        goal: "better code, the same behaviour",
    },
];
const SPEC: &str = "9 is IX: a smaller numeral before a larger one is subtracted";
/// Who must have been told what went wrong before.
const LAST: &str = "scripted/large";

enum DemoEnd {
    ToTheEnd,
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
        let shown = runtime.block_on(show());
        // A second Ctrl-C may have left a call behind; the shims finish it.
        runtime.shutdown_background();
        Ok(match shown? {
            DemoEnd::ToTheEnd => ExitCode::SUCCESS,
            DemoEnd::Interrupted => ExitCode::from(130),
        })
    }
}

async fn show() -> anyhow::Result<DemoEnd> {
    // Before anything is made: a signal that comes early must not leave it behind.
    let mut signals = Signals::new()?;
    let stop = CancellationToken::new();
    let began = Instant::now();
    let stage = Stage::set()?;
    let mut screen = Screen::new(Console::stdout());
    let played = {
        let play = play(&stage, &mut screen, &stop);
        tokio::pin!(play);
        tokio::select! {
            played = &mut play => Some(played),
            _ = signals.next() => {
                stop.cancel();
                tokio::select! {
                    played = &mut play => Some(played),
                    // A cancelled call still writes its last line; what is removed before that would be made anew.
                    () = signals.second_interrupt() => tokio::time::timeout(IMPATIENT, &mut play).await.ok(),
                }
            }
        }
    };
    screen.rest();
    let kept = match &played {
        Some(Ok(DemoEnd::ToTheEnd)) => Some((Ledger::of(&stage.log())?, stage.keep_log()?)),
        _ => None,
    };
    let struck = stage.strike().await;
    let played = played.unwrap_or(Ok(DemoEnd::Interrupted))?;
    struck.context("removing the temporary project")?;
    match kept {
        Some((ledger, kept)) => screen.end(&ledger, &kept, began.elapsed()),
        None => screen.interrupted(),
    }
    Ok(played)
}

/// The three calls, one after the other, each with what the one before says comes next.
async fn play(
    stage: &Stage,
    screen: &mut Screen,
    stop: &CancellationToken,
) -> anyhow::Result<DemoEnd> {
    let mut client = Client::start(stage.app()).await?;
    let played = acts(&mut client, stage, screen, stop).await;
    client.finish().await;
    if stop.is_cancelled() {
        Ok(DemoEnd::Interrupted)
    } else {
        played
    }
}

async fn acts(
    client: &mut Client,
    stage: &Stage,
    screen: &mut Screen,
    stop: &CancellationToken,
) -> anyhow::Result<DemoEnd> {
    let mut arguments = json!({
        "project_root": stage.project(),
        "spec": SPEC,
        "test_path": "tests/roman.rs",
        "session_id": stage.session(),
    });
    screen.opening();
    for act in ACTS {
        screen.open(act.name, act.goal);
        if let Some(spec) = arguments["spec"].as_str() {
            screen.row("task", spec);
        }
        let called = client
            .call(act.tool, arguments, stop, &mut |line| screen.hear(line))
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
                act.tool,
                output.trim_end()
            );
        }
        screen.close(&result, told_of_others(stage, &result).as_deref());
        arguments = result["next"]["arguments"].take();
    }
    Ok(DemoEnd::ToTheEnd)
}

/// What the last model was told about the others, read from the question it really got.
fn told_of_others(stage: &Stage, result: &Value) -> Option<String> {
    let question = stage.asked_of(LAST).pop()?;
    let attempts = result["attempts"].as_array()?;
    let (last, others) = attempts.split_last()?;
    let is_told = |attempt: &&Value| {
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
    let told: Vec<&str> = others
        .iter()
        .filter(is_told)
        .filter_map(|attempt| attempt["model"].as_str())
        .collect();
    (last["model"] == LAST && !told.is_empty()).then(|| {
        format!(
            "{LAST} was shown what {} tried, and why it was refused",
            told.join(" and ")
        )
    })
}
