//! What an explanation must hold before it is looked at whether it is true. Each gate names all that fails it, so that the
//! next model is told everything at once. Structure rejects; words are flagged.

use std::collections::BTreeSet;

use super::alike::is_like;
use super::draft::{ConfirmDraft, HypothesisDraft};
use super::evidence::EvidenceShelf;
use super::pattern::SearchPattern;
use super::wording::flag_wording;
use super::{Experiment, ExperimentOutcome, Hypothesis, Likelihood, RivalPrediction};
use supervisor_text::words;
use supervisor_text::words::lexicon::Prose;
use supervisor_verify::{Check, Flags};

/// Fewer leave the next-best cause unlooked at; more are a list of everything.
const LEAST: usize = 3;
const MOST: usize = 5;
/// More are not looked at one by one.
const MOST_READ: usize = 20;
/// Lines that one cause may be shown by.
const MOST_EVIDENCE: usize = 20;
/// Words of an error that a mechanism is compared with.
const ERROR: usize = 4 * 1024;

/// What was looked at, and what came of it.
#[derive(Debug)]
pub struct ExaminedDiagnosis {
    pub checks: Vec<Check>,
    pub flags: Flags,
    /// All of them, if every check held.
    pub hypotheses: Option<Vec<Hypothesis>>,
}

/// Looks at every draft. `error` is what is to be explained.
pub fn examine(
    drafts: &[HypothesisDraft],
    error: &str,
    shelf: &EvidenceShelf,
) -> ExaminedDiagnosis {
    if drafts.len() > MOST_READ {
        return ExaminedDiagnosis {
            checks: vec![count(drafts)],
            flags: Flags::default(),
            hypotheses: None,
        };
    }
    let experiments: Vec<Result<PlannedExperiment, String>> = (0..drafts.len())
        .map(|n| planned(drafts, n, shelf))
        .collect();
    let error = Prose::whole(&words::cut_middle(error, ERROR)).stems();
    let checks = vec![
        count(drafts),
        order(drafts),
        mechanisms(drafts, &error),
        tests(drafts, &experiments),
        evidence(drafts, shelf),
        distinct(drafts),
    ];
    let mut flags = flag_wording(drafts, &error, shelf);
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
        .map(|(draft, planned)| whole(draft, planned.ok()?, shelf))
        .collect();
    if hypotheses.as_ref().is_some_and(|all| {
        all.iter()
            .all(|h| !h.is_about_its_test() && comes_true(h, shelf))
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

/// Can it be seen already that the search comes out as predicted?
fn comes_true(hypothesis: &Hypothesis, shelf: &EvidenceShelf) -> bool {
    let Experiment::Search { pattern, file } = &hypothesis.experiment else {
        return false;
    };
    let found = shelf
        .text(file)
        .and_then(|text| pattern.lines(text).ok())
        .is_some_and(|lines| !lines.is_empty());
    found == (hypothesis.expect_if_true == ExperimentOutcome::Found)
}

/// An experiment with what it is expected to show.
struct PlannedExperiment {
    experiment: Experiment,
    if_true: ExperimentOutcome,
    if_false: ExperimentOutcome,
    rivals: Vec<RivalPrediction>,
}

fn whole(
    draft: &HypothesisDraft,
    planned: PlannedExperiment,
    shelf: &EvidenceShelf,
) -> Option<Hypothesis> {
    Some(Hypothesis {
        likelihood: likelihood(draft)?,
        title: draft.title.clone(),
        mechanism: draft.mechanism.clone(),
        evidence: draft
            .evidence
            .iter()
            .map(|pointer| shelf.cite(pointer).ok())
            .collect::<Option<_>>()?,
        experiment: planned.experiment,
        expect_if_true: planned.if_true,
        expect_if_false: planned.if_false,
        rivals: planned.rivals,
        because: draft.because.clone(),
        command: draft.command.clone(),
    })
}

fn count(drafts: &[HypothesisDraft]) -> Check {
    let n = drafts.len();
    let detail = match n {
        LEAST..=MOST => format!("{n} hypotheses"),
        _ => format!(
            "{n} of {LEAST} to {MOST} hypotheses: give at least {LEAST} different causes, so that the second-best is looked at too"
        ),
    };
    Check::new("count", (LEAST..=MOST).contains(&n), detail)
}

fn likelihood(draft: &HypothesisDraft) -> Option<Likelihood> {
    match draft.likelihood.to_lowercase().as_str() {
        "high" => Some(Likelihood::High),
        "medium" => Some(Likelihood::Medium),
        "low" => Some(Likelihood::Low),
        _ => None,
    }
}

fn order(drafts: &[HypothesisDraft]) -> Check {
    let mut wrong = Vec::new();
    let mut last: Option<Likelihood> = None;
    for (n, draft) in drafts.iter().enumerate() {
        match likelihood(draft) {
            None => wrong.push(format!(
                "{} has no `likelihood` of `high`, `medium` or `low`",
                draft.called(n)
            )),
            Some(now) if last.is_some_and(|last| now < last) => {
                wrong.push(format!(
                    "{} is likelier than the one before it: put the likeliest first",
                    draft.called(n)
                ));
            }
            Some(now) => last = Some(now),
        }
    }
    verdict("order", &wrong, "the likeliest comes first")
}

/// Each says something, and something else than the error.
fn mechanisms(drafts: &[HypothesisDraft], error: &BTreeSet<String>) -> Check {
    let mut wrong = Vec::new();
    for (n, draft) in drafts.iter().enumerate() {
        if !draft.mechanism.chars().any(char::is_alphanumeric) {
            wrong.push(format!(
                "{} has no mechanism: say in a sentence which code does what, and why that ends in this error",
                draft.called(n)
            ));
        } else if Prose::whole(&draft.mechanism).stems().is_subset(error) {
            wrong.push(format!(
                "{} only says the error again: say what causes it",
                draft.called(n)
            ));
        }
    }
    verdict("mechanism", &wrong, "each says what causes the error")
}

fn tests(drafts: &[HypothesisDraft], planned: &[Result<PlannedExperiment, String>]) -> Check {
    let wrong: Vec<String> = drafts
        .iter()
        .zip(planned)
        .enumerate()
        .filter_map(|(n, (draft, planned))| {
            Some(format!("{} {}", draft.called(n), planned.as_ref().err()?))
        })
        .collect();
    verdict(
        "test",
        &wrong,
        "each has a test the server can run, with other outcomes if true and if false",
    )
}

fn planned(
    drafts: &[HypothesisDraft],
    own: usize,
    shelf: &EvidenceShelf,
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
            let (file, source) = shelf
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
    let read = |said: &str| {
        let said = said.to_lowercase().replace([' ', '-'], "_");
        ExperimentOutcome::meant(&said).filter(|outcome| accepted.contains(outcome))
    };
    let expected = |field: &str, said: &str| {
        read(said).ok_or_else(|| {
            let said = words::cut_end(&words::plain(said), 60).into_owned();
            format!(
                "has `{field}` of `{said}`, where `{}` or `{}` is known",
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

fn evidence(drafts: &[HypothesisDraft], shelf: &EvidenceShelf) -> Check {
    let mut wrong = Vec::new();
    for (n, draft) in drafts.iter().enumerate() {
        if draft.evidence.is_empty() {
            wrong.push(format!(
                "{} has no evidence: cite at least one line as `file` and `line`",
                draft.called(n)
            ));
        }
        let cited: Vec<_> = draft
            .evidence
            .iter()
            .take(MOST_EVIDENCE)
            .filter_map(|p| shelf.cite(p).ok())
            .collect();
        if !cited.is_empty()
            && !cited
                .iter()
                .any(|c| c.text.chars().any(char::is_alphanumeric))
        {
            wrong.push(format!(
                "{} cites only lines without a word: cite those that show the cause",
                draft.called(n)
            ));
        }
        if draft.evidence.len() > MOST_EVIDENCE {
            wrong.push(format!(
                "{} cites more than {MOST_EVIDENCE} lines: cite those that matter",
                draft.called(n)
            ));
            continue;
        }
        let bad = draft
            .evidence
            .iter()
            .filter_map(|pointer| shelf.cite(pointer).err());
        wrong.extend(bad.map(|why| format!("{}: {why}", draft.called(n))));
    }
    let held = format!(
        "{} resolve",
        words::count(drafts.iter().map(|d| d.evidence.len()).sum(), "citation")
    );
    verdict("evidence", &wrong, &held)
}

fn distinct(drafts: &[HypothesisDraft]) -> Check {
    let mut wrong = Vec::new();
    let said: Vec<_> = drafts
        .iter()
        .map(|d| Prose::whole(&format!("{} {}", d.title, d.mechanism)).stems())
        .collect();
    let places = |d: &HypothesisDraft| {
        d.evidence
            .iter()
            .map(|p| (p.file.clone(), p.line))
            .collect::<Vec<_>>()
    };
    for b in 1..drafts.len() {
        for a in 0..b {
            let names = || format!("{} and {}", drafts[a].called(a), drafts[b].called(b));
            let same_test = drafts[a].confirm.is_some() && drafts[a].confirm == drafts[b].confirm;
            if is_like(&said[a], &said[b], places(&drafts[a]) == places(&drafts[b])) {
                wrong.push(format!(
                    "{} are one idea in other words: give different causes",
                    names()
                ));
            } else if same_test && drafts[a].expect_if_true == drafts[b].expect_if_true {
                wrong.push(format!(
                    "{} have the same test with the same outcome, which cannot tell them apart",
                    names()
                ));
            }
        }
    }
    verdict("distinct", &wrong, "no two are alike")
}

fn verdict(id: &'static str, wrong: &[String], held: &str) -> Check {
    match wrong {
        [] => Check::new(id, true, held),
        wrong => Check::new(id, false, wrong.join("; ")),
    }
}

#[cfg(test)]
mod tests;
