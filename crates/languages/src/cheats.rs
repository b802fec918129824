//! Finds code that could cheat a test run: it exits the process early, writes past the harness, detects that it is being
//! tested, manipulates the runner, or makes every comparison succeed. Imported names are resolved, so an alias does not
//! hide them. Comments and prose are ignored. The caller decides whether a sign rejects the code.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::{Import, ImportedNames, Language, SyntaxTree};

/// The kinds of cheating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheatRule {
    /// Ends the process before all tests have run.
    ProcessExit,
    /// Writes to standard output and bypasses the harness's capture.
    RawOutput,
    /// Detects whether or how it is being tested.
    KnowsTheRunner,
    /// Uses runner internals: its modules, its report, or the variables that mark its processes.
    ReachesForTheRunner,
    /// Makes assertions succeed whatever they compare.
    DefeatsAssertions,
}

impl CheatRule {
    /// The reason, as a verb phrase that follows the name of the finding.
    pub fn why(self) -> &'static str {
        match self {
            Self::ProcessExit => "ends the process",
            Self::RawOutput => "writes past what the runner captures",
            Self::KnowsTheRunner => "looks at how it is run",
            Self::ReachesForTheRunner => "reaches for the test runner",
            Self::DefeatsAssertions => "makes comparisons hold whatever they compare",
        }
    }

    fn from_capture(capture: &str) -> Option<Self> {
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

/// A place in the code that could cheat a test run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheatSign {
    pub rule: CheatRule,
    /// Counted from 1.
    pub line: usize,
    /// The name or text that was found.
    pub what: &'static str,
}

/// The cheating rules of one language. Full names use `.` as the separator, also for `::`.
pub(super) struct CheatRules {
    /// Suffixes of full names. With `(0)` at the end, only calls with the argument 0 match.
    pub names: &'static [(&'static str, CheatRule)],
    /// Modules of runners; any import from them matches. The second text is shown.
    pub modules: &'static [(&'static str, &'static str, CheatRule)],
    /// Like `modules`, for names that need no import.
    pub globals: &'static [(&'static str, &'static str, CheatRule)],
    /// Modules that code may use but not modify.
    pub guarded: &'static [&'static str],
    /// Patterns for one-word string literals: variables, flags, files.
    pub texts: LazyLock<Vec<TextRule>>,
}

pub(super) struct TextRule {
    what: &'static str,
    pattern: Regex,
    /// Matches only if this name is used too.
    with: Option<&'static str>,
    rule: CheatRule,
}

pub(super) fn text_rules(
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

/// A use of a name, with its full name.
struct NameUse {
    line: usize,
    full: String,
    is_imported: bool,
    called_with_zero: bool,
}

impl Language {
    /// Finds cheating in the lines selected by `is_relevant`. Reports the worst sign of each line.
    pub fn cheat_signs(
        &self,
        tree: &SyntaxTree<'_>,
        is_relevant: &dyn Fn(usize) -> bool,
    ) -> Vec<CheatSign> {
        let imports = self.imports(tree);
        let uses = used_names(&tree.masked(), &imports, is_relevant);
        let is_used = |name: &str| {
            uses.iter()
                .any(|u| format!(".{}.", u.full).contains(&format!(".{name}.")))
        };
        let mut signs: Vec<CheatSign> = Vec::new();
        for one in &uses {
            for (name, rule) in self.cheats.names {
                let (bare, needs_zero) = name
                    .strip_suffix("(0)")
                    .map_or((*name, false), |bare| (bare, true));
                if ends_with_name(&one.full, bare) && (!needs_zero || one.called_with_zero) {
                    signs.push(CheatSign {
                        rule: *rule,
                        line: one.line,
                        what: name,
                    });
                }
            }
            let modules = self.cheats.modules.iter().filter(|_| one.is_imported);
            for (module, what, rule) in modules.chain(self.cheats.globals) {
                if begins_with_name(&one.full, &normalize(module)) {
                    signs.push(CheatSign {
                        rule: *rule,
                        line: one.line,
                        what,
                    });
                }
            }
        }
        for (line, text) in tree
            .texts()
            .into_iter()
            .filter(|(line, _)| is_relevant(*line))
        {
            // Text with spaces is prose, which may mention the runner.
            if text.is_empty() || text.contains(char::is_whitespace) {
                continue;
            }
            for (module, what, rule) in self.cheats.modules {
                let is_imported = imports.iter().any(|i| i.module == *text);
                if is_imported && begins_with_name(&normalize(text), &normalize(module)) {
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
            for capture in one.captures.iter().filter(|c| is_relevant(c.line + 1)) {
                let line = capture.line + 1;
                if let Some(rule) = CheatRule::from_capture(capture.name)
                    .filter(|_| one.setting("with").is_none_or(is_used))
                {
                    signs.push(CheatSign {
                        rule,
                        line,
                        what: one.setting("what").unwrap_or("this"),
                    });
                }
                let (target, _) = full_name(&normalize(capture.text), &imports);
                if capture.name == "assigned"
                    && self
                        .cheats
                        .guarded
                        .iter()
                        .any(|m| begins_with_name(&target, &normalize(m)))
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

/// Replaces the separators `::`, `/` and `:` by `.`, so that one rule matches all spellings.
fn normalize(name: &str) -> String {
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

/// Resolves a name by the imports of its file: `p.exit` is `std.process.exit` after `use std::process as p`.
fn full_name(name: &str, imports: &[Import]) -> (String, bool) {
    let (first, rest) = name
        .split_once('.')
        .map_or((name, None), |(first, rest)| (first, Some(rest)));
    let bound = imports.iter().find(|import| match &import.names {
        ImportedNames::Named { bound, .. } | ImportedNames::Whole { bound } => bound == first,
        ImportedNames::All => false,
    });
    let first = bound.map_or_else(
        || first.to_owned(),
        |import| normalize(&import.full_name(".")),
    );
    (
        rest.map_or_else(|| first.clone(), |rest| format!("{first}.{rest}")),
        bound.is_some(),
    )
}

/// All names and dotted paths in the code of the relevant lines.
fn used_names(
    masked: &str,
    imports: &[Import],
    is_relevant: &dyn Fn(usize) -> bool,
) -> Vec<NameUse> {
    let mut found = Vec::new();
    for (number, line) in (1..)
        .zip(masked.lines())
        .filter(|(number, _)| is_relevant(*number))
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
                let length = match bytes[at] {
                    b'.' => 1,
                    b':' if bytes.get(at + 1) == Some(&b':') => 2,
                    b'!' | b'?' if bytes.get(at + 1) != Some(&b'=') => 1,
                    byte if is_name(byte) => 1,
                    _ => break,
                };
                at += length;
            }
            let name = normalize(line[start..at].trim_end_matches(['.', ':']));
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
    fn cheats_are_found_behind_aliases() {
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
    fn prose_and_legitimate_uses_are_ignored() {
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
