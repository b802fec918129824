//! Python: code, tests and runner share a process, and each can reach every other.

use std::sync::LazyLock;

use super::{Language, Smell, shapes};

pub(super) static LANGUAGE: Language = Language {
    comment: "#",
    directive: None,
    words: WORDS,
    shapes: LazyLock::new(|| shapes(SHAPES)),
    exits_reject: |_| false,
};

const WORDS: &[(&str, Smell)] = &[
    ("PYTEST_", Smell::ReachesForTheRunner),
    ("_pytest", Smell::ReachesForTheRunner),
    ("--junit", Smell::ReachesForTheRunner),
    ("junitxml", Smell::ReachesForTheRunner),
    ("/proc/self/cmdline", Smell::ReachesForTheRunner),
    // Past everything that the runner would still do, such as contradicting a report that is already there.
    ("os._exit", Smell::ReachesForTheRunner),
    ("os.abort", Smell::ReachesForTheRunner),
    ("import pytest", Smell::ReachesForTheRunner),
    ("unittest", Smell::ReachesForTheRunner),
    ("sys.exit", Smell::ProcessExit),
    ("os.kill(", Smell::ProcessExit),
    ("sys.modules", Smell::KnowsTheRunner),
];

const SHAPES: &[(&str, &str, Smell)] = &[(
    "an `__eq__` that is always true",
    r"\bdef\s+__eq__\s*\([^)]*\)[^:\n]*:\s*return\s+True\b|__eq__\s*=\s*lambda\b[^:\n]*:\s*True\b",
    Smell::DefeatsAssertions,
)];
