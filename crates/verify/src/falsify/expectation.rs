//! Finds all ways to change what a test expects: a different value, a negated condition, a different error. Each change
//! says whether the test must fail.

use std::ops::Range;

use super::TextEdit;
use super::literal::{LiteralKind, different_literal, random_word};
use super::test_source::{
    AssertionSite, BindingSite, Claim, ExpectedSide, TestSite, TestSource, contains,
};
use supervisor_text::words;

/// One way to falsify a test.
#[derive(Debug, Clone)]
pub(super) struct ExpectationChange {
    pub(super) edits: Vec<TextEdit>,
    /// The changed expectation, for messages.
    pub(super) new_value: String,
    pub(super) is_sure: bool,
    /// Lower is better.
    pub(super) rank: u8,
    /// The value is in a table row, and rows may be named after their values.
    pub(super) may_rename: bool,
    /// The row of the table that the value is in.
    pub(super) row: Option<usize>,
    /// One of the two sides, where both may be computed by the code; each must matter.
    pub(super) is_one_of_both: bool,
}

/// Words around a literal that preserve its value: with a different literal, the whole expression differs too.
const WRAPPERS: &[&str] = &[
    "Some",
    "Ok",
    "Err",
    "Box",
    "Rc",
    "Arc",
    "String",
    "Vec",
    "vec",
    "from",
    "new",
    "to_string",
    "to_owned",
    "into",
    "to_vec",
    "as_str",
    "as_bytes",
    "clone",
    "iter",
    "collect",
    "as",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "isize",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "usize",
    "f32",
    "f64",
    "str",
    "HashMap",
    "HashSet",
    "BTreeMap",
    "BTreeSet",
    "dict",
    "set",
    "list",
    "tuple",
    "frozenset",
    "pytest",
    "approx",
    "Set",
    "Map",
    "BigInt",
    "Decimal",
    "int",
    "int64",
    "float64",
    "string",
    "byte",
    "rune",
    "map",
    "error",
    "bool",
    "any",
    "uint",
    "to_s",
    "to_i",
    "to_f",
    "freeze",
];

/// All ways to change an expected panic.
pub(super) fn panic_changes(
    source: &TestSource,
    test: &TestSite,
    rng: &mut fastrand::Rng,
) -> Option<(Range<usize>, Vec<ExpectationChange>)> {
    let panics = expected_panic(source, test)?;
    let changes = panic_change(source, &panics, rng).into_iter().collect();
    Some((panics, changes))
}

/// The assertions of this test and of no test inside it.
pub(super) fn own_assertions<'a>(
    source: &'a TestSource,
    test: &'a TestSite,
) -> impl Iterator<Item = &'a AssertionSite> {
    source
        .assertions
        .iter()
        .filter(|assertion| is_own(source, test, &assertion.range))
}

/// Whether the range is in this test and in no test inside it.
pub(super) fn is_own(source: &TestSource, test: &TestSite, range: &Range<usize>) -> bool {
    contains(&test.whole, range)
        && !source.sites.iter().any(|inner| {
            inner.whole != test.whole
                && contains(&test.whole, &inner.whole)
                && contains(&inner.whole, range)
        })
}

/// All ways to falsify one assertion. Of changes with different ranks only the best are kept: a decisive value is better
/// than a negated word, which is better than a guess. If an equality always holds, negating it fails and would hide that.
pub(super) fn assertion_changes(
    source: &TestSource,
    test: &TestSite,
    assertion: &AssertionSite,
    rng: &mut fastrand::Rng,
) -> Vec<ExpectationChange> {
    let mut changes = match &assertion.claim {
        Claim::Equal(left, right) => {
            let sides = [left.clone(), right.clone()];
            let changes = equality_changes(source, test, sides.clone(), rng);
            // Replacing the whole side is better than an uncertain change inside it.
            if changes.iter().all(|change| change.rank > 1) {
                let mut replaced = replace_expected_side(source, assertion, &sides, rng);
                if replaced.is_empty() {
                    replaced.extend(opposite(source, assertion, &sides));
                }
                if replaced.is_empty() {
                    changes
                } else {
                    replaced
                }
            } else {
                changes
            }
        }
        Claim::EqualTokens(tokens) => {
            match source.elements(tokens).unwrap_or_default().as_slice() {
                [left, right, ..] => {
                    let sides = [left.clone(), right.clone()];
                    let changes = equality_changes(source, test, sides, rng);
                    if changes.is_empty() {
                        shifted_number(source, right).into_iter().collect()
                    } else {
                        changes
                    }
                }
                _ => Vec::new(),
            }
        }
        Claim::Holds(condition, negated) => vec![negate(source, condition, negated)],
        Claim::HoldsTokens(tokens, negated) => {
            let condition = source.elements(tokens).and_then(|all| all.first().cloned());
            condition
                .map(|condition| negate(source, &condition, negated))
                .into_iter()
                .collect()
        }
        Claim::Word(word, opposite) => {
            let edit = TextEdit {
                range: word.clone(),
                text: opposite.clone(),
            };
            vec![change(vec![edit], opposite, 1)]
        }
        Claim::Contains(left, right) => {
            let at_left = side_changes(source, test, left, rng);
            let mut changes = if at_left.iter().any(|change| change.rank == 0) {
                at_left
            } else {
                let at_right = combined(side_changes(source, test, right, rng));
                at_right.into_iter().collect()
            };
            // Another number can be in there as well.
            for change in &mut changes {
                change.is_sure &= change.edits.iter().all(|edit| {
                    source
                        .literals_in(&edit.range)
                        .all(|literal| literal.kind == LiteralKind::Text)
                });
            }
            changes
        }
        Claim::Raises(error, other) => {
            let other = if source.slice(error).ends_with(other) {
                "RuntimeError"
            } else {
                other
            };
            let edit = TextEdit {
                range: error.clone(),
                text: other.to_owned(),
            };
            vec![change(vec![edit], other, 0)]
        }
    };
    if !source.is_always_reached(test, &assertion.range) {
        for change in &mut changes {
            change.is_sure = false;
        }
    }
    let best = changes.iter().map(|change| change.rank).min();
    changes.retain(|change| Some(change.rank) == best);
    changes
}

/// All changes at once, which is only sure to matter if each of them is. Of overlapping edits the first are kept.
pub(super) fn combined(changes: Vec<ExpectationChange>) -> Option<ExpectationChange> {
    let mut all = changes.into_iter();
    let mut whole = all.next()?;
    for change in all {
        let is_free = |new: &TextEdit| {
            whole
                .edits
                .iter()
                .all(|old| !super::overlaps(&old.range, &new.range))
        };
        if change.edits.iter().all(is_free) {
            whole.edits.extend(change.edits);
            whole.is_sure &= change.is_sure;
            whole.may_rename |= change.may_rename;
        }
    }
    whole.row = None;
    Some(whole)
}

/// Replaces the expected side by an unrelated value. The form of the assertion says which side that is; otherwise it is
/// the only side without a call. If both sides have calls, each is replaced.
fn replace_expected_side(
    source: &TestSource,
    assertion: &AssertionSite,
    [left, right]: &[Range<usize>; 2],
    rng: &mut fastrand::Rng,
) -> Vec<ExpectationChange> {
    let Some(template) = assertion.replacement else {
        return Vec::new();
    };
    let has_call = |side: &Range<usize>| source.slice(side).contains(['(', '.']);
    let sides = match assertion.expected {
        Some(ExpectedSide::Left) => vec![left],
        Some(ExpectedSide::Right) => vec![right],
        None if has_call(left) && !has_call(right) => vec![right],
        None if has_call(right) && !has_call(left) => vec![left],
        None => vec![left, right],
    };
    let is_one_of_both = sides.len() > 1;
    let replace = |side: &Range<usize>| {
        let text = template.replace("{word}", &random_word(&source.text, rng));
        let edit = TextEdit {
            range: side.clone(),
            text: text.clone(),
        };
        ExpectationChange {
            is_one_of_both,
            ..change(vec![edit], &text, 1)
        }
    };
    sides.into_iter().map(replace).collect()
}

/// The assertion with its opposite operator, if it compares with a constant without literals, such as `None`.
fn opposite(
    source: &TestSource,
    assertion: &AssertionSite,
    sides: &[Range<usize>; 2],
) -> Option<ExpectationChange> {
    let (range, text) = assertion.opposite.clone()?;
    sides
        .iter()
        .any(|side| is_bare_constant(source, side))
        .then(|| {
            change(
                vec![TextEdit {
                    range,
                    text: text.clone(),
                }],
                &text,
                1,
            )
        })
}

/// Whether the range is a constant without literals: `None`, `Direction::North`, `vec![]`, `nil`.
fn is_bare_constant(source: &TestSource, range: &Range<usize>) -> bool {
    source.literals_in(range).next().is_none()
        && source.words(range).iter().all(|word| {
            let text = source.slice(word);
            text == "nil" || text.starts_with(char::is_uppercase) || WRAPPERS.contains(&text)
        })
}

/// One more than the result of arithmetic, where there is no literal to change.
fn shifted_number(source: &TestSource, side: &Range<usize>) -> Option<ExpectationChange> {
    let text = source.slice(side);
    let is_arithmetic = [" + ", " - ", " * ", " / "]
        .iter()
        .any(|sign| text.contains(sign));
    is_arithmetic.then(|| {
        let text = format!("{text} + 1");
        let edit = TextEdit {
            range: side.clone(),
            text: text.clone(),
        };
        ExpectationChange {
            is_sure: false,
            ..change(vec![edit], &text, 2)
        }
    })
}

fn negate(source: &TestSource, condition: &Range<usize>, negated: &str) -> ExpectationChange {
    let text = negated.replace("{condition}", source.slice(condition));
    let edit = TextEdit {
        range: condition.clone(),
        text: text.clone(),
    };
    change(vec![edit], &text, 1)
}

/// Changes the side that can be changed with more certainty; that is the expected one.
fn equality_changes(
    source: &TestSource,
    test: &TestSite,
    sides: [Range<usize>; 2],
    rng: &mut fastrand::Rng,
) -> Vec<ExpectationChange> {
    let [left, right] = sides.map(|side| side_changes(source, test, &side, rng));
    let rank =
        |changes: &[ExpectationChange]| changes.iter().map(|c| c.rank).min().unwrap_or(u8::MAX);
    if rank(&left) < rank(&right) {
        left
    } else {
        right
    }
}

fn side_changes(
    source: &TestSource,
    test: &TestSite,
    side: &Range<usize>,
    rng: &mut fastrand::Rng,
) -> Vec<ExpectationChange> {
    if let Some(certainty) = constant_certainty(source, side) {
        return value_changes(source, side, certainty, rng);
    }
    let text = source.slice(side).trim_start_matches(['&', '*']);
    let text = text
        .trim_end_matches(".clone()")
        .trim_end_matches(".to_string()")
        .trim_end_matches(".iter()");
    let (name, field) = match text.split_once(['.', '[']) {
        Some((name, field)) => (name, Some(field.trim_matches(['"', '\'', ']', ':', '[']))),
        None => (text, None),
    };
    let is_name = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_alphanumeric() || c == '_' || c == '$' || c == '@')
    };
    if !is_name(name) || field.is_some_and(|field| !is_name(field)) {
        return Vec::new();
    }
    let cells = source.cells(side, name, field);
    if !cells.is_empty() {
        let constant = cells
            .iter()
            .filter_map(|cell| Some((cell, constant_certainty(source, cell)?)));
        let is_given = source.is_also_input(test, side, name, field);
        let mut changes = Vec::new();
        for (row, (cell, certainty)) in constant.enumerate() {
            let at_cell = value_changes(source, cell, certainty, rng);
            if is_given {
                changes.extend(
                    at_cell
                        .into_iter()
                        .map(|change| move_to_assertion(source, change, cell, side)),
                );
            } else {
                changes.extend(at_cell.into_iter().map(|change| ExpectationChange {
                    may_rename: true,
                    row: Some(row),
                    ..change
                }));
            }
        }
        return changes;
    }
    if field.is_none() {
        binding_changes(source, test, side, name, rng)
    } else {
        Vec::new()
    }
}

/// Changes for a value that is bound to a variable. If the variable has other uses, only the assertion is changed.
fn binding_changes(
    source: &TestSource,
    test: &TestSite,
    side: &Range<usize>,
    name: &str,
    rng: &mut fastrand::Rng,
) -> Vec<ExpectationChange> {
    let before = source
        .bindings
        .iter()
        .filter(|b| b.name == name && source.is_bound_before(b, side.start));
    let nearest = |b: &&BindingSite| {
        let is_own = b.whole.start < source.own_len;
        (contains(&test.whole, &b.whole), is_own, b.whole.start)
    };
    let Some(binding) = before.max_by_key(nearest) else {
        return Vec::new();
    };
    let Some(certainty) = constant_certainty(source, &binding.value) else {
        return Vec::new();
    };
    let is_local = contains(&test.whole, &binding.whole);
    let scope = if is_local {
        test.whole.clone()
    } else {
        0..source.text.len()
    };
    let uses = source
        .words(&scope)
        .iter()
        .filter(|word| source.slice(word) == name)
        .count();
    let at_value = value_changes(source, &binding.value, certainty, rng);
    if is_local && uses <= 2 {
        return at_value;
    }
    at_value
        .into_iter()
        .map(|change| move_to_assertion(source, change, &binding.value, side))
        .collect()
}

/// Writes the changed value into the assertion, because the original value has other uses.
fn move_to_assertion(
    source: &TestSource,
    change: ExpectationChange,
    value: &Range<usize>,
    side: &Range<usize>,
) -> ExpectationChange {
    let moved = change.edits.into_iter().map(|e| TextEdit {
        range: e.range.start - value.start..e.range.end - value.start,
        ..e
    });
    let text = super::apply(source.slice(value), moved.collect());
    let prefix = source.slice(side).len() - source.slice(side).trim_start_matches(['&', '*']).len();
    let range = side.start + prefix..side.end;
    ExpectationChange {
        edits: vec![TextEdit {
            range,
            text: format!("({text})"),
        }],
        ..change
    }
}

/// One change for each literal in a value.
pub(super) fn value_changes(
    source: &TestSource,
    value: &Range<usize>,
    certainty: Certainty,
    rng: &mut fastrand::Rng,
) -> Vec<ExpectationChange> {
    let only_first = source
        .words(value)
        .iter()
        .any(|word| source.slice(word) == "approx");
    let literals: Vec<_> = source
        .literals_in(value)
        .take(if only_first { 1 } else { 64 })
        .cloned()
        .collect();
    let changed = literals.iter().filter_map(|literal| {
        let text = different_literal(
            literal.kind,
            source.slice(&literal.range),
            &source.text,
            rng,
        )?;
        let edit = TextEdit {
            range: literal.range.clone(),
            text,
        };
        let new_value = super::apply(
            source.slice(value),
            vec![TextEdit {
                range: edit.range.start - value.start..edit.range.end - value.start,
                text: edit.text.clone(),
            }],
        );
        let mut change = change(vec![edit], &new_value, 0);
        if certainty == Certainty::Likely {
            change.is_sure = false;
            change.rank = 2;
        }
        Some(change)
    });
    changed.collect()
}

fn change(edits: Vec<TextEdit>, new_value: &str, rank: u8) -> ExpectationChange {
    let new_value = words::cut_end(&words::plain(new_value), 80).into_owned();
    ExpectationChange {
        edits,
        new_value,
        is_sure: true,
        rank,
        may_rename: false,
        row: None,
        is_one_of_both: false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    Sure,
    /// The expression computes something from the literals that may not change with them.
    Likely,
}

/// Whether the range is built from literals alone, and how certainly its value changes with them.
pub(super) fn constant_certainty(source: &TestSource, range: &Range<usize>) -> Option<Certainty> {
    source.literals_in(range).next()?;
    let mut certainty = Certainty::Sure;
    for word in source.words(range) {
        let text = source.slice(&word);
        let bytes = source.text.as_bytes();
        let before = word
            .start
            .checked_sub(1)
            .and_then(|at| bytes.get(at))
            .copied();
        let after = bytes[word.end..]
            .iter()
            .copied()
            .find(|b| !b.is_ascii_whitespace());
        let is_key = after == Some(b':') && bytes.get(word.end + 1) != Some(&b':');
        let is_symbol = before == Some(b':')
            && word.start.checked_sub(2).and_then(|at| bytes.get(at)) != Some(&b':');
        if WRAPPERS.contains(&text) || is_key || is_symbol {
            continue;
        }
        // An indexed value depends on the indexed object.
        if after == Some(b'[') {
            return None;
        }
        if text == "new" || text.starts_with(char::is_uppercase) {
            certainty = Certainty::Likely;
            continue;
        }
        return None;
    }
    Some(certainty)
}

/// The attribute that declares an expected panic, inside the test or directly above it.
fn expected_panic(source: &TestSource, test: &TestSite) -> Option<Range<usize>> {
    let is_own = |attribute: &&Range<usize>| contains(&test.whole, attribute);
    if let Some(own) = source.panics.iter().find(is_own) {
        return Some(own.clone());
    }
    let before = source
        .panics
        .iter()
        .filter(|attribute| attribute.end <= test.whole.start);
    let nearest = before.max_by_key(|attribute| attribute.start)?;
    let between = source.slice(&(nearest.end..test.whole.start));
    (!between.contains("fn ") && !between.contains('}')).then(|| nearest.clone())
}

fn panic_change(
    source: &TestSource,
    attribute: &Range<usize>,
    rng: &mut fastrand::Rng,
) -> Option<ExpectationChange> {
    let message = source.literals_in(attribute).next().cloned();
    if let Some(text) = message
        .as_ref()
        .and_then(|at| different_literal(at.kind, source.slice(&at.range), &source.text, rng))
    {
        let range = message?.range;
        return Some(change(
            vec![TextEdit {
                range,
                text: text.clone(),
            }],
            &text,
            0,
        ));
    }
    let edit = TextEdit {
        range: attribute.clone(),
        text: " ".repeat(attribute.len()),
    };
    Some(change(vec![edit], "no panic", 0))
}

/// Whether the test expects a panic. Adding another panic would not make it fail.
pub(super) fn must_panic(source: &TestSource, test: &TestSite) -> bool {
    expected_panic(source, test).is_some()
}

/// The assertions of a test that compare literal inputs with a literal value.
pub(super) fn literal_expectations(source: &TestSource, site: usize) -> Vec<super::Expectation> {
    let test = &source.sites[site];
    let mut all = Vec::new();
    for assertion in source
        .assertions
        .iter()
        .filter(|a| contains(&test.whole, &a.range))
    {
        let sides = match &assertion.claim {
            Claim::Equal(left, right) => Some((left.clone(), right.clone())),
            Claim::EqualTokens(tokens) => {
                match source.elements(tokens).unwrap_or_default().as_slice() {
                    [left, right, ..] => Some((left.clone(), right.clone())),
                    _ => None,
                }
            }
            _ => None,
        };
        let Some((left, right)) = sides else { continue };
        for (value, input) in [(&right, &left), (&left, &right)] {
            let is_literal = source
                .literals_in(value)
                .any(|literal| literal.range == *value);
            // The input may be in a statement of the same condition: `got := Triple(2); got != 6`.
            let search_range = if source.literals_in(input).next().is_some() {
                input.clone()
            } else {
                assertion.range.start..value.start
            };
            let inputs: Vec<String> = source
                .literals_in(&search_range)
                .map(|at| source.slice(&at.range).to_owned())
                .collect();
            if is_literal && !inputs.is_empty() {
                all.push(super::Expectation {
                    inputs,
                    value: source.slice(value).to_owned(),
                });
                break;
            }
        }
    }
    all
}
