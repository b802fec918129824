//! Reads the edits in a model's answer, which is in Markdown.
//!
//! `cargo run -p supervisor-edits --example read_answer` prints one `Change` of `src/lib.rs` and the
//! rules that were applied.
#![allow(clippy::print_stdout, reason = "the example prints its result")]

use std::path::Path;

use supervisor_edits::{EditAnswerError, ProjectFacts, read_edit_answer};

const ANSWER: &str = "The bug is an off-by-one.\n\n`src/lib.rs`\n```rust\n<<<<<<< SEARCH\n    0..=n\n=======\n    0..n\n>>>>>>> REPLACE\n```\n";

struct OneFile([String; 1]);

impl ProjectFacts for OneFile {
    fn root(&self) -> &Path {
        Path::new("/project")
    }
    fn paths(&self) -> &[String] {
        &self.0
    }
    fn text(&self, _path: &str) -> Option<String> {
        Some("fn range(n: u32) {\n    0..=n\n}\n".into())
    }
    fn is_protected(&self, _path: &str) -> bool {
        false
    }
    fn editable(&self) -> &[String] {
        &self.0
    }
}

fn main() -> Result<(), EditAnswerError> {
    let answer = read_edit_answer(ANSWER, &OneFile(["src/lib.rs".into()]))?;
    println!("{:#?}\nrules: {:?}", answer.proposal, answer.rules);
    Ok(())
}
