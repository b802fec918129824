//! What an explanation must hold before anybody looks whether it is true. Each gate names all that fails it, so that the
//! next model is told everything at once.

use super::super::proof::Check;
use super::alike::Words;
use super::draft::{Draft, Ways};
use super::evidence::Shelf;
use super::pattern::Pattern;
use super::phrases::try_and_see;
use super::{Experiment, Hypothesis, Likelihood, Outcome};
use crate::words;

/// Fewer leave the next-best cause unlooked at; more are a list of everything.
const LEAST: usize = 3;
const MOST: usize = 5;
/// A cause takes at least this many words.
const MECHANISM_WORDS: usize = 8;
/// And this many that the error itself does not say.
const NEW_WORDS: usize = 4;
/// More are not looked at one by one.
const MOST_READ: usize = 20;
/// Lines that one cause may be shown by.
const MOST_EVIDENCE: usize = 20;
/// Words of an error that a mechanism is compared with.
const ERROR: usize = 4 * 1024;

/// Words that stand in any explanation, and in many files as keywords or in comments.
const GENERAL: &str = "all and any bug call case code error exception fail failed fails failure file for from function here if \
                       in is issue lead line no not of or part problem program project return returned returns run some \
                       something source the thing this to true use used using when where with wrong";

/// What was looked at, and what came of it.
#[derive(Debug)]
pub struct Examined {
    pub checks: Vec<Check>,
    /// All of them, if every check held.
    pub hypotheses: Option<Vec<Hypothesis>>,
}

/// Looks at every draft. `error` is what is to be explained.
pub fn examine(drafts: &[Draft], error: &str, shelf: &Shelf) -> Examined {
    if drafts.len() > MOST_READ {
        return Examined { checks: vec![count(drafts)], hypotheses: None };
    }
    let experiments: Vec<Result<Planned, String>> = drafts.iter().map(|draft| planned(draft, shelf)).collect();
    let checks = vec![
        count(drafts),
        order(drafts),
        mechanisms(drafts, error, shelf),
        phrases(drafts),
        tests(drafts, &experiments),
        evidence(drafts, shelf),
        distinct(drafts),
    ];
    if !checks.iter().all(Check::passed) {
        return Examined { checks, hypotheses: None };
    }
    let hypotheses: Option<Vec<Hypothesis>> =
        drafts.iter().zip(experiments).map(|(draft, planned)| whole(draft, planned.ok()?, shelf)).collect();
    if hypotheses.as_ref().is_some_and(|all| all.iter().all(|h| !h.is_about_its_test() && comes_true(h, shelf))) {
        let detail = "no search looks for anything that its hypothesis speaks of, and each comes out as it says: search \
                      for what the mechanism names, and say in `because` why it would stand there";
        return Examined { checks: [checks, vec![Check::new("about", false, detail)]].concat(), hypotheses: None };
    }
    Examined { checks, hypotheses }
}

/// Can it be seen already that the search comes out as predicted?
fn comes_true(hypothesis: &Hypothesis, shelf: &Shelf) -> bool {
    let Experiment::Search { pattern, file } = &hypothesis.experiment else { return false };
    let found = shelf.text(file).and_then(|text| pattern.lines(text).ok()).is_some_and(|lines| !lines.is_empty());
    found == (hypothesis.expect_if_true == Outcome::Found)
}

/// An experiment with what it is expected to show.
struct Planned {
    experiment: Experiment,
    if_true: Outcome,
    if_false: Outcome,
}

fn whole(draft: &Draft, planned: Planned, shelf: &Shelf) -> Option<Hypothesis> {
    Some(Hypothesis {
        likelihood: likelihood(draft)?,
        title: draft.title.clone(),
        mechanism: draft.mechanism.clone(),
        evidence: draft.evidence.iter().map(|pointer| shelf.cite(pointer).ok()).collect::<Option<_>>()?,
        experiment: planned.experiment,
        expect_if_true: planned.if_true,
        expect_if_false: planned.if_false,
        because: draft.because.clone(),
        command: draft.command.clone(),
    })
}

fn count(drafts: &[Draft]) -> Check {
    let n = drafts.len();
    let detail = match n {
        LEAST..=MOST => format!("{n} hypotheses"),
        _ => format!(
            "{n} of {LEAST} to {MOST} hypotheses: give at least {LEAST} different causes, so that the second-best is looked at too"
        ),
    };
    Check::new("count", (LEAST..=MOST).contains(&n), detail)
}

fn likelihood(draft: &Draft) -> Option<Likelihood> {
    match draft.likelihood.to_lowercase().as_str() {
        "high" => Some(Likelihood::High),
        "medium" => Some(Likelihood::Medium),
        "low" => Some(Likelihood::Low),
        _ => None,
    }
}

fn order(drafts: &[Draft]) -> Check {
    let mut wrong = Vec::new();
    let mut last: Option<Likelihood> = None;
    for (n, draft) in drafts.iter().enumerate() {
        match likelihood(draft) {
            None => wrong.push(format!("{} has no `likelihood` of `high`, `medium` or `low`", draft.called(n))),
            Some(now) if last.is_some_and(|last| now < last) => {
                wrong.push(format!("{} is likelier than the one before it: put the likeliest first", draft.called(n)));
            }
            Some(now) => last = Some(now),
        }
    }
    verdict("order", &wrong, "the likeliest comes first")
}

fn mechanisms(drafts: &[Draft], error: &str, shelf: &Shelf) -> Check {
    let mut wrong = Vec::new();
    let error = Words::of(&words::cut_middle(error, ERROR));
    let known = shelf.words().with(&error).without(&Words::of(GENERAL));
    let mut nothing = true;
    for (n, draft) in drafts.iter().enumerate() {
        let said = draft.mechanism.split_whitespace().count();
        if said < MECHANISM_WORDS {
            wrong.push(format!(
                "{} has no mechanism: say in a sentence which code does what, and why that ends in this error",
                draft.called(n)
            ));
        } else if Words::of(&draft.mechanism).beyond(&error) < NEW_WORDS {
            wrong.push(format!("{} only says the error again: say what causes it", draft.called(n)));
        }
        nothing &= !Words::of(&format!("{} {}", draft.title, draft.mechanism)).meets(&known);
    }
    // One may speak of what happens elsewhere; all of them cannot.
    if nothing && wrong.is_empty() && !drafts.is_empty() {
        wrong.push(String::from(
            "no hypothesis names anything that stands in the files it cites, so that they could explain any error: say \
             which code does what, by its names",
        ));
    }
    verdict("mechanism", &wrong, "each says what causes the error")
}

fn phrases(drafts: &[Draft]) -> Check {
    let mut wrong = Vec::new();
    for (n, draft) in drafts.iter().enumerate() {
        if let Some(phrase) = [&draft.title, &draft.mechanism, &draft.because].into_iter().find_map(|t| try_and_see(t))
        {
            wrong.push(format!(
                "{} says `{phrase}`, which is trying and seeing: explain the cause and what would show it",
                draft.called(n)
            ));
        }
    }
    verdict("try_and_see", &wrong, "none is a change to be tried")
}

fn tests(drafts: &[Draft], planned: &[Result<Planned, String>]) -> Check {
    let wrong: Vec<String> = drafts
        .iter()
        .zip(planned)
        .enumerate()
        .filter_map(|(n, (draft, planned))| Some(format!("{} {}", draft.called(n), planned.as_ref().err()?)))
        .collect();
    verdict("test", &wrong, "each has a test the server can run, with other outcomes if true and if false")
}

fn planned(draft: &Draft, shelf: &Shelf) -> Result<Planned, String> {
    let none = Ways::default();
    let ways = draft.confirm.as_ref().unwrap_or(&none);
    let search = ways.search.as_ref().filter(|search| !(search.pattern.is_empty() && search.file.is_empty()));
    let experiment = match (ways.run_test.as_str(), search) {
        ("", None) => {
            return Err(String::from(
                "has no test: `confirm` must hold `run_test` with the name of a test, or `search` with `pattern` and `file`",
            ));
        }
        ("", Some(search)) => {
            let pattern = Pattern::new(&search.pattern)?;
            let (file, source) = shelf.find(&search.file).map_err(|why| format!("searches where it cannot: {why}"))?;
            pattern.lines(source.text())?;
            Experiment::Search { pattern, file: file.to_owned() }
        }
        (test, None) => Experiment::RunTest(test.to_owned()),
        (_, Some(_)) => return Err(String::from("has two tests: `confirm` holds `run_test` or `search`, not both")),
    };
    let accepted = match experiment {
        Experiment::RunTest(_) => [Outcome::Fails, Outcome::Passes],
        Experiment::Search { .. } => [Outcome::Found, Outcome::NotFound],
    };
    let expected = |field: &str, said: &str| {
        let said = said.to_lowercase().replace([' ', '-'], "_");
        Outcome::meant(&said).filter(|outcome| accepted.contains(outcome)).ok_or_else(|| {
            let said = words::cut_end(&words::plain(&said), 60).into_owned();
            format!("has `{field}` of `{said}`, where `{}` or `{}` is known", accepted[0], accepted[1])
        })
    };
    let if_true = expected("expect_if_true", &draft.expect_if_true)?;
    let if_false = expected("expect_if_false", &draft.expect_if_false)?;
    if if_true == if_false {
        return Err(format!("expects `{if_true}` whether it is true or not, so that its test shows nothing"));
    }
    Ok(Planned { experiment, if_true, if_false })
}

fn evidence(drafts: &[Draft], shelf: &Shelf) -> Check {
    let mut wrong = Vec::new();
    for (n, draft) in drafts.iter().enumerate() {
        if draft.evidence.is_empty() {
            wrong.push(format!("{} has no evidence: cite at least one line as `file` and `line`", draft.called(n)));
        }
        let cited: Vec<_> = draft.evidence.iter().take(MOST_EVIDENCE).filter_map(|p| shelf.cite(p).ok()).collect();
        if !cited.is_empty() && !cited.iter().any(|c| c.text.chars().any(char::is_alphanumeric)) {
            wrong.push(format!("{} cites only lines without a word: cite those that show the cause", draft.called(n)));
        }
        if draft.evidence.len() > MOST_EVIDENCE {
            wrong.push(format!("{} cites more than {MOST_EVIDENCE} lines: cite those that matter", draft.called(n)));
            continue;
        }
        let bad = draft.evidence.iter().filter_map(|pointer| shelf.cite(pointer).err());
        wrong.extend(bad.map(|why| format!("{}: {why}", draft.called(n))));
    }
    let held = format!("{} resolve", words::count(drafts.iter().map(|d| d.evidence.len()).sum(), "citation"));
    verdict("evidence", &wrong, &held)
}

fn distinct(drafts: &[Draft]) -> Check {
    let mut wrong = Vec::new();
    let said: Vec<Words> = drafts.iter().map(|d| Words::of(&format!("{} {}", d.title, d.mechanism))).collect();
    let places = |d: &Draft| d.evidence.iter().map(|p| (p.file.clone(), p.line)).collect::<Vec<_>>();
    for b in 1..drafts.len() {
        for a in 0..b {
            let names = || format!("{} and {}", drafts[a].called(a), drafts[b].called(b));
            let same_test = drafts[a].confirm.is_some() && drafts[a].confirm == drafts[b].confirm;
            if said[a].is_like(&said[b], places(&drafts[a]) == places(&drafts[b])) {
                wrong.push(format!("{} are one idea in other words: give different causes", names()));
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
