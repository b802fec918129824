//! The walls that need no privilege: which files may be written and read, and, with a recent kernel, no signals to
//! processes and no abstract sockets outside.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, LandlockStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};

use super::super::sandbox::{SandboxLevel, Walls};
use super::Obstacle;

/// How secrets are kept out of sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hiding {
    /// Something else lies over them already.
    ByMasks,
    /// Only what is not on the way to one may be read.
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
const SHARED_MEMORY: &str = "/dev/shm";

/// `layered` are directories that can be written without anything outside changing.
pub(super) fn restrict(walls: &Walls, layered: &[PathBuf], hiding: Hiding) -> Result<(), Obstacle> {
    let failed = |error: landlock::RulesetError| Obstacle::new("Landlock", error);
    // Ioctls on devices are left alone: what matters there needs a device that may be written.
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
                .map_err(failed)?
        }
        Hiding::ByRules => {
            let hidden: Vec<&Path> = walls.hidden.iter().map(Path::new).collect();
            let mut readable = Vec::new();
            readable_around(Path::new("/"), &hidden, &mut readable);
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
        .add_rules(path_beneath_rules(&walls.writable, write))
        .map_err(failed)?;
    rules = rules
        .add_rules(path_beneath_rules(layered, write))
        .map_err(failed)?;
    if !rustix::process::geteuid().is_root() {
        // Lets a process arrange its own namespaces. For the superuser there is more in it than that.
        rules = rules
            .add_rules(path_beneath_rules(["/proc"], AccessFs::WriteFile))
            .map_err(failed)?;
    }
    let status = rules.restrict_self().map_err(failed)?;
    let abi = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi,
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => ABI::Unsupported,
    };
    // Below version 2 nothing may be moved between directories, which breaks build tools.
    let holds = status.ruleset != RulesetStatus::NotEnforced && abi >= ABI::V2;
    match walls.level {
        SandboxLevel::Landlock if !holds => Err(Obstacle::new(
            "Landlock",
            "this kernel does not have it, or an old one",
        )),
        _ => Ok(()),
    }
}

/// Everything that is not on the way to something hidden.
fn readable_around(dir: &Path, hidden: &[&Path], into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if hidden.contains(&path.as_path()) {
            continue;
        }
        if hidden.iter().any(|hidden| hidden.starts_with(&path)) {
            readable_around(&path, hidden, into);
        } else {
            into.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_hidden_and_the_way_to_it_may_be_read() {
        let dir = tempfile::tempdir().expect("made");
        for path in ["a/secret", "a/open", "b"] {
            std::fs::create_dir_all(dir.path().join(path)).expect("made");
        }
        let (secret, mut found) = (dir.path().join("a/secret"), Vec::new());
        readable_around(dir.path(), &[&secret], &mut found);
        found.sort();
        assert_eq!(found, [dir.path().join("a/open"), dir.path().join("b")]);
    }
}
