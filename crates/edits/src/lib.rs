//! Reads the edits of an answer, in whatever shape a model wrote them. Tests decide what the edits are worth, so reading
//! loosely costs nothing: each shape is a rule with a name and a fixture, and all of them end in the same few edits.
//! Pure and bounded: text and facts about the project in, edits or the exact complaint out. Whether an edit may be made
//! is the workspace's to say, and it says so for each.

mod blocks;
mod complaint;
mod diff;
mod directives;
mod edit;
mod elements;
mod elision;
mod found;
#[doc(hidden)]
pub mod fuzz;
mod lenient;
mod line_numbers;
mod object;
mod paths;
mod place;
mod rule;
mod search_replace;
mod segments;
mod settle;
mod thoughts;
mod vocabulary;

use std::collections::BTreeSet;
use std::path::Path;

pub use complaint::UnreadableAnswer;
pub use edit::Edit;
pub use rule::ReadingRule;
pub use vocabulary::says_nothing;

use found::FoundEdit;
use place::KnownFiles;
use segments::split_segments;

/// Longer answers are not read: a million tokens are no small step, and each shape that is tried costs a copy.
pub const LONGEST_ANSWER: usize = 4 * 1024 * 1024;
/// At most this many edits in one answer; more is no small step.
pub const MOST_EDITS: usize = 50;
/// So many blocks, elements or objects are looked at; an answer with more is none.
const MOST_FOUND: usize = 2_000;
/// Characters of a note that are kept.
const LONGEST_NOTE: usize = 2_000;

/// What the reader may know about the project.
pub trait ProjectFacts {
    /// Absolute.
    fn root(&self) -> &Path;

    /// Every file, relative to the root, with `/` between directories.
    fn paths(&self) -> &[String];

    /// The text of a file that is there; `None` if it cannot be read as text.
    fn text(&self, path: &str) -> Option<String>;

    /// Is this path off limits in this phase?
    fn is_sealed(&self, path: &str) -> bool;

    /// The files that a change is expected in: shown to the model, and open for edits.
    fn editable(&self) -> &[String];
}

/// An answer that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditAnswer {
    pub proposal: EditProposal,
    /// What the model said beside it.
    pub notes: String,
    /// Parts that were left out, each with its reason.
    pub left_out: Vec<UnreadableAnswer>,
    /// How it was understood.
    pub rules: BTreeSet<ReadingRule>,
}

/// What an answer asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditProposal {
    /// In the order in which they are to be made; never empty.
    Edits(Vec<Edit>),
    /// Files, symbols or a search that the model wants to see first; never empty.
    Need(Vec<String>),
    /// It cannot be done honestly, and why.
    Contradiction(String),
    /// It says, or its edits come to, that nothing is to be changed.
    Nothing,
}

/// Reads an answer.
pub fn read_edit_answer(
    text: &str,
    facts: &dyn ProjectFacts,
) -> Result<EditAnswer, UnreadableAnswer> {
    if text.len() > LONGEST_ANSWER {
        return Err(UnreadableAnswer::TooLong {
            megabytes: text.len() >> 20,
        });
    }
    if text.trim().is_empty() {
        return Err(UnreadableAnswer::Empty);
    }
    let spoken = thoughts::without_thoughts(text);
    if spoken.only_thoughts {
        return Err(UnreadableAnswer::OnlyThoughts);
    }
    let mut reading = Reading::new(facts);
    reading.rules.extend(spoken.rules);
    let said_something = reading.take_text(&spoken.text);
    reading.conclude(said_something, &spoken.text)
}

/// An answer on its way: what was found in it so far.
struct Reading<'f> {
    known: KnownFiles<'f>,
    found: Vec<FoundEdit>,
    /// Blocks that name no file: their language and text.
    pathless: Vec<(String, String)>,
    notes: Vec<String>,
    need: Vec<String>,
    contradiction: Option<String>,
    faults: Vec<UnreadableAnswer>,
    rules: BTreeSet<ReadingRule>,
    depth: usize,
}

impl<'f> Reading<'f> {
    fn new(facts: &'f dyn ProjectFacts) -> Self {
        Self {
            known: KnownFiles::new(facts),
            found: Vec::new(),
            pathless: Vec::new(),
            notes: Vec::new(),
            need: Vec::new(),
            contradiction: None,
            faults: Vec::new(),
            rules: BTreeSet::new(),
            depth: 0,
        }
    }

    fn used(&mut self, rule: ReadingRule) {
        self.rules.insert(rule);
    }

    fn add(&mut self, edit: FoundEdit) {
        if self.found.len() <= MOST_FOUND {
            self.found.push(edit);
        }
    }

    fn add_need(&mut self, what: &str) {
        let what = what.trim().trim_matches(['`', '"', '*']).trim();
        if !vocabulary::says_nothing(what) && self.need.len() < MOST_EDITS {
            self.need.push(what.chars().take(300).collect());
        }
    }

    /// Takes a text that may hold an answer in any shape. `false`: nothing in it is one.
    fn take_text(&mut self, text: &str) -> bool {
        if self.depth > 3 {
            return false;
        }
        self.depth += 1;
        let taken = self.take_whole_object(text) || {
            let rest = elements::take_elements(text, self);
            let in_elements = rest.is_some();
            let rest = rest.unwrap_or_else(|| text.to_owned());
            let segments = split_segments(&rest);
            let in_blocks = blocks::take_segments(&segments, self);
            in_elements || in_blocks || self.take_any_object(text)
        };
        self.depth -= 1;
        taken
    }

    /// The whole text is one object, or begins with one.
    fn take_whole_object(&mut self, text: &str) -> bool {
        let text = text.trim();
        let starts_so =
            text.starts_with(['{', '"']) || (text.starts_with('[') && !text.starts_with("[/"));
        starts_so && blocks::take_objects(text, self)
    }

    /// An object somewhere in a text in which nothing else was found.
    fn take_any_object(&mut self, text: &str) -> bool {
        let starts = text
            .match_indices("{\"")
            .chain(text.match_indices("{\n"))
            .map(|(at, _)| at);
        let mut starts: Vec<usize> = starts.take(20).collect();
        starts.sort_unstable();
        starts
            .into_iter()
            .any(|at| blocks::take_objects(&text[at..], self))
    }

    /// Takes a diff that is known to be one.
    fn take_diff(&mut self, text: &str, path: Option<&str>) {
        diff::take_diff(&text.lines().collect::<Vec<_>>(), path, self);
    }

    fn conclude(
        mut self,
        said_something: bool,
        text: &str,
    ) -> Result<EditAnswer, UnreadableAnswer> {
        if self.found.len() > MOST_FOUND || self.pathless.len() > MOST_FOUND {
            return Err(UnreadableAnswer::TooManyEdits {
                count: self.found.len().max(self.pathless.len()),
            });
        }
        let proposed_something = !self.found.is_empty() || !self.pathless.is_empty();
        let edits = settle::settle_edits(&mut self)?;
        let proposal = if !edits.is_empty() {
            EditProposal::Edits(edits)
        } else if let Some(why) = self.contradiction.take() {
            EditProposal::Contradiction(why)
        } else if !self.need.is_empty() {
            EditProposal::Need(std::mem::take(&mut self.need))
        } else if !self.faults.is_empty() {
            return Err(self.faults.swap_remove(0));
        } else if proposed_something || said_something {
            EditProposal::Nothing
        } else {
            return Err(UnreadableAnswer::no_edits(text));
        };
        let notes: String = self.notes.join("\n").chars().take(LONGEST_NOTE).collect();
        self.faults.truncate(8);
        Ok(EditAnswer {
            proposal,
            notes,
            left_out: self.faults,
            rules: self.rules,
        })
    }
}

#[cfg(test)]
mod tests;
