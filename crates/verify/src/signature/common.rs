//! Text that does not distinguish errors: words that occur in any error and lines that every failing command prints.
//! Also recognises the names of signals.

use rustix::process::Signal;

/// What every failing command prints.
const BOILERPLATE: &[&str] = &[
    "could not compile",
    "previous error",
    "to rerun pass",
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
/// Words that may occur in any error.
const GENERIC_WORDS: &str = "\
error errors exception fatal failed failure failures fail fails panic panicked assert assertion assertionerror test \
tests result passed pass ignored the with and for was not left right line file main most recent call last true false \
none null expected actual got but runtime unknown something went wrong abort aborted aborting crash crashed warning";

pub(super) fn is_boilerplate(line: &str) -> bool {
    BOILERPLATE.iter().any(|words| line.contains(words))
}

/// Whether the line has a word that is specific to an error.
pub(super) fn has_content(line: &str) -> bool {
    let is_word = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).count() >= 3;
    line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(is_word)
        .any(|word| {
            !GENERIC_WORDS
                .split(' ')
                .any(|generic| generic == word.to_lowercase())
        })
}

/// The signal that a line names, as shells and runtimes print it.
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
    WORDS
        .iter()
        .find(|(words, _)| line.contains(words))
        .map(|(_, signal)| signal.as_raw())
}
