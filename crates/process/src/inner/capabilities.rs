//! What the superuser keeps inside the walls. An ordinary user has nothing to lose: becoming the command ends whatever
//! a user namespace gave.

use rustix::thread::{
    CapabilitySet, capability_is_in_bounding_set, remove_capability_from_bounding_set,
};

use super::Obstacle;

/// Ordinary work of root in its own files; nothing that reaches past a wall.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Takes all others from the set that bounds what a program of root's may get.
pub(super) fn drop_dangerous() -> Result<(), Obstacle> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        // The kernel knows fewer than 64, and says so.
        let Ok(present) = capability_is_in_bounding_set(capability) else {
            break;
        };
        if present && !KEPT.contains(capability) {
            remove_capability_from_bounding_set(capability)
                .map_err(Obstacle::at("dropping capabilities"))?;
        }
    }
    Ok(())
}
