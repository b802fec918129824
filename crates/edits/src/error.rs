//! Errors for an answer, or part of one, that cannot be parsed. The text says what is wrong with the
//! answer, for everybody; [`EditAnswerError::instruction`] tells the model that wrote it what would
//! be accepted, and nobody else should read that.

/// Why an answer cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditAnswerError {
    #[error("the answer is empty")]
    Empty,
    #[error("the answer contains only reasoning, no code")]
    OnlyThoughts,
    #[error("the answer is {megabytes} MB long, which is too long")]
    TooLong { megabytes: usize },
    #[error("there is no code in the answer")]
    NoCode,
    #[error("the answer is JSON that cannot be read ({why})")]
    BrokenJson { why: String },
    #[error("{}", pathless(*.blocks, .candidates))]
    NoPath {
        blocks: usize,
        candidates: Vec<String>,
    },
    #[error("the code block{} that begins at line {line} has no end, so it was not applied", for_path(.path))]
    UnclosedBlock { path: String, line: usize },
    #[error("the code block for `{path}` is empty")]
    EmptyBlock { path: String },
    #[error("a SEARCH block{} has no `=======` line between what is searched for and what replaces it", for_path(.path))]
    SearchWithoutDivider { path: String },
    #[error("a SEARCH block{} has no `>>>>>>> REPLACE` line at its end", for_path(.path))]
    SearchWithoutEnd { path: String },
    #[error("`...` in the search text for `{path}` cannot be matched with the file")]
    UnclearElision { path: String },
    #[error("line {line} of the code for `{path}` (`{text}`) stands for code that was left out")]
    ElidedFile {
        path: String,
        line: usize,
        text: String,
    },
    #[error("`{path}` could be {}", join_paths(.known))]
    AmbiguousPath { path: String, known: Vec<String> },
    #[error("`{first}` and `{second}` differ only in case or Unicode form")]
    CollidingPaths { first: String, second: String },
    #[error("the answer has {count} edits, and {} are the most", super::MAX_EDITS)]
    TooManyEdits { count: usize },
    #[error("the edit of `{path}` has {has}")]
    Incomplete { path: String, has: &'static str },
    #[error("line {line} of the text for `{path}` holds the control character U+{code:04X}")]
    ControlCharacter {
        path: String,
        line: usize,
        code: u32,
    },
    #[error("a rename was asked for")]
    Rename,
}

impl EditAnswerError {
    /// What the model that wrote the answer should do instead.
    pub fn instruction(&self) -> Option<String> {
        let instruction = match self {
            Self::Empty | Self::SearchWithoutDivider { .. } | Self::SearchWithoutEnd { .. } => {
                return None;
            }
            Self::OnlyThoughts => "write the code after them",
            Self::TooLong { .. } => "send only the files that change",
            Self::NoCode => {
                "write each file as its path on a line, then its content in a code block"
            }
            Self::BrokenJson { .. } => "write the code as text in code blocks instead",
            Self::NoPath { .. } => "put the path of its file on the line before each code block",
            Self::UnclosedBlock { .. } => "close it",
            Self::EmptyBlock { path } => {
                return Some(format!(
                    "write the whole file, or `DELETE: {path}` to remove it"
                ));
            }
            Self::UnclearElision { .. } => "quote the lines to change in full",
            Self::ElidedFile { .. } => "write the whole file",
            Self::AmbiguousPath { .. } => "write the path exactly",
            Self::CollidingPaths { .. } => "write one path for one file",
            Self::TooManyEdits { .. } => "make a smaller change",
            Self::Incomplete { .. } => {
                "give `content` for a whole file, or `search` and `replace` for one place"
            }
            Self::ControlCharacter { .. } => "write it as an escape of the language",
            Self::Rename => "write the new file whole and `DELETE:` the old one",
        };
        Some(instruction.to_owned())
    }

    /// The error and the instruction, for the model that wrote the answer.
    pub fn for_model(&self) -> String {
        match self.instruction() {
            Some(instruction) => format!("{self}; {instruction}"),
            None => self.to_string(),
        }
    }

    /// The error for an answer without edits: broken JSON, or prose only.
    pub(super) fn no_edits(text: &str) -> Self {
        let text = text.trim();
        let is_json = text.starts_with(['{', '[']) || text.contains("{\"");
        let start = text.find('{').unwrap_or_default();
        match serde_json::from_str::<serde_json::Value>(&text[start..]) {
            Err(error) if is_json => Self::BrokenJson {
                why: error.to_string(),
            },
            Ok(_) if is_json => Self::BrokenJson {
                why: "it holds no `edits`".into(),
            },
            _ => Self::NoCode,
        }
    }
}

fn for_path(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!(" for `{path}`")
    }
}

fn pathless(blocks: usize, candidates: &[String]) -> String {
    let what = if blocks == 1 {
        "the code block names no file".to_owned()
    } else {
        format!("{blocks} code blocks name no file")
    };
    match candidates {
        [] => what,
        several => format!("{what}, and it could be meant for {}", join_paths(several)),
    }
}

fn join_paths(paths: &[String]) -> String {
    let shown: Vec<String> = paths
        .iter()
        .take(4)
        .map(|path| format!("`{path}`"))
        .collect();
    let more = if paths.len() > 4 { " or others" } else { "" };
    shown.join(" or ") + more
}
