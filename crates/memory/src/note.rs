//! A note: front matter and text, readable and editable by people.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use supervisor_text::words::front_matter;
use supervisor_text::words::front_matter::FrontMatterError;

/// What a note is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum NoteKind {
    #[default]
    Fact,
    Decision,
    Failure,
    Hypothesis,
    Source,
}

/// What a note rests on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NoteEvidence {
    /// Session log entries, such as `session:3`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<String>,
    /// A commit of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Files of the project; their contents are remembered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A parsed note.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Note {
    pub title: String,
    pub kind: NoteKind,
    pub tags: Vec<String>,
    pub project: String,
    /// Other names of the same project.
    pub aliases: Vec<String>,
    pub session_id: String,
    pub created: String,
    pub updated: String,
    pub entries: Vec<String>,
    pub commit: Option<String>,
    /// Path and content hash.
    pub files: Vec<(String, String)>,
    /// Unknown fields, kept as they are.
    pub unknown: Map<String, Value>,
    pub body: String,
    /// Why the front matter could not be parsed. Such a file is never rewritten.
    pub warning: Option<String>,
}

impl NoteKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Decision => "decision",
            Self::Failure => "failure",
            Self::Hypothesis => "hypothesis",
            Self::Source => "source",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        serde_json::from_value(json!(word)).ok()
    }
}

impl Note {
    /// Never fails: a file with broken front matter becomes a note with a warning.
    pub fn parse(name: &str, text: &str) -> Self {
        let (front, warning) = match front_matter::split(text) {
            Ok(front) => (front, None),
            Err(error) => (front_matter::FrontMatter::default(), Some(problem(&error))),
        };
        let body = text
            .get(front.body..)
            .unwrap_or_default()
            .trim_start_matches('\n')
            .to_owned();
        let mut fields = front.fields;
        let mut take = |key: &str| fields.remove(key).unwrap_or_default();
        let text_of = |value: Value| value.as_str().map(str::to_owned).unwrap_or_default();
        let list_of = |value: Value| -> Vec<String> {
            match value {
                Value::Array(items) => items
                    .iter()
                    .filter_map(|i| i.as_str().map(str::to_owned))
                    .collect(),
                Value::String(one) => one
                    .split(',')
                    .map(|t| t.trim().to_owned())
                    .filter(|t| !t.is_empty())
                    .collect(),
                _ => Vec::new(),
            }
        };
        let title = text_of(take("title"));
        let kind = NoteKind::of_word(&text_of(take("kind"))).unwrap_or_default();
        let (tags, project, aliases) = (
            list_of(take("tags")),
            text_of(take("project")),
            list_of(take("aliases")),
        );
        let (session_id, created, updated) = (
            text_of(take("session_id")),
            text_of(take("created")),
            text_of(take("updated")),
        );
        let evidence = take("evidence");
        let files = evidence
            .get("files")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        Self {
            title: if title.is_empty() {
                title_of(name, &body)
            } else {
                title
            },
            kind,
            tags,
            project,
            aliases,
            session_id,
            created,
            updated,
            entries: list_of(evidence.get("entries").cloned().unwrap_or_default()),
            commit: evidence
                .get("commit")
                .and_then(Value::as_str)
                .map(str::to_owned),
            files: files
                .into_iter()
                .filter_map(|(path, hash)| Some((path, hash.as_str()?.to_owned())))
                .collect(),
            unknown: fields,
            body,
            warning,
        }
    }

    /// Renders the file. Values are JSON, which is valid YAML, so that no text can break out of its
    /// line.
    pub fn render(&self) -> String {
        let mut text = String::from("---\n");
        let mut line = |key: &str, value: &Value| {
            let _ = writeln!(text, "{key}: {value}");
        };
        line("title", &json!(self.title));
        line("kind", &json!(self.kind));
        if !self.tags.is_empty() {
            line("tags", &json!(self.tags));
        }
        for (key, value) in [("project", &self.project), ("session_id", &self.session_id)] {
            if !value.is_empty() {
                line(key, &json!(value));
            }
        }
        if !self.aliases.is_empty() {
            line("aliases", &json!(self.aliases));
        }
        line("created", &json!(self.created));
        line("updated", &json!(self.updated));
        for (key, value) in &self.unknown {
            line(key, value);
        }
        if self.has_evidence() {
            text.push_str("evidence:\n");
            let mut line = |key: &str, value: &Value| {
                let _ = writeln!(text, "  {key}: {value}");
            };
            if !self.entries.is_empty() {
                line("entries", &json!(self.entries));
            }
            if let Some(commit) = &self.commit {
                line("commit", &json!(commit));
            }
            if !self.files.is_empty() {
                let files: Map<String, Value> = self
                    .files
                    .iter()
                    .map(|(p, h)| (p.clone(), json!(h)))
                    .collect();
                line("files", &Value::Object(files));
            }
        }
        text.push_str("---\n\n");
        text + self.body.trim_end() + "\n"
    }

    pub fn has_evidence(&self) -> bool {
        !self.entries.is_empty() || self.commit.is_some() || !self.files.is_empty()
    }
}

fn problem(error: &FrontMatterError) -> String {
    error.to_string()
}

/// The first heading or line, else the file name.
fn title_of(name: &str, body: &str) -> String {
    let first = body
        .lines()
        .map(|line| line.trim_start_matches('#').trim())
        .find(|line| !line.is_empty());
    first.map_or_else(
        || name.trim_end_matches(".md").replace('-', " "),
        |line| line.chars().take(100).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_round_trips() {
        let note = Note {
            title: "A: \"quoted\" --- title\nwith a break".into(),
            kind: NoteKind::Failure,
            tags: vec!["a b".into(), "c: d".into()],
            project: "commit:1 remote:h/o/r".into(),
            session_id: "s-1".into(),
            created: "2026-11-01T00:00:00Z".into(),
            updated: "2026-11-02T00:00:00Z".into(),
            entries: vec!["s-1:2".into()],
            commit: Some("abc".into()),
            files: vec![("src/a: b.rs".into(), "00ff".into())],
            unknown: Map::from_iter([("colour".to_owned(), json!("blue"))]),
            body: "# Text\n\n---\nmore\n".into(),
            ..Note::default()
        };
        assert_eq!(Note::parse("x.md", &note.render()), note);
    }

    #[test]
    fn broken_front_matter_gives_a_warning() {
        let plain = Note::parse("a-note.md", "# Heading\n\ntext");
        assert_eq!((plain.title.as_str(), plain.warning), ("Heading", None));
        let broken = Note::parse("a.md", "---\ntitle: [x\n---\nbody words\n");
        assert!(
            broken.warning.is_some() && broken.body.contains("body words"),
            "{broken:?}"
        );
    }
}
