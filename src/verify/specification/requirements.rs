//! What was asked for, taken apart into items that can be counted: `R1`, `R2`, ….
//!
//! - A list item is one requirement, with the lines that belong to it. Bullets, numbers, letters and `R1:` begin one.
//! - So are a line that begins with somebody's own id, which it keeps, and a row of a table.
//! - Prose is one requirement per sentence, short lines without a full stop are one each; if that gives too many, one per
//!   paragraph.
//! - A block of code belongs to what stands before it, and keeps its lines.
//! - Headings, and lines ending in a colon with a list below, announce requirements and are none; neither are a letter's
//!   greeting, its thanks and its signature.
//! - What cannot be taken apart is one requirement, whole.

mod demands;
mod letters;

use std::sync::LazyLock;

use regex::Regex;

use super::says;

/// The requirements of one call, never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirements {
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    text: String,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// An item of a list: somebody set it apart on purpose.
    Listed,
    Prose,
}

/// More than one specification can answer for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooLong {
    #[error("has {is} requirements; {MOST} is the most for one specification, so give them in parts")]
    Items { is: usize },
    #[error("has {is} bytes; {MOST_BYTES} is the most for one specification, so give it in parts")]
    Bytes { is: usize },
}

const MOST: usize = 60;
const MOST_BYTES: usize = 32 * 1024;

impl Requirements {
    /// Takes a text apart. It must say something.
    pub fn split(text: &str) -> Result<Self, TooLong> {
        if text.len() > MOST_BYTES {
            return Err(TooLong::Bytes { is: text.len() });
        }
        let blocks = blocks(text);
        let mut items = taken_apart(&blocks, sentences);
        if items.len() > MOST {
            items = taken_apart(&blocks, |paragraph| vec![paragraph.to_owned()]);
        }
        match items.len() {
            0 => Ok(Self { items: vec![Item { text: one_line(text), form: Form::Prose }] }),
            is if is > MOST => Err(TooLong::Items { is }),
            _ => Ok(Self { items }),
        }
    }

    /// Each with its id, in order.
    pub fn iter(&self) -> impl Iterator<Item = (String, &str)> {
        self.items.iter().enumerate().map(|(n, item)| (format!("R{}", n + 1), item.text.as_str()))
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// There is always one, which whoever asks by habit is told here.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The place of the one that is meant, whether it is written `R1`, `r1` or ` R1 `.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let digits = id.trim().strip_prefix(['R', 'r'])?;
        let number = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<usize>().ok())??;
        (1..=self.items.len()).contains(&number).then(|| number - 1)
    }

    /// What makes it a demand, so that it cannot be told as a story: a word, a number, code, or that it is in a list.
    pub(super) fn demand(&self, n: usize) -> Option<String> {
        let item = self.items.get(n)?;
        match item.form {
            Form::Listed => Some(String::from("it is an item of a list")),
            Form::Prose => demands::find(&item.text).map(|word| format!("it says `{word}`")),
        }
    }

    /// Does it ask for something to be left out? Then an exclusion is its answer.
    pub(super) fn declines(&self, n: usize) -> bool {
        self.items.get(n).is_some_and(|item| demands::declines(&item.text))
    }

    /// `R1`, or `R1 to R7`.
    pub(super) fn range(&self) -> String {
        if self.items.len() == 1 { String::from("R1") } else { format!("R1 to R{}", self.items.len()) }
    }
}

struct Block {
    form: Form,
    text: String,
    /// With its fences, line by line.
    code: String,
}

impl Block {
    fn new(form: Form, text: &str) -> Self {
        Self { form, text: text.to_owned(), code: String::new() }
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

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    // Whether the next line goes on with what the last one began.
    let (mut open, mut fenced) = (false, false);
    let mut lines_of_table = 0;
    for line in letters::without_frame(text) {
        let bare = line.trim();
        lines_of_table = if bare.starts_with('|') { lines_of_table + 1 } else { 0 };
        let is_fence = bare.starts_with("```") || bare.starts_with("~~~");
        if is_fence || fenced {
            fenced ^= is_fence;
            if blocks.is_empty() {
                blocks.push(Block::new(Form::Prose, ""));
            }
            let last = blocks.last_mut().expect("one was pushed if there was none");
            last.code.push('\n');
            last.code.push_str(if is_fence { bare } else { line.trim_end() });
            open &= last.form == Form::Listed;
        } else if bare.is_empty() || bare.starts_with('#') {
            open = false;
        } else if let Some(marker) = MARKER.find(bare) {
            blocks.push(Block::new(Form::Listed, &bare[marker.end()..]));
            open = true;
        } else if OWN_ID.is_match(bare) {
            blocks.push(Block::new(Form::Listed, bare));
            open = true;
        } else if bare.starts_with('|') {
            // What stands above the dashes names the columns.
            if is_rule(bare) && lines_of_table == 2 {
                blocks.pop();
            } else if !is_rule(bare) {
                let cells: Vec<&str> = bare.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
                blocks.push(Block::new(Form::Listed, &cells.join("; ")));
            }
            open = false;
        } else if let (true, Some(last)) = (open, blocks.last_mut()) {
            last.goes_on(bare);
        } else {
            blocks.push(Block::new(Form::Prose, bare));
            open = true;
        }
    }
    // What ends in a colon and has an item below it only announces it.
    let announces = |block: &Block, next: Option<&Block>| {
        let listed = next.is_some_and(|next| next.form == Form::Listed);
        listed && block.code.is_empty() && block.text.ends_with([':', '：'])
    };
    let announced: Vec<bool> = (0..blocks.len()).map(|n| announces(&blocks[n], blocks.get(n + 1))).collect();
    let mut announced = announced.into_iter();
    blocks.retain(|_| !announced.next().unwrap_or_default());
    blocks
}

fn taken_apart(blocks: &[Block], prose: impl Fn(&str) -> Vec<String>) -> Vec<Item> {
    let parts = blocks.iter().flat_map(|block| {
        let line = one_line(&block.text);
        let mut texts = match block.form {
            Form::Listed => vec![line],
            Form::Prose => one_a_line(&block.text).unwrap_or_else(|| prose(&line)),
        };
        if let Some(last) = texts.last_mut() {
            last.push_str(&block.code);
        }
        texts.into_iter().map(|text| Item { text: text.trim().to_owned(), form: block.form })
    });
    parts.filter(|item| says(&item.text)).collect()
}

/// `|---|:--|`
fn is_rule(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| "|-: ".contains(c))
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
    (lines.len() > 1 && lines.iter().all(fits)).then(|| lines.iter().map(|line| one_line(line)).collect())
}

/// A full stop after one of these ends no sentence.
const SHORT: &[&str] = &[
    "e.g", "i.e", "etc", "vs", "cf", "approx", "no", "max", "min", "mr", "mrs", "dr", "fig", "incl", "z.b", "bzw", "ca",
];

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
                let last = paragraph[from..at].rsplit([' ', '(']).next().unwrap_or_default();
                let short = c == '.'
                    && (SHORT.contains(&last.to_lowercase().as_str()) || (last.chars().count() == 1 && last != "I"));
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
