//! The files that explanations point at, as the server read them, and whether what is said to stand there does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::citations::{BadCitation, Cited, Source, Sources};
use super::alike::Words;
use super::draft::Pointer;
use crate::words;

/// Bytes of all files that one answer may cite.
const MOST_BYTES: usize = 16 << 20;
/// A shorter quote could stand anywhere.
const SHORTEST_QUOTE: usize = 6;

/// Files by the names that a model gave them.
#[derive(Debug, Default)]
pub struct Shelf {
    sources: Sources,
    named: BTreeMap<String, Result<PathBuf, String>>,
}

impl Shelf {
    /// `read` gives a file's path in the project and its text, or says why it cannot be cited.
    pub fn of<'a>(
        files: impl Iterator<Item = &'a str>,
        read: impl Fn(&str) -> Result<(PathBuf, String), String>,
    ) -> Self {
        let (mut shelf, mut bytes) = (Self::default(), 0);
        for said in files {
            if shelf.named.contains_key(said) {
                continue;
            }
            let found = match read(said) {
                Ok((_, text)) if bytes + text.len() > MOST_BYTES => {
                    Err(String::from("more files are cited than the server reads for one answer; cite fewer"))
                }
                Ok((path, text)) => {
                    bytes += text.len();
                    shelf.sources.add(path.clone(), text);
                    Ok(path)
                }
                Err(why) => Err(why),
            };
            shelf.named.insert(said.to_owned(), found);
        }
        shelf
    }

    /// The file that is meant.
    pub(super) fn find(&self, said: &str) -> Result<(&Path, &Source), String> {
        let path = match self.named.get(said) {
            Some(Ok(path)) => path,
            Some(Err(why)) => return Err(why.clone()),
            None => return Err(String::from("no file is named")),
        };
        let source = self.sources.get(path).expect("added together with its name");
        Ok((path, source))
    }

    /// A file by the name that the project gives it.
    pub(super) fn text(&self, path: &Path) -> Option<&str> {
        self.sources.get(path).map(Source::text)
    }

    /// All words of the files and of their names.
    pub(super) fn words(&self) -> Words {
        let names = self.sources.files().map(|(path, _)| Words::of(&path.to_string_lossy()));
        let texts = self.sources.files().map(|(_, source)| Words::of(source.text()));
        names.chain(texts).fold(Words::default(), |all, more| all.with(&more))
    }

    /// Does the evidence stand there?
    pub(super) fn cite(&self, pointer: &Pointer) -> Result<Cited, String> {
        let (path, source) = self.find(&pointer.file)?;
        let name = path.to_string_lossy();
        let cited = self.sources.line(&name, pointer.line).map_err(|e| e.to_string())?;
        let quote = without_number(&pointer.quote, pointer.line);
        if quote.is_empty() {
            return Ok(cited);
        }
        // Part of a line is enough, if it is long enough to be told from others.
        let part = squeezed(quote);
        if part.len() >= SHORTEST_QUOTE && !quote.contains('\n') && squeezed(&cited.text).contains(&part) {
            return Ok(cited);
        }
        self.sources.quote(&name, pointer.line, None, quote).map_err(|e| match e {
            BadCitation::WrongQuote { .. } => match elsewhere(source, &part) {
                Some(line) => format!("{e}; those words stand in line {line}"),
                None => e.to_string(),
            },
            other => other.to_string(),
        })
    }

    /// A few lines around each citation, for whoever judges it.
    pub fn around<'a>(&self, cited: impl Iterator<Item = &'a Cited>, context: usize) -> String {
        let mut out = String::new();
        let mut shown: Vec<(PathBuf, usize)> = Vec::new();
        for one in cited {
            let line = *one.lines.start();
            if shown.iter().any(|(file, at)| *file == one.file && at.abs_diff(line) <= context) {
                continue;
            }
            let Some(source) = self.sources.get(&one.file) else { continue };
            shown.push((one.file.clone(), line));
            let last = one.lines.end().saturating_add(context);
            let text = source.numbered(line.saturating_sub(context).max(1)..=last);
            out += &format!("{}\n{}\n", words::plain(&one.file.to_string_lossy()), words::cut_middle(&text, 2_000));
        }
        out
    }
}

/// The numbers we show are ours and no part of the text: `12| let x = 1;`
fn without_number(quote: &str, line: usize) -> &str {
    let rest = quote.trim_start().strip_prefix(&line.to_string()).map(str::trim_start);
    rest.and_then(|rest| rest.strip_prefix(['|', ':'])).filter(|_| !quote.contains('\n')).unwrap_or(quote).trim()
}

fn elsewhere(source: &Source, part: &str) -> Option<usize> {
    let fits = |n: &usize| source.line(*n).is_some_and(|line| squeezed(line).contains(part));
    (part.len() >= SHORTEST_QUOTE).then(|| (1..=source.lines()).find(fits)).flatten()
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf() -> Shelf {
        Shelf::of(["./src/a.rs", "gone.rs"].into_iter(), |said| match said {
            "./src/a.rs" => Ok((PathBuf::from("src/a.rs"), String::from("fn a() {\n    let x = list[7];\n}\n"))),
            other => Err(format!("there is no file `{other}` in the project")),
        })
    }

    fn cite(file: &str, line: usize, quote: &str) -> Result<Cited, String> {
        shelf().cite(&Pointer { file: file.into(), line, quote: quote.into() })
    }

    #[test]
    fn an_answer_that_cites_everything_is_read_only_so_far() {
        let names: Vec<String> = (0..40).map(|n| format!("f{n}")).collect();
        let shelf = Shelf::of(names.iter().map(String::as_str), |said| Ok((said.into(), "x".repeat(1 << 20))));
        assert_eq!(names.iter().filter(|name| shelf.find(name).is_ok()).count(), 16);
        assert!(shelf.find("f39").is_err_and(|why| why.contains("cite fewer")));
    }

    #[test]
    fn evidence_stands_where_it_is_said_to() {
        for (line, quote) in
            [(2, ""), (2, "let x = list[7];"), (2, "x = list[7]"), (2, "2| let x = list[7];"), (3, "}")]
        {
            assert!(cite("./src/a.rs", line, quote).is_ok(), "{line} {quote}");
        }
        for (file, line, quote, why) in [
            ("./src/a.rs", 4, "", "has 3 lines, so there is no line 4"),
            ("./src/a.rs", 0, "", "there is no line 0"),
            ("./src/a.rs", 2, "let x = list[8];", "does not say `let x = list[8];`"),
            ("./src/a.rs", 1, "let x = list[7];", "those words stand in line 2"),
            ("./src/a.rs", 2, "x", "does not say `x`"),
            ("gone.rs", 1, "", "there is no file `gone.rs`"),
            ("other.rs", 1, "", "no file is named"),
        ] {
            let said = cite(file, line, quote).expect_err("does not hold");
            assert!(said.contains(why), "{said}");
        }
    }
}
