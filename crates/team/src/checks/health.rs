//! Is the pipeline itself well? What the bus says about errors, lost workers and doubled ones, gathered as messages
//! come, so that no message is read twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::bus::BusReading;
use super::super::check::CheckContext;
use super::super::definition::CheckDefinition;
use super::super::message::TeamMessage;
use super::super::verdict::{CheckFinding, EvidencePlace};
use supervisor_text::words;

/// Messages kept as evidence for one thing.
const KEPT: usize = 8;

/// What all messages up to a place on the bus amount to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BusDigest {
    pub messages: usize,
    pub damaged: usize,
    /// The path of the log, for citations.
    pub log: String,
    errors: BTreeMap<String, Sightings>,
    tasks: BTreeMap<String, TaskActivity>,
    spawns: BTreeMap<String, Sightings>,
}

/// How often something was seen, and where first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Sightings {
    times: usize,
    places: Vec<(usize, String)>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct TaskActivity {
    in_progress: bool,
    /// A role said what it made of it.
    #[serde(default)]
    stated: bool,
    last_ts: String,
    line: usize,
    text: String,
}

impl BusDigest {
    /// Takes in what came since the last time.
    pub fn take_in(&mut self, reading: &BusReading) {
        self.damaged += reading.damaged;
        // What we said ourselves tells nothing about the pipeline.
        let others = reading
            .messages
            .iter()
            .zip(&reading.places)
            .filter(|(message, _)| message.from != "supervisor");
        for (message, line) in others {
            self.messages += 1;
            self.take_message(message, *line);
        }
    }

    fn take_message(&mut self, message: &TeamMessage, line: usize) {
        if message.kind == "error" {
            self.errors
                .entry(message.from.clone())
                .or_default()
                .add(line, message);
        }
        if message.kind == "fast_advance" {
            let named = ["spawned", "next_task", "task_id", "worker"]
                .iter()
                .find_map(|field| message.text(field));
            if let Some(task) = named {
                self.spawns
                    .entry(task.to_owned())
                    .or_default()
                    .add(line, message);
            }
        }
        let Some(task) = message.text("task_id") else {
            return;
        };
        let mut activity = self.tasks.remove(task).unwrap_or_default();
        activity.stated |= message.kind == "state_update";
        match message.text("status").unwrap_or_default() {
            "in_progress" | "running" | "started" => activity.in_progress = true,
            "" => {}
            _ => activity.in_progress = false,
        }
        // Only these can be cited later. A long bus speaks of thousands of others, and what is remembered is read at
        // every wake.
        if !activity.in_progress && !activity.stated {
            return;
        }
        activity.last_ts.clone_from(&message.ts);
        activity.line = line;
        activity.text = words::cut_end(&message.line(), 160).into_owned();
        self.tasks.insert(task.to_owned(), activity);
    }

    /// Where a task was last spoken of.
    pub fn place_of_task(&self, task: &str) -> EvidencePlace {
        let activity = self.tasks.get(task);
        EvidencePlace {
            file: self.log.clone(),
            line: activity.map_or(0, |a| a.line),
            text: activity.map_or_else(|| task.to_owned(), |a| a.text.clone()),
        }
    }

    fn places(&self, sightings: &Sightings) -> Vec<EvidencePlace> {
        let place = |(line, text): &(usize, String)| EvidencePlace {
            file: self.log.clone(),
            line: *line,
            text: text.clone(),
        };
        sightings.places.iter().map(place).collect()
    }

    fn silence(&self, check: &CheckDefinition) -> Option<CheckFinding> {
        (self.messages == 0).then(|| {
            let place = EvidencePlace {
                file: self.log.clone(),
                line: 0,
                text: String::from("empty or missing"),
            };
            check.warn("no messages to analyze", [place])
        })
    }
}

impl Sightings {
    fn add(&mut self, line: usize, message: &TeamMessage) {
        self.times += 1;
        if self.places.len() < KEPT {
            self.places
                .push((line, words::cut_end(&message.line(), 160).into_owned()));
        }
    }
}

/// No role fails again and again.
pub(super) fn errors_per_role(context: &CheckContext<'_>, check: &CheckDefinition) -> CheckFinding {
    let digest = context.digest;
    if let Some(silent) = digest.silence(check) {
        return silent;
    }
    let limit = context.limits().errors_per_role;
    let bad: Vec<_> = digest
        .errors
        .iter()
        .filter(|(_, seen)| seen.times >= limit)
        .collect();
    if bad.is_empty() {
        let total: usize = digest.errors.values().map(|seen| seen.times).sum();
        return check.pass(format!(
            "{}, {limit} of one role would be too many",
            words::count(total, "error")
        ));
    }
    let details = words::series(
        bad.iter()
            .map(|(role, seen)| format!("{role} {}", words::count(seen.times, "error"))),
        5,
    );
    check.fail(
        details,
        bad.into_iter().flat_map(|(_, seen)| digest.places(seen)),
    )
}

/// An agent that works on a task sends messages.
pub(super) fn stale_tasks(context: &CheckContext<'_>, check: &CheckDefinition) -> CheckFinding {
    let digest = context.digest;
    if let Some(silent) = digest.silence(check) {
        return silent;
    }
    let limit = context.limits().stale_after_s;
    let age = |ts: &str| {
        ts.parse::<jiff::Timestamp>()
            .ok()
            .map(|at| context.now_s.saturating_sub(at.as_second()))
    };
    let running = digest
        .tasks
        .iter()
        .filter(|(task, activity)| activity.in_progress && !task.starts_with("CHECKPOINT-"));
    let stale: Vec<_> = running
        .filter_map(|(task, activity)| Some((task, age(&activity.last_ts)?)))
        .filter(|(_, age)| u64::try_from(*age).is_ok_and(|age| age > limit))
        .collect();
    if stale.is_empty() {
        return check.pass(format!(
            "every task in progress was heard of in the last {limit} s"
        ));
    }
    let details = words::series(
        stale
            .iter()
            .map(|(task, age)| format!("{task} silent for {age} s")),
        5,
    );
    check.fail(
        format!("{details} (limit {limit} s)"),
        stale.iter().map(|(task, _)| digest.place_of_task(task)),
    )
}

/// No task was given to two workers.
pub(super) fn duplicate_spawns(
    context: &CheckContext<'_>,
    check: &CheckDefinition,
) -> CheckFinding {
    let digest = context.digest;
    if let Some(silent) = digest.silence(check) {
        return silent;
    }
    let twice: Vec<_> = digest
        .spawns
        .iter()
        .filter(|(_, seen)| seen.times > 1)
        .collect();
    if twice.is_empty() {
        return check.pass("no worker was started twice");
    }
    let details = words::series(
        twice
            .iter()
            .map(|(task, seen)| format!("{task} {} times", seen.times)),
        5,
    );
    check.fail(
        format!("started more than once: {details}"),
        twice.into_iter().flat_map(|(_, seen)| digest.places(seen)),
    )
}
