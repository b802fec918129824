//! When is a model not worth its turn? Knows rates. Does not know which setting to change.

use serde::Serialize;

use super::SkillStats;

/// Fewer judged answers than this say nothing.
pub const ENOUGH: usize = 10;
/// A model that is accepted less often than this costs more than it brings.
pub const ADVISED_BELOW: f64 = 0.3;

/// A model that is mostly wrong at one skill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    pub skill: String,
    pub model: String,
    pub accepted: usize,
    /// Accepted and rejected together; at least [`ENOUGH`].
    pub judged: usize,
    /// Below [`ADVISED_BELOW`].
    pub accept_rate: f64,
}

pub(super) fn of(skill: &SkillStats) -> impl Iterator<Item = Advice> {
    skill.models.iter().filter_map(|model| {
        let judged = model.accepted + model.rejected;
        let accept_rate = model
            .accept_rate
            .filter(|rate| judged >= ENOUGH && *rate < ADVISED_BELOW)?;
        Some(Advice {
            skill: skill.skill.clone(),
            model: model.model.clone(),
            accepted: model.accepted,
            judged,
            accept_rate,
        })
    })
}
