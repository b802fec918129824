//! Checks the scores and labels that models give to training candidates, and decides which examples
//! may be written. The examples themselves come from the log.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::common::private_names::PrivateNames;
use supervisor_text::words;
use supervisor_verify::Check;

/// Min bytes of a completion.
const MIN_COMPLETION_BYTES: usize = 10;
/// Max bytes of a label.
const MAX_LABEL_BYTES: usize = 160;

/// The kind of training example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExampleKind {
    /// An accepted answer to imitate.
    Sft,
    /// A refused and an accepted answer, to prefer one over the other.
    Dpo,
}

/// One example from the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrainingCandidate {
    /// Such as `d1` or `s2`; models refer to it by this id.
    pub id: String,
    pub skill: String,
    pub rules: String,
    pub prompt: String,
    pub chosen: String,
    /// Only in a pair.
    pub rejected: Option<String>,
}

/// A model's label for one candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CandidateLabel {
    pub label: String,
    pub tags: Vec<String>,
}

impl TrainingCandidate {
    pub(crate) fn kind(&self) -> ExampleKind {
        if self.rejected.is_some() {
            ExampleKind::Dpo
        } else {
            ExampleKind::Sft
        }
    }

    /// Why the candidate must not be written, whatever its score. `hides_secret` detects secrets.
    pub(crate) fn find_fault(
        &self,
        names: &PrivateNames,
        hides_secret: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let completions: Vec<&str> = std::iter::once(&self.chosen)
            .chain(&self.rejected)
            .map(String::as_str)
            .collect();
        if completions
            .iter()
            .any(|text| text.trim().len() < MIN_COMPLETION_BYTES)
            || self.prompt.trim().is_empty()
        {
            return Some(String::from("it is too short to teach anything"));
        }
        if self
            .rejected
            .as_ref()
            .is_some_and(|rejected| words::one_line(rejected) == words::one_line(&self.chosen))
        {
            return Some(String::from("chosen and rejected are the same"));
        }
        for text in std::iter::once(self.rules.as_str())
            .chain([self.prompt.as_str()])
            .chain(completions)
        {
            if hides_secret(text) {
                return Some(String::from(
                    "it holds a secret, or the mark of one that was taken out",
                ));
            }
            if let Some(found) = names.find(text) {
                return Some(format!("it names {found}"));
            }
        }
        None
    }

    /// A digest of the content, independent of the id.
    pub(crate) fn digest(&self) -> String {
        let rejected = self.rejected.as_deref().unwrap_or_default();
        let text = [&self.prompt, &self.chosen, rejected]
            .map(words::one_line)
            .join("\0");
        blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
    }

    /// One line of the training file, in the conversational format of TRL. The single messages
    /// beside the lists are for LLaMA-Factory.
    pub(crate) fn row(&self, score: u8, label: &CandidateLabel) -> Value {
        let message = |role: &str, content: &str| json!({"role": role, "content": content});
        let mut messages = Vec::new();
        if !self.rules.is_empty() {
            messages.push(message("system", &self.rules));
        }
        messages.push(message("user", &self.prompt));
        let chosen = message("assistant", &self.chosen);
        let mut row = match &self.rejected {
            Some(rejected) => {
                let rejected = message("assistant", rejected);
                json!({"prompt": messages, "chosen": [chosen], "rejected": [rejected],
                    "chosen_message": chosen, "rejected_message": rejected})
            }
            None => {
                messages.push(chosen);
                json!({ "messages": messages })
            }
        };
        row["skill"] = json!(self.skill);
        row["label"] = json!(label.label);
        row["tags"] = json!(label.tags);
        row["score"] = json!(score);
        row["digest"] = json!(self.digest());
        row
    }
}

pub(crate) fn score_schema() -> Value {
    list_schema(
        "scores",
        &json!({"id": {"type": "string"}, "score": {"type": "integer", "minimum": 1, "maximum": 5}, "why": {"type": "string"}}),
    )
}

pub(crate) fn label_schema() -> Value {
    list_schema(
        "labels",
        &json!({"id": {"type": "string"}, "label": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}),
    )
}

fn list_schema(name: &str, properties: &Value) -> Value {
    let required: Vec<&String> = properties
        .as_object()
        .map(|fields| fields.keys().collect())
        .unwrap_or_default();
    let item = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    json!({"type": "object", "properties": {name: {"type": "array", "items": item}}, "required": [name], "additionalProperties": false})
}

/// Reads one score from 1 to 5 for each candidate.
pub(crate) fn read_scores(body: &Value, ids: &BTreeSet<String>) -> (Check, BTreeMap<String, u8>) {
    let mut scores = BTreeMap::new();
    let faults = read_items(body, "scores", ids, |id, item| {
        match item["score"]
            .as_u64()
            .and_then(|score| u8::try_from(score).ok())
            .filter(|score| (1..=5).contains(score))
        {
            Some(score) => {
                scores.insert(id.to_owned(), score);
                None
            }
            None => Some(format!(
                "the score of `{id}` is {}; it must be a whole number from 1 to 5",
                item["score"]
            )),
        }
    });
    (completeness_check("scores", &faults, ids.len()), scores)
}

/// Reads one label for each candidate. Labels must not contain private names.
pub(crate) fn read_labels(
    body: &Value,
    ids: &BTreeSet<String>,
    names: &PrivateNames,
) -> (Check, BTreeMap<String, CandidateLabel>) {
    let mut labels = BTreeMap::new();
    let faults = read_items(body, "labels", ids, |id, item| {
        let label = item["label"].as_str().unwrap_or_default().trim();
        if label.len() < 3 || label.len() > MAX_LABEL_BYTES || label.contains('\n') {
            return Some(format!(
                "the label of `{id}` must be one line of at most {MAX_LABEL_BYTES} bytes"
            ));
        }
        let tags: Vec<String> = item["tags"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|tag| Some(slug(tag.as_str()?)))
            .collect();
        if let Some(found) = names.find_with_files(&format!("{label} {}", tags.join(" "))) {
            return Some(format!("the label of `{id}` names {found}"));
        }
        let tags = tags
            .into_iter()
            .filter(|tag| !tag.is_empty())
            .take(8)
            .collect();
        labels.insert(
            id.to_owned(),
            CandidateLabel {
                label: label.to_owned(),
                tags,
            },
        );
        None
    });
    (completeness_check("labels", &faults, ids.len()), labels)
}

/// Checks that exactly the expected lines were appended.
pub(crate) fn check_appended(expected: usize, added: usize, is_readable: bool) -> Check {
    let detail = match (expected == added, is_readable) {
        (true, true) => format!(
            "the files grew by {}, each of them JSON",
            words::count(added, "line")
        ),
        (true, false) => String::from("a line that was written is not JSON"),
        (false, _) => format!(
            "{} were written, and the files grew by {added}",
            words::count(expected, "line")
        ),
    };
    Check::new("grown", expected == added && is_readable, detail)
}

fn read_items(
    body: &Value,
    list: &str,
    ids: &BTreeSet<String>,
    mut read: impl FnMut(&str, &Value) -> Option<String>,
) -> Vec<String> {
    let Some(items) = body[list].as_array() else {
        return vec![format!("the answer has no list `{list}`")];
    };
    let (mut faults, mut seen) = (Vec::new(), BTreeSet::new());
    for item in items {
        let id = item["id"].as_str().unwrap_or_default();
        if !ids.contains(id) {
            faults.push(format!("there is no candidate {id:?}"));
        } else if !seen.insert(id.to_owned()) {
            faults.push(format!("`{id}` is there twice"));
        } else {
            faults.extend(read(id, item));
        }
    }
    faults.extend(ids.difference(&seen).map(|id| format!("`{id}` is missing")));
    faults
}

fn completeness_check(id: &'static str, faults: &[String], all: usize) -> Check {
    match faults {
        [] => Check::new(
            id,
            true,
            format!("one for each of {}", words::count(all, "candidate")),
        ),
        faults => Check::new(id, false, words::series(faults, 6)),
    }
}

fn slug(tag: &str) -> String {
    let plain: String = tag
        .to_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .collect();
    plain
        .split('-')
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("-")
        .chars()
        .take(40)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(chosen: &str, rejected: Option<&str>) -> TrainingCandidate {
        TrainingCandidate {
            id: "d1".into(),
            skill: "tdd_green".into(),
            rules: "Answer with code.".into(),
            prompt: "Make the test pass.".into(),
            chosen: chosen.into(),
            rejected: rejected.map(str::to_owned),
        }
    }

    #[test]
    fn private_or_trivial_example_is_rejected() {
        let mut names = PrivateNames::of_this_machine();
        names.add_session("s-2026");
        let secret = |text: &str| text.contains("[redacted]");
        let good = candidate("return a + b  # right", Some("return a - b  # wrong"));
        assert_eq!(good.find_fault(&names, secret), None);
        for (bad, reason) in [
            (
                candidate("return a + b # x", Some("return  a + b\n# x")),
                "the same",
            ),
            (candidate("ok", None), "too short"),
            (
                candidate("open /home/ada/key.txt first", None),
                "absolute path",
            ),
            (candidate("as seen in s-2026, return 4", None), "s-2026"),
            (candidate("the key is [redacted] here", None), "secret"),
        ] {
            assert!(
                bad.find_fault(&names, secret)
                    .is_some_and(|why| why.contains(reason)),
                "{bad:?}"
            );
        }
        assert_eq!(
            good.digest(),
            candidate("return a + b # right", Some("return a - b # wrong")).digest()
        );
    }

    #[test]
    fn incomplete_scores_and_labels_are_rejected() {
        let ids = BTreeSet::from(["d1".to_owned(), "s1".to_owned()]);
        let all = json!({"scores": [{"id": "d1", "score": 4, "why": ""}, {"id": "s1", "score": 1, "why": ""}]});
        let (check, scores) = read_scores(&all, &ids);
        assert!(check.passed() && scores["d1"] == 4, "{check:?}");
        for bad in [
            json!({"scores": [{"id": "d1", "score": 4}]}),
            json!({"scores": [{"id": "d1", "score": 6}, {"id": "s1", "score": 1}]}),
            json!({"scores": [{"id": "d1", "score": 4.5}, {"id": "s1", "score": 1}]}),
            json!({"scores": [{"id": "d1", "score": 4}, {"id": "s1", "score": 1}, {"id": "x", "score": 1}]}),
            json!({}),
        ] {
            assert!(!read_scores(&bad, &ids).0.passed(), "{bad}");
        }
        let names = PrivateNames::of_this_machine();
        let labels = json!({"labels": [{"id": "d1", "label": "off by one", "tags": ["Edge Case"]}, {"id": "s1", "label": "a sum", "tags": []}]});
        let (check, labels) = read_labels(&labels, &ids, &names);
        assert!(
            check.passed() && labels["d1"].tags == ["edge-case"],
            "{check:?}"
        );
    }

    #[test]
    fn a_row_is_a_conversation() {
        let label = CandidateLabel {
            label: "x".into(),
            tags: vec![],
        };
        let pair = candidate("good good good", Some("bad bad bad")).row(4, &label);
        assert_eq!(pair["prompt"][1]["role"], "user");
        assert_eq!(
            (&pair["chosen"][0], &pair["chosen"][0]["content"]),
            (&pair["chosen_message"], &json!("good good good"))
        );
        let single = candidate("good good good", None).row(4, &label);
        let roles: Vec<_> = single["messages"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|m| m["role"].clone())
            .collect();
        assert_eq!(roles, ["system", "user", "assistant"]);
    }
}
