//! Text that does not distinguish errors: words that occur in any error and lines that every failing command prints.
//! Also recognises the names of signals.

use rustix::process::Signal;

use supervisor_text::words::lexicon::lexicon;

pub(super) fn is_boilerplate(line: &str) -> bool {
    lexicon()
        .boilerplate
        .entries()
        .any(|words| line.contains(words))
}

/// Whether the line has a word that is specific to an error.
pub(super) fn has_content(line: &str) -> bool {
    let is_word = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).count() >= 3;
    line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(is_word)
        .any(|word| !lexicon().generic_error.has_form(word))
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
