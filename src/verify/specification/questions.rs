//! Are these questions that somebody can answer? Few, different, each about one of the requirements.

use super::super::proof::Check;
use super::draft::Question;
use super::placeholders;
use super::requirements::Requirements;
use super::{quoted, same, says, verdict};
use crate::words;

const MOST: usize = 10;

/// One check, whether the questions are the whole answer or stand beside criteria.
pub fn examine(questions: &[Question], requirements: &Requirements) -> Check {
    let mut faults = Vec::new();
    if questions.len() > MOST {
        faults.push(format!("there are {} questions; {MOST} is the most, so ask what matters most", questions.len()));
    }
    for (n, given) in questions.iter().enumerate() {
        let (number, text) = (n + 1, given.question.trim());
        if !says(text) || placeholders::find(text).is_some() {
            faults.push(format!("question {number} asks nothing; write it out"));
        } else if !text.ends_with(['?', '？', '؟']) {
            faults
                .push(format!("question {number} ({}) does not end with a question mark; ask one thing", quoted(text)));
        }
        if requirements.find(&given.requirement).is_none() {
            let (about, range) = (quoted(&given.requirement), requirements.range());
            faults.push(format!("question {number} is about {about}; name the requirement it is about: {range}"));
        }
        if let Some(m) = questions[..n].iter().position(|other| same(&other.question, text)) {
            faults.push(format!("question {number} repeats question {}; ask each thing once", m + 1));
        }
    }
    let held = || format!("{}, each about a requirement", words::count(questions.len(), "question"));
    verdict("questions", &faults, held)
}
