//! `falsify`: cost of running tests against falsified code, per language, as a ratio to one run of
//! the same tests in the same call. Uses the real runners on a small project each and reports the
//! ones that are not installed. Three falsified states follow a green, so 3.0 is the minimum if
//! every run costs the same.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

const ROUNDS: usize = 3;

/// A project with one failing test, and the code that makes it pass.
struct RedProject {
    language: &'static str,
    /// Command that succeeds if the runner is installed.
    needs: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
    test: &'static str,
    code: (&'static str, &'static str),
}

const PROJECTS: &[RedProject] = &[
    RedProject {
        language: "rust",
        needs: &["cargo", "--version"],
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"thrice\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
            ),
            ("src/lib.rs", "pub fn triple(n: i32) -> i32 {\n    n\n}\n"),
            (
                "tests/sums.rs",
                "#[test]\nfn triples() {\n    assert_eq!(thrice::triple(2), 6);\n}\n",
            ),
        ],
        test: "tests/sums.rs",
        code: (
            "src/lib.rs",
            "pub fn triple(n: i32) -> i32 {\n    n * 3\n}\n",
        ),
    },
    RedProject {
        language: "python",
        needs: &["pytest", "--version"],
        files: &[
            (
                "pyproject.toml",
                "[project]\nname = \"thrice\"\nversion = \"0.1.0\"\n",
            ),
            ("conftest.py", ""),
            ("calc.py", "def triple(n):\n    return n\n"),
            (
                "tests/test_calc.py",
                "from calc import triple\n\n\ndef test_triples():\n    assert triple(2) == 6\n",
            ),
        ],
        test: "tests/test_calc.py",
        code: ("calc.py", "def triple(n):\n    return n * 3\n"),
    },
    RedProject {
        language: "javascript",
        needs: &["node", "--version"],
        files: &[
            (
                "package.json",
                "{\"name\": \"thrice\", \"scripts\": {\"test\": \"node --test\"}}\n",
            ),
            ("calc.js", "exports.triple = (n) => n;\n"),
            (
                "test/calc.test.js",
                "const test = require('node:test');\nconst assert = require('node:assert');\n\
                 const { triple } = require('../calc');\n\ntest('triples', () => {\n  assert.equal(triple(2), 6);\n});\n",
            ),
        ],
        test: "test/calc.test.js",
        code: ("calc.js", "exports.triple = (n) => n * 3;\n"),
    },
    RedProject {
        language: "go",
        needs: &["go", "version"],
        files: &[
            ("go.mod", "module example.com/thrice\n\ngo 1.19\n"),
            (
                "calc.go",
                "package calc\n\nfunc Triple(n int) int {\n\treturn n\n}\n",
            ),
            (
                "calc_test.go",
                "package calc\n\nimport \"testing\"\n\nfunc TestTriples(t *testing.T) {\n\tif got := Triple(2); got != 6 {\n\t\t\
                 t.Fatalf(\"got %d\", got)\n\t}\n}\n",
            ),
        ],
        test: "calc_test.go",
        code: (
            "calc.go",
            "package calc\n\nfunc Triple(n int) int {\n\treturn n * 3\n}\n",
        ),
    },
    RedProject {
        language: "ruby",
        needs: &["rspec", "--version"],
        files: &[
            (".rspec", "--require spec_helper\n"),
            ("spec/spec_helper.rb", "require_relative \"../calc\"\n"),
            ("calc.rb", "def triple(n)\n  n\nend\n"),
            (
                "spec/calc_spec.rb",
                "RSpec.describe \"triple\" do\n  it \"triples\" do\n    expect(triple(2)).to eq 6\n  end\nend\n",
            ),
        ],
        test: "spec/calc_spec.rb",
        code: ("calc.rb", "def triple(n)\n  n * 3\nend\n"),
    },
    RedProject {
        language: "elixir",
        needs: &["mix", "--version"],
        files: &[
            (
                "mix.exs",
                "defmodule Thrice.MixProject do\n  use Mix.Project\n  def project, do: [app: :thrice, version: \"0.1.0\", deps: []]\n\
                 end\n",
            ),
            (
                "lib/calc.ex",
                "defmodule Calc do\n  def triple(n), do: n\nend\n",
            ),
            ("test/test_helper.exs", "ExUnit.start()\n"),
            (
                "test/calc_test.exs",
                "defmodule CalcTest do\n  use ExUnit.Case\n\n  test \"triples\" do\n    assert Calc.triple(2) == 6\n  end\nend\n",
            ),
        ],
        test: "test/calc_test.exs",
        code: (
            "lib/calc.ex",
            "defmodule Calc do\n  def triple(n), do: n * 3\nend\n",
        ),
    },
];

pub(crate) fn run() {
    println!("language      one run   falsified   ratio to one run");
    for project in PROJECTS {
        let [program, version] = project.needs else {
            continue;
        };
        let is_installed = Command::new(program)
            .arg(version)
            .stdin(Stdio::null())
            .output()
            .is_ok_and(|o| o.status.success());
        if !is_installed {
            println!(
                "{:<10} SKIPPED: `{program}` is not installed",
                project.language
            );
            continue;
        }
        let mut costs: Vec<FalsifiedCost> = (0..ROUNDS).filter_map(|_| measure(project)).collect();
        costs.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
        match costs.get(costs.len() / 2) {
            Some(cost) => println!(
                "{:<10} {:>7} ms  {:>7} ms   {:.2}",
                project.language,
                cost.one_run.as_millis(),
                cost.falsified.as_millis(),
                cost.ratio()
            ),
            None => println!("{:<10} was not accepted", project.language),
        }
    }
}

struct FalsifiedCost {
    one_run: Duration,
    falsified: Duration,
}

impl FalsifiedCost {
    fn ratio(&self) -> f64 {
        self.falsified.as_secs_f64() / self.one_run.as_secs_f64().max(1e-3)
    }
}

/// Runs one green with a recorded answer and takes the time of each progress line.
fn measure(project: &RedProject) -> Option<FalsifiedCost> {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project
        .files
        .iter()
        .for_each(|(path, text)| write(&root.join(path), text));
    let (path, code) = project.code;
    let edits = json!([{"path": path, "action": "replace", "content": code}]);
    write(
        &dir.path().join("answers.jsonl"),
        &format!(
            "{}\n",
            json!({"model": "recorded", "answer": {"edits": edits}})
        ),
    );
    let settings = format!(
        "default_chain = [\"recorded\"]\nverifier = \"none\"\nattempts_per_tier = 1\n[skills.tdd]\nchain = [\"recorded\"]\n\
         [backends.near]\nkind = \"replay\"\ntier = \"local\"\nfile = \"{}/answers.jsonl\"\nmodels = [\"recorded\"]\n",
        dir.path().display()
    );
    write(&dir.path().join("models.toml"), &settings);
    let mut child = Command::new(super::program())
        .args([
            "call",
            "tdd_green",
            "--json",
            "-",
            "--output",
            "json",
            "--config",
        ])
        .arg(dir.path().join("models.toml"))
        .env("SUPERVISOR_STATE_DIR", dir.path().join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let arguments = json!({"project_root": root, "test_path": project.test}).to_string();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(arguments.as_bytes())
        .unwrap();
    let lines: Vec<(Instant, String)> = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .map(|l| (Instant::now(), l))
        .collect();
    let ended = Instant::now();
    if !child.wait().unwrap().success() {
        return None;
    }
    let at = lines
        .iter()
        .position(|(_, line)| line.contains("falsified"))?;
    // The last test run before that: one line starts it, and the next reports its duration.
    let finished = (1..at).rev().find(|line| lines[*line].1.contains(" s)"))?;
    let one_run = lines[finished].0 - lines[finished - 1].0;
    Some(FalsifiedCost {
        one_run,
        falsified: ended - lines[at].0,
    })
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
