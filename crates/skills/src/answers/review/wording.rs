//! Does a finding's `why` seem to say nothing: praise, advice for any line, the line said again? Code cannot decide that,
//! so it is flagged and left to a reader who understands it.

use supervisor_text::words::lexicon::{Prose, Word, lexicon};

/// Beside praise, this many words make it worth reading: `looks good but panics on empty input`.
const LEAST_BESIDE_PRAISE: usize = 3;
/// `Runs as root` of `USER root` names a defect, with no word more.
const LEAST_TOLD: usize = 3;
/// One word in a script that divides them is seldom a defect.
const SHORTEST: usize = 12;

/// The kind of doubt and a sentence about it. `quote` is the line that is spoken of.
pub(super) fn doubt(why: &str, quote: &str) -> Option<(&'static str, &'static str)> {
    let list = lexicon();
    let said = Prose::whole(why);
    let turns = |word: &Word| list.turn.has(word);
    // `no error handling`: a small word that turns what follows is no small word.
    let says = |word: &&Word| {
        !list.small_talk.has(word) && (!list.stop.has_form(word.form()) || turns(word))
    };
    let (beside, is_praised) = list.praise.cut_from(&said);
    let beside = beside.words().filter(says).count();
    let approves = said.words().any(|word| list.approval.has_form(word.form()));
    let advises = said
        .words()
        .next()
        .is_some_and(|first| list.order.has(first));
    if (is_praised && beside < LEAST_BESIDE_PRAISE)
        || (approves && !advises && !said.words().any(turns))
    {
        return Some(("praise", "seems to praise and to name no defect"));
    }
    if beside == 0 || (said.words().count() < 2 && why.trim().chars().count() < SHORTEST) {
        return Some(("too_little", "does not seem to say what goes wrong"));
    }
    let content: Vec<&Word> = said
        .content()
        .filter(|word| !list.small_talk.has(word))
        .collect();
    if !content.is_empty() && content.iter().all(|word| list.stock.has(word)) {
        return Some(("any_line", "could be said of any line"));
    }
    let line = Prose::whole(quote);
    let is_told =
        |word: &&Word| list.telling.has(word) || line.words().any(|there| there.is_akin(word));
    (content.len() >= LEAST_TOLD && content.iter().all(is_told))
        .then_some(("echo", "only says what the line says"))
}

/// Words alone, in small letters: two that differ in nothing else say the same.
pub(super) fn normal(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// White space aside.
pub(super) fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "row = conn.execute(\"SELECT owner FROM accounts WHERE owner = '%s'\" % owner).fetchone()";

    #[test]
    fn words_that_seem_to_name_no_defect_are_doubted() {
        for (said, kind) in [
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
                doubt(said, LINE).map(|(kind, _)| kind),
                Some(kind),
                "{said}"
            );
        }
    }

    #[test]
    fn short_and_honest_words_are_not_doubted() {
        for said in [
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
            assert_eq!(doubt(said, LINE), None, "{said}");
        }
    }
}
