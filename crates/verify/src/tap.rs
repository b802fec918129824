//! Parses TAP, the Test Anything Protocol. The runner writes the results to standard output, where the code under test can
//! write as well. The parser therefore checks that each level has every point of its plan, once and in order. A line that
//! does not fit is recorded as a doubt, and a pass with doubts does not count. [`parse`] is the entry point.

use std::collections::BTreeMap;

use super::outcome::TestState;
use super::report::{TestRunReport, failed};

/// A parsed document.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TapDocument {
    pub(super) cases: Vec<TapCase>,
    /// Inconsistencies that the runner itself would not have produced.
    pub(super) doubts: Vec<String>,
    /// The total number of points. One test may have many assertions, each of which is a point.
    pub(super) points: usize,
    /// The plan of the outermost level is present, so the runner ran to its end.
    pub(super) is_complete: bool,
    /// The last heading. It names the running test if the run ended early.
    pub(super) last_heading: Option<String>,
}

/// One test: a single point, or all points below one heading.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TapCase {
    /// The enclosing headings, outermost first, then the title if a single point is the test.
    pub(super) path: Vec<String>,
    pub(super) state: TestState,
}

/// The state of one level of indentation.
#[derive(Debug, Default)]
struct Level {
    count: usize,
    plan: Option<usize>,
    /// The heading that its own point has not closed yet.
    heading: Option<String>,
    /// Whether comments are headings, which is so if one came before the first point. Otherwise they belong to the
    /// point before them. `None` before the first point.
    comments_are_headings: Option<bool>,
}

/// The results of the points below one heading.
#[derive(Debug, Default)]
struct Group {
    passed: usize,
    failures: Vec<String>,
}

#[derive(Debug)]
struct TapParser {
    document: TapDocument,
    levels: Vec<Level>,
    groups: BTreeMap<Vec<String>, Group>,
    order: Vec<Vec<String>>,
    /// Subtests that failed as a whole, with their titles.
    failed_subtests: Vec<(Vec<String>, String)>,
    /// The group of the last failed point, whose details may follow.
    failing_group: Option<Vec<String>>,
    /// The indentation of the YAML block being read.
    yaml_indent: Option<usize>,
}

/// Parses a document; `None` if the text is not TAP.
pub(super) fn parse(text: &str) -> Option<TapDocument> {
    let mut parser = TapParser {
        document: TapDocument::default(),
        levels: vec![Level::default()],
        groups: BTreeMap::new(),
        order: Vec::new(),
        failed_subtests: Vec::new(),
        failing_group: None,
        yaml_indent: None,
    };
    text.lines().for_each(|line| parser.parse_line(line));
    parser.close_levels_from(1);
    parser.into_document()
}

impl TapParser {
    fn parse_line(&mut self, line: &str) {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if let Some(from) = self.yaml_indent {
            if indent <= from && text == "..." {
                self.yaml_indent = None;
            } else {
                self.add_detail(text);
            }
            return;
        }
        if text == "---" && indent >= 2 {
            self.yaml_indent = Some(indent);
            return;
        }
        let depth = indent / 4;
        if !indent.is_multiple_of(4) || depth > self.levels.len() {
            return;
        }
        if text == "}" {
            return self.close_block(depth);
        }
        // Other output may be indented as well; only TAP lines open or close a level.
        let (point, plan) = (Point::parse(text), parse_plan(text));
        let comment = text
            .strip_prefix('#')
            .map(str::trim)
            .filter(|words| !words.is_empty());
        if (point.is_some() || plan.is_some() || comment.is_some()) && depth == self.levels.len() {
            self.levels.push(Level::default());
        }
        match (point, plan, comment) {
            (Some(point), ..) => self.handle_point(depth, &point),
            (None, Some(count), _) => self.handle_plan(depth, count),
            (None, None, Some(words)) => self.handle_comment(depth, words),
            (None, None, None) => {}
        }
    }

    fn handle_comment(&mut self, depth: usize, words: &str) {
        let subtest = words.strip_prefix("Subtest: ");
        if subtest.is_none() && self.levels[depth].comments_are_headings == Some(false) {
            return self.add_detail(words);
        }
        self.failing_group = None;
        self.close_levels_from(depth + 1);
        if let Some(title) = words
            .strip_prefix("SKIP ")
            .or_else(|| words.strip_prefix("TODO "))
        {
            let path = self.path_at(depth, Some(title));
            self.group_mut(path);
            return;
        }
        let title = subtest.unwrap_or(words).trim();
        self.levels[depth].heading = Some(title.to_owned());
        if !self.document.is_complete {
            self.document.last_heading = Some(title.to_owned());
        }
    }

    fn handle_plan(&mut self, depth: usize, count: usize) {
        self.close_levels_from(depth + 1);
        let level = &mut self.levels[depth];
        if let Some(known) = level.plan {
            self.document
                .doubts
                .push(format!("a plan of {count} is written after one of {known}"));
        }
        level.plan = Some(count);
        self.document.is_complete |= depth == 0 && level.count > 0;
    }

    fn handle_point(&mut self, depth: usize, point: &Point<'_>) {
        let is_subtest = self.levels.len() > depth + 1 && self.levels[depth].heading.is_some();
        self.close_levels_from(depth + 1);
        let level = &mut self.levels[depth];
        level.count += 1;
        if let Some(number) = point.number.filter(|number| *number != level.count) {
            self.document.doubts.push(format!(
                "test point {number} is written where {} was expected",
                level.count
            ));
            // Continue from this number, so that one line causes one doubt.
            level.count = number;
        }
        let comments_are_headings = *level
            .comments_are_headings
            .get_or_insert(level.heading.is_some() && !is_subtest);
        if point.opens_block {
            self.levels[depth].heading = Some(point.title.to_owned());
            if !point.passed {
                self.failed_subtests
                    .push((self.path_at(depth + 1, None), point.title.to_owned()));
            }
            return;
        }
        let below = self.path_at(depth + 1, None);
        if is_subtest {
            self.levels[depth].heading = None;
            let has_results = self
                .groups
                .range(below.clone()..)
                .next()
                .is_some_and(|(path, _)| path.starts_with(&below));
            if has_results {
                if !point.passed {
                    self.failed_subtests.push((below, point.title.to_owned()));
                }
                return;
            }
        }
        self.document.points += 1;
        // A point below a heading is part of that test. Otherwise, or if it was skipped, it is a test of its own.
        let is_part =
            is_subtest || comments_are_headings || (!below.is_empty() && !point.is_skipped());
        let path = if is_part {
            below
        } else {
            self.path_at(depth, Some(point.title))
        };
        self.failing_group = (!point.passed).then(|| path.clone());
        let group = self.group_mut(path);
        if point.passed && !point.is_skipped() {
            group.passed += 1;
        } else if !point.is_skipped() {
            group.failures.push(point.title.to_owned());
        }
    }

    fn close_block(&mut self, depth: usize) {
        if let Some(level) = self.levels.get_mut(depth) {
            level.heading = None;
        }
        self.close_levels_from(depth + 1);
    }

    fn add_detail(&mut self, words: &str) {
        let Some(path) = &self.failing_group else {
            return;
        };
        if let Some(last) = self
            .groups
            .get_mut(path)
            .and_then(|group| group.failures.last_mut())
        {
            last.push('\n');
            last.push_str(words);
        }
    }

    /// The headings of the levels above `depth`, outermost first, and `title`.
    fn path_at(&self, depth: usize, title: Option<&str>) -> Vec<String> {
        let headings = self
            .levels
            .iter()
            .take(depth)
            .filter_map(|level| level.heading.clone());
        headings.chain(title.map(str::to_owned)).collect()
    }

    fn group_mut(&mut self, path: Vec<String>) -> &mut Group {
        if !self.groups.contains_key(&path) {
            self.order.push(path.clone());
        }
        self.groups.entry(path).or_default()
    }

    /// Closes the levels from `depth` on and checks each against its plan.
    fn close_levels_from(&mut self, depth: usize) {
        while self.levels.len() > depth {
            let Some(level) = self.levels.pop() else {
                return;
            };
            self.check_plan(&level);
        }
    }

    fn check_plan(&mut self, level: &Level) {
        if let Some(plan) = level.plan.filter(|plan| *plan != level.count) {
            self.document
                .doubts
                .push(format!("a plan of {plan} has {} test points", level.count));
        }
    }

    fn into_document(mut self) -> Option<TapDocument> {
        let top = self.levels.pop()?;
        if top.count == 0 && top.plan.is_none() {
            return None;
        }
        self.check_plan(&top);
        self.document.is_complete = top.plan.is_some_and(|plan| plan <= top.count);
        for (path, title) in std::mem::take(&mut self.failed_subtests) {
            let mut below = self
                .groups
                .range(path.clone()..)
                .take_while(|(p, _)| p.starts_with(&path));
            if !below.any(|(_, group)| !group.failures.is_empty()) {
                self.group_mut(path).failures.push(title);
            }
        }
        for path in self.order {
            let Some(group) = self.groups.remove(&path) else {
                continue;
            };
            let state = match group {
                Group { failures, .. } if !failures.is_empty() => failed(failures.join("\n")),
                Group { passed: 0, .. } => TestState::Skipped,
                Group { .. } => TestState::Passed,
            };
            self.document.cases.push(TapCase { path, state });
        }
        Some(self.document)
    }
}

/// One line of results.
#[derive(Debug)]
struct Point<'a> {
    passed: bool,
    number: Option<usize>,
    title: &'a str,
    directive: &'a str,
    /// Its subtests follow in braces.
    opens_block: bool,
}

impl<'a> Point<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (passed, rest) = match (line.strip_prefix("ok"), line.strip_prefix("not ok")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return None,
        };
        if !rest.is_empty() && !rest.starts_with(' ') {
            return None;
        }
        let rest = rest.trim_start();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = rest[..digits].parse().ok();
        let rest = rest[digits..].trim_start();
        let rest = rest.strip_prefix("- ").unwrap_or(rest);
        let (rest, opens_block) = rest
            .strip_suffix(" {")
            .map_or((rest, false), |rest| (rest, true));
        let only_directive = || Some(("", rest.strip_prefix("# ")?));
        let (title, directive) = rest
            .rsplit_once(" # ")
            .or_else(only_directive)
            .unwrap_or((rest, ""));
        Some(Self {
            passed,
            number,
            title: title.trim(),
            directive: directive.trim(),
            opens_block,
        })
    }

    /// Marked as skipped or not expected to pass yet.
    fn is_skipped(&self) -> bool {
        let word = self.directive.split_whitespace().next().unwrap_or_default();
        word.eq_ignore_ascii_case("skip") || word.eq_ignore_ascii_case("todo")
    }
}

fn parse_plan(line: &str) -> Option<usize> {
    line.strip_prefix("1..")?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

impl TapDocument {
    /// Converts the cases into a report, with names built by `name`.
    pub(super) fn into_report(self, name: impl Fn(&[String]) -> String) -> TestRunReport {
        let mut report = TestRunReport::default();
        for case in self.cases {
            report.add(&name(&case.path), case.state);
        }
        report.doubts = self.doubts;
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summarize(text: &str) -> Vec<String> {
        let document = parse(text).expect("a document");
        let state = |state: &TestState| match state {
            TestState::Passed => String::from("passed"),
            TestState::Skipped => String::from("skipped"),
            TestState::Failed(why) => format!("failed: {}", why.replace('\n', "|")),
        };
        document
            .cases
            .iter()
            .map(|case| format!("{} {}", case.path.join(" > "), state(&case.state)))
            .collect()
    }

    const TAPE: &str = "TAP version 13\n# adds\nok 1 small\nok 2 large\n# later\nnot ok 3 equal\n  ---\n    operator: equal\n    \
        expected: 2\n  ...\nok 4 more\n# SKIP never\n# tests are written here\nok 5 adds # SKIP\n\n1..5\n# tests 5\n# pass  4\n";
    const SUBTESTS: &str = "TAP version 14\n# Subtest: test/a.js\n    # Subtest: adds\n        ok 1 - same\n        1..1\n    \
        ok 1 - adds # time=3ms\n    ok 2 - later # SKIP\n    # Subtest: slow\n        ok 1 - same\n        1..1\n    not ok 3 - slow\n      \
        ---\n      why: timeout!\n      ...\n    1..3\nnot ok 1 - test/a.js # time=9ms\nok 2 - test/b.js {\n    ok 1 - alone\n    1..1\n}\n1..2\n";
    const PLAIN: &str = "1..3\nok 1 adds\nnot ok 2 breaks\n# (in test file a.bats, line 7)\nok 3 goes on # skip no net\n";

    #[test]
    fn points_below_a_comment_are_one_test() {
        let expected = [
            "adds passed",
            "later failed: equal|operator: equal|expected: 2",
            "never skipped",
            "tests are written here skipped",
        ];
        assert_eq!(summarize(TAPE), expected);
        let document = parse(TAPE).expect("a complete report");
        assert!(
            document.is_complete && document.doubts.is_empty() && document.points == 5,
            "{document:?}"
        );
    }

    #[test]
    fn subtest_names_include_enclosing_headings() {
        let expected = [
            "test/a.js > adds passed",
            "test/a.js > later skipped",
            "test/a.js > slow failed: slow",
            "test/b.js passed",
        ];
        assert_eq!(summarize(SUBTESTS), expected);
        let document = parse(SUBTESTS).expect("a complete report");
        assert!(
            document.is_complete && document.doubts.is_empty(),
            "{document:?}"
        );
    }

    #[test]
    fn points_before_their_comments_are_tests() {
        assert_eq!(
            summarize(PLAIN),
            [
                "adds passed",
                "breaks failed: breaks|(in test file a.bats, line 7)",
                "goes on skipped"
            ]
        );
    }

    #[test]
    fn inconsistent_numbers_and_missing_plan_are_detected() {
        let doubts = |text: &str| parse(text).expect("a document").doubts;
        assert_eq!(
            doubts(&TAPE.replace("# later\n", "ok 3 forged\n# later\n")),
            ["test point 3 is written where 4 was expected"]
        );
        assert!(
            !doubts(&TAPE.replace("ok 4 more\n", "")).is_empty(),
            "one is missing"
        );
        assert!(
            !doubts(&TAPE.replace("# later\n", "# later\n  ---\n")).is_empty(),
            "swallowed"
        );
        assert!(
            !doubts(&format!("{TAPE}1..5\n")).is_empty(),
            "a second plan"
        );
        assert!(
            !doubts(&SUBTESTS.replace("        1..1\n    ok 1", "        1..2\n    ok 1"))
                .is_empty(),
            "within a subtest"
        );
        let truncated = parse(&TAPE.replace("1..5", "")).expect("a document");
        assert!(!truncated.is_complete);
        let ended_early = parse("# adds\nok 1 x\n# later\n").expect("a document");
        assert_eq!(
            (ended_early.is_complete, ended_early.last_heading.as_deref()),
            (false, Some("later"))
        );
        assert_eq!(parse("hello\n"), None);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_documents_do_not_panic(text in super::super::garbage::garbage(SUBTESTS)) {
            let _ = parse(&text);
        }
    }
}
