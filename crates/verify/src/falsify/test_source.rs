//! Reads a test file into its parts: tests, assertions, bindings, tables, and constructs that can keep a statement from
//! running. All parts are byte ranges, so that edits are made by position.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use super::super::outcome::TestName;
use super::literal::LiteralKind;
use supervisor_languages::{QueryMatch, SyntaxTree};

/// The parts of a test file that matter for falsification.
#[derive(Debug)]
pub(super) struct TestSource {
    pub(super) text: String,
    pub(super) sites: Vec<TestSite>,
    pub(super) literals: Vec<LiteralSite>,
    /// Sorted.
    pub(super) comments: Vec<Range<usize>>,
    pub(super) assertions: Vec<AssertionSite>,
    pub(super) bindings: Vec<BindingSite>,
    pub(super) tables: Vec<TableSite>,
    pub(super) returns: Vec<Range<usize>>,
    pub(super) scopes: Vec<Range<usize>>,
    pub(super) conditionals: Vec<Range<usize>>,
    pub(super) panics: Vec<Range<usize>>,
    pub(super) checks: Vec<CheckSite>,
    pub(super) helpers: Vec<HelperSite>,
    /// Where the text of the test file ends; the files that it uses follow.
    pub(super) own_len: usize,
    pub(super) companions: Vec<Companion>,
}

/// A file that the tests use, appended to the text of the test file.
#[derive(Debug)]
pub(super) struct Companion {
    pub(super) path: PathBuf,
    pub(super) range: Range<usize>,
    /// The values of a data file. Code has literals instead.
    pub(super) values: Vec<LiteralSite>,
}

/// A call whose value is not used, which may be an assertion.
#[derive(Debug)]
pub(super) struct CheckSite {
    pub(super) range: Range<usize>,
    pub(super) callee: String,
    pub(super) arguments: Range<usize>,
}

/// A function that tests may call.
#[derive(Debug)]
pub(super) struct HelperSite {
    pub(super) whole: Range<usize>,
    pub(super) name: String,
    pub(super) params: Range<usize>,
}

/// One test.
#[derive(Debug)]
pub(super) struct TestSite {
    pub(super) whole: Range<usize>,
    /// Matches the names of this test in a run.
    name: Regex,
    /// How many characters of the name its titles fix. If several tests match a name, the highest value wins.
    specificity: usize,
    pub(super) body: Option<Range<usize>>,
    /// A body that is one expression.
    pub(super) expression: Option<Range<usize>>,
    /// The expression that the body evaluates to.
    pub(super) tail: Option<Range<usize>>,
    /// Template of a statement that always fails.
    pub(super) failing_statement: String,
    pub(super) wrapped: Option<&'static str>,
    /// An added statement goes to the start of the body instead of its end.
    pub(super) insert_at_start: bool,
    /// The variable through which the test talks to its runner, such as `t` in Go.
    pub(super) handle: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct LiteralSite {
    pub(super) range: Range<usize>,
    pub(super) kind: LiteralKind,
}

#[derive(Debug)]
pub(super) struct AssertionSite {
    pub(super) range: Range<usize>,
    pub(super) claim: Claim,
    /// A statement of the same kind that always fails, with `{1}` and `{2}` for two unequal numbers.
    pub(super) failing_statement: Option<String>,
    /// A value that equals nothing else, containing `{word}`, where a side may have any type.
    pub(super) replacement: Option<&'static str>,
    /// The side with the expected value, if the form of the assertion defines it.
    pub(super) expected: Option<ExpectedSide>,
    /// What makes the assertion claim the opposite: a range and its new text.
    pub(super) opposite: Option<(Range<usize>, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedSide {
    Left,
    Right,
}

/// The claim of an assertion.
#[derive(Debug)]
pub(super) enum Claim {
    Equal(Range<usize>, Range<usize>),
    /// The two sides are somewhere in these tokens.
    EqualTokens(Range<usize>),
    /// A condition and the template that negates it.
    Holds(Range<usize>, &'static str),
    HoldsTokens(Range<usize>, &'static str),
    /// A word and its opposite.
    Word(Range<usize>, String),
    /// The name of an error and a different one.
    Raises(Range<usize>, &'static str),
    /// The first is an element or a part of the second.
    Contains(Range<usize>, Range<usize>),
}

impl Claim {
    /// Whether it compares values, and not only holds or does not.
    pub(super) fn is_comparison(&self) -> bool {
        matches!(
            self,
            Self::Equal(..) | Self::EqualTokens(_) | Self::Contains(..)
        )
    }
}

#[derive(Debug)]
pub(super) struct BindingSite {
    pub(super) whole: Range<usize>,
    pub(super) name: String,
    pub(super) value: Range<usize>,
}

#[derive(Debug)]
pub(super) struct TableSite {
    pub(super) whole: Range<usize>,
    pub(super) params: Range<usize>,
    pub(super) rows: Range<usize>,
}

impl TestSource {
    pub(super) fn read(tree: &SyntaxTree<'_>) -> Self {
        let matches = tree.matches(|q| &q.expectations);
        let mut source = Self {
            text: tree.source().to_owned(),
            sites: Vec::new(),
            literals: Vec::new(),
            assertions: Vec::new(),
            bindings: Vec::new(),
            tables: Vec::new(),
            returns: Vec::new(),
            scopes: Vec::new(),
            conditionals: Vec::new(),
            panics: Vec::new(),
            checks: Vec::new(),
            helpers: Vec::new(),
            own_len: tree.source().len(),
            comments: tree.comments(),
            companions: Vec::new(),
        };
        let mut groups: Vec<(Range<usize>, String)> = matches
            .iter()
            .filter_map(|m| Some((m.range("group")?, title(m.get("title")?.text))))
            .collect();
        // Outermost first; matches do not come in this order.
        groups.sort_by_key(|(range, _)| (range.start, Reverse(range.end)));
        groups.dedup_by(|a, b| a.0 == b.0);
        for found in &matches {
            source.add_match(found, &groups);
        }
        for range in matches.iter().filter_map(|m| m.range("tail")) {
            let inner = source
                .sites
                .iter_mut()
                .filter(|s| s.body.as_ref().is_some_and(|b| contains(b, &range)));
            if let Some(site) = inner.min_by_key(|s| s.whole.len()) {
                site.tail = Some(range);
            }
        }
        // Ignore literals inside other literals, such as parts of a string.
        source
            .literals
            .sort_by_key(|at| (at.range.start, Reverse(at.range.end)));
        let mut end = 0;
        source.literals.retain(|at| {
            let is_outermost = at.range.start >= end;
            end = end.max(at.range.end);
            is_outermost
        });
        source
    }

    /// Appends a file of code that the tests use. Its tests are not targets.
    pub(super) fn append_code(&mut self, path: &Path, other: Self) {
        let at = self.append(path, &other.text, Vec::new());
        let moved = |range: Range<usize>| range.start + at..range.end + at;
        self.literals
            .extend(other.literals.into_iter().map(|literal| LiteralSite {
                range: moved(literal.range),
                ..literal
            }));
        self.comments.extend(other.comments.into_iter().map(moved));
        self.bindings
            .extend(other.bindings.into_iter().map(|binding| BindingSite {
                whole: moved(binding.whole),
                value: moved(binding.value),
                ..binding
            }));
        self.helpers
            .extend(other.helpers.into_iter().map(|helper| HelperSite {
                whole: moved(helper.whole),
                params: moved(helper.params),
                ..helper
            }));
        for assertion in other.assertions {
            if let Claim::Equal(left, right) = assertion.claim {
                self.assertions.push(AssertionSite {
                    range: moved(assertion.range),
                    claim: Claim::Equal(moved(left), moved(right)),
                    opposite: None,
                    ..assertion
                });
            }
        }
    }

    /// Appends a file of data that the tests use.
    pub(super) fn append_data(&mut self, path: &Path, text: &str, values: Vec<LiteralSite>) {
        self.append(path, text, values);
    }

    fn append(&mut self, path: &Path, text: &str, values: Vec<LiteralSite>) -> usize {
        self.text.push('\n');
        let at = self.text.len();
        self.text.push_str(text);
        self.companions.push(Companion {
            path: path.to_owned(),
            range: at..self.text.len(),
            values: values
                .into_iter()
                .map(|value| LiteralSite {
                    range: value.range.start + at..value.range.end + at,
                    ..value
                })
                .collect(),
        });
        at
    }

    fn add_match(&mut self, found: &QueryMatch<'_>, groups: &[(Range<usize>, String)]) {
        let range = |name: &str| found.range(name);
        if let Some(whole) = range("test") {
            if let Some(site) = TestSite::of(found, whole, groups)
                && !self.sites.iter().any(|s| s.whole == site.whole)
            {
                self.sites.push(site);
            }
        } else if let Some(kind) = found
            .captures
            .iter()
            .find_map(|c| LiteralKind::from_capture(c.name))
        {
            let all = found
                .captures
                .iter()
                .filter(|c| LiteralKind::from_capture(c.name).is_some());
            self.literals.extend(all.map(|c| LiteralSite {
                range: c.range.clone(),
                kind,
            }));
        } else if let Some(whole) = range("binding") {
            if let (Some(name), Some(value)) = (found.get("name"), range("value")) {
                self.bindings.push(BindingSite {
                    whole,
                    name: name.text.to_owned(),
                    value,
                });
            }
        } else if let Some(whole) = range("table") {
            if let (Some(params), Some(rows)) = (range("params"), range("rows")) {
                self.tables.push(TableSite {
                    whole,
                    params,
                    rows,
                });
            }
        } else if let Some(range) = range("panics") {
            self.panics.push(range);
        } else if let Some((range, claim)) = read_claim(found) {
            let failing_statement = found
                .setting("fails")
                .map(|template| fill_template(template, found));
            let expected = match found.setting("expected") {
                Some("left") => Some(ExpectedSide::Left),
                Some("right") => Some(ExpectedSide::Right),
                _ => None,
            };
            let replacement = found.setting("instead");
            let opposite = found
                .setting("opposite")
                .zip(found.range("operator").or(found.range("callee")))
                .map(|(text, at)| (at, fill_template(text, found)));
            self.assertions.push(AssertionSite {
                range,
                claim,
                failing_statement,
                replacement,
                expected,
                opposite,
            });
        }
        for capture in &found.captures {
            match capture.name {
                "return" => self.returns.push(capture.range.clone()),
                "scope" => self.scopes.push(capture.range.clone()),
                "maybe" => self.conditionals.push(capture.range.clone()),
                _ => {}
            }
        }
        if let (Some(range), Some(callee), Some(arguments)) =
            (range("check"), found.get("callee"), range("arguments"))
        {
            self.checks.push(CheckSite {
                range,
                callee: callee.text.to_owned(),
                arguments,
            });
        }
        if let (Some(whole), Some(name), Some(params)) =
            (range("helper"), found.get("name"), range("params"))
        {
            self.helpers.push(HelperSite {
                whole,
                name: name.text.to_owned(),
                params,
            });
        }
    }

    /// The index of the test that has this name in a run.
    pub(super) fn site_of(&self, name: &TestName) -> Option<usize> {
        let fits = self
            .sites
            .iter()
            .enumerate()
            .filter(|(_, site)| site.name.is_match(&name.0));
        fits.max_by_key(|(_, site)| (site.specificity, site.whole.start))
            .map(|(at, _)| at)
    }

    /// Whether a binding is in effect at `at`. The bindings of other files always are.
    pub(super) fn is_bound_before(&self, binding: &BindingSite, at: usize) -> bool {
        binding.whole.start >= self.own_len || binding.whole.end <= at
    }

    pub(super) fn slice(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    pub(super) fn literals_in<'a>(
        &'a self,
        range: &'a Range<usize>,
    ) -> impl Iterator<Item = &'a LiteralSite> {
        let first = self
            .literals
            .partition_point(|at| at.range.start < range.start);
        self.literals[first..]
            .iter()
            .take_while(|at| at.range.start < range.end.max(range.start + 1))
            .filter(|at| contains(range, &at.range))
    }

    /// Whether a statement at `at` runs whenever the test does: no condition or function encloses it inside the test.
    pub(super) fn is_always_reached(&self, test: &TestSite, at: &Range<usize>) -> bool {
        let inside = test
            .body
            .as_ref()
            .or(test.expression.as_ref())
            .unwrap_or(&test.whole);
        !self
            .conditionals
            .iter()
            .any(|range| contains(inside, range) && contains(range, at) && range != at)
    }
}

impl TestSite {
    /// The name of the whole test, where `name` is one of its rows.
    pub(super) fn whole_name(&self, name: &TestName) -> TestName {
        let row = self
            .name
            .captures(&name.0)
            .and_then(|found| found.name("row"));
        TestName(
            row.map_or(name.0.as_str(), |row| &name.0[..row.start()])
                .to_owned(),
        )
    }

    fn of(
        found: &QueryMatch<'_>,
        whole: Range<usize>,
        groups: &[(Range<usize>, String)],
    ) -> Option<Self> {
        let own = title(found.get("title")?.text);
        let mut titles: Vec<&str> = groups
            .iter()
            .filter(|(range, _)| *range != whole && contains(range, &whole))
            .map(|(_, title)| title.as_str())
            .collect();
        let suite = found.get("suite").map(|suite| title(suite.text));
        titles.extend(suite.as_deref());
        titles.push(&own);
        let parts: Vec<String> = titles.iter().map(|title| title_pattern(title)).collect();
        // Each runner joins titles in its own way. Rows and repetitions have a suffix.
        let is_program = found.setting("title") == Some("any");
        let name = format!(
            r"(?s)(^|[\s:>/#.$]){}(?<row>\[.*\]|/.*|::.*| #\d+)?$",
            parts.join(r"[\s:>/#.$]*(test )?")
        );
        Some(Self {
            name: Regex::new(if is_program { "" } else { &name }).ok()?,
            // A test with its own name takes precedence over a whole program.
            specificity: if is_program {
                0
            } else {
                titles.iter().map(|title| fixed_chars(title)).sum()
            },
            body: found.range("body"),
            expression: found.range("expression"),
            tail: None,
            failing_statement: fill_template(found.setting("fails")?, found),
            wrapped: found.setting("wrapped"),
            insert_at_start: found.setting("where") == Some("first"),
            handle: found.get("t").map(|handle| handle.text.to_owned()),
            whole,
        })
    }
}

pub(super) fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// A title without its quotes, or without the colon of a symbol. Of a title that is computed, the literals are kept, and
/// placeholders stand for the rest.
fn title(text: &str) -> String {
    let quoted = |quote: char| {
        let inside = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inside
            .replace(r"\\", "")
            .replace(&format!(r"\{quote}"), "")
            .contains(quote))
        .then_some(inside)
    };
    let inside = ['"', '\'', '`'].into_iter().find_map(quoted);
    if let Some(inside) = inside.or_else(|| text.strip_prefix(':')) {
        return inside.to_owned();
    }
    let is_call_of_value = text.contains('.') && text.starts_with(char::is_lowercase);
    if !text.contains(['(', '+']) && !is_call_of_value {
        return text.to_owned();
    }
    let literals = LITERALS.find_iter(text).map(|literal| {
        let literal = literal.as_str();
        &literal[1..literal.len() - 1]
    });
    let mut computed = String::from("${}");
    for literal in literals {
        computed += literal;
        computed += "${}";
    }
    computed
}

/// Quoted texts in an expression.
static LITERALS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`"#)
        .expect("a pattern that tests compile")
});

/// Placeholders in a title that are filled from a table row.
static PLACEHOLDERS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"%[a-zA-Z#%]|\$\{[^}]*\}|#\{[^}]*\}|\$[\w.]+|\\.")
        .expect("a pattern that tests compile")
});

/// A pattern for a title in a run; a placeholder matches anything.
fn title_pattern(title: &str) -> String {
    let parts: Vec<String> = PLACEHOLDERS.split(title).map(regex::escape).collect();
    parts.join(".*?")
}

/// The number of fixed characters in a title, plus one for the separator before it.
fn fixed_chars(title: &str) -> usize {
    1 + PLACEHOLDERS.split(title).map(str::len).sum::<usize>()
}

fn read_claim(found: &QueryMatch<'_>) -> Option<(Range<usize>, Claim)> {
    let range = |name: &str| found.range(name);
    if let Some(whole) = range("equal") {
        let claim = match (range("left"), range("right"), range("sides")) {
            (Some(left), Some(right), _) => Claim::Equal(left, right),
            (_, _, Some(sides)) => Claim::EqualTokens(sides),
            _ => return None,
        };
        return Some((whole, claim));
    }
    if let Some(whole) = range("holds") {
        let claim = match (
            range("flip"),
            range("condition"),
            range("conditions"),
            found.setting("negated"),
        ) {
            (Some(word), ..) => Claim::Word(word, fill_template(found.setting("flips")?, found)),
            (_, Some(condition), _, Some(negated)) => Claim::Holds(condition, negated),
            (_, _, Some(tokens), Some(negated)) => Claim::HoldsTokens(tokens, negated),
            _ => return None,
        };
        return Some((whole, claim));
    }
    if let (Some(whole), Some(left), Some(right)) =
        (range("contains"), range("left"), range("right"))
    {
        return Some((whole, Claim::Contains(left, right)));
    }
    let whole = range("raises")?;
    Some((
        whole,
        Claim::Raises(range("error")?, found.setting("other")?),
    ))
}

/// Replaces each `{name}` in a template by the capture of that name.
fn fill_template(template: &str, found: &QueryMatch<'_>) -> String {
    found
        .captures
        .iter()
        .fold(template.to_owned(), |text, capture| {
            text.replace(&format!("{{{}}}", capture.name), capture.text)
        })
}
