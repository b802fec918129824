//! Rust: the harness has no channel of its own, so that leaving early and raw output reject.

use std::sync::LazyLock;

use super::{Language, Smell, shapes};

pub(super) static LANGUAGE: Language = Language {
    comment: "//",
    directive: None,
    words: WORDS,
    shapes: LazyLock::new(|| shapes(&[])),
    exits_reject: |_| true,
};

const WORDS: &[(&str, Smell)] = &[
    ("process::exit", Smell::ProcessExit),
    ("process::abort", Smell::ProcessExit),
    ("libc::exit", Smell::ProcessExit),
    ("libc::_exit", Smell::ProcessExit),
    ("libc::abort", Smell::ProcessExit),
    ("exit_group", Smell::ProcessExit),
    ("intrinsics::abort", Smell::ProcessExit),
    ("io::stdout", Smell::RawOutput),
    ("stdout()", Smell::RawOutput),
    ("Stdout", Smell::RawOutput),
    ("from_raw_fd", Smell::RawOutput),
    ("libc::write", Smell::RawOutput),
    ("/dev/stdout", Smell::RawOutput),
    ("/dev/fd/", Smell::RawOutput),
    ("/proc/self/fd", Smell::RawOutput),
    ("/proc/self/cmdline", Smell::ReachesForTheRunner),
    ("--logfile", Smell::ReachesForTheRunner),
    // Another macro of that name, in sight of tests that live in the same file.
    ("macro_rules! assert", Smell::ReachesForTheRunner),
    ("macro_rules! panic", Smell::ReachesForTheRunner),
    (" as assert", Smell::ReachesForTheRunner),
    ("cfg!(test)", Smell::KnowsTheRunner),
    ("RUST_TEST_", Smell::ReachesForTheRunner),
    ("NEXTEST", Smell::ReachesForTheRunner),
];
