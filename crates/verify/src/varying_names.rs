//! Tests whose names differ between two runs of the same files, because they contain a time, an address, a port or a
//! random value. Only two runs of the same state show them. Their rows are folded into the function they belong to and
//! compared by number and outcome.

use std::collections::{BTreeMap, BTreeSet};

use super::baseline::compare;
use super::outcome::{TestName, TestRun, TestState, Tests};
use supervisor_text::words;

/// What stands for the part of a name that varies.
const VARIES: &str = "…";
/// Families named in a sentence.
const MAX_NAMED: usize = 5;

/// The tests of a suite whose names vary, by what their names have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaryingNames {
    /// Names that both runs gave.
    stable: BTreeSet<TestName>,
    families: BTreeMap<String, Family>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Family {
    /// Whether both runs had equally many rows. If not, the family counts as one test.
    is_counted: bool,
}

/// How to select a test whose name may be that of a folded row.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RowSelection {
    NotFolded,
    /// Select the function that the row belongs to.
    Function(String),
    Impossible,
}

impl VaryingNames {
    /// Whether the names of two runs differ as varying names would: a test is missing, and another that may be the same one
    /// came in its place. `may_be_renamed` says of which tests the source was edited; they need more in common.
    pub fn are_possible(
        before: &TestRun,
        after: &TestRun,
        may_be_renamed: impl Fn(&TestName) -> bool,
    ) -> bool {
        let comparison = compare(before, after);
        let added: BTreeSet<String> = comparison
            .added
            .iter()
            .flat_map(|name| families_of(&name.0))
            .flatten()
            .collect();
        comparison.vanished.iter().any(|name| {
            let [close, wide] = families_of(&name.0);
            let wide = wide.filter(|_| !may_be_renamed(name));
            close.into_iter().chain(wide).any(|f| added.contains(&f))
        })
    }

    /// Compares two runs of the same files. `None` if no name varies.
    pub fn between(one: &TestRun, other: &TestRun) -> Option<Self> {
        let comparison = compare(one, other);
        let (mut gone, mut came) = (comparison.vanished, comparison.added);
        let mut families = BTreeMap::new();
        for level in 0..2 {
            let count = |names: &[TestName]| {
                let mut counts: BTreeMap<String, usize> = BTreeMap::new();
                for family in names
                    .iter()
                    .filter_map(|name| families_of(&name.0)[level].clone())
                {
                    *counts.entry(family).or_default() += 1;
                }
                counts
            };
            let (before, after) = (count(&gone), count(&came));
            let found: BTreeMap<String, Family> = before
                .iter()
                .filter_map(|(family, rows)| {
                    let is_counted = after.get(family)? == rows;
                    Some((family.clone(), Family { is_counted }))
                })
                .collect();
            for names in [&mut gone, &mut came] {
                names.retain(|name| {
                    !families_of(&name.0)[level]
                        .as_ref()
                        .is_some_and(|family| found.contains_key(family))
                });
            }
            families.extend(found);
        }
        if families.is_empty() {
            return None;
        }
        let stable = one
            .named()
            .map(|(name, _)| name)
            .filter(|name| other.state(name).is_some())
            .cloned()
            .collect();
        Some(Self { stable, families })
    }

    /// The run with the rows of each family named after it: `test_x`, `test_x #2`; failed rows first.
    pub fn fold(&self, run: &TestRun) -> TestRun {
        let mut folded = run.clone();
        let Tests::Named(tests) = &mut folded.tests else {
            return folded;
        };
        let rows: Vec<(TestName, TestState)> = self
            .folded_names(run)
            .into_iter()
            .filter_map(|(old, new)| Some((new, tests.remove(&old)?)))
            .collect();
        for (new, state) in rows {
            let worse = match (tests.remove(&new), state) {
                (Some(TestState::Failed(message)), _) | (_, TestState::Failed(message)) => {
                    TestState::Failed(message)
                }
                (Some(TestState::Passed), _) | (_, TestState::Passed) => TestState::Passed,
                (_, TestState::Skipped) => TestState::Skipped,
            };
            tests.insert(new, worse);
        }
        folded
    }

    /// The names that `fold` gives to the tests of this run; names that it keeps are left out.
    pub fn folded_names(&self, run: &TestRun) -> BTreeMap<TestName, TestName> {
        let mut rows: BTreeMap<&str, Vec<(u8, &TestName)>> = BTreeMap::new();
        for (name, state) in run.named() {
            let Some((family, _)) = self.family_of(name) else {
                continue;
            };
            let rank = match state {
                TestState::Failed(_) => 0,
                TestState::Passed => 1,
                TestState::Skipped => 2,
            };
            rows.entry(family).or_default().push((rank, name));
        }
        let mut names = BTreeMap::new();
        for (family, mut rows) in rows {
            rows.sort_unstable();
            let is_counted = self.families[family].is_counted;
            for (at, (_, name)) in rows.into_iter().enumerate() {
                let folded = match at {
                    at if at > 0 && is_counted => format!("{family} #{}", at + 1),
                    _ => family.to_owned(),
                };
                names.insert(name.clone(), TestName(folded));
            }
        }
        names
    }

    fn family_of(&self, name: &TestName) -> Option<(&str, Family)> {
        if self.stable.contains(name) {
            return None;
        }
        families_of(&name.0)
            .into_iter()
            .flatten()
            .find_map(|family| self.families.get_key_value(family.as_str()))
            .map(|(family, how)| (family.as_str(), *how))
    }

    /// What to select in the place of this test.
    pub(super) fn selection_of(&self, name: &str) -> RowSelection {
        let family = match name.rsplit_once(" #") {
            Some((before, row)) if row.bytes().all(|b| b.is_ascii_digit()) => before,
            _ => name,
        };
        match self.families.contains_key(family) {
            false => RowSelection::NotFolded,
            true if family.contains(VARIES) => RowSelection::Impossible,
            true => RowSelection::Function(family.to_owned()),
        }
    }

    /// One sentence for a reader.
    pub fn sentence(&self) -> String {
        let named: Vec<String> = self
            .families
            .keys()
            .take(MAX_NAMED)
            .map(|family| format!("`{}`", words::plain(family)))
            .collect();
        let more = self.families.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        format!(
            "names of tests that differ from run to run without any change are compared by number and outcome: {}{more}",
            named.join(", ")
        )
    }
}

/// What a test with a varying name may have in common with itself in another run, the closest first: its function, or its
/// name without the words that contain digits; and what it is part of.
fn families_of(name: &str) -> [Option<String>; 2] {
    let base = TestName(name.to_owned()).base().to_owned();
    if base != name {
        return [Some(base), None];
    }
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '.' | ':' | '-' | '+');
    let mut masked = String::new();
    let mut rest = name;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        masked.push_str(if word.contains(|c: char| c.is_ascii_digit()) {
            VARIES
        } else {
            word
        });
        let between = after.find(is_word).unwrap_or(after.len());
        masked.push_str(&after[..between]);
        rest = &after[between..];
    }
    let whole = [" > ", "::", "#", "/"]
        .iter()
        .filter_map(|separator| Some(name.rfind(separator)? + separator.len()))
        .max()
        .map(|end| format!("{}{VARIES}", &name[..end]));
    [(masked != name).then_some(masked), whole]
}

#[cfg(test)]
mod tests {
    use super::super::baseline::tests::run;
    use super::*;

    fn named(tests: &[(&str, TestState)]) -> TestRun {
        let mut named = run("+x");
        named.tests = Tests::Named(
            tests
                .iter()
                .map(|(name, state)| (TestName::from(*name), state.clone()))
                .collect(),
        );
        named
    }

    fn passing(names: &[&str]) -> TestRun {
        let tests: Vec<_> = names.iter().map(|n| (*n, TestState::Passed)).collect();
        named(&tests)
    }

    fn names(run: &TestRun) -> Vec<&str> {
        run.named().map(|(name, _)| name.0.as_str()).collect()
    }

    #[test]
    fn times_ports_and_addresses_are_folded() {
        for (one, other, third, folded) in [
            (
                "t.py::test_d[08:24:39 2026-11-18]",
                "t.py::test_d[08:24:40 2026-11-18]",
                "t.py::test_d[09:00:00 2026-11-19]",
                "t.py::test_d",
            ),
            (
                "a.test.js > GET http://127.0.0.1:43121/x",
                "a.test.js > GET http://127.0.0.1:39001/x",
                "a.test.js > GET http://127.0.0.1:50000/x",
                "a.test.js > GET http://…/x",
            ),
            (
                "T shows #<Object:0x00007f12>",
                "T shows #<Object:0x0000aa10>",
                "T shows #<Object:0x00001111>",
                "T shows #<…>",
            ),
            (
                "a.test.js > people > Ann Lee",
                "a.test.js > people > Bo van Dam",
                "a.test.js > people > Cy",
                "a.test.js > people > …",
            ),
        ] {
            let stable = "t.py::test_d[fixed]";
            let varying =
                VaryingNames::between(&passing(&[one, stable]), &passing(&[other, stable]))
                    .unwrap_or_else(|| panic!("{one} varies"));
            let after = varying.fold(&passing(&[third, stable]));
            let mut expected = [folded, stable];
            expected.sort_unstable();
            assert_eq!(names(&after), expected);
        }
    }

    #[test]
    fn rows_are_compared_by_number_and_outcome() {
        let failed = || TestState::Failed(String::from("no"));
        let one = named(&[("f::t[1.5]", TestState::Passed), ("f::t[1.6]", failed())]);
        let other = named(&[("f::t[2.5]", failed()), ("f::t[2.6]", TestState::Passed)]);
        let varying = VaryingNames::between(&one, &other).expect("they vary");
        let before = varying.fold(&one);
        assert_eq!(names(&before), ["f::t", "f::t #2"]);
        assert!(compare(&before, &varying.fold(&other)).has_no_regression());
        let lost = varying.fold(&named(&[("f::t[3.1]", failed())]));
        assert_eq!(
            compare(&before, &lost).vanished,
            [TestName::from("f::t #2")]
        );
        let broken = named(&[("f::t[3.1]", failed()), ("f::t[3.2]", failed())]);
        let broken = compare(&before, &varying.fold(&broken));
        assert_eq!(broken.newly_failing, [TestName::from("f::t #2")]);
        let fewer = VaryingNames::between(&one, &passing(&["f::t[9.9]"])).expect("they vary");
        assert_eq!(names(&fewer.fold(&one)), ["f::t"], "the number varies too");
        assert_eq!(fewer.fold(&one).failed().count(), 1);
    }

    #[test]
    fn missing_and_renamed_tests_do_not_vary() {
        let before = passing(&["f::a", "f::b[1]", "g::c"]);
        assert!(!VaryingNames::are_possible(
            &before,
            &passing(&["f::a", "g::c"]),
            |_| false
        ));
        assert!(VaryingNames::are_possible(
            &before,
            &passing(&["f::a", "f::b[2]", "g::c"]),
            |_| true
        ));
        let renamed = passing(&["f::a", "f::b[1]", "g::d"]);
        assert!(!VaryingNames::are_possible(&before, &renamed, |_| true));
        assert_eq!(VaryingNames::between(&before, &before), None);
    }

    #[test]
    fn folded_row_is_selected_by_its_function() {
        let varying = VaryingNames::between(
            &passing(&["f::t[1.5]", "a > at 10:01"]),
            &passing(&["f::t[1.7]", "a > at 10:02"]),
        )
        .expect("they vary");
        for (name, expected) in [
            ("f::t #2", RowSelection::Function("f::t".into())),
            ("f::t", RowSelection::Function("f::t".into())),
            ("a > at …", RowSelection::Impossible),
            ("f::u #2", RowSelection::NotFolded),
        ] {
            assert_eq!(varying.selection_of(name), expected, "{name}");
        }
    }
}
