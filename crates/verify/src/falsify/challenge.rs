//! Lists what the targets expect. Each expectation is a [`Challenge`]: it is changed in a run of its own, and its test must
//! fail then. Rows that the runner names are changed all at once, because each reports for itself.
//!
//! An expectation belongs to one of three classes. A change on the *expected side* must be noticed. An *input*, or a value
//! that is both input and expectation, is no challenge. A change of anything else is *unknown*: it proves something if it is
//! noticed, and says nothing if it is not.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::expectation::{
    Certainty, ExpectationChange, assertion_changes, combined, constant_certainty, is_own,
    own_assertions, panic_changes, value_changes,
};
use super::test_source::{AssertionSite, CheckSite, Claim, HelperSite, TestSite, contains};
use super::{FalsifiableTests, TextEdit, data, overlaps};
use supervisor_text::words;

/// One expectation of a target.
#[derive(Debug, Clone)]
pub(super) struct Challenge {
    pub(super) target: usize,
    /// The assertion, in the joined text of all files.
    pub(super) range: Range<usize>,
    /// Ways to change it, in the order to try. Empty if the assertion was not understood.
    pub(super) changes: Vec<ExpectationChange>,
    /// All names of the target must fail, not only one row.
    pub(super) in_every_row: bool,
    /// Another literal of an expectation that has a challenge already. It does not count as an expectation of its own.
    pub(super) is_extra: bool,
}

/// Of one expectation, at most this many literals are changed one by one.
const MAX_LITERALS: usize = 8;

/// Callees that sound like an assertion. Only such a call counts as an assertion that was not understood.
static SOUNDS_LIKE_ASSERTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)(^|[._:])(_*)(assert|expect|check|verif|should|must|ensure|refute|compare|same|matches)|(equals?|_eq|to_be|tobe)$")
        .expect("a pattern that tests compile")
});

/// Ends a row before its assertion.
const LEAVES_ROW: &[&str] = &["continue", "break", "next", "return"];

impl FalsifiableTests {
    /// All expectations of the targets, the ones that must be noticed first.
    pub(super) fn challenges(&self, rng: &mut fastrand::Rng) -> Vec<Challenge> {
        let mut all = Vec::new();
        for target in 0..self.targets.len() {
            let site = &self.source.sites[self.targets[target].site];
            if let Some((range, changes)) = panic_changes(&self.source, site, rng) {
                all.push(Challenge {
                    target,
                    range,
                    changes,
                    in_every_row: false,
                    is_extra: false,
                });
                continue;
            }
            let own: Vec<(&AssertionSite, Vec<ExpectationChange>)> =
                own_assertions(&self.source, site)
                    .map(|assertion| {
                        let changes = assertion_changes(&self.source, site, assertion, rng);
                        (assertion, changes)
                    })
                    .collect();
            for (assertion, changes) in &own {
                // A comparison is also a condition, and a value says more than a negation.
                let compares = |assertion: &AssertionSite, changes: &[ExpectationChange]| {
                    assertion.claim.is_comparison() && !changes.is_empty()
                };
                let is_covered = !compares(assertion, changes)
                    && own.iter().any(|(other, others)| {
                        overlaps(&other.range, &assertion.range) && compares(other, others)
                    });
                if !is_covered {
                    self.challenge_assertion(target, assertion, changes.clone(), rng, &mut all);
                }
            }
            let checks = self.source.checks.iter().filter(|check| {
                is_own(&self.source, site, &check.range)
                    && !own_assertions(&self.source, site)
                        .any(|assertion| overlaps(&assertion.range, &check.range))
            });
            for check in checks {
                self.challenge_check(target, site, check, rng, &mut all);
            }
        }
        self.challenge_data(rng, &mut all);
        rng.shuffle(&mut all);
        all.sort_by_key(|challenge| {
            let is_sure = challenge.changes.first().is_some_and(|c| c.is_sure);
            (challenge.is_extra, !is_sure)
        });
        all
    }

    fn challenge_assertion(
        &self,
        target: usize,
        assertion: &AssertionSite,
        mut changes: Vec<ExpectationChange>,
        rng: &mut fastrand::Rng,
        all: &mut Vec<Challenge>,
    ) {
        let range = assertion.range.clone();
        rng.shuffle(&mut changes);
        if changes.iter().any(|change| change.is_one_of_both) {
            all.extend(changes.into_iter().map(|change| Challenge {
                target,
                range: range.clone(),
                changes: vec![change],
                in_every_row: false,
                is_extra: false,
            }));
            return;
        }
        let rows = changes.iter().filter_map(|change| change.row).max();
        let Some(last_row) = rows else {
            let is_guess = changes.iter().all(|change| !change.is_sure);
            if is_guess && changes.len() > 1 {
                // Any one of them may be irrelevant.
                let whole = combined(changes.clone());
                changes.truncate(1);
                changes.extend(whole);
            }
            let is_exact = |change: &ExpectationChange| {
                change.is_sure && change.rank == 0 && !change.may_rename
            };
            // An answer may be right in one element of a list only.
            let extras: Vec<ExpectationChange> =
                if matches!(assertion.claim, Claim::Equal(..) | Claim::EqualTokens(_))
                    && changes.iter().all(is_exact)
                {
                    changes
                        .iter()
                        .skip(1)
                        .take(MAX_LITERALS - 1)
                        .cloned()
                        .collect()
                } else {
                    Vec::new()
                };
            all.extend(extras.into_iter().map(|change| Challenge {
                target,
                range: range.clone(),
                changes: vec![change],
                in_every_row: false,
                is_extra: true,
            }));
            all.push(Challenge {
                target,
                range,
                changes,
                in_every_row: false,
                is_extra: false,
            });
            return;
        };
        let of_row = |row: usize| -> Vec<ExpectationChange> {
            let own = changes.iter().filter(|change| change.row == Some(row));
            own.cloned().collect()
        };
        if self.has_named_rows(target) {
            let one_of_each = (0..=last_row).filter_map(|row| of_row(row).pop());
            let whole = combined(one_of_each.collect());
            all.push(Challenge {
                target,
                range,
                in_every_row: whole.as_ref().is_some_and(|change| change.is_sure),
                is_extra: false,
                changes: whole.into_iter().collect(),
            });
            return;
        }
        if changes.iter().any(|change| !change.is_sure) {
            // Which rows get as far as this assertion is not known.
            all.push(Challenge {
                target,
                range,
                changes: combined(changes).into_iter().collect(),
                in_every_row: false,
                is_extra: false,
            });
            return;
        }
        let table = self
            .source
            .tables
            .iter()
            .filter(|t| contains(&t.whole, &range));
        let may_be_left = table
            .min_by_key(|table| table.whole.len())
            .is_none_or(|table| {
                let leaves = |word: &Range<usize>| LEAVES_ROW.contains(&self.source.slice(word));
                self.source.words(&table.whole).iter().any(leaves)
            });
        for row in 0..=last_row {
            let mut changes = of_row(row);
            for change in &mut changes {
                change.is_sure &= !may_be_left;
            }
            if !changes.is_empty() {
                all.push(Challenge {
                    target,
                    range: range.clone(),
                    changes,
                    in_every_row: false,
                    is_extra: false,
                });
            }
        }
    }

    /// Whether the runner names each row: the table is around the test, or the names of the target have a suffix.
    fn has_named_rows(&self, target: usize) -> bool {
        let test = &self.targets[target];
        let site = &self.source.sites[test.site];
        test.names.len() > 1
            || test.names.iter().any(|name| site.whole_name(name) != *name)
            || self
                .source
                .tables
                .iter()
                .any(|table| contains(&table.whole, &site.whole))
    }

    /// A call that may be an assertion: of a function that compares its arguments, or by its name.
    fn challenge_check(
        &self,
        target: usize,
        site: &TestSite,
        check: &CheckSite,
        rng: &mut fastrand::Rng,
        all: &mut Vec<Challenge>,
    ) {
        let source = &self.source;
        let arguments: Vec<Range<usize>> = source
            .elements(&check.arguments)
            .unwrap_or_default()
            .into_iter()
            .map(|argument| self.without_keyword(&argument))
            .collect();
        let constants: Vec<(usize, &Range<usize>)> = arguments
            .iter()
            .enumerate()
            .filter(|(_, argument)| constant_certainty(source, argument).is_some())
            .collect();
        let mut push = |range: &Range<usize>, changes: Vec<ExpectationChange>| {
            all.push(Challenge {
                target,
                range: range.clone(),
                changes,
                in_every_row: false,
                is_extra: false,
            });
        };
        let name = check.callee.rsplit(['.', ':']).next().unwrap_or_default();
        if let Some(helper) = source
            .helpers
            .iter()
            .find(|helper| helper.name == name && !contains(&helper.whole, &check.range))
        {
            let inside: Vec<&AssertionSite> = source
                .assertions
                .iter()
                .filter(|assertion| contains(&helper.whole, &assertion.range))
                .collect();
            if inside.is_empty() {
                return;
            }
            let expected = self.expected_params(helper, &inside);
            let given: Vec<_> = constants
                .iter()
                .filter(|(at, _)| expected.contains(at))
                .collect();
            let is_always_reached = source.is_always_reached(site, &check.range)
                && inside.len() == 1
                && !source.conditionals.iter().any(|range| {
                    contains(&helper.whole, range)
                        && contains(range, &inside[0].range)
                        && *range != inside[0].range
                });
            if let [(_, argument)] = given.as_slice() {
                let mut changes = value_changes(source, argument, Certainty::Sure, rng);
                for change in &mut changes {
                    change.is_sure &= is_always_reached;
                }
                return push(&check.range, changes);
            }
            if constants.is_empty() {
                for assertion in inside {
                    let mut changes = assertion_changes(source, site, assertion, rng);
                    for change in &mut changes {
                        change.is_sure = false;
                    }
                    push(&assertion.range, changes);
                }
                return;
            }
        } else if !SOUNDS_LIKE_ASSERTION.is_match(&without_arguments(&check.callee)) {
            return;
        }
        let changes = constants
            .iter()
            .flat_map(|(_, argument)| value_changes(source, argument, Certainty::Likely, rng));
        push(
            &check.range,
            combined(changes.collect()).into_iter().collect(),
        );
    }

    /// The parameters that the assertions of a helper compare as they are.
    fn expected_params(&self, helper: &HelperSite, inside: &[&AssertionSite]) -> Vec<usize> {
        let source = &self.source;
        let params = source.elements(&helper.params).unwrap_or_default();
        let names: Vec<&str> = params
            .iter()
            .map(|param| {
                let text = source.slice(param);
                text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
                    .find(|word| !word.is_empty())
                    .unwrap_or_default()
            })
            .collect();
        let is_side = |name: &str| {
            inside.iter().any(|assertion| match &assertion.claim {
                Claim::Equal(left, right) => [left, right]
                    .iter()
                    .any(|side| source.slice(side).trim_start_matches(['&', '*']) == name),
                Claim::EqualTokens(tokens) => source
                    .elements(tokens)
                    .unwrap_or_default()
                    .iter()
                    .any(|side| source.slice(side).trim_start_matches(['&', '*']) == name),
                _ => false,
            })
        };
        (0..names.len()).filter(|at| is_side(names[*at])).collect()
    }

    /// `want="b"` and `want: "b"` without the keyword.
    fn without_keyword(&self, argument: &Range<usize>) -> Range<usize> {
        if let Some((_, value)) = self.source.pair(argument) {
            return value;
        }
        let text = self.source.slice(argument);
        let name = text
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(0);
        let rest = text[name..].trim_start();
        if name > 0 && rest.starts_with('=') && !rest.starts_with("==") {
            let value = argument.end - rest.len() + 1..argument.end;
            return self.source.trimmed(&value);
        }
        argument.clone()
    }

    /// All values of a data file at once, for each target that names the file, or for all if none does.
    fn challenge_data(&self, rng: &mut fastrand::Rng, all: &mut Vec<Challenge>) {
        for companion in &self.source.companions {
            let edits: Vec<TextEdit> = companion
                .values
                .iter()
                .filter_map(|value| {
                    let old = self.source.slice(&value.range);
                    let text = data::different_value(value, old, &self.source.text, rng)?;
                    Some(TextEdit {
                        range: value.range.clone(),
                        text,
                    })
                })
                .collect();
            if edits.is_empty() {
                continue;
            }
            let file = companion
                .path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            let names_it = |target: &usize| {
                let site = &self.source.sites[self.targets[*target].site];
                self.source.slice(&site.whole).contains(&file)
            };
            let mut users: Vec<usize> = (0..self.targets.len()).filter(names_it).collect();
            if users.is_empty() {
                users = (0..self.targets.len()).collect();
            }
            all.extend(users.into_iter().map(|target| Challenge {
                target,
                range: companion.range.clone(),
                changes: vec![ExpectationChange {
                    edits: edits.clone(),
                    new_value: format!("other values in {}", words::plain(&file)),
                    is_sure: false,
                    rank: 2,
                    may_rename: true,
                    row: None,
                    is_one_of_both: false,
                }],
                in_every_row: false,
                is_extra: false,
            }));
        }
    }
}

/// The names in a callee, without the arguments of calls inside: `expect().toContain`.
fn without_arguments(callee: &str) -> String {
    let mut depth = 0_usize;
    let mut text = String::new();
    for c in callee.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => text.push(c),
            _ => {}
        }
    }
    text
}
