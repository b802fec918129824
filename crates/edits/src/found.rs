//! An edit as found in an answer, before its file is resolved.

/// One file and the edit that an answer proposes for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FoundEdit {
    /// As written; `None` if no path is named.
    pub(super) path: Option<String>,
    pub(super) text: FoundText,
    /// The text was in a JSON string, where a code fence is decoration.
    pub(super) from_json: bool,
    /// The path was in a sentence before the text, so the text may be only a quotation.
    pub(super) from_sentence: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum FoundText {
    /// The whole file.
    Whole(String),
    /// One place. `line` is the line number given by a diff, from 1.
    Change {
        search: String,
        replace: String,
        line: Option<usize>,
    },
    /// Text for the end of a file, or for a new one.
    Append(String),
    #[default]
    Delete,
    /// A path without an action. `has` completes the sentence "the edit has …".
    Incomplete { has: &'static str },
}
