//! A pattern that a model wrote: linear time whatever it is, bounded in size, and no good if it fits everything.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, RepetitionKind, RepetitionRange};

use supervisor_text::words;

/// A longer pattern is no question.
const LONGEST: usize = 400;
/// Bytes that a compiled pattern may take.
const COMPILED: usize = 1 << 20;
/// Fewer lines than this can all be meant.
const SMALL: usize = 4;
/// A shorter word stands anywhere.
const WORD: usize = 3;

/// One line of a file at a time is compared with it.
#[derive(Debug, Clone)]
pub struct SearchPattern(Regex);

impl fmt::Display for SearchPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words::plain(self.0.as_str()))
    }
}

impl SearchPattern {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("the pattern is longer than {LONGEST} bytes"));
        }
        let build = |text: &str, unicode: bool| {
            RegexBuilder::new(text)
                .unicode(unicode)
                .size_limit(COMPILED)
                .dfa_size_limit(COMPILED)
                .build()
        };
        // Bytes, so that any file can be searched; `[€£]` are no bytes, though.
        let compiled = build(text, false).or_else(|e| {
            if text.is_ascii() {
                Err(e)
            } else {
                build(text, true)
            }
        });
        let pattern = compiled.map_err(|e| {
            let why = e.to_string();
            let why = why
                .lines()
                .map(str::trim)
                .rfind(|line| !line.is_empty())
                .unwrap_or_default();
            format!(
                "the pattern `{}` is no regular expression: {}",
                short(text),
                words::cut_end(why, 200)
            )
        })?;
        let everything = ["a", "0", " ", "}", "\u{7f}"]
            .iter()
            .all(|any| pattern.is_match(any.as_bytes()));
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
        let filled = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let all = filled.clone().count();
        let found: Vec<usize> = filled
            .filter(|(_, line)| self.0.is_match(line.as_bytes()))
            .map(|(n, _)| n + 1)
            .collect();
        if all >= SMALL && found.len() == all {
            return Err(format!(
                "the pattern `{}` fits every line of the file, so that finding it shows nothing",
                short(self.0.as_str())
            ));
        }
        if all >= SMALL && found.len() * 3 > all * 2 && self.words().is_empty() {
            return Err(format!(
                "the pattern `{}` names nothing and fits {} of {all} lines of the file, so that finding it shows nothing",
                short(self.0.as_str()),
                found.len()
            ));
        }
        Ok(found)
    }

    /// Is a word of it among these texts, or one of theirs in it? One that names nothing is about anything.
    pub(super) fn is_about(&self, texts: &[&str]) -> bool {
        let words = self.words();
        let text = texts.join("\n").to_lowercase();
        let longer = |word: &str| word.len() > WORD && words.iter().any(|own| own.contains(word));
        words.is_empty()
            || words.iter().any(|own| text.contains(own.as_str()))
            || text.split(|c: char| !c.is_alphanumeric()).any(longer)
    }

    /// The words that it looks for, in small letters: neither classes, nor escapes, nor counts.
    fn words(&self) -> Vec<String> {
        let mut bare = String::new();
        if let Ok(ast) = Parser::new().parse(self.0.as_str()) {
            spell(&ast, &mut bare);
        }
        let words = bare.split(|c: char| !c.is_alphanumeric());
        words
            .filter(|word| word.chars().count() >= WORD)
            .map(str::to_owned)
            .collect()
    }
}

/// The literal parts of a pattern, with a space wherever something else stands or nothing need stand.
fn spell(ast: &Ast, out: &mut String) {
    match ast {
        Ast::Literal(literal) => out.extend(literal.c.to_lowercase()),
        Ast::Group(group) => spell(&group.ast, out),
        Ast::Concat(concat) => concat.asts.iter().for_each(|part| spell(part, out)),
        Ast::Alternation(any) => any.asts.iter().for_each(|part| {
            spell(part, out);
            out.push(' ');
        }),
        Ast::Repetition(repeated) => {
            let may_be_missing = match &repeated.op.kind {
                RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore => true,
                RepetitionKind::OneOrMore => false,
                RepetitionKind::Range(range) => {
                    !range.is_valid()
                        || matches!(
                            range,
                            RepetitionRange::Exactly(0)
                                | RepetitionRange::AtLeast(0)
                                | RepetitionRange::Bounded(0, _)
                        )
                }
            };
            if !may_be_missing {
                spell(&repeated.ast, out);
            }
            out.push(' ');
        }
        _ => out.push(' '),
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
            assert!(SearchPattern::new(bad).is_err(), "{bad}");
        }
        for good in [
            r"unwrap\(\)",
            r"^fn \w+",
            "é",
            r"\d+ ms",
            "(?i)todo",
            r"[€$£]\s*\d",
            r"[ä\w]+\b=",
            "[“”]",
        ] {
            assert!(
                SearchPattern::new(good).is_ok(),
                "{good}: {:?}",
                SearchPattern::new(good)
            );
        }
        let price = SearchPattern::new(r"[€$£]\s*\d").expect("a pattern");
        assert_eq!(price.lines("a\n€ 5\n5\n$5\n£\n"), Ok(vec![2, 4]));
    }

    #[test]
    fn a_pattern_without_a_word_that_fits_most_lines_is_refused() {
        let code =
            "import os\n\ndef f(x):\n    if x:\n        return 1\n    }\n    return os.path\n";
        for (pattern, good) in [
            ("[a-z]", false),
            (r"\w+", false),
            ("return", true),
            (r"\(", true),
        ] {
            assert_eq!(
                SearchPattern::new(pattern)
                    .expect(pattern)
                    .lines(code)
                    .is_ok(),
                good,
                "{pattern}"
            );
        }
    }

    #[test]
    fn a_pattern_is_about_the_words_it_shares() {
        let cause = [
            "The queue is full",
            "no lock protects `items` when put() blocks",
            "jobs.put(n)",
        ];
        for (pattern, about) in [
            (r"jobs\.put\(", true),
            (r"put\(.*timeout", true),
            (r"\bRwLock\b|Mutex", true), // `lock` is in `rwlock`
            (r"(?i)ITEMS\s*=", true),
            (r"\t", true),
            ("[A-Z]{3}", true),
            ("zzqq_never", false),
            (r"^import \w+", false),
            ("pub", false),
            ("(?:locks?)+", true),
            ("(?:lock)?zzqq", false), // what may be missing names nothing
        ] {
            assert_eq!(
                SearchPattern::new(pattern).expect(pattern).is_about(&cause),
                about,
                "{pattern}"
            );
        }
    }

    #[test]
    fn lines_are_found_one_by_one() {
        let pattern = SearchPattern::new("x =").expect("a pattern");
        assert_eq!(pattern.lines("a\nx = 1\n\nlet x = 2"), Ok(vec![2, 4]));
        assert_eq!(
            pattern.lines("x = 1"),
            Ok(vec![1]),
            "one line can be what is meant"
        );
        assert!(pattern.lines("x = 1\nx = 2\n\nx = 3\nx = 4\n").is_err());
        assert_eq!(
            SearchPattern::new("(a+)+$")
                .expect("linear")
                .lines(&format!("{}b", "a".repeat(200_000))),
            Ok(vec![])
        );
    }
}
