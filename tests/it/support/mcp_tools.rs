//! Tools no server should have: they panic, sleep, flood and ignore the word stop. Served by this test binary itself.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::handler::server::tool::{ToolRoute, ToolRouter, schema_for_input};
use rmcp::model::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use supervisor_engine::result::{CallResult, More, Status};
use supervisor_mcp::Server;
use supervisor_skills::{Call, Parameters, Reply, Tools};

use crate::support::mcp_session::Session;
use crate::support::role;

/// The test that serves them when it plays its role.
pub(crate) const TEST: &str = "support::mcp_tools::misbehaving_tools_are_listed";

#[test]
fn misbehaving_tools_are_listed() {
    if role::is_asked_of(TEST) {
        serve();
    }
    let mut session = Session::misbehaving();
    session.request(1, "tools/list", json!({}));
    let reply = session.reply(1);
    let tools = reply["result"]["tools"].as_array().unwrap();
    let names: BTreeSet<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let expected = ["echo", "fails", "floods", "panics", "refuses", "sleeps"];
    assert_eq!(names, BTreeSet::from(expected));
}

/// Serves them, with real stdin, stdout and signals.
fn serve() -> ! {
    let code =
        supervisor::serve::serve(|| Server::with_tools(supervisor::built_in::app(None), router()))
            .unwrap();
    // The test harness would print its verdict to stdout, which belongs to the protocol here.
    std::process::exit(number_of(code))
}

/// `ExitCode::exit_process` is not stable yet.
fn number_of(code: ExitCode) -> i32 {
    (0..=255u8)
        .find(|n| ExitCode::from(*n) == code)
        .map_or(255, i32::from)
}

pub(crate) fn router() -> ToolRouter<Tools> {
    let mut router = ToolRouter::new();
    router.add_route(ToolRoute::new(tool::<Echo>("echo"), echo));
    router.add_route(ToolRoute::new(tool::<Nothing>("panics"), panics));
    router.add_route(ToolRoute::new(tool::<Nothing>("refuses"), refuses));
    router.add_route(ToolRoute::new(tool::<Sleep>("sleeps"), sleeps));
    router.add_route(ToolRoute::new(tool::<Flood>("floods"), floods));
    router.add_route(ToolRoute::new(tool::<Echo>("fails"), fails));
    router
}

fn tool<T: JsonSchema + 'static>(name: &'static str) -> Tool {
    Tool::new(name, "Misbehaves.", schema_for_input::<T>().unwrap())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Says `text` back, `times` times.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// What to say.
    text: String,
    #[serde(default)]
    times: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sleep {
    ms: u64,
    /// Report progress this often.
    #[serde(default)]
    progress_ms: Option<u64>,
    /// A file to make when told to stop.
    #[serde(default)]
    on_stop: Option<PathBuf>,
    /// Go on in spite of it.
    #[serde(default)]
    stubborn: bool,
    /// Work on after the reply, and report progress.
    #[serde(default)]
    linger: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Flood {
    count: u32,
    #[serde(default)]
    text: String,
}

fn answer(status: Status, message: String, runner_output: String) -> Reply {
    Reply(CallResult {
        status,
        message,
        phase: "torture".into(),
        skill: "torture".into(),
        file_path: String::new(),
        runner_output,
        verified: false,
        model_used: String::new(),
        more: More::default(),
    })
}

async fn echo(Parameters(p): Parameters<Echo>) -> Reply {
    let times = usize::try_from(p.times.unwrap_or(0)).unwrap();
    answer(Status::Pass, p.text.clone(), p.text.repeat(times))
}

async fn fails(Parameters(p): Parameters<Echo>) -> Reply {
    let times = usize::try_from(p.times.unwrap_or(0)).unwrap();
    answer(Status::Error, p.text.clone(), p.text.repeat(times))
}

async fn panics(Parameters(Nothing {}): Parameters<Nothing>) -> Reply {
    panic!("the tool fell over")
}

async fn refuses(Parameters(Nothing {}): Parameters<Nothing>) -> Result<Reply, ErrorData> {
    Err(ErrorData::internal_error(
        "the disk is full",
        Some(json!({"disk": "full"})),
    ))
}

async fn sleeps(Parameters(p): Parameters<Sleep>, call: Call) -> Reply {
    let until = tokio::time::Instant::now() + Duration::from_millis(p.ms);
    let tick = Duration::from_millis(p.progress_ms.unwrap_or(p.ms).max(1));
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(until) => break,
            () = tokio::time::sleep(tick) => call.progress.say("still asleep"),
            () = call.stop.cancelled() => {
                if let Some(path) = &p.on_stop {
                    std::fs::write(path, "stopped").unwrap();
                }
                if p.stubborn {
                    tokio::time::sleep_until(until).await;
                }
                return answer(Status::Error, "stopped".into(), String::new());
            }
        }
    }
    if p.linger {
        let progress = call.progress.clone();
        tokio::spawn(async move {
            for _ in 0..200 {
                progress.say("too late");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
    answer(Status::Pass, "slept".into(), String::new())
}

async fn floods(Parameters(p): Parameters<Flood>, call: Call) -> Reply {
    for n in 0..p.count {
        call.progress.say(&format!("{n} {}", p.text));
    }
    answer(Status::Pass, "flooded".into(), String::new())
}
