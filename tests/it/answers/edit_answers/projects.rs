//! One little project in each of six languages: `double` is wrong, and one line makes it right. The code has quotes and
//! indentation, which is what answers get wrong.

/// A project and its change.
pub(crate) struct LanguageProject {
    pub(crate) needs: &'static [&'static str],
    /// The word for a code fence.
    pub(crate) language: &'static str,
    pub(crate) comment: &'static str,
    pub(crate) files: &'static [(&'static str, &'static str)],
    pub(crate) code_path: &'static str,
    pub(crate) test_path: &'static str,
    /// The line that is wrong, without its indentation.
    pub(crate) old_line: &'static str,
    pub(crate) right_line: &'static str,
    pub(crate) wrong_line: &'static str,
}

impl LanguageProject {
    pub(crate) fn text(&self, path: &str) -> &'static str {
        self.files
            .iter()
            .find(|(name, _)| *name == path)
            .unwrap_or_else(|| panic!("no {path}"))
            .1
    }

    pub(crate) fn old(&self) -> &'static str {
        self.text(self.code_path)
    }

    pub(crate) fn with(&self, line: &str) -> String {
        let old = self.old();
        assert_eq!(old.matches(self.old_line).count(), 1, "{}", self.language);
        old.replace(self.old_line, line)
    }
}

pub(crate) const ALL: [&LanguageProject; 6] = [&RUST, &PYTHON, &NODE, &GO, &RUBY, &ELIXIR];

pub(crate) static RUST: LanguageProject = LanguageProject {
    needs: &["cargo"],
    language: "rust",
    comment: "//",
    files: &[
        (
            "Cargo.toml",
            "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
        ),
        (
            "src/lib.rs",
            "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\n/// Says \"twice\" in numbers.\npub fn double(n: i32) -> i32 {\n    let sum = n + 1;\n    sum\n}\n",
        ),
        (
            "tests/double.rs",
            "#[test]\nfn adds() {\n    assert_eq!(demo::add(1, 2), 3);\n}\n\n#[test]\nfn doubles() {\n    assert_eq!(demo::double(1200), 2400);\n}\n",
        ),
    ],
    code_path: "src/lib.rs",
    test_path: "tests/double.rs",
    old_line: "let sum = n + 1;",
    right_line: "let sum = n + n;",
    wrong_line: "let sum = n + 3;",
};

pub(crate) static PYTHON: LanguageProject = LanguageProject {
    needs: &["python3", "pytest"],
    language: "python",
    comment: "#",
    files: &[
        (
            "pyproject.toml",
            "[project]\nname = \"demo\"\nversion = \"0.1.0\"\n",
        ),
        ("conftest.py", ""),
        (
            "calc.py",
            "def add(a, b):\n    return a + b\n\n\ndef double(n):\n    # Says \"twice\" in numbers.\n    total = n + 1\n    return total\n",
        ),
        (
            "tests/test_calc.py",
            "import calc\n\n\ndef test_adds():\n    assert calc.add(1, 2) == 3\n\n\ndef test_doubles():\n    assert calc.double(1200) == 2400\n",
        ),
    ],
    code_path: "calc.py",
    test_path: "tests/test_calc.py",
    old_line: "total = n + 1",
    right_line: "total = n + n",
    wrong_line: "total = n + 3",
};

pub(crate) static NODE: LanguageProject = LanguageProject {
    needs: &["node", "npm"],
    language: "javascript",
    comment: "//",
    files: &[
        (
            "package.json",
            "{\"name\": \"demo\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node --test\"}}\n",
        ),
        (
            "lib/calc.js",
            "exports.add = (a, b) => a + b;\n\n// Says \"twice\" in numbers.\nexports.double = (n) => {\n  const sum = n + 1;\n  return sum;\n};\n",
        ),
        (
            "test/calc.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\nconst calc = require('../lib/calc');\n\ntest('adds', () => {\n  assert.equal(calc.add(1, 2), 3);\n});\n\ntest('doubles', () => {\n  assert.equal(calc.double(1200), 2400);\n});\n",
        ),
    ],
    code_path: "lib/calc.js",
    test_path: "test/calc.test.js",
    old_line: "const sum = n + 1;",
    right_line: "const sum = n + n;",
    wrong_line: "const sum = n + 3;",
};

pub(crate) static GO: LanguageProject = LanguageProject {
    needs: &["go"],
    language: "go",
    comment: "//",
    files: &[
        ("go.mod", "module example.com/demo\n\ngo 1.19\n"),
        (
            "calc.go",
            "package calc\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n\n// Double says \"twice\" in numbers.\nfunc Double(n int) int {\n\tsum := n + 1\n\treturn sum\n}\n",
        ),
        (
            "calc_test.go",
            "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(1, 2); got != 3 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n}\n\nfunc TestDouble(t *testing.T) {\n\tif got := Double(1200); got != 2400 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n}\n",
        ),
    ],
    code_path: "calc.go",
    test_path: "calc_test.go",
    old_line: "sum := n + 1",
    right_line: "sum := n + n",
    wrong_line: "sum := n + 3",
};

pub(crate) static RUBY: LanguageProject = LanguageProject {
    needs: &["bundle", "rspec"],
    language: "ruby",
    comment: "#",
    files: &[
        (
            "Gemfile",
            "source \"https://rubygems.org\"\ngem \"rspec\"\n",
        ),
        (
            "lib/calc.rb",
            "module Calc\n  def self.add(a, b)\n    a + b\n  end\n\n  # Says \"twice\" in numbers.\n  def self.double(n)\n    sum = n + 1\n    sum\n  end\nend\n",
        ),
        (
            "spec/calc_spec.rb",
            "require_relative \"../lib/calc\"\n\nRSpec.describe Calc do\n  it \"adds\" do\n    expect(Calc.add(1, 2)).to eq 3\n  end\n\n  it \"doubles\" do\n    expect(Calc.double(1200)).to eq 2400\n  end\nend\n",
        ),
    ],
    code_path: "lib/calc.rb",
    test_path: "spec/calc_spec.rb",
    old_line: "sum = n + 1",
    right_line: "sum = n + n",
    wrong_line: "sum = n + 3",
};

pub(crate) static ELIXIR: LanguageProject = LanguageProject {
    needs: &["mix", "elixir"],
    language: "elixir",
    comment: "#",
    files: &[
        (
            "mix.exs",
            "defmodule Demo.MixProject do\n  use Mix.Project\n  def project, do: [app: :demo, version: \"0.1.0\", deps: []]\n  def application, do: []\nend\n",
        ),
        (
            "lib/calc.ex",
            "defmodule Calc do\n  def add(a, b) do\n    a + b\n  end\n\n  # Says \"twice\" in numbers.\n  def double(n) do\n    sum = n + 1\n    sum\n  end\nend\n",
        ),
        ("test/test_helper.exs", "ExUnit.start()\n"),
        (
            "test/calc_test.exs",
            "defmodule CalcTest do\n  use ExUnit.Case\n\n  test \"adds\" do\n    assert Calc.add(1, 2) == 3\n  end\n\n  test \"doubles\" do\n    assert Calc.double(1200) == 2400\n  end\nend\n",
        ),
    ],
    code_path: "lib/calc.ex",
    test_path: "test/calc_test.exs",
    old_line: "sum = n + 1",
    right_line: "sum = n + n",
    wrong_line: "sum = n + 3",
};
