//! The requirements of a review and the reviewer's verdict on each.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::list;
use supervisor_text::words;
use supervisor_verify::Check;

/// One requirement with its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ReviewRequirement {
    pub id: String,
    pub text: String,
}

/// All requirements, `R1` to `Rn`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RequirementList(Vec<ReviewRequirement>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequirementVerdict {
    Met,
    Missing,
    CannotVerify,
}

impl RequirementVerdict {
    pub(crate) const ALL: [Self; 3] = [Self::Met, Self::Missing, Self::CannotVerify];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missing => "missing",
            Self::CannotVerify => "cannot_verify",
        }
    }
}

/// The reviewer's verdict on one requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RequirementAnswer {
    pub id: String,
    pub verdict: RequirementVerdict,
    pub why: String,
}

impl RequirementList {
    /// Makes one requirement of each line that has text and is not a heading. Bullets and numbers
    /// are removed.
    pub(crate) fn of(text: &str) -> Self {
        let is_heading = |line: &str| line.starts_with('#') || line.trim_end().ends_with(':');
        let is_requirement =
            |line: &&str| line.chars().any(char::is_alphanumeric) && !is_heading(line);
        let lines = text.lines().map(strip_bullet).filter(is_requirement);
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

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ReviewRequirement> {
        self.0.iter()
    }

    /// Checks that each requirement has a verdict, with a reason unless it is met. If several
    /// replies answer, the most positive verdict wins: only one of them may have seen the code.
    pub(super) fn check_answers(&self, replies: &[&Value]) -> (Vec<RequirementAnswer>, Check) {
        let mut best: BTreeMap<&str, RequirementAnswer> = BTreeMap::new();
        let mut faults = Vec::new();
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
                faults.push(format!(
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
                faults.push(format!("the verdict on `{}` is not {is_one_of}", known.id));
                continue;
            };
            if verdict != RequirementVerdict::Met && text("why").is_empty() {
                faults.push(format!(
                    "`{}` is {} without a `why`",
                    known.id,
                    verdict.word()
                ));
                continue;
            }
            let why = words::short(text("why"), 400);
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
        let pass = unanswered.is_empty() && faults.is_empty();
        let detail = match (pass, unanswered.is_empty()) {
            (true, _) => format!("{} answered", words::count(self.0.len(), "requirement")),
            (false, true) => faults.join("; "),
            (false, false) => {
                faults.insert(
                    0,
                    format!(
                        "`requirements` has no verdict on {}",
                        words::list(unanswered.iter(), 10)
                    ),
                );
                faults.join("; ")
            }
        };
        let detail = if pass {
            detail
        } else {
            format!("{detail}; give each id one verdict and a `why`")
        };
        // In the order of the requirements.
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

/// Removes the marker of `- [ ] does x`, `2. does x` and `R2: does x`.
fn strip_bullet(line: &str) -> &str {
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
    fn every_requirement_needs_a_verdict() {
        let all = RequirementList::of("adds\nsubtracts");
        let reply = |list: Value| json!({"requirements": list});
        let (one, two) = (
            reply(
                json!([{"id": "R1", "verdict": "missing", "why": "not here"}, {"id": "R2", "verdict": "cannot_verify", "why": "?"}]),
            ),
            reply(
                json!([{"id": "r1", "verdict": "Met"}, {"id": "R2", "verdict": "missing", "why": "no"}]),
            ),
        );
        let (answers, check) = all.check_answers(&[&one, &two]);
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
            let (_, check) = all.check_answers(&[&reply(given)]);
            assert!(
                !check.passed() && check.detail().contains(words),
                "{check:?}"
            );
        }
    }
}
