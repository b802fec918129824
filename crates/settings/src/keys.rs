//! The table of all keys, with the values they take, derived from the schema of [`Routing`]. Files,
//! variables, messages and `docs/configuration.md` are checked against it.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::check::{self, TextFormat};
use super::sections::Routing;

/// What a key takes.
#[derive(Debug)]
pub(crate) enum Kind {
    Text(&'static TextFormat),
    List(&'static TextFormat),
    /// One of these words.
    OneOf(Vec<String>),
    /// `true`, `false` or one of these words.
    Switch(Vec<String>),
    /// A whole number within these bounds.
    Count(u64, u64),
    /// A whole number within these bounds, or one of these words.
    CountOr(u64, u64, Vec<String>),
    /// A number within these bounds, and what it measures.
    Number(f64, f64, Unit),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    Seconds,
    Usd,
    None,
}

/// One key; `*` stands for a name chosen by the user.
#[derive(Debug)]
pub(crate) struct Key {
    pub path: Vec<String>,
    pub kind: Kind,
}

/// Built at first use: without a user's file or variables nothing needs it.
pub(crate) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let key = |(path, schema): (_, Value)| Key {
        path,
        kind: Kind::of(&schema),
    };
    schemas().into_iter().map(key).collect()
});

/// The path and the schema of each key.
fn schemas() -> Vec<(Vec<String>, Value)> {
    let settings = SchemaSettings::default().with(|s| s.inline_subschemas = true);
    let root = settings.into_generator().into_root_schema_for::<Routing>();
    let mut found = Vec::new();
    collect_schemas(&mut Vec::new(), root.as_value(), &mut found);
    found
}

fn collect_schemas(path: &mut Vec<String>, schema: &Value, found: &mut Vec<(Vec<String>, Value)>) {
    let named = schema["properties"].as_object().into_iter().flatten();
    let chosen = schema.get("additionalProperties").filter(|s| s.is_object());
    let inner: Vec<(&str, &Value)> = named
        .map(|(name, schema)| (name.as_str(), schema))
        .chain(chosen.map(|schema| ("*", schema)))
        .collect();
    if inner.is_empty() {
        found.push((path.clone(), schema.clone()));
    }
    for (name, schema) in inner {
        path.push(name.to_owned());
        collect_schemas(path, schema, found);
        path.pop();
    }
}

impl Kind {
    fn of(schema: &Value) -> Self {
        let (mut types, mut words) = (Vec::new(), Vec::new());
        collect_types(schema, &mut types, &mut words);
        let format = schema["format"].as_str();
        let is_a = |name: &str| types.iter().any(|t| t == name);
        if is_a("boolean") {
            Self::Switch(words)
        } else if is_a("integer") && !words.is_empty() {
            let most = bound_of(schema, "maximum").unwrap_or(MAX_INTEGER);
            Self::CountOr(bound_of(schema, "minimum").unwrap_or(0), most, words)
        } else if !words.is_empty() {
            Self::OneOf(words)
        } else if is_a("array") {
            Self::List(check::text_format(format.unwrap_or("texts")))
        } else if is_a("integer") {
            let bound = |name: &str| schema[name].as_u64();
            Self::Count(
                bound("minimum").unwrap_or(0),
                bound("maximum").unwrap_or(MAX_INTEGER),
            )
        } else if is_a("number") {
            let unit = match format {
                Some("seconds") => Unit::Seconds,
                Some("usd") => Unit::Usd,
                _ => Unit::None,
            };
            let bound = |name: &str| schema[name].as_f64().expect("numbers have bounds");
            Self::Number(bound("minimum"), bound("maximum"), unit)
        } else {
            Self::Text(check::text_format(format.unwrap_or("text")))
        }
    }
}

/// A bound of the number that a schema or one of its alternatives allows.
fn bound_of(schema: &Value, name: &str) -> Option<u64> {
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    schema[name]
        .as_u64()
        .or_else(|| alternatives.into_iter().find_map(|one| bound_of(one, name)))
}

/// The types and the words that a schema or one of its alternatives allows.
fn collect_types(schema: &Value, types: &mut Vec<String>, words: &mut Vec<String>) {
    let texts = |key: &str| -> Vec<String> {
        let value = &schema[key];
        let list = value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice);
        list.iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    types.extend(texts("type"));
    words.extend(texts("const"));
    words.extend(texts("enum"));
    for key in ["oneOf", "anyOf"] {
        for alternative in schema[key].as_array().into_iter().flatten() {
            collect_types(alternative, types, words);
        }
    }
}

/// The largest number in TOML, which has signed 64-bit integers.
pub(crate) const MAX_INTEGER: u64 = i64::MAX as u64;

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

pub(crate) fn skills() -> impl Iterator<Item = &'static str> + Clone {
    SKILLS.iter().map(|(name, _)| *name)
}

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
    "SUPERVISOR_LOG_FORMAT",
    "SUPERVISOR_LOOK_AT",
    "SUPERVISOR_PLUGIN_VERSION",
    "SUPERVISOR_SHADOW",
    "SUPERVISOR_STOP_GATE",
    "SUPERVISOR_TDD_GUARD",
    "SUPERVISOR_TREE",
    "SUPERVISOR_FAULT",
];

/// Whether another part of the program, or a test, reads this variable.
pub(crate) fn is_read_elsewhere(variable: &str) -> bool {
    OTHER_VARIABLES.contains(&variable) || variable.starts_with("SUPERVISOR_TEST_")
}

/// What a path refers to.
pub(crate) enum KeyLookup {
    Leaf(&'static Key),
    Table,
    Unknown,
}

pub(crate) fn lookup<S: AsRef<str>>(path: &[S]) -> KeyLookup {
    match KEYS.iter().find(|key| is_below(key, path)) {
        Some(key) if key.path.len() == path.len() => KeyLookup::Leaf(key),
        Some(_) => KeyLookup::Table,
        None => KeyLookup::Unknown,
    }
}

/// The names that are allowed inside this table.
pub(crate) fn children<S: AsRef<str>>(table: &[S]) -> Vec<&'static str> {
    let mut names: Vec<&str> = KEYS
        .iter()
        .filter(|key| key.path.len() > table.len() && is_below(key, table))
        .map(|key| key.path[table.len()].as_str())
        .collect();
    names.dedup();
    names
}

/// Whether the key is this path or below it.
fn is_below<S: AsRef<str>>(key: &Key, path: &[S]) -> bool {
    let mut parts = path.iter().map(AsRef::as_ref).zip(&key.path);
    path.len() <= key.path.len() && parts.all(|(part, known)| part == known || known == "*")
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

    #[test]
    fn kinds_follow_from_the_schema() {
        for (path, takes) in [
            ("verifier", "a text"),
            ("env_pass", "a list of names of variables"),
            ("max_attempts", "a whole number from 1 to 100"),
            ("budgets.call_tokens", "a whole number from 0 on"),
            (
                "limits.lock_wait_s",
                "seconds, 0 or more and at most a year",
            ),
            (
                "models.*.limit_s",
                "seconds, 0.1 or more and at most a year",
            ),
            ("models.*.price_in", "an amount of USD, 0 or more"),
            ("models.*.temperature", "a number from 0 to 2"),
            (
                "models.*.edit_format",
                "`auto`, `whole`, `search-replace` or `json`",
            ),
            ("workspace.strategy", "`auto`, `overlay` or `in-place`"),
            ("log.exchange", "`off`, `answers` or `full`"),
            ("verify.other_build", "true or false"),
            ("skills.*.recall", "true, false or `session`"),
            ("models.*.samples", "a whole number from 1 to 16 or `auto`"),
        ] {
            let mut keys = KEYS.iter();
            let key = keys.find(|key| key.path.join(".") == path).expect(path);
            assert_eq!(check::expected(&key.kind), takes, "{path}");
        }
    }

    /// A valid value of each kind, as TOML.
    fn sample(kind: &Kind) -> String {
        match kind {
            Kind::OneOf(words) => format!("\"{}\"", words[0]),
            Kind::Count(low, _) | Kind::CountOr(low, ..) => low.max(&1).to_string(),
            Kind::Number(..) => "1.5".into(),
            Kind::Switch(_) => "true".into(),
            Kind::Text(format) => match format.name {
                "address" => "\"http://x\"".into(),
                "path" => "\"/x\"".into(),
                "variable" => "\"X\"".into(),
                _ => "\"claude\"".into(),
            },
            Kind::List(format) => match format.name {
                "models" => "[\"opus\"]".into(),
                "patterns" => "[\"x/*\"]".into(),
                _ => "[\"claude\"]".into(),
            },
        }
    }

    /// Sets each key alone on top of the built-in settings, for a suitable kind of backend.
    #[test]
    fn every_key_can_be_loaded() {
        for key in KEYS.iter() {
            let mut path: Vec<&str> = key.path.iter().map(String::as_str).collect();
            let (table, last) = (path[0], path[path.len() - 1]);
            if let Some(star) = path.iter_mut().find(|part| **part == "*") {
                *star = match (table, last) {
                    ("backends", "base_url" | "api_key_env") => "litellm",
                    ("backends", "models" | "file") => "lab",
                    ("backends", _) => "claude",
                    ("models", _) => "opus",
                    ("projects", _) => "~/shop",
                    _ => "review",
                };
            }
            let value = match last {
                "verifier" => "\"none\"".into(),
                _ => sample(&key.kind),
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
            if path == ["backends", "claude", "kind"] {
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
        for key in KEYS.iter() {
            let last = key.path.last().expect("not empty");
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

    /// Looks at all crates but this one.
    #[test]
    fn every_variable_in_sources_is_known() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let crates = std::fs::read_dir(root.join("crates")).expect("listed");
        let mut open: Vec<_> = crates
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| !path.ends_with("settings"))
            .chain([root])
            .map(|path| path.join("src"))
            .collect();
        let mut found = 0;
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(
                    std::fs::read_dir(path)
                        .expect("listed")
                        .map(|entry| entry.expect("an entry").path()),
                );
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).expect("read");
                for name in text
                    .split(['"', '\''])
                    .filter(|s| s.len() > PREFIX.len() && s.starts_with(PREFIX) && **s == slug(s))
                {
                    assert!(
                        is_read_elsewhere(name) || KEYS.iter().any(|k| variable(&k.path) == name),
                        "{}: ${name} is not listed in OTHER_VARIABLES",
                        path.display()
                    );
                    found += 1;
                }
            }
        }
        assert!(found > 0, "no variable was found, so nothing was shown");
    }

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");

    /// A doc comment as a cell of a table: without the capital and the full stop of a sentence.
    fn cell(doc: &str) -> String {
        let doc = doc.replace('\n', " ");
        let doc = doc.trim_end_matches('.');
        let (first, rest) = doc.split_at(1);
        if rest.starts_with(|c: char| c.is_lowercase() || c == ' ') {
            first.to_lowercase() + rest
        } else {
            doc.to_owned()
        }
    }

    fn row((path, schema): (Vec<String>, Value)) -> String {
        let doc = schema["description"].as_str();
        let doc = doc.unwrap_or_else(|| panic!("`{}` has no doc comment", path.join(".")));
        let named = |part: &String| match (part.as_str(), path[0].trim_end_matches('s')) {
            ("*", table) => (format!("<{table}>"), format!("<{}>", slug(table))),
            _ => (part.clone(), slug(part)),
        };
        let (key, variable): (Vec<_>, Vec<_>) = path.iter().map(named).unzip();
        format!(
            "| `{}` | `{PREFIX}{}` | {} |\n",
            key.join("."),
            variable.join("__"),
            cell(doc)
        )
    }

    /// The table of keys is derived from the structs. With `SUPERVISOR_UPDATE_DOCS=1` it is written anew.
    #[test]
    fn configuration_page_lists_every_key_and_variable() {
        let page = std::fs::read_to_string(PAGE).expect("read");
        let head = "| key | variable | what it sets |\n| --- | --- | --- |\n";
        let (before, table) = page.split_once(head).expect("the table of keys");
        let (_, after) = table.split_once("\n\n").expect("text behind the table");
        let rows: String = schemas().into_iter().map(row).collect();
        let derived = format!("{before}{head}{rows}\n{after}");
        if std::env::var_os("SUPERVISOR_UPDATE_DOCS").is_some() {
            std::fs::write(PAGE, &derived).expect("written");
        } else if let Some((there, wanted)) = page
            .lines()
            .zip(derived.lines())
            .find(|(there, wanted)| there != wanted)
        {
            panic!(
                "docs/configuration.md has\n{there}\ninstead of\n{wanted}\n\
                 `SUPERVISOR_UPDATE_DOCS=1 cargo test -p supervisor-settings` writes it anew"
            );
        }

        let (_, table) = derived
            .split_once("| variable | what it sets |\n| --- | --- |\n")
            .expect("the table of variables");
        let mut listed: Vec<&str> = table
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        let aliases = ALIASES.iter().map(|(name, _)| *name);
        let mut known: Vec<&str> = aliases
            .chain(OTHER_VARIABLES.iter().copied())
            .chain(["LITELLM_API_KEY"])
            .collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }
}
