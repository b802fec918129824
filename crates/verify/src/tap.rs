//! TAP, the Test Anything Protocol: lines of results that a runner writes to its standard output, where the code under
//! test can write as well. So the numbers are held to what they promise: at each level every point from the first to the
//! last that the plan names, once, in order. A line that does not fit is a doubt, and a doubtful pass is none.

use std::collections::BTreeMap;

use super::outcome::TestState;
use super::report::{TestRunReport, failed};

/// A document, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TapDocument {
    pub(super) cases: Vec<TapCase>,
    /// Lines that a runner alone would not have written.
    pub(super) doubts: Vec<String>,
    /// How many points there are in all: many assertions may be one test.
    pub(super) points: usize,
    /// The plan of the outermost level was there, so that the runner came to its end.
    pub(super) is_whole: bool,
    /// The last heading: what was being run, should it not have come to its end.
    pub(super) last_heading: Option<String>,
}

/// One test: a point by itself, or all points below one heading.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TapCase {
    /// The headings around it, outermost first, and the title of a point that is a test by itself.
    pub(super) path: Vec<String>,
    pub(super) state: TestState,
}

/// What is known of one level of indentation.
#[derive(Debug, Default)]
struct Level {
    count: usize,
    plan: Option<usize>,
    /// The heading that was written and not yet closed by its own point.
    heading: Option<String>,
    /// Comments are headings, because one came before the first point; else they belong to the point before them.
    /// `None` before the first point.
    is_titled: Option<bool>,
}

/// What the points below one heading came to.
#[derive(Debug, Default)]
struct Group {
    passed: usize,
    failures: Vec<String>,
}

#[derive(Debug)]
struct Reading {
    document: TapDocument,
    levels: Vec<Level>,
    groups: BTreeMap<Vec<String>, Group>,
    order: Vec<Vec<String>>,
    /// Subtests that failed as a whole, and what they are called.
    failed_wholes: Vec<(Vec<String>, String)>,
    /// The group of the failed point whose details may follow.
    open: Option<Vec<String>>,
    /// The indentation of the block of details that is being read.
    block: Option<usize>,
}

/// Reads a document; `None` if the text is none.
pub(super) fn read(text: &str) -> Option<TapDocument> {
    let mut reading = Reading {
        document: TapDocument::default(),
        levels: vec![Level::default()],
        groups: BTreeMap::new(),
        order: Vec::new(),
        failed_wholes: Vec::new(),
        open: None,
        block: None,
    };
    text.lines().for_each(|line| reading.line(line));
    reading.close_to(1);
    reading.into_document()
}

impl Reading {
    fn line(&mut self, line: &str) {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if let Some(from) = self.block {
            if indent <= from && text == "..." {
                self.block = None;
            } else {
                self.detail(text);
            }
            return;
        }
        if text == "---" && indent >= 2 {
            self.block = Some(indent);
            return;
        }
        let depth = indent / 4;
        if !indent.is_multiple_of(4) || depth > self.levels.len() {
            return;
        }
        if text == "}" {
            return self.end_of_block(depth);
        }
        // What is printed by the way may be indented as well; only what TAP knows opens or ends a level.
        let (point, plan) = (Point::of(text), plan_of(text));
        let comment = text
            .strip_prefix('#')
            .map(str::trim)
            .filter(|words| !words.is_empty());
        if (point.is_some() || plan.is_some() || comment.is_some()) && depth == self.levels.len() {
            self.levels.push(Level::default());
        }
        match (point, plan, comment) {
            (Some(point), ..) => self.point(depth, &point),
            (None, Some(count), _) => self.plan(depth, count),
            (None, None, Some(words)) => self.comment(depth, words),
            (None, None, None) => {}
        }
    }

    fn comment(&mut self, depth: usize, words: &str) {
        let subtest = words.strip_prefix("Subtest: ");
        if subtest.is_none() && self.levels[depth].is_titled == Some(false) {
            return self.detail(words);
        }
        self.open = None;
        self.close_to(depth + 1);
        if let Some(title) = words
            .strip_prefix("SKIP ")
            .or_else(|| words.strip_prefix("TODO "))
        {
            let path = self.path_at(depth, Some(title));
            self.group(path);
            return;
        }
        let title = subtest.unwrap_or(words).trim();
        self.levels[depth].heading = Some(title.to_owned());
        if !self.document.is_whole {
            self.document.last_heading = Some(title.to_owned());
        }
    }

    fn plan(&mut self, depth: usize, count: usize) {
        self.close_to(depth + 1);
        let level = &mut self.levels[depth];
        if let Some(known) = level.plan {
            self.document
                .doubts
                .push(format!("a plan of {count} is written after one of {known}"));
        }
        level.plan = Some(count);
        self.document.is_whole |= depth == 0 && level.count > 0;
    }

    fn point(&mut self, depth: usize, point: &Point<'_>) {
        let is_subtest = self.levels.len() > depth + 1 && self.levels[depth].heading.is_some();
        self.close_to(depth + 1);
        let level = &mut self.levels[depth];
        level.count += 1;
        if let Some(number) = point.number.filter(|number| *number != level.count) {
            self.document.doubts.push(format!(
                "test point {number} is written where {} was expected",
                level.count
            ));
            // Counted on from there, so that one line is one doubt.
            level.count = number;
        }
        let is_titled = *level
            .is_titled
            .get_or_insert(level.heading.is_some() && !is_subtest);
        if point.opens_block {
            self.levels[depth].heading = Some(point.title.to_owned());
            if !point.passed {
                self.failed_wholes
                    .push((self.path_at(depth + 1, None), point.title.to_owned()));
            }
            return;
        }
        let below = self.path_at(depth + 1, None);
        if is_subtest {
            self.levels[depth].heading = None;
            let is_told = self
                .groups
                .range(below.clone()..)
                .next()
                .is_some_and(|(path, _)| path.starts_with(&below));
            if is_told {
                if !point.passed {
                    self.failed_wholes.push((below, point.title.to_owned()));
                }
                return;
            }
        }
        self.document.points += 1;
        // A point below a comment is one of several of its test; elsewhere, and where it was skipped, it is one itself.
        let is_part = is_subtest || is_titled || (!below.is_empty() && !point.skips());
        let path = if is_part {
            below
        } else {
            self.path_at(depth, Some(point.title))
        };
        self.open = (!point.passed).then(|| path.clone());
        let group = self.group(path);
        if point.passed && !point.skips() {
            group.passed += 1;
        } else if !point.skips() {
            group.failures.push(point.title.to_owned());
        }
    }

    fn end_of_block(&mut self, depth: usize) {
        if let Some(level) = self.levels.get_mut(depth) {
            level.heading = None;
        }
        self.close_to(depth + 1);
    }

    fn detail(&mut self, words: &str) {
        let Some(path) = &self.open else { return };
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

    fn group(&mut self, path: Vec<String>) -> &mut Group {
        if !self.groups.contains_key(&path) {
            self.order.push(path.clone());
        }
        self.groups.entry(path).or_default()
    }

    /// Ends the levels below `depth`, each of which must have kept its plan.
    fn close_to(&mut self, depth: usize) {
        while self.levels.len() > depth {
            let Some(level) = self.levels.pop() else {
                return;
            };
            self.hold_to_plan(&level);
        }
    }

    fn hold_to_plan(&mut self, level: &Level) {
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
        self.hold_to_plan(&top);
        self.document.is_whole = top.plan.is_some_and(|plan| plan <= top.count);
        for (path, title) in std::mem::take(&mut self.failed_wholes) {
            let mut below = self
                .groups
                .range(path.clone()..)
                .take_while(|(p, _)| p.starts_with(&path));
            if !below.any(|(_, group)| !group.failures.is_empty()) {
                self.group(path).failures.push(title);
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
    /// What is below it follows in braces.
    opens_block: bool,
}

impl<'a> Point<'a> {
    fn of(line: &'a str) -> Option<Self> {
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

    /// Not run, or not expected to pass yet.
    fn skips(&self) -> bool {
        let word = self.directive.split_whitespace().next().unwrap_or_default();
        word.eq_ignore_ascii_case("skip") || word.eq_ignore_ascii_case("todo")
    }
}

fn plan_of(line: &str) -> Option<usize> {
    line.strip_prefix("1..")?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

impl TapDocument {
    /// A report of these cases; `name` says what each is called.
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

    fn told(text: &str) -> Vec<String> {
        let document = read(text).expect("a document");
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
        assert_eq!(told(TAPE), expected);
        let document = read(TAPE).expect("whole");
        assert!(
            document.is_whole && document.doubts.is_empty() && document.points == 5,
            "{document:?}"
        );
    }

    #[test]
    fn subtests_are_named_by_what_is_around_them() {
        let expected = [
            "test/a.js > adds passed",
            "test/a.js > later skipped",
            "test/a.js > slow failed: slow",
            "test/b.js passed",
        ];
        assert_eq!(told(SUBTESTS), expected);
        let document = read(SUBTESTS).expect("whole");
        assert!(
            document.is_whole && document.doubts.is_empty(),
            "{document:?}"
        );
    }

    #[test]
    fn where_comments_follow_their_points_each_point_is_a_test() {
        assert_eq!(
            told(PLAIN),
            [
                "adds passed",
                "breaks failed: breaks|(in test file a.bats, line 7)",
                "goes on skipped"
            ]
        );
    }

    #[test]
    fn a_line_that_the_runner_did_not_count_is_a_doubt_and_no_end_is_no_whole() {
        let doubts = |text: &str| read(text).expect("a document").doubts;
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
        let cut = read(&TAPE.replace("1..5", "")).expect("a document");
        assert!(!cut.is_whole);
        let died = read("# adds\nok 1 x\n# later\n").expect("a document");
        assert_eq!(
            (died.is_whole, died.last_heading.as_deref()),
            (false, Some("later"))
        );
        assert_eq!(read("hello\n"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_document_is_too_odd(text in super::super::garbage::garbage(SUBTESTS)) {
            let _ = read(&text);
        }
    }
}
