//! The server's own scan of reviewed code for conflict markers, secrets, skipped tests and
//! debugging leftovers. The queries in `languages` define what a skipped test or a leftover looks
//! like.

use std::collections::BTreeMap;
use std::path::Path;

use super::judgement::{FindingSource, LineRanges, ReviewFinding, Severity};
use crate::common::citations::SourceText;
use supervisor_languages::Language;
use supervisor_text::words;

/// Max findings of one rule in one file; the rest is counted.
const MAX_PER_RULE: usize = 5;

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
            Self::Secret => {
                "this looks like a key, token or password, and anyone with this file can use it"
            }
            Self::SkippedTest => {
                "this test does not run, so nothing shows that what it tests works"
            }
            Self::DebugPrint => "this looks like a leftover from debugging",
        }
    }

    fn fix(self) -> &'static str {
        match self {
            Self::ConflictMarker => "resolve the conflict and remove the markers",
            Self::Secret => {
                "read it from the environment instead, and revoke it if it was ever committed"
            }
            Self::SkippedTest => "let it run, or delete it with a reason",
            Self::DebugPrint => "remove it, or use the project's logging",
        }
    }
}

/// Scans the given lines. `secrets` are the lines that contain one; their text is already redacted.
pub(crate) fn scan(
    file: &Path,
    source: &SourceText,
    lines: &LineRanges,
    secrets: &[usize],
) -> Vec<ReviewFinding> {
    let mut found: BTreeMap<Rule, Vec<usize>> = BTreeMap::new();
    let mut add = |rule: Rule, line: usize| found.entry(rule).or_default().push(line);
    for number in lines.ranges().iter().flat_map(Clone::clone) {
        let Some(line) = source.line(number) else {
            break;
        };
        if is_conflict_marker(line) {
            add(Rule::ConflictMarker, number);
        }
        if secrets.contains(&number) {
            add(Rule::Secret, number);
        }
    }
    let may_print = is_script_or_cli(file, source);
    let text = source.text();
    let tree = Language::of_path(file).and_then(|language| language.parse(file, text));
    let marks = tree
        .map(|tree| tree.matches(|q| &q.tests))
        .unwrap_or_default();
    let mut marked: Vec<(Rule, usize)> = Vec::new();
    for capture in marks.iter().flat_map(|m| &m.captures) {
        match capture.name {
            "skip" if !is_conditional(source, capture.line + 1) => {
                marked.push((Rule::SkippedTest, capture.line + 1));
            }
            "debugging" if !may_print => marked.push((Rule::DebugPrint, capture.line + 1)),
            _ => {}
        }
    }
    marked.sort_unstable();
    marked.dedup();
    for (rule, line) in marked.into_iter().filter(|(_, line)| lines.contains(*line)) {
        add(rule, line);
    }
    let of_rule = |(rule, lines): (Rule, Vec<usize>)| {
        let more = lines.len().saturating_sub(MAX_PER_RULE);
        let all = lines.into_iter().take(MAX_PER_RULE).enumerate();
        all.map(|(n, line)| {
            finding(
                rule,
                file,
                source,
                line,
                if n + 1 == MAX_PER_RULE { more } else { 0 },
            )
        })
        .collect::<Vec<_>>()
    };
    found.into_iter().flat_map(of_rule).collect()
}

fn finding(
    rule: Rule,
    file: &Path,
    source: &SourceText,
    line: usize,
    more: usize,
) -> ReviewFinding {
    let also = if more > 0 {
        format!(
            " (and {} like it in this file)",
            words::count(more, "more line")
        )
    } else {
        String::new()
    };
    let quote = source.line(line).unwrap_or_default();
    ReviewFinding {
        severity: rule.severity(),
        file: file.to_owned(),
        line,
        corrected_from: None,
        end_line: None,
        quote: words::short(quote.trim(), 200),
        rule: rule.name().into(),
        why: format!("{}{also}", rule.why()),
        fix: rule.fix().into(),
        also: Vec::new(),
        source: FindingSource::Server,
    }
}

/// Seven markers followed by a space or nothing. `=======` is ignored, because it also underlines
/// headings.
fn is_conflict_marker(line: &str) -> bool {
    ["<<<<<<<", ">>>>>>>"].iter().any(|m| {
        line.strip_prefix(m)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

/// A conditional skip still runs elsewhere: `t.Skip()` in an `if`, `skip("…") unless linux?`.
fn is_conditional(source: &SourceText, number: usize) -> bool {
    const BRANCHES: &[&str] = &[
        "if", "elif", "else", "unless", "case", "when", "switch", "match", "except", "catch",
    ];
    let depth = |line: &str| line.len() - line.trim_start().len();
    let starts_branch = |line: &str| {
        let first = line.trim_start().trim_start_matches('}').trim_start();
        BRANCHES.iter().any(|word| {
            first
                .strip_prefix(word)
                .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        })
    };
    let Some(own) = source.line(number) else {
        return false;
    };
    let above = (1..number)
        .rev()
        .filter_map(|n| source.line(n))
        .filter(|line| !line.trim().is_empty());
    // The line that opens the enclosing block.
    let opener = above.into_iter().find(|line| depth(line) < depth(own));
    starts_branch(own)
        || [" if ", " unless "].iter().any(|word| own.contains(word))
        || opener.is_some_and(starts_branch)
}

/// Scripts and command-line tools print on purpose.
fn is_script_or_cli(file: &Path, source: &SourceText) -> bool {
    source.text().starts_with("#!")
        || file.components().any(|part| {
            ["bin", "scripts", "cli", "examples"]
                .iter()
                .any(|dir| part.as_os_str() == *dir)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::citations::SourceTexts;

    fn scan_text(file: &str, text: &str) -> Vec<String> {
        let mut sources = SourceTexts::default();
        sources.add(file, text);
        let source = sources.get(Path::new(file)).expect("just added");
        let found = scan(
            Path::new(file),
            source,
            &LineRanges::all(source.lines()),
            &[],
        );
        found
            .iter()
            .map(|f| format!("{} {} {}", f.line, f.severity.word(), f.rule))
            .collect()
    }

    #[test]
    fn leftovers_are_found_in_each_language() {
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
                vec![
                    "1 warning skipped test",
                    "2 warning skipped test",
                    "3 suggestion debugging leftover",
                ],
            ),
            (
                "a_test.go",
                "func T() {\n\tt.Skip(\"later\")\n}",
                vec!["2 warning skipped test"],
            ),
            (
                "a_spec.rb",
                "xit 'x' do\nbinding.pry\nend",
                vec!["1 warning skipped test", "2 suggestion debugging leftover"],
            ),
            (
                "a.exs",
                "@tag :skip\nIO.inspect(x)",
                vec!["1 warning skipped test", "2 suggestion debugging leftover"],
            ),
            (
                "a.txt",
                "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs",
                vec!["1 critical conflict marker", "5 critical conflict marker"],
            ),
        ] {
            assert_eq!(scan_text(file, text), expected, "{file}");
        }
    }

    #[test]
    fn lookalikes_are_not_reported() {
        for (file, text) in [
            (
                "a.ts",
                "process.exit(0)\nmyconsole.log(1)\n// console.log(1)\nconst s = \"console.log(1)\"",
            ),
            ("a.rs", "// #[ignore]\nlet s = \"dbg!(\";\nmy_dbg!(1)"),
            ("bin/run.js", "console.log('usage')"),
            ("run.mjs", "#!/usr/bin/env node\nconsole.log('usage')"),
            (
                "a.md",
                "Heading\n=======\nconsole.log(1) <<<<<<< x\n<<<<<<<< eight",
            ),
            ("a.py", "print(1)\nunskip(1)\n# breakpoint()"),
            (
                "a.py",
                "@pytest.mark.skipif(sys.platform == 'win32', reason='no fork')\ndef test(): pass",
            ),
            (
                "a.py",
                "@unittest.skipIf(old, 'x')\n@unittest.skipUnless(new, 'x')\ndef test(): pass",
            ),
            (
                "a.py",
                "def test():\n    if not shutil.which('git'):\n        pytest.skip('needs git')\n    run()",
            ),
            (
                "a_test.go",
                "func TestX(t *testing.T) {\n\tif testing.Short() {\n\t\tt.Skip(\"slow\")\n\t}\n}",
            ),
            ("a_spec.rb", "it 'x' do\n  skip('later') unless linux?\nend"),
            ("a.ts", "if (!hasDocker) {\n  it.skip('x', f)\n}"),
        ] {
            assert_eq!(scan_text(file, text), Vec::<String>::new(), "{file}");
        }
    }

    #[test]
    fn repeated_findings_are_counted_within_scanned_lines() {
        let text = "console.log(1)\n".repeat(12);
        let mut sources = SourceTexts::default();
        sources.add("a.js", text);
        let source = sources.get(Path::new("a.js")).expect("just added");
        let all = scan(Path::new("a.js"), source, &LineRanges::all(12), &[]);
        assert_eq!(all.len(), 5);
        assert!(
            all[4]
                .why
                .ends_with("(and 7 more lines like it in this file)")
                && !all[3].why.contains("more"),
            "{all:?}"
        );
        let new = scan(
            Path::new("a.js"),
            source,
            &LineRanges::around([3], 0, 12),
            &[3, 9],
        );
        assert_eq!(
            new.iter().map(|f| (f.line, f.severity)).collect::<Vec<_>>(),
            [(3, Severity::Critical), (3, Severity::Suggestion)]
        );
    }
}
