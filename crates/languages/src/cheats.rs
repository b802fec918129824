//! What could deceive a test run: leaving the process early, writing past the harness, knowing that it is tested,
//! reaching for the runner, making every comparison hold. Names are found by what they mean, whatever they are called
//! where they are used; words in comments and in prose never count.
//! Says what was found and where. Whether that rejects or is only worth a look is for the caller to decide.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::{Import, ImportedNames, Language, SyntaxTree};

/// The rule that something found breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheatRule {
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

impl CheatRule {
    /// Reads after what was found.
    pub fn why(self) -> &'static str {
        match self {
            Self::ProcessExit => "ends the process",
            Self::RawOutput => "writes past what the runner captures",
            Self::KnowsTheRunner => "looks at how it is run",
            Self::ReachesForTheRunner => "reaches for the test runner",
            Self::DefeatsAssertions => "makes comparisons hold whatever they compare",
        }
    }

    fn of(capture: &str) -> Option<Self> {
        Some(match capture {
            "process_exit" => Self::ProcessExit,
            "raw_output" => Self::RawOutput,
            "knows_the_runner" => Self::KnowsTheRunner,
            "reaches_for_the_runner" => Self::ReachesForTheRunner,
            "defeats_assertions" => Self::DefeatsAssertions,
            _ => return None,
        })
    }
}

/// Something that could deceive a test run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheatSign {
    pub rule: CheatRule,
    /// From 1.
    pub line: usize,
    /// What gave it away.
    pub what: &'static str,
}

/// What gives a deception away in one language. In full names `.` stands between the parts, also for `::`.
pub(super) struct CheatRules {
    /// The end of a full name; with `(0)` behind it, only if it is called so.
    pub names: &'static [(&'static str, CheatRule)],
    /// Modules of runners: whatever is taken from them. Shown by the second text.
    pub modules: &'static [(&'static str, &'static str, CheatRule)],
    /// The same where no import is needed.
    pub globals: &'static [(&'static str, &'static str, CheatRule)],
    /// Modules that honest code may use and nothing may change.
    pub guarded: &'static [&'static str],
    /// What a text of one word is, as a pattern: variables, flags, files.
    pub texts: LazyLock<Vec<TextRule>>,
}

pub(super) struct TextRule {
    what: &'static str,
    pattern: Regex,
    /// Counts only where this is used too.
    with: Option<&'static str>,
    rule: CheatRule,
}

pub(super) fn texts(
    all: &[(&'static str, &str, Option<&'static str>, CheatRule)],
) -> Vec<TextRule> {
    let rule =
        |(what, pattern, with, rule): &(&'static str, &str, Option<&'static str>, CheatRule)| {
            TextRule {
                what,
                pattern: Regex::new(pattern).expect("a pattern that a test compiles"),
                with: *with,
                rule: *rule,
            }
        };
    all.iter().map(rule).collect()
}

/// A name as it is used, and what it means.
struct NameUse {
    line: usize,
    full: String,
    is_imported: bool,
    called_with_zero: bool,
}

impl Language {
    /// What could deceive the tests, on the lines that count. One sign a line, the worst.
    pub fn cheat_signs(
        &self,
        tree: &SyntaxTree<'_>,
        counts: &dyn Fn(usize) -> bool,
    ) -> Vec<CheatSign> {
        let imports = self.imports(tree);
        let uses = used_names(&tree.masked(), &imports, counts);
        let is_used = |name: &str| {
            uses.iter()
                .any(|u| format!(".{}.", u.full).contains(&format!(".{name}.")))
        };
        let mut signs: Vec<CheatSign> = Vec::new();
        for one in &uses {
            for (name, rule) in self.cheats.names {
                let (bare, zero) = name
                    .strip_suffix("(0)")
                    .map_or((*name, false), |bare| (bare, true));
                if ends_with_name(&one.full, bare) && (!zero || one.called_with_zero) {
                    signs.push(CheatSign {
                        rule: *rule,
                        line: one.line,
                        what: name,
                    });
                }
            }
            let modules = self.cheats.modules.iter().filter(|_| one.is_imported);
            for (module, what, rule) in modules.chain(self.cheats.globals) {
                if begins_with_name(&one.full, &normal(module)) {
                    signs.push(CheatSign {
                        rule: *rule,
                        line: one.line,
                        what,
                    });
                }
            }
        }
        for (line, text) in tree.texts().into_iter().filter(|(line, _)| counts(*line)) {
            // Prose may name the runner, and how to leave it.
            if text.is_empty() || text.contains(char::is_whitespace) {
                continue;
            }
            for (module, what, rule) in self.cheats.modules {
                let imported = imports.iter().any(|i| i.module == *text);
                if imported && begins_with_name(&normal(text), &normal(module)) {
                    signs.push(CheatSign {
                        rule: *rule,
                        line,
                        what,
                    });
                }
            }
            let fits = |t: &&TextRule| t.pattern.is_match(text) && t.with.is_none_or(is_used);
            signs.extend(self.cheats.texts.iter().filter(fits).map(|t| CheatSign {
                rule: t.rule,
                line,
                what: t.what,
            }));
        }
        for one in tree.matches(|q| &q.cheats) {
            for capture in one.captures.iter().filter(|c| counts(c.line + 1)) {
                let line = capture.line + 1;
                if let Some(rule) =
                    CheatRule::of(capture.name).filter(|_| one.setting("with").is_none_or(is_used))
                {
                    signs.push(CheatSign {
                        rule,
                        line,
                        what: one.setting("what").unwrap_or("this"),
                    });
                }
                let (target, _) = full_name(&normal(capture.text), &imports);
                if capture.name == "assigned"
                    && self
                        .cheats
                        .guarded
                        .iter()
                        .any(|m| begins_with_name(&target, &normal(m)))
                {
                    signs.push(CheatSign {
                        rule: CheatRule::ReachesForTheRunner,
                        line,
                        what: "a module of the runner",
                    });
                }
            }
        }
        worst_per_line(signs)
    }
}

fn worst_per_line(mut signs: Vec<CheatSign>) -> Vec<CheatSign> {
    let severity = |sign: &CheatSign| match sign.rule {
        CheatRule::ReachesForTheRunner | CheatRule::DefeatsAssertions => 0,
        CheatRule::ProcessExit | CheatRule::RawOutput => 1,
        CheatRule::KnowsTheRunner => 2,
    };
    signs.sort_by_key(|sign| (sign.line, severity(sign)));
    signs.dedup_by_key(|sign| sign.line);
    signs
}

/// `::`, `/` and `:` of package names become `.`, so that one rule fits all spellings.
fn normal(name: &str) -> String {
    name.replace("::", ".")
        .replace(['/', ':'], ".")
        .split_whitespace()
        .collect()
}

fn ends_with_name(full: &str, name: &str) -> bool {
    full.strip_suffix(name)
        .is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

fn begins_with_name(full: &str, name: &str) -> bool {
    full.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What a name means by the imports of its file: `p.exit` is `std.process.exit` after `use std::process as p`.
fn full_name(name: &str, imports: &[Import]) -> (String, bool) {
    let (first, rest) = name
        .split_once('.')
        .map_or((name, None), |(first, rest)| (first, Some(rest)));
    let bound = imports.iter().find(|import| match &import.what {
        ImportedNames::Named { bound, .. } | ImportedNames::Whole { bound } => bound == first,
        ImportedNames::All => false,
    });
    let first = bound.map_or_else(|| first.to_owned(), |import| normal(&import.full_name(".")));
    (
        rest.map_or_else(|| first.clone(), |rest| format!("{first}.{rest}")),
        bound.is_some(),
    )
}

/// Every path of names in the code of these lines.
fn used_names(masked: &str, imports: &[Import], counts: &dyn Fn(usize) -> bool) -> Vec<NameUse> {
    let mut found = Vec::new();
    for (number, line) in (1..)
        .zip(masked.lines())
        .filter(|(number, _)| counts(*number))
    {
        let bytes = line.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if !is_name(bytes[at]) {
                at += 1;
                continue;
            }
            let start = at;
            while at < bytes.len() {
                let joins = match bytes[at] {
                    b'.' => 1,
                    b':' if bytes.get(at + 1) == Some(&b':') => 2,
                    b'!' | b'?' if bytes.get(at + 1) != Some(&b'=') => 1,
                    byte if is_name(byte) => 1,
                    _ => break,
                };
                at += joins;
            }
            let name = normal(line[start..at].trim_end_matches(['.', ':']));
            let called_with_zero = line[at..].trim_start().starts_with("(0)");
            let (full, is_imported) = full_name(&name, imports);
            found.push(NameUse {
                line: number,
                full,
                is_imported,
                called_with_zero,
            });
        }
    }
    found
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use CheatRule::{KnowsTheRunner, ProcessExit, ReachesForTheRunner};

    fn rules(file: &str, source: &str) -> Vec<CheatRule> {
        let language = Language::of_path(Path::new(file)).expect("a language");
        let tree = language.parse(Path::new(file), source).expect("reads");
        language
            .cheat_signs(&tree, &|_| true)
            .into_iter()
            .map(|sign| sign.rule)
            .collect()
    }

    #[test]
    fn a_call_is_known_by_what_it_means_whatever_it_is_called() {
        for (file, source, expected) in [
            (
                "a.rs",
                "use std::process as p;\nfn f() { p::exit(0) }",
                ProcessExit,
            ),
            (
                "a.rs",
                "use std::process::{exit as leave};\nfn f() { leave(0) }",
                ProcessExit,
            ),
            (
                "a.rs",
                "fn f() { println!(\"{}\", std::process::exit(0)) }",
                ProcessExit,
            ),
            (
                "a.py",
                "import os as o\ndef f():\n    o._exit(0)",
                ReachesForTheRunner,
            ),
            (
                "a.py",
                "from os import _exit as leave\nleave(0)",
                ReachesForTheRunner,
            ),
            (
                "a.py",
                "import _pytest.runner as r\nr.call = 1",
                ReachesForTheRunner,
            ),
            (
                "a.py",
                "import unittest as u\nu.TestCase.assertEqual = lambda *a: None",
                ReachesForTheRunner,
            ),
            (
                "a.js",
                "import { exit as leave } from 'node:process';\nleave(0);",
                ProcessExit,
            ),
            ("a.js", "const p = process;\nprocess.exit(0)", ProcessExit),
            (
                "a.js",
                "import assert from 'node:assert';\nassert.equal = () => {};",
                ReachesForTheRunner,
            ),
            (
                "a.ts",
                "const a = require('assert');\na.strictEqual = () => {}",
                ReachesForTheRunner,
            ),
            (
                "a.cpp",
                "using std::exit;\nint f() { exit(0); }",
                ProcessExit,
            ),
            ("a.h", "#define EXPECT_EQ(a, b)", ReachesForTheRunner),
            ("a.cpp", "#include <gtest/gtest.h>", ReachesForTheRunner),
            (
                "A.java",
                "import static java.lang.System.exit;\nclass A { void f() { exit(0); } }",
                ProcessExit,
            ),
            (
                "A.java",
                "class A { void f() { Runtime.getRuntime().halt(0); } }",
                ProcessExit,
            ),
            (
                "A.java",
                "import org.junit.runner.JUnitCore;\nclass A { Object x = JUnitCore.class; }",
                ReachesForTheRunner,
            ),
            (
                "a.go",
                "package calc\nimport leave \"os\"\nfunc f() { leave.Exit(0) }",
                ProcessExit,
            ),
            (
                "a.ex",
                "defmodule A do\n  alias System, as: S\n  def f, do: S.halt(0)\nend",
                ProcessExit,
            ),
        ] {
            assert!(
                rules(file, source).contains(&expected),
                "{source}: {:?}",
                rules(file, source)
            );
        }
    }

    #[test]
    fn words_in_prose_and_honest_uses_do_not_count() {
        for (file, source) in [
            (
                "a.py",
                "def f():\n    \"\"\"Run me with pytest; PYTEST_CURRENT_TEST is not read, os._exit neither.\"\"\"",
            ),
            (
                "a.py",
                "# os._exit(0)\nimport unittest\nif __name__ == '__main__':\n    unittest.main()",
            ),
            (
                "a.js",
                "import assert from 'assert';\nassert(total > 0, 'must be run by jest');",
            ),
            (
                "a.ex",
                "defmodule A do\n  @moduledoc \"Tested with ExUnit, see Mix.env\"\nend",
            ),
            (
                "a.rs",
                "/// Never calls std::process::exit(0).\nfn f(cmd: &mut Command) { cmd.stdout(Stdio::piped()); }",
            ),
            (
                "a.go",
                "package cmd\nimport \"os\"\nfunc f() { os.Exit(1) }",
            ),
            (
                "A.java",
                "/** Tested by org.junit; no System.exit. */\nclass A { boolean equals(Object o) { return o == this; } }",
            ),
            (
                "a.cpp",
                "// exit(0), <gtest/gtest.h>\nstruct Door { void exit(); };\nvoid f(Door d) { d.exit(); }",
            ),
            ("a.rb", "# RSpec\nclass Salary\n  def raise(by)\n  end\nend"),
        ] {
            let found: Vec<_> = rules(file, source)
                .into_iter()
                .filter(|rule| *rule != KnowsTheRunner)
                .collect();
            assert_eq!(found, [], "{source}");
        }
    }
}
