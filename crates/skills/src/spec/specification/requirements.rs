//! Splits requirements, read as Markdown, into numbered items: `R1`, `R2`, ….
//!
//! - A list item is one requirement, with its continuation lines. Bullets, numbers, letters and `R1:` start one.
//! - So are a table row and a line that starts with the author's own id, which it keeps.
//! - Prose is split into sentences, and short lines without a full stop into lines. If that gives too
//!   many items, each paragraph is one.
//! - A code block belongs to the text before it and keeps its lines.
//! - Headings, lines that introduce a list with a colon, and the greeting, thanks and signature of a
//!   letter are not requirements.
//! - Text that cannot be split is one requirement.

mod letters;

use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use regex::Regex;

use super::has_content;
use supervisor_text::words;

/// The requirements of one call; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequirementItems {
    items: Vec<RequirementItem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RequirementItem {
    text: String,
    form: RequirementForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequirementForm {
    /// A list item, set apart by its author.
    Listed,
    Prose,
}

/// The requirements exceed the limits for one specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequirementsTooLong {
    #[error(
        "has {is} requirements; {MAX_ITEMS} is the most for one specification, so give them in parts"
    )]
    Items { is: usize },
    #[error("has {is} bytes; {MAX_BYTES} is the most for one specification, so give it in parts")]
    Bytes { is: usize },
}

const MAX_ITEMS: usize = 60;
const MAX_BYTES: usize = 32 * 1024;
/// Words that exclude something.
const EXCLUDING: &[&str] = &[
    "no", "not", "never", "without", "exclude", "excluded", "later", "nicht", "kein", "keine",
    "ohne", "später", "niet", "geen", "pas", "sans", "sin", "nunca",
];
/// A full stop after one of these does not end a sentence.
const ABBREVIATIONS: &[&str] = &[
    "e.g", "i.e", "etc", "vs", "cf", "approx", "no", "max", "min", "mr", "mrs", "dr", "fig",
    "incl", "z.b", "bzw", "ca",
];

impl RequirementItems {
    /// Splits a text into requirements.
    pub(crate) fn split(text: &str) -> Result<Self, RequirementsTooLong> {
        if text.len() > MAX_BYTES {
            return Err(RequirementsTooLong::Bytes { is: text.len() });
        }
        let blocks = blocks(text);
        let mut items = split_blocks(&blocks, sentences);
        if items.len() > MAX_ITEMS {
            items = split_blocks(&blocks, |paragraph| vec![paragraph.to_owned()]);
        }
        match items.len() {
            0 => Ok(Self {
                items: vec![RequirementItem {
                    text: words::one_line(text),
                    form: RequirementForm::Prose,
                }],
            }),
            is if is > MAX_ITEMS => Err(RequirementsTooLong::Items { is }),
            _ => Ok(Self { items }),
        }
    }

    /// All requirements with their ids, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (String, &str)> {
        self.items
            .iter()
            .enumerate()
            .map(|(n, item)| (format!("R{}", n + 1), item.text.as_str()))
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The index of a requirement by id: `R1`, `r1` or ` R1 `.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let digits = id.trim().strip_prefix(['R', 'r'])?;
        let number = digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| digits.parse::<usize>().ok())??;
        (1..=self.items.len()).contains(&number).then(|| number - 1)
    }

    /// Whether it is a list item.
    pub(super) fn is_listed(&self, n: usize) -> bool {
        self.items
            .get(n)
            .is_some_and(|item| item.form == RequirementForm::Listed)
    }

    /// Whether it asks to leave something out, so that an exclusion answers it.
    pub(super) fn asks_for_exclusion(&self, n: usize) -> bool {
        self.items.get(n).is_some_and(|item| {
            let text = item.text.to_lowercase();
            let mut words = text
                .split_whitespace()
                .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
            text.contains("out of scope") || words.any(|word| EXCLUDING.contains(&word))
        })
    }

    /// `R1`, or `R1 to R7`.
    pub(super) fn range(&self) -> String {
        if self.items.len() == 1 {
            String::from("R1")
        } else {
            format!("R1 to R{}", self.items.len())
        }
    }
}

struct Block {
    form: RequirementForm,
    text: String,
    /// Code lines, including the fences.
    code: String,
}

impl Block {
    fn new(form: RequirementForm, text: &str) -> Self {
        Self {
            form,
            text: text.to_owned(),
            code: String::new(),
        }
    }

    fn append_line(&mut self, text: &str) {
        self.text.push('\n');
        self.text.push_str(text);
    }
}

/// Matches a list marker: a bullet, number, letter or label, with an optional check box.
static MARKER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:[-*+•‣–]|\(?[0-9]{1,3}[.)]|\(?[A-Za-z]\)|(?:R|REQ)-?[0-9]{1,3}[:.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
        .expect("constant pattern is valid")
});

/// Matches the author's own id, such as `REQ-001` or `NFR 2`. It is kept, since other texts refer
/// to it.
static OWN_ID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:REQ|FR|NFR|UR|SR|BR|US|UC|AC|NF|R|F)[-_ ]?[0-9]{1,4}[:.)]?[ \t]+[^ \t]")
        .expect("constant pattern is valid")
});

/// Collects the blocks of a Markdown text with their source text.
struct BlockReader<'a> {
    text: &'a str,
    blocks: Vec<Block>,
    /// The range of the current block.
    open: Option<Range<usize>>,
    /// The nesting depth of lists, and whether an item has just started.
    depth: usize,
    is_new_item: bool,
}

impl BlockReader<'_> {
    fn handle(&mut self, event: &Event<'_>, at: &Range<usize>) {
        match event {
            Event::Start(Tag::Item) => {
                self.close();
                self.depth += 1;
                self.is_new_item = true;
            }
            Event::End(TagEnd::Item) => {
                self.close();
                self.depth -= 1;
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => self.add_code(at),
            // Only `#` headings count: dashes below a text may be meant as a rule.
            Event::Start(Tag::Heading { .. }) if self.text[at.clone()].starts_with('#') => {
                self.close();
            }
            Event::End(TagEnd::Heading(_)) if self.text[at.clone()].starts_with('#') => {
                self.open = None;
            }
            Event::Start(Tag::TableRow) => {
                self.close();
                self.blocks.push(Block::new(
                    RequirementForm::Listed,
                    &cells(&self.text[at.clone()]),
                ));
            }
            Event::End(TagEnd::TableHead | TagEnd::TableRow) => self.open = None,
            Event::End(TagEnd::CodeBlock) if is_fence(&self.text[at.clone()]) => self.open = None,
            Event::Text(_)
            | Event::Code(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::SoftBreak => {
                self.extend(at);
            }
            Event::HardBreak
            | Event::Start(Tag::Emphasis | Tag::Strong | Tag::Link { .. } | Tag::Image { .. }) => {
                self.extend(at);
            }
            Event::End(
                TagEnd::Emphasis
                | TagEnd::Strong
                | TagEnd::Link
                | TagEnd::Image
                | TagEnd::TableCell,
            )
            | Event::Start(Tag::TableCell)
            | Event::TaskListMarker(_) => {}
            _ => self.close(),
        }
    }

    fn extend(&mut self, at: &Range<usize>) {
        let open = self.open.take().unwrap_or_else(|| at.clone());
        self.open = Some(open.start.min(at.start)..open.end.max(at.end));
    }

    fn close(&mut self) {
        let Some(text) = self.open.take().map(|at| self.text[at].trim()) else {
            return;
        };
        if self.depth == 0 {
            self.add_lines(text);
            return;
        }
        match self.blocks.last_mut().filter(|_| !self.is_new_item) {
            Some(item) => item.append_line(text),
            None => self.blocks.push(Block::new(RequirementForm::Listed, text)),
        }
        self.is_new_item = false;
    }

    /// Appends a code block to the block before it, line by line.
    fn add_code(&mut self, at: &Range<usize>) {
        self.close();
        if self.blocks.is_empty() {
            self.blocks.push(Block::new(RequirementForm::Prose, ""));
        }
        let last = self.blocks.last_mut().expect("a block was pushed above");
        for line in self.text[at.clone()].trim_end().lines() {
            last.code.push('\n');
            last.code.push_str(if is_fence(line) {
                line.trim()
            } else {
                line.trim_end()
            });
        }
    }

    /// Adds a paragraph, which may contain list items or table rows that Markdown does not
    /// recognise.
    fn add_lines(&mut self, paragraph: &str) {
        let mut is_open = false;
        let lines = paragraph
            .lines()
            .map(|line| line.trim().trim_start_matches('>').trim_start());
        for line in lines.filter(|line| has_content(line)) {
            match self.blocks.last_mut() {
                _ if MARKER.is_match(line) => {
                    let text = &line[MARKER.find(line).map_or(0, |marker| marker.end())..];
                    self.blocks.push(Block::new(RequirementForm::Listed, text));
                }
                _ if OWN_ID.is_match(line) => {
                    self.blocks.push(Block::new(RequirementForm::Listed, line));
                }
                _ if line.starts_with('|') => self
                    .blocks
                    .push(Block::new(RequirementForm::Listed, &cells(line))),
                Some(last) if is_open => last.append_line(line),
                _ => self.blocks.push(Block::new(RequirementForm::Prose, line)),
            }
            is_open = !line.starts_with('|');
        }
    }
}

fn is_fence(text: &str) -> bool {
    ["```", "~~~"]
        .iter()
        .any(|fence| text.trim_start().starts_with(fence))
}

/// The cells of a row such as `| a | b |`.
fn cells(row: &str) -> String {
    row.split('|')
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

fn blocks(text: &str) -> Vec<Block> {
    let text = letters::strip_letter_frame(text).join("\n");
    let mut reader = BlockReader {
        text: &text,
        blocks: Vec::new(),
        open: None,
        depth: 0,
        is_new_item: false,
    };
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    for (event, at) in Parser::new_ext(&text, options).into_offset_iter() {
        reader.handle(&event, &at);
    }
    reader.close();
    let mut blocks = reader.blocks;
    // A block that ends in a colon before a list item only introduces the list.
    let introduces_list = |block: &Block, next: Option<&Block>| {
        let listed = next.is_some_and(|next| next.form == RequirementForm::Listed);
        listed && block.code.is_empty() && block.text.ends_with([':', '：'])
    };
    let introductions: Vec<bool> = (0..blocks.len())
        .map(|n| introduces_list(&blocks[n], blocks.get(n + 1)))
        .collect();
    let mut introductions = introductions.into_iter();
    blocks.retain(|_| !introductions.next().unwrap_or_default());
    blocks
}

fn split_blocks(blocks: &[Block], prose: impl Fn(&str) -> Vec<String>) -> Vec<RequirementItem> {
    let parts = blocks.iter().flat_map(|block| {
        let line = words::one_line(&block.text);
        let mut texts = match block.form {
            RequirementForm::Listed => vec![line],
            RequirementForm::Prose => {
                split_short_lines(&block.text).unwrap_or_else(|| prose(&line))
            }
        };
        if let Some(last) = texts.last_mut() {
            last.push_str(&block.code);
        }
        texts.into_iter().map(|text| RequirementItem {
            text: text.trim().to_owned(),
            form: block.form,
        })
    });
    parts.filter(|item| has_content(&item.text)).collect()
}

/// Splits a list without bullets: short lines that neither end like a sentence nor continue on the
/// next line.
fn split_short_lines(paragraph: &str) -> Option<Vec<String>> {
    const MAX_LINE_CHARS: usize = 60;
    let lines: Vec<&str> = paragraph.lines().collect();
    let fits = |line: &&str| {
        line.chars().count() <= MAX_LINE_CHARS
            && line.split_whitespace().count() > 1
            && line.ends_with(|c: char| c.is_alphanumeric() || "`)%\"".contains(c))
    };
    (lines.len() > 1 && lines.iter().all(fits))
        .then(|| lines.iter().map(|line| words::one_line(line)).collect())
}

/// Splits after `.`, `!` or `?` if a space and a new beginning follow, and after the full stops of
/// scripts without spaces.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut from = 0;
    let mut in_code = false;
    for (at, c) in paragraph.char_indices() {
        in_code ^= c == '`';
        let after = at + c.len_utf8();
        let ends = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                let mut rest = paragraph[after..].chars();
                let blank = rest.next() == Some(' ');
                let begins = rest.next().is_some_and(|next| !next.is_lowercase());
                let last = paragraph[from..at]
                    .rsplit([' ', '('])
                    .next()
                    .unwrap_or_default();
                let short = c == '.'
                    && (ABBREVIATIONS.contains(&last.to_lowercase().as_str())
                        || (last.chars().count() == 1 && last != "I"));
                blank && begins && !short
            }
            _ => false,
        };
        if ends && !in_code {
            found.push(paragraph[from..after].trim().to_owned());
            from = after;
        }
    }
    found.push(paragraph[from..].trim().to_owned());
    found
}

#[cfg(test)]
mod tests;
