//! What all errors have in common, and so tells none from another: words that any of them has, lines that every failing
//! command prints, the names of signals.

use rustix::process::Signal;

pub(super) fn is_boilerplate(line: &str) -> bool {
    BOILERPLATE.iter().any(|words| line.contains(words))
}

/// Is there a word that not every error has?
pub(super) fn has_content(line: &str) -> bool {
    let is_word = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).count() >= 3;
    line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(is_word).any(|word| !ANYBODYS.contains(&word))
}

/// The signal that a line tells of, in the words of shells and runtimes.
pub(super) fn signal(line: &str) -> Option<i32> {
    const WORDS: &[(&str, Signal)] = &[
        ("segmentation fault", Signal::SEGV),
        ("sigsegv", Signal::SEGV),
        ("bus error", Signal::BUS),
        ("sigbus", Signal::BUS),
        ("sigabrt", Signal::ABORT),
        ("aborted (core dumped)", Signal::ABORT),
        ("floating point exception", Signal::FPE),
        ("sigfpe", Signal::FPE),
        ("illegal instruction", Signal::ILL),
        ("sigill", Signal::ILL),
        ("sigkill", Signal::KILL),
    ];
    let line = line.to_lowercase();
    WORDS.iter().find(|(words, _)| line.contains(words)).map(|(_, signal)| signal.as_raw())
}

/// Every failing command says these.
const BOILERPLATE: &[&str] = &[
    "could not compile",
    "previous error",
    "test failed, to rerun",
    "test result:",
    "targets failed",
    "process didn't exit",
    "command failed",
    "npm err!",
    "npm error",
    "elifecycle",
    "make: ***",
    "exit status",
    "exit code",
    "exited with",
    "build failed",
    "rust_backtrace",
    "for more information about this error",
    "short test summary",
];

/// Words that could stand in any error.
const ANYBODYS: &[&str] = &[
    "error",
    "errors",
    "exception",
    "fatal",
    "failed",
    "failure",
    "failures",
    "fail",
    "fails",
    "panic",
    "panicked",
    "assert",
    "assertion",
    "assertionerror",
    "test",
    "tests",
    "result",
    "passed",
    "pass",
    "ignored",
    "the",
    "with",
    "and",
    "for",
    "was",
    "not",
    "left",
    "right",
    "line",
    "file",
    "main",
    "most",
    "recent",
    "call",
    "last",
    "true",
    "false",
    "none",
    "null",
    "expected",
    "actual",
    "got",
    "but",
    "runtime",
    "unknown",
    "something",
    "went",
    "wrong",
    "abort",
    "aborted",
    "aborting",
    "crash",
    "crashed",
    "warning",
];
