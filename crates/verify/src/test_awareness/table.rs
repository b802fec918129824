//! Tells a table of hard-coded test answers from a real one. A table with mostly values that no test uses was written
//! from the task.

use super::Expectation;

/// Whether most literals in the line and in its neighbours of the same shape occur in no test.
pub(super) fn holds_more_than_tests(
    text: &[&str],
    line: usize,
    expectations: &[Expectation],
) -> bool {
    let (shape, _) = split_literals(text[line]);
    let has_same_shape = |other: &&&str| split_literals(other).0 == shape;
    let above = text[..line].iter().rev().take_while(has_same_shape);
    let below = text[line..].iter().take_while(has_same_shape);
    let literals: Vec<&str> = above
        .chain(below)
        .flat_map(|line| split_literals(line).1)
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

/// Splits a line into its shape (the text without literals) and its literals: numbers and quoted strings.
fn split_literals(line: &str) -> (String, Vec<&str>) {
    let (mut shape, mut literals) = (String::new(), Vec::new());
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let after_word = shape.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let length = match first {
            '"' | '\'' | '`' => quoted_len(rest, first),
            '0'..='9' if !after_word => rest
                .find(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_'))
                .unwrap_or(rest.len()),
            _ => 0,
        };
        let (taken, later) = rest.split_at(length.max(first.len_utf8()));
        if length > 0 {
            literals.push(taken);
            shape.push('\u{0}');
        } else {
            shape.push_str(taken);
        }
        rest = later;
    }
    (shape.trim().to_owned(), literals)
}

/// Length in bytes of the quoted string at the start of `text`; 0 if it is not closed, as with a lifetime.
fn quoted_len(text: &str, quote: char) -> usize {
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
