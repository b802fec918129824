//! The lines of `docs/log.md`, run as they stand there.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// By the heading above each block of shell.
pub(super) struct Page(Vec<(String, String)>);

impl Page {
    pub(super) fn read() -> Self {
        let page =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/log.md"))
                .unwrap();
        let mut blocks = Vec::new();
        for section in page.split("\n### ").skip(1) {
            let (name, rest) = section
                .split_once("\n\n```sh\n")
                .expect("a heading and its block");
            blocks.push((
                name.to_owned(),
                rest.split_once("```").expect("closed").0.to_owned(),
            ));
        }
        Self(blocks)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// What one prints, after the definitions, in the directory with the logs.
    pub(super) fn run(&self, name: &str, directory: &Path) -> Vec<Value> {
        let block = |name: &str| {
            &self
                .0
                .iter()
                .find(|(n, _)| n == name)
                .unwrap_or_else(|| panic!("no block {name}"))
                .1
        };
        let script = format!("set -e\n{}\n{}", block("definitions"), block(name));
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(directory)
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && err.is_empty(), "{name}: {err}");
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}
