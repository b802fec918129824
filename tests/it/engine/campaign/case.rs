//! One case: a row of each table, how files are worked on, and what happens to the call meanwhile. It has a label from
//! which it can be run again, alone.

use std::fmt;

use super::faults::{AGENT, BEFORE, GATEWAY, GatewayFault, ScriptFault, TESTS};

#[derive(Clone, Copy)]
pub(super) struct FaultCase {
    pub(super) tool: &'static str,
    pub(super) strategy: &'static str,
    pub(super) gateway: &'static GatewayFault,
    pub(super) agent: &'static ScriptFault,
    pub(super) tests: &'static ScriptFault,
    pub(super) interruption: Interruption,
    /// The progress message after which the call is interrupted.
    pub(super) step: u32,
    /// And how long after it.
    pub(super) delay_ms: u64,
}

/// What happens to the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    None,
    Cancelled,
    /// The server alone, by SIGKILL.
    ServerKilled,
    /// The server and everything below it.
    AllKilled,
    InputClosed,
    /// Everything below the server: shims, guards, agents, tests.
    ChildrenKilled,
    /// The same by SIGSTOP.
    ChildrenStopped,
    /// The shims alone, so that what they watch over is left without them.
    ShimsKilled,
    /// All that is below the shims: what is about to become a sandboxed program, and the programs.
    InnersKilled,
}

const TOOLS: &[&str] = &["green", "green", "green", "green", "green", "review"];
const STRATEGIES: &[&str] = &["auto", "in-place"];
/// Each with its share of the cases. A stopped shim costs twenty seconds before it is given up.
const INTERRUPTIONS: &[(Interruption, &str, usize)] = &[
    (Interruption::None, "whole", 9),
    (Interruption::Cancelled, "cancelled", 2),
    (Interruption::ServerKilled, "killed", 2),
    (Interruption::AllKilled, "all-killed", 2),
    (Interruption::InputClosed, "input-closed", 2),
    (Interruption::ChildrenKilled, "children-killed", 2),
    (Interruption::ChildrenStopped, "children-stopped", 1),
    // Drawn by the campaign of kills alone.
    (Interruption::ShimsKilled, "shims-killed", 0),
    (Interruption::InnersKilled, "inners-killed", 0),
];
/// What the campaign of kills draws.
const KILLS: &[Interruption] = &[
    Interruption::ServerKilled,
    Interruption::AllKilled,
    Interruption::ChildrenKilled,
    Interruption::ShimsKilled,
    Interruption::InnersKilled,
];
/// A call that asks both tiers sends about as many progress messages.
const STEPS: u32 = 9;
/// Longer than what lies between two of them, tests and agents that hang aside.
const DELAYS_MS: u64 = 150;

impl Interruption {
    fn name(self) -> &'static str {
        INTERRUPTIONS
            .iter()
            .find(|(known, ..)| *known == self)
            .expect("every one is in the table")
            .1
    }

    /// The server does not live to answer.
    pub(super) fn is_kill(self) -> bool {
        matches!(self, Self::ServerKilled | Self::AllKilled)
    }

    pub(super) fn wants_reply(self) -> bool {
        !self.is_kill() && self != Self::Cancelled
    }
}

impl fmt::Display for FaultCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tool,
            strategy,
            gateway,
            agent,
            tests,
            interruption,
            step,
            delay_ms,
        } = self;
        let ending = interruption.name();
        write!(
            f,
            "{tool}/{strategy}/{}/{}/{}/{ending}/{step}",
            gateway.name, agent.name, tests.name
        )?;
        if *delay_ms > 0 {
            write!(f, "+{delay_ms}")
        } else {
            Ok(())
        }
    }
}

impl FaultCase {
    /// The case of a label.
    pub(super) fn parse(label: &str) -> Option<Self> {
        let parts: Vec<&str> = label.split('/').collect();
        let [tool, strategy, gateway, agent, tests, ending, moment] = parts[..] else {
            return None;
        };
        let (step, delay) = moment.split_once('+').unwrap_or((moment, "0"));
        Some(Self {
            tool: TOOLS.iter().find(|known| **known == tool)?,
            strategy: STRATEGIES.iter().find(|known| **known == strategy)?,
            gateway: GATEWAY.iter().find(|row| row.name == gateway)?,
            agent: AGENT.iter().find(|row| row.name == agent)?,
            tests: TESTS.iter().find(|row| row.name == tests)?,
            interruption: INTERRUPTIONS.iter().find(|(_, name, _)| *name == ending)?.0,
            step: step.parse().ok()?,
            delay_ms: delay.parse().ok()?,
        })
    }

    /// Each class that the case belongs to, for the summary.
    pub(super) fn classes(&self) -> [(&'static str, &'static str); 6] {
        [
            ("tool", self.tool),
            ("strategy", self.strategy),
            ("call", self.interruption.name()),
            ("gateway", self.gateway.name),
            ("agent", self.agent.name),
            ("tests", self.tests.name),
        ]
    }

    pub(super) fn test_script(&self) -> String {
        self.tests.script.replace("$before", BEFORE)
    }
}

/// Draws cases. Every row of a table comes once before any comes again, so that few cases reach all rows.
pub(super) struct Dealer {
    dice: fastrand::Rng,
    decks: [Vec<usize>; 8],
}

impl Dealer {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            dice: fastrand::Rng::with_seed(seed),
            decks: Default::default(),
        }
    }

    pub(super) fn deal(&mut self) -> FaultCase {
        let shares: Vec<Interruption> = INTERRUPTIONS
            .iter()
            .flat_map(|(one, _, share)| std::iter::repeat_n(*one, *share))
            .collect();
        FaultCase {
            tool: TOOLS[self.draw(0, TOOLS.len())],
            strategy: STRATEGIES[self.draw(1, STRATEGIES.len())],
            gateway: &GATEWAY[self.draw(2, GATEWAY.len())],
            agent: &AGENT[self.draw(3, AGENT.len())],
            tests: &TESTS[self.draw(4, TESTS.len())],
            interruption: shares[self.draw(5, shares.len())],
            step: 1 + u32::try_from(self.draw(6, STEPS as usize)).expect("a small number"),
            delay_ms: 0,
        }
    }

    /// A case in which something is killed, at any moment.
    pub(super) fn deal_kill(&mut self) -> FaultCase {
        let interruption = KILLS[self.draw(7, KILLS.len())];
        let delay_ms = self.dice.u64(0..DELAYS_MS);
        FaultCase {
            interruption,
            delay_ms,
            ..self.deal()
        }
    }

    fn draw(&mut self, deck: usize, rows: usize) -> usize {
        if self.decks[deck].is_empty() {
            self.decks[deck] = (0..rows).collect();
            self.dice.shuffle(&mut self.decks[deck]);
        }
        self.decks[deck].pop().expect("it was filled")
    }
}
