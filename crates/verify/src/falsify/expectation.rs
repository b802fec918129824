//! How one test can be made to expect something else: another value where a value is expected, the opposite where a
//! condition must hold, another error where one must be raised. Each change says whether the test must surely fail.

use std::ops::Range;

use super::TextEdit;
use super::literal::{another, random_word};
use super::sites::{AssertionSite, Claim, ExpectedSide, TestSite, TestSource, contains};
use supervisor_text::words;

/// One way to make a test wrong.
#[derive(Debug, Clone)]
pub(super) struct ExpectationChange {
    pub(super) edits: Vec<TextEdit>,
    pub(super) now: String,
    pub(super) is_sure: bool,
    /// Lower is better.
    pub(super) rank: u8,
    /// The value stands in a row, and rows may be named after their values.
    pub(super) may_rename: bool,
}

/// Words around a literal that pass its value on: with another literal the whole is another value.
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

/// All ways to make the test wrong, in the order of the text; the order is the same each time.
pub(super) fn changes(
    source: &TestSource,
    site: usize,
    dice: &mut fastrand::Rng,
) -> Vec<ExpectationChange> {
    let test = &source.sites[site];
    if let Some(panics) = expected_panic(source, test) {
        return of_panic(source, &panics, dice).into_iter().collect();
    }
    let own = source.assertions.iter().filter(|assertion| {
        contains(&test.whole, &assertion.range)
            && !source.sites.iter().any(|inner| {
                inner.whole != test.whole
                    && contains(&test.whole, &inner.whole)
                    && contains(&inner.whole, &assertion.range)
            })
    });
    own.flat_map(|assertion| of_assertion(source, test, assertion, dice))
        .collect()
}

fn of_assertion(
    source: &TestSource,
    test: &TestSite,
    assertion: &AssertionSite,
    dice: &mut fastrand::Rng,
) -> Vec<ExpectationChange> {
    let mut changes = match &assertion.claim {
        Claim::Equal(left, right) => {
            let sides = [left.clone(), right.clone()];
            let changes = of_sides(source, test, sides.clone(), dice);
            // What can only be guessed at is better replaced as a whole.
            if changes.iter().all(|change| change.rank > 1) {
                replaced(source, assertion, &sides, dice).map_or(changes, |change| vec![change])
            } else {
                changes
            }
        }
        Claim::EqualTokens(tokens) => {
            match source.elements(tokens).unwrap_or_default().as_slice() {
                [left, right, ..] => of_sides(source, test, [left.clone(), right.clone()], dice),
                _ => Vec::new(),
            }
        }
        Claim::Holds(condition, negated) => vec![turned(source, condition, negated)],
        Claim::HoldsTokens(tokens, negated) => {
            let condition = source.elements(tokens).and_then(|all| all.first().cloned());
            condition
                .map(|condition| turned(source, &condition, negated))
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
            change.rank += 3;
        }
    }
    changes
}

/// Another value altogether in the place of what is expected: that is known by the form of the assertion, or it is the one
/// side on which nothing is called.
fn replaced(
    source: &TestSource,
    assertion: &AssertionSite,
    [left, right]: &[Range<usize>; 2],
    dice: &mut fastrand::Rng,
) -> Option<ExpectationChange> {
    let text = assertion.instead?.replace("{word}", &random_word(dice));
    let calls = |side: &Range<usize>| source.slice(side).contains(['(', '.']);
    let side = match assertion.expected {
        Some(ExpectedSide::Left) => left,
        Some(ExpectedSide::Right) => right,
        None if calls(left) && !calls(right) => right,
        None if calls(right) && !calls(left) => left,
        None => return None,
    };
    let edit = TextEdit {
        range: side.clone(),
        text: text.clone(),
    };
    Some(change(vec![edit], &text, 1))
}

fn turned(source: &TestSource, condition: &Range<usize>, negated: &str) -> ExpectationChange {
    let text = negated.replace("{condition}", source.slice(condition));
    let edit = TextEdit {
        range: condition.clone(),
        text: text.clone(),
    };
    change(vec![edit], &text, 1)
}

/// The side that is a value is the expected one; of two values the plainer one.
fn of_sides(
    source: &TestSource,
    test: &TestSite,
    sides: [Range<usize>; 2],
    dice: &mut fastrand::Rng,
) -> Vec<ExpectationChange> {
    let [left, right] = sides.map(|side| of_side(source, test, &side, dice));
    let rank =
        |changes: &[ExpectationChange]| changes.iter().map(|c| c.rank).min().unwrap_or(u8::MAX);
    if rank(&left) < rank(&right) {
        left
    } else {
        right
    }
}

fn of_side(
    source: &TestSource,
    test: &TestSite,
    side: &Range<usize>,
    dice: &mut fastrand::Rng,
) -> Vec<ExpectationChange> {
    if let Some(certainty) = constancy(source, side) {
        return of_value(source, side, certainty, dice);
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
            .filter_map(|cell| Some((cell, constancy(source, cell)?)));
        let is_given = source.is_given_too(test, side, name, field);
        let mut changes = Vec::new();
        for (cell, certainty) in constant {
            let at_cell = of_value(source, cell, certainty, dice);
            if is_given {
                changes.extend(
                    at_cell
                        .into_iter()
                        .map(|change| moved_to(source, change, cell, side)),
                );
            } else {
                changes.extend(at_cell.into_iter().map(|change| ExpectationChange {
                    may_rename: true,
                    ..change
                }));
            }
        }
        return changes;
    }
    if field.is_none() {
        of_binding(source, test, side, name, dice)
    } else {
        Vec::new()
    }
}

/// The value stands above the assertion. What is used elsewhere too is changed at the assertion alone.
fn of_binding(
    source: &TestSource,
    test: &TestSite,
    side: &Range<usize>,
    name: &str,
    dice: &mut fastrand::Rng,
) -> Vec<ExpectationChange> {
    let before = source
        .bindings
        .iter()
        .filter(|b| b.name == name && b.whole.end <= side.start);
    let Some(binding) = before.max_by_key(|b| (contains(&test.whole, &b.whole), b.whole.start))
    else {
        return Vec::new();
    };
    let Some(certainty) = constancy(source, &binding.value) else {
        return Vec::new();
    };
    let is_local = contains(&test.whole, &binding.whole);
    let around = if is_local {
        test.whole.clone()
    } else {
        0..source.text.len()
    };
    let uses = source
        .words(&around)
        .iter()
        .filter(|word| source.slice(word) == name)
        .count();
    let at_value = of_value(source, &binding.value, certainty, dice);
    if is_local && uses <= 2 {
        return at_value;
    }
    at_value
        .into_iter()
        .map(|change| moved_to(source, change, &binding.value, side))
        .collect()
}

/// The changed value at the assertion alone, because others use it too where it stands.
fn moved_to(
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

/// One change for each literal of a value.
fn of_value(
    source: &TestSource,
    value: &Range<usize>,
    certainty: Certainty,
    dice: &mut fastrand::Rng,
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
        let text = another(literal.kind, source.slice(&literal.range), dice)?;
        let edit = TextEdit {
            range: literal.range.clone(),
            text,
        };
        let now = super::apply(
            source.slice(value),
            vec![TextEdit {
                range: edit.range.start - value.start..edit.range.end - value.start,
                text: edit.text.clone(),
            }],
        );
        let mut change = change(vec![edit], &now, 0);
        if certainty == Certainty::Likely {
            change.is_sure = false;
            change.rank = 2;
        }
        Some(change)
    });
    changed.collect()
}

fn change(edits: Vec<TextEdit>, now: &str, rank: u8) -> ExpectationChange {
    let now = words::cut_end(&words::plain(now), 80).into_owned();
    ExpectationChange {
        edits,
        now,
        is_sure: true,
        rank,
        may_rename: false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    Sure,
    /// Something is made of the literals that may be the same for others.
    Likely,
}

/// Is this made of literals alone?
fn constancy(source: &TestSource, range: &Range<usize>) -> Option<Certainty> {
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
        // A part of something is whatever it is a part of.
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

/// The attribute by which a test says that it must panic: a part of the test, or directly above it.
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

fn of_panic(
    source: &TestSource,
    attribute: &Range<usize>,
    dice: &mut fastrand::Rng,
) -> Option<ExpectationChange> {
    let message = source.literals_in(attribute).next().cloned();
    if let Some(text) = message
        .as_ref()
        .and_then(|at| another(at.kind, source.slice(&at.range), dice))
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

/// A test that must panic cannot be made to fail by one more panic.
pub(super) fn must_panic(source: &TestSource, test: &TestSite) -> bool {
    expected_panic(source, test).is_some()
}

/// What a test gives and what it expects for it, where both are literals.
pub(super) fn visible(source: &TestSource, site: usize) -> Vec<super::Expectation> {
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
        for (value, given) in [(&right, &left), (&left, &right)] {
            let is_literal = source
                .literals_in(value)
                .any(|literal| literal.range == *value);
            // What was asked may stand in a statement of the same condition: `got := Triple(2); got != 6`.
            let around = if source.literals_in(given).next().is_some() {
                given.clone()
            } else {
                assertion.range.start..value.start
            };
            let inputs: Vec<String> = source
                .literals_in(&around)
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
