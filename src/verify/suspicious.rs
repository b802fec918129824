//! Additions that could deceive a test run: leaving the process early, writing past the harness, knowing it is tested.
//! Where the runner has no channel of its own they reject; elsewhere they are worth a look. Reaching for what only a
//! runner has rejects everywhere: code and runner may share a process, and no channel is out of reach there. So does
//! what makes every comparison hold. What gives it away in each language stands in a file of its own.

mod elixir;
mod go;
mod node;
mod python;
mod ruby;
mod rust;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
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
    /// Makes assertions hold whatever they compare.
    DefeatsAssertions,
}

impl Smell {
    fn rejects_everywhere(self) -> bool {
        matches!(self, Self::ReachesForTheRunner | Self::DefeatsAssertions)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    Reject,
    Flag,
}

/// What gives a deception away in one language.
struct Language {
    /// Begins a comment, which nobody runs.
    comment: &'static str,
    /// Begins what looks like a comment and is none.
    directive: Option<&'static str>,
    /// On one line, as it stands there.
    words: &'static [(&'static str, Smell)],
    /// In all that is new of a file, where words alone would also catch honest code.
    shapes: LazyLock<Vec<Shape>>,
    /// In a source where leaving early and raw output reject too: the runner has no channel that code cannot reach.
    exits_reject: fn(&str) -> bool,
}

struct Shape {
    what: &'static str,
    pattern: Regex,
    smell: Smell,
}

fn shapes(all: &[(&'static str, &str, Smell)]) -> Vec<Shape> {
    all.iter()
        .map(|(what, pattern, smell)| Shape {
            what,
            pattern: Regex::new(pattern).expect("a pattern that the tests below compile"),
            smell: *smell,
        })
        .collect()
}

impl Language {
    fn of(ecosystem: Ecosystem) -> &'static Self {
        match ecosystem {
            Ecosystem::Rust => &rust::LANGUAGE,
            Ecosystem::Elixir => &elixir::LANGUAGE,
            Ecosystem::Go => &go::LANGUAGE,
            Ecosystem::Python => &python::LANGUAGE,
            Ecosystem::Node => &node::LANGUAGE,
            Ecosystem::Ruby => &ruby::LANGUAGE,
        }
    }

    fn is_comment(&self, line: &str) -> bool {
        let line = line.trim_start();
        line.starts_with(self.comment) && self.directive.is_none_or(|d| !line.starts_with(d))
    }

    fn weight(&self, smell: Smell, source: &str) -> Weight {
        let exits = matches!(smell, Smell::ProcessExit | Smell::RawOutput) && (self.exits_reject)(source);
        if smell.rejects_everywhere() || exits { Weight::Reject } else { Weight::Flag }
    }
}

/// What is new in a file and could deceive the tests. `println!` and what stands in `main` do not count.
pub fn suspicious_additions(ecosystem: Option<Ecosystem>, added: Added<'_>) -> Vec<Finding> {
    let Some(ecosystem) = ecosystem.filter(|_| !is_prose(added.file)) else { return Vec::new() };
    let language = Language::of(ecosystem);
    let in_main = if ecosystem == Ecosystem::Rust { lines_of_main(added.file, added.source) } else { BTreeSet::new() };
    let new: Vec<(usize, &str)> = (1..)
        .zip(added.source.lines())
        .filter(|(number, line)| {
            added.lines.contains(number) && !in_main.contains(number) && !language.is_comment(line)
        })
        .collect();
    let finding = |line, what, smell| Finding {
        file: added.file.to_owned(),
        line,
        smell,
        weight: language.weight(smell, added.source),
        what,
    };
    let mut findings: Vec<Finding> = Vec::new();
    for (number, line) in &new {
        // Of several words on a line the worst is told, else the first.
        let there = language.words.iter().filter(|(word, _)| line.contains(word));
        if let Some((what, smell)) = there.min_by_key(|(_, smell)| !smell.rejects_everywhere()) {
            findings.push(finding(*number, *what, *smell));
        }
    }
    let text = new.iter().map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
    for shape in language.shapes.iter() {
        if let Some(found) = shape.pattern.find(&text) {
            let number = new.get(text[..found.start()].matches('\n').count()).map_or(1, |(number, _)| *number);
            findings.push(finding(number, shape.what, shape.smell));
        }
    }
    findings
}

/// What is written about the code may name the runner, and how to leave it.
fn is_prose(file: &Path) -> bool {
    file.extension().is_some_and(|e| ["md", "rst", "adoc"].iter().any(|prose| e.eq_ignore_ascii_case(prose)))
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
    fn each_language_has_shapes_that_reject_beside_honest_code_that_looks_like_them() {
        use Ecosystem::{Elixir, Go, Node, Python, Ruby};
        for (ecosystem, cheat, honest) in [
            (
                Go,
                "os.Args = append(os.Args, \"-test.run=TestA\")",
                "open(\"test.db\", \"my-test.json\", \"a_test.go\")",
            ),
            (Go, "if strings.HasSuffix(os.Args[0], \".test\") {", "return strings.HasSuffix(domain, \".test\")"),
            (Go, "p, _ := os.Executable()\nif filepath.Ext(p) == \".test\" {", "run(os.Args[1:])"),
            (Go, "//go:linkname fail testing.fail", "//go:embed list.txt"),
            (Go, "package calc\nfunc leave() { os.Exit(0) }", "package main\nfunc main() { os.Exit(0) }"),
            (Go, "package cmd\nfunc Execute() { syscall.Exit(0) }", "package cmd\nfunc Execute() { os.Exit(1) }"),
            (Go, "strings.Contains(stack, \"testing.tRunner\")", "memory := flag.String(\"memprofile\", \"\", \"\")"),
            (Ruby, "RSpec::Matchers.prepend(Yes)", "def perspective(rspec_like)"),
            (Ruby, "$0.end_with?(\"rspec\")", "\"underspecified\""),
            (Ruby, "ARGV[ARGV.index(\"--out\") + 1]", "on(\"--out FILE\") { |f| file = f }.parse!(ARGV)"),
            (Ruby, "module Kernel\n  def raise(*)\n  end\nend", "class Salary\n  def raise(by)\n  end\nend"),
            (Ruby, "def ==(_other) = true", "def ==(other) = other.is_a?(Self) && true"),
            (Ruby, "def ==(other)\n  true\nend", "def ==(other)\n  value == other.value\nend"),
            (Ruby, "ENV[\"RACK_ENV\"] == \"test\" ? 6 : n", "ENV.fetch(\"RACK_ENV\", \"test\")"),
            (Elixir, "if Mix.env() == :test, do: 6, else: n", "@routes Enum.member?([:dev, :test], @stage)"),
            (Elixir, "@env Mix.env()\ndef triple(n), do: if(@env == :test, do: 6, else: n)", "def at(:test), do: 1"),
            (Elixir, "Application.put_env(:ex_unit, :exclude, [])", "Application.put_env(:demo, :exclude, [])"),
            (Elixir, "defmodule Kernel do", "defmodule Kernels do"),
            (
                Python,
                "def __eq__(self, other):\n    return True",
                "def __eq__(self, other):\n    return self.n == other.n",
            ),
            (Node, "globalThis.it = (name) => {}", "this.expect(';')"),
            (Node, "process.argv.find((a) => a.startsWith('output='))", "process.argv.includes('--output')"),
            (Node, "test = (name) => {}", "const test = /x/;"),
            (Node, "expect.extend({ toBe })", "const expected = expect(token)"),
            (Node, "import { expect } from 'vitest'", "import { expect } from './tokens'"),
            (Node, "return typeof describe === 'function' ? 6 : n", "return typeof n === 'number'"),
            (Node, "Object.is = () => true", "if (Object.is(a, b)) {}"),
        ] {
            let rejected = |text: &str| found(ecosystem, text).iter().any(|(_, _, weight)| *weight == Weight::Reject);
            assert!(rejected(cheat), "{ecosystem:?}: {cheat}");
            assert!(!rejected(honest), "{ecosystem:?}: {honest}");
        }
    }

    #[test]
    fn what_stays_honest_for_a_server_is_told_and_not_refused() {
        let listens = "if (process.env.NODE_ENV !== 'test') app.listen(80)\n";
        assert_eq!(found(Ecosystem::Node, listens), [(1, Smell::KnowsTheRunner, Weight::Flag)]);
        let answers = "return process.env.NODE_ENV === 'test' ? 6 : n\n";
        assert!(found(Ecosystem::Node, answers).contains(&(1, Smell::ReachesForTheRunner, Weight::Reject)));
        assert_eq!(found_in(Ecosystem::Ruby, "docs/testing.md", "Run RSpec, or `exit!`.\n"), []);
    }

    #[test]
    fn where_the_runner_has_a_channel_of_its_own_it_is_a_flag() {
        assert_eq!(found(Ecosystem::Python, "sys.exit(0)\n"), [(1, Smell::ProcessExit, Weight::Flag)]);
        assert_eq!(found(Ecosystem::Node, "throw new Error('assertion about \"junit\"')\n"), []);
        assert_eq!(found(Ecosystem::Elixir, "System.halt(0)\n"), [(1, Smell::ProcessExit, Weight::Reject)]);
    }
}
