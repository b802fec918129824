//! Caches of build tools that test commands may write. The user's own caches stay closed: their
//! content is later executed outside the sandbox. Tools are pointed to private caches by
//! environment variables.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{SandboxRules, Variables};

/// Variables that relocate a tool's cache, with the default location below the home directory.
/// `None`: the default is inside the project.
const CACHE_VARIABLES: &[(&str, Option<&str>)] = &[
    ("GOCACHE", Some(".cache/go-build")),
    ("npm_config_cache", Some(".npm")),
    // nyc creates a directory of wrappers in the home directory itself.
    ("SPAWN_WRAP_SHIM_ROOT", Some("")),
    ("CARGO_TARGET_DIR", None),
    ("CARGO_BUILD_TARGET_DIR", None),
    ("CARGO_BUILD_BUILD_DIR", None),
];
/// Variables that tell tools there is no network; without them some wait for a minute.
const OFFLINE_VARIABLES: &[(&str, &str)] = &[
    ("CARGO_NET_OFFLINE", "true"),
    ("npm_config_offline", "true"),
];

/// Points tools to private caches unless their own may be written. Returns the directories to make
/// writable. In an overlay, build output stays inside the project: a directory shared by several
/// states of the project would hold output of states that are gone.
pub(super) fn use_private(
    rules: &SandboxRules,
    env: &mut Variables,
    in_overlay: bool,
) -> Vec<PathBuf> {
    let Some(cache_dir) = &rules.private_caches else {
        return Vec::new();
    };
    let is_writable = |path: &Path| {
        rules
            .caches
            .iter()
            .chain(&rules.write)
            .any(|writable| path.starts_with(writable))
    };
    let mut opened = Vec::new();
    for (variable, default) in CACHE_VARIABLES {
        let current = env.get(OsStr::new(variable)).map(PathBuf::from);
        let current = current
            .or_else(|| default.and_then(|default| Some(rules.home.as_ref()?.join(default))));
        if current.as_ref().map_or(default.is_none(), |current| {
            !current.is_absolute() || is_writable(current)
        }) {
            continue;
        }
        if in_overlay && default.is_none() {
            env.remove(OsStr::new(variable));
            continue;
        }
        let dir = cache_dir.join(variable.to_lowercase());
        if super::super::scratch::make_private(&dir).is_ok() {
            env.insert(OsString::from(variable), dir.clone().into());
            opened.push(dir);
        }
    }
    opened
}

/// Keeps values that the user has set.
pub(super) fn set_offline(env: &mut Variables) {
    for (name, value) in OFFLINE_VARIABLES {
        env.entry(OsString::from(name))
            .or_insert_with(|| OsString::from(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_private_unless_shared() {
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
        assert_eq!(use_private(&rules, &mut env, false), opened);
        assert_eq!(
            env.keys().collect::<Vec<_>>(),
            ["GOCACHE", "SPAWN_WRAP_SHIM_ROOT"]
        );
        env.insert("CARGO_TARGET_DIR".into(), "/home/u/.cache/target".into());
        assert_eq!(
            use_private(&rules, &mut env, false).len(),
            3,
            "a target directory outside the project is private too"
        );
        env.insert("CARGO_TARGET_DIR".into(), "/home/u/.cache/target".into());
        use_private(&rules, &mut env, true);
        assert!(
            !env.contains_key(OsStr::new("CARGO_TARGET_DIR")),
            "in an overlay it stays inside the project"
        );
    }
}
