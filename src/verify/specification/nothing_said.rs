//! Does a text say anything that would not be said of every project? "Test well" and "everything else" do not.
//! English only: in another language every word counts as said.

use super::shared_words::content_words;

/// Words that fit any decision and any risk.
const FILLER: &str = "\
    about address always appropriate appropriately approach avoid because best better bug bugs build careful \
    carefully challenge challenges choice closely code could delay delays design do done ensure error errors \
    fix future general go good great handle happen help implement implementation industry issue issues it just \
    make makes manage may measures might mitigate mitigation monitor monitoring more most necessary needed \
    option plan planning possible practice practices prevent problem problems project proper properly proven \
    reduce regularly required right risk risks since solution something standard standards sure take technical \
    test testing tests thing things thorough thoroughly unforeseen unknown use used using way well work working \
    works write wrong";

/// Whole texts that leave out everything and so name nothing.
const NAMELESS: &[&str] = &[
    "everything else",
    "anything else",
    "all else",
    "all other features",
    "other features",
    "all other things",
    "anything not mentioned",
    "anything not mentioned above",
    "anything not listed",
    "anything not listed above",
    "everything not mentioned",
    "everything not mentioned above",
    "everything not listed",
    "everything not listed above",
    "everything not mentioned in the requirements",
    "anything not mentioned in the requirements",
    "nothing is out of scope",
    "nothing out of scope",
    "nothing else",
    "no constraints",
    "no constraints apply",
    "no known constraints",
    "no specific constraints",
    "no special constraints",
    "no constraints identified",
    "none identified",
    "none known",
    "none specified",
    "not specified",
    "not applicable",
    "standard constraints",
    "standard constraints apply",
    "the usual constraints",
    "no risks",
    "no known risks",
    "no risks identified",
    "time",
    "budget",
    "time and budget",
    "as discussed",
    "pending",
    "later",
    "depends",
    "it depends",
    "unclear",
    "not yet known",
    "to be agreed",
    "to be confirmed",
];

/// True if every word of a text fits any project, or stands in `beside` already.
pub(super) fn adds_nothing(text: &str, beside: &str) -> bool {
    let known = content_words(beside);
    let new =
        |word: &String| !FILLER.split(' ').any(|filler| filler == word) && !known.contains(word) && !is_number(word);
    !content_words(text).iter().any(new)
}

/// True if the text stands for everything that is not named.
pub(super) fn names_nothing(text: &str) -> bool {
    let words: Vec<String> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    let line = words.join(" ");
    let line = ["at this time", "for now", "at the moment", "so far", "here"]
        .iter()
        .fold(line.as_str(), |line, end| line.strip_suffix(end).map_or(line, str::trim_end));
    NAMELESS.contains(&line)
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_every_project_says_nothing() {
        for (text, beside) in [
            ("Test well.", "There may be bugs."),
            ("Careful planning.", "Delays."),
            ("Make sure it works.", "It might not work."),
            ("Monitor.", "Unknown risks."),
            ("Mitigation 1", "Risk 1"),
            ("Avoid scope creep", "Scope creep"),
            ("Because Rust is used.", "Use Rust."),
            ("They are proven.", "Use best practices."),
            ("It is the best option", "A `--format` option"),
            ("Technical risk", ""),
        ] {
            assert!(adds_nothing(text, beside), "{text} / {beside}");
        }
        for text in ["Everything else.", "Nothing is out of scope", "No known constraints at this time.", "Time"] {
            assert!(names_nothing(text), "{text}");
        }
    }

    #[test]
    fn one_word_of_its_own_is_enough() {
        for (text, beside) in [
            ("Rate limit by IP address.", "Anonymous search can be abused."),
            ("Refuse them, naming the first wrong byte", "Encodings other than UTF-8"),
            ("It reports percentiles", "Measure with k6"),
            ("Required by R1", "Implement the export"),
            ("Test with 64 retries", "Overflow"),
            ("Erst im Testsystem üben", "Die Umstellung dauert länger"),
            ("列ごとに確認する", "文字化け"),
        ] {
            assert!(!adds_nothing(text, beside), "{text} / {beside}");
        }
        for text in
            ["Everything else that the board decides", "PostgreSQL 16", "Live before July", "No network", "Offline"]
        {
            assert!(!names_nothing(text), "{text}");
        }
    }
}
