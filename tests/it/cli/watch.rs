//! `supervisor watch`: what another process does, on a real terminal and as plain lines.

use std::process::{Command, Stdio};
use std::time::Duration;

use supervisor_engine::Cause;
use supervisor_engine::event::{AttemptSummary, ChainPosition, Event, ProgressLine};
use supervisor_engine::services::{LiveHeader, LiveRecord, Recorder as _};
use supervisor_engine::session::SessionLog;
use supervisor_engine::session::live::settle;
use supervisor_workspace::state::StateDir;

use crate::support::mcp_session::until;
use crate::support::terminal::Terminal;

struct Scene {
    dir: tempfile::TempDir,
    log: SessionLog,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = SessionLog::open(&StateDir::at(dir.path().join("state")).unwrap()).unwrap();
        Self { dir, log }
    }

    /// A call of this process, which the program under test sees from outside.
    fn call(&self, skill: &str) -> Box<dyn LiveRecord> {
        self.log.show_live(&LiveHeader {
            call: String::new(),
            session_id: "s".into(),
            skill: skill.into(),
            phase: String::new(),
            project_root: "/home/me/roman".into(),
            began: jiff::Timestamp::now().to_string(),
            chain: vec!["small".into(), "large".into()],
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
        command
            .arg("watch")
            .args(arguments)
            .env_clear()
            .stdin(Stdio::null());
        command
            .env("HOME", self.dir.path())
            .env("SUPERVISOR_STATE_DIR", self.dir.path().join("state"));
        command
    }
}

fn tell(call: &dyn LiveRecord, event: Event) {
    call.on_event(&ProgressLine {
        event,
        after: Duration::from_secs(1),
        line: String::new(),
    });
    settle();
}

fn at(tier: usize, model: &str) -> ChainPosition {
    ChainPosition {
        tier,
        of: 2,
        model: model.into(),
    }
}

#[test]
fn call_is_followed_at_any_terminal_size() {
    for (rows, columns) in [(24, 80), (60, 200), (8, 20)] {
        let scene = Scene::new();
        let terminal = Terminal::start(scene.command(&[]), rows, columns);
        terminal.until("0 calls");
        let call = scene.call("tdd_green");
        tell(&*call, Event::Asking { at: at(1, "small") });
        terminal.until("tdd_green");
        let left = AttemptSummary {
            cost_usd: Some(0.5),
            diff: "+fixed\n".into(),
        };
        tell(
            &*call,
            Event::Ended {
                at: at(1, "small"),
                cause: Cause::Rejected,
                because: "\u{1b}[2Jno".into(),
                left,
            },
        );
        terminal.until("small rejected");
        tell(
            &*call,
            Event::Checking {
                at: at(2, "large"),
                what: "2 passed".into(),
            },
        );
        terminal.until("2 passed");
        if columns >= 80 {
            assert!(
                terminal.rows()[1].contains("tier 2/2 large · try 2 · $0.50"),
                "{:?}",
                terminal.rows()
            );
            terminal.until("\\u{1b}[2Jno");
        }
        drop(call);
        terminal.until("ended");
        terminal.press("q");
        let (code, _, _) = terminal.finish();
        assert_eq!(code, Some(0));
    }
}

#[test]
fn one_call_can_be_followed_inspected_and_cancelled() {
    let scene = Scene::new();
    let call = scene.call("review");
    tell(&*call, Event::Asking { at: at(1, "small") });
    let left = AttemptSummary {
        cost_usd: None,
        diff: "@@ -1 +1 @@\n-old\n+fixed\n".into(),
    };
    tell(
        &*call,
        Event::Ended {
            at: at(1, "small"),
            cause: Cause::Rejected,
            because: "no".into(),
            left,
        },
    );
    let terminal = Terminal::start(scene.command(&[]), 24, 80);
    terminal.until("review");
    terminal.press("\r");
    terminal.until("tier 1/2 small · asking");
    terminal.press("d");
    terminal.until("+fixed");
    terminal.press("c");
    terminal.until("y/n");
    assert!(!call.is_stop_requested());
    terminal.press("y");
    until("the wish", || call.is_stop_requested());
    terminal.until("asked to cancel");
    terminal.press("q");
    assert_eq!(terminal.finish().0, Some(0));
}

#[test]
fn without_a_terminal_steps_are_plain_lines() {
    let scene = Scene::new();
    let once = |scene: &Scene| {
        String::from_utf8(scene.command(&["--once"]).output().unwrap().stdout).unwrap()
    };
    assert_eq!(once(&scene), "no call is at work\n");
    let call = scene.call("debug");
    tell(
        &*call,
        Event::Asking {
            at: at(1, "sm\u{1b}[2Jall"),
        },
    );
    let said = once(&scene);
    assert!(
        said.contains("debug in roman · tier 1/2 sm\\u{1b}[2Jall · asking")
            && said.ends_with("$0.00\n"),
        "{said}"
    );
}
