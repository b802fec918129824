//! What a model says about candidates for training: a score and a label for each, and nothing else. The examples
//! themselves come from the log; here is decided which may be written down.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::private_names::PrivateNames;
use supervisor_text::words;
use supervisor_verify::Check;

/// Bytes of a completion that teaches something.
const SHORTEST: usize = 10;
/// Bytes of a label.
const LABEL: usize = 160;

/// What an example is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleKind {
    /// Done right: imitate it.
    Sft,
    /// Refused, then done right: prefer the one to the other.
    Dpo,
}

/// One example, straight from the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingCandidate {
    /// `d1`, `s2`: how models refer to it.
    pub id: String,
    pub skill: String,
    pub rules: String,
    pub prompt: String,
    pub chosen: String,
    /// Only in a pair.
    pub rejected: Option<String>,
}

/// What a model says of one candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateLabel {
    pub label: String,
    pub tags: Vec<String>,
}

impl TrainingCandidate {
    pub fn kind(&self) -> ExampleKind {
        if self.rejected.is_some() {
            ExampleKind::Dpo
        } else {
            ExampleKind::Sft
        }
    }

    /// Why it may not be written down, whatever a model thinks of it. `hides_secret` says what a secret is.
    pub fn find_fault(
        &self,
        names: &PrivateNames,
        hides_secret: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let completions: Vec<&str> = std::iter::once(&self.chosen)
            .chain(&self.rejected)
            .map(String::as_str)
            .collect();
        if completions.iter().any(|text| text.trim().len() < SHORTEST)
            || self.prompt.trim().is_empty()
        {
            return Some(String::from("it is too short to teach anything"));
        }
        if self
            .rejected
            .as_ref()
            .is_some_and(|rejected| normalised(rejected) == normalised(&self.chosen))
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

    /// The same example has the same digest, whatever it is called.
    pub fn digest(&self) -> String {
        let rejected = self.rejected.as_deref().unwrap_or_default();
        let text = [&self.prompt, &self.chosen, rejected]
            .map(normalised)
            .join("\0");
        blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
    }

    /// One line of the file: the conversational formats of TRL. The single messages beside the lists are what
    /// LLaMA-Factory reads.
    pub fn row(&self, score: u8, label: &CandidateLabel) -> Value {
        let message = |role: &str, content: &str| json!({"role": role, "content": content});
        let mut asked = Vec::new();
        if !self.rules.is_empty() {
            asked.push(message("system", &self.rules));
        }
        asked.push(message("user", &self.prompt));
        let chosen = message("assistant", &self.chosen);
        let mut row = match &self.rejected {
            Some(rejected) => {
                let rejected = message("assistant", rejected);
                json!({"prompt": asked, "chosen": [chosen], "rejected": [rejected],
                    "chosen_message": chosen, "rejected_message": rejected})
            }
            None => {
                asked.push(chosen);
                json!({ "messages": asked })
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

pub fn score_schema() -> Value {
    list_schema(
        "scores",
        &json!({"id": {"type": "string"}, "score": {"type": "integer", "minimum": 1, "maximum": 5}, "why": {"type": "string"}}),
    )
}

pub fn label_schema() -> Value {
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

/// A score from 1 to 5 for each candidate, once.
pub fn read_scores(body: &Value, ids: &BTreeSet<String>) -> (Check, BTreeMap<String, u8>) {
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
    (told("scores", &faults, ids.len()), scores)
}

/// A label for each candidate, once, that names nothing private.
pub fn read_labels(
    body: &Value,
    ids: &BTreeSet<String>,
    names: &PrivateNames,
) -> (Check, BTreeMap<String, CandidateLabel>) {
    let mut labels = BTreeMap::new();
    let faults = read_items(body, "labels", ids, |id, item| {
        let label = item["label"].as_str().unwrap_or_default().trim();
        if label.len() < 3 || label.len() > LABEL || label.contains('\n') {
            return Some(format!(
                "the label of `{id}` must be one line of at most {LABEL} bytes"
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
    (told("labels", &faults, ids.len()), labels)
}

/// The files grew by exactly the lines that were to be written.
pub fn check_grown(written: usize, grown: usize, readable: bool) -> Check {
    let detail = match (written == grown, readable) {
        (true, true) => format!(
            "the files grew by {}, each of them JSON",
            words::count(grown, "line")
        ),
        (true, false) => String::from("a line that was written is no JSON"),
        (false, _) => format!(
            "{} were written, and the files grew by {grown}",
            words::count(written, "line")
        ),
    };
    Check::new("grown", written == grown && readable, detail)
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

fn told(id: &'static str, faults: &[String], all: usize) -> Check {
    match faults {
        [] => Check::new(
            id,
            true,
            format!("one for each of {}", words::count(all, "candidate")),
        ),
        faults => Check::new(id, false, words::series(faults, 6)),
    }
}

fn normalised(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
    fn an_example_that_betrays_something_or_teaches_nothing_is_not_written() {
        let mut names = PrivateNames::of_this_machine();
        names.add_session("s-2026");
        let secret = |text: &str| text.contains("[redacted]");
        let good = candidate("return a + b  # right", Some("return a - b  # wrong"));
        assert_eq!(good.find_fault(&names, secret), None);
        for (bad, said) in [
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
                    .is_some_and(|why| why.contains(said)),
                "{bad:?}"
            );
        }
        assert_eq!(
            good.digest(),
            candidate("return a + b # right", Some("return a - b # wrong")).digest()
        );
    }

    #[test]
    fn scores_and_labels_are_complete_or_refused() {
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
