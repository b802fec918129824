//! The smallest project of each ecosystem and of each runner that lives in `node_modules`, with one test that fails (`Red`) or with none (`Green`). Each has an old
//! passing test, a repository, a link to its tests, and nothing that needs the network.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::case::{Kind, Tool};
use super::picture::git;
use supervisor_test_support::programs::node_modules;
use supervisor_test_support::suites::{GTEST, MAVEN_PARTS, cmake_project, file, maven_project};

impl Kind {
    /// What must be installed.
    pub(super) fn needs(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["cargo", "git"],
            Self::Python => &["pytest", "git"],
            Self::Node | Self::Jest | Self::Vitest | Self::Mocha => &["node", "npm", "git"],
            Self::Go => &["go", "git"],
            Self::Ruby => &["bundle", "rspec", "git"],
            Self::Elixir => &["mix", "elixir", "git"],
            Self::Java => &["mvn", MAVEN_PARTS, "git"],
            Self::Cpp => &["cmake", "ctest", GTEST, "git"],
        }
    }

    /// The file with the tests.
    pub(super) fn test_path(self) -> &'static str {
        match self {
            Self::Rust => "tests/sums.rs",
            Self::Python => "tests/test_calc.py",
            Self::Node | Self::Jest => "test/calc.test.js",
            Self::Vitest => "test/calc.test.mjs",
            Self::Mocha => "test/calc.js",
            Self::Go => "calc_test.go",
            Self::Ruby => "spec/calc_spec.rb",
            Self::Elixir => "test/calc_test.exs",
            Self::Java => "src/test/java/demo/CalcTest.java",
            Self::Cpp => "tests/calc_test.cpp",
        }
    }

    /// The file with the code.
    pub(super) fn impl_path(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::Python => "calc.py",
            Self::Node | Self::Jest | Self::Mocha => "calc.js",
            Self::Vitest => "calc.mjs",
            Self::Go => "calc.go",
            Self::Ruby => "lib/calc.rb",
            Self::Elixir => "lib/calc.ex",
            Self::Java => "src/main/java/demo/Calc.java",
            Self::Cpp => "include/calc.h",
        }
    }
}

/// Writes the project that this call needs: all passes, or for `Green` the code of `triple` is missing.
pub(super) fn write(kind: Kind, tool: Tool, root: &Path) {
    fs::create_dir_all(root).unwrap();
    let triple = if tool == Tool::Green { "n" } else { "n * 3" };
    match kind {
        Kind::Rust => rust(root, tool, triple),
        Kind::Python => python(root, triple),
        Kind::Node => node(root, triple),
        Kind::Go => go(root, triple),
        Kind::Ruby => ruby(root, triple),
        Kind::Elixir => elixir(root, triple),
        Kind::Java => java(root, triple),
        Kind::Cpp => cpp(root, triple),
        Kind::Jest => jest(root, triple),
        Kind::Vitest => vitest(root, triple),
        Kind::Mocha => mocha(root, triple),
    }
    file(
        root,
        ".gitignore",
        "target/\n__pycache__/\nnode_modules/\n_build/\nbuild/\nhidden/\n",
    );
    file(root, "README.md", "# Demo\n");
    std::os::unix::fs::symlink(kind.test_path(), root.join("alias.txt")).unwrap();
    git(root, &["init", "-q"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "First"]);
}

fn rust(root: &Path, tool: Tool, triple: &str) {
    // Where two projects share a target directory, cargo takes packages of one name and place in it for the same one, and
    // what was built of the one for up to date in the other.
    let name = if tool == Tool::Green {
        "demo"
    } else {
        "demo-done"
    };
    file(
        root,
        "Cargo.toml",
        &format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\nname = \"demo\"\n\
             doctest = false\n\n[workspace]\n"
        ),
    );
    file(
        root,
        "Cargo.lock",
        &format!("version = 4\n\n[[package]]\nname = \"{name}\"\nversion = \"0.1.0\"\n"),
    );
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
    file(
        root,
        "pyproject.toml",
        "[project]\nname = \"demo\"\nversion = \"0.1.0\"\n",
    );
    file(root, "conftest.py", "");
    file(
        root,
        "calc.py",
        &format!("def double(n):\n    return n * 2\n\n\ndef triple(n):\n    return {triple}\n"),
    );
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
    file(
        root,
        "node_modules/left/index.js",
        "module.exports = (text) => text;\n",
    );
    file(
        root,
        "calc.js",
        &format!("exports.double = (n) => n * 2;\nexports.triple = (n) => {triple};\n"),
    );
    file(
        root,
        "test/calc.test.js",
        "const test = require('node:test');\nconst assert = require('node:assert');\n\
         const { double, triple } = require('../calc');\n\n\
         test('doubles', () => assert.equal(double(2), 4));\ntest('triples', () => assert.equal(triple(2), 6));\n",
    );
}

fn go(root: &Path, triple: &str) {
    file(root, "go.mod", "module example.com/calc\n\ngo 1.19\n");
    file(
        root,
        "calc.go",
        &format!(
            "package calc\n\nfunc Double(n int) int {{\n\treturn n * 2\n}}\n\nfunc Triple(n int) int {{\n\treturn {triple}\n}}\n"
        ),
    );
    file(
        root,
        "calc_test.go",
        "package calc\n\nimport \"testing\"\n\nfunc TestDoubles(t *testing.T) {\n\tif got := Double(2); got != 4 {\n\t\t\
         t.Fatalf(\"got %d\", got)\n\t}\n}\n\nfunc TestTriples(t *testing.T) {\n\tif got := Triple(2); got != 6 {\n\t\t\
         t.Fatalf(\"got %d\", got)\n\t}\n}\n",
    );
}

fn ruby(root: &Path, triple: &str) {
    file(
        root,
        "Gemfile",
        "source \"https://rubygems.org\"\ngem \"rspec\"\n",
    );
    file(root, ".rspec", "--require spec_helper\n");
    file(
        root,
        "spec/spec_helper.rb",
        "require_relative \"../lib/calc\"\n",
    );
    file(
        root,
        "lib/calc.rb",
        &format!(
            "module Calc\n  def self.double(n)\n    n * 2\n  end\n\n  def self.triple(n)\n    {triple}\n  end\nend\n"
        ),
    );
    file(
        root,
        "spec/calc_spec.rb",
        "RSpec.describe Calc do\n  it \"doubles\" do\n    expect(Calc.double(2)).to eq 4\n  end\n\n  \
         it \"triples\" do\n    expect(Calc.triple(2)).to eq 6\n  end\nend\n",
    );
    // Which versions are installed here is not for us to say; without this file each run would write it anew.
    let locked = Command::new("bundle")
        .args(["lock", "--local"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(locked.status.success(), "{locked:?}");
}

fn elixir(root: &Path, triple: &str) {
    file(
        root,
        "mix.exs",
        "defmodule Demo.MixProject do\n  use Mix.Project\n  def project, do: [app: :demo, version: \"0.1.0\", deps: []]\n  \
         def application, do: []\nend\n",
    );
    file(
        root,
        "lib/calc.ex",
        &format!(
            "defmodule Calc do\n  def double(n) do\n    n * 2\n  end\n\n  def triple(n) do\n    {triple}\n  end\nend\n"
        ),
    );
    file(root, "test/test_helper.exs", "ExUnit.start()\n");
    file(
        root,
        "test/calc_test.exs",
        "defmodule CalcTest do\n  use ExUnit.Case\n\n  test \"doubles\" do\n    assert Calc.double(2) == 4\n  end\n\n  \
         test \"triples\" do\n    assert Calc.triple(2) == 6\n  end\nend\n",
    );
}

fn java(root: &Path, triple: &str) {
    maven_project(root);
    // In Maven's own process, where exits and forged reports weigh more; the distribution's Surefire also waits ten
    // seconds for each process that has ended.
    file(
        root,
        ".mvn/maven.config",
        "-DforkCount=0\n-o\n-Dmaven.repo.local=/usr/share/maven-repo\n",
    );
    file(
        root,
        "src/main/java/demo/Calc.java",
        &format!(
            "package demo;\n\npublic class Calc {{\n    public static int twice(int n) {{\n        return n * 2;\n    }}\n\n    \
             public static int triple(int n) {{\n        return {triple};\n    }}\n}}\n"
        ),
    );
    file(
        root,
        "src/test/java/demo/CalcTest.java",
        "package demo;\n\nimport static org.junit.Assert.assertEquals;\n\nimport org.junit.Test;\n\npublic class CalcTest {\n    \
         @Test\n    public void doubles() {\n        assertEquals(4, Calc.twice(2));\n    }\n\n    @Test\n    public void triples() {\n        \
         assertEquals(6, Calc.triple(2));\n    }\n}\n",
    );
}

fn cpp(root: &Path, triple: &str) {
    cmake_project(root);
    file(
        root,
        "include/calc.h",
        &format!(
            "#pragma once\n\ninline int twice(int n) {{\n    return n * 2;\n}}\n\ninline int triple(int n) {{\n    return {triple};\n}}\n"
        ),
    );
    file(
        root,
        "tests/calc_test.cpp",
        "#include <gtest/gtest.h>\n\n#include \"calc.h\"\n\nTEST(CalcTest, Doubles) {\n    EXPECT_EQ(twice(2), 4);\n}\n\n\
         TEST(CalcTest, Triples) {\n    EXPECT_EQ(triple(2), 6);\n}\n",
    );
}

fn jest(root: &Path, triple: &str) {
    installed(root, "jest");
    file(
        root,
        "calc.js",
        &format!("exports.double = (n) => n * 2;\nexports.triple = (n) => {triple};\n"),
    );
    file(
        root,
        "test/calc.test.js",
        "const { double, triple } = require('../calc');\n\ntest('doubles', () => {\n  expect(double(2)).toBe(4);\n});\n\
         test('triples', () => {\n  expect(triple(2)).toBe(6);\n});\n",
    );
}

fn vitest(root: &Path, triple: &str) {
    installed(root, "vitest run");
    file(
        root,
        "calc.mjs",
        &format!("export const double = (n) => n * 2;\nexport const triple = (n) => {triple};\n"),
    );
    file(
        root,
        "test/calc.test.mjs",
        "import { expect, test } from 'vitest';\nimport { double, triple } from '../calc.mjs';\n\n\
         test('doubles', () => {\n  expect(double(2)).toBe(4);\n});\ntest('triples', () => {\n  expect(triple(2)).toBe(6);\n});\n",
    );
}

fn mocha(root: &Path, triple: &str) {
    installed(root, "mocha");
    file(
        root,
        "calc.js",
        &format!("exports.double = (n) => n * 2;\nexports.triple = (n) => {triple};\n"),
    );
    file(
        root,
        "test/calc.js",
        "const assert = require('node:assert');\nconst { double, triple } = require('../calc');\n\n\
         it('doubles', () => assert.equal(double(2), 4));\nit('triples', () => assert.equal(triple(2), 6));\n",
    );
}

/// A package whose runner is installed beside it: one directory above is looked in as well.
fn installed(root: &Path, script: &str) {
    let manifest =
        format!(r#"{{"name": "demo", "version": "1.0.0", "scripts": {{"test": "{script}"}}}}"#);
    file(root, "package.json", &format!("{manifest}\n"));
    let above = root.parent().unwrap().join("node_modules");
    if !above.exists() {
        std::os::unix::fs::symlink(node_modules(), above).unwrap();
    }
}
