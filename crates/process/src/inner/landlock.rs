//! The unprivileged part of the sandbox: Landlock rules for reading and writing files and, on
//! recent kernels, no signals to processes and no abstract sockets outside.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, LandlockStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};

use super::super::sandbox::{SandboxLevel, SandboxPlan};
use super::SandboxError;

/// How secrets are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hiding {
    /// Mounts already cover them.
    ByMasks,
    /// Landlock allows reading only paths that do not lead to one.
    ByRules,
}

/// Devices that any program may write to.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];
/// Shared memory between the processes of one test run.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// `layered` are directories with an overlay: writes there change nothing outside.
pub(super) fn restrict(
    sandbox: &SandboxPlan,
    layered: &[PathBuf],
    hiding: Hiding,
) -> Result<(), SandboxError> {
    let failed = |error: landlock::RulesetError| SandboxError::new("Landlock", error);
    // Ioctls on devices are not restricted: the dangerous ones need a writable device.
    let all = AccessFs::from_all(ABI::V4);
    let read = AccessFs::from_read(ABI::V4);
    let write = all & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    let device: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
        .and_then(Ruleset::create)
        .map_err(failed)?
        .no_new_privs(true);
    match hiding {
        Hiding::ByMasks => {
            rules = rules
                .add_rules(path_beneath_rules(["/"], read))
                .map_err(failed)?;
        }
        Hiding::ByRules => {
            let hidden: Vec<&Path> = sandbox.hidden.iter().map(Path::new).collect();
            let mut readable = Vec::new();
            collect_readable(Path::new("/"), &hidden, &mut readable);
            rules = rules
                .add_rules(path_beneath_rules(["/"], AccessFs::ReadDir))
                .map_err(failed)?;
            rules = rules
                .add_rules(path_beneath_rules(readable, read))
                .map_err(failed)?;
        }
    }
    rules = rules
        .add_rules(path_beneath_rules(DEVICES, device))
        .map_err(failed)?;
    rules = rules
        .add_rules(path_beneath_rules([SHARED_MEMORY], write))
        .map_err(failed)?;
    rules = rules
        .add_rules(path_beneath_rules(&sandbox.writable, write))
        .map_err(failed)?;
    rules = rules
        .add_rules(path_beneath_rules(layered, write))
        .map_err(failed)?;
    if !rustix::process::geteuid().is_root() {
        // Lets a process set up its own namespaces. For root this would allow more than that.
        rules = rules
            .add_rules(path_beneath_rules(["/proc"], AccessFs::WriteFile))
            .map_err(failed)?;
    }
    let status = rules.restrict_self().map_err(failed)?;
    let abi = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi,
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => ABI::Unsupported,
    };
    // Before ABI 2, files cannot be moved between directories, which breaks build tools.
    let is_enforced = status.ruleset != RulesetStatus::NotEnforced && abi >= ABI::V2;
    match sandbox.level {
        SandboxLevel::Landlock if !is_enforced => Err(SandboxError::new(
            "Landlock",
            "this kernel does not have it, or an old one",
        )),
        _ => Ok(()),
    }
}

/// Collects every path that is neither hidden nor an ancestor of a hidden path.
fn collect_readable(dir: &Path, hidden: &[&Path], into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if hidden.contains(&path.as_path()) {
            continue;
        }
        if hidden.iter().any(|hidden| hidden.starts_with(&path)) {
            collect_readable(&path, hidden, into);
        } else {
            into.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_paths_and_ancestors_are_not_readable() {
        let dir = tempfile::tempdir().expect("made");
        for path in ["a/secret", "a/open", "b"] {
            std::fs::create_dir_all(dir.path().join(path)).expect("made");
        }
        let (secret, mut found) = (dir.path().join("a/secret"), Vec::new());
        collect_readable(dir.path(), &[&secret], &mut found);
        found.sort();
        assert_eq!(found, [dir.path().join("a/open"), dir.path().join("b")]);
    }
}
