//! Hypotheses as a model wrote them. Parsing is lenient where the meaning is clear, so that the
//! gates can say what is missing.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::common::SHAPE;
use supervisor_text::words;
use supervisor_verify::Check;

/// One hypothesis as written. Any field may be missing.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct HypothesisDraft {
    #[serde(default, deserialize_with = "text")]
    pub(super) likelihood: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) title: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) mechanism: String,
    #[serde(default, deserialize_with = "list")]
    pub(super) evidence: Vec<EvidencePointer>,
    #[serde(default)]
    pub(super) confirm: Option<ConfirmDraft>,
    #[serde(default, deserialize_with = "text")]
    pub(super) expect_if_true: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) expect_if_false: String,
    #[serde(default)]
    pub(super) rivals: Option<Vec<RivalDraft>>,
    #[serde(default, deserialize_with = "text")]
    pub(super) because: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) command: String,
}

/// A cited line with its quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EvidencePointer {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) quote: String,
}

/// The two kinds of experiment. Exactly one should be set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct ConfirmDraft {
    #[serde(default, deserialize_with = "text")]
    pub(super) run_test: String,
    #[serde(default)]
    pub(super) search: Option<SearchDraft>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct SearchDraft {
    // Not trimmed: whitespace is significant in a pattern.
    #[serde(default)]
    pub(super) pattern: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) file: String,
}

/// The outcome that another hypothesis predicts for this experiment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct RivalDraft {
    #[serde(default, alias = "hypothesis")]
    pub(super) rank: usize,
    #[serde(default, alias = "expect", deserialize_with = "text")]
    pub(super) expects: String,
}

impl HypothesisDraft {
    /// All files the draft names, as written.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        let searched = self
            .confirm
            .as_ref()
            .and_then(|ways| ways.search.as_ref())
            .map(|search| search.file.as_str());
        self.evidence
            .iter()
            .map(|pointer| pointer.file.as_str())
            .chain(searched)
            .filter(|file| !file.is_empty())
    }

    /// Names the draft in messages: `hypothesis 2 ("the cache is stale")`.
    pub(super) fn label(&self, n: usize) -> String {
        let text = if self.title.is_empty() {
            &self.mechanism
        } else {
            &self.title
        };
        match words::cut_end(&words::plain(text), 60) {
            text if text.is_empty() => format!("hypothesis {}", n + 1),
            text => format!("hypothesis {} (\"{}\")", n + 1, text.replace('\n', " ")),
        }
    }
}

/// Parses the hypotheses of an answer, or returns the failed check.
pub(crate) fn drafts(answer: &Value) -> Result<Vec<HypothesisDraft>, Check> {
    let refuse = |why: String| Check::new(SHAPE, false, why);
    let Some(given) = answer.get("hypotheses") else {
        return Err(refuse(String::from(
            "the answer has no `hypotheses`: answer with one JSON object whose `hypotheses` is a list of 3 to 5",
        )));
    };
    serde_path_to_error::deserialize(given).map_err(|e| {
        let path = e.path().to_string();
        refuse(format!(
            "`hypotheses{path}` has the wrong shape: {}",
            words::cut_end(&e.inner().to_string(), 300)
        ))
    })
}

/// Treats null as empty, because models write it for omitted fields.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::<String>::deserialize(from)?
        .unwrap_or_default()
        .trim()
        .to_owned())
}

fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<EvidencePointer>, D::Error> {
    Ok(Option::<Vec<EvidencePointer>>::deserialize(from)?.unwrap_or_default())
}

/// The leading number of `12`, `12-14` or `12 (the guard)`; 0 if there is none.
fn leading_number(text: &str) -> usize {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end].parse().unwrap_or(0)
}

/// Accepts an object or a string such as `src/a.rs:12`.
impl<'de> Deserialize<'de> for EvidencePointer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum WrittenPointer {
            Whole {
                #[serde(default, deserialize_with = "text")]
                file: String,
                #[serde(default)]
                line: Value,
                #[serde(default, deserialize_with = "text")]
                quote: String,
            },
            Short(String),
        }
        // Anything but a number becomes line 0, which never exists.
        let number = |line: &Value| match line {
            Value::Number(n) => n
                .as_u64()
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(0),
            Value::String(text) => leading_number(text),
            _ => 0,
        };
        Ok(match WrittenPointer::deserialize(from)? {
            WrittenPointer::Whole { file, line, quote } => Self {
                file,
                line: number(&line),
                quote,
            },
            WrittenPointer::Short(text) => {
                let mut parts = text.trim().splitn(3, ':');
                let file = parts.next().unwrap_or_default().to_owned();
                let line = parts.next().map_or(0, leading_number);
                Self {
                    file,
                    line,
                    quote: String::new(),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn drafts_are_parsed_leniently() {
        let answer = json!({"hypotheses": [{"likelihood": "High", "mechanism": null, "extra": 1,
            "evidence": ["src/a.rs:12:3", {"file": "b", "line": "7-9"}, {"file": "c", "line": null}, "d:4 (the guard)"],
            "confirm": {"search": {"pattern": " x", "file": "a"}}}]});
        let read = &drafts(&answer).expect("read")[0];
        let places: Vec<(&str, usize)> = read
            .evidence
            .iter()
            .map(|p| (p.file.as_str(), p.line))
            .collect();
        assert_eq!(places, [("src/a.rs", 12), ("b", 7), ("c", 0), ("d", 4)]);
        assert_eq!(
            read.files().collect::<Vec<_>>(),
            ["src/a.rs", "b", "c", "d", "a"]
        );
        assert_eq!(
            read.confirm
                .as_ref()
                .and_then(|c| c.search.as_ref())
                .map(|s| s.pattern.as_str()),
            Some(" x")
        );
        for (answer, named) in [
            (json!({}), "no `hypotheses`"),
            (
                json!({"hypotheses": "none"}),
                "`hypotheses.` has the wrong shape",
            ),
            (
                json!({"hypotheses": [{"mechanism": 3}]}),
                "`hypotheses[0].mechanism` has the wrong shape",
            ),
            (
                json!({"hypotheses": [{"confirm": "run it"}]}),
                "`hypotheses[0].confirm` has the wrong shape",
            ),
        ] {
            let check = drafts(&answer).expect_err("refused");
            assert!(check.detail().contains(named), "{check:?}");
        }
    }
}
