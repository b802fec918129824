//! What code can read and check in an answer. Edits are read in whatever shape a model wrote them. Answers in words are
//! held to structure: citations and quotes, ids that exist, maps that are complete, sections, test fields, distinctness.
//! Such structure rejects. Words (praise, a vague promise, a change to be tried) only raise flags, which a verifier
//! answers.
//! Knows what was shown and what was said. Does not know who said it, nor whether it is true.

pub mod citations;
pub mod diagnosis;
pub mod learning;
pub mod private_names;
pub mod review;
pub mod scan;
pub mod specification;
pub mod training;
