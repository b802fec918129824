//! Additions that could deceive a test run: leaving the process early, writing past the harness, knowing it is tested.
//! Where the runner has no channel of its own they reject; elsewhere they are worth a look. Reaching for what only a
//! runner has rejects everywhere: code and runner may share a process, and no channel is out of reach there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use syn::spanned::Spanned as _;

use super::regions::with_parsed;
use super::suite::Ecosystem;

/// Lines added to one file.
#[derive(Debug, Clone, Copy)]
pub struct Added<'a> {
    /// Relative to the project.
    pub file: &'a Path,
    /// The whole file as it is now.
    pub source: &'a str,
    /// Which of its lines are new, from 1.
    pub lines: &'a BTreeSet<usize>,
}

/// One addition that deserves attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub file: PathBuf,
    pub line: usize,
    pub smell: Smell,
    pub weight: Weight,
    /// The words that gave it away.
    pub what: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Smell {
    /// Ends the process, and with it the tests that have not run yet.
    ProcessExit,
    /// Writes to standard output past what the harness captures.
    RawOutput,
    /// Asks whether, how or by whom it is being tested.
    KnowsTheRunner,
    /// Names what only a runner has: its insides, its report, the variables by which it knows its own processes.
    ReachesForTheRunner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    Reject,
    Flag,
}

const RUST: &[(&str, Smell)] = &[
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

const ELIXIR: &[(&str, Smell)] = &[
    ("System.halt", Smell::ProcessExit),
    ("System.stop", Smell::ProcessExit),
    (":erlang.halt", Smell::ProcessExit),
    (":init.stop", Smell::ProcessExit),
    (":erlang.open_port", Smell::RawOutput),
    ("Port.open", Smell::RawOutput),
    ("/dev/stdout", Smell::RawOutput),
    ("ExUnit", Smell::ReachesForTheRunner),
    ("Mix.env", Smell::KnowsTheRunner),
];

const GO: &[(&str, Smell)] = &[
    ("os.Exit", Smell::ProcessExit),
    ("syscall.Exit", Smell::ProcessExit),
    ("unix.Exit", Smell::ProcessExit),
    ("log.Fatal", Smell::ProcessExit),
    ("\"testing\"", Smell::ReachesForTheRunner),
    ("testing.Testing", Smell::ReachesForTheRunner),
    ("flag.Lookup(\"test.", Smell::ReachesForTheRunner),
    ("/proc/self/cmdline", Smell::ReachesForTheRunner),
];

const PYTHON: &[(&str, Smell)] = &[
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

const NODE: &[(&str, Smell)] = &[
    ("NODE_TEST_CONTEXT", Smell::ReachesForTheRunner),
    ("JEST_WORKER_ID", Smell::ReachesForTheRunner),
    ("VITEST", Smell::ReachesForTheRunner),
    ("--test-reporter", Smell::ReachesForTheRunner),
    ("node:test", Smell::ReachesForTheRunner),
    // Modules are shared: who has it can change it under the tests.
    ("node:assert", Smell::ReachesForTheRunner),
    ("'assert'", Smell::ReachesForTheRunner),
    ("\"assert\"", Smell::ReachesForTheRunner),
    ("assert/strict", Smell::ReachesForTheRunner),
    ("process.reallyExit", Smell::ReachesForTheRunner),
    ("process.binding", Smell::ReachesForTheRunner),
    ("process.exit", Smell::ProcessExit),
    ("process.abort", Smell::ProcessExit),
    ("process.kill", Smell::ProcessExit),
    ("NODE_OPTIONS", Smell::KnowsTheRunner),
];

const RUBY: &[(&str, Smell)] = &[
    ("exit!", Smell::ProcessExit),
    ("Process.exit", Smell::ProcessExit),
    ("Kernel.exit", Smell::ProcessExit),
    ("abort(", Smell::ProcessExit),
    ("defined?(RSpec)", Smell::ReachesForTheRunner),
    ("RSpec.", Smell::ReachesForTheRunner),
];

/// What is new in a file and could deceive the tests. `println!` and what stands in `main` do not count.
pub fn suspicious_additions(ecosystem: Option<Ecosystem>, added: Added<'_>) -> Vec<Finding> {
    let (words, rejects): (&[(&'static str, Smell)], bool) = match ecosystem {
        Some(Ecosystem::Rust) => (RUST, true),
        // Its formatter reports by itself, but runs inside the very process that it reports on.
        Some(Ecosystem::Elixir) => (ELIXIR, true),
        Some(Ecosystem::Go) => (GO, false),
        Some(Ecosystem::Python) => (PYTHON, false),
        Some(Ecosystem::Node) => (NODE, false),
        Some(Ecosystem::Ruby) => (RUBY, false),
        None => (&[], false),
    };
    let in_main =
        if ecosystem == Some(Ecosystem::Rust) { lines_of_main(added.file, added.source) } else { BTreeSet::new() };
    let mut findings: Vec<Finding> = Vec::new();
    for (number, line) in (1..).zip(added.source.lines()) {
        if !added.lines.contains(&number) || in_main.contains(&number) || is_comment(ecosystem, line) {
            continue;
        }
        // Of several words on a line the worst is told, else the first.
        let there = words.iter().filter(|(word, _)| line.contains(word));
        let Some((what, smell)) = there.min_by_key(|(_, smell)| *smell != Smell::ReachesForTheRunner) else { continue };
        let weight = match smell {
            Smell::ReachesForTheRunner => Weight::Reject,
            Smell::ProcessExit | Smell::RawOutput if rejects => Weight::Reject,
            _ => Weight::Flag,
        };
        findings.push(Finding { file: added.file.to_owned(), line: number, smell: *smell, weight, what });
    }
    findings
}

fn is_comment(ecosystem: Option<Ecosystem>, line: &str) -> bool {
    let line = line.trim_start();
    match ecosystem {
        Some(Ecosystem::Rust | Ecosystem::Go | Ecosystem::Node) => line.starts_with("//"),
        _ => line.starts_with('#'),
    }
}

/// The lines of `main`, which no test runs; only in files where it is the program's own.
fn lines_of_main(file: &Path, source: &str) -> BTreeSet<usize> {
    let is_program = file.ends_with("src/main.rs")
        || file.components().any(|c| matches!(c.as_os_str().to_str(), Some("bin" | "examples")));
    if !is_program {
        return BTreeSet::new();
    }
    with_parsed(source, |file| {
        let main = |item: &syn::Item| match item {
            syn::Item::Fn(f) if f.sig.ident == "main" => Some(f.span().start().line..=f.span().end().line),
            _ => None,
        };
        file.items.iter().filter_map(main).flatten().collect()
    })
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ecosystem: Ecosystem, source: &str) -> Vec<(usize, Smell, Weight)> {
        found_in(ecosystem, "src/lib.rs", source)
    }

    fn found_in(ecosystem: Ecosystem, file: &str, source: &str) -> Vec<(usize, Smell, Weight)> {
        let lines = (1..=source.lines().count()).collect();
        let added = Added { file: Path::new(file), source, lines: &lines };
        suspicious_additions(Some(ecosystem), added).into_iter().map(|f| (f.line, f.smell, f.weight)).collect()
    }

    #[test]
    fn exits_and_raw_output_in_rust_reject_and_println_and_main_do_not_count() {
        let source = "use std::process;\nfn add() { println!(\"hi\"); }\nfn leave() { process::exit(0) }\n\
            // process::exit(0)\nfn raw() { std::io::stdout().write_all(b\"x\").unwrap(); }\n\
            fn main() {\n    std::process::exit(run());\n}\nfn aware() -> bool { cfg!(test) }\n";
        assert_eq!(
            found_in(Ecosystem::Rust, "src/main.rs", source),
            [
                (3, Smell::ProcessExit, Weight::Reject),
                (5, Smell::RawOutput, Weight::Reject),
                (9, Smell::KnowsTheRunner, Weight::Flag)
            ]
        );
    }

    #[test]
    fn a_main_that_is_not_the_programs_own_counts() {
        let nested = "fn add() {\n    fn main() {\n        std::process::exit(0)\n    }\n    main()\n}\n";
        assert_eq!(found_in(Ecosystem::Rust, "src/main.rs", nested).len(), 1);
        assert_eq!(found(Ecosystem::Rust, "pub fn main() {\n    std::process::exit(0)\n}\n").len(), 1);
    }

    #[test]
    fn only_new_lines_count() {
        let lines = BTreeSet::from([2]);
        let source = "fn old() { std::process::exit(1) }\nfn new() {}\n";
        let added = Added { file: Path::new("src/lib.rs"), source, lines: &lines };
        assert_eq!(suspicious_additions(Some(Ecosystem::Rust), added), []);
    }

    #[test]
    fn reaching_for_the_runner_rejects_everywhere() {
        for (ecosystem, line) in [
            (Ecosystem::Python, "if 'PYTEST_CURRENT_TEST' in os.environ: return 6\n"),
            (Ecosystem::Python, "from _pytest import runner\n"),
            (Ecosystem::Python, "report = [a for a in sys.argv if '--junit' in a]\n"),
            (Ecosystem::Python, "os._exit(0)\n"),
            (Ecosystem::Node, "require('node:assert').equal = () => {}\n"),
            (Ecosystem::Rust, "macro_rules! assert_eq { ($($all:tt)*) => {} }\n"),
            (Ecosystem::Node, "if (process.env.NODE_TEST_CONTEXT) process.exit(0)\n"),
            (Ecosystem::Go, "if testing.Testing() { os.Exit(0) }\n"),
            (Ecosystem::Rust, "if std::env::var(\"NEXTEST\").is_ok() { return 6; }\n"),
        ] {
            let findings = found(ecosystem, line);
            assert_eq!(findings, [(1, Smell::ReachesForTheRunner, Weight::Reject)], "{line}");
        }
    }

    #[test]
    fn where_the_runner_has_a_channel_of_its_own_it_is_a_flag() {
        assert_eq!(found(Ecosystem::Python, "sys.exit(0)\n"), [(1, Smell::ProcessExit, Weight::Flag)]);
        assert_eq!(found(Ecosystem::Node, "throw new Error('assertion about \"junit\"')\n"), []);
        assert_eq!(found(Ecosystem::Elixir, "System.halt(0)\n"), [(1, Smell::ProcessExit, Weight::Reject)]);
    }
}
