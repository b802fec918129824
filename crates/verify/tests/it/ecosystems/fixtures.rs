//! The smallest project of each kind, in five states. None needs the network.

use std::path::Path;

use supervisor_test_support::suites::{
    GTEST, MAVEN_PARTS, cmake_project, file, maven_project, rust_manifest,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Green,
    OneFails,
    DoesNotBuild,
    NoTests,
    TimesOut,
}

impl Case {
    pub(super) const ALL: [Self; 5] = [
        Self::Green,
        Self::OneFails,
        Self::DoesNotBuild,
        Self::NoTests,
        Self::TimesOut,
    ];
}

pub(super) struct Fixture {
    pub(super) name: &'static str,
    pub(super) needs: &'static [&'static str],
    pub(super) write: fn(&Path, Case),
}

pub(super) static ALL: &[Fixture] = &[
    Fixture {
        name: "go",
        needs: &["go"],
        write: go,
    },
    Fixture {
        name: "node",
        needs: &["node", "npm"],
        write: node,
    },
    Fixture {
        name: "python",
        needs: &["pytest"],
        write: python,
    },
    Fixture {
        name: "rust",
        needs: &["cargo"],
        write: rust,
    },
    Fixture {
        name: "ruby",
        needs: &["bundle", "rspec"],
        write: ruby,
    },
    Fixture {
        name: "elixir",
        needs: &["mix", "elixir"],
        write: elixir,
    },
    Fixture {
        name: "java",
        needs: &["mvn", MAVEN_PARTS],
        write: java,
    },
    Fixture {
        name: "cpp",
        needs: &["cmake", "ctest", GTEST],
        write: cpp,
    },
    Fixture {
        name: "gradle",
        needs: &["gradle", MAVEN_PARTS],
        write: gradle,
    },
];

/// GoogleTest, as distributions have it.
fn cpp(root: &Path, case: Case) {
    cmake_project(root);
    file(
        root,
        "include/calc.h",
        "#pragma once\n\ninline int add(int a, int b) {\n    return a + b;\n}\n",
    );
    let adds = "TEST(CalcTest, adds) {\n    EXPECT_EQ(add(1, 2), 3);\n}\n";
    let body = match case {
        Case::NoTests => String::new(),
        Case::Green => adds.to_owned(),
        Case::OneFails => format!(
            "{adds}\n{}",
            adds.replace("adds", "wrong").replace("3)", "4)")
        ),
        Case::DoesNotBuild => adds.replace("add(1, 2)", "sub(3, 2)"),
        Case::TimesOut => {
            format!(
                "TEST(CalcTest, hangs) {{\n    std::ofstream({:?});\n    for (;;) pause();\n}}\n",
                began(root)
            )
        }
    };
    file(
        root,
        "tests/calc_test.cpp",
        &format!(
            "#include <gtest/gtest.h>\n#include <unistd.h>\n\n#include <fstream>\n\n#include \"calc.h\"\n\n{body}"
        ),
    );
}

fn java(root: &Path, case: Case) {
    maven_project(root);
    java_sources(root, case);
}

fn gradle(root: &Path, case: Case) {
    file(
        root,
        "build.gradle",
        "apply plugin: 'java'\nrepositories { maven { url 'file:///usr/share/maven-repo' } }\n\
         dependencies { testCompile 'junit:junit:4.x' }\n",
    );
    java_sources(root, case);
}

fn java_sources(root: &Path, case: Case) {
    file(
        root,
        "src/main/java/demo/Calc.java",
        "package demo;\n\npublic class Calc {\n    public static int add(int a, int b) {\n        return a + b;\n    }\n}\n",
    );
    let adds =
        "    @Test\n    public void adds() {\n        assertEquals(3, Calc.add(1, 2));\n    }\n";
    let body = match case {
        Case::NoTests => return,
        Case::Green => adds.to_owned(),
        Case::OneFails => format!(
            "{adds}\n{}",
            adds.replace("adds", "wrong").replace("(3,", "(4,")
        ),
        Case::DoesNotBuild => adds.replace("Calc.add(1, 2)", "Calc.sub(3, 2)"),
        Case::TimesOut => format!(
            "    @Test\n    public void hangs() throws Exception {{\n        \
             java.nio.file.Files.createFile(java.nio.file.Path.of({:?}));\n        new java.util.concurrent.CountDownLatch(1).await();\n    }}\n",
            began(root)
        ),
    };
    file(
        root,
        "src/test/java/demo/CalcTest.java",
        &format!(
            "package demo;\n\nimport static org.junit.Assert.assertEquals;\n\nimport org.junit.Test;\n\npublic class CalcTest {{\n{body}}}\n"
        ),
    );
}

fn began(root: &Path) -> String {
    root.join("began").display().to_string()
}

fn rust(root: &Path, case: Case) {
    rust_manifest(root);
    let library = "/// Adds.\n///\n/// ```\n/// assert_eq!(demo::add(1, 2), 3);\n/// ```\npub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n";
    let tests = match case {
        Case::Green => {
            String::from("#[test]\nfn adds() {\n    assert_eq!(demo::add(1, 2), 3);\n}\n")
        }
        Case::OneFails => String::from(
            "#[test]\nfn adds() {\n    assert_eq!(demo::add(1, 2), 3);\n}\n\n#[test]\nfn wrong() {\n    assert_eq!(demo::add(1, 2), 4);\n}\n",
        ),
        Case::DoesNotBuild => {
            String::from("#[test]\nfn subtracts() {\n    assert_eq!(demo::sub(3, 2), 1);\n}\n")
        }
        Case::NoTests => String::new(),
        Case::TimesOut => format!(
            "#[test]\nfn hangs() {{\n    std::fs::write({:?}, \"\").unwrap();\n    loop {{\n        std::thread::park();\n    }}\n}}\n",
            began(root)
        ),
    };
    file(
        root,
        "src/lib.rs",
        if case == Case::NoTests {
            "pub fn add() {}\n"
        } else {
            library
        },
    );
    file(root, "tests/sums.rs", &tests);
}

fn python(root: &Path, case: Case) {
    file(
        root,
        "pyproject.toml",
        "[project]\nname = \"demo\"\nversion = \"0.1.0\"\n",
    );
    file(root, "conftest.py", "");
    file(root, "calc.py", "def add(a, b):\n    return a + b\n");
    let tests = match case {
        Case::Green => {
            String::from("from calc import add\n\ndef test_adds():\n    assert add(1, 2) == 3\n")
        }
        Case::OneFails => String::from(
            "from calc import add\n\ndef test_adds():\n    assert add(1, 2) == 3\n\ndef test_wrong():\n    assert add(1, 2) == 4\n",
        ),
        Case::DoesNotBuild => String::from(
            "from calc import sub\n\ndef test_subtracts():\n    assert sub(3, 2) == 1\n",
        ),
        Case::NoTests => return,
        Case::TimesOut => format!(
            "import time\n\ndef test_hangs():\n    open({:?}, 'w').close()\n    while True:\n        time.sleep(60)\n",
            began(root)
        ),
    };
    file(root, "tests/test_calc.py", &tests);
}

fn node(root: &Path, case: Case) {
    file(
        root,
        "package.json",
        "{\"name\": \"demo\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node --test\"}}\n",
    );
    file(root, "calc.js", "exports.add = (a, b) => a + b;\n");
    let head = "const test = require('node:test');\nconst assert = require('node:assert');\n\
        const { add } = require('../calc');\n";
    let tests = match case {
        Case::Green => format!("{head}test('adds', () => assert.equal(add(1, 2), 3));\n"),
        Case::OneFails => format!(
            "{head}test('adds', () => assert.equal(add(1, 2), 3));\ntest('wrong', () => assert.equal(add(1, 2), 4));\n"
        ),
        Case::DoesNotBuild => {
            format!(
                "{head}const sub = require('../sub');\ntest('subtracts', () => assert.equal(sub(3, 2), 1));\n"
            )
        }
        Case::NoTests => return,
        Case::TimesOut => format!(
            "{head}test('hangs', async () => {{\n  require('node:fs').writeFileSync({:?}, '');\n  \
             setInterval(() => {{}}, 1000);\n  await new Promise(() => {{}});\n}});\n",
            began(root)
        ),
    };
    file(root, "test/calc.test.js", &tests);
}

fn go(root: &Path, case: Case) {
    file(root, "go.mod", "module example.com/demo\n\ngo 1.19\n");
    file(
        root,
        "calc.go",
        "package calc\n\nfunc Add(a, b int) int { return a + b }\n",
    );
    let head = "package calc\n\nimport \"testing\"\n\n";
    let adds =
        "func TestAdds(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal(\"not 3\")\n\t}\n}\n";
    let tests = match case {
        Case::Green => format!("{head}{}", adds.replace("TestAdds", "Test_adds")),
        Case::OneFails => format!(
            "{head}{adds}\nfunc Test_wrong(t *testing.T) {{\n\tif Add(1, 2) != 4 {{\n\t\tt.Fatal(\"not 4\")\n\t}}\n}}\n"
        ),
        Case::DoesNotBuild => {
            format!(
                "{head}func TestSubtracts(t *testing.T) {{\n\tif Sub(3, 2) != 1 {{\n\t\tt.Fatal()\n\t}}\n}}\n"
            )
        }
        Case::NoTests => return,
        Case::TimesOut => format!(
            "package calc\n\nimport (\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestHangs(t *testing.T) {{\n\t\
             os.WriteFile({:?}, nil, 0o644)\n\ttime.Sleep(time.Hour)\n}}\n",
            began(root)
        ),
    };
    file(root, "calc_test.go", &tests);
}

fn ruby(root: &Path, case: Case) {
    file(
        root,
        "Gemfile",
        "source \"https://rubygems.org\"\ngem \"rspec\"\n",
    );
    file(
        root,
        "lib/calc.rb",
        "module Calc\n  def self.add(a, b) = a + b\nend\n",
    );
    let head = "require_relative \"../lib/calc\"\n\n";
    let adds = "  it(\"adds\") { expect(Calc.add(1, 2)).to eq 3 }\n";
    let tests = match case {
        Case::Green => format!("{head}RSpec.describe Calc do\n{adds}end\n"),
        Case::OneFails => {
            format!(
                "{head}RSpec.describe Calc do\n{adds}  it(\"is wrong\") {{ expect(Calc.add(1, 2)).to eq 4 }}\nend\n"
            )
        }
        Case::DoesNotBuild => format!("{head}RSpec.describe Calculus do\n{adds}end\n"),
        Case::NoTests => return,
        Case::TimesOut => format!(
            "{head}RSpec.describe Calc do\n  it \"hangs\" do\n    File.write({:?}, \"\")\n    loop {{ sleep 60 }}\n  end\nend\n",
            began(root)
        ),
    };
    file(root, "spec/calc_spec.rb", &tests);
}

fn elixir(root: &Path, case: Case) {
    file(
        root,
        "mix.exs",
        "defmodule Demo.MixProject do\n  use Mix.Project\n  def project, do: [app: :demo, version: \"0.1.0\", deps: []]\n  def application, do: []\nend\n",
    );
    file(
        root,
        "lib/calc.ex",
        "defmodule Calc do\n  def add(a, b), do: a + b\nend\n",
    );
    file(
        root,
        "test/test_helper.exs",
        "ExUnit.start(timeout: :infinity)\n",
    );
    let head = "defmodule CalcTest do\n  use ExUnit.Case\n\n";
    let adds = "  test \"adds\" do\n    assert Calc.add(1, 2) == 3\n  end\n";
    let tests = match case {
        Case::Green => format!("{head}{adds}end\n"),
        Case::OneFails => {
            format!(
                "{head}{adds}\n  test \"is wrong\" do\n    assert Calc.add(1, 2) == 4\n  end\nend\n"
            )
        }
        Case::DoesNotBuild => {
            format!("{head}  test \"subtracts\" do\n    assert sub(3, 2) == 1\n  end\nend\n")
        }
        Case::NoTests => return,
        Case::TimesOut => format!(
            "{head}  test \"hangs\" do\n    File.write!({:?}, \"\")\n    Process.sleep(:infinity)\n  end\nend\n",
            began(root)
        ),
    };
    file(root, "test/calc_test.exs", &tests);
}
