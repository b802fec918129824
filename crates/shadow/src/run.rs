//! Replays the recorded tasks, one after another, while the machine is idle and the budget lasts.

use std::future::Future;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use supervisor_engine::Cause;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::machine::{Machine, MachineState};
use crate::store::{ShadowStore, ShadowTask, copy_tree};

/// How often the machine is looked at while a task is replayed.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// And while it is busy.
const WAIT_EVERY: Duration = Duration::from_secs(20);
/// Directories of installed packages that a copy borrows from the project. Tests may not write there.
const PACKAGES: [&str; 3] = ["node_modules", ".venv", "venv"];

/// What came of a replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// The model whose work was accepted, or the last one asked.
    pub model: String,
    pub accepted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    pub seconds: f64,
    /// `None`: unknown.
    pub cost_usd: Option<f64>,
}

/// Asks models to do a task on a copy of the project.
pub trait Replay: Send {
    /// `None` if it was stopped. Once `stop` is cancelled it returns soon and leaves no process behind.
    fn replay(
        &mut self,
        task: &ShadowTask,
        dir: &Path,
        budget_usd: f64,
        stop: &CancellationToken,
    ) -> impl Future<Output = Result<Option<Replayed>, String>> + Send;
}

/// Limits of one run.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    pub budget_usd: f64,
    pub time: Duration,
    /// Wait while the machine is busy, instead of ending.
    pub waits: bool,
    /// Run whatever the machine is needed for.
    pub ignores_machine: bool,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEnd {
    Done,
    Money,
    Time,
    /// The machine is needed for something else.
    Machine(MachineState),
    Interrupted,
    /// Models could not be asked: `supervisor doctor` says why.
    Failed(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary {
    pub end: RunEnd,
    pub replayed: usize,
    pub accepted: usize,
    pub given_up: usize,
    pub spent_usd: f64,
}

/// Replays tasks that were not replayed yet, oldest first. A task that has to be given up stays for the next run.
pub async fn run(
    store: &ShadowStore,
    replay: &mut impl Replay,
    machine: &mut dyn Machine,
    limits: RunLimits,
    stop: &CancellationToken,
) -> io::Result<RunSummary> {
    let mut always_idle = AlwaysIdle;
    let machine: &mut dyn Machine = match limits.ignores_machine {
        true => &mut always_idle,
        false => machine,
    };
    let until = Instant::now() + limits.time;
    let mut summary = RunSummary {
        end: RunEnd::Done,
        replayed: 0,
        accepted: 0,
        given_up: 0,
        spent_usd: 0.0,
    };
    let pending = store
        .tasks()
        .into_iter()
        .filter(|task| task.replayed.is_none());
    for mut task in pending {
        loop {
            if let Some(end) = wait_until_idle(machine, limits, until, stop).await {
                summary.end = end;
                return Ok(summary);
            }
            let left = limits.budget_usd - summary.spent_usd;
            if limits.budget_usd > 0.0 && left <= 1e-9 {
                summary.end = RunEnd::Money;
                return Ok(summary);
            }
            match replay_one(store, replay, machine, &task, left.max(0.0), until, stop).await? {
                Attempted::Replayed(replayed) => {
                    summary.replayed += 1;
                    summary.accepted += usize::from(replayed.accepted);
                    summary.spent_usd += replayed.cost_usd.unwrap_or_default();
                    task.replayed = Some(replayed);
                    store.update(&task)?;
                    break;
                }
                Attempted::GivenUp => summary.given_up += 1,
                Attempted::Failed(why) => {
                    summary.end = RunEnd::Failed(why);
                    return Ok(summary);
                }
            }
        }
    }
    Ok(summary)
}

struct AlwaysIdle;

impl Machine for AlwaysIdle {
    fn state(&mut self) -> MachineState {
        MachineState::Idle
    }
}

enum Attempted {
    Replayed(Replayed),
    GivenUp,
    Failed(String),
}

/// Returns why the run is over, if it is.
async fn wait_until_idle(
    machine: &mut dyn Machine,
    limits: RunLimits,
    until: Instant,
    stop: &CancellationToken,
) -> Option<RunEnd> {
    loop {
        if stop.is_cancelled() {
            return Some(RunEnd::Interrupted);
        }
        if Instant::now() >= until {
            return Some(RunEnd::Time);
        }
        // One look says nothing yet.
        let mut state = machine.state();
        if state == MachineState::Unknown {
            sleep(LOOK_EVERY).await;
            state = machine.state();
        }
        match state {
            MachineState::Idle => return None,
            other if !limits.waits => return Some(RunEnd::Machine(other)),
            _ => {
                let later = (Instant::now() + WAIT_EVERY).min(until);
                tokio::select! {
                    () = sleep_until(later) => {}
                    () = stop.cancelled() => {}
                }
            }
        }
    }
}

async fn replay_one(
    store: &ShadowStore,
    replay: &mut impl Replay,
    machine: &mut dyn Machine,
    task: &ShadowTask,
    budget_usd: f64,
    until: Instant,
    stop: &CancellationToken,
) -> io::Result<Attempted> {
    let dir = tempfile::Builder::new()
        .prefix("supervisor-shadow-")
        .tempdir()?;
    let root = dir.path().canonicalize()?;
    copy_tree(&store.tree(task), &root)?;
    for name in PACKAGES {
        let packages = task.project_root.join(name);
        if packages.is_dir() && !root.join(name).exists() {
            std::os::unix::fs::symlink(packages, root.join(name))?;
        }
    }
    let give_up = stop.child_token();
    let work = replay.replay(task, &root, budget_usd, &give_up);
    tokio::pin!(work);
    loop {
        tokio::select! {
            ended = &mut work => {
                return Ok(match ended {
                    Ok(Some(replayed)) => Attempted::Replayed(replayed),
                    Ok(None) => Attempted::GivenUp,
                    Err(why) => Attempted::Failed(why),
                });
            }
            () = sleep(LOOK_EVERY), if !give_up.is_cancelled() => {
                let is_needed = matches!(machine.state(), MachineState::Busy | MachineState::OnBattery);
                if is_needed || Instant::now() >= until {
                    give_up.cancel();
                }
            }
        }
    }
}
