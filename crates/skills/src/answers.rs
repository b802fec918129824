//! Reads and checks the answers of models. Edits are read in whatever format a model wrote them.
//! Answers in prose are checked for structure: citations and quotes, existing ids, complete maps,
//! sections, test fields and distinctness. Structural faults reject an answer; doubtful wording
//! only raises flags, which a verifier answers. Nothing here knows which model answered or whether
//! a claim is true.

pub mod citations;
pub mod diagnosis;
pub mod learning;
pub mod private_names;
pub mod review;
pub mod scan;
pub mod specification;
pub mod training;
