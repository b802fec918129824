//! Replays the recorded tasks, one after another, while the machine is idle and the budget lasts.

use std::fs;
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
/// How often a run begins with a task that it has to stop.
const MAX_STARTS: usize = 2;
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

/// How a replay ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplayEnd {
    Done(Replayed),
    /// It was stopped; what it had cost until then.
    Stopped {
        cost_usd: Option<f64>,
    },
    /// Nothing was asked, because the settings of the project forbid it.
    Refused(String),
}

/// Asks models to do a task on a copy of the project.
pub trait Replay: Send {
    /// Once `stop` is cancelled it returns soon and leaves no process behind.
    fn replay(
        &mut self,
        task: &ShadowTask,
        dir: &Path,
        budget_usd: f64,
        stop: &CancellationToken,
    ) -> impl Future<Output = Result<ReplayEnd, String>> + Send;
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
    /// A model with a budget did not say what it cost.
    UnknownCost,
    Time,
    /// Another run goes on.
    OtherRun,
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
    /// Tasks whose project forbids to ask the model, and why the last of them does.
    pub refused: Vec<String>,
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
        refused: Vec::new(),
        spent_usd: 0.0,
    };
    let Some(_lock) = store.lock()? else {
        summary.end = RunEnd::OtherRun;
        return Ok(summary);
    };
    let pending = store
        .tasks()
        .into_iter()
        .filter(|task| task.replayed.is_none());
    for mut task in pending {
        for _ in 0..MAX_STARTS {
            if let Some(end) = wait_until_idle(machine, limits, until, stop).await {
                summary.end = end;
                return Ok(summary);
            }
            let left = limits.budget_usd - summary.spent_usd;
            if limits.budget_usd > 0.0 && left <= 1e-9 {
                summary.end = RunEnd::Money;
                return Ok(summary);
            }
            let ended =
                replay_one(store, replay, machine, &task, left.max(0.0), until, stop).await?;
            let cost_usd = match ended {
                Ok(ReplayEnd::Done(replayed)) => {
                    let cost_usd = replayed.cost_usd;
                    summary.replayed += 1;
                    summary.accepted += usize::from(replayed.accepted);
                    task.replayed = Some(replayed);
                    store.update(&task)?;
                    cost_usd
                }
                Ok(ReplayEnd::Stopped { cost_usd }) => {
                    summary.given_up += 1;
                    cost_usd
                }
                Ok(ReplayEnd::Refused(why)) => {
                    summary.refused.push(why);
                    break;
                }
                Err(why) => {
                    summary.end = RunEnd::Failed(why);
                    return Ok(summary);
                }
            };
            summary.spent_usd += cost_usd.unwrap_or_default();
            if cost_usd.is_none() && limits.budget_usd > 0.0 {
                summary.end = RunEnd::UnknownCost;
                return Ok(summary);
            }
            if task.replayed.is_some() {
                break;
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
) -> io::Result<Result<ReplayEnd, String>> {
    let root = store.copy(task);
    // An earlier try of this run may have been stopped.
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
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
                fs::remove_dir_all(&root)?;
                return Ok(ended);
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
