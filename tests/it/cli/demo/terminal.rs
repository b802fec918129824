//! In a real terminal: a live line while something goes on, colours for who wants them, and a sane screen afterwards.

use std::collections::BTreeSet;
use std::process::{Command, Output};
use supervisor_test_support::programs::require;

use super::assert_story;
use super::place::{Place, masked_story};
use crate::support::mcp_session::until;

/// A terminal of 80 columns with the demo in it. Gone with its server when dropped.
struct Terminal {
    place: Place,
    socket: tempfile::TempDir,
}

impl Terminal {
    fn with_demo(variables: &[(&str, &str)]) -> Self {
        let terminal = Self {
            place: Place::new(),
            socket: tempfile::tempdir().unwrap(),
        };
        // The shell stays when the demo is over, so that the last screen can be read.
        let script = "trap : INT; \"$0\" demo; code=$?; stty -a | tr ' ' '\\n' | grep echoctl; echo \"code $code\"; read -r _";
        let mut command = terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "demo",
            "-x",
            "80",
            "-y",
            "100",
        ]);
        command.args(["sh", "-c", script, env!("CARGO_BIN_EXE_supervisor")]);
        command
            .env_clear()
            .envs(terminal.place.variables())
            .env("LC_ALL", "C.UTF-8");
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        terminal
    }

    fn tmux(&self, words: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .arg("-u")
            .arg("-S")
            .arg(self.socket.path().join("socket"))
            .args(words);
        command
    }

    fn said(&self, words: &[&str]) -> String {
        let Output { stdout, .. } = self.tmux(words).output().unwrap();
        String::from_utf8_lossy(&stdout).into_owned()
    }

    /// What a person sees.
    fn screen(&self) -> String {
        self.said(&["capture-pane", "-p", "-t", "demo"])
    }

    /// The same with its colours.
    fn painted(&self) -> String {
        self.said(&["capture-pane", "-p", "-e", "-t", "demo"])
    }

    fn wait_for(&self, what: &str) {
        until(what, || self.screen().contains(what));
    }

    /// The cursor is there again, and no line is left that would have been replaced.
    fn assert_sane(&self) {
        assert_eq!(
            self.said(&["display-message", "-p", "-t", "demo", "#{cursor_flag}"])
                .trim(),
            "1"
        );
        let screen = self.screen();
        assert!(!screen.contains(" s  tier "), "{screen}");
        assert!(
            screen.contains("\nechoctl\n"),
            "keys are shown again: {screen}"
        );
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).output();
    }
}

#[test]
#[ignore = "needs tmux"]
fn live_line_shows_progress_and_disappears() {
    require(&["tmux"]);
    let terminal = Terminal::with_demo(&[]);
    let mut seen = BTreeSet::new();
    until("the end", || {
        let screen = terminal.screen();
        let live = screen
            .lines()
            .filter_map(|line| line.split_once(" s  tier "));
        seen.extend(live.map(|(_spinner, what)| what.to_owned()));
        screen.contains("code 0")
    });
    assert!(
        seen.len() > 3
            && seen
                .iter()
                .any(|what| what.contains("· running `cargo test")),
        "{seen:?}"
    );
    assert_story(&terminal.screen());
    let painted = terminal.painted();
    for colour in [
        "\u{1b}[32maccepted",
        "\u{1b}[31mrejected",
        "\u{1b}[31mtampered",
    ] {
        assert!(painted.contains(colour), "{painted:?}");
    }
    terminal.assert_sane();
}

#[test]
#[ignore = "needs tmux"]
fn without_colour_terminal_equals_plain_output() {
    require(&["tmux"]);
    let terminal = Terminal::with_demo(&[("NO_COLOR", "1")]);
    terminal.wait_for("code 0");
    assert!(
        !terminal.painted().contains('\u{1b}'),
        "{:?}",
        terminal.painted()
    );
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/demo.txt")).unwrap();
    assert_eq!(masked_story(&terminal.screen()), masked_story(&page));
    terminal.assert_sane();
}

#[test]
#[ignore = "needs tmux"]
fn ctrl_c_restores_the_terminal() {
    require(&["tmux"]);
    let terminal = Terminal::with_demo(&[]);
    terminal.wait_for(" s  tier ");
    assert!(
        terminal
            .tmux(&["send-keys", "-t", "demo", "C-c"])
            .status()
            .unwrap()
            .success()
    );
    terminal.wait_for("code 130");
    assert!(
        terminal
            .screen()
            .contains("Cancelled. The demo's temporary project"),
        "{}",
        terminal.screen()
    );
    terminal.assert_sane();
    assert!(
        terminal.place.left().is_empty(),
        "{:?}",
        terminal.place.left()
    );
}
