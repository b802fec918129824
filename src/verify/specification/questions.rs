//! Are these questions that somebody can answer? Few, different, each about one of the requirements.

use super::super::proof::Check;
use super::draft::Question;
use super::placeholders;
use super::requirements::Requirements;
use super::shared_words::content_words;
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
        } else if is_empty(text) {
            faults.push(format!(
                "question {number} ({}) could be asked of anything; ask what is missing for a criterion",
                quoted(text)
            ));
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

/// Words of a question that only asks for more words.
const EMPTY: &[&str] = &[
    "clarify",
    "clarification",
    "describe",
    "detail",
    "details",
    "elaborate",
    "exactly",
    "explain",
    "further",
    "give",
    "information",
    "intended",
    "mean",
    "meant",
    "more",
    "please",
    "provide",
    "requirement",
    "requirements",
    "say",
    "specify",
    "tell",
    "about",
];

/// "Can you clarify requirement 1?"
fn is_empty(text: &str) -> bool {
    let words = content_words(text);
    let numbered = words.iter().any(|word| word == "requirement");
    let digits = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    let id = |word: &str| word.strip_prefix('r').map_or(numbered && digits(word), digits);
    words.iter().all(|word| EMPTY.contains(&word.as_str()) || id(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_asks_about_something() {
        for text in ["Can you clarify requirement 1?", "What do you mean by R2?", "Please tell me more about it?"] {
            assert!(is_empty(text), "{text}");
        }
        for text in [
            "Is it 3?",
            "Which app is meant?",
            "What does \"modern\" mean?",
            "Welche Länder sind gemeint?",
            "どの国ですか？",
        ] {
            assert!(!is_empty(text), "{text}");
        }
    }
}
