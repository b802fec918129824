//! A search pattern written by a model: bounded in size, linear in time, and rejected if it matches
//! everything.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, RepetitionKind, RepetitionRange};

use supervisor_text::words;

/// Max length of a pattern.
const MAX_PATTERN_LEN: usize = 400;
/// Max bytes of the compiled pattern.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// In a file with fewer lines, a pattern may match all of them.
const MIN_LINES_TO_JUDGE: usize = 4;
/// Shorter words are not distinctive.
const MIN_WORD_LEN: usize = 3;

/// A pattern that is matched line by line.
#[derive(Debug, Clone)]
pub(crate) struct SearchPattern(Regex);

impl fmt::Display for SearchPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words::plain(self.0.as_str()))
    }
}

impl SearchPattern {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATTERN_LEN {
            return Err(format!(
                "the pattern is longer than {MAX_PATTERN_LEN} bytes"
            ));
        }
        let build = |text: &str, unicode: bool| {
            RegexBuilder::new(text)
                .unicode(unicode)
                .size_limit(MAX_COMPILED_BYTES)
                .dfa_size_limit(MAX_COMPILED_BYTES)
                .build()
        };
        // Match bytes, so that any file can be searched. Non-ASCII classes such as `[€£]` need
        // Unicode mode.
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
                "the pattern `{}` is not a regular expression: {}",
                short(text),
                words::cut_end(why, 200)
            )
        })?;
        let matches_everything = ["a", "0", " ", "}", "\u{7f}"]
            .iter()
            .all(|any| pattern.is_match(any.as_bytes()));
        if text.trim().is_empty() || pattern.is_match(b"") || matches_everything {
            return Err(format!(
                "the pattern `{}` fits every line, so that finding it shows nothing; name what would really stand there",
                short(text)
            ));
        }
        Ok(Self(pattern))
    }

    /// The matching lines, counted from 1. `Err` if all lines match, which shows nothing.
    pub(super) fn lines(&self, text: &str) -> Result<Vec<usize>, String> {
        let non_empty = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let all = non_empty.clone().count();
        let found: Vec<usize> = non_empty
            .filter(|(_, line)| self.0.is_match(line.as_bytes()))
            .map(|(n, _)| n + 1)
            .collect();
        if all >= MIN_LINES_TO_JUDGE && found.len() == all {
            return Err(format!(
                "the pattern `{}` fits every line of the file, so that finding it shows nothing",
                short(self.0.as_str())
            ));
        }
        if all >= MIN_LINES_TO_JUDGE && found.len() * 3 > all * 2 && self.words().is_empty() {
            return Err(format!(
                "the pattern `{}` names nothing and fits {} of {all} lines of the file, so that finding it shows nothing",
                short(self.0.as_str()),
                found.len()
            ));
        }
        Ok(found)
    }

    /// Whether the pattern and the texts share a word. A pattern without words relates to anything.
    pub(super) fn shares_word_with(&self, texts: &[&str]) -> bool {
        let words = self.words();
        let text = texts.join("\n").to_lowercase();
        let longer =
            |word: &str| word.len() > MIN_WORD_LEN && words.iter().any(|own| own.contains(word));
        words.is_empty()
            || words.iter().any(|own| text.contains(own.as_str()))
            || text.split(|c: char| !c.is_alphanumeric()).any(longer)
    }

    /// The lowercase words in its literal parts.
    fn words(&self) -> Vec<String> {
        let mut bare = String::new();
        if let Ok(ast) = Parser::new().parse(self.0.as_str()) {
            collect_literals(&ast, &mut bare);
        }
        let words = bare.split(|c: char| !c.is_alphanumeric());
        words
            .filter(|word| word.chars().count() >= MIN_WORD_LEN)
            .map(str::to_owned)
            .collect()
    }
}

/// Collects the literal parts of a pattern, with a space in place of anything variable or optional.
fn collect_literals(ast: &Ast, out: &mut String) {
    match ast {
        Ast::Literal(literal) => out.extend(literal.c.to_lowercase()),
        Ast::Group(group) => collect_literals(&group.ast, out),
        Ast::Concat(concat) => concat
            .asts
            .iter()
            .for_each(|part| collect_literals(part, out)),
        Ast::Alternation(any) => any.asts.iter().for_each(|part| {
            collect_literals(part, out);
            out.push(' ');
        }),
        Ast::Repetition(repeated) => {
            let is_optional = match &repeated.op.kind {
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
            if !is_optional {
                collect_literals(&repeated.ast, out);
            }
            out.push(' ');
        }
        _ => out.push(' '),
    }
}

fn short(text: &str) -> String {
    words::short(text, 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_or_universal_pattern_is_rejected() {
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
    fn wordless_pattern_matching_most_lines_is_rejected() {
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
    fn pattern_relates_to_texts_by_shared_words() {
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
            ("(?:lock)?zzqq", false), // an optional part has no words
        ] {
            assert_eq!(
                SearchPattern::new(pattern)
                    .expect(pattern)
                    .shares_word_with(&cause),
                about,
                "{pattern}"
            );
        }
    }

    #[test]
    fn pattern_matches_line_by_line() {
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
