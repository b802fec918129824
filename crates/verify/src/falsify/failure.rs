//! An assertion that never holds, at the end of a test and in the test's own words: whatever swallows failures of this
//! test swallows this one too.

use std::ops::Range;

use super::TextEdit;
use super::expectation::must_panic;
use super::sites::{TestSite, TestSource, contains};

/// What is added to one test.
#[derive(Debug)]
pub(super) struct AddedFailure {
    pub(super) edits: Vec<TextEdit>,
    pub(super) statement: String,
}

/// `None` if the end of the test may not be reached.
pub(super) fn append(
    source: &TestSource,
    site: usize,
    dice: &mut fastrand::Rng,
) -> Option<AddedFailure> {
    let test = &source.sites[site];
    if must_panic(source, test) {
        return None;
    }
    let statement = statement(source, test, dice);
    let edit = match (&test.body, &test.expression) {
        (Some(body), _) if test.comes_first => insert(body.start + 1, format!(" {statement}")),
        (Some(_), _) if leaves_early(source, test) => return None,
        (Some(body), _) => at_end(source, test, body, &statement)?,
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

fn insert(at: usize, text: String) -> TextEdit {
    TextEdit {
        range: at..at,
        text,
    }
}

/// In the way of the test's own first assertion of equality, else of its language.
fn statement(source: &TestSource, test: &TestSite, dice: &mut fastrand::Rng) -> String {
    let own = source
        .assertions
        .iter()
        .filter(|a| contains(&test.whole, &a.range))
        .find_map(|a| a.fails.as_deref());
    let one = dice.u32(100..9_000);
    let other = one + dice.u32(1..900);
    let template = own.filter(|_| !test.comes_first).unwrap_or(&test.fails);
    template
        .replace("{1}", &one.to_string())
        .replace("{2}", &other.to_string())
}

fn at_end(
    source: &TestSource,
    test: &TestSite,
    body: &Range<usize>,
    statement: &str,
) -> Option<TextEdit> {
    let text = source.slice(body);
    if text.starts_with('{') || text.ends_with("end") || text.ends_with('}') {
        if let Some(tail) = &test.tail {
            // An assertion that is the value of the body comes first; any other value stays the last.
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
    // Indentation says what belongs to the body.
    let line = source.text[..body.start]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    let indent = source.text.get(line..body.start)?;
    if !indent.chars().all(char::is_whitespace) {
        return Some(insert(body.end, format!("; {statement}")));
    }
    Some(insert(body.end, format!("\n{indent}{statement}")))
}

/// Does the test return anywhere but at the end of a function inside it?
fn leaves_early(source: &TestSource, test: &TestSite) -> bool {
    let Some(body) = &test.body else { return false };
    let own_scope = |at: &Range<usize>| {
        !source
            .scopes
            .iter()
            .any(|scope| scope != body && contains(body, scope) && contains(scope, at))
    };
    source
        .returns
        .iter()
        .any(|at| contains(body, at) && own_scope(at))
}
