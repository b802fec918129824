//! Flags a `why` that names no defect: praise, generic advice, the line repeated. Code cannot
//! decide this, so it is left to a verifier.

use supervisor_text::words::lexicon::{Prose, Word, lexicon};

/// Praise with at least this many other words is not flagged: `looks good but panics on empty
/// input`.
const MIN_WORDS_BESIDE_PRAISE: usize = 3;
/// With fewer words, repeating the line may still name a defect: `Runs as root` for `USER root`.
const MIN_ECHO_WORDS: usize = 3;
/// A single word shorter than this rarely names a defect, in scripts that separate words.
const MIN_WHY_CHARS: usize = 12;

/// The kind of doubt and its explanation. `quote` is the cited line.
pub(super) fn find_doubt(why: &str, quote: &str) -> Option<(&'static str, &'static str)> {
    let list = lexicon();
    let prose = Prose::whole(why);
    let negates = |word: &Word| list.contrast.has(word);
    // In `no error handling` the small word `no` carries the meaning.
    let is_meaningful = |word: &&Word| {
        !list.filler.has(word) && (!list.stop_words.has_form(word.form()) || negates(word))
    };
    let (beside, is_praised) = list.praise.remove_from(&prose);
    let beside = beside.words().filter(is_meaningful).count();
    let approves = prose
        .words()
        .any(|word| list.approval.has_form(word.form()));
    let advises = prose
        .words()
        .next()
        .is_some_and(|first| list.instruction.has(first));
    if (is_praised && beside < MIN_WORDS_BESIDE_PRAISE)
        || (approves && !advises && !prose.words().any(negates))
    {
        return Some(("praise", "seems to praise and to name no defect"));
    }
    if beside == 0 || (prose.words().count() < 2 && why.trim().chars().count() < MIN_WHY_CHARS) {
        return Some(("too_little", "does not seem to say what goes wrong"));
    }
    let content: Vec<&Word> = prose
        .content()
        .filter(|word| !list.filler.has(word))
        .collect();
    if !content.is_empty() && content.iter().all(|word| list.generic_advice.has(word)) {
        return Some(("any_line", "could be said of any line"));
    }
    let line = Prose::whole(quote);
    let is_echo = |word: &&Word| {
        list.plain_description.has(word) || line.words().any(|there| there.is_related(word))
    };
    (content.len() >= MIN_ECHO_WORDS && content.iter().all(is_echo))
        .then_some(("echo", "only says what the line says"))
}

/// Lowercase words separated by single spaces. Texts with the same result count as equal.
pub(super) fn normalize(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

pub(super) fn without_whitespace(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "row = conn.execute(\"SELECT owner FROM accounts WHERE owner = '%s'\" % owner).fetchone()";

    #[test]
    fn empty_findings_are_doubted() {
        for (why, kind) in [
            ("Looks good!", "praise"),
            (
                "This function looks good and is very well-written.",
                "praise",
            ),
            ("LGTM", "praise"),
            ("No issues found in this file.", "praise"),
            (
                "Approved. The implementation is clean code, great work!",
                "praise",
            ),
            ("This is good.", "praise"),
            ("This works as expected.", "praise"),
            ("No changes required.", "praise"),
            ("Handles the owner as intended.", "praise"),
            ("Good use of fetchone for retrieving the row.", "praise"),
            (
                "The method is elegant and handles the owner properly.",
                "praise",
            ),
            ("Correctly validates the owner before use", "praise"),
            ("bug", "too_little"),
            ("ok.", "too_little"),
            ("Everything is fine here", "too_little"),
            (
                "Consider adding comments to improve readability.",
                "any_line",
            ),
            ("Add documentation for clarity.", "any_line"),
            ("This could be improved.", "any_line"),
            ("Potential issue here.", "any_line"),
            ("This may cause problems in some cases.", "any_line"),
            ("Does not follow best practices.", "any_line"),
            (
                "Consider refactoring this for better maintainability.",
                "any_line",
            ),
            ("Please use more descriptive variable names", "any_line"),
            ("Consider improving the code structure.", "any_line"),
            ("This can be optimized for performance.", "any_line"),
            (
                "Consider adding type hints for better readability.",
                "any_line",
            ),
            ("Might be worth reviewing.", "any_line"),
            (
                "This line executes a SELECT of owner FROM accounts.",
                "echo",
            ),
            ("Calls conn.execute and fetchone", "echo"),
        ] {
            assert_eq!(
                find_doubt(why, LINE).map(|(kind, _)| kind),
                Some(kind),
                "{why}"
            );
        }
    }

    #[test]
    fn short_honest_findings_are_not_doubted() {
        for why in [
            "unused import",
            "panics on empty input",
            "Looks good, but divides by zero when the list is empty.",
            "no error handling: a failed read is taken for an empty file",
            "SQL injection",
            "returns the wrong sign",
            "この関数は空の入力で失敗します",
            "Missing docstring",
            "no error handling",
            "Lacks error handling.",
            "unused variable",
            "magic number",
            "typo: `recieve`",
            "owner is not escaped",
            "The connection is never closed.",
            "There is no test for this function.",
            "A good default would be 30 s; without one the call can hang",
            "Properly closing the file is left to the collector, so descriptors may run out",
            "row can be None",
            "SELECT without LIMIT",
            "Consider adding a comment that owner must be escaped",
            "Potential null pointer dereference",
            "may raise KeyError",
            "Dieser Wert wird nie geprüft",
            "Use `with` to close the file properly",
            "Good idea to validate input here",
            "Runs as root",
            "Function does too many things",
            "Could be simplified with a list comprehension",
            "Improve error message: it does not say which file",
            "Not thread safe",
            "Typo in name",
            "Should be const",
            "Does not work as expected when owner is empty",
        ] {
            assert_eq!(find_doubt(why, LINE), None, "{why}");
        }
    }
}
