//! Checks open questions: few, distinct, and each about one requirement.

use super::draft::OpenQuestion;
use super::requirements::RequirementItems;
use super::{check_from, has_content, quoted, same_words};
use supervisor_text::words;
use supervisor_verify::Check;

const MAX_QUESTIONS: usize = 10;

/// Checks questions, whether they are the whole answer or accompany criteria.
pub(crate) fn examine(questions: &[OpenQuestion], requirements: &RequirementItems) -> Check {
    let mut faults = Vec::new();
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
    check_from("questions", &faults, detail)
}
