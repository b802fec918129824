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
    "no changes required",
    "no change required",
    "works as expected",
    "works as intended",
    "as intended",
    "works fine",
    "works well",
    "clean and maintainable",
    "easy to follow",
    "easy to understand",
    "standard approach",
    "follows pep 8",
    "follows conventions",
    "follows best practices",
];

/// Words that add nothing to praise.
const FILLER: &str = "\
    a about all an and are as at be been by class clear code correct correctly error everything excellent \
    file fine for found from function good great handling has have here i implementation in is it its line \
    logic me method module naming nice of ok okay on overall perfect project quality readable really review \
    seems simple so solid some style that the there this to tests very was we with work works written you";

/// Words of approval. Without a word that turns them, nothing is wrong.
const APPROVAL: &str = "\
    appropriately cleanly correctly elegant elegantly excellent good gracefully great idiomatic neatly nice nicely \
    properly robustly sensibly";

/// Words that turn approval into something else, each with its endings after a star.
const TURNS: &str = "\
    although any avoid break* but can cannot could crash* despite differ* doesn drop* even except fail* fewer however idea if ignore* instead \
    isn lack* leak* less lose* loses lost may might miss* must never no not only overflow* panic* rather should silent* still \
    swallow* t than though throw* too unless until when where while without would wrong* yet";

/// `Use X to close it properly` is advice and no praise.
const ORDERS: &str = "add avoid call catch check close do handle log make move prefer put raise remove rename replace return set use validate wrap";

/// Advice that could stand at any line of any file: with nothing but these, no defect is named.
const STOCK: &str = "\
    add added adding additional adds annotations attention be become best better bug bugs can case cases cause \
    causes causing change changes check clarify clarity clean cleaner clearer comment comments concern concerns \
    consider considering convention conventions could descriptive do docs docstring document documentation \
    documented documenting does enhance enhanced enhancement follow followed following follows further future \
    general generally helpful helps hint hints important improve improved improvement improvements improves \
    improving inline issue issues later lead leads maintainability maintainable may maybe meaningful might minor \
    more name names need needed needs not optimization optimize optimized performance perhaps please possible \
    possibly potential potentially practice practices problem problems proper readability refactor refactored \
    refactoring required review reviewed reviewing revisit should standard standards structure structured sure \
    type types understand understanding unexpected use using variable variables want worth would";

/// What a line does, said without saying what is wrong with it.
const TELLING: &str = "\
    assigns calls checks compares connects converts creates declares defines does executes gets imports initializes \
    iterates loads loops makes opens passes performs prints raises reads returns runs selects sends sets stores takes \
    updates uses using value variable writes";

/// `Runs as root` of `USER root` names a defect, with no word more.
const LEAST_TOLD: usize = 3;

/// Two words can name a defect (`unused import`); fewer cannot.
const LEAST: usize = 2;
/// Beside praise, this many words make it worth reading: `looks good but panics on empty input`.
const LEAST_BESIDE_PRAISE: usize = 3;

/// The error says what is missing. `quote` is the line that is spoken of.
pub(super) fn names_a_defect(why: &str, quote: &str) -> Result<(), String> {
    says_something(why)?;
    let all = normal(why);
    let is = |list: &str, word: &str| list.split(' ').any(|known| known == word);
    let approved = all.split(' ').any(|word| is(APPROVAL, word));
    let advises = all.split(' ').next().is_some_and(|first| is(ORDERS, first));
    if approved && !advises && !all.split(' ').any(turns) {
        return Err(String::from("praises and names no defect"));
    }
    let content: Vec<&str> = all.split(' ').filter(|word| !is(FILLER, word)).collect();
    if content.iter().all(|word| is(STOCK, word)) {
        return Err(String::from("could be said of any line"));
    }
    let quote = normal(quote);
    let in_the_line = |word: &str| quote.split(' ').any(|there| alike(there, word));
    if content.len() >= LEAST_TOLD && content.iter().all(|word| is(TELLING, word) || in_the_line(word)) {
        return Err(String::from("only says what the line says"));
    }
    Ok(())
}

fn turns(word: &str) -> bool {
    TURNS.split(' ').any(|known| match known.strip_suffix('*') {
        Some(begin) => word.starts_with(begin),
        None => word == known,
    })
}

/// `executes` and `execute`.
fn alike(a: &str, b: &str) -> bool {
    let head = |word: &str| word.chars().take(5).collect::<String>();
    a == b || (a.chars().count() >= 5 && head(a) == head(b))
}

fn says_something(why: &str) -> Result<(), String> {
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
            assert!(names_a_defect(empty, "x = 1").is_err(), "{empty}");
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
            assert_eq!(names_a_defect(said, "x = 1"), Ok(()), "{said}");
        }
    }

    const LINE: &str = "row = conn.execute(\"SELECT owner FROM accounts WHERE owner = '%s'\" % owner).fetchone()";

    #[test]
    fn what_could_be_said_of_any_line_names_no_defect() {
        for (empty, because) in [
            ("Consider adding comments to improve readability.", "any line"),
            ("Add documentation for clarity.", "any line"),
            ("This could be improved.", "any line"),
            ("Potential issue here.", "any line"),
            ("This may cause problems in some cases.", "any line"),
            ("Does not follow best practices.", "any line"),
            ("Consider refactoring this for better maintainability.", "any line"),
            ("Please use more descriptive variable names", "any line"),
            ("Consider improving the code structure.", "any line"),
            ("This can be optimized for performance.", "any line"),
            ("Consider adding type hints for better readability.", "any line"),
            ("Might be worth reviewing.", "any line"),
            ("This works as expected.", "praises"),
            ("No changes required.", "praises"),
            ("Handles the owner as intended.", "praises"),
            ("Good use of fetchone for retrieving the row.", "praises"),
            ("The method is elegant and handles the owner properly.", "praises"),
            ("Correctly validates the owner before use", "praises"),
            ("This line executes a SELECT of owner FROM accounts.", "what the line says"),
            ("Calls conn.execute and fetchone", "what the line says"),
        ] {
            let said = names_a_defect(empty, LINE).expect_err(empty);
            assert!(said.contains(because), "{empty}: {said}");
        }
    }

    #[test]
    fn short_and_honest_words_name_a_defect() {
        for said in [
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
            assert_eq!(names_a_defect(said, LINE), Ok(()), "{said}");
        }
    }
}
