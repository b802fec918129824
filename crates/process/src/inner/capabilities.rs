//! Limits the capabilities of root inside the sandbox. An ordinary user has none to lose: exec
//! drops whatever the user namespace gave.

use rustix::thread::{
    CapabilitySet, capability_is_in_bounding_set, remove_capability_from_bounding_set,
};

use super::SandboxError;

/// What root needs for ordinary work on its own files. None of these escapes the sandbox.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Removes all other capabilities from the bounding set.
pub(super) fn drop_dangerous() -> Result<(), SandboxError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        // The kernel returns an error beyond its last capability.
        let Ok(present) = capability_is_in_bounding_set(capability) else {
            break;
        };
        if present && !KEPT.contains(capability) {
            remove_capability_from_bounding_set(capability)
                .map_err(SandboxError::at("dropping capabilities"))?;
        }
    }
    Ok(())
}
