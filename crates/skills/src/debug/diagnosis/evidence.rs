//! The files that explanations cite, as the server read them, and the check of the citations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::draft::EvidencePointer;
use crate::common::citations::{Citation, SourceText, SourceTexts, nearby, without_whitespace};
use supervisor_text::words;

/// Max bytes of all files cited by one answer.
const MAX_BYTES: usize = 16 << 20;
/// A shorter quote is not distinctive.
const MIN_QUOTE_LEN: usize = 6;

/// The cited files, by the names a model gave them.
#[derive(Debug, Default)]
pub(crate) struct EvidenceSources {
    sources: SourceTexts,
    by_name: BTreeMap<String, Result<PathBuf, String>>,
}

impl EvidenceSources {
    /// Reads the files. `read` returns a file's path in the project and its text, or why it cannot
    /// be cited.
    pub(crate) fn of<'a>(
        files: impl Iterator<Item = &'a str>,
        read: impl Fn(&str) -> Result<(PathBuf, String), String>,
    ) -> Self {
        let (mut evidence, mut bytes) = (Self::default(), 0);
        for name in files {
            if evidence.by_name.contains_key(name) {
                continue;
            }
            let found = match read(name) {
                Ok((_, text)) if bytes + text.len() > MAX_BYTES => Err(String::from(
                    "more files are cited than the server reads for one answer; cite fewer",
                )),
                Ok((path, text)) => {
                    bytes += text.len();
                    evidence.sources.add(path.clone(), text);
                    Ok(path)
                }
                Err(why) => Err(why),
            };
            evidence.by_name.insert(name.to_owned(), found);
        }
        evidence
    }

    /// The file with this name.
    pub(super) fn find(&self, name: &str) -> Result<(&Path, &SourceText), String> {
        let path = match self.by_name.get(name) {
            Some(Ok(path)) => path,
            Some(Err(why)) => return Err(why.clone()),
            None => return Err(String::from("no file is named")),
        };
        let source = self
            .sources
            .get(path)
            .expect("added together with its name");
        Ok((path, source))
    }

    /// The text of a file by its project path.
    pub(super) fn text(&self, path: &Path) -> Option<&str> {
        self.sources.get(path).map(SourceText::text)
    }

    /// Verifies a citation. The line may be off by a few lines.
    pub(super) fn cite(&self, pointer: &EvidencePointer) -> Result<Citation, String> {
        let (path, source) = self.find(&pointer.file)?;
        let name = path.to_string_lossy();
        let quote = strip_line_number(&pointer.quote, pointer.line);
        if quote.is_empty() {
            return self
                .sources
                .line(&name, pointer.line)
                .map_err(|e| e.to_string());
        }
        // Part of a line is enough if it is long enough to be distinctive.
        let part = without_whitespace(quote);
        let holds_part = |line: usize| {
            let is_long = part.len() >= MIN_QUOTE_LEN && !quote.contains('\n');
            let found = self.sources.line(&name, line).ok().filter(|_| is_long);
            found.filter(|cited| without_whitespace(&cited.text).contains(&part))
        };
        let exact = || self.sources.quote(&name, pointer.line, None, quote);
        let near = || {
            nearby(pointer.line)
                .find_map(holds_part)
                .map(|found| found.corrected(pointer.line))
        };
        holds_part(pointer.line)
            .map_or_else(exact, Ok)
            .or_else(|e| near().ok_or(e))
            .map_err(|e| match find_line(source, &part) {
                Some(line) => format!("{e}; those words stand in line {line}"),
                None => e.to_string(),
            })
    }

    /// The cited lines with context, for the verifier.
    pub(crate) fn excerpts<'a>(
        &self,
        cited: impl Iterator<Item = &'a Citation>,
        context: usize,
    ) -> String {
        let mut out = String::new();
        let mut shown: Vec<(PathBuf, usize)> = Vec::new();
        for one in cited {
            let line = *one.lines.start();
            if shown
                .iter()
                .any(|(file, at)| *file == one.file && at.abs_diff(line) <= context)
            {
                continue;
            }
            let Some(source) = self.sources.get(&one.file) else {
                continue;
            };
            shown.push((one.file.clone(), line));
            let last = one.lines.end().saturating_add(context);
            let text = source.numbered(line.saturating_sub(context).max(1)..=last);
            out += &format!(
                "{}\n{}\n",
                words::plain(&one.file.to_string_lossy()),
                words::cut_middle(&text, 2_000)
            );
        }
        out
    }
}

/// Removes a copied line number: `12| let x = 1;`
fn strip_line_number(quote: &str, line: usize) -> &str {
    let rest = quote
        .trim_start()
        .strip_prefix(&line.to_string())
        .map(str::trim_start);
    rest.and_then(|rest| rest.strip_prefix(['|', ':']))
        .filter(|_| !quote.contains('\n'))
        .unwrap_or(quote)
        .trim()
}

fn find_line(source: &SourceText, part: &str) -> Option<usize> {
    let fits = |n: &usize| {
        source
            .line(*n)
            .is_some_and(|line| without_whitespace(line).contains(part))
    };
    (part.len() >= MIN_QUOTE_LEN)
        .then(|| (1..=source.lines()).find(fits))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> EvidenceSources {
        EvidenceSources::of(["./src/a.rs", "gone.rs"].into_iter(), |name| match name {
            "./src/a.rs" => Ok((
                PathBuf::from("src/a.rs"),
                String::from("fn a() {\n    let x = list[7];\n}\n"),
            )),
            other => Err(format!("there is no file `{other}` in the project")),
        })
    }

    fn cite(file: &str, line: usize, quote: &str) -> Result<Citation, String> {
        sources().cite(&EvidencePointer {
            file: file.into(),
            line,
            quote: quote.into(),
        })
    }

    #[test]
    fn evidence_is_read_up_to_a_limit() {
        let names: Vec<String> = (0..40).map(|n| format!("f{n}")).collect();
        let sources = EvidenceSources::of(names.iter().map(String::as_str), |name| {
            Ok((name.into(), "x".repeat(1 << 20)))
        });
        assert_eq!(
            names
                .iter()
                .filter(|name| sources.find(name).is_ok())
                .count(),
            16
        );
        assert!(
            sources
                .find("f39")
                .is_err_and(|why| why.contains("cite fewer"))
        );
    }

    #[test]
    fn citations_are_verified() {
        for (line, quote) in [
            (2, ""),
            (2, "let x = list[7];"),
            (2, "x = list[7]"),
            (2, "2| let x = list[7];"),
            (3, "}"),
        ] {
            assert!(cite("./src/a.rs", line, quote).is_ok(), "{line} {quote}");
        }
        for (line, quote) in [
            (1, "let x = list[7];"),
            (5, "x = list[7]"),
            (3, "fn a() {\n    let x = list[7];"),
        ] {
            let cited = cite("./src/a.rs", line, quote).expect("within three lines");
            assert_eq!(cited.corrected_from, Some(line), "{quote}");
        }
        for (file, line, quote, why) in [
            ("./src/a.rs", 4, "", "has 3 lines, so there is no line 4"),
            ("./src/a.rs", 0, "", "there is no line 0"),
            (
                "./src/a.rs",
                2,
                "let x = list[8];",
                "does not say `let x = list[8];`",
            ),
            (
                "./src/a.rs",
                7,
                "let x = list[7];",
                "those words stand in line 2",
            ),
            ("./src/a.rs", 2, "x", "does not say `x`"),
            (
                "./src/a.rs",
                1,
                "let x = list[6];",
                "does not say `let x = list[6];`",
            ),
            ("gone.rs", 1, "", "there is no file `gone.rs`"),
            ("other.rs", 1, "", "no file is named"),
        ] {
            let error = cite(file, line, quote).expect_err("does not hold");
            assert!(error.contains(why), "{error}");
        }
    }
}
