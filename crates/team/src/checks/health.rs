//! Checks the pipeline's health: errors, lost workers and duplicate workers reported on the bus.
//! Messages are digested as they come, so that none is read twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::bus::BusMessages;
use super::super::check::CheckContext;
use super::super::definition::CheckDefinition;
use super::super::message::TeamMessage;
use super::super::verdict::{CheckFinding, EvidenceLocation};
use supervisor_text::words;

/// Maximum messages kept as evidence for one thing.
const MAX_EVIDENCE: usize = 8;

/// Summary of all messages up to a position on the bus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BusDigest {
    pub messages: usize,
    pub damaged: usize,
    /// The path of the log, for citations.
    pub log: String,
    errors: BTreeMap<String, Occurrences>,
    tasks: BTreeMap<String, TaskActivity>,
    spawns: BTreeMap<String, Occurrences>,
}

/// How often something occurred, and where first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Occurrences {
    times: usize,
    places: Vec<(usize, String)>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct TaskActivity {
    in_progress: bool,
    /// True if a role published a state for the task.
    #[serde(default)]
    stated: bool,
    last_ts: String,
    line: usize,
    text: String,
}

impl BusDigest {
    /// Adds the messages since the last call.
    pub fn add(&mut self, reading: &BusMessages) {
        self.damaged += reading.damaged;
        // Our own messages tell nothing about the pipeline.
        let others = reading
            .messages
            .iter()
            .zip(&reading.line_numbers)
            .filter(|(message, _)| message.from != "supervisor");
        for (message, line) in others {
            self.messages += 1;
            self.add_message(message, *line);
        }
    }

    fn add_message(&mut self, message: &TeamMessage, line: usize) {
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
        // Keep only tasks that can be cited later. A long bus mentions thousands of others, and the
        // digest is read at every wake.
        if !activity.in_progress && !activity.stated {
            return;
        }
        activity.last_ts.clone_from(&message.ts);
        activity.line = line;
        activity.text = words::cut_end(&message.line(), 160).into_owned();
        self.tasks.insert(task.to_owned(), activity);
    }

    /// Where a task was last mentioned.
    pub fn place_of_task(&self, task: &str) -> EvidenceLocation {
        let activity = self.tasks.get(task);
        EvidenceLocation {
            file: self.log.clone(),
            line: activity.map_or(0, |a| a.line),
            text: activity.map_or_else(|| task.to_owned(), |a| a.text.clone()),
        }
    }

    fn places(&self, sightings: &Occurrences) -> Vec<EvidenceLocation> {
        let place = |(line, text): &(usize, String)| EvidenceLocation {
            file: self.log.clone(),
            line: *line,
            text: text.clone(),
        };
        sightings.places.iter().map(place).collect()
    }

    fn no_messages(&self, check: &CheckDefinition) -> Option<CheckFinding> {
        (self.messages == 0).then(|| {
            let place = EvidenceLocation {
                file: self.log.clone(),
                line: 0,
                text: String::from("empty or missing"),
            };
            check.warn("no messages to analyze", [place])
        })
    }
}

impl Occurrences {
    fn add(&mut self, line: usize, message: &TeamMessage) {
        self.times += 1;
        if self.places.len() < MAX_EVIDENCE {
            self.places
                .push((line, words::cut_end(&message.line(), 160).into_owned()));
        }
    }
}

/// Checks that no role fails repeatedly.
pub(super) fn errors_per_role(context: &CheckContext<'_>, check: &CheckDefinition) -> CheckFinding {
    let digest = context.digest;
    if let Some(finding) = digest.no_messages(check) {
        return finding;
    }
    let limit = context.limits().errors_per_role;
    let over_limit: Vec<_> = digest
        .errors
        .iter()
        .filter(|(_, seen)| seen.times >= limit)
        .collect();
    if over_limit.is_empty() {
        let total: usize = digest.errors.values().map(|seen| seen.times).sum();
        return check.pass(format!(
            "{}, {limit} of one role would be too many",
            words::count(total, "error")
        ));
    }
    let details = words::series(
        over_limit
            .iter()
            .map(|(role, seen)| format!("{role} {}", words::count(seen.times, "error"))),
        5,
    );
    check.fail(
        details,
        over_limit
            .into_iter()
            .flat_map(|(_, seen)| digest.places(seen)),
    )
}

/// Checks that agents working on a task send messages.
pub(super) fn stale_tasks(context: &CheckContext<'_>, check: &CheckDefinition) -> CheckFinding {
    let digest = context.digest;
    if let Some(finding) = digest.no_messages(check) {
        return finding;
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

/// Checks that no task was given to two workers.
pub(super) fn duplicate_spawns(
    context: &CheckContext<'_>,
    check: &CheckDefinition,
) -> CheckFinding {
    let digest = context.digest;
    if let Some(finding) = digest.no_messages(check) {
        return finding;
    }
    let duplicates: Vec<_> = digest
        .spawns
        .iter()
        .filter(|(_, seen)| seen.times > 1)
        .collect();
    if duplicates.is_empty() {
        return check.pass("no worker was started twice");
    }
    let details = words::series(
        duplicates
            .iter()
            .map(|(task, seen)| format!("{task} {} times", seen.times)),
        5,
    );
    check.fail(
        format!("started more than once: {details}"),
        duplicates
            .into_iter()
            .flat_map(|(_, seen)| digest.places(seen)),
    )
}
