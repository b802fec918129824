//! The table of all keys, with the values they take. Files, variables, messages and
//! `docs/configuration.md` are checked against it.

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Any non-empty text.
    Text,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// An `http` or `https` address without credentials.
    Url,
    /// An absolute path, or empty for none.
    Path,
    /// A program: a bare name or an absolute path.
    Program,
    /// The name of a variable, never its value; empty for none.
    Variable,
    Variables,
    /// Exact model names.
    Models,
    /// Model names, `*` allowed at the end.
    Patterns,
    Texts,
    /// A whole number within these bounds.
    Count(u64, u64),
    /// Seconds, at least this many.
    Seconds(f64),
    /// USD, 0 or more.
    Money,
    /// Sampling temperature of a model, from 0 to 2.
    Temperature,
    /// `true` or `false`.
    Switch,
    /// `true`, `false` or `"session"`.
    Recall,
}

/// One key; `*` stands for a name chosen by the user.
#[derive(Debug)]
pub(crate) struct Key {
    pub path: &'static [&'static str],
    pub kind: Kind,
}

pub(crate) const KEYS: &[Key] = &[
    key(&["verifier"], Kind::Text),
    key(&["default_chain"], Kind::Models),
    key(&["max_attempts"], Kind::Count(1, 100)),
    key(&["attempts_per_tier"], Kind::Count(1, 100)),
    key(
        &["tiers", "local", "attempts_per_tier"],
        Kind::Count(1, 100),
    ),
    key(
        &["tiers", "local", "edit_format"],
        Kind::OneOf(EDIT_FORMATS),
    ),
    key(
        &["tiers", "subagent", "attempts_per_tier"],
        Kind::Count(1, 100),
    ),
    key(
        &["tiers", "subagent", "edit_format"],
        Kind::OneOf(EDIT_FORMATS),
    ),
    key(
        &["tiers", "managed", "attempts_per_tier"],
        Kind::Count(1, 100),
    ),
    key(
        &["tiers", "managed", "edit_format"],
        Kind::OneOf(EDIT_FORMATS),
    ),
    key(&["max_workers"], Kind::Count(1, 256)),
    key(&["default_context"], Kind::Count(256, 100_000_000)),
    key(&["env_pass"], Kind::Variables),
    key(&["prompts_dir"], Kind::Path),
    key(&["limits", "local_s"], Kind::Seconds(MIN_LIMIT_SECS)),
    key(&["limits", "agent_s"], Kind::Seconds(MIN_LIMIT_SECS)),
    key(&["limits", "tests_s"], Kind::Seconds(MIN_LIMIT_SECS)),
    key(&["limits", "verifier_s"], Kind::Seconds(MIN_LIMIT_SECS)),
    key(&["limits", "lock_wait_s"], Kind::Seconds(0.0)),
    key(&["limits", "probe_s"], Kind::Seconds(MIN_LIMIT_SECS)),
    key(&["budgets", "call_usd"], Kind::Money),
    key(&["budgets", "call_tokens"], Kind::Count(0, MAX_INTEGER)),
    key(&["budgets", "call_s"], Kind::Seconds(0.0)),
    key(&["budgets", "session_usd"], Kind::Money),
    key(&["budgets", "session_tokens"], Kind::Count(0, MAX_INTEGER)),
    key(&["budgets", "session_s"], Kind::Seconds(0.0)),
    key(&["policy", "mode"], Kind::OneOf(&["static", "learned"])),
    key(&["policy", "minute_usd"], Kind::Money),
    key(
        &["log", "exchange"],
        Kind::OneOf(&["off", "answers", "full"]),
    ),
    key(&["log", "exchange_days"], Kind::Count(1, 3650)),
    key(&["log", "exchange_mb"], Kind::Count(1, 1_000_000)),
    key(&["state", "days"], Kind::Count(1, 3650)),
    key(&["state", "mb"], Kind::Count(1, 1_000_000)),
    key(&["brain", "dir"], Kind::Path),
    key(&["brain", "ingest_url"], Kind::Url),
    key(&["breaker", "failures"], Kind::Count(1, 1000)),
    key(&["breaker", "cooldown_s"], Kind::Seconds(MIN_LIMIT_SECS)),
    key(
        &["breaker", "max_cooldown_s"],
        Kind::Seconds(MIN_LIMIT_SECS),
    ),
    key(&["workspace", "max_files"], Kind::Count(1, MAX_INTEGER)),
    key(
        &["workspace", "max_file_bytes"],
        Kind::Count(1, MAX_INTEGER),
    ),
    key(
        &["workspace", "max_total_bytes"],
        Kind::Count(1, MAX_INTEGER),
    ),
    key(
        &["workspace", "max_ignored_file_bytes"],
        Kind::Count(0, MAX_INTEGER),
    ),
    key(&["workspace", "exclude"], Kind::Texts),
    key(
        &["workspace", "strategy"],
        Kind::OneOf(&["auto", "overlay", "in-place"]),
    ),
    key(&["verify", "repeat"], Kind::Count(1, 100)),
    key(&["verify", "other_build"], Kind::Switch),
    key(&["sandbox", "mode"], Kind::OneOf(SANDBOX_MODES)),
    key(&["sandbox", "write"], Kind::Texts),
    key(&["sandbox", "hide"], Kind::Texts),
    key(
        &["sandbox", "network"],
        Kind::OneOf(&["auto", "private", "host"]),
    ),
    key(&["sandbox", "caches"], Kind::Texts),
    key(
        &["warm", "kind"],
        Kind::OneOf(&["llama-swap", "ollama", "none"]),
    ),
    key(&["warm", "url"], Kind::Url),
    key(
        &["backends", "*", "kind"],
        Kind::OneOf(&super::backend_kinds::NAMES),
    ),
    key(
        &["backends", "*", "tier"],
        Kind::OneOf(&["local", "subagent", "managed"]),
    ),
    key(&["backends", "*", "base_url"], Kind::Url),
    key(&["backends", "*", "api_key_env"], Kind::Variable),
    key(&["backends", "*", "program"], Kind::Program),
    key(&["backends", "*", "file"], Kind::Path),
    key(
        &["backends", "*", "permission_mode"],
        Kind::OneOf(PERMISSION_MODES),
    ),
    key(&["backends", "*", "max_turns"], Kind::Count(1, 10_000)),
    key(&["backends", "*", "env_pass"], Kind::Variables),
    key(&["backends", "*", "sandbox"], Kind::OneOf(SANDBOX_MODES)),
    key(&["backends", "*", "models"], Kind::Patterns),
    key(&["backends", "*", "shares_quota_with"], Kind::Texts),
    key(&["backends", "*", "record"], Kind::Path),
    key(&["models", "*", "id"], Kind::Text),
    key(&["models", "*", "backend"], Kind::Text),
    key(&["models", "*", "context"], Kind::Count(256, 100_000_000)),
    key(&["models", "*", "price_in"], Kind::Money),
    key(&["models", "*", "price_out"], Kind::Money),
    key(&["models", "*", "limit_s"], Kind::Seconds(MIN_LIMIT_SECS)),
    key(&["models", "*", "max_tokens"], Kind::Count(1, 100_000_000)),
    key(&["models", "*", "attempts_per_tier"], Kind::Count(1, 100)),
    key(&["models", "*", "edit_format"], Kind::OneOf(EDIT_FORMATS)),
    key(&["models", "*", "temperature"], Kind::Temperature),
    key(&["models", "*", "seed"], Kind::Count(0, MAX_INTEGER)),
    key(&["skills", "*", "chain"], Kind::Models),
    key(&["skills", "*", "verifier"], Kind::Text),
    key(&["skills", "*", "max_attempts"], Kind::Count(1, 100)),
    key(&["skills", "*", "attempts_per_tier"], Kind::Count(1, 100)),
    key(&["skills", "*", "edit_format"], Kind::OneOf(EDIT_FORMATS)),
    key(&["skills", "*", "limit_s"], Kind::Seconds(MIN_LIMIT_SECS)),
    key(&["skills", "*", "tests_s"], Kind::Seconds(MIN_LIMIT_SECS)),
    key(&["skills", "*", "budget_usd"], Kind::Money),
    key(&["skills", "*", "recall"], Kind::Recall),
    key(&["skills", "*", "twins"], Kind::Count(0, 20)),
];

/// Skills that settings may name, each with the family from which it inherits settings.
pub(crate) const SKILLS: &[(&str, Option<&str>)] = &[
    ("tdd", None),
    ("tdd_red", Some("tdd")),
    ("tdd_green", Some("tdd")),
    ("tdd_refactor", Some("tdd")),
    ("review", None),
    ("debug", None),
    ("spec", None),
    ("supervise", None),
    ("retrospective", None),
    ("trainer", None),
];

/// Skills that have no tool yet: they can be configured but not called.
pub(crate) const PLANNED: &[&str] = &[];

/// The prefix of our own variables.
pub(crate) const PREFIX: &str = "SUPERVISOR_";

/// Names the user's file if `--config` is not given.
pub(crate) const FILE_VAR: &str = "SUPERVISOR_MODELS_FILE";

/// Variables without our prefix, and the keys they set.
pub(crate) const ALIASES: &[(&str, &[&str])] = &[
    ("LITELLM_BASE_URL", &["backends", "litellm", "base_url"]),
    ("LLAMA_SWAP_URL", &["warm", "url"]),
    ("INGEST_BASE_URL", &["brain", "ingest_url"]),
];

/// Variables with our prefix that other parts of the program read.
pub(crate) const OTHER_VARIABLES: &[&str] = &[
    FILE_VAR,
    "SUPERVISOR_STATE_DIR",
    "SUPERVISOR_LOG",
    "SUPERVISOR_LOOK_AT",
    "SUPERVISOR_PLUGIN_VERSION",
    "SUPERVISOR_STOP_GATE",
    "SUPERVISOR_TDD_GUARD",
    "SUPERVISOR_TREE",
    "SUPERVISOR_FAULT",
];

/// Whether another part of the program, or a test, reads this variable.
pub(crate) fn is_read_elsewhere(variable: &str) -> bool {
    OTHER_VARIABLES.contains(&variable) || variable.starts_with("SUPERVISOR_TEST_")
}

const SANDBOX_MODES: &[&str] = &["auto", "require", "off"];
const PERMISSION_MODES: &[&str] = &[
    "acceptEdits",
    "default",
    "plan",
    "dontAsk",
    "auto",
    "bypassPermissions",
];

const EDIT_FORMATS: &[&str] = &["auto", "whole", "search-replace", "json"];

/// The shortest allowed limit: a tenth of a second.
const MIN_LIMIT_SECS: f64 = 0.1;

/// The largest number in TOML, which has signed 64-bit integers.
const MAX_INTEGER: u64 = i64::MAX as u64;

const fn key(path: &'static [&'static str], kind: Kind) -> Key {
    Key { path, kind }
}

/// What a path refers to.
pub(crate) enum KeyLookup {
    Leaf(&'static Key),
    Table,
    Unknown,
}

pub(crate) fn lookup(path: &[&str]) -> KeyLookup {
    let mut is_table = false;
    for key in KEYS {
        let matches_path = path.iter().zip(key.path).all(|(a, b)| a == b || *b == "*");
        if matches_path && path.len() == key.path.len() {
            return KeyLookup::Leaf(key);
        }
        is_table |= matches_path && path.len() < key.path.len();
    }
    if is_table {
        KeyLookup::Table
    } else {
        KeyLookup::Unknown
    }
}

/// The names that are allowed inside this table.
pub(crate) fn children(table: &[&str]) -> Vec<&'static str> {
    let mut names: Vec<&str> = KEYS
        .iter()
        .filter(|k| {
            k.path.len() > table.len() && table.iter().zip(k.path).all(|(a, b)| a == b || *b == "*")
        })
        .map(|k| k.path[table.len()])
        .collect();
    names.dedup();
    names
}

/// A path as written in TOML: `models."ollama/x".context`.
pub(crate) fn toml_path<S: AsRef<str>>(path: &[S]) -> String {
    let bare = |s: &str| {
        !s.is_empty()
            && s.chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    let quoted = |s: &str| {
        if bare(s) {
            s.to_owned()
        } else {
            format!("\"{}\"", supervisor_text::words::plain(s))
        }
    };
    path.iter()
        .map(|s| quoted(s.as_ref()))
        .collect::<Vec<_>>()
        .join(".")
}

/// A name as used inside a variable: capitals, with `_` for every other character.
pub(crate) fn slug(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect()
}

/// The variable that sets a key: `limits.local_s` is `SUPERVISOR_LIMITS__LOCAL_S`.
pub(crate) fn variable<S: AsRef<str>>(path: &[S]) -> String {
    let levels: Vec<String> = path.iter().map(|s| slug(s.as_ref())).collect();
    format!("{PREFIX}{}", levels.join("__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_toml_and_variable_names() {
        let path = ["models", "ollama/Qwen3.5:30B", "context"];
        assert_eq!(toml_path(&path), r#"models."ollama/Qwen3.5:30B".context"#);
        assert_eq!(
            variable(&path),
            "SUPERVISOR_MODELS__OLLAMA_QWEN3_5_30B__CONTEXT"
        );
        assert_eq!(variable(&["default_chain"]), "SUPERVISOR_DEFAULT_CHAIN");
    }

    #[test]
    fn lookup_finds_keys_and_tables() {
        assert!(matches!(lookup(&["limits", "local_s"]), KeyLookup::Leaf(_)));
        assert!(matches!(
            lookup(&["backends", "mine", "kind"]),
            KeyLookup::Leaf(_)
        ));
        assert!(matches!(lookup(&["backends", "mine"]), KeyLookup::Table));
        assert!(matches!(lookup(&["limits", "locl_s"]), KeyLookup::Unknown));
        assert!(matches!(
            lookup(&["verifier", "deeper"]),
            KeyLookup::Unknown
        ));
        assert_eq!(children(&["warm"]), ["kind", "url"]);
    }

    /// A valid value of each kind, as TOML.
    fn sample(kind: Kind) -> &'static str {
        match kind {
            Kind::Text => "\"claude\"",
            Kind::OneOf(_) => unreachable!("taken from the list"),
            Kind::Url => "\"http://x\"",
            Kind::Path => "\"/x\"",
            Kind::Program => "\"x\"",
            Kind::Variable => "\"X\"",
            Kind::Variables => "[\"X\"]",
            Kind::Models => "[\"opus\"]",
            Kind::Patterns => "[\"x/*\"]",
            Kind::Texts => "[\"claude\"]",
            Kind::Count(..) => "1000",
            Kind::Seconds(_) => "1.5",
            Kind::Money => "2",
            Kind::Temperature => "0.5",
            Kind::Switch => "true",
            Kind::Recall => "\"session\"",
        }
    }

    /// Sets each key alone on top of the built-in settings, for a suitable kind of backend.
    #[test]
    fn every_key_can_be_loaded() {
        for key in KEYS {
            let mut path: Vec<&str> = key.path.to_vec();
            let last = *path.last().expect("not empty");
            if let Some(star) = path.iter_mut().find(|part| **part == "*") {
                *star = match (key.path[0], last) {
                    ("backends", "base_url" | "api_key_env") => "litellm",
                    ("backends", "models" | "file") => "lab",
                    ("backends", _) => "claude",
                    ("models", _) => "opus",
                    _ => "review",
                };
            }
            let value = match key.kind {
                Kind::OneOf(words) => format!("\"{}\"", words[0]),
                Kind::Count(low, high) => low.max(1).min(high).to_string(),
                Kind::Text if last.ends_with("verifier") => "\"none\"".into(),
                kind => sample(kind).to_owned(),
            };
            let mut text = format!("{} = {value}\n", toml_path(&path));
            if path.contains(&"lab") {
                text += "backends.lab.kind = \"replay\"\nbackends.lab.tier = \"local\"\n";
                text += if last == "file" {
                    "backends.lab.models = [\"y/*\"]\n"
                } else {
                    "backends.lab.file = \"/y\"\n"
                };
            }
            if key.path == ["backends", "*", "kind"] {
                text += "backends.claude.base_url = \"http://x\"\n";
            }
            let dir = tempfile::tempdir().expect("temp dir");
            let file = dir.path().join("models.toml");
            std::fs::write(&file, &text).expect("written");
            let sources = crate::Sources {
                user_file: Some(file),
                ..crate::Sources::built_in(crate::load::BUILT_IN)
            };
            let loaded = crate::load(&sources).unwrap_or_else(|e| panic!("{text}{e}"));
            let origin = loaded.origin(&toml_path(&path));
            assert!(
                matches!(origin, Some(crate::Origin::File(_, Some(1)))),
                "{text}{origin:?}"
            );
        }
    }

    #[test]
    fn every_key_is_documented_in_models_toml() {
        let lines: Vec<&str> = crate::load::BUILT_IN.lines().collect();
        for key in KEYS {
            let last = *key.path.last().expect("not empty");
            let is_key = |line: &str| {
                line.split_once('=')
                    .is_some_and(|(name, _)| name.trim() == last)
            };
            // Either set, with a comment above, or commented out with an explanation beside it.
            let is_documented = lines
                .windows(2)
                .any(|pair| is_key(pair[1]) && pair[0].starts_with("# "))
                || lines.iter().any(|line| {
                    let comment = line.strip_prefix('#').filter(|rest| is_key(rest));
                    comment.is_some_and(|rest| rest.contains("   "))
                });
            assert!(
                is_documented,
                "`{}` has no sentence in models.toml",
                key.path.join(".")
            );
        }
    }

    #[test]
    fn every_variable_in_sources_is_known() {
        // The program and every other crate.
        let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let crates = std::fs::read_dir(own.join("..")).expect("listed");
        let others = crates
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| !path.ends_with("settings") && !path.ends_with("test-support"));
        let sources = others.chain([own.join("../..")]).map(|dir| dir.join("src"));
        let mut open: Vec<_> = sources.filter(|src| src.is_dir()).collect();
        let mut found = 0;
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(
                    std::fs::read_dir(path)
                        .expect("listed")
                        .map(|entry| entry.expect("an entry").path()),
                );
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("read");
                for name in text
                    .split(['"', '\''])
                    .filter(|s| s.len() > PREFIX.len() && s.starts_with(PREFIX) && **s == slug(s))
                {
                    assert!(
                        is_read_elsewhere(name),
                        "{}: ${name} is not listed in OTHER_VARIABLES",
                        path.display()
                    );
                    found += 1;
                }
            }
        }
        assert!(found > 0, "no variable was found, so nothing was shown");
    }

    #[test]
    fn configuration_page_lists_every_key() {
        let page = include_str!("../../../docs/configuration.md");
        let rows: Vec<Vec<&str>> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| {
                line.split('|')
                    .map(|cell| cell.trim().trim_matches('`'))
                    .collect()
            })
            .collect();
        let row = |name: &str| rows.iter().find(|row| row[1] == name);
        for key in KEYS {
            let placeholder = match key.path[0] {
                "backends" => "<backend>",
                "models" => "<model>",
                _ => "<skill>",
            };
            let path = key.path.join(".").replace('*', placeholder);
            let levels = key.path.iter().map(|part| {
                if *part == "*" {
                    placeholder.to_uppercase()
                } else {
                    slug(part)
                }
            });
            let variable = format!("{PREFIX}{}", levels.collect::<Vec<_>>().join("__"));
            let row = row(&path)
                .unwrap_or_else(|| panic!("`{path}` is missing in docs/configuration.md"));
            assert_eq!(row[2], variable, "{path}");
        }
        for name in ALIASES
            .iter()
            .map(|(name, _)| *name)
            .chain(OTHER_VARIABLES.iter().copied())
            .chain(["LITELLM_API_KEY"])
        {
            assert!(
                row(name).is_some(),
                "${name} is missing in docs/configuration.md"
            );
        }
        assert_eq!(
            rows.len(),
            KEYS.len() + ALIASES.len() + OTHER_VARIABLES.len() + 1,
            "a row about nothing"
        );
    }
}
