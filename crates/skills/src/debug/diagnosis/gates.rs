//! The structural gates of a diagnosis, applied before any experiment runs. Each gate names
//! everything that fails it, so that the next model sees all faults at once.

use std::collections::BTreeSet;

use super::draft::{ConfirmDraft, HypothesisDraft};
use super::evidence::EvidenceSources;
use super::pattern::SearchPattern;
use super::similarity::is_similar;
use super::{Experiment, ExperimentOutcome, Hypothesis, Likelihood, RivalPrediction};
use crate::common::prose::Prose;
use supervisor_text::words;
use supervisor_verify::{Check, Flags};

/// Fewer leave the second-best cause unexamined; more are a list of everything.
const MIN_HYPOTHESES: usize = 3;
const MAX_HYPOTHESES: usize = 5;
/// A longer list is rejected without examining each one.
const MAX_EXAMINED: usize = 20;
/// Max citations of one hypothesis.
const MAX_CITATIONS: usize = 20;
/// Max bytes of the error that mechanisms are compared with.
const MAX_ERROR_BYTES: usize = 4 * 1024;

/// The checks of a diagnosis and their result.
#[derive(Debug)]
pub(crate) struct ExaminedDiagnosis {
    pub checks: Vec<Check>,
    pub flags: Flags,
    /// All hypotheses, if every check passed.
    pub hypotheses: Option<Vec<Hypothesis>>,
}

/// Examines every draft. `error` is the text to explain.
pub(crate) fn examine(
    drafts: &[HypothesisDraft],
    error: &str,
    sources: &EvidenceSources,
) -> ExaminedDiagnosis {
    if drafts.len() > MAX_EXAMINED {
        return ExaminedDiagnosis {
            checks: vec![check_count(drafts)],
            flags: Flags::default(),
            hypotheses: None,
        };
    }
    let experiments: Vec<Result<PlannedExperiment, String>> = (0..drafts.len())
        .map(|n| plan_experiment(drafts, n, sources))
        .collect();
    let error = Prose::new(&words::cut_middle(error, MAX_ERROR_BYTES)).stems();
    let checks = vec![
        check_count(drafts),
        check_order(drafts),
        check_mechanisms(drafts, &error),
        check_tests(drafts, &experiments),
        check_evidence(drafts, sources),
        check_distinct(drafts),
    ];
    let mut flags = Flags::default();
    if !checks.iter().all(Check::passed) {
        return ExaminedDiagnosis {
            checks,
            flags,
            hypotheses: None,
        };
    }
    let hypotheses: Option<Vec<Hypothesis>> = drafts
        .iter()
        .zip(experiments)
        .map(|(draft, planned)| build_hypothesis(draft, planned.ok()?, sources))
        .collect();
    if hypotheses.as_ref().is_some_and(|all| {
        all.iter()
            .all(|h| !h.is_related_to_its_search() && comes_true(h, sources))
    }) {
        let detail = "no search looks for anything that its hypothesis speaks of, and each comes out as it says";
        flags.raise("beside_the_cause", "the confirmations", detail);
    }
    ExaminedDiagnosis {
        checks,
        flags,
        hypotheses,
    }
}

/// Whether the search comes out as predicted.
fn comes_true(hypothesis: &Hypothesis, sources: &EvidenceSources) -> bool {
    let Experiment::Search { pattern, file } = &hypothesis.experiment else {
        return false;
    };
    let found = sources
        .text(file)
        .and_then(|text| pattern.lines(text).ok())
        .is_some_and(|lines| !lines.is_empty());
    found == (hypothesis.expect_if_true == ExperimentOutcome::Found)
}

/// An experiment with its predicted outcomes.
struct PlannedExperiment {
    experiment: Experiment,
    if_true: ExperimentOutcome,
    if_false: ExperimentOutcome,
    rivals: Vec<RivalPrediction>,
}

fn build_hypothesis(
    draft: &HypothesisDraft,
    planned: PlannedExperiment,
    sources: &EvidenceSources,
) -> Option<Hypothesis> {
    Some(Hypothesis {
        likelihood: parse_likelihood(draft)?,
        title: draft.title.clone(),
        mechanism: draft.mechanism.clone(),
        evidence: draft
            .evidence
            .iter()
            .map(|pointer| sources.cite(pointer).ok())
            .collect::<Option<_>>()?,
        experiment: planned.experiment,
        expect_if_true: planned.if_true,
        expect_if_false: planned.if_false,
        rivals: planned.rivals,
        because: draft.because.clone(),
        command: draft.command.clone(),
    })
}

fn check_count(drafts: &[HypothesisDraft]) -> Check {
    let n = drafts.len();
    let detail = match n {
        MIN_HYPOTHESES..=MAX_HYPOTHESES => format!("{n} hypotheses"),
        _ => format!(
            "{n} of {MIN_HYPOTHESES} to {MAX_HYPOTHESES} hypotheses: give at least {MIN_HYPOTHESES} different causes, so that the second-best is looked at too"
        ),
    };
    Check::new(
        "count",
        (MIN_HYPOTHESES..=MAX_HYPOTHESES).contains(&n),
        detail,
    )
}

fn parse_likelihood(draft: &HypothesisDraft) -> Option<Likelihood> {
    match draft.likelihood.to_lowercase().as_str() {
        "high" => Some(Likelihood::High),
        "medium" => Some(Likelihood::Medium),
        "low" => Some(Likelihood::Low),
        _ => None,
    }
}

fn check_order(drafts: &[HypothesisDraft]) -> Check {
    let mut faults = Vec::new();
    let mut last: Option<Likelihood> = None;
    for (n, draft) in drafts.iter().enumerate() {
        match parse_likelihood(draft) {
            None => faults.push(format!(
                "{} has no `likelihood` of `high`, `medium` or `low`",
                draft.label(n)
            )),
            Some(now) if last.is_some_and(|last| now < last) => {
                faults.push(format!(
                    "{} is likelier than the one before it: put the likeliest first",
                    draft.label(n)
                ));
            }
            Some(now) => last = Some(now),
        }
    }
    check_from("order", &faults, "the likeliest comes first")
}

/// Each mechanism says something other than the error.
fn check_mechanisms(drafts: &[HypothesisDraft], error: &BTreeSet<String>) -> Check {
    let mut faults = Vec::new();
    for (n, draft) in drafts.iter().enumerate() {
        if !draft.mechanism.chars().any(char::is_alphanumeric) {
            faults.push(format!(
                "{} has no mechanism: say in a sentence which code does what, and why that ends in this error",
                draft.label(n)
            ));
        } else if Prose::new(&draft.mechanism).stems().is_subset(error) {
            faults.push(format!(
                "{} only says the error again: say what causes it",
                draft.label(n)
            ));
        }
    }
    check_from("mechanism", &faults, "each says what causes the error")
}

fn check_tests(drafts: &[HypothesisDraft], planned: &[Result<PlannedExperiment, String>]) -> Check {
    let faults: Vec<String> = drafts
        .iter()
        .zip(planned)
        .enumerate()
        .filter_map(|(n, (draft, planned))| {
            Some(format!("{} {}", draft.label(n), planned.as_ref().err()?))
        })
        .collect();
    check_from(
        "test",
        &faults,
        "each has a test the server can run, with other outcomes if true and if false",
    )
}

fn plan_experiment(
    drafts: &[HypothesisDraft],
    own: usize,
    sources: &EvidenceSources,
) -> Result<PlannedExperiment, String> {
    let draft = &drafts[own];
    let none = ConfirmDraft::default();
    let ways = draft.confirm.as_ref().unwrap_or(&none);
    let search = ways
        .search
        .as_ref()
        .filter(|search| !(search.pattern.is_empty() && search.file.is_empty()));
    let experiment = match (ways.run_test.as_str(), search) {
        ("", None) => {
            return Err(String::from(
                "has no test: `confirm` must hold `run_test` with the name of a test, or `search` with `pattern` and `file`",
            ));
        }
        ("", Some(search)) => {
            let pattern = SearchPattern::new(&search.pattern)?;
            let (file, source) = sources
                .find(&search.file)
                .map_err(|why| format!("searches where it cannot: {why}"))?;
            pattern.lines(source.text())?;
            Experiment::Search {
                pattern,
                file: file.to_owned(),
            }
        }
        (test, None) => Experiment::RunTest(test.to_owned()),
        (_, Some(_)) => {
            return Err(String::from(
                "has two tests: `confirm` holds `run_test` or `search`, not both",
            ));
        }
    };
    let accepted = match experiment {
        Experiment::RunTest(_) => [ExperimentOutcome::Fails, ExperimentOutcome::Passes],
        Experiment::Search { .. } => [ExperimentOutcome::Found, ExperimentOutcome::NotFound],
    };
    let read = |text: &str| {
        let text = text.to_lowercase().replace([' ', '-'], "_");
        ExperimentOutcome::parse_lenient(&text).filter(|outcome| accepted.contains(outcome))
    };
    let expected = |field: &str, text: &str| {
        read(text).ok_or_else(|| {
            let text = words::short(text, 60);
            format!(
                "has `{field}` of `{text}`, where `{}` or `{}` is known",
                accepted[0], accepted[1]
            )
        })
    };
    let if_true = expected("expect_if_true", &draft.expect_if_true)?;
    let if_false = expected("expect_if_false", &draft.expect_if_false)?;
    if if_true == if_false {
        return Err(format!(
            "expects `{if_true}` whether it is true or not, so that its test shows nothing"
        ));
    }
    let mut rivals = Vec::new();
    for rival in draft.rivals.iter().flatten() {
        match rival.rank.checked_sub(1).filter(|n| *n < drafts.len()) {
            Some(n) => rivals.push(RivalPrediction {
                hypothesis: n,
                expects: read(&rival.expects),
            }),
            None => {
                return Err(format!(
                    "names rival {} of {} in `rivals`; count them from 1",
                    rival.rank,
                    drafts.len()
                ));
            }
        }
    }
    Ok(PlannedExperiment {
        experiment,
        if_true,
        if_false,
        rivals,
    })
}

fn check_evidence(drafts: &[HypothesisDraft], sources: &EvidenceSources) -> Check {
    let mut faults = Vec::new();
    for (n, draft) in drafts.iter().enumerate() {
        if draft.evidence.is_empty() {
            faults.push(format!(
                "{} has no evidence: cite at least one line as `file` and `line`",
                draft.label(n)
            ));
        }
        let cited: Vec<_> = draft
            .evidence
            .iter()
            .take(MAX_CITATIONS)
            .filter_map(|p| sources.cite(p).ok())
            .collect();
        if !cited.is_empty()
            && !cited
                .iter()
                .any(|c| c.text.chars().any(char::is_alphanumeric))
        {
            faults.push(format!(
                "{} cites only lines without a word: cite those that show the cause",
                draft.label(n)
            ));
        }
        if draft.evidence.len() > MAX_CITATIONS {
            faults.push(format!(
                "{} cites more than {MAX_CITATIONS} lines: cite those that matter",
                draft.label(n)
            ));
            continue;
        }
        let bad = draft
            .evidence
            .iter()
            .filter_map(|pointer| sources.cite(pointer).err());
        faults.extend(bad.map(|why| format!("{}: {why}", draft.label(n))));
    }
    let passed = format!(
        "{} resolve",
        words::count(drafts.iter().map(|d| d.evidence.len()).sum(), "citation")
    );
    check_from("evidence", &faults, &passed)
}

fn check_distinct(drafts: &[HypothesisDraft]) -> Check {
    let mut faults = Vec::new();
    let stems: Vec<_> = drafts
        .iter()
        .map(|d| Prose::new(&format!("{} {}", d.title, d.mechanism)).stems())
        .collect();
    let places = |d: &HypothesisDraft| {
        d.evidence
            .iter()
            .map(|p| (p.file.clone(), p.line))
            .collect::<Vec<_>>()
    };
    for b in 1..drafts.len() {
        for a in 0..b {
            let names = || format!("{} and {}", drafts[a].label(a), drafts[b].label(b));
            let same_test = drafts[a].confirm.is_some() && drafts[a].confirm == drafts[b].confirm;
            if is_similar(
                &stems[a],
                &stems[b],
                places(&drafts[a]) == places(&drafts[b]),
            ) {
                faults.push(format!(
                    "{} are one idea in other words: give different causes",
                    names()
                ));
            } else if same_test && drafts[a].expect_if_true == drafts[b].expect_if_true {
                faults.push(format!(
                    "{} have the same test with the same outcome, which cannot tell them apart",
                    names()
                ));
            }
        }
    }
    check_from("distinct", &faults, "no two are alike")
}

fn check_from(id: &'static str, faults: &[String], passed: &str) -> Check {
    match faults {
        [] => Check::new(id, true, passed),
        faults => Check::new(id, false, faults.join("; ")),
    }
}

#[cfg(test)]
mod tests;
