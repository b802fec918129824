//! Is anything said? Praise, and words that could stand anywhere, name no defect.

/// What a reviewer says who has found nothing.
const PRAISE: &[&str] = &[
    "looks good",
    "look good",
    "looks fine",
    "looks great",
    "looks correct",
    "looks clean",
    "well written",
    "well structured",
    "well designed",
    "well done",
    "well tested",
    "well documented",
    "well handled",
    "easy to read",
    "good job",
    "good work",
    "great job",
    "great work",
    "nice work",
    "nice job",
    "good practice",
    "good code",
    "clean code",
    "clean and readable",
    "no issues",
    "no issue",
    "no problems",
    "no problem",
    "no defects",
    "no defect",
    "no errors",
    "no concerns",
    "no changes needed",
    "no change needed",
    "nothing to improve",
    "nothing wrong",
    "nothing to fix",
    "lgtm",
    "approved",
    "approve",
    "ready to merge",
    "safe to merge",
    "keep it up",
];

/// Words that add nothing to praise.
const FILLER: &str = "\
    a about all an and are as at be been by class clear code correct correctly error everything excellent \
    file fine for found from function good great handling has have here i implementation in is it its line \
    logic me method module naming nice of ok okay on overall perfect project quality readable really review \
    seems simple so solid some style that the there this to tests very was we with work works written you";

/// Two words can name a defect (`unused import`); fewer cannot.
const LEAST: usize = 2;
/// Beside praise, this many words make it worth reading: `looks good but panics on empty input`.
const LEAST_BESIDE_PRAISE: usize = 3;

/// The error says what is missing.
pub(super) fn names_a_defect(why: &str) -> Result<(), String> {
    let mut rest = format!(" {} ", normal(why));
    if rest.trim().is_empty() {
        return Err(String::from("its `why` is empty"));
    }
    let before = rest.len();
    for phrase in PRAISE {
        rest = rest.replace(&format!(" {phrase} "), " ");
    }
    let praised = rest.len() < before;
    let says = rest.split_whitespace().filter(|word| !FILLER.split(' ').any(|filler| filler == *word)).count();
    let all = rest.split_whitespace().count();
    match praised {
        true if says < LEAST_BESIDE_PRAISE => Err(String::from("praises and names no defect")),
        // Some languages put no blanks between words.
        false if (all < LEAST && rest.trim().chars().count() < 12) || says == 0 => {
            Err(String::from("its `why` does not say what goes wrong"))
        }
        _ => Ok(()),
    }
}

/// Words alone, in small letters: two that differ in nothing else say the same.
pub(super) fn normal(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// White space aside.
pub(super) fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn praise_names_no_defect_and_a_defect_beside_praise_does() {
        for empty in [
            "",
            " \n",
            "Looks good!",
            "This function looks good and is very well-written.",
            "LGTM",
            "No issues found in this file.",
            "Approved. The implementation is clean code, great work!",
            "bug",
            "ok.",
            "This is good.",
            "Everything is fine here",
        ] {
            assert!(names_a_defect(empty).is_err(), "{empty}");
        }
        for said in [
            "unused import",
            "panics on empty input",
            "Looks good, but divides by zero when the list is empty.",
            "no error handling: a failed read is taken for an empty file",
            "SQL injection",
            "returns the wrong sign",
            "この関数は空の入力で失敗します",
        ] {
            assert_eq!(names_a_defect(said), Ok(()), "{said}");
        }
    }
}
