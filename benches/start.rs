//! `start`: time from spawn to tools/list, idle memory, exit time after the end of input, and size
//! of the tool list. The floor is a bare server on the same SDK: this program in another role,
//! alternating with ours.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rmcp::model::{
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Map, Value, json};

/// Argument that makes this program the bare server.
pub(crate) const BARE: &str = "--bare-server";

const ROUNDS: usize = 60;
const LIST_BUDGET: usize = 18_000;
const TOOL_BUDGET: usize = 1_200;

pub(crate) fn run() {
    let ours = || Command::new(crate::program());
    let bare = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(BARE);
        command
    };
    let (mut our_runs, mut bare_runs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 5 {
        let (a, b) = (run_once(ours()), run_once(bare()));
        // The first rounds fill the page cache.
        if round >= 5 {
            our_runs.push(a);
            bare_runs.push(b);
        }
    }
    let list = our_runs[0].list.clone();
    compare(
        "spawn to tools/list",
        &our_runs,
        &bare_runs,
        |run| run.listed,
        "target: at most 2 ×",
    );
    compare(
        "exit after end of input",
        &our_runs,
        &bare_runs,
        |run| run.ended,
        "target: at most 10 ms",
    );
    let (ours, bare) = (
        median(our_runs.iter().map(|r| r.rss_kb)),
        median(bare_runs.iter().map(|r| r.rss_kb)),
    );
    println!(
        "idle memory               {ours:>6} kB, bare {bare} kB, {:+} kB   (target: at most 12,000 kB)",
        ours - bare
    );
    let private = median(our_runs.iter().map(|run| run.private_kb));
    println!(
        "of it written             {private:>6} kB; the rest are pages of files, shared by all servers"
    );
    let size = std::fs::metadata(crate::program()).map_or(0, |file| file.len());
    println!("the program               {:>6} kB on disk", size / 1_000);
    print_list_size(&list);
}

/// Measurements of one server run.
struct ServerRun {
    listed: Duration,
    ended: Duration,
    rss_kb: i64,
    private_kb: i64,
    list: Value,
}

fn run_once(mut command: Command) -> ServerRun {
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ];
    let text: String = requests
        .iter()
        .map(|message| format!("{message}\n"))
        .collect();
    let start = Instant::now();
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"id\":2") {
        line.clear();
        assert!(
            stdout.read_line(&mut line).unwrap() > 0,
            "the server ended without a list"
        );
    }
    let listed = start.elapsed();
    let rss_kb = memory(process.id(), "status", "VmRSS:");
    let private_kb = memory(process.id(), "smaps_rollup", "Private_Dirty:");
    let end = Instant::now();
    drop(stdin);
    assert!(process.wait().unwrap().success());
    let list = serde_json::from_str::<Value>(&line).unwrap()["result"]["tools"].clone();
    ServerRun {
        listed,
        ended: end.elapsed(),
        rss_kb,
        private_kb,
        list,
    }
}

/// Memory of a server that was only asked for its tool list.
pub(crate) fn idle_kb(command: Command) -> i64 {
    run_once(command).rss_kb
}

fn memory(pid: u32, file: &str, name: &str) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

fn compare(
    what: &str,
    ours: &[ServerRun],
    bare: &[ServerRun],
    of: impl Fn(&ServerRun) -> Duration,
    target: &str,
) {
    let micros = |run: &ServerRun| i64::try_from(of(run).as_micros()).unwrap();
    let (a, b) = (
        median(ours.iter().map(micros)),
        median(bare.iter().map(micros)),
    );
    let worst = ours.iter().map(micros).max().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "microseconds")]
    let ratio = a as f64 / b.max(1) as f64;
    println!(
        "{what:<25} {a:>6} µs, bare {b} µs, {:+} µs, ratio {ratio:.2}, worst {worst} µs   ({target})",
        a - b
    );
}

pub(crate) fn median(values: impl Iterator<Item = i64>) -> i64 {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values[values.len() / 2]
}

/// Prints what the list costs in a client's context. Output schemas do not count because the model
/// does not see them.
fn print_list_size(list: &Value) {
    let tools = list.as_array().unwrap();
    let mut total = 0;
    for tool in tools {
        let mut without_output_schema = tool.clone();
        without_output_schema
            .as_object_mut()
            .unwrap()
            .shift_remove("outputSchema");
        let bytes = without_output_schema.to_string().len();
        total += bytes;
        println!(
            "tools/list: {:<13} {bytes:>6} bytes of {TOOL_BUDGET}",
            tool["name"].as_str().unwrap()
        );
    }
    println!(
        "tools/list: {} tools       {total:>6} bytes of {LIST_BUDGET}",
        tools.len()
    );
}

/// The floor: only the SDK, its own transport and one tool.
pub(crate) fn bare_server() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let running = BareServer.serve(rmcp::transport::stdio()).await.unwrap();
        running.waiting().await.unwrap();
    });
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

struct BareServer;

impl ServerHandler for BareServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        Ok(ListToolsResult::with_all_items(vec![Tool::new(
            "tier",
            "Says what can be reached.",
            schema,
        )]))
    }
}
