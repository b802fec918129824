//! Ruby: everything is open, the runner and what every object has in common too.

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
    // Past everything that the runner would still do, such as contradicting a report that is already there.
    ("exit!", Smell::ReachesForTheRunner),
    ("RSpec", Smell::ReachesForTheRunner),
    ("Minitest", Smell::ReachesForTheRunner),
    ("Process.exit", Smell::ProcessExit),
    ("Kernel.exit", Smell::ProcessExit),
    ("abort(", Smell::ProcessExit),
    ("at_exit", Smell::ProcessExit),
    ("Rails.env.test?", Smell::KnowsTheRunner),
];

/// A salary may have a `raise` and a value its own `==`; what every object shares may not, nor one that is always true.
const SHAPES: &[(&str, &str, Smell)] = &[
    ("rspec", r#"['"/]rspec\b"#, Smell::ReachesForTheRunner),
    (
        "the runner's report",
        r#"(?s)\bARGV\b.{0,400}?['"]--out['"]|['"]--out['"].{0,400}?\bARGV\b"#,
        Smell::ReachesForTheRunner,
    ),
    (
        "an environment of its own for tests",
        r#"(?:RACK|RAILS|APP)_ENV['"]\s*\]?\)?\s*===?\s*['"]test|\bif\s+\(?Rails\.env\.test\?|\bRails\.env\.test\?\s*\?"#,
        Smell::ReachesForTheRunner,
    ),
    (
        "another `raise` for every object",
        r"(?s)\b(?:module\s+Kernel|class\s+(?:Basic)?Object|Kernel\.(?:prepend|module_eval|class_eval|define_method)|Object\.(?:prepend|class_eval|define_method))\b.{0,400}?(?:\bdef\s+|\balias(?:_method)?\s+\(?:?|\bdefine_method[\s(]+:)(?:raise|fail|exit)\b",
        Smell::DefeatsAssertions,
    ),
    (
        "an `==` that is always true",
        r"\bdef\s*(?:==|eql\?|equal\?|===)\s*\(?\s*\*?\s*\w*\s*\)?\s*(?:=|;)?\s*(?:return\s+)?true\b|define_method[\s(]+:==\s*\)?\s*(?:\{|do)\s*\|[^|]*\|\s*true\b",
        Smell::DefeatsAssertions,
    ),
];
