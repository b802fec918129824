//! Long-term notes and how to find them again. Notes are Markdown files that a person can read,
//! edit and keep under version control; the index over them is disposable. Each note names its
//! project and its evidence. No model is asked.

pub mod aliases;
pub mod identity;
pub mod index;
pub mod note;
pub mod notes;
mod ranking;
pub mod staleness;

pub use identity::ProjectIdentity;
pub use index::{NoteHit, NoteIndex, NoteQuery};
pub use note::{Note, NoteEvidence, NoteKind};
pub use notes::{NoteDraft, NoteError, NoteFolder};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
