//! Appends an assertion that always fails to a test. It uses the test's own kind of assertion, so that anything which
//! swallows the test's failures swallows this one too.

use std::ops::Range;

use super::TextEdit;
use super::expectation::must_panic;
use super::test_source::{TestSite, TestSource, contains};

/// The edit that makes one test fail.
#[derive(Debug)]
pub(super) struct AddedFailure {
    pub(super) edits: Vec<TextEdit>,
    pub(super) statement: String,
}

/// `None` if the end of the test may not be reached.
pub(super) fn append_failure(
    source: &TestSource,
    site: usize,
    rng: &mut fastrand::Rng,
) -> Option<AddedFailure> {
    let test = &source.sites[site];
    if must_panic(source, test) {
        return None;
    }
    let statement = failing_statement(source, test, rng);
    let edit = match (&test.body, &test.expression) {
        (Some(body), _) if test.insert_at_start => insert(body.start + 1, format!(" {statement}")),
        (Some(_), _) if returns_early(source, test) => return None,
        (Some(body), _) => insert_at_end(source, test, body, &statement)?,
        (None, Some(expression)) => {
            let text = source.slice(expression);
            let wrapped = test
                .wrapped?
                .replace("{expression}", text)
                .replace("{statement}", &statement);
            TextEdit {
                range: expression.clone(),
                text: wrapped,
            }
        }
        (None, None) => return None,
    };
    Some(AddedFailure {
        edits: vec![edit],
        statement,
    })
}

/// A failing statement on a line of its own before `range`, which must begin a line.
pub(super) fn failure_before(
    source: &TestSource,
    site: usize,
    range: &Range<usize>,
    rng: &mut fastrand::Rng,
) -> Option<TextEdit> {
    let test = &source.sites[site];
    if range.end > source.own_len || must_panic(source, test) {
        return None;
    }
    let line = source.text[..range.start]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    let indent = source.text.get(line..range.start)?;
    indent.chars().all(char::is_whitespace).then(|| {
        let statement = failing_statement(source, test, rng);
        insert(range.start, format!("{statement}\n{indent}"))
    })
}

fn insert(at: usize, text: String) -> TextEdit {
    TextEdit {
        range: at..at,
        text,
    }
}

/// The failing statement, in the style of the test's first equality assertion, or else in that of its language.
fn failing_statement(source: &TestSource, test: &TestSite, rng: &mut fastrand::Rng) -> String {
    let own = source
        .assertions
        .iter()
        .filter(|a| contains(&test.whole, &a.range))
        .find_map(|a| a.failing_statement.as_deref());
    let one = rng.u32(100..9_000);
    let other = one + rng.u32(1..900);
    let template = own
        .filter(|_| !test.insert_at_start)
        .unwrap_or(&test.failing_statement);
    template
        .replace("{1}", &one.to_string())
        .replace("{2}", &other.to_string())
}

fn insert_at_end(
    source: &TestSource,
    test: &TestSite,
    body: &Range<usize>,
    statement: &str,
) -> Option<TextEdit> {
    let text = source.slice(body);
    if text.starts_with('{') || text.ends_with("end") || text.ends_with('}') {
        if let Some(tail) = &test.tail {
            // Insert after a tail that is an assertion. Any other tail must stay the last expression, since the body
            // evaluates to it.
            let is_assertion = source.assertions.iter().any(|a| a.range == *tail);
            return Some(if is_assertion {
                insert(tail.end, format!("; {statement}"))
            } else {
                insert(tail.start, format!("{statement} "))
            });
        }
        let close = if text.ends_with("end") { 3 } else { 1 };
        let at = body.end - close;
        let line = source.text[..at]
            .rfind('\n')
            .map_or(0, |newline| newline + 1);
        let on_own_line = source.text[line..at].trim().is_empty();
        let gap = if on_own_line
            || text.ends_with('}') && text[..text.len() - 1].trim_end().ends_with([';', '{', '}'])
        {
            ""
        } else {
            "; "
        };
        return Some(insert(at, format!("{gap}{statement} ")));
    }
    // The body is delimited by indentation.
    let line = source.text[..body.start]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    let indent = source.text.get(line..body.start)?;
    if !indent.chars().all(char::is_whitespace) {
        return Some(insert(body.end, format!("; {statement}")));
    }
    Some(insert(body.end, format!("\n{indent}{statement}")))
}

/// Whether the test has a return statement of its own, outside of nested functions.
fn returns_early(source: &TestSource, test: &TestSite) -> bool {
    let Some(body) = &test.body else { return false };
    let is_in_own_scope = |at: &Range<usize>| {
        !source
            .scopes
            .iter()
            .any(|scope| scope != body && contains(body, scope) && contains(scope, at))
    };
    source
        .returns
        .iter()
        .any(|at| contains(body, at) && is_in_own_scope(at))
}
