//! Build tools believe file times: after an edit, and after its restore, what is on disk is what runs.

use std::path::Path;
use std::process::Command;

use supervisor_test_support::programs::require;
use supervisor_test_support::project::TestProject;
use supervisor_test_support::suites::{file, run};
use supervisor_verify::Outcome;
use supervisor_workspace::{Edit, Scope};

fn change(path: &str, search: &str, replace: &str) -> [Edit; 1] {
    [Edit::Change {
        path: path.into(),
        search: search.into(),
        replace: replace.into(),
    }]
}

/// What a program prints, run in the project with bytecode writing on.
fn prints(root: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .env_remove("PYTHONDONTWRITEBYTECODE")
        .env_remove("PYTHONPYCACHEPREFIX")
        .env("CARGO_TARGET_DIR", root.join("target"))
        .env("GOFLAGS", "-mod=mod")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test]
async fn cargo_runs_the_restored_source() {
    let fixture = TestProject::with(&[
        (
            "Cargo.toml",
            "[package]\nname = \"stale\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n",
        ),
        ("src/main.rs", "fn main() { println!(\"{}\", 41); }\n"),
    ]);
    let run = || prints(&fixture.root(), "cargo", &["run", "-q", "--offline"]);
    assert_eq!(run(), "41");
    let mut lease = fixture.lease().await;
    for _ in 0..2 {
        let mut armed = lease.take_snapshot().unwrap();
        armed
            .apply(&change("src/main.rs", "41", "42"), &|_| Ok(()))
            .unwrap();
        assert_eq!(run(), "42");
        (lease, _) = armed.restore(Scope::Applied).unwrap();
        assert_eq!(run(), "41");
    }
}

#[tokio::test]
#[ignore = "needs python3"]
async fn python_runs_the_source_on_disk() {
    require(&["python3"]);
    let fixture = TestProject::with(&[("module.py", "X = 1\n")]);
    let run = || {
        prints(
            &fixture.root(),
            "python3",
            &["-c", "import module; print(module.X)"],
        )
    };
    assert_eq!(run(), "1");
    assert!(
        fixture.root().join("__pycache__").exists(),
        "bytecode must be written for this to mean anything"
    );
    let mut lease = fixture.lease().await;
    for round in 0..3 {
        let mut armed = lease.take_snapshot().unwrap();
        armed
            .apply(&change("module.py", "1", "2"), &|_| Ok(()))
            .unwrap();
        assert_eq!(run(), "2", "an edit of the same size, round {round}");
        let scope = if round == 2 {
            // An agent that forges the time and deletes its traces.
            std::fs::remove_file(fixture.root().join("module.py")).unwrap();
            Scope::Everything
        } else {
            Scope::Applied
        };
        (lease, _) = armed.restore(scope).unwrap();
        assert_eq!(run(), "1", "its restore, round {round}");
    }
    // A file that one tier made and the next makes anew, with the same size.
    for value in ["3", "4", "5"] {
        let mut armed = lease.take_snapshot().unwrap();
        let contents = format!("Y = {value}\n").into_bytes();
        armed
            .apply(
                &[Edit::Create {
                    path: "made.py".into(),
                    contents,
                }],
                &|_| Ok(()),
            )
            .unwrap();
        assert_eq!(
            prints(
                &fixture.root(),
                "python3",
                &["-c", "import made; print(made.Y)"]
            ),
            value
        );
        (lease, _) = armed.restore(Scope::Applied).unwrap();
    }
}

#[tokio::test]
#[ignore = "needs go"]
async fn go_runs_the_source_on_disk() {
    require(&["go"]);
    let fixture = TestProject::with(&[
        ("go.mod", "module stale\n\ngo 1.21\n"),
        (
            "main.go",
            "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(41) }\n",
        ),
    ]);
    let run = || prints(&fixture.root(), "go", &["run", "."]);
    assert_eq!(run(), "41");
    let mut armed = fixture.arm().await;
    armed
        .apply(&change("main.go", "41", "42"), &|_| Ok(()))
        .unwrap();
    assert_eq!(run(), "42");
    armed.restore(Scope::Applied).unwrap();
    assert_eq!(run(), "41");
}

#[test]
#[ignore = "needs mix and elixir"]
fn mix_runs_the_source_on_disk() {
    require(&["mix", "elixir"]);
    let dir = tempfile::tempdir().unwrap();
    let project = "defmodule Demo.MixProject do\n  use Mix.Project\n  def project, do: [app: :demo, version: \"0.1.0\"]\nend\n";
    file(dir.path(), "mix.exs", project);
    file(
        dir.path(),
        "lib/calc.ex",
        "defmodule Calc do\n  def triple(n), do: n * 3\nend\n",
    );
    file(dir.path(), "test/test_helper.exs", "ExUnit.start()\n");
    let test = "defmodule CalcTest do\n  use ExUnit.Case\n  test \"triples\", do: assert(Calc.triple(2) == 6)\nend\n";
    file(dir.path(), "test/calc_test.exs", test);
    assert!(run(dir.path()).outcome().is_passed());
    // As if it had been written in the very second of the compilation.
    let compiled = dir
        .path()
        .join("_build/test/lib/demo/.mix/compile.elixir")
        .metadata()
        .unwrap()
        .modified()
        .unwrap();
    file(
        dir.path(),
        "lib/calc.ex",
        "defmodule Calc do\n  def triple(n), do: n + n\nend\n",
    );
    std::fs::File::open(dir.path().join("lib/calc.ex"))
        .unwrap()
        .set_modified(compiled)
        .unwrap();
    let seen = run(dir.path());
    assert_eq!(seen.outcome(), &Outcome::Failed, "{seen:#?}");
}
