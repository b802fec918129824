//! What was asked for, read as Markdown and taken apart into items that can be counted: `R1`, `R2`, ….
//!
//! - A list item is one requirement, with the lines that belong to it. Bullets, numbers, letters and `R1:` begin one.
//! - So are a line that begins with an id of the author's own, which it keeps, and a row of a table.
//! - Prose is one requirement per sentence, short lines without a full stop are one each; if that gives too many, one per
//!   paragraph.
//! - A block of code belongs to what stands before it, and keeps its lines.
//! - Headings, and lines ending in a colon with a list below, announce requirements and are none; neither are a letter's
//!   greeting, its thanks and its signature.
//! - What cannot be taken apart is one requirement, whole.

mod letters;

use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use regex::Regex;

use super::says;
use supervisor_text::words::lexicon::{Prose, lexicon};

/// The requirements of one call, never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequirementItems {
    items: Vec<RequirementItem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RequirementItem {
    text: String,
    form: RequirementForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequirementForm {
    /// An item of a list: its author set it apart.
    Listed,
    Prose,
}

/// More than one specification can answer for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequirementsTooLong {
    #[error(
        "has {is} requirements; {MOST} is the most for one specification, so give them in parts"
    )]
    Items { is: usize },
    #[error("has {is} bytes; {MOST_BYTES} is the most for one specification, so give it in parts")]
    Bytes { is: usize },
}

const MOST: usize = 60;
const MOST_BYTES: usize = 32 * 1024;

impl RequirementItems {
    /// Takes a text apart. It must say something.
    pub fn split(text: &str) -> Result<Self, RequirementsTooLong> {
        if text.len() > MOST_BYTES {
            return Err(RequirementsTooLong::Bytes { is: text.len() });
        }
        let blocks = blocks(text);
        let mut items = taken_apart(&blocks, sentences);
        if items.len() > MOST {
            items = taken_apart(&blocks, |paragraph| vec![paragraph.to_owned()]);
        }
        match items.len() {
            0 => Ok(Self {
                items: vec![RequirementItem {
                    text: one_line(text),
                    form: RequirementForm::Prose,
                }],
            }),
            is if is > MOST => Err(RequirementsTooLong::Items { is }),
            _ => Ok(Self { items }),
        }
    }

    /// Each with its id, in order.
    pub fn iter(&self) -> impl Iterator<Item = (String, &str)> {
        self.items
            .iter()
            .enumerate()
            .map(|(n, item)| (format!("R{}", n + 1), item.text.as_str()))
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The place of the one that is meant, whether it is written `R1`, `r1` or ` R1 `.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let digits = id.trim().strip_prefix(['R', 'r'])?;
        let number = digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| digits.parse::<usize>().ok())??;
        (1..=self.items.len()).contains(&number).then(|| number - 1)
    }

    /// Did its author set it apart as an item of a list?
    pub(super) fn is_listed(&self, n: usize) -> bool {
        self.items
            .get(n)
            .is_some_and(|item| item.form == RequirementForm::Listed)
    }

    /// What makes it a demand rather than a story: a word of demanding, a number, or code.
    pub(super) fn demand(&self, n: usize) -> Option<String> {
        let text = &self.items.get(n)?.text;
        let said = Prose::whole(text);
        let number = || {
            said.words()
                .find(|word| word.form().bytes().any(|b| b.is_ascii_digit()))
        };
        let code = text.contains('`').then(|| String::from("code"));
        code.or_else(|| lexicon().demand.find(&said))
            .or_else(|| number().map(|word| word.said.clone()))
    }

    /// Does it ask for something to be left out? Then an exclusion is its answer.
    pub(super) fn declines(&self, n: usize) -> bool {
        self.items
            .get(n)
            .is_some_and(|item| lexicon().decline.find(&Prose::whole(&item.text)).is_some())
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
    /// With its fences, line by line.
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

    fn goes_on(&mut self, text: &str) {
        self.text.push('\n');
        self.text.push_str(text);
    }
}

/// A bullet, a number, a letter or a label, with a check box perhaps.
static MARKER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:[-*+•‣–]|\(?[0-9]{1,3}[.)]|\(?[A-Za-z]\)|(?:R|REQ)-?[0-9]{1,3}[:.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
        .expect("the pattern is constant and tested")
});

/// An id of the author's own, such as `REQ-001` or `NFR 2`: it stays, since others refer to it.
static OWN_ID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:REQ|FR|NFR|UR|SR|BR|US|UC|AC|NF|R|F)[-_ ]?[0-9]{1,4}[:.)]?[ \t]+[^ \t]")
        .expect("the pattern is constant and tested")
});

/// The blocks of a Markdown text, each as it is written there.
struct BlockReader<'a> {
    text: &'a str,
    blocks: Vec<Block>,
    /// Where the block at hand stands.
    open: Option<Range<usize>>,
    /// How many lists the place is in, and whether an item has just begun.
    depth: usize,
    is_new_item: bool,
}

impl BlockReader<'_> {
    fn take(&mut self, event: &Event<'_>, at: &Range<usize>) {
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
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => self.take_code(at),
            // A line of dashes below a text may be meant as one; a heading begins with its sign.
            Event::Start(Tag::Heading { .. }) if self.text[at.clone()].starts_with('#') => {
                self.close()
            }
            Event::End(TagEnd::Heading(_)) if self.text[at.clone()].starts_with('#') => {
                self.open = None
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
            self.take_lines(text);
            return;
        }
        match self.blocks.last_mut().filter(|_| !self.is_new_item) {
            Some(item) => item.goes_on(text),
            None => self.blocks.push(Block::new(RequirementForm::Listed, text)),
        }
        self.is_new_item = false;
    }

    /// A block of code belongs to what stands before it, and keeps its lines.
    fn take_code(&mut self, at: &Range<usize>) {
        self.close();
        if self.blocks.is_empty() {
            self.blocks.push(Block::new(RequirementForm::Prose, ""));
        }
        let last = self
            .blocks
            .last_mut()
            .expect("one was pushed if there was none");
        for line in self.text[at.clone()].trim_end().lines() {
            last.code.push('\n');
            last.code.push_str(if is_fence(line) {
                line.trim()
            } else {
                line.trim_end()
            });
        }
    }

    /// A paragraph, which may be a list or a table that Markdown does not know as one.
    fn take_lines(&mut self, paragraph: &str) {
        let mut is_open = false;
        let lines = paragraph
            .lines()
            .map(|line| line.trim().trim_start_matches('>').trim_start());
        for line in lines.filter(|line| says(line)) {
            match self.blocks.last_mut() {
                _ if MARKER.is_match(line) => {
                    let text = &line[MARKER.find(line).map_or(0, |marker| marker.end())..];
                    self.blocks.push(Block::new(RequirementForm::Listed, text));
                }
                _ if OWN_ID.is_match(line) => {
                    self.blocks.push(Block::new(RequirementForm::Listed, line))
                }
                _ if line.starts_with('|') => self
                    .blocks
                    .push(Block::new(RequirementForm::Listed, &cells(line))),
                Some(last) if is_open => last.goes_on(line),
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

/// `| a | b |`
fn cells(row: &str) -> String {
    row.split('|')
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

fn blocks(text: &str) -> Vec<Block> {
    let text = letters::without_frame(text).join("\n");
    let mut reader = BlockReader {
        text: &text,
        blocks: Vec::new(),
        open: None,
        depth: 0,
        is_new_item: false,
    };
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    for (event, at) in Parser::new_ext(&text, options).into_offset_iter() {
        reader.take(&event, &at);
    }
    reader.close();
    let mut blocks = reader.blocks;
    // What ends in a colon and has an item below it only announces it.
    let announces = |block: &Block, next: Option<&Block>| {
        let listed = next.is_some_and(|next| next.form == RequirementForm::Listed);
        listed && block.code.is_empty() && block.text.ends_with([':', '：'])
    };
    let announced: Vec<bool> = (0..blocks.len())
        .map(|n| announces(&blocks[n], blocks.get(n + 1)))
        .collect();
    let mut announced = announced.into_iter();
    blocks.retain(|_| !announced.next().unwrap_or_default());
    blocks
}

fn taken_apart(blocks: &[Block], prose: impl Fn(&str) -> Vec<String>) -> Vec<RequirementItem> {
    let parts = blocks.iter().flat_map(|block| {
        let line = one_line(&block.text);
        let mut texts = match block.form {
            RequirementForm::Listed => vec![line],
            RequirementForm::Prose => one_a_line(&block.text).unwrap_or_else(|| prose(&line)),
        };
        if let Some(last) = texts.last_mut() {
            last.push_str(&block.code);
        }
        texts.into_iter().map(|text| RequirementItem {
            text: text.trim().to_owned(),
            form: block.form,
        })
    });
    parts.filter(|item| says(&item.text)).collect()
}

/// A list without bullets: short lines, none of which ends as a sentence does or goes on in the next.
fn one_a_line(paragraph: &str) -> Option<Vec<String>> {
    const LONGEST: usize = 60;
    let lines: Vec<&str> = paragraph.lines().collect();
    let fits = |line: &&str| {
        line.chars().count() <= LONGEST
            && line.split_whitespace().count() > 1
            && line.ends_with(|c: char| c.is_alphanumeric() || "`)%\"".contains(c))
    };
    (lines.len() > 1 && lines.iter().all(fits))
        .then(|| lines.iter().map(|line| one_line(line)).collect())
}

/// Cut after `.`, `!` or `?` where a blank and a new beginning follow; scripts without blanks have marks of their own.
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
                    && (lexicon().abbreviation.has_form(last)
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

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
