//! Fuzz target: reads arbitrary text as a model's answer.

use std::path::Path;

use crate::Edit;
use crate::{EditProposal, MAX_EDITS, ProjectFacts, read_edit_answer};

/// A project of two files, one of them protected.
struct SmallProject {
    paths: [String; 2],
}

impl ProjectFacts for SmallProject {
    fn root(&self) -> &Path {
        Path::new("/project")
    }

    fn paths(&self) -> &[String] {
        &self.paths
    }

    fn text(&self, path: &str) -> Option<String> {
        match path {
            "src/price.py" => {
                Some("def price(n):\n    if n > 3:\n        return 2\n    return n\n".into())
            }
            "tests/test_price.py" => Some(
                "from price import price\n\ndef test_one():\n    assert price(1) == 1\n".into(),
            ),
            _ => None,
        }
    }

    fn is_protected(&self, path: &str) -> bool {
        path.starts_with("tests/")
    }

    fn editable(&self) -> &[String] {
        &self.paths[..1]
    }
}

/// Asserts that reading is deterministic and its result bounded.
pub fn answer(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let project = SmallProject {
        paths: ["src/price.py".into(), "tests/test_price.py".into()],
    };
    let read = read_edit_answer(&text, &project);
    assert_eq!(
        read,
        read_edit_answer(&text, &project),
        "reading is not deterministic"
    );
    let Ok(read) = read else { return };
    match &read.proposal {
        EditProposal::Edits(edits) => {
            assert!(
                !edits.is_empty() && edits.len() <= MAX_EDITS,
                "{} edits",
                edits.len()
            );
            for edit in edits {
                assert!(!edit.path().is_empty(), "an edit of no file");
                let size = match edit {
                    Edit::Create { contents, .. } | Edit::Replace { contents, .. } => {
                        contents.len()
                    }
                    Edit::Change {
                        search, replace, ..
                    } => search.len() + replace.len(),
                    Edit::Delete { .. } => 0,
                };
                // Elided parts of an answer are filled in from the file.
                assert!(
                    size <= 4 * text.len() + 4096,
                    "{size} bytes out of {}",
                    text.len()
                );
            }
        }
        EditProposal::FileRequest(wanted) => assert!(!wanted.is_empty()),
        EditProposal::Contradiction(_) | EditProposal::Nothing => {}
    }
    assert!(
        read.notes.len() <= 4 * text.len() + 4096,
        "notes of {} bytes",
        read.notes.len()
    );
}
