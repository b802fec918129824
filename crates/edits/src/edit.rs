//! The edit itself: the data that this crate reads out of answers and `supervisor-workspace` applies.

/// One change to one file. Paths are relative to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// A file that does not exist yet.
    Create {
        path: String,
        contents: Vec<u8>,
    },
    /// All of a file that exists.
    Replace {
        path: String,
        contents: Vec<u8>,
    },
    Delete {
        path: String,
    },
    /// One place in a file: `search` must be found there exactly once, with white space as it is or, failing that, as it may be.
    Change {
        path: String,
        search: String,
        replace: String,
    },
}

impl Edit {
    pub fn path(&self) -> &str {
        match self {
            Self::Create { path, .. }
            | Self::Replace { path, .. }
            | Self::Delete { path }
            | Self::Change { path, .. } => path,
        }
    }
}
