//! Parses the edits in a model's answer, in any of the formats that models write. Parsing is
//! lenient because tests decide whether the edits are right. Each accepted format is a named rule
//! with a fixture. Pure and bounded: it takes text and facts about the project, and returns edits
//! or a precise error. The workspace decides whether an edit is allowed.

mod blocks;
mod diff;
mod directives;
mod edit;
mod elements;
mod elision;
mod error;
mod finalize;
mod found;
#[doc(hidden)]
pub mod fuzz;
mod lenient;
mod line_numbers;
mod object;
mod path_resolution;
mod paths;
mod reasoning;
mod rule;
mod search_replace;
mod segments;
mod vocabulary;

use std::collections::BTreeSet;
use std::path::Path;

pub use edit::Edit;
pub use error::EditAnswerError;
pub use lenient::{LenientValue, read_value};
pub use rule::ParseRule;
pub use vocabulary::means_none;

use found::FoundEdit;
use path_resolution::FileLookup;
use segments::split_segments;

/// Longer answers are not parsed: a million tokens are not a small step, and each format that is
/// tried costs a copy.
pub const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of edits in one answer.
pub const MAX_EDITS: usize = 50;
/// Maximum number of blocks, elements or objects that are examined.
const MAX_FOUND: usize = 2_000;
/// Maximum length of the notes that are kept.
const MAX_NOTE_CHARS: usize = 2_000;

/// Facts about the project that the parser may use.
pub trait ProjectFacts {
    /// Absolute path.
    fn root(&self) -> &Path;

    /// Every file, relative to the root, with `/` as separator.
    fn paths(&self) -> &[String];

    /// The text of an existing file; `None` if it is not text.
    fn text(&self, path: &str) -> Option<String>;

    /// Whether this path must not be changed in this phase.
    fn is_protected(&self, path: &str) -> bool;

    /// The files that are expected to change: shown to the model, and open for edits.
    fn editable(&self) -> &[String];
}

/// A parsed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditAnswer {
    pub proposal: EditProposal,
    /// Notes the model added.
    pub notes: String,
    /// Parts that were skipped, each with its reason.
    pub left_out: Vec<EditAnswerError>,
    /// The rules that were applied.
    pub rules: BTreeSet<ParseRule>,
}

/// The proposal of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditProposal {
    /// In the order in which they are applied; never empty.
    Edits(Vec<Edit>),
    /// Files, symbols or searches the model wants to see first; never empty.
    FileRequest(Vec<String>),
    /// The task cannot be done honestly, and why.
    Contradiction(String),
    /// Nothing is to be changed: stated, or because the edits change nothing.
    Nothing,
}

/// Parses an answer.
pub fn read_edit_answer(
    text: &str,
    facts: &dyn ProjectFacts,
) -> Result<EditAnswer, EditAnswerError> {
    if text.len() > MAX_ANSWER_BYTES {
        return Err(EditAnswerError::TooLong {
            megabytes: text.len() >> 20,
        });
    }
    if text.trim().is_empty() {
        return Err(EditAnswerError::Empty);
    }
    let visible = reasoning::without_thoughts(text);
    if visible.only_thoughts {
        return Err(EditAnswerError::OnlyThoughts);
    }
    let mut parser = AnswerParser::new(facts);
    parser.rules.extend(visible.rules);
    let has_content = parser.parse_text(&visible.text);
    parser.conclude(has_content, &visible.text)
}

/// State while an answer is parsed.
struct AnswerParser<'f> {
    files: FileLookup<'f>,
    found: Vec<FoundEdit>,
    /// Blocks that name no file, as (language, text).
    pathless: Vec<(String, String)>,
    notes: Vec<String>,
    need: Vec<String>,
    contradiction: Option<String>,
    errors: Vec<EditAnswerError>,
    rules: BTreeSet<ParseRule>,
    depth: usize,
}

impl<'f> AnswerParser<'f> {
    fn new(facts: &'f dyn ProjectFacts) -> Self {
        Self {
            files: FileLookup::new(facts),
            found: Vec::new(),
            pathless: Vec::new(),
            notes: Vec::new(),
            need: Vec::new(),
            contradiction: None,
            errors: Vec::new(),
            rules: BTreeSet::new(),
            depth: 0,
        }
    }

    fn record(&mut self, rule: ParseRule) {
        self.rules.insert(rule);
    }

    fn add(&mut self, edit: FoundEdit) {
        if self.found.len() <= MAX_FOUND {
            self.found.push(edit);
        }
    }

    fn add_need(&mut self, what: &str) {
        let what = what.trim().trim_matches(['`', '"', '*']).trim();
        if !vocabulary::means_none(what) && self.need.len() < MAX_EDITS {
            self.need.push(what.chars().take(300).collect());
        }
    }

    /// Parses a text that may contain an answer in any format. Returns whether it contained one.
    fn parse_text(&mut self, text: &str) -> bool {
        if self.depth > 3 {
            return false;
        }
        self.depth += 1;
        let parsed = self.parse_whole_object(text) || {
            let rest = elements::parse_elements(text, self);
            let in_elements = rest.is_some();
            let rest = rest.unwrap_or_else(|| text.to_owned());
            let segments = split_segments(&rest);
            let in_blocks = blocks::parse_segments(&segments, self);
            in_elements || in_blocks || self.parse_any_object(text)
        };
        self.depth -= 1;
        parsed
    }

    /// Handles a text that is one object, or begins with one.
    fn parse_whole_object(&mut self, text: &str) -> bool {
        let text = text.trim();
        let looks_like_json =
            text.starts_with(['{', '"']) || (text.starts_with('[') && !text.starts_with("[/"));
        looks_like_json && blocks::parse_objects(text, self)
    }

    /// Finds an object anywhere in a text in which nothing else was found.
    fn parse_any_object(&mut self, text: &str) -> bool {
        let starts = text
            .match_indices("{\"")
            .chain(text.match_indices("{\n"))
            .map(|(at, _)| at);
        let mut starts: Vec<usize> = starts.take(20).collect();
        starts.sort_unstable();
        starts
            .into_iter()
            .any(|at| blocks::parse_objects(&text[at..], self))
    }

    /// Parses a text known to be a diff.
    fn parse_diff(&mut self, text: &str, path: Option<&str>) {
        diff::parse_diff(&text.lines().collect::<Vec<_>>(), path, self);
    }

    fn conclude(mut self, has_content: bool, text: &str) -> Result<EditAnswer, EditAnswerError> {
        if self.found.len() > MAX_FOUND || self.pathless.len() > MAX_FOUND {
            return Err(EditAnswerError::TooManyEdits {
                count: self.found.len().max(self.pathless.len()),
            });
        }
        let has_proposal = !self.found.is_empty() || !self.pathless.is_empty();
        let edits = finalize::finalize_edits(&mut self)?;
        let proposal = if !edits.is_empty() {
            EditProposal::Edits(edits)
        } else if let Some(why) = self.contradiction.take() {
            EditProposal::Contradiction(why)
        } else if !self.need.is_empty() {
            EditProposal::FileRequest(std::mem::take(&mut self.need))
        } else if !self.errors.is_empty() {
            return Err(self.errors.swap_remove(0));
        } else if has_proposal || has_content {
            EditProposal::Nothing
        } else {
            return Err(EditAnswerError::no_edits(text));
        };
        let notes: String = self.notes.join("\n").chars().take(MAX_NOTE_CHARS).collect();
        self.errors.truncate(8);
        Ok(EditAnswer {
            proposal,
            notes,
            left_out: self.errors,
            rules: self.rules,
        })
    }
}

#[cfg(test)]
mod tests;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
