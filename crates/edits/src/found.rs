//! One edit as it was found in an answer, before anything is known about the file it is for.

/// What an answer wants to do with one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FoundEdit {
    /// As it is written; `None` where none is named.
    pub(super) path: Option<String>,
    pub(super) text: FoundText,
    /// The text stood in a JSON string, where a code fence is decoration.
    pub(super) from_json: bool,
    /// The path stood in a sentence before the text, which may only be quoted.
    pub(super) from_sentence: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum FoundText {
    /// All of a file.
    Whole(String),
    /// One place. `line` is where a diff says that it is, from 1.
    Change {
        search: String,
        replace: String,
        line: Option<usize>,
    },
    /// Text for the end of a file, or for a new one.
    Append(String),
    #[default]
    Delete,
    /// A path, and not what to do with it. `has` reads after "has".
    Incomplete { has: &'static str },
}
