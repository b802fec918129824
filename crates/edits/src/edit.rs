//! The edit itself: the data that this crate reads out of answers and `supervisor-workspace` applies.

/// One change to one file. Paths are relative to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Creates a file that does not exist yet.
    Create {
        path: String,
        contents: Vec<u8>,
    },
    /// Replaces all of an existing file.
    Replace {
        path: String,
        contents: Vec<u8>,
    },
    Delete {
        path: String,
    },
    /// Replaces one place in a file. `search` must occur exactly once; if it does not occur literally, white space is ignored.
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
