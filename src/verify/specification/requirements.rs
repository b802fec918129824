//! What was asked for, taken apart into items that can be counted: `R1`, `R2`, ….
//!
//! - A list item is one requirement, with the lines that belong to it. Bullets, numbers, letters and `R1:` begin one.
//! - Prose is one requirement per sentence; if that gives too many, one per paragraph.
//! - Headings, and lines ending in a colon with a list below, announce requirements and are none.
//! - What cannot be taken apart is one requirement, whole.

use std::sync::LazyLock;

use regex::Regex;

use super::says;

/// The requirements of one call, never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirements {
    items: Vec<String>,
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
            0 => Ok(Self { items: vec![one_line(text)] }),
            is if is > MOST => Err(TooLong::Items { is }),
            _ => Ok(Self { items }),
        }
    }

    /// Each with its id, in order.
    pub fn iter(&self) -> impl Iterator<Item = (String, &str)> {
        self.items.iter().enumerate().map(|(n, text)| (format!("R{}", n + 1), text.as_str()))
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

    /// `R1`, or `R1 to R7`.
    pub(super) fn range(&self) -> String {
        if self.items.len() == 1 { String::from("R1") } else { format!("R1 to R{}", self.items.len()) }
    }
}

enum Block {
    Item(String),
    Prose(String),
}

/// A bullet, a number, a letter or a label, with a check box perhaps.
static MARKER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:[-*+•‣–]|\(?[0-9]{1,3}[.)]|\(?[A-Za-z]\)|(?:R|REQ)-?[0-9]{1,3}[:.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
        .expect("the pattern is constant and tested")
});

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    // Whether the next line goes on with what the last one began.
    let (mut open, mut fenced) = (false, false);
    for line in text.lines() {
        let bare = line.trim();
        let is_fence = bare.starts_with("```") || bare.starts_with("~~~");
        let marker = MARKER.find(bare).filter(|_| !fenced && !is_fence).map(|m| m.end());
        if is_fence {
            fenced = !fenced;
        }
        if bare.is_empty() && !fenced {
            open = false;
        } else if let Some(end) = marker {
            blocks.push(Block::Item(bare[end..].to_owned()));
            open = true;
        } else if bare.starts_with('#') && !fenced {
            open = false;
        } else if let (true, Some(Block::Item(last) | Block::Prose(last))) = (open, blocks.last_mut()) {
            last.push('\n');
            last.push_str(bare);
        } else {
            blocks.push(Block::Prose(bare.to_owned()));
            open = true;
        }
    }
    // What ends in a colon and has an item below it only announces it.
    let announces = |block: &Block, next: Option<&Block>| {
        let (Block::Item(text) | Block::Prose(text)) = block;
        text.ends_with([':', '：']) && matches!(next, Some(Block::Item(_)))
    };
    let announced: Vec<bool> = (0..blocks.len()).map(|n| announces(&blocks[n], blocks.get(n + 1))).collect();
    let mut announced = announced.into_iter();
    blocks.retain(|_| !announced.next().unwrap_or_default());
    blocks
}

fn taken_apart(blocks: &[Block], prose: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let parts = blocks.iter().flat_map(|block| match block {
        Block::Item(text) => vec![one_line(text)],
        Block::Prose(text) => prose(&one_line(text)),
    });
    parts.filter(|item| says(item)).collect()
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> Vec<String> {
        Requirements::split(text).expect("not too long").items
    }

    #[test]
    fn bullets_numbers_and_letters_are_one_requirement_each() {
        for text in [
            "- read CSV\n- write JSON",
            "* read CSV\n* write JSON",
            "1. read CSV\n2. write JSON",
            "1) read CSV\n\n2) write JSON",
            "(1) read CSV\n(2) write JSON",
            "a) read CSV\nb) write JSON",
            "R1: read CSV\nR2: write JSON",
            "- [ ] read CSV\n- [x] write JSON",
            "• read CSV\r\n• write JSON",
            "# Import\n- read CSV\n## Export\n- write JSON",
            "It must:\n- read CSV\n- write JSON",
            "- formats:\n  - read CSV\n  - write JSON",
            "- read\n  CSV\n- write JSON",
        ] {
            assert_eq!(split(text), ["read CSV", "write JSON"], "{text}");
        }
    }

    #[test]
    fn prose_is_one_requirement_a_sentence() {
        assert_eq!(split("It reads CSV. It writes JSON!"), ["It reads CSV.", "It writes JSON!"]);
        assert_eq!(split("It reads CSV\n\nIt writes JSON"), ["It reads CSV", "It writes JSON"]);
        let whole =
            ["Keep 1.5 GB free, e.g. On disk.", "uses main.rs and v2.0 now", "Ask Dr. Who. ", "Use `a. B` here"];
        for text in whole {
            assert_eq!(split(text), [text.trim()], "{text}");
        }
        assert_eq!(split("読む。書く。"), ["読む。", "書く。"]);
    }

    #[test]
    fn lists_and_prose_stand_side_by_side() {
        let text = "A tool for tables. It is small.\n\n- read CSV\n- write JSON\n\nNo network.";
        assert_eq!(split(text), ["A tool for tables.", "It is small.", "read CSV", "write JSON", "No network."]);
    }

    #[test]
    fn what_cannot_be_taken_apart_is_one_requirement() {
        for text in ["make it better", "???", "---", "# Only a heading", "Formats:"] {
            assert_eq!(split(text), [text], "{text}");
        }
        assert_eq!(
            split("- print this:\n```\n- not an item\n\n1. nor this\n```"),
            ["print this: ``` - not an item 1. nor this ```"]
        );
    }

    #[test]
    fn too_many_sentences_are_taken_by_paragraph_and_too_many_items_are_refused() {
        let prose = format!("{}\n\n{}", "It does this. ".repeat(40), "It does that. ".repeat(40));
        assert_eq!(split(&prose).len(), 2);
        let list = "- one more\n".repeat(61);
        assert_eq!(Requirements::split(&list), Err(TooLong::Items { is: 61 }));
        assert_eq!(split(&"- one more\n".repeat(60)).len(), 60);
        assert!(matches!(Requirements::split(&"x".repeat(40_000)), Err(TooLong::Bytes { .. })));
    }

    #[test]
    fn ids_are_found_as_models_write_them() {
        let two = Requirements::split("- a\n- b").expect("two");
        assert_eq!((two.find("R2"), two.find(" r1 "), two.find("R3"), two.find("R0")), (Some(1), Some(0), None, None));
        assert_eq!((two.find("2"), two.find("R-1"), two.find("R+1")), (None, None, None));
        assert_eq!(two.range(), "R1 to R2");
    }

    proptest! {
        #[test]
        fn nothing_that_was_said_is_lost(words in proptest::collection::vec("[a-z]{2,8}", 1..40), marks in proptest::collection::vec("( |\n|\n\n|\n- |\\. A |\n1\\. )", 40)) {
            let text: String = words.iter().zip(&marks).map(|(w, m)| format!("{w}{m}")).collect();
            let all = split(&text).join(" ");
            for word in &words {
                prop_assert!(all.contains(word.as_str()), "{} lost in {:?}", word, all);
            }
        }
    }
}
