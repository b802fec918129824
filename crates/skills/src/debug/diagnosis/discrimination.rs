//! Decides which cause the confirmations single out. A prediction that came true counts only if a
//! rival cause predicted otherwise, so every outcome is compared with the predictions of all
//! hypotheses.

use super::confirm::Confirmation;
use super::{Experiment, ExperimentOutcome, Hypothesis};

/// What one confirmation says about the rival hypotheses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Discrimination {
    /// The rivals that the outcome contradicts, by rank from 1.
    pub rules_out: Vec<usize>,
    /// Why the outcome is inconclusive although it was predicted.
    pub why_inconclusive: Option<String>,
}

/// Adds to each confirmation what it rules out. Also returns the one hypothesis that remains,
/// counted from 0.
pub(crate) fn compare(
    hypotheses: &[Hypothesis],
    confirmed: Vec<Confirmation>,
) -> (Vec<Confirmation>, Option<usize>) {
    let all = hypotheses.len().min(confirmed.len());
    let known: Vec<Option<String>> = hypotheses
        .iter()
        .zip(&confirmed)
        .map(|(h, c)| known_in_advance(h, c, hypotheses))
        .collect();
    let is_confirmed = |k: usize| confirmed[k].came_true() == Some(true) && known[k].is_none();
    // Whether the outcome of experiment k contradicts hypothesis j. An outcome known in advance
    // contradicts no rival.
    let contradicts =
        |k: usize, j: usize| match (confirmed[k].outcome, hypotheses[k].prediction_of(k, j)) {
            (Some(actual), Some(predicted)) => {
                actual != predicted && (k == j || known[k].is_none())
            }
            _ => false,
        };
    // Two predictions that both came true and contradict each other: one of them was wrong, and
    // there is no telling which.
    let is_mutual = |k: usize, j: usize| {
        k != j && is_confirmed(k) && is_confirmed(j) && contradicts(k, j) && contradicts(j, k)
    };
    let refutes = |k: usize, j: usize| contradicts(k, j) && !is_mutual(k, j);
    let is_refuted = |j: usize| (0..all).any(|k| refutes(k, j));
    let rivals = |h: usize| (0..all).filter(move |j| *j != h);
    let cause = (0..all).find(|h| {
        is_confirmed(*h)
            && !is_refuted(*h)
            && rivals(*h).any(|j| refutes(*h, j))
            && rivals(*h).all(is_refuted)
    });
    let discriminations: Vec<Discrimination> = (0..all)
        .map(|k| {
            let rules_out: Vec<usize> = if is_confirmed(k) {
                rivals(k)
                    .filter(|j| refutes(k, *j))
                    .map(|j| j + 1)
                    .collect()
            } else {
                vec![]
            };
            let came_true = confirmed[k].came_true() == Some(true);
            let also: Vec<String> = rivals(k)
                .filter(|j| is_mutual(k, *j))
                .map(|j| (j + 1).to_string())
                .collect();
            let why_inconclusive = match &known[k] {
                _ if !came_true => None,
                Some(why) => Some(why.clone()),
                None if !also.is_empty() => Some(format!(
                    "{} came out as predicted too, so that it does not tell the causes apart",
                    also.join(" and ")
                )),
                None if rules_out.is_empty() => Some(String::from(
                    "every rival predicts the same, so that it holds for all of them",
                )),
                None => None,
            };
            Discrimination {
                rules_out,
                why_inconclusive,
            }
        })
        .collect();
    (
        confirmed
            .into_iter()
            .zip(discriminations)
            .map(|(c, discrimination)| c.with_discrimination(discrimination))
            .collect(),
        cause,
    )
}

impl Hypothesis {
    /// The outcome that hypothesis `j` predicts for this one's experiment, which is number `own`.
    /// Without an explicit prediction, a rival is taken to predict what is expected if this one is
    /// false.
    fn prediction_of(&self, own: usize, j: usize) -> Option<ExperimentOutcome> {
        if own == j {
            return Some(self.expect_if_true);
        }
        match self.rivals.iter().find(|rival| rival.hypothesis == j) {
            Some(rival) => rival.expects,
            None => Some(self.expect_if_false),
        }
    }
}

/// Why the outcome was certain before the experiment ran.
fn known_in_advance(
    hypothesis: &Hypothesis,
    confirmation: &Confirmation,
    all: &[Hypothesis],
) -> Option<String> {
    if !hypothesis.is_related_to_its_search() {
        return Some(String::from(
            "the hypothesis says no word of what is searched",
        ));
    }
    let Experiment::Search { file, .. } = &hypothesis.experiment else {
        return None;
    };
    let cited = all
        .iter()
        .flat_map(|h| &h.evidence)
        .filter(|cited| cited.file == *file);
    let found = &confirmation.found;
    (!found.is_empty()
        && found
            .iter()
            .all(|line| cited.clone().any(|cited| cited.lines.contains(line))))
    .then(|| {
        String::from(
            "it finds only lines that are cited already, which stand there whichever cause is true",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::HypothesisDraft;
    use super::super::draft::drafts;
    use super::super::evidence::EvidenceSources;
    use super::super::gates::examine;
    use super::*;
    use serde_json::{Value, json};

    const FILE: &str = "lock = None\n\ndef put(item):\n    queue.append(item)\n    size = len(queue)\n    limit = 10\n    flush(queue)\n";

    fn one(
        likelihood: &str,
        mechanism: &str,
        line: usize,
        pattern: &str,
        expected: [&str; 2],
    ) -> Value {
        json!({"likelihood": likelihood, "mechanism": mechanism, "evidence": [{"file": "q.py", "line": line}],
               "confirm": {"search": {"pattern": pattern, "file": "q.py"}},
               "expect_if_true": expected[0], "expect_if_false": expected[1]})
    }

    /// Three causes: the queue is unguarded, the limit is never checked, `flush` clears entries
    /// still in use.
    fn answer(patterns: [(&str, [&str; 2]); 3]) -> Value {
        json!({"hypotheses": [
            one("high", "no acquire guards the queue, so that two threads append to it at the same moment", 4, patterns[0].0, patterns[0].1),
            one("medium", "the limit is set and never compared with the size, so that the queue grows on", 6, patterns[1].0, patterns[1].1),
            one("low", "flush clears the queue while another reader still iterates over its old entries", 7, patterns[2].0, patterns[2].1),
        ]})
    }

    /// The rivals that one confirmation rules out, and why it is inconclusive.
    type Comparison = (Vec<usize>, Option<String>);

    fn compare_answer(answer: &Value) -> (Option<usize>, Vec<Comparison>) {
        let drafts: Vec<HypothesisDraft> = drafts(answer).expect("the shape is right");
        let sources = EvidenceSources::of(drafts.iter().flat_map(HypothesisDraft::files), |path| {
            Ok((path.into(), FILE.to_owned()))
        });
        let examined = examine(&drafts, "RuntimeError: deque mutated", &sources);
        let hypotheses = examined
            .hypotheses
            .unwrap_or_else(|| panic!("{:?}", examined.checks));
        let search = |h: &Hypothesis| match &h.experiment {
            Experiment::Search { pattern, file } => h.search(pattern, file, &sources),
            Experiment::RunTest(name) => panic!("{name} is no search"),
        };
        let confirmed = hypotheses.iter().map(search).collect();
        let (confirmed, cause) = compare(&hypotheses, confirmed);
        (
            cause,
            confirmed
                .into_iter()
                .map(|c| {
                    (
                        c.discrimination().rules_out.clone(),
                        c.discrimination().why_inconclusive.clone(),
                    )
                })
                .collect(),
        )
    }

    const ABSENT: [&str; 2] = ["not_found", "found"];
    const THERE: [&str; 2] = ["found", "not_found"];

    #[test]
    fn confirmation_that_contradicts_rivals_identifies_the_cause() {
        let (cause, compared) = compare_answer(&answer([
            ("acquire", ABSENT),
            (r"if size > limit", THERE),
            (r"flush\(list", THERE),
        ]));
        assert_eq!(cause, Some(0));
        assert_eq!(compared[0], (vec![2, 3], None));
    }

    #[test]
    fn conflicting_confirmations_are_inconclusive() {
        let (cause, compared) = compare_answer(&answer([
            ("acquire", ABSENT),
            (r"size >=? limit", ABSENT),
            (r"flush\(list", THERE),
        ]));
        assert_eq!(cause, None);
        let because = |n: &str| {
            Some(format!(
                "{n} came out as predicted too, so that it does not tell the causes apart"
            ))
        };
        assert_eq!(
            (
                compared[0].1.clone(),
                compared[1].1.clone(),
                compared[2].1.clone()
            ),
            (because("2"), because("1"), None)
        );
    }

    #[test]
    fn prediction_shared_by_all_rivals_is_inconclusive() {
        let mut answer = answer([
            ("acquire", ABSENT),
            (r"if size > limit", THERE),
            (r"flush\(list", THERE),
        ]);
        answer["hypotheses"][0]["rivals"] =
            json!([{"rank": 2, "expects": "not_found"}, {"rank": 3, "expects": "not found"}]);
        let (cause, all) = compare_answer(&answer);
        assert_eq!((cause, all[0].0.len()), (None, 0));
        assert!(
            all[0]
                .1
                .as_deref()
                .is_some_and(|why| why.starts_with("every rival predicts the same")),
            "{all:?}"
        );
        // One rival predicts otherwise and is ruled out; the other is refuted by its own
        // experiment.
        answer["hypotheses"][0]["rivals"] =
            json!([{"rank": 2, "expects": "not_found"}, {"rank": 3, "expects": "found"}]);
        let (cause, all) = compare_answer(&answer);
        assert_eq!((cause, &all[0]), (Some(0), &(vec![3], None)));
        answer["hypotheses"][0]["rivals"] =
            json!([{"rank": 2, "expects": "either"}, {"rank": 3, "expects": null}]);
        assert_eq!(
            compare_answer(&answer).0,
            None,
            "a rival that predicts nothing is not ruled out"
        );
    }

    #[test]
    fn search_for_cited_lines_is_inconclusive() {
        // The first two searches find only the lines they cite.
        let (cause, compared) = compare_answer(&answer([
            (r"queue\.append", THERE),
            ("limit = 10", THERE),
            (r"for .* in queue", THERE),
        ]));
        assert_eq!(cause, None);
        for n in [0, 1] {
            assert!(
                compared[n]
                    .1
                    .as_deref()
                    .is_some_and(|why| why.contains("cited already")),
                "{compared:?}"
            );
        }
        assert_eq!(
            compared[2],
            (vec![], None),
            "it did not come true, which speaks against it"
        );
    }

    #[test]
    fn contradicted_cause_is_not_identified() {
        let mut answer = answer([
            ("acquire", ABSENT),
            (r"if size > limit", THERE),
            ("flush", THERE),
        ]);
        // The third finds line 7, which it cites. The second fails its own prediction, and it
        // expects `found` of the first.
        answer["hypotheses"][1]["rivals"] = json!([{"rank": 1, "expects": "found"}]);
        assert_eq!(
            compare_answer(&answer).0,
            None,
            "the outcome of the second test contradicts the first cause"
        );
    }
}
