//! The smallest project of three ecosystems, with one test that fails (`Red`) or with none (`Green`). Each has an old
//! passing test, a repository, a link to its tests, and nothing that needs the network.

use std::fs;
use std::path::Path;

use super::case::{Kind, Tool};
use super::picture::git;
use crate::ecosystems::fixtures::file;

impl Kind {
    /// What must be installed.
    pub(super) fn needs(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["cargo", "git"],
            Self::Python => &["pytest", "git"],
            Self::Node => &["node", "npm", "git"],
        }
    }

    /// The file with the tests.
    pub(super) fn test_path(self) -> &'static str {
        match self {
            Self::Rust => "tests/sums.rs",
            Self::Python => "tests/test_calc.py",
            Self::Node => "test/calc.test.js",
        }
    }

    /// The file with the code.
    pub(super) fn impl_path(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::Python => "calc.py",
            Self::Node => "calc.js",
        }
    }
}

/// Writes the project that this call needs: all passes, or for `Green` the code of `triple` is missing.
pub(super) fn write(kind: Kind, tool: Tool, root: &Path) {
    fs::create_dir_all(root).unwrap();
    let triple = if tool == Tool::Green { "n" } else { "n * 3" };
    match kind {
        Kind::Rust => rust(root, triple),
        Kind::Python => python(root, triple),
        Kind::Node => node(root, triple),
    }
    file(root, ".gitignore", "target/\n__pycache__/\nnode_modules/\nhidden/\n");
    file(root, "README.md", "# Demo\n");
    std::os::unix::fs::symlink(kind.test_path(), root.join("alias.txt")).unwrap();
    git(root, &["init", "-q"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "First"]);
}

fn rust(root: &Path, triple: &str) {
    file(
        root,
        "Cargo.toml",
        "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\ndoctest = false\n\n[workspace]\n",
    );
    file(root, "Cargo.lock", "version = 4\n\n[[package]]\nname = \"demo\"\nversion = \"0.1.0\"\n");
    file(
        root,
        "src/lib.rs",
        &format!(
            "pub fn double(n: i32) -> i32 {{\n    n * 2\n}}\n\npub fn triple(n: i32) -> i32 {{\n    {triple}\n}}\n\n\
             #[cfg(test)]\nmod tests {{\n    #[test]\n    fn zero_stays() {{\n        \
             assert_eq!(super::triple(0), 0);\n    }}\n}}\n"
        ),
    );
    file(
        root,
        "tests/sums.rs",
        "#[test]\nfn doubles() {\n    assert_eq!(demo::double(2), 4);\n}\n\n\
         #[test]\nfn triples() {\n    assert_eq!(demo::triple(2), 6);\n}\n",
    );
}

fn python(root: &Path, triple: &str) {
    file(root, "pyproject.toml", "[project]\nname = \"demo\"\nversion = \"0.1.0\"\n");
    file(root, "conftest.py", "");
    file(root, "calc.py", &format!("def double(n):\n    return n * 2\n\n\ndef triple(n):\n    return {triple}\n"));
    file(
        root,
        "tests/test_calc.py",
        "from calc import double, triple\n\n\ndef test_doubles():\n    assert double(2) == 4\n\n\n\
         def test_triples():\n    assert triple(2) == 6\n",
    );
}

fn node(root: &Path, triple: &str) {
    file(
        root,
        "package.json",
        "{\"name\": \"demo\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node --test\"}}\n",
    );
    file(root, "node_modules/left/index.js", "module.exports = (text) => text;\n");
    file(root, "calc.js", &format!("exports.double = (n) => n * 2;\nexports.triple = (n) => {triple};\n"));
    file(
        root,
        "test/calc.test.js",
        "const test = require('node:test');\nconst assert = require('node:assert');\n\
         const { double, triple } = require('../calc');\n\n\
         test('doubles', () => assert.equal(double(2), 4));\ntest('triples', () => assert.equal(triple(2), 6));\n",
    );
}
