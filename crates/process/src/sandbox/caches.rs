//! Caches of build tools that a test command may fill. The user's own are not opened: what is written there runs outside
//! the walls later. A tool gets a private one through its own variable.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{SandboxRules, Variables};

/// A variable that moves a tool's cache, and where the cache is without it, below the home directory. Without such a place
/// it is inside the project, unless the variable says otherwise.
const MOVED: &[(&str, Option<&str>)] = &[
    ("GOCACHE", Some(".cache/go-build")),
    ("npm_config_cache", Some(".npm")),
    // nyc puts a directory of wrappers into the home directory itself.
    ("SPAWN_WRAP_SHIM_ROOT", Some("")),
    ("CARGO_TARGET_DIR", None),
    ("CARGO_BUILD_TARGET_DIR", None),
    ("CARGO_BUILD_BUILD_DIR", None),
];
/// Variables by which tools learn that there is no network; without them some wait for a minute.
const OFFLINE: &[(&str, &str)] = &[
    ("CARGO_NET_OFFLINE", "true"),
    ("npm_config_offline", "true"),
];

/// Points tools at caches of their own, unless theirs may be written anyway. Gives the directories to open. In a private
/// view what is built from the project stays in it: a directory that several states of the project are built into would
/// hold what was made from a state that is gone.
pub(super) fn private(rules: &SandboxRules, env: &mut Variables, in_view: bool) -> Vec<PathBuf> {
    let Some(place) = &rules.private_caches else {
        return Vec::new();
    };
    let is_open = |path: &Path| {
        rules
            .caches
            .iter()
            .chain(&rules.write)
            .any(|open| path.starts_with(open))
    };
    let mut opened = Vec::new();
    for (variable, usual) in MOVED {
        let own = env.get(OsStr::new(variable)).map(PathBuf::from);
        let own = own.or_else(|| usual.and_then(|usual| Some(rules.home.as_ref()?.join(usual))));
        if own
            .as_ref()
            .map_or(usual.is_none(), |own| !own.is_absolute() || is_open(own))
        {
            continue;
        }
        if in_view && usual.is_none() {
            env.remove(OsStr::new(variable));
            continue;
        }
        let dir = place.join(variable.to_lowercase());
        if super::super::scratch::make_private(&dir).is_ok() {
            env.insert(OsString::from(variable), dir.clone().into());
            opened.push(dir);
        }
    }
    opened
}

/// What the user has set stays.
pub(super) fn tell_offline(env: &mut Variables) {
    for (name, value) in OFFLINE {
        env.entry(OsString::from(name))
            .or_insert_with(|| OsString::from(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_the_settings_open_is_used_and_any_other_is_private() {
        let dir = tempfile::tempdir().expect("made");
        let rules = SandboxRules {
            caches: vec!["/home/u/.npm".into()],
            private_caches: Some(dir.path().join("caches")),
            home: Some("/home/u".into()),
            ..SandboxRules::default()
        };
        let mut env = Variables::new();
        let opened =
            ["gocache", "spawn_wrap_shim_root"].map(|name| dir.path().join("caches").join(name));
        assert_eq!(private(&rules, &mut env, false), opened);
        assert_eq!(
            env.keys().collect::<Vec<_>>(),
            ["GOCACHE", "SPAWN_WRAP_SHIM_ROOT"]
        );
        env.insert("CARGO_TARGET_DIR".into(), "/home/u/.cache/target".into());
        assert_eq!(
            private(&rules, &mut env, false).len(),
            3,
            "a target directory outside the project is private too"
        );
        env.insert("CARGO_TARGET_DIR".into(), "/home/u/.cache/target".into());
        private(&rules, &mut env, true);
        assert!(
            !env.contains_key(OsStr::new("CARGO_TARGET_DIR")),
            "and lies in the project where that is a view"
        );
    }
}
