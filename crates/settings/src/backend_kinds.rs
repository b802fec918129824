//! Settings of the backend kinds: the name of each, the keys it reads and the key it requires.
//! There is one entry per kind. How a kind is asked, probed and priced is in the file of its name
//! in `backend`.

use super::sections::BackendKind;

/// One kind.
pub struct KindEntry {
    pub kind: BackendKind,
    /// Name in `models.toml`.
    pub name: &'static str,
    /// Its keys, besides those of every backend.
    pub keys: &'static [&'static str],
    /// The required key, and a hint if it is missing.
    pub needs: (&'static str, &'static str),
}

pub(crate) const KINDS: &[KindEntry] = &[
    KindEntry {
        kind: BackendKind::Openai,
        name: "openai",
        keys: &["base_url", "api_key_env"],
        needs: (
            "base_url",
            r#"say where it listens: base_url = "http://localhost:4000""#,
        ),
    },
    KindEntry {
        kind: BackendKind::Anthropic,
        name: "anthropic",
        keys: &["base_url", "api_key_env"],
        needs: (
            "api_key_env",
            r#"name the variable that holds the key: api_key_env = "ANTHROPIC_API_KEY""#,
        ),
    },
    KindEntry {
        kind: BackendKind::ClaudeCli,
        name: "claude-cli",
        keys: &[
            "program",
            "permission_mode",
            "max_turns",
            "env_pass",
            "sandbox",
            "worker",
            "enabled_by",
            "base_url",
            "api_key_env",
        ],
        needs: ("program", r#"say what to run: program = "claude""#),
    },
    KindEntry {
        kind: BackendKind::Replay,
        name: "replay",
        keys: &["file"],
        needs: ("file", "give the absolute path of the recorded answers"),
    },
];

/// Only the names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|entry| entry.name)
}

impl BackendKind {
    /// Name in `models.toml`.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    pub fn entry(self) -> &'static KindEntry {
        KINDS
            .iter()
            .find(|entry| entry.kind == self)
            .expect("a test finds each kind in the table")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_an_entry() {
        for name in names() {
            let kind: BackendKind =
                serde_json::from_value(serde_json::json!(name)).expect("a kind of this name");
            assert_eq!(kind.name(), name);
            assert!(
                kind.entry().keys.contains(&kind.entry().needs.0),
                "{name} needs a key that it does not read"
            );
        }
    }
}
