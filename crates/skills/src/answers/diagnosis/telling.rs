//! What does a confirmation tell? That it came out as predicted is worth something only if a rival cause predicted
//! otherwise. Here every outcome is compared with what every hypothesis predicts of it; what holds whichever cause is true
//! shows nothing. Knows predictions and outcomes. Does not know how an outcome came about.

use super::confirm::Confirmation;
use super::{Experiment, ExperimentOutcome, Hypothesis};

/// What one confirmation says about the rivals of its hypothesis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Telling {
    /// The hypotheses that predicted otherwise, by rank from 1.
    pub against: Vec<usize>,
    /// Why it came out as predicted and still shows nothing.
    pub nothing: Option<String>,
}

/// Each confirmation with what it tells, and the one hypothesis that is told from all others, counted from 0.
pub fn compare(
    hypotheses: &[Hypothesis],
    confirmed: Vec<Confirmation>,
) -> (Vec<Confirmation>, Option<usize>) {
    let all = hypotheses.len().min(confirmed.len());
    let known: Vec<Option<String>> = hypotheses
        .iter()
        .zip(&confirmed)
        .map(|(h, c)| known_before(h, c, hypotheses))
        .collect();
    let held = |k: usize| confirmed[k].came_true() == Some(true) && known[k].is_none();
    // Does the outcome of experiment k contradict hypothesis j? One that was known before contradicts no rival.
    let excludes =
        |k: usize, j: usize| match (confirmed[k].outcome, hypotheses[k].prediction_of(k, j)) {
            (Some(is), Some(said)) => is != said && (k == j || known[k].is_none()),
            _ => false,
        };
    // Two that both came true and each exclude the other: one of the predictions was wrong, and none can tell which.
    let is_mutual =
        |k: usize, j: usize| k != j && held(k) && held(j) && excludes(k, j) && excludes(j, k);
    let tells = |k: usize, j: usize| excludes(k, j) && !is_mutual(k, j);
    let is_refuted = |j: usize| (0..all).any(|k| tells(k, j));
    let rivals = |h: usize| (0..all).filter(move |j| *j != h);
    let cause = (0..all).find(|h| {
        held(*h)
            && !is_refuted(*h)
            && rivals(*h).any(|j| tells(*h, j))
            && rivals(*h).all(is_refuted)
    });
    let tellings: Vec<Telling> = (0..all)
        .map(|k| {
            let against: Vec<usize> = if held(k) {
                rivals(k).filter(|j| tells(k, *j)).map(|j| j + 1).collect()
            } else {
                vec![]
            };
            let came_true = confirmed[k].came_true() == Some(true);
            let also: Vec<String> = rivals(k)
                .filter(|j| is_mutual(k, *j))
                .map(|j| (j + 1).to_string())
                .collect();
            let nothing = match &known[k] {
                _ if !came_true => None,
                Some(why) => Some(why.clone()),
                None if !also.is_empty() => Some(format!(
                    "{} came out as predicted too, so that it does not tell the causes apart",
                    also.join(" and ")
                )),
                None if against.is_empty() => Some(String::from(
                    "every rival predicts the same, so that it holds for all of them",
                )),
                None => None,
            };
            Telling { against, nothing }
        })
        .collect();
    (
        confirmed
            .into_iter()
            .zip(tellings)
            .map(|(c, telling)| c.with(telling))
            .collect(),
        cause,
    )
}

impl Hypothesis {
    /// What hypothesis `j` predicts of the experiment of this one, which is the `own`th. A rival that says nothing of its
    /// own is taken to predict what is expected if this one is false.
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

/// Why the outcome was certain before anything was run.
fn known_before(
    hypothesis: &Hypothesis,
    confirmation: &Confirmation,
    all: &[Hypothesis],
) -> Option<String> {
    if !hypothesis.is_about_its_test() {
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
    use super::super::evidence::EvidenceShelf;
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

    /// Three causes: nothing guards the queue, the limit is never compared, flush empties what others still read.
    fn answer(patterns: [(&str, [&str; 2]); 3]) -> Value {
        json!({"hypotheses": [
            one("high", "no acquire guards the queue, so that two threads append to it at the same moment", 4, patterns[0].0, patterns[0].1),
            one("medium", "the limit is set and never compared with the size, so that the queue grows on", 6, patterns[1].0, patterns[1].1),
            one("low", "flush clears the queue while another reader still iterates over its old entries", 7, patterns[2].0, patterns[2].1),
        ]})
    }

    /// What one confirmation speaks against, and why it tells nothing.
    type Told = (Vec<usize>, Option<String>);

    fn told(answer: &Value) -> (Option<usize>, Vec<Told>) {
        let drafts: Vec<HypothesisDraft> = drafts(answer).expect("the shape is right");
        let shelf = EvidenceShelf::of(drafts.iter().flat_map(HypothesisDraft::files), |said| {
            Ok((said.into(), FILE.to_owned()))
        });
        let examined = examine(&drafts, "RuntimeError: deque mutated", &shelf);
        let hypotheses = examined
            .hypotheses
            .unwrap_or_else(|| panic!("{:?}", examined.checks));
        let search = |h: &Hypothesis| match &h.experiment {
            Experiment::Search { pattern, file } => h.search(pattern, file, &shelf),
            Experiment::RunTest(name) => panic!("{name} is no search"),
        };
        let confirmed = hypotheses.iter().map(search).collect();
        let (confirmed, cause) = compare(&hypotheses, confirmed);
        (
            cause,
            confirmed
                .into_iter()
                .map(|c| (c.telling().against.clone(), c.telling().nothing.clone()))
                .collect(),
        )
    }

    const ABSENT: [&str; 2] = ["not_found", "found"];
    const THERE: [&str; 2] = ["found", "not_found"];

    #[test]
    fn one_that_came_true_where_its_rivals_said_otherwise_tells_the_cause() {
        let (cause, told) = told(&answer([
            ("acquire", ABSENT),
            (r"if size > limit", THERE),
            (r"flush\(list", THERE),
        ]));
        assert_eq!(cause, Some(0));
        assert_eq!(told[0], (vec![2, 3], None));
    }

    #[test]
    fn two_that_came_true_tell_nothing_of_each_other() {
        let (cause, told) = told(&answer([
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
            (told[0].1.clone(), told[1].1.clone(), told[2].1.clone()),
            (because("2"), because("1"), None)
        );
    }

    #[test]
    fn what_every_rival_predicts_shows_nothing() {
        let mut answer = answer([
            ("acquire", ABSENT),
            (r"if size > limit", THERE),
            (r"flush\(list", THERE),
        ]);
        answer["hypotheses"][0]["rivals"] =
            json!([{"rank": 2, "expects": "not_found"}, {"rank": 3, "expects": "not found"}]);
        let (cause, all) = told(&answer);
        assert_eq!((cause, all[0].0.len()), (None, 0));
        assert!(
            all[0]
                .1
                .as_deref()
                .is_some_and(|why| why.starts_with("every rival predicts the same")),
            "{all:?}"
        );
        // One rival that predicts otherwise is told from it; the other has its own test against it.
        answer["hypotheses"][0]["rivals"] =
            json!([{"rank": 2, "expects": "not_found"}, {"rank": 3, "expects": "found"}]);
        let (cause, all) = told(&answer);
        assert_eq!((cause, &all[0]), (Some(0), &(vec![3], None)));
        answer["hypotheses"][0]["rivals"] =
            json!([{"rank": 2, "expects": "either"}, {"rank": 3, "expects": null}]);
        assert_eq!(
            told(&answer).0,
            None,
            "who predicts nothing is not told from it"
        );
    }

    #[test]
    fn the_true_cause_third_and_two_that_hold_regardless_verify_nothing() {
        // The first two find the very lines that they cite.
        let (cause, told) = told(&answer([
            (r"queue\.append", THERE),
            ("limit = 10", THERE),
            (r"for .* in queue", THERE),
        ]));
        assert_eq!(cause, None);
        for n in [0, 1] {
            assert!(
                told[n]
                    .1
                    .as_deref()
                    .is_some_and(|why| why.contains("cited already")),
                "{told:?}"
            );
        }
        assert_eq!(
            told[2],
            (vec![], None),
            "it did not come true, which speaks against it"
        );
    }

    #[test]
    fn a_cause_that_another_outcome_contradicts_is_not_told() {
        let mut answer = answer([
            ("acquire", ABSENT),
            (r"if size > limit", THERE),
            ("flush", THERE),
        ]);
        // The third finds line 7, which it cites; the second is wrong about itself, and the first says that it is found.
        answer["hypotheses"][1]["rivals"] = json!([{"rank": 1, "expects": "found"}]);
        assert_eq!(
            told(&answer).0,
            None,
            "the outcome of the second test contradicts the first cause"
        );
    }
}
