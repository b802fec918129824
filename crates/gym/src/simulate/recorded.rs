//! Outcomes that were recorded, by the session log or by the gym, as a world to replay in. A model that was not asked
//! for a task is given what it did with another task of the same kind, and a try that was left out, after a first one
//! that was refused, is one that it made at another.

use std::collections::BTreeMap;

use super::{SimulatedTask, SimulatedTier, SimulatedWorld, TryOutcome, TurnOutcome};
use crate::results::GymOutcome;
use supervisor_engine::policy::{TaskClass, TaskSize};
use supervisor_engine::{Attempt, Cause, Entry};

/// Recorded tasks and the chain they are walked with.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedWorld {
    tiers: Vec<SimulatedTier>,
    tasks: Vec<RecordedTask>,
    /// All turns of each tier, for tasks it was not asked for.
    turns: Vec<Vec<(TaskClass, TurnOutcome)>>,
}

#[derive(Debug, Clone, PartialEq)]
struct RecordedTask {
    class: TaskClass,
    turns: Vec<Option<TurnOutcome>>,
}

/// Why nothing can be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NothingRecorded {
    #[error(
        "no outcome of any model of this chain was recorded ({0}); let it work for a while, or run `supervisor gym`"
    )]
    NoTasks(String),
    #[error(
        "nothing was recorded of `{0}`, so what it would have done is unknown; run `supervisor gym --model {0}`"
    )]
    NoTurns(String),
}

impl RecordedWorld {
    fn new(tiers: Vec<SimulatedTier>, tasks: Vec<RecordedTask>) -> Result<Self, NothingRecorded> {
        if tasks.is_empty() {
            let chain: Vec<&str> = tiers.iter().map(|tier| tier.model.as_str()).collect();
            return Err(NothingRecorded::NoTasks(chain.join(", ")));
        }
        let mut turns = vec![Vec::new(); tiers.len()];
        for task in &tasks {
            for (n, turn) in task.turns.iter().enumerate() {
                turns[n].extend(turn.clone().map(|turn| (task.class.clone(), turn)));
            }
        }
        match turns.iter().position(Vec::is_empty) {
            Some(n) => Err(NothingRecorded::NoTurns(tiers[n].model.clone())),
            None => Ok(Self {
                tiers,
                tasks,
                turns,
            }),
        }
    }

    /// How many tasks were recorded.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }
}

impl SimulatedWorld for RecordedWorld {
    fn tiers(&self) -> &[SimulatedTier] {
        &self.tiers
    }

    fn draw(&self, dice: &mut fastrand::Rng) -> SimulatedTask {
        let task = &self.tasks[dice.usize(..self.tasks.len())];
        let fill = |(n, turn): (usize, &Option<TurnOutcome>)| {
            // Drawn in any case, so that what follows does not depend on what is known here.
            let at = dice.u64(..);
            let pick = |fits: &dyn Fn(&TurnOutcome) -> bool| {
                let fitting = || self.turns[n].iter().filter(|(_, turn)| fits(turn));
                let alike: Vec<_> = fitting()
                    .filter(|(class, _)| *class == task.class)
                    .collect();
                let all = if alike.is_empty() {
                    fitting().collect()
                } else {
                    alike
                };
                let place = usize::try_from(at % all.len().max(1) as u64).unwrap_or_default();
                all.get(place).map(|(_, turn)| turn.clone())
            };
            let mut turn = turn.clone().or_else(|| pick(&|_| true)).unwrap_or_default();
            if let [only] = turn.as_slice()
                && only.is_refused
                && let Some(longer) = pick(&|turn| turn.len() > 1)
            {
                turn.extend_from_slice(&longer[1..]);
            }
            turn
        };
        let turns = task.turns.iter().enumerate().map(fill).collect();
        SimulatedTask {
            class: task.class.clone(),
            turns,
        }
    }
}

/// The tasks of a session log, as far as models of this chain were asked.
pub fn recorded_from_log(
    tiers: Vec<SimulatedTier>,
    entries: impl IntoIterator<Item = Entry>,
) -> Result<RecordedWorld, NothingRecorded> {
    let mut tasks = Vec::new();
    for entry in entries {
        let class = entry.class.clone().unwrap_or_else(|| TaskClass {
            skill: entry.skill.clone(),
            language: "any".into(),
            size: TaskSize::Small,
        });
        let turns: Vec<Option<TurnOutcome>> = tiers
            .iter()
            .map(|tier| turn_of(entry.attempts.iter().filter(|a| a.model == tier.model)))
            .collect();
        if turns.iter().any(Option::is_some) {
            tasks.push(RecordedTask { class, turns });
        }
    }
    RecordedWorld::new(tiers, tasks)
}

/// The tasks of gym runs: each task once, with what each model made of it.
pub fn recorded_from_gym(
    tiers: Vec<SimulatedTier>,
    outcomes: impl IntoIterator<Item = GymOutcome>,
) -> Result<RecordedWorld, NothingRecorded> {
    let mut tasks: BTreeMap<(String, u32), RecordedTask> = BTreeMap::new();
    for outcome in outcomes {
        let Some(n) = tiers.iter().position(|tier| tier.model == outcome.model) else {
            continue;
        };
        let Some(turn) = outcome.turn() else { continue };
        let task = tasks
            .entry((outcome.task.clone(), outcome.repeat))
            .or_insert_with(|| RecordedTask {
                class: outcome.class(),
                turns: vec![None; tiers.len()],
            });
        task.turns[n] = Some(turn);
    }
    RecordedWorld::new(tiers, tasks.into_values().collect())
}

/// What one call asked of one tier, if it says something about the model.
fn turn_of<'a>(attempts: impl Iterator<Item = &'a Attempt>) -> Option<TurnOutcome> {
    let tries: TurnOutcome = attempts
        .filter(|attempt| attempt.evidence().is_some())
        .map(|attempt| TryOutcome {
            accepted: attempt.cause == Some(Cause::Accepted),
            is_refused: attempt.cause == Some(Cause::Rejected),
            usd: attempt.cost_usd.unwrap_or_default(),
            seconds: attempt.duration_ms as f64 / 1000.0,
        })
        .collect();
    (!tries.is_empty()).then_some(tries)
}
