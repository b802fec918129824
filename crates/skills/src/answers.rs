//! Reads and checks the answers of models. Edits are read in whatever format a model wrote them.
//! Answers in prose are checked for structure: citations and quotes, existing ids, complete maps,
//! sections, test fields and distinctness. Structural faults reject an answer; what only looks
//! doubtful raises a flag, which a verifier answers. Nothing here knows which model answered or
//! whether a claim is true.

pub(crate) mod citations;
pub(crate) mod diagnosis;
pub(crate) mod learning;
pub(crate) mod private_names;
pub(crate) mod prose;
pub(crate) mod review;
pub(crate) mod scan;
pub(crate) mod specification;
pub(crate) mod training;
