//! Go: a witness stands beside the test program, but what it asks for stands in the program's own arguments.

use std::sync::LazyLock;

use super::{Language, Smell, shapes};

pub(super) static LANGUAGE: Language = Language {
    comment: "//",
    directive: Some("//go:"),
    words: WORDS,
    shapes: LazyLock::new(|| shapes(SHAPES)),
    // A program may end as it likes; what it is made of may not.
    exits_reject: |source| source.lines().find(|l| l.starts_with("package ")) != Some("package main"),
};

const WORDS: &[(&str, Smell)] = &[
    // With another code nobody takes it for a pass.
    ("os.Exit(0)", Smell::ProcessExit),
    ("syscall.Exit(0)", Smell::ProcessExit),
    ("unix.Exit(0)", Smell::ProcessExit),
    ("\"testing\"", Smell::ReachesForTheRunner),
    ("testing.Testing", Smell::ReachesForTheRunner),
    ("flag.Lookup(\"test.", Smell::ReachesForTheRunner),
    ("/proc/self/cmdline", Smell::ReachesForTheRunner),
    // Another package's insides, whatever it exports.
    ("go:linkname", Smell::ReachesForTheRunner),
];

/// `"test.db"`, `"my-test.json"` and names below `.test` are nobody's flags; the program that is tested ends in `.test`.
const SHAPES: &[(&str, &str, Smell)] = &[
    (
        "a flag of the test program",
        r#"["`-]test\.(?:v|run|skip|list|short|count|failfast|timeout|parallel|shuffle|bench|fuzz|memprofile|testlogfile|paniconexit0)\b"#,
        Smell::ReachesForTheRunner,
    ),
    (
        "the name of the test program",
        r#"(?s)\bos\.(?:Args|Executable)\b.{0,400}?[./_]test["`]|["`][./_]test["`].{0,400}?\bos\.(?:Args|Executable)\b"#,
        Smell::ReachesForTheRunner,
    ),
    ("the runner on the stack", r#""[^"]*tRunner"#, Smell::ReachesForTheRunner),
];
