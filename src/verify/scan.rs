//! What the server sees by itself in code under review: conflict markers, secrets, skipped tests, debugging leftovers.
//! Knows lines and languages by their file's name. Says little, but whatever a model says.

use std::collections::BTreeMap;
use std::path::Path;

use super::citations::Source;
use super::findings::{Finder, Finding, Lines, Severity};
use crate::words;

/// After this many of one kind in one file, the rest is counted.
const EACH: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    ConflictMarker,
    Secret,
    SkippedTest,
    DebugPrint,
}

impl Rule {
    fn name(self) -> &'static str {
        match self {
            Self::ConflictMarker => "conflict marker",
            Self::Secret => "secret in source",
            Self::SkippedTest => "skipped test",
            Self::DebugPrint => "debugging leftover",
        }
    }

    fn severity(self) -> Severity {
        match self {
            Self::ConflictMarker | Self::Secret => Severity::Critical,
            Self::SkippedTest => Severity::Warning,
            Self::DebugPrint => Severity::Suggestion,
        }
    }

    fn why(self) -> &'static str {
        match self {
            Self::ConflictMarker => "a merge conflict was left unresolved here",
            Self::Secret => "this looks like a key, token or password, and whoever reads the file has it",
            Self::SkippedTest => "this test does not run, so nothing shows that what it tests works",
            Self::DebugPrint => "this looks like a leftover from debugging",
        }
    }

    fn fix(self) -> &'static str {
        match self {
            Self::ConflictMarker => "resolve the conflict and remove the markers",
            Self::Secret => "read it from the environment instead, and revoke it if it was ever committed",
            Self::SkippedTest => "let it run, or delete it with a reason",
            Self::DebugPrint => "remove it, or use the project's logging",
        }
    }
}

/// A language, as far as a scan needs it.
struct Language {
    endings: &'static [&'static str],
    /// What begins a comment.
    comments: &'static [&'static str],
    skips: &'static [&'static str],
    debugging: &'static [&'static str],
}

const LANGUAGES: &[Language] = &[
    Language { endings: &["rs"], comments: &["//"], skips: &["#[ignore"], debugging: &["dbg!("] },
    Language {
        endings: &["py"],
        comments: &["#"],
        skips: &["@pytest.mark.skip", "@unittest.skip", "pytest.skip(", "self.skipTest("],
        debugging: &["breakpoint()", "pdb.set_trace()", "import pdb", "import ipdb"],
    },
    Language {
        endings: &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"],
        comments: &["//", "*", "/*"],
        skips: &[
            "it.skip(",
            "test.skip(",
            "describe.skip(",
            "xit(",
            "xtest(",
            "xdescribe(",
            "it.only(",
            "test.only(",
            "describe.only(",
            "it.todo(",
            "test.todo(",
        ],
        debugging: &["console.log(", "console.debug(", "debugger;"],
    },
    Language {
        endings: &["go"],
        comments: &["//"],
        skips: &["t.Skip(", "t.Skipf(", "t.SkipNow("],
        debugging: &["spew.Dump("],
    },
    Language {
        endings: &["rb"],
        comments: &["#"],
        skips: &["xit ", "xit(", "xdescribe ", "xcontext ", "skip:", "skip("],
        debugging: &["binding.pry", "binding.irb", "byebug"],
    },
    Language {
        endings: &["ex", "exs"],
        comments: &["#"],
        skips: &["@tag :skip", "@moduletag :skip", "@tag skip:"],
        debugging: &["IEx.pry", "IO.inspect("],
    },
];

/// Findings in the lines that count. `secrets` are the lines that hold one; what is quoted of them is already redacted.
pub fn scan(file: &Path, source: &Source, count: &Lines, secrets: &[usize]) -> Vec<Finding> {
    let ending = file.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let language = LANGUAGES.iter().find(|language| language.endings.contains(&ending));
    let prints = prints_by_trade(file, source);
    let mut found: BTreeMap<Rule, Vec<usize>> = BTreeMap::new();
    for number in count.ranges().iter().flat_map(Clone::clone) {
        let Some(line) = source.line(number) else { break };
        let mut note = |rule: Rule| found.entry(rule).or_default().push(number);
        if is_conflict_marker(line) {
            note(Rule::ConflictMarker);
        }
        if secrets.contains(&number) {
            note(Rule::Secret);
        }
        let Some(language) = language else { continue };
        if language.comments.iter().any(|comment| line.trim_start().starts_with(comment)) {
            continue;
        }
        if language.skips.iter().any(|marker| stands_in(line, marker)) {
            note(Rule::SkippedTest);
        }
        if !prints && language.debugging.iter().any(|marker| stands_in(line, marker)) {
            note(Rule::DebugPrint);
        }
    }
    let of_rule = |(rule, lines): (Rule, Vec<usize>)| {
        let more = lines.len().saturating_sub(EACH);
        let all = lines.into_iter().take(EACH).enumerate();
        all.map(|(n, line)| finding(rule, file, source, line, if n + 1 == EACH { more } else { 0 })).collect::<Vec<_>>()
    };
    found.into_iter().flat_map(of_rule).collect()
}

fn finding(rule: Rule, file: &Path, source: &Source, line: usize, more: usize) -> Finding {
    let also = if more > 0 {
        format!(" (and {} like it in this file)", words::count(more, "more line"))
    } else {
        String::new()
    };
    let quote = source.line(line).unwrap_or_default();
    Finding {
        severity: rule.severity(),
        file: file.to_owned(),
        line,
        end_line: None,
        quote: words::cut_end(&words::plain(quote.trim()), 200).into_owned(),
        rule: rule.name().into(),
        why: format!("{}{also}", rule.why()),
        fix: rule.fix().into(),
        also: Vec::new(),
        source: Finder::Server,
    }
}

/// Seven of a kind and then a blank or nothing. `=======` alone also underlines headings.
fn is_conflict_marker(line: &str) -> bool {
    ["<<<<<<<", ">>>>>>>"]
        .iter()
        .any(|m| line.strip_prefix(m).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}

/// The marker is there as a word of its own, and not in a text.
fn stands_in(line: &str, marker: &str) -> bool {
    line.match_indices(marker).any(|(at, _)| {
        let before = &line[..at];
        let is_word = marker.starts_with(|c: char| c.is_alphanumeric());
        let joined = is_word && before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        let quoted = ['"', '\'', '`'].iter().any(|quote| before.matches(*quote).count() % 2 == 1);
        !joined && !quoted
    })
}

/// Scripts and command lines print because that is what they are for.
fn prints_by_trade(file: &Path, source: &Source) -> bool {
    source.text().starts_with("#!")
        || file
            .components()
            .any(|part| ["bin", "scripts", "cli", "examples"].iter().any(|dir| part.as_os_str() == *dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Sources;

    fn seen(file: &str, text: &str) -> Vec<String> {
        let mut sources = Sources::default();
        sources.add(file, text);
        let source = sources.get(Path::new(file)).expect("just added");
        let found = scan(Path::new(file), source, &Lines::all(source.lines()), &[]);
        found.iter().map(|f| format!("{} {} {}", f.line, f.severity.word(), f.rule)).collect()
    }

    #[test]
    fn each_language_has_its_leftovers() {
        for (file, text, expected) in [
            (
                "a.rs",
                "#[test]\n#[ignore]\nfn t() {\n    dbg!(1);\n}",
                vec!["2 warning skipped test", "4 suggestion debugging leftover"],
            ),
            (
                "a.py",
                "@pytest.mark.skip\ndef test():\n    breakpoint()",
                vec!["1 warning skipped test", "3 suggestion debugging leftover"],
            ),
            (
                "a.ts",
                "xit('x', f)\nit.only('y', f)\nconsole.log(1)",
                vec!["1 warning skipped test", "2 warning skipped test", "3 suggestion debugging leftover"],
            ),
            ("a_test.go", "func T() {\n\tt.Skip(\"later\")\n}", vec!["2 warning skipped test"]),
            ("a_spec.rb", "xit 'x' do\nbinding.pry", vec!["1 warning skipped test", "2 suggestion debugging leftover"]),
            ("a.exs", "@tag :skip\nIO.inspect(x)", vec!["1 warning skipped test", "2 suggestion debugging leftover"]),
            (
                "a.txt",
                "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs",
                vec!["1 critical conflict marker", "5 critical conflict marker"],
            ),
        ] {
            assert_eq!(seen(file, text), expected, "{file}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_left_alone() {
        for (file, text) in [
            ("a.ts", "process.exit(0)\nmyconsole.log(1)\n// console.log(1)\nconst s = \"console.log(1)\""),
            ("a.rs", "// #[ignore]\nlet s = \"dbg!(\";\nmy_dbg!(1)"),
            ("bin/run.js", "console.log('usage')"),
            ("run.mjs", "#!/usr/bin/env node\nconsole.log('usage')"),
            ("a.md", "Heading\n=======\nconsole.log(1) <<<<<<< x\n<<<<<<<< eight"),
            ("a.py", "print(1)\nunskip(1)\n# breakpoint()"),
        ] {
            assert_eq!(seen(file, text), Vec::<String>::new(), "{file}");
        }
    }

    #[test]
    fn many_of_a_kind_are_counted_and_only_lines_that_count_are_looked_at() {
        let text = "console.log(1)\n".repeat(12);
        let mut sources = Sources::default();
        sources.add("a.js", text);
        let source = sources.get(Path::new("a.js")).expect("just added");
        let all = scan(Path::new("a.js"), source, &Lines::all(12), &[]);
        assert_eq!(all.len(), 5);
        assert!(
            all[4].why.ends_with("(and 7 more lines like it in this file)") && !all[3].why.contains("more"),
            "{all:?}"
        );
        let new = scan(Path::new("a.js"), source, &Lines::around([3], 0, 12), &[3, 9]);
        assert_eq!(
            new.iter().map(|f| (f.line, f.severity)).collect::<Vec<_>>(),
            [(3, Severity::Critical), (3, Severity::Suggestion)]
        );
    }
}
