//! What do we know that will be true tomorrow, and how is it found again? Notes are Markdown files that a person can
//! read, edit and keep under version control; the index over them is disposable.
//! Each note says which project it is about and what proves it. Knows files and words; asks no model.

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
