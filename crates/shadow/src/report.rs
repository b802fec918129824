//! What the replays say: how many of the real tasks a cheaper model would have done, and the setting that follows.

use std::collections::BTreeMap;

use serde::Serialize;
use supervisor_engine::policy::{Interval, rate_interval};

use crate::store::ShadowTask;

/// Fewer replays of a kind say nothing.
const ENOUGH: usize = 8;
/// A kind of which at least this share is likely to be done is worth switching on.
const PAYS_FROM: f64 = 0.5;
/// Upper bounds of the sizes, in lines of code.
const SIZES: [usize; 3] = [50, 200, usize::MAX];

/// The figures of all recorded tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub recorded: usize,
    pub replayed: usize,
    pub accepted: usize,
    pub rate: Interval,
    pub seconds: f64,
    /// Of the replays whose cost is known.
    pub cost_usd: f64,
    pub cost_unknown: usize,
    /// Tokens that the host used for the tasks that would have been done, where that is known.
    pub host_tokens: u64,
    pub host_known: usize,
    pub host_usd: Option<f64>,
    pub kinds: Vec<ShadowKind>,
}

/// Tasks of one language and size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShadowKind {
    pub language: String,
    /// Fewer lines of code than this; `None` for the largest.
    pub under_lines: Option<usize>,
    pub replayed: usize,
    pub accepted: usize,
    pub rate: Interval,
}

impl Report {
    pub fn of(tasks: &[ShadowTask]) -> Self {
        let replays: Vec<_> = tasks
            .iter()
            .filter_map(|task| Some((task, task.replayed.as_ref()?)))
            .collect();
        let accepted = replays
            .iter()
            .filter(|(_, replayed)| replayed.accepted)
            .count();
        let mut kinds: BTreeMap<(String, usize), (usize, usize)> = BTreeMap::new();
        for (task, replayed) in &replays {
            let size = SIZES
                .iter()
                .position(|bound| task.lines < *bound)
                .unwrap_or(SIZES.len() - 1);
            let counts = kinds.entry((task.language.clone(), size)).or_default();
            counts.0 += 1;
            counts.1 += usize::from(replayed.accepted);
        }
        let hosts: Vec<_> = replays
            .iter()
            .filter(|(_, replayed)| replayed.accepted)
            .filter_map(|(task, _)| task.host)
            .collect();
        Self {
            recorded: tasks.len(),
            replayed: replays.len(),
            accepted,
            rate: rate_interval(accepted, replays.len()),
            seconds: replays.iter().map(|(_, replayed)| replayed.seconds).sum(),
            cost_usd: replays
                .iter()
                .filter_map(|(_, replayed)| replayed.cost_usd)
                .sum(),
            cost_unknown: replays
                .iter()
                .filter(|(_, replayed)| replayed.cost_usd.is_none())
                .count(),
            host_tokens: hosts
                .iter()
                .map(|host| host.tokens_in + host.tokens_out + host.tokens_cached)
                .sum(),
            host_known: hosts.len(),
            host_usd: hosts
                .iter()
                .map(|host| host.cost_usd)
                .sum::<Option<f64>>()
                .filter(|_| !hosts.is_empty()),
            kinds: kinds
                .into_iter()
                .map(|((language, size), (replayed, accepted))| ShadowKind {
                    language,
                    under_lines: Some(SIZES[size]).filter(|bound| *bound != usize::MAX),
                    replayed,
                    accepted,
                    rate: rate_interval(accepted, replayed),
                })
                .collect(),
        }
    }

    /// The setting that follows.
    pub fn advice(&self) -> String {
        let pays: Vec<String> = self
            .kinds
            .iter()
            .filter(|kind| kind.pays())
            .map(ShadowKind::name)
            .collect();
        if !pays.is_empty() {
            return format!("switch on `tdd` for {}", pays.join(" and "));
        }
        match self
            .kinds
            .iter()
            .filter(|kind| kind.replayed < ENOUGH)
            .map(|kind| ENOUGH - kind.replayed)
            .min()
        {
            Some(more) if self.kinds.iter().all(|kind| !kind.is_known_not_to_pay()) => format!(
                "too early to tell: at least {more} more replayed tasks of one kind are needed"
            ),
            None if self.kinds.is_empty() => String::from(
                "too early to tell: nothing was replayed yet; `supervisor shadow run` does it while the machine is idle",
            ),
            _ => String::from(
                "do not delegate these tasks to this model; use `prove` alone, or record on and try a stronger local model",
            ),
        }
    }

    pub fn to_text(&self) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let mut text = format!(
            "{} recorded, {} replayed\n",
            supervisor_text::words::count(self.recorded, "task"),
            self.replayed
        );
        if self.replayed > 0 {
            text += &format!(
                "of {} real tasks the local model would have done {} ({} to {}), in {:.1} minutes, for ${:.2}{}\n",
                self.replayed,
                self.accepted,
                percent(self.rate.low),
                percent(self.rate.high),
                self.seconds / 60.0,
                self.cost_usd,
                match self.cost_unknown {
                    0 => String::new(),
                    n => format!(" ({n} of unknown cost)"),
                }
            );
        }
        if self.host_known > 0 {
            let usd = self
                .host_usd
                .map(|usd| format!(", ${usd:.2}"))
                .unwrap_or_default();
            text += &format!(
                "Claude used {} tokens{usd} for {} of those that would have been done\n",
                self.host_tokens, self.host_known
            );
        }
        for kind in &self.kinds {
            text += &format!(
                "  {:<28} {} of {} ({} to {})\n",
                kind.name(),
                kind.accepted,
                kind.replayed,
                percent(kind.rate.low),
                percent(kind.rate.high)
            );
        }
        text + &format!("advice: {}\n", self.advice())
    }
}

impl ShadowKind {
    pub fn name(&self) -> String {
        match self.under_lines {
            Some(lines) => format!("{} under {lines} lines", self.language),
            None => format!("{} of {} lines or more", self.language, SIZES[1]),
        }
    }

    fn pays(&self) -> bool {
        self.replayed >= ENOUGH && self.rate.low >= PAYS_FROM
    }

    fn is_known_not_to_pay(&self) -> bool {
        self.replayed >= ENOUGH && self.rate.high < PAYS_FROM
    }
}
