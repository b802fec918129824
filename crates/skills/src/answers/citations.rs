//! Does a citation hold? An answer in words may say anything about a project, but each file, line and quote it names is
//! compared with what the server read. A number that is off by a few lines is corrected; a word that is not there is not.
//! Knows texts and lines. Does not know what is claimed about them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};

use supervisor_text::words;

/// The texts that may be cited, as the server read them.
#[derive(Debug, Clone, Default)]
pub struct SourceTexts {
    files: BTreeMap<PathBuf, SourceText>,
}

/// One text and where its lines begin.
#[derive(Debug, Clone)]
pub struct SourceText {
    text: String,
    /// The first byte of each line.
    starts: Vec<usize>,
}

/// A citation that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// As the project names it.
    pub file: PathBuf,
    /// From 1.
    pub lines: RangeInclusive<usize>,
    /// What stands there.
    pub text: String,
    /// The line that was given, where the words stand a few lines from it.
    pub corrected_from: Option<usize>,
}

/// Why a citation does not hold; each reads after a colon and tells the next model what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCitation {
    #[error("`{0}` is not among the files that were shown")]
    OutOfScope(String),
    #[error("`{file}` has {}, so there is no line {line}", words::count(*.has, "line"))]
    NoSuchLine {
        file: String,
        line: usize,
        has: usize,
    },
    #[error("`{file}`: lines {from} to {to} are no range")]
    Backwards {
        file: String,
        from: usize,
        to: usize,
    },
    #[error("`{file}:{line}` is cited without a quote")]
    NoQuote { file: String, line: usize },
    #[error("`{file}:{line}` does not say `{said}` but `{is}`")]
    WrongQuote {
        file: String,
        line: usize,
        said: String,
        is: String,
    },
}

/// Bytes of a quote that are repeated in a message.
const SHOWN: usize = 120;
/// Letters and digits of a piece that tell its line from others.
const PIECE: usize = 6;
/// How many lines a number may be off.
pub(super) const NEAR: usize = 3;
/// Bytes that three dots stand for at least.
const ABRIDGED: usize = 4;

impl Citation {
    /// The same, as the correction of another number.
    pub(super) fn moved(self, from: usize) -> Self {
        Self {
            corrected_from: Some(from),
            ..self
        }
    }
}

impl SourceTexts {
    /// `path` is relative to the project.
    pub fn add(&mut self, path: impl Into<PathBuf>, text: impl Into<String>) {
        self.files.insert(path.into(), SourceText::new(text.into()));
    }

    pub fn files(&self) -> impl Iterator<Item = (&Path, &SourceText)> {
        self.files
            .iter()
            .map(|(path, source)| (path.as_path(), source))
    }

    pub fn get(&self, path: &Path) -> Option<&SourceText> {
        self.files.get(path)
    }

    /// The file a model means, whether it wrote `src/a.rs`, `./src/a.rs` or, as agents do, the path from the root of the disk.
    pub fn find(&self, said: &str) -> Result<(&Path, &SourceText), BadCitation> {
        let plain: PathBuf = Path::new(said.trim().trim_matches('`'))
            .components()
            .filter(|c| *c != Component::CurDir)
            .collect();
        let ends = |path: &&PathBuf| plain.is_absolute() && plain.ends_with(path);
        let path = if self.files.contains_key(&plain) {
            Some(&plain)
        } else {
            // The longest is meant: `/p/src/a.rs` may end with `src/a.rs` and with `a.rs`.
            self.files
                .keys()
                .filter(ends)
                .max_by_key(|path| path.components().count())
        };
        let found = path.and_then(|path| self.files.get_key_value(path));
        found
            .map(|(path, source)| (path.as_path(), source))
            .ok_or_else(|| BadCitation::OutOfScope(short(said)))
    }

    /// Is there such a line?
    pub fn line(&self, file: &str, line: usize) -> Result<Citation, BadCitation> {
        let (path, source) = self.find(file)?;
        let text = source
            .line(line)
            .ok_or_else(|| source.no_such(file, line))?;
        Ok(Citation {
            file: path.to_owned(),
            lines: line..=line,
            text: text.to_owned(),
            corrected_from: None,
        })
    }

    /// Does the quote stand there, white space aside? Without an end, or with one that does not fit, the quote says how
    /// many lines it takes. Part of a line is enough where it can be told from the lines next to it. Where the words stand
    /// a few lines from the number, the number is corrected.
    pub fn quote(
        &self,
        file: &str,
        line: usize,
        end: Option<usize>,
        quote: &str,
    ) -> Result<Citation, BadCitation> {
        self.quote_here(file, line, end, quote)
            .or_else(|bad| self.quote_nearby(file, line, end, quote).ok_or(bad))
    }

    /// The same with no line off.
    pub(super) fn quote_here(
        &self,
        file: &str,
        line: usize,
        end: Option<usize>,
        quote: &str,
    ) -> Result<Citation, BadCitation> {
        let (path, source) = self.find(file)?;
        let quote = quote.trim_end_matches(['\n', '\r']);
        if squeezed(quote).is_empty() {
            return Err(BadCitation::NoQuote {
                file: short(file),
                line,
            });
        }
        let last = end
            .unwrap_or_else(|| line.saturating_add(quote.trim().lines().count().saturating_sub(1)));
        if last < line {
            return Err(BadCitation::Backwards {
                file: short(file),
                from: line,
                to: last,
            });
        }
        for wanted in [line, last] {
            source
                .line(wanted)
                .ok_or_else(|| source.no_such(file, wanted))?;
        }
        let forms = forms(quote, line);
        let stands = forms
            .iter()
            .find_map(|said| source.stands(said, line, last));
        let Some(to) = stands else {
            let (said, is) = (
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
                said,
                is,
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

    /// The nearest place where the words stand, if it is near enough to be meant.
    fn quote_nearby(
        &self,
        file: &str,
        line: usize,
        end: Option<usize>,
        quote: &str,
    ) -> Option<Citation> {
        nearby(line).find_map(|there| {
            let end = end.and_then(|end| (end + there).checked_sub(line));
            // The numbers that we show are part of the quote as it was copied, whatever line it is said to be.
            let found = self
                .quote_here(file, there, end, quote)
                .or_else(|_| self.quote_here(file, there, None, quote));
            found.ok().map(|found| found.moved(line))
        })
    }
}

/// The lines around one, the nearest first.
pub(super) fn nearby(line: usize) -> impl Iterator<Item = usize> {
    (1..=NEAR)
        .flat_map(move |by| [line.checked_sub(by), line.checked_add(by)])
        .flatten()
        .filter(|there| *there > 0)
}

impl SourceText {
    pub fn new(text: String) -> Self {
        let mut starts: Vec<usize> = vec![0];
        starts.extend(
            text.bytes()
                .enumerate()
                .filter(|(_, byte)| *byte == b'\n')
                .map(|(at, _)| at + 1),
        );
        // What follows the last newline is a line only if something is there.
        if starts.last() == Some(&text.len()) {
            starts.pop();
        }
        Self { text, starts }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many lines.
    pub fn lines(&self) -> usize {
        self.starts.len()
    }

    /// A line by its number, from 1, without its end.
    pub fn line(&self, number: usize) -> Option<&str> {
        let start = *self.starts.get(number.checked_sub(1)?)?;
        let end = self.starts.get(number).copied().unwrap_or(self.text.len());
        Some(self.text[start..end].trim_end_matches(['\n', '\r']))
    }

    /// Lines with their numbers, as models are shown them: `12: let x = 1;`
    pub fn numbered(&self, range: RangeInclusive<usize>) -> String {
        let mut out = String::new();
        for number in range {
            let Some(line) = self.line(number) else { break };
            let _ = writeln!(out, "{number}: {line}");
        }
        out
    }

    /// The last line of what is quoted from `line` on, if it stands there.
    pub(super) fn stands(&self, quote: &str, line: usize, last: usize) -> Option<usize> {
        let said = squeezed(quote);
        let mut is = String::new();
        for to in line..=self.lines() {
            is.extend(self.line(to)?.chars().filter(|c| !c.is_whitespace()));
            if is.len() >= said.len() {
                // An empty line is cited only by who quotes it: else the number before would do as well.
                let begins = |text: &str| {
                    text.lines()
                        .next()
                        .is_some_and(|first| !first.trim().is_empty())
                };
                if is == said && (begins(self.line(line)?) || !begins(quote)) {
                    return Some(to);
                }
                break;
            }
        }
        let pieces: Vec<String> = quote
            .split(['…'])
            .flat_map(|part| part.split("..."))
            .map(squeezed)
            .collect();
        let pieces: Vec<&str> = pieces
            .iter()
            .map(String::as_str)
            .filter(|piece| !piece.is_empty())
            .collect();
        let says = pieces
            .iter()
            .any(|piece| piece.chars().filter(|c| c.is_alphanumeric()).count() >= PIECE);
        let here = self.begins(&pieces, line, last);
        let near = |by: isize| {
            let moved = |n: usize| n.checked_add_signed(by);
            matches!((moved(line), moved(last)), (Some(line), Some(last)) if self.begins(&pieces, line, last))
        };
        (says && here && !near(-1) && !near(1)).then_some(last)
    }

    /// Do these pieces stand in the lines one after the other, the first of them beginning in the first line?
    fn begins(&self, pieces: &[&str], line: usize, last: usize) -> bool {
        let Some(first) = self.line(line).map(squeezed) else {
            return false;
        };
        let text = squeezed(&self.joined(line..=last.min(self.lines())));
        let mut at = 0;
        pieces
            .iter()
            .enumerate()
            .all(|(n, piece)| match text[at..].find(piece) {
                Some(found)
                    if if n == 0 {
                        found < first.len()
                    } else {
                        found >= ABRIDGED
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

    fn no_such(&self, file: &str, line: usize) -> BadCitation {
        BadCitation::NoSuchLine {
            file: short(file),
            line,
            has: self.lines(),
        }
    }
}

/// White space aside.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// A quote as it is, and without what models put around it: ticks, the numbers we show, the sign before them.
pub(super) fn forms(quote: &str, from: usize) -> Vec<Cow<'_, str>> {
    let bare = quote.trim().trim_matches('`');
    vec![
        Cow::Borrowed(quote),
        without_numbers(quote, from),
        Cow::Borrowed(bare),
        without_numbers(bare, from),
    ]
}

/// Small models copy the numbers we show; they are ours and no part of the text.
fn without_numbers(quote: &str, from: usize) -> Cow<'_, str> {
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
    words::cut_end(&words::plain(text).replace('\n', "⏎"), SHOWN).into_owned()
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
    fn a_quote_holds_where_it_stands_white_space_aside() {
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
    fn part_of_a_line_holds_where_it_can_be_told_from_its_neighbours() {
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
            (2, None, "sum(prices) / len(prices)", true), // in the line before it
            (1, None, "len(prices)", false),              // stands in the next line too
            (1, None, "total", false),                    // too short to say which line is meant
            (1, None, "sum(prices) ... len(total)", false),
            (1, None, "... // mean ... let total", false),
            (1, None, "sum(pr…ces) / len(prices)", false), // a letter changed is no abridgement
            (1, Some(3), "let other = len(prices);", true), // begins in the next line
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
    fn what_does_not_stand_there_is_named() {
        let sources = sources();
        let said = |file: &str, line, end, quote: &str| {
            sources
                .quote(file, line, end, quote)
                .expect_err("does not hold")
                .to_string()
        };
        assert_eq!(
            said("src/b.rs", 1, None, "x"),
            "`src/b.rs` is not among the files that were shown"
        );
        assert_eq!(
            said("src/a.rs", 9, None, "}"),
            "`src/a.rs` has 5 lines, so there is no line 9"
        );
        assert_eq!(
            said("src/a.rs", 0, None, "}"),
            "`src/a.rs` has 5 lines, so there is no line 0"
        );
        assert_eq!(
            said("empty", 1, None, "x"),
            "`empty` has 0 lines, so there is no line 1"
        );
        assert_eq!(
            said("src/a.rs", 3, Some(2), "x"),
            "`src/a.rs`: lines 3 to 2 are no range"
        );
        assert_eq!(
            said("src/a.rs", 3, None, " "),
            "`src/a.rs:3` is cited without a quote"
        );
        assert_eq!(
            said("src/a.rs", 3, None, "three();"),
            "`src/a.rs:3` does not say `three();` but ``"
        );
        assert_eq!(
            said("src/a.rs", 3, Some(4), "three();"),
            "`src/a.rs:3` does not say `three();` but `⏎    two();`"
        );
        assert_eq!(
            said("../src/a.rs", 1, None, "fn a() {"),
            "`../src/a.rs` is not among the files that were shown"
        );
    }

    #[test]
    fn a_number_that_is_off_by_at_most_three_lines_is_corrected_and_said() {
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
        // The nearest of several is meant.
        sources.add("g", "a();\nsame();\nb();\nc();\nsame();\n");
        assert_eq!(
            sources.quote("g", 4, None, "same();").expect("near").lines,
            5..=5
        );
    }

    proptest! {
        #[test]
        fn a_quote_shifted_is_corrected_and_a_quote_changed_never_holds(lines in prop::collection::vec("[a-z]{3,9}", 3..20), at in 0usize..20, change in 0usize..9) {
            // Every line is unlike its neighbours.
            let lines: Vec<String> = lines.iter().enumerate().map(|(n, line)| format!("  {line} {n};")).collect();
            let mut sources = SourceTexts::default();
            sources.add("f", lines.join("\n"));
            let at = at % lines.len();
            for said in 0..lines.len() + 8 {
                let found = sources.quote("f", said, None, &lines[at]).ok();
                prop_assert_eq!(found.is_some(), said.abs_diff(at + 1) <= NEAR, "{} for {}", said, at + 1);
                let from = (said != at + 1).then_some(said);
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
