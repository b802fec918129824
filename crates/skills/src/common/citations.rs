//! Checks citations. Each file, line and quote that an answer names is compared with the text the
//! server read. A line number that is off by a few lines is corrected; a wrong quote is rejected.
//! Claims about the cited lines are not judged here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};

use supervisor_text::words;

/// The texts that may be cited.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceTexts {
    files: BTreeMap<PathBuf, SourceText>,
}

/// One text with an index of its lines.
#[derive(Debug, Clone)]
pub(crate) struct SourceText {
    text: String,
    /// The byte offset of each line.
    starts: Vec<usize>,
}

/// A verified citation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Citation {
    /// Relative to the project root.
    pub file: PathBuf,
    /// Counted from 1.
    pub lines: RangeInclusive<usize>,
    /// The cited text.
    pub text: String,
    /// The line number that was given, if it had to be corrected.
    pub corrected_from: Option<usize>,
}

/// Why a citation is rejected. Each message is phrased to follow a colon and to tell the next model
/// what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadCitation {
    #[error("`{0}` is not among the files that were shown")]
    OutOfScope(String),
    #[error("`{file}` has {}, so there is no line {line}", words::count(*.has, "line"))]
    NoSuchLine {
        file: String,
        line: usize,
        has: usize,
    },
    #[error("`{file}`: lines {from} to {to} are no range")]
    InvalidRange {
        file: String,
        from: usize,
        to: usize,
    },
    #[error("`{file}:{line}` is cited without a quote")]
    NoQuote { file: String, line: usize },
    #[error("`{file}:{line}` does not say `{quoted}` but `{actual}`")]
    WrongQuote {
        file: String,
        line: usize,
        quoted: String,
        actual: String,
    },
}

/// Max bytes of a quote repeated in a message.
const MAX_SHOWN_BYTES: usize = 120;
/// Min letters and digits of a quoted piece that identify its line.
const MIN_PIECE_CHARS: usize = 6;
/// How many lines a line number may be off.
pub(crate) const MAX_LINE_OFFSET: usize = 3;
/// Min bytes that an ellipsis must stand for.
const MIN_ELIDED_BYTES: usize = 4;

impl Citation {
    /// Marks this as the correction of the given line number.
    pub(crate) fn corrected(self, from: usize) -> Self {
        Self {
            corrected_from: Some(from),
            ..self
        }
    }
}

impl SourceTexts {
    /// Adds a text. `path` is relative to the project.
    pub(crate) fn add(&mut self, path: impl Into<PathBuf>, text: impl Into<String>) {
        self.files.insert(path.into(), SourceText::new(text.into()));
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, &SourceText)> {
        self.files
            .iter()
            .map(|(path, source)| (path.as_path(), source))
    }

    pub(crate) fn get(&self, path: &Path) -> Option<&SourceText> {
        self.files.get(path)
    }

    /// Finds the file a model means, whether it wrote `src/a.rs`, `./src/a.rs` or an absolute path.
    pub(crate) fn find(&self, given: &str) -> Result<(&Path, &SourceText), BadCitation> {
        let plain: PathBuf = Path::new(given.trim().trim_matches('`'))
            .components()
            .filter(|c| *c != Component::CurDir)
            .collect();
        let is_suffix = |path: &&PathBuf| plain.is_absolute() && plain.ends_with(path);
        let path = if self.files.contains_key(&plain) {
            Some(&plain)
        } else {
            // Prefer the longest match: `/p/src/a.rs` ends with both `src/a.rs` and `a.rs`.
            self.files
                .keys()
                .filter(is_suffix)
                .max_by_key(|path| path.components().count())
        };
        let found = path.and_then(|path| self.files.get_key_value(path));
        found
            .map(|(path, source)| (path.as_path(), source))
            .ok_or_else(|| BadCitation::OutOfScope(short(given)))
    }

    /// Cites a whole line, if it exists.
    pub(crate) fn line(&self, file: &str, line: usize) -> Result<Citation, BadCitation> {
        let (path, source) = self.find(file)?;
        let text = source
            .line(line)
            .ok_or_else(|| source.no_such_line(file, line))?;
        Ok(Citation {
            file: path.to_owned(),
            lines: line..=line,
            text: text.to_owned(),
            corrected_from: None,
        })
    }

    /// Cites a quote, ignoring whitespace. Without an end line, or with a wrong one, the length of
    /// the quote decides how many lines it covers. Part of a line is enough if it distinguishes the
    /// line from its neighbours. A line number that is off by a few lines is corrected.
    pub(crate) fn quote(
        &self,
        file: &str,
        line: usize,
        end: Option<usize>,
        quote: &str,
    ) -> Result<Citation, BadCitation> {
        self.quote_exact(file, line, end, quote)
            .or_else(|bad| self.quote_nearby(file, line, end, quote).ok_or(bad))
    }

    /// Like [`Self::quote`], but the line number must be right.
    pub(crate) fn quote_exact(
        &self,
        file: &str,
        line: usize,
        end: Option<usize>,
        quote: &str,
    ) -> Result<Citation, BadCitation> {
        let (path, source) = self.find(file)?;
        let quote = quote.trim_end_matches(['\n', '\r']);
        if without_whitespace(quote).is_empty() {
            return Err(BadCitation::NoQuote {
                file: short(file),
                line,
            });
        }
        let last = end
            .unwrap_or_else(|| line.saturating_add(quote.trim().lines().count().saturating_sub(1)));
        if last < line {
            return Err(BadCitation::InvalidRange {
                file: short(file),
                from: line,
                to: last,
            });
        }
        for wanted in [line, last] {
            source
                .line(wanted)
                .ok_or_else(|| source.no_such_line(file, wanted))?;
        }
        let variants = quote_variants(quote, line);
        let matched = variants
            .iter()
            .find_map(|variant| source.match_quote(variant, line, last));
        let Some(to) = matched else {
            let (quoted, actual) = (
                short(quote.trim()),
                short(
                    source
                        .joined(line..=last)
                        .trim_end()
                        .trim_start_matches([' ', '\t']),
                ),
            );
            return Err(BadCitation::WrongQuote {
                file: short(file),
                line,
                quoted,
                actual,
            });
        };
        let text = source.joined(line..=to);
        Ok(Citation {
            file: path.to_owned(),
            lines: line..=to,
            text,
            corrected_from: None,
        })
    }

    /// Finds the quote on the nearest line within [`MAX_LINE_OFFSET`].
    fn quote_nearby(
        &self,
        file: &str,
        line: usize,
        end: Option<usize>,
        quote: &str,
    ) -> Option<Citation> {
        nearby(line).find_map(|there| {
            let end = end.and_then(|end| (end + there).checked_sub(line));
            // Copied line numbers must match the line they are compared with, not the line that was
            // given.
            let found = self
                .quote_exact(file, there, end, quote)
                .or_else(|_| self.quote_exact(file, there, None, quote));
            found.ok().map(|found| found.corrected(line))
        })
    }
}

/// The line numbers around one, nearest first.
pub(crate) fn nearby(line: usize) -> impl Iterator<Item = usize> {
    (1..=MAX_LINE_OFFSET)
        .flat_map(move |by| [line.checked_sub(by), line.checked_add(by)])
        .flatten()
        .filter(|there| *there > 0)
}

impl SourceText {
    pub(crate) fn new(text: String) -> Self {
        let mut starts: Vec<usize> = vec![0];
        starts.extend(
            text.bytes()
                .enumerate()
                .filter(|(_, byte)| *byte == b'\n')
                .map(|(at, _)| at + 1),
        );
        // The text after the last newline is a line only if it is not empty.
        if starts.last() == Some(&text.len()) {
            starts.pop();
        }
        Self { text, starts }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The number of lines.
    pub(crate) fn lines(&self) -> usize {
        self.starts.len()
    }

    /// A line by its number, counted from 1, without its line ending.
    pub(crate) fn line(&self, number: usize) -> Option<&str> {
        let start = *self.starts.get(number.checked_sub(1)?)?;
        let end = self.starts.get(number).copied().unwrap_or(self.text.len());
        Some(self.text[start..end].trim_end_matches(['\n', '\r']))
    }

    /// Numbered lines as shown to models: `12: let x = 1;`
    pub(crate) fn numbered(&self, range: RangeInclusive<usize>) -> String {
        let mut out = String::new();
        for number in range {
            let Some(line) = self.line(number) else { break };
            let _ = writeln!(out, "{number}: {line}");
        }
        out
    }

    /// Matches a quote that starts at `line`. Returns its last line.
    pub(crate) fn match_quote(&self, quote: &str, line: usize, last: usize) -> Option<usize> {
        let quoted = without_whitespace(quote);
        let mut actual = String::new();
        for to in line..=self.lines() {
            actual.extend(self.line(to)?.chars().filter(|c| !c.is_whitespace()));
            if actual.len() >= quoted.len() {
                // A quote that starts on an empty line must include that empty line; else the line
                // before would match as well.
                let starts_with_text = |text: &str| {
                    text.lines()
                        .next()
                        .is_some_and(|first| !first.trim().is_empty())
                };
                if actual == quoted
                    && (starts_with_text(self.line(line)?) || !starts_with_text(quote))
                {
                    return Some(to);
                }
                break;
            }
        }
        let pieces: Vec<String> = quote
            .split(['…'])
            .flat_map(|part| part.split("..."))
            .map(without_whitespace)
            .collect();
        let pieces: Vec<&str> = pieces
            .iter()
            .map(String::as_str)
            .filter(|piece| !piece.is_empty())
            .collect();
        let is_distinctive = pieces
            .iter()
            .any(|piece| piece.chars().filter(|c| c.is_alphanumeric()).count() >= MIN_PIECE_CHARS);
        let here = self.contains_pieces(&pieces, line, last);
        let is_at_offset = |by: isize| {
            let shift = |n: usize| n.checked_add_signed(by);
            matches!((shift(line), shift(last)), (Some(line), Some(last)) if self.contains_pieces(&pieces, line, last))
        };
        (is_distinctive && here && !is_at_offset(-1) && !is_at_offset(1)).then_some(last)
    }

    /// Whether the lines contain the pieces in order, the first of them starting in the first line.
    fn contains_pieces(&self, pieces: &[&str], line: usize, last: usize) -> bool {
        let Some(first) = self.line(line).map(without_whitespace) else {
            return false;
        };
        let text = without_whitespace(&self.joined(line..=last.min(self.lines())));
        let mut at = 0;
        pieces
            .iter()
            .enumerate()
            .all(|(n, piece)| match text[at..].find(piece) {
                Some(found)
                    if if n == 0 {
                        found < first.len()
                    } else {
                        found >= MIN_ELIDED_BYTES
                    } =>
                {
                    at += found + piece.len();
                    true
                }
                _ => false,
            })
    }

    fn joined(&self, lines: RangeInclusive<usize>) -> String {
        lines
            .map_while(|n| self.line(n))
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn no_such_line(&self, file: &str, line: usize) -> BadCitation {
        BadCitation::NoSuchLine {
            file: short(file),
            line,
            has: self.lines(),
        }
    }
}

pub(crate) fn without_whitespace(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The quote as given, and without what models add around it: backticks, line numbers and diff
/// signs.
pub(crate) fn quote_variants(quote: &str, from: usize) -> Vec<Cow<'_, str>> {
    let bare = quote.trim().trim_matches('`');
    vec![
        Cow::Borrowed(quote),
        strip_line_numbers(quote, from),
        Cow::Borrowed(bare),
        strip_line_numbers(bare, from),
    ]
}

/// Removes copied line numbers, which small models include in quotes.
fn strip_line_numbers(quote: &str, from: usize) -> Cow<'_, str> {
    let strip = |(n, line): (usize, &str)| {
        let line = line.trim_start();
        let line = line.strip_prefix(['+', '-']).unwrap_or(line).trim_start();
        let rest = line.strip_prefix(&(from + n).to_string())?.trim_start();
        rest.strip_prefix([':', '|']).map(str::to_owned)
    };
    match quote
        .lines()
        .enumerate()
        .map(strip)
        .collect::<Option<Vec<String>>>()
    {
        Some(lines) => Cow::Owned(lines.join("\n")),
        None => Cow::Borrowed(quote),
    }
}

fn short(text: &str) -> String {
    words::cut_end(&words::plain(text).replace('\n', "⏎"), MAX_SHOWN_BYTES).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sources() -> SourceTexts {
        let mut sources = SourceTexts::default();
        sources.add("src/a.rs", "fn a() {\n    one();\n\n    two();\r\n}");
        sources.add("empty", "");
        sources
    }

    #[test]
    fn quote_matches_ignoring_whitespace() {
        let sources = sources();
        let cited = sources
            .quote("./src/a.rs", 2, None, "one( );")
            .expect("holds");
        assert_eq!(
            (cited.file.to_str(), cited.lines, cited.text.as_str()),
            (Some("src/a.rs"), 2..=2, "    one();")
        );
        assert_eq!(
            sources
                .quote("src/a.rs", 2, None, "one();\n\ntwo();")
                .expect("holds")
                .lines,
            2..=4
        );
        assert!(
            sources
                .quote("src/a.rs", 1, Some(2), "fn a() { one();")
                .is_ok()
        );
        for (line, end, quote, why) in [
            (
                2,
                None,
                "2:     one();\n3: \n4:     two();",
                "our own numbers",
            ),
            (2, None, "+2| one();", "in the other form, with a sign"),
            (2, None, "`one();`", "in ticks"),
            (2, None, "one();\ntwo();", "an empty line left out"),
            (2, Some(4), "one();", "only the first line of what is cited"),
            (
                1,
                Some(1),
                "fn a() {\n    one();",
                "an end that does not fit the quote",
            ),
            (3, None, "\n    two();", "an empty line that is quoted"),
        ] {
            assert!(sources.quote("src/a.rs", line, end, quote).is_ok(), "{why}");
        }
        assert!(
            sources
                .quote("/home/me/p/src/a.rs", 2, None, "one();")
                .is_ok(),
            "as agents name files"
        );
        assert_eq!(sources.line("src/a.rs", 5).expect("there").text, "}");
    }

    #[test]
    fn distinctive_part_of_a_line_is_accepted() {
        let mut sources = SourceTexts::default();
        sources.add(
            "f",
            "let total = sum(prices) / len(prices); // mean\nlet other = len(prices);\n  {a: 1, total}\nx();\n",
        );
        for (line, end, quote, holds) in [
            (1, None, "sum(prices) / len(prices)", true),
            (1, None, "let total = sum(prices) / len(prices);", true),
            (1, None, "let total = ... / len(prices);", true),
            (1, None, "let total = sum(prices)…", true),
            (1, Some(3), "let total = sum(prices)", true),
            (2, None, "sum(prices) / len(prices)", true), // is in the previous line
            (1, None, "len(prices)", false),              // is in the next line too
            (1, None, "total", false),                    // too short to identify a line
            (1, None, "sum(prices) ... len(total)", false),
            (1, None, "... // mean ... let total", false),
            (1, None, "sum(pr…ces) / len(prices)", false), // a changed letter is not an ellipsis
            (1, Some(3), "let other = len(prices);", true), // starts in the next line
            (4, None, "y();", false),
        ] {
            assert_eq!(
                sources.quote("f", line, end, quote).is_ok(),
                holds,
                "{line} {end:?} {quote}"
            );
        }
    }

    #[test]
    fn rejected_citation_names_the_reason() {
        let sources = sources();
        let error = |file: &str, line, end, quote: &str| {
            sources
                .quote(file, line, end, quote)
                .expect_err("does not hold")
                .to_string()
        };
        assert_eq!(
            error("src/b.rs", 1, None, "x"),
            "`src/b.rs` is not among the files that were shown"
        );
        assert_eq!(
            error("src/a.rs", 9, None, "}"),
            "`src/a.rs` has 5 lines, so there is no line 9"
        );
        assert_eq!(
            error("src/a.rs", 0, None, "}"),
            "`src/a.rs` has 5 lines, so there is no line 0"
        );
        assert_eq!(
            error("empty", 1, None, "x"),
            "`empty` has 0 lines, so there is no line 1"
        );
        assert_eq!(
            error("src/a.rs", 3, Some(2), "x"),
            "`src/a.rs`: lines 3 to 2 are no range"
        );
        assert_eq!(
            error("src/a.rs", 3, None, " "),
            "`src/a.rs:3` is cited without a quote"
        );
        assert_eq!(
            error("src/a.rs", 3, None, "three();"),
            "`src/a.rs:3` does not say `three();` but ``"
        );
        assert_eq!(
            error("src/a.rs", 3, Some(4), "three();"),
            "`src/a.rs:3` does not say `three();` but `⏎    two();`"
        );
        assert_eq!(
            error("../src/a.rs", 1, None, "fn a() {"),
            "`../src/a.rs` is not among the files that were shown"
        );
    }

    #[test]
    fn line_number_off_by_three_is_corrected() {
        let text: String = (1..=12).map(|n| format!("    step_{n}();\n")).collect();
        let mut sources = SourceTexts::default();
        sources.add("f", text);
        for (line, quote, found) in [
            (5, "step_5();", Some((5, None))),
            (4, "step_5();", Some((5, Some(4)))),
            (8, "step_5();", Some((5, Some(8)))),
            (9, "step_5();", None),
            (1, "step_5();", None),
            (14, "step_12();", Some((12, Some(14)))),
            (16, "step_12();", None),
            (4, "5:     step_5();", Some((5, Some(4)))),
            (6, "step_5();\n    step_6();", Some((5, Some(6)))),
            (6, "step_5;", None),
        ] {
            let cited = sources.quote("f", line, None, quote).ok();
            assert_eq!(
                cited.map(|c| (*c.lines.start(), c.corrected_from)),
                found,
                "{line} {quote}"
            );
        }
        // The nearest match wins.
        sources.add("g", "a();\nsame();\nb();\nc();\nsame();\n");
        assert_eq!(
            sources.quote("g", 4, None, "same();").expect("near").lines,
            5..=5
        );
    }

    proptest! {
        #[test]
        fn shifted_quote_is_corrected_changed_quote_is_rejected(lines in prop::collection::vec("[a-z]{3,9}", 3..20), at in 0usize..20, change in 0usize..9) {
            // Every line differs from its neighbours.
            let lines: Vec<String> = lines.iter().enumerate().map(|(n, line)| format!("  {line} {n};")).collect();
            let mut sources = SourceTexts::default();
            sources.add("f", lines.join("\n"));
            let at = at % lines.len();
            for given in 0..lines.len() + 8 {
                let found = sources.quote("f", given, None, &lines[at]).ok();
                prop_assert_eq!(found.is_some(), given.abs_diff(at + 1) <= MAX_LINE_OFFSET, "{} for {}", given, at + 1);
                let from = (given != at + 1).then_some(given);
                prop_assert!(found.is_none_or(|c| c.lines == (at + 1..=at + 1) && c.corrected_from == from));
            }
            let mut letters: Vec<char> = lines[at].trim().chars().collect();
            let change = change % letters.len();
            prop_assume!(!letters[change].is_whitespace());
            letters[change] = if letters[change] == 'X' { 'Y' } else { 'X' };
            prop_assert!(sources.quote("f", at + 1, None, &letters.iter().collect::<String>()).is_err());
        }
    }
}
