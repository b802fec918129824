//! A pattern that a model wrote: linear time whatever it is, bounded in size, and no good if it fits everything.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};

use crate::words;

/// A longer pattern is no question.
const LONGEST: usize = 400;
/// Bytes that a compiled pattern may take.
const COMPILED: usize = 1 << 20;
/// Fewer lines than this can all be meant.
const SMALL: usize = 4;

/// One line of a file at a time is compared with it.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words::plain(self.0.as_str()))
    }
}

impl Pattern {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("the pattern is longer than {LONGEST} bytes"));
        }
        // Bytes, so that no tables are needed and any file can be searched.
        let compiled = RegexBuilder::new(text).unicode(false).size_limit(COMPILED).dfa_size_limit(COMPILED).build();
        let pattern = compiled.map_err(|e| {
            let why = e.to_string();
            let why = why.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
            format!("the pattern `{}` is no regular expression: {}", short(text), words::cut_end(why, 200))
        })?;
        let everything = ["a", "0", " ", "}", "\u{7f}"].iter().all(|any| pattern.is_match(any.as_bytes()));
        if text.trim().is_empty() || pattern.is_match(b"") || everything {
            return Err(format!(
                "the pattern `{}` fits every line, so that finding it shows nothing; name what would really stand there",
                short(text)
            ));
        }
        Ok(Self(pattern))
    }

    /// The lines that it fits, from 1. `Err` if it fits all of them, which shows nothing.
    pub(super) fn lines(&self, text: &str) -> Result<Vec<usize>, String> {
        let filled = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let all = filled.clone().count();
        let found: Vec<usize> =
            filled.filter(|(_, line)| self.0.is_match(line.as_bytes())).map(|(n, _)| n + 1).collect();
        if all >= SMALL && found.len() == all {
            return Err(format!(
                "the pattern `{}` fits every line of the file, so that finding it shows nothing",
                short(self.0.as_str())
            ));
        }
        Ok(found)
    }
}

fn short(text: &str) -> String {
    words::cut_end(&words::plain(text), 100).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_fits_everything_or_is_none_is_refused() {
        for bad in [
            "",
            " ",
            ".",
            ".*",
            "a*",
            "(x|)",
            "[^z]",
            r"(?s).",
            "^",
            "$",
            "(",
            r"\p{Greek}",
            "a{1000}{1000}",
            &"x".repeat(500),
        ] {
            assert!(Pattern::new(bad).is_err(), "{bad}");
        }
        for good in [r"unwrap\(\)", r"^fn \w+", "é", r"\d+ ms", "(?i)todo"] {
            assert!(Pattern::new(good).is_ok(), "{good}: {:?}", Pattern::new(good));
        }
    }

    #[test]
    fn lines_are_found_one_by_one() {
        let pattern = Pattern::new("x =").expect("a pattern");
        assert_eq!(pattern.lines("a\nx = 1\n\nlet x = 2"), Ok(vec![2, 4]));
        assert_eq!(pattern.lines("x = 1"), Ok(vec![1]), "one line can be what is meant");
        assert!(pattern.lines("x = 1\nx = 2\n\nx = 3\nx = 4\n").is_err());
        assert_eq!(Pattern::new("(a+)+$").expect("linear").lines(&format!("{}b", "a".repeat(200_000))), Ok(vec![]));
    }
}
