//! What was asked for, point by point, and what the reviewer says of each.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::list;
use supervisor_text::words;
use supervisor_verify::Check;

/// One point, with the name it is answered under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewRequirement {
    pub id: String,
    pub text: String,
}

/// All of them, `R1` to `Rn`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequirementList(Vec<ReviewRequirement>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequirementVerdict {
    Met,
    Missing,
    CannotVerify,
}

impl RequirementVerdict {
    pub const ALL: [Self; 3] = [Self::Met, Self::Missing, Self::CannotVerify];

    pub fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missing => "missing",
            Self::CannotVerify => "cannot_verify",
        }
    }
}

/// What the reviewer says of one point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequirementAnswer {
    pub id: String,
    pub verdict: RequirementVerdict,
    pub why: String,
}

impl RequirementList {
    /// One for each line that says something and is no heading; bullets and numbers before it are not part of it.
    pub fn of(text: &str) -> Self {
        let is_heading = |line: &str| line.starts_with('#') || line.trim_end().ends_with(':');
        let says = |line: &&str| line.chars().any(char::is_alphanumeric) && !is_heading(line);
        let lines = text.lines().map(without_bullet).filter(says);
        Self(
            lines
                .enumerate()
                .map(|(n, text)| ReviewRequirement {
                    id: format!("R{}", n + 1),
                    text: text.into(),
                })
                .collect(),
        )
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &ReviewRequirement> {
        self.0.iter()
    }

    /// Each has a verdict, with a reason unless it is met. Where several replies speak, the one that saw it wins.
    pub(super) fn answered(&self, replies: &[&Value]) -> (Vec<RequirementAnswer>, Check) {
        let mut best: BTreeMap<&str, RequirementAnswer> = BTreeMap::new();
        let mut wrong = Vec::new();
        for given in replies.iter().flat_map(|reply| list(reply, "requirements")) {
            let text = |field: &str| {
                given
                    .get(field)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .trim()
            };
            let Some(known) = self
                .0
                .iter()
                .find(|r| r.id.eq_ignore_ascii_case(text("id")))
            else {
                wrong.push(format!(
                    "there is no `{}`",
                    words::cut_end(&words::plain(text("id")), 40)
                ));
                continue;
            };
            let Some(verdict) = RequirementVerdict::ALL
                .into_iter()
                .find(|v| v.word().eq_ignore_ascii_case(text("verdict")))
            else {
                let is_one_of =
                    words::one_of(RequirementVerdict::ALL.map(RequirementVerdict::word));
                wrong.push(format!("the verdict on `{}` is not {is_one_of}", known.id));
                continue;
            };
            if verdict != RequirementVerdict::Met && text("why").is_empty() {
                wrong.push(format!(
                    "`{}` is {} without a `why`",
                    known.id,
                    verdict.word()
                ));
                continue;
            }
            let why = words::cut_end(&words::plain(text("why")), 400).into_owned();
            let answer = RequirementAnswer {
                id: known.id.clone(),
                verdict,
                why,
            };
            let kept = best.entry(&known.id).or_insert_with(|| answer.clone());
            if answer.verdict < kept.verdict {
                *kept = answer;
            }
        }
        let unanswered = self
            .0
            .iter()
            .filter(|r| !best.contains_key(r.id.as_str()))
            .map(|r| &r.id);
        let unanswered: Vec<&String> = unanswered.collect();
        let pass = unanswered.is_empty() && wrong.is_empty();
        let detail = match (pass, unanswered.is_empty()) {
            (true, _) => format!("{} answered", words::count(self.0.len(), "requirement")),
            (false, true) => wrong.join("; "),
            (false, false) => {
                wrong.insert(
                    0,
                    format!(
                        "`requirements` has no verdict on {}",
                        words::list(unanswered.iter(), 10)
                    ),
                );
                wrong.join("; ")
            }
        };
        let detail = if pass {
            detail
        } else {
            format!("{detail}; give each id one verdict and a `why`")
        };
        // In the order they were asked.
        let answers = self
            .0
            .iter()
            .filter_map(|r| best.get(r.id.as_str()).cloned())
            .collect();
        (
            answers,
            Check::new("requirements", pass, words::cut_end(&detail, 1000)),
        )
    }
}

/// `- [ ] does x`, `2. does x`, `R2: does x`
fn without_bullet(line: &str) -> &str {
    let line = line
        .trim()
        .trim_start_matches(['-', '*', '+', '•'])
        .trim_start();
    let line = line
        .strip_prefix("[ ]")
        .or_else(|| line.strip_prefix("[x]"))
        .unwrap_or(line)
        .trim_start();
    let number = line.trim_start_matches(['R', 'r']);
    let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix(['.', ')', ':']) {
        Some(rest) if rest.len() + 1 < number.len() && rest.starts_with(' ') => rest.trim_start(),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_line_is_a_requirement_without_its_bullet() {
        let all = RequirementList::of(
            "# All\nMust:\n- adds\n* [ ] subtracts\n\n1. divides\nR7: is fast\n---\n2.5 seconds",
        );
        let all: Vec<_> = all.iter().map(|r| format!("{}={}", r.id, r.text)).collect();
        assert_eq!(
            all,
            [
                "R1=adds",
                "R2=subtracts",
                "R3=divides",
                "R4=is fast",
                "R5=2.5 seconds"
            ]
        );
    }

    #[test]
    fn each_needs_a_verdict_and_who_saw_it_wins() {
        let all = RequirementList::of("adds\nsubtracts");
        let said = |list: Value| json!({"requirements": list});
        let (one, two) = (
            said(
                json!([{"id": "R1", "verdict": "missing", "why": "not here"}, {"id": "R2", "verdict": "cannot_verify", "why": "?"}]),
            ),
            said(
                json!([{"id": "r1", "verdict": "Met"}, {"id": "R2", "verdict": "missing", "why": "no"}]),
            ),
        );
        let (answers, check) = all.answered(&[&one, &two]);
        assert!(check.passed(), "{check:?}");
        assert_eq!(
            (answers[0].verdict, answers[1].verdict),
            (RequirementVerdict::Met, RequirementVerdict::Missing)
        );
        for (given, words) in [
            (
                json!([{"id": "R1", "verdict": "met"}]),
                "no verdict on `R2`",
            ),
            (
                json!([{"id": "R1", "verdict": "met"}, {"id": "R2", "verdict": "yes"}]),
                "the verdict on `R2` is not `met`",
            ),
            (
                json!([{"id": "R1", "verdict": "met"}, {"id": "R2", "verdict": "missing"}]),
                "without a `why`",
            ),
            (
                json!([{"id": "R1", "verdict": "met"}, {"id": "R2", "verdict": "met"}, {"id": "R9", "verdict": "met"}]),
                "there is no `R9`",
            ),
        ] {
            let (_, check) = all.answered(&[&said(given)]);
            assert!(
                !check.passed() && check.detail().contains(words),
                "{check:?}"
            );
        }
    }
}
