//! `field`: what a user waits for in an accepted red and green: whole runs of the test suite,
//! counted by a test in it, and seconds relative to one plain run of the project's own command. One
//! server, models that answer at once, six languages.
//!
//! A red needs the suite twice, before and after. A green needs it once, because the state after
//! the red is known. The new test also runs alone.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A project whose only test takes half a second and counts its runs. `@COUNT@` is the file to
/// which it appends a byte.
struct SlowProject {
    language: &'static str,
    plain: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
    test: (&'static str, &'static str),
    code: (&'static str, &'static str),
}

const PROJECTS: [SlowProject; 6] = [
    SlowProject {
        language: "Rust",
        plain: &["cargo", "test"],
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
            ),
            ("src/lib.rs", "pub fn double(n: i32) -> i32 {\n    n\n}\n"),
            (
                "tests/old.rs",
                "#[test]\nfn old() {\n    use std::io::Write as _;\n    let mut file = std::fs::File::options().create(true).append(true).open(\"@COUNT@\").unwrap();\n    file.write_all(b\"x\").unwrap();\n    std::thread::sleep(std::time::Duration::from_millis(500));\n    assert_eq!(demo::double(0), 0);\n}\n",
            ),
        ],
        test: (
            "tests/double.rs",
            "#[test]\nfn doubles() {\n    assert_eq!(demo::double(1200), 2400);\n}\n",
        ),
        code: (
            "src/lib.rs",
            "pub fn double(n: i32) -> i32 {\n    n + n\n}\n",
        ),
    },
    SlowProject {
        language: "Python",
        plain: &["pytest"],
        files: &[
            ("pytest.ini", "[pytest]\npythonpath = .\n"),
            ("calc.py", "def double(n):\n    return n\n"),
            (
                "tests/test_old.py",
                "import time\n\nimport calc\n\n\ndef test_old():\n    with open(\"@COUNT@\", \"a\") as file:\n        file.write(\"x\")\n    time.sleep(0.5)\n    assert calc.double(0) == 0\n",
            ),
        ],
        test: (
            "tests/test_double.py",
            "import calc\n\n\ndef test_doubles():\n    assert calc.double(1200) == 2400\n",
        ),
        code: ("calc.py", "def double(n):\n    return n + n\n"),
    },
    SlowProject {
        language: "JavaScript",
        plain: &["node", "--test"],
        files: &[
            (
                "package.json",
                "{\"name\": \"demo\", \"scripts\": {\"test\": \"node --test\"}}\n",
            ),
            ("calc.js", "exports.double = (n) => n;\n"),
            (
                "test/old.test.js",
                "const test = require('node:test');\nconst assert = require('node:assert');\ntest('old', async () => {\n  require('fs').appendFileSync('@COUNT@', 'x');\n  await new Promise((done) => setTimeout(done, 500));\n  assert.equal(require('../calc').double(0), 0);\n});\n",
            ),
        ],
        test: (
            "test/double.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\ntest('doubles', () => assert.equal(require('../calc').double(1200), 2400));\n",
        ),
        code: ("calc.js", "exports.double = (n) => n + n;\n"),
    },
    SlowProject {
        language: "Go",
        plain: &["go", "test", "-count=1", "./..."],
        files: &[
            ("go.mod", "module example.com/demo\n\ngo 1.19\n"),
            (
                "calc.go",
                "package calc\n\nfunc Double(n int) int {\n\treturn n\n}\n",
            ),
            (
                "old_test.go",
                "package calc\n\nimport (\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestOld(t *testing.T) {\n\tfile, err := os.OpenFile(\"@COUNT@\", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n\tdefer file.Close()\n\tfile.WriteString(\"x\")\n\ttime.Sleep(500 * time.Millisecond)\n\tif Double(0) != 0 {\n\t\tt.Fatal(\"not nothing\")\n\t}\n}\n",
            ),
        ],
        test: (
            "double_test.go",
            "package calc\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\tif got := Double(1200); got != 2400 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n}\n",
        ),
        code: (
            "calc.go",
            "package calc\n\nfunc Double(n int) int {\n\treturn n + n\n}\n",
        ),
    },
    SlowProject {
        language: "Ruby",
        plain: &["ruby", "-Itest", "test/old_test.rb"],
        files: &[
            ("lib/calc.rb", "def double(n) = n\n"),
            (
                "test/old_test.rb",
                "require \"minitest/autorun\"\nrequire_relative \"../lib/calc\"\n\nclass OldTest < Minitest::Test\n  def test_old\n    File.write(\"@COUNT@\", \"x\", mode: \"a\")\n    sleep 0.5\n    assert_equal 0, double(0)\n  end\nend\n",
            ),
        ],
        test: (
            "test/double_test.rb",
            "require \"minitest/autorun\"\nrequire_relative \"../lib/calc\"\n\nclass DoubleTest < Minitest::Test\n  def test_doubles\n    assert_equal 2400, double(1200)\n  end\nend\n",
        ),
        code: ("lib/calc.rb", "def double(n) = n + n\n"),
    },
    SlowProject {
        language: "Elixir",
        plain: &["mix", "test"],
        files: &[
            (
                "mix.exs",
                "defmodule Demo.MixProject do\n  use Mix.Project\n  def project, do: [app: :demo, version: \"0.1.0\", deps: []]\nend\n",
            ),
            (
                "lib/calc.ex",
                "defmodule Calc do\n  def double(n), do: n\nend\n",
            ),
            ("test/test_helper.exs", "ExUnit.start()\n"),
            (
                "test/old_test.exs",
                "defmodule OldTest do\n  use ExUnit.Case\n\n  test \"old\" do\n    File.write!(\"@COUNT@\", \"x\", [:append])\n    Process.sleep(500)\n    assert Calc.double(0) == 0\n  end\nend\n",
            ),
        ],
        test: (
            "test/double_test.exs",
            "defmodule DoubleTest do\n  use ExUnit.Case\n\n  test \"doubles\" do\n    assert Calc.double(1200) == 2400\n  end\nend\n",
        ),
        code: (
            "lib/calc.ex",
            "defmodule Calc do\n  def double(n), do: n + n\nend\n",
        ),
    },
];

pub(crate) fn run() {
    println!(
        "               plain      red: seconds  × plain  whole runs    green: seconds  × plain  whole runs"
    );
    for project in &PROJECTS {
        match measure(project) {
            Ok(row) => println!("{row}"),
            Err(why) => println!("{:<12} not measured: {why}", project.language),
        }
    }
    println!("stated: at most 2 whole runs for a red, 1 for a green that follows it");
}

fn measure(project: &SlowProject) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (root, count) = (base.join("project"), base.join("counted/runs"));
    std::fs::create_dir_all(base.join("counted")).unwrap();
    for (path, text) in project.files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace("@COUNT@", count.to_str().unwrap())).unwrap();
    }
    // The first run includes the build.
    run_plain(project, &root)?;
    let plain_time = run_plain(project, &root)?;
    let runs = || std::fs::metadata(&count).map_or(0, |file| file.len());
    let mut server = Server::start(&base, project);
    let before = runs();
    let (red, red_took) = server.call(
        "tdd_red",
        &json!({"project_root": root, "spec": "double(n) is n and n"}),
    )?;
    let red_runs = runs() - before;
    let (_, green_took) = server.call("tdd_green", &red["next"]["arguments"])?;
    let green_runs = runs() - before - red_runs;
    let times = |took: Duration| took.as_secs_f64() / plain_time.as_secs_f64();
    Ok(format!(
        "{:<12} {:>5.2} s           {:>5.2} s    {:>5.1}           {red_runs}             {:>5.2} s    {:>5.1}           {green_runs}",
        project.language,
        plain_time.as_secs_f64(),
        red_took.as_secs_f64(),
        times(red_took),
        green_took.as_secs_f64(),
        times(green_took),
    ))
}

fn run_plain(project: &SlowProject, root: &Path) -> Result<Duration, String> {
    let (program, arguments) = project.plain.split_first().unwrap();
    let started = Instant::now();
    let out = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    let took = started.elapsed();
    if out.status.success() {
        Ok(took)
    } else {
        Err(format!("`{program}` fails before anything is done"))
    }
}

struct Server {
    process: Child,
    replies: BufReader<std::process::ChildStdout>,
    calls: u64,
}

impl Server {
    fn start(base: &Path, project: &SlowProject) -> Self {
        let edit = |(path, text): (&str, &str), action: &str| json!({"model": "small", "answer": {"edits": [{"path": path, "action": action, "content": text}]}});
        let answers = format!(
            "{}\n{}\n",
            edit(project.test, "create"),
            edit(project.code, "replace")
        );
        std::fs::write(base.join("answers.jsonl"), answers).unwrap();
        let settings = format!(
            "verifier = \"none\"\ndefault_chain = [\"small\"]\n[skills.tdd]\nchain = [\"small\"]\n[sandbox]\nwrite = [\"{0}/counted\"]\n\
             [backends.lab]\nkind = \"replay\"\ntier = \"local\"\nmodels = [\"small\"]\nfile = \"{0}/answers.jsonl\"\n",
            base.display()
        );
        std::fs::write(base.join("models.toml"), settings).unwrap();
        let mut process = Command::new(crate::program())
            .args(["serve", "--config"])
            .arg(base.join("models.toml"))
            .env("SUPERVISOR_STATE_DIR", base.join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let replies = BufReader::new(process.stdout.take().unwrap());
        let mut server = Self {
            process,
            replies,
            calls: 0,
        };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        server.ask("initialize", &hello);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.process.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        loop {
            let mut line = String::new();
            assert!(
                self.replies.read_line(&mut line).unwrap() > 0,
                "the server ended without a reply"
            );
            let reply: Value = serde_json::from_str(&line).unwrap();
            if reply["id"] == id {
                return reply["result"].clone();
            }
        }
    }

    /// Returns the result of an accepted call and its duration.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<(Value, Duration), String> {
        let started = Instant::now();
        let result =
            self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["structuredContent"].clone();
        let took = started.elapsed();
        if result["status"] == "pass" {
            Ok((result, took))
        } else {
            Err(format!("{tool}: {}", result["message"]))
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
