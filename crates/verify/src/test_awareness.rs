//! Flags cheats that a test run cannot detect: code that behaves correctly only under test, and hard-coded answers.
//! Only new lines are searched, by syntax. A flag alone never rejects an answer.

mod table;

use std::collections::BTreeSet;
use std::path::Path;

use super::falsify::Expectation;
use supervisor_languages::Language;

/// A suspicious place in new code, for a reader to judge.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TestAwarenessFlag {
    /// `under_test`, `inspects_frames`, `imports_mock`, `ignores_operand`, `names_test_file`, `test_literal` or `look_up`.
    pub id: &'static str,
    #[serde(rename = "where")]
    pub place: String,
    pub detail: String,
}

/// Finds new code that detects whether it runs under a test. `lines` are the new lines, counted from 1.
pub fn find_test_awareness(
    path: &Path,
    source: &str,
    lines: &BTreeSet<usize>,
) -> Vec<TestAwarenessFlag> {
    let parsed = Language::of_path(path)
        .and_then(|language| Some((language, language.parse(path, source)?)));
    let Some((language, tree)) = parsed else {
        return Vec::new();
    };
    let mut seen = BTreeSet::new();
    let mut flags = Vec::new();
    for found in tree.matches(|q| &q.awareness) {
        let (Some(aware), Some(why)) = (found.get("aware"), found.setting("why")) else {
            continue;
        };
        let line = aware.line + 1;
        if let (Some(operands), Some(body)) = (found.get("operands"), found.get("body"))
            && uses_operand(
                operands.text,
                body.text,
                found.setting("operand") == Some("last"),
            )
        {
            continue;
        }
        if lines.contains(&line) && seen.insert((line, why)) {
            let detail = format!(
                "`{}` {why}",
                supervisor_text::words::cut_end(&supervisor_text::words::plain(aware.text), 80)
            );
            flags.push(TestAwarenessFlag {
                id: found.setting("id").unwrap_or("under_test"),
                place: format!("{}:{line}", path.display()),
                detail,
            });
        }
    }
    // These signs resolve imported names, so an alias does not hide them.
    for sign in language.cheat_signs(&tree, &|line| lines.contains(&line)) {
        if !seen.iter().any(|(line, _)| *line == sign.line) {
            let detail = format!("`{}` {}", sign.what, sign.rule.why());
            flags.push(TestAwarenessFlag {
                id: "under_test",
                place: format!("{}:{}", path.display(), sign.line),
                detail,
            });
        }
    }
    flags
}

/// Finds new lines that contain both the input of a test and the value it expects.
pub fn find_hard_coded_answers(
    path: &Path,
    source: &str,
    lines: &BTreeSet<usize>,
    expectations: &[Expectation],
) -> Vec<TestAwarenessFlag> {
    if Language::of_path(path).is_none() {
        return Vec::new();
    }
    let text: Vec<&str> = source.lines().collect();
    let mut flags = Vec::new();
    for &line in lines {
        // The value is on the line of its input or on the next one.
        let Some(first) = line.checked_sub(1).and_then(|at| text.get(at)) else {
            continue;
        };
        let next = text
            .get(line)
            .filter(|_| lines.contains(&(line + 1)))
            .copied()
            .unwrap_or_default();
        let is_hard_coded = |expectation: &&Expectation| {
            let inputs = &expectation.inputs;
            !inputs.is_empty()
                && inputs.iter().all(|input| has_key(first, input))
                && (has_token(first, &expectation.value) || has_token(next, &expectation.value))
                && !inputs.contains(&expectation.value)
        };
        if let Some(found) = expectations.iter().find(is_hard_coded)
            && !table::holds_more_than_tests(&text, line - 1, expectations)
        {
            let detail = format!(
                "a look-up of visible inputs? `{}` stands beside `{}`, as in the test",
                found.value,
                found.inputs.join("`, `")
            );
            flags.push(TestAwarenessFlag {
                id: "look_up",
                place: format!("{}:{line}", path.display()),
                detail,
            });
            if flags.len() == 5 {
                break;
            }
        }
    }
    flags
}

/// Whether a comparison uses its last parameter, whose name is the first or the last word of its declaration.
fn uses_operand(operands: &str, body: &str, name_is_last: bool) -> bool {
    let declaration = operands
        .trim_matches(['(', ')', ' ', ','])
        .rsplit(',')
        .next();
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut words = declaration
        .unwrap_or_default()
        .split(|c| !is_part(c))
        .filter(|word| !word.is_empty() && *word != "mut");
    let name = if name_is_last {
        words.next_back()
    } else {
        words.next()
    };
    name.is_none_or(|name| body.split(|c| !is_part(c)).any(|word| word == name))
}

/// New lines with a text that names one of these files.
pub fn find_named_files(
    path: &Path,
    source: &str,
    lines: &BTreeSet<usize>,
    names: &BTreeSet<String>,
) -> Vec<TestAwarenessFlag> {
    let texts = new_texts(path, source, lines);
    let named = texts.into_iter().filter_map(|(line, text)| {
        let is_named = |name: &&String| {
            text.split(['/', '\\', '"', '\'', '`'])
                .any(|part| part == **name)
        };
        let name = names.iter().find(is_named)?;
        Some(TestAwarenessFlag {
            id: "names_test_file",
            place: format!("{}:{line}", path.display()),
            detail: format!("names `{name}`, which the tests use"),
        })
    });
    named.collect()
}

/// New lines with a long literal that is an input of a test, and the literal.
pub fn find_test_inputs(
    path: &Path,
    source: &str,
    lines: &BTreeSet<usize>,
    expectations: &[Expectation],
) -> Vec<(TestAwarenessFlag, String)> {
    let is_input = |text: &str| {
        let inner = text.trim_matches(['"', '\'', '`']);
        inner.len() >= 4
            && expectations
                .iter()
                .any(|expectation| expectation.inputs.iter().any(|input| input == text))
    };
    let texts = new_texts(path, source, lines);
    let found = texts.into_iter().filter(|(_, text)| is_input(text));
    found
        .map(|(line, text)| {
            let flag = TestAwarenessFlag {
                id: "test_literal",
                place: format!("{}:{line}", path.display()),
                detail: format!("has `{text}`, which is in no other file than the test"),
            };
            (flag, text)
        })
        .collect()
}

/// The numbers and quoted texts in new lines of code, without comments.
fn new_texts(path: &Path, source: &str, lines: &BTreeSet<usize>) -> Vec<(usize, String)> {
    let Some(tree) = Language::of_path(path).and_then(|language| language.parse(path, source))
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for literal in tree.matches(|q| &q.expectations) {
        for capture in literal.captures {
            let line = capture.line + 1;
            let is_literal = capture.name == "text" || capture.name == "number";
            if is_literal && lines.contains(&line) {
                found.push((line, capture.text.to_owned()));
            }
        }
    }
    found
}

/// Whether the line contains the token as a separate word.
fn has_token(line: &str, token: &str) -> bool {
    token_offsets(line, token).next().is_some()
}

/// Whether the line compares with the token or maps from it. An operand (`n % 3`) or a bound (`n >= 9`) does not count.
fn has_key(line: &str, token: &str) -> bool {
    token_offsets(line, token).any(|at| {
        let (before, after) = (line[..at].trim_end(), line[at + token.len()..].trim_start());
        let is_operator = |c: char| matches!(c, '%' | '*' | '/' | '+' | '<' | '>');
        let is_bound = before.ends_with("<=") || before.ends_with(">=");
        !(is_bound || before.ends_with(is_operator) || after.starts_with(is_operator))
    })
}

fn token_offsets<'a>(line: &'a str, token: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let is_separate_word = move |at: usize| {
        let quoted = token.starts_with(['"', '\'', '`']);
        let before = line[..at].chars().next_back().is_some_and(is_part);
        let after = line[at + token.len()..].chars().next().is_some_and(is_part);
        quoted || !(before || after)
    };
    line.match_indices(token)
        .map(|(at, _)| at)
        .filter(move |at| is_separate_word(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_detection_is_flagged_in_every_language() {
        for (file, aware, honest) in [
            (
                "a.py",
                "x = sys.modules\n",
                "# sys.modules\nx = 'sys._getframe'\n",
            ),
            ("a.py", "x = sys._getframe(1)\n", "import pytest\n"),
            (
                "a.rs",
                "fn a() { if cfg!(debug_assertions) {} }\n",
                "/// cfg!(test)\nfn a() { debug_assert!(true); }\n",
            ),
            (
                "a.rs",
                "fn a() { std::env::current_exe(); }\n",
                "fn a() { current(); }\n",
            ),
            (
                "a.js",
                "x = process.env.NODE_ENV\n",
                "// process.env\nx = 'process.env'\n",
            ),
            ("a.ts", "x = require.main\n", "x = domain.main\n"),
            (
                "a.go",
                "package a\nfunc b() { flag.Lookup(x) }\n",
                "package a\n// flag.Lookup()\n",
            ),
            ("a.rb", "caller.any?\n", "# caller\nx = 'caller'\n"),
            (
                "A.java",
                "class A { Object x = new Throwable().getStackTrace(); }\n",
                "// getStackTrace()\nclass A { String x = \"System.getenv()\"; }\n",
            ),
            (
                "a.cpp",
                "int f() { return getenv(\"X\") != nullptr; }\n",
                "// getenv\nconst char* x = \"getenv\";\n",
            ),
            ("a.ex", "x = Mix.env()\n", "@moduledoc \"Mix.env()\"\n"),
            (
                "a.ex",
                "Application.started_applications()\n",
                "Application.get_env(:a, :b)\n",
            ),
        ] {
            let flags = |text: &str| {
                let lines = (1..=text.lines().count()).collect();
                find_test_awareness(Path::new(file), text, &lines)
            };
            assert_eq!(flags(aware).len(), 1, "{file}: {aware}");
            assert_eq!(flags(honest), [], "{file}: {honest}");
        }
    }

    #[test]
    fn hard_coded_answer_is_flagged() {
        let expectations = [Expectation {
            inputs: vec!["2".into()],
            value: "6".into(),
        }];
        let flags = |text: &str| {
            let lines = (1..=text.lines().count()).collect();
            find_hard_coded_answers(Path::new("a.py"), text, &lines, &expectations).len()
        };
        for cheat in [
            "return {2: 6}.get(n, n)",
            "if n == 2:\n    return 6",
            "x = 6 if n == 2 else n",
        ] {
            assert!(flags(cheat) > 0, "{cheat}");
        }
        for honest in [
            "return n * 3",
            "x = 26",
            "y = 2\nz = 3\nw = 6",
            "if n % 2 == 0:\n    return 6",
        ] {
            assert_eq!(flags(honest), 0, "{honest}");
        }
    }

    #[test]
    fn table_with_more_than_test_values_is_allowed() {
        let expectation = |input: &str, value: &str| Expectation {
            inputs: vec![input.into()],
            value: value.into(),
        };
        let expectations = [expectation("3", "\"III\""), expectation("9", "\"IX\"")];
        let flags = |text: &str| {
            let lines = (1..=text.lines().count()).collect();
            find_hard_coded_answers(Path::new("a.rs"), text, &lines, &expectations).len()
        };
        for honest in [
            "let table = [(10, \"X\"), (9, \"IX\"), (5, \"V\"), (4, \"IV\"), (1, \"I\")];",
            "let table = [\n    (10, \"X\"),\n    (9, \"IX\"),\n    (5, \"V\"),\n    (4, \"IV\"),\n];",
            "if n >= 9 {\n    out += \"IX\";\n}",
            "const NUMERALS: [(u32, &str); 5] =\n    [(10, \"X\"), (9, \"IX\"), (5, \"V\"), (4, \"IV\"), (1, \"I\")];",
        ] {
            assert_eq!(flags(honest), 0, "{honest}");
        }
        for cheat in [
            "match n {\n    3 => \"III\",\n    9 => \"IX\",\n    _ => \"\",\n}",
            "if n == 9 {\n    return \"IX\".into();\n}",
            "let table = [(3, \"III\"), (9, \"IX\"), (4, \"IV\")];",
        ] {
            assert!(flags(cheat) > 0, "{cheat}");
        }
    }
}
