//! `calls`: overhead of the engine for a call whose models answer at once, with all safety features
//! on: shim, process sweep, redaction, budgets, breaker and log. It alternates with two lower
//! bounds that do only what is unavoidable: the same requests over one connection, the same
//! programs (spawned directly or through the shim) and one log line on disk.
//!
//! As in the server, every call is a task of the runtime. Concurrent calls have separate sessions.
//!
//! a: a local tier accepted by the verifier (1 POST, 1 program). b: two rejected tiers, then an
//! agent (2 POST, 3 programs). c: an agent alone (1 program).

#[path = "calls/environment.rs"]
mod environment;
#[path = "calls/floor.rs"]
mod floor;

use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use supervisor_engine::project_access::Site;
use supervisor_process::Launcher;
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{Mode, Scope as Undo, SnapshotLimits, Workspace};
use tokio_util::sync::CancellationToken;

use environment::BenchEnvironment;
use floor::{Floor, Spawn};

/// First argument that makes this program act as the agent.
pub(crate) const AGENT: &str = "--print";

const ROUNDS: usize = 150;
const IN_FLIGHT: usize = 32;
const ROUNDS_IN_FLIGHT: usize = 8;
/// How often each kind is measured.
const TURNS: usize = 3;

/// What a call does, and its target overhead above the shim floor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) chain: &'static str,
    /// The model name decides whether it accepts.
    pub(crate) verifier: &'static str,
    pub(crate) posts: usize,
    pub(crate) programs: usize,
    target: Duration,
}

const SCENARIOS: [Scenario; 3] = [
    Scenario {
        name: "a",
        chain: "\"gate/one\"",
        verifier: "says-yes",
        posts: 1,
        programs: 1,
        target: Duration::from_micros(150),
    },
    Scenario {
        name: "b",
        chain: "\"gate/one\", \"gate/two\", \"cloud\"",
        verifier: "says-no",
        posts: 2,
        programs: 3,
        target: Duration::from_micros(400),
    },
    Scenario {
        name: "c",
        chain: "\"cloud\"",
        verifier: "says-no",
        posts: 0,
        programs: 1,
        target: Duration::from_micros(150),
    },
];

pub(crate) fn run() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let gate: Arc<str> = environment::gate().into();
    println!(
        "one after the other, p50 in µs       plain floor   shim floor       engine   above the shim floor"
    );
    for scenario in SCENARIOS {
        let setting = BenchEnvironment::new(scenario, &gate);
        runtime
            .block_on(runtime.spawn(sequential(setting, Arc::clone(&gate))))
            .unwrap();
    }
    println!("{IN_FLIGHT} in flight, calls a second         plain floor   shim floor       engine");
    for scenario in SCENARIOS {
        let setting = Arc::new(BenchEnvironment::new(scenario, &gate));
        runtime.block_on(in_flight(&setting, &gate));
    }
    runtime.block_on(print_separate_costs(&BenchEnvironment::new(
        SCENARIOS[2],
        &gate,
    )));
}

async fn sequential(setting: BenchEnvironment, gate: Arc<str>) {
    let Scenario { name, target, .. } = setting.scenario;
    let mut floor = Floor::new(setting.scenario, &gate).await;
    let (mut plain, mut shim, mut engine) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS + 5 {
        // Wait for the previous one to end completely: a shim that is still exiting takes a core.
        let a = timed(floor.once(Spawn::Plain)).await;
        let b = timed(floor.once(Spawn::Shim)).await;
        floor.settled().await;
        let c = timed(setting.call("bench")).await;
        setting.settled().await;
        // The first rounds fill caches.
        if round >= 5 {
            plain.push(a);
            shim.push(b);
            engine.push(c);
        }
    }
    // Compare within each round, so that load on the machine affects both.
    let above =
        |of: fn(&Cost) -> i64| median_i64(engine.iter().zip(&shim).map(|(a, b)| of(a) - of(b)));
    let took = |costs: &[Cost]| median_i64(costs.iter().map(|cost| micros(cost.took)));
    println!(
        "{name}                                    {:>11} {:>12} {:>12}   {:>+6}   (target: {:+}), own CPU {:+}",
        took(&plain),
        took(&shim),
        took(&engine),
        above(|cost| micros(cost.took)),
        micros(target),
        above(|cost| micros(cost.cpu)),
    );
}

async fn in_flight(setting: &Arc<BenchEnvironment>, gate: &str) {
    let calls = IN_FLIGHT * ROUNDS_IN_FLIGHT;
    let kinds = [Some(Spawn::Plain), Some(Spawn::Shim), None];
    let mut times = kinds.map(|_| Vec::new());
    for _ in 0..TURNS {
        for (kind, times) in kinds.iter().zip(&mut times) {
            let mut floors = Vec::new();
            for _ in 0..IN_FLIGHT {
                floors.push(Floor::new(setting.scenario, gate).await);
            }
            let started = Instant::now();
            let mut tasks = tokio::task::JoinSet::new();
            for (n, mut floor) in floors.into_iter().enumerate() {
                let (setting, kind) = (Arc::clone(setting), *kind);
                tasks.spawn(async move {
                    for _ in 0..ROUNDS_IN_FLIGHT {
                        match kind {
                            Some(spawn) => floor.once(spawn).await,
                            None => setting.call(&format!("bench-{n}")).await,
                        }
                    }
                });
            }
            tasks.join_all().await;
            times.push(started.elapsed());
        }
    }
    let [plain, shim, engine] =
        times.map(|mut times| calls as f64 / median(&mut times).as_secs_f64());
    println!(
        "{}                                    {plain:>11.0} {shim:>12.0} {engine:>12.0}   {:.2} × the shim floor",
        setting.scenario.name,
        engine / shim
    );
}

/// Costs that are not the engine's own or not part of a text-only call.
async fn print_separate_costs(setting: &BenchEnvironment) {
    let mut log: Vec<_> = (0..ROUNDS).map(|_| setting.line()).collect();
    println!(
        "in each, floors too: one line in the log, on disk {:>6} µs",
        micros(median(&mut log))
    );
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    std::fs::create_dir(&project).unwrap();
    for n in 0..100 {
        std::fs::write(project.join(format!("f{n}")), "x".repeat(10_000)).unwrap();
    }
    let state = StateDir::at(dir.path().join("state")).unwrap();
    let (launcher, stop) = (launcher(), CancellationToken::new());
    let mut times = Vec::new();
    for _ in 0..30 {
        let workspace = Workspace::open(&project, SnapshotLimits::default(), &state).unwrap();
        let cost = timed(async {
            let lease = workspace
                .lock(Mode::Exclusive, "bench", Duration::from_secs(10), &stop)
                .await
                .unwrap();
            let site = Site::open_in_place(lease, &launcher).await.unwrap();
            site.discard(Undo::Applied).await.unwrap();
        })
        .await;
        times.push(cost.took);
        launcher.wait_for_all().await;
    }
    println!(
        "apart: lock, arm, watch and leave 100 files       {:>6} µs",
        micros(median(&mut times))
    );
}

/// The agent: reads its prompt and answers at once, like `claude --print`.
pub(crate) fn agent() -> ExitCode {
    let mut question = Vec::new();
    std::io::stdin().read_to_end(&mut question).unwrap();
    let args: Vec<String> = std::env::args().collect();
    let model = args
        .iter()
        .position(|arg| arg == "--model")
        .map_or("", |at| args[at + 1].as_str());
    let answer = match model {
        "says-yes" => json!({"accept": true, "feedback": ""}),
        "says-no" => json!({"accept": false, "feedback": "not good enough"}),
        _ => json!({"text": "the answer of the cloud"}),
    };
    let init = json!({"type": "system", "subtype": "init", "model": model});
    let usage = json!({"inputTokens": 9, "outputTokens": 9, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0,
        "costUSD": 0.001});
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "num_turns": 1,
        "result": answer.to_string(), "stop_reason": "tool_use", "session_id": "s", "total_cost_usd": 0.001,
        "usage": {"input_tokens": 9, "output_tokens": 9}, "modelUsage": {model: usage}, "permission_denials": [],
        "structured_output": answer, "terminal_reason": "completed"});
    std::io::stdout()
        .write_all(format!("{init}\n{result}\n").as_bytes())
        .unwrap();
    ExitCode::SUCCESS
}

pub(crate) fn launcher() -> Launcher {
    Launcher::at(crate::program())
}

/// Wall time, and CPU time of this process. This includes the gateway and both floors but no child
/// processes.
#[derive(Debug, Clone, Copy)]
struct Cost {
    took: Duration,
    cpu: Duration,
}

async fn timed(work: impl Future<Output = ()>) -> Cost {
    let (started, before) = (Instant::now(), cpu());
    work.await;
    Cost {
        took: started.elapsed(),
        cpu: cpu().saturating_sub(before),
    }
}

fn cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(spent).unwrap()
}

fn median_i64(values: impl Iterator<Item = i64>) -> i64 {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values[values.len() / 2]
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
