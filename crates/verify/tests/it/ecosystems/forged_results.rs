//! Code under test that prints a summary without failures and exits with 0, while a test would have failed.
//! Each forgery is first shown to fool the plain command.

use std::path::Path;
use std::process::{Command, Stdio};

use supervisor_verify::{Outcome, TestRun};

use supervisor_test_support::programs::require;
use supervisor_test_support::suites::{file, run, rust_manifest};

/// The plain command must pass, otherwise nothing is forged.
fn assert_fools(root: &Path, command: &[&str]) {
    let mut plain = Command::new(command[0]);
    for (name, _) in std::env::vars_os().filter(|(n, _)| n.to_string_lossy().starts_with("CARGO_"))
    {
        if name != "CARGO_HOME" {
            plain.env_remove(name);
        }
    }
    let output = plain
        .args(&command[1..])
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "the forgery does not work: {output:?}"
    );
}

fn assert_not_green(seen: &TestRun) {
    assert!(!seen.outcome().is_passed(), "{seen:#?}");
    assert!(
        matches!(seen.outcome(), Outcome::Unclear { .. } | Outcome::Failed),
        "{seen:#?}"
    );
}

#[test]
fn forged_rust_summary_is_not_green() {
    let dir = tempfile::tempdir().unwrap();
    rust_manifest(dir.path());
    file(
        dir.path(),
        "src/lib.rs",
        r#"use std::io::Write;
pub fn add(_: i32, _: i32) -> i32 {
    let mut out = std::io::stdout();
    out.write_all(b"test wrong ... ok\ntest right ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n").unwrap();
    out.flush().unwrap();
    std::process::exit(0)
}
"#,
    );
    file(
        dir.path(),
        "tests/sums.rs",
        "#[test]\nfn right() {}\n\n#[test]\nfn wrong() {\n    assert_eq!(demo::add(1, 2), 4);\n}\n",
    );
    assert_fools(dir.path(), &["cargo", "test"]);
    assert_not_green(&run(dir.path()));
}

#[test]
#[ignore = "needs pytest"]
fn forged_python_summary_is_not_green() {
    require(&["pytest"]);
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "pytest.ini", "[pytest]\n");
    file(dir.path(), "conftest.py", "");
    file(
        dir.path(),
        "calc.py",
        "import os\n\ndef add(a, b):\n    os.write(1, b'==== 2 passed in 0.01s ====\\n')\n    os._exit(0)\n",
    );
    file(
        dir.path(),
        "test_calc.py",
        "from calc import add\n\ndef test_right():\n    pass\n\ndef test_wrong():\n    assert add(1, 2) == 4\n",
    );
    assert_fools(dir.path(), &["pytest"]);
    assert_not_green(&run(dir.path()));
}

#[test]
#[ignore = "needs node and npm"]
fn forged_node_summary_is_not_green() {
    require(&["node", "npm"]);
    // At once, and after a first result has been reported.
    for pause in ["", "await new Promise((done) => setTimeout(done, 50));"] {
        let dir = tempfile::tempdir().unwrap();
        file(
            dir.path(),
            "package.json",
            "{\"name\": \"demo\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node --test\"}}",
        );
        file(
            dir.path(),
            "calc.js",
            "exports.add = () => {\n  process.stdout.write('# tests 2\\n# pass 2\\n# fail 0\\n');\n  process.exit(0);\n};\n",
        );
        file(
            dir.path(),
            "test/calc.test.js",
            &format!(
                "const test = require('node:test');\nconst assert = require('node:assert');\nconst {{ add }} = require('../calc');\n\
                 test('right', async () => {{ {pause} }});\ntest('wrong', async () => {{ {pause} assert.equal(add(1, 2), 4); }});\n"
            ),
        );
        assert_fools(dir.path(), &["npm", "test"]);
        assert_not_green(&run(dir.path()));
    }
}

#[test]
#[ignore = "needs go"]
fn forged_go_summary_is_not_green() {
    require(&["go"]);
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "go.mod", "module example.com/demo\n\ngo 1.19\n");
    file(
        dir.path(),
        "calc.go",
        "package calc\n\nimport (\n\t\"fmt\"\n\t\"syscall\"\n)\n\nfunc Add(a, b int) int {\n\t\
         fmt.Print(\"--- PASS: TestWrong (0.00s)\\nPASS\\n\")\n\tsyscall.Exit(0)\n\treturn a + b\n}\n",
    );
    file(
        dir.path(),
        "calc_test.go",
        "package calc\n\nimport \"testing\"\n\nfunc TestRight(t *testing.T) {}\n\nfunc TestWrong(t *testing.T) {\n\t\
         if Add(1, 2) != 4 {\n\t\tt.Fatal(\"not 4\")\n\t}\n}\n",
    );
    assert_fools(dir.path(), &["go", "test", "./..."]);
    assert_not_green(&run(dir.path()));
}

#[test]
#[ignore = "needs bundle and rspec"]
fn early_exit_in_ruby_is_not_green() {
    require(&["bundle", "rspec"]);
    let dir = tempfile::tempdir().unwrap();
    file(
        dir.path(),
        "Gemfile",
        "source \"https://rubygems.org\"\ngem \"rspec\"\n",
    );
    file(
        dir.path(),
        "spec/calc_spec.rb",
        "def add(_, _)\n  puts \"2 examples, 0 failures\"\n  exit!(0)\nend\n\nRSpec.describe \"calc\" do\n  it(\"is right\") {}\n  \
         it(\"is wrong\") { expect(add(1, 2)).to eq 4 }\nend\n",
    );
    assert_fools(dir.path(), &["bundle", "exec", "rspec"]);
    assert_not_green(&run(dir.path()));
}

#[test]
#[ignore = "needs mix and elixir"]
fn early_exit_in_elixir_is_not_green() {
    require(&["mix", "elixir"]);
    let dir = tempfile::tempdir().unwrap();
    file(
        dir.path(),
        "mix.exs",
        "defmodule Demo.MixProject do\n  use Mix.Project\n  def project, do: [app: :demo, version: \"0.1.0\"]\nend\n",
    );
    file(
        dir.path(),
        "lib/calc.ex",
        "defmodule Calc do\n  def add(_, _) do\n    IO.puts(\"2 tests, 0 failures\")\n    System.halt(0)\n  end\nend\n",
    );
    file(dir.path(), "test/test_helper.exs", "ExUnit.start()\n");
    file(
        dir.path(),
        "test/calc_test.exs",
        "defmodule CalcTest do\n  use ExUnit.Case\n  test \"right\", do: assert(true)\n  test \"wrong\", do: assert(Calc.add(1, 2) == 4)\nend\n",
    );
    assert_fools(dir.path(), &["mix", "test"]);
    assert_not_green(&run(dir.path()));
}
