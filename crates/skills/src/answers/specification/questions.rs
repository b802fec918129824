//! Checks open questions: few, distinct, and each about one requirement.

use super::draft::OpenQuestion;
use super::requirements::RequirementItems;
use super::wording::placeholder;
use super::{check_from, has_content, quoted, same_words};
use supervisor_text::words;
use supervisor_text::words::lexicon::{Prose, Word, lexicon};
use supervisor_verify::{Check, Flags};

const MAX_QUESTIONS: usize = 10;

/// Checks questions, whether they are the whole answer or accompany criteria.
pub(crate) fn examine(
    questions: &[OpenQuestion],
    requirements: &RequirementItems,
) -> (Check, Flags) {
    let (mut faults, mut flags) = (Vec::new(), Flags::default());
    if questions.len() > MAX_QUESTIONS {
        faults.push(format!(
            "there are {} questions; {MAX_QUESTIONS} is the most, so ask what matters most",
            questions.len()
        ));
    }
    for (n, given) in questions.iter().enumerate() {
        let (number, text) = (n + 1, given.question.trim());
        if !has_content(text) {
            faults.push(format!("question {number} asks nothing; write it out"));
        } else if !text.ends_with(['?', '？', '؟']) {
            faults.push(format!(
                "question {number} ({}) does not end with a question mark; ask one thing",
                quoted(text)
            ));
        } else if is_generic(text) || placeholder(text).is_some() {
            let why = format!("{} could be asked of anything", quoted(text));
            flags.raise("empty_question", format!("question {number}"), why);
        }
        if requirements.find(&given.requirement).is_none() {
            let (about, range) = (quoted(&given.requirement), requirements.range());
            faults.push(format!(
                "question {number} is about {about}; name the requirement it is about: {range}"
            ));
        }
        if let Some(m) = questions[..n]
            .iter()
            .position(|other| same_words(&other.question, text))
        {
            faults.push(format!(
                "question {number} repeats question {}; ask each thing once",
                m + 1
            ));
        }
    }
    let detail = || {
        format!(
            "{}, each about a requirement",
            words::count(questions.len(), "question")
        )
    };
    (check_from("questions", &faults, detail), flags)
}

/// Whether a question is as generic as "Can you clarify requirement 1?".
fn is_generic(text: &str) -> bool {
    let prose = Prose::whole(text);
    let numbered = prose.words().any(|word| word.form() == "requirement");
    let digits = |form: &str| form.bytes().all(|b| b.is_ascii_digit());
    let is_id = |word: &Word| {
        word.form()
            .strip_prefix('r')
            .map_or(numbered && digits(word.form()), digits)
    };
    prose
        .content()
        .all(|word| lexicon().generic_question.has(word) || is_id(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_questions_are_recognised() {
        for text in [
            "Can you clarify requirement 1?",
            "What do you mean by R2?",
            "Please tell me more about it?",
        ] {
            assert!(is_generic(text), "{text}");
        }
        for text in [
            "Is it 3?",
            "Which app is meant?",
            "What does \"modern\" mean?",
            "Welche Länder sind gemeint?",
            "どの国ですか？",
        ] {
            assert!(!is_generic(text), "{text}");
        }
    }
}
