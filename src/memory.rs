//! What do we know that will be true tomorrow, and how is it found again? Notes are Markdown files that a person can
//! read, edit and keep under version control; the index over them is disposable.
//! Each note says which project it is about and what proves it. Knows files and words; asks no model.

pub(crate) mod aliases;
pub(crate) mod identity;
pub(crate) mod index;
pub(crate) mod note;
pub(crate) mod notes;
mod ranking;
pub(crate) mod staleness;

pub use identity::ProjectIdentity;
pub use index::{NoteHit, NoteIndex, NoteQuery};
pub use note::{Note, NoteEvidence, NoteKind};
pub use notes::{NoteDraft, NoteError, NoteFolder};
