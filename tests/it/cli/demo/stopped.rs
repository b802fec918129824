//! Interrupted in the middle: at once, with 130, and nothing is left of it.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::place::Place;
use crate::support::mcp_session::until;

/// A demo in a process group of its own, as a shell would start it.
fn started(place: &Place) -> Child {
    place
        .demo()
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

fn assert_gone(place: &Place, child: Child) {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(
        said.ends_with("Cancelled. The demo's temporary project was removed.\n"),
        "{said}"
    );
    assert_eq!(place.left(), BTreeSet::new());
    assert_eq!(place.running(), Vec::<String>::new());
}

#[test]
fn interrupt_during_tests_leaves_nothing_behind() {
    let place = Place::new();
    let child = started(&place);
    until("a compiler at work", || {
        place.running().iter().any(|name| name.trim() == "rustc")
    });
    // As Ctrl-C does it: everything in the foreground gets the signal.
    kill_process_group(pid(&child), Signal::INT).unwrap();
    assert_gone(&place, child);
}

#[test]
fn interrupt_during_a_question_leaves_nothing_behind() {
    let place = Place::new();
    let child = started(&place);
    until("the second model of green", || {
        place.asked().iter().any(|model| model == "scripted/sly")
    });
    kill_process(pid(&child), Signal::INT).unwrap();
    assert_gone(&place, child);
}

#[test]
fn second_interrupt_leaves_nothing_behind() {
    let place = Place::new();
    let child = started(&place);
    until("a compiler at work", || {
        place.running().iter().any(|name| name.trim() == "rustc")
    });
    kill_process(pid(&child), Signal::INT).unwrap();
    // It may be over already; then there is nobody to be impatient with.
    let _ = kill_process(pid(&child), Signal::INT);
    assert_gone(&place, child);
}

#[test]
fn sigterm_acts_like_sigint() {
    let place = Place::new();
    let child = started(&place);
    until("the first model", || !place.asked().is_empty());
    kill_process(pid(&child), Signal::TERM).unwrap();
    assert_gone(&place, child);
}
