//! `supervisor watch` in tmux, beside a real red → green → refactor of another process. With `SUPERVISOR_UPDATE_DOCS=1`
//! one of the screens becomes the picture in `docs/watch.txt`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use supervisor_test_support::programs::require;

use serde_json::json;

use crate::support::mcp_session::until;
use crate::support::scenario::{Scenario, creates, replaces};
use crate::support::tasks::ADDED;

/// A tmux server of our own, ended with this.
struct Tmux {
    dir: tempfile::TempDir,
}

impl Tmux {
    fn run(&self, arguments: &[&str]) -> String {
        let socket = self.dir.path().join("socket");
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(socket)
            .args(["-f", "/dev/null", "-u"])
            .args(arguments)
            .env_remove("TMUX");
        let output = command
            .env("TERM", "xterm-256color")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts `watch` in a window of this size.
    fn watch(&self, name: &str, (columns, rows): (u16, u16), state: &Path) {
        let state = format!("SUPERVISOR_STATE_DIR={}", state.display());
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let watch = ["env", &state, env!("CARGO_BIN_EXE_supervisor"), "watch"];
        self.run(
            &[
                &["new-session", "-d", "-s", name, "-x", &columns, "-y", &rows][..],
                &watch,
            ]
            .concat(),
        );
    }

    fn screen(&self, name: &str) -> String {
        self.run(&["capture-pane", "-p", "-t", name])
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .arg("-S")
            .arg(self.dir.path().join("socket"))
            .arg("kill-server")
            .output();
    }
}

/// One criterion: the first model writes the test, a wrong answer and a refactoring, the second one the right answer.
fn cycle() -> Scenario {
    let old = "import unittest\n\nfrom add import add\n\n\nclass AddTest(unittest.TestCase):\n    def test_adds(self):\n        \
               self.assertEqual(add(1, 2), 3)\n";
    let mut scenario = Scenario::chain(
        &["small", "large"],
        &[("add.py", ADDED), ("test_add.py", old)],
    );
    let test = "import unittest\n\nfrom add import sub\n\n\nclass SubTest(unittest.TestCase):\n    def test_subtracts(self):\n        \
                self.assertEqual(sub(5, 2), 3)\n";
    let code = |body: &str| {
        replaces(
            "add.py",
            &format!("{ADDED}\n\ndef sub(a, b):\n    return {body}\n"),
        )
    };
    for (model, answer) in [
        ("small", creates("test_sub.py", test)),
        ("small", code("a")),
        ("large", code("a - b")),
        ("small", code("add(a, -b)")),
    ] {
        scenario.line(&json!({"model": model, "answer": answer, "wait_ms": 800}));
    }
    scenario
}

#[test]
#[ignore = "needs tmux and python3"]
fn cycle_of_another_process_is_followed_in_tmux() {
    require(&["tmux", "python3"]);
    let scenario = cycle();
    let tmux = Tmux {
        dir: tempfile::tempdir().unwrap(),
    };
    let sizes = [("small", (80, 24)), ("large", (200, 60))];
    for (name, size) in sizes {
        tmux.watch(name, size, &scenario.state.path().join("state"));
        until("an empty screen", || {
            tmux.screen(name).contains("No call is at work")
        });
    }
    let call = [
        "call",
        "tdd",
        "--arg",
        "criteria=sub(a, b) gives the difference",
        "--arg",
        "refactor=true",
    ];
    let mut work = scenario.command();
    work.args(call)
        .args(["--arg", "test_cmd=python3 -m unittest -v"])
        .current_dir(scenario.project.path());
    let mut work = work
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut screens = [Vec::new(), Vec::new()];
    let code = loop {
        for (seen, (name, _)) in screens.iter_mut().zip(sizes) {
            seen.push(tmux.screen(name));
        }
        if let Some(status) = work.try_wait().unwrap() {
            break status.code();
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(code, Some(0), "the cycle is accepted");
    for (seen, (name, (columns, rows))) in screens.iter_mut().zip(sizes) {
        until("the last call on the screen", || {
            seen.push(tmux.screen(name));
            seen.last().is_some_and(|screen| {
                screen.contains("tdd_refactor") && screen.contains("No call is at work")
            })
        });
        for words in [
            "tdd_red",
            "tdd_green",
            "tdd_refactor",
            "small rejected",
            "tier 2/2 large",
        ] {
            assert!(
                seen.iter().any(|screen| screen.contains(words)),
                "{name}: `{words}` was never shown"
            );
        }
        for screen in seen.iter() {
            assert!(screen.lines().count() <= rows.into(), "{screen}");
            assert!(
                screen
                    .lines()
                    .all(|line| line.chars().count() <= columns.into()),
                "{screen}"
            );
        }
    }
    if std::env::var_os("SUPERVISOR_UPDATE_DOCS").is_some() {
        let telling = |screen: &&String| {
            screen.contains("small rejected") && screen.contains("tier 2/2 large")
        };
        let picture = screens[0].iter().find(telling).unwrap();
        // A name as long as that of the temporary directory.
        let name = scenario
            .project
            .path()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let picture = picture.replace(&name, "calculator");
        std::fs::write(
            concat!(env!("CARGO_MANIFEST_DIR"), "/docs/watch.txt"),
            picture,
        )
        .unwrap();
    }
}
