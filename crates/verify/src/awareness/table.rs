//! Tables of literals in code: one that holds what the tests ask for and little else is an answer sheet; one that holds
//! more than the tests know was made from the task.

use super::Expectation;

/// Does the line, with the lines of the same form around it, hold more literals that no test has than ones that some has?
pub(super) fn holds_more_than_tests(
    text: &[&str],
    line: usize,
    expectations: &[Expectation],
) -> bool {
    let (form, _) = take_apart(text[line]);
    let is_alike = |other: &&&str| take_apart(other).0 == form;
    let above = text[..line].iter().rev().take_while(is_alike);
    let below = text[line..].iter().take_while(is_alike);
    let literals: Vec<&str> = above
        .chain(below)
        .flat_map(|line| take_apart(line).1)
        .collect();
    let is_known = |literal: &&&str| {
        let has = |text: &String| text == **literal;
        expectations
            .iter()
            .any(|expectation| has(&expectation.value) || expectation.inputs.iter().any(has))
    };
    let known = literals.iter().filter(is_known).count();
    literals.len() - known > known
}

/// The line without its literals, and these: numbers, and what stands in quotes.
fn take_apart(line: &str) -> (String, Vec<&str>) {
    let (mut form, mut literals) = (String::new(), Vec::new());
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let after_word = form.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let length = match first {
            '"' | '\'' | '`' => quoted(rest, first),
            '0'..='9' if !after_word => rest
                .find(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_'))
                .unwrap_or(rest.len()),
            _ => 0,
        };
        let (taken, later) = rest.split_at(length.max(first.len_utf8()));
        if length > 0 {
            literals.push(taken);
            form.push('\u{0}');
        } else {
            form.push_str(taken);
        }
        rest = later;
    }
    (form.trim().to_owned(), literals)
}

/// Bytes of what stands in quotes at the beginning of this; 0 if the quote never ends, as with a lifetime.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\\' if !escaped => escaped = true,
            c if c == quote && !escaped => return at + quote.len_utf8(),
            _ => escaped = false,
        }
    }
    0
}
