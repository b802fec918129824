//! Slips of an honest hand, told from what they look like: a name that the test itself does not know, and one test that
//! became many because it has a table of parameters.

use crate::verify::{Ecosystem, TestName};

/// A name that the test says and nobody gave it, by the words of its failure. In compiled languages the compiler tells.
pub(super) fn name(ecosystem: Option<Ecosystem>, source: &str, said: &str) -> Option<String> {
    let (before, after) = match ecosystem? {
        Ecosystem::Python => ("NameError: name '", "' is not defined"),
        Ecosystem::Node => ("ReferenceError: ", " is not defined"),
        Ecosystem::Rust | Ecosystem::Go | Ecosystem::Ruby | Ecosystem::Elixir => return None,
    };
    let (name, _) = said.split_once(before)?.1.split_once(after)?;
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let is_name = !name.is_empty() && name.chars().all(word);
    // What fails in the project's own code is the project's.
    (is_name && source.split(|c| !word(c)).any(|other| other == name)).then(|| name.to_owned())
}

/// `test_adds[1]`, `test_adds[2]`: cases of one test.
pub(super) fn cases(names: &[&TestName]) -> bool {
    let base = |name: &TestName| name.0.split_once('[').map(|(base, _)| base.to_owned());
    let first = names.first().and_then(|name| base(name));
    first.is_some() && names.iter().all(|name| base(name) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_only_the_test_says_is_found() {
        let python = |source: &str, said: &str| name(Some(Ecosystem::Python), source, said);
        let said = "test_a.py:3: NameError: name 'slugfy' is not defined. Did you mean: 'slugify'?";
        assert_eq!(python("assert slugfy('a') == 'a'", said).as_deref(), Some("slugfy"));
        assert_eq!(python("assert slugify('a') == 'a'", said), None, "it fails in the project");
        assert_eq!(python("assert slugfy('a')", "AssertionError: assert 'x' == 'slugfy'"), None);
        let node = name(Some(Ecosystem::Node), "totl([])", "ReferenceError: totl is not defined");
        assert_eq!(node.as_deref(), Some("totl"));
        assert_eq!(name(None, "totl([])", "ReferenceError: totl is not defined"), None);
    }

    #[test]
    fn cases_of_one_test_are_told_from_several_tests() {
        let names = |all: &[&str]| all.iter().map(|n| TestName((*n).to_owned())).collect::<Vec<_>>();
        let of = |all: &[&str]| cases(&names(all).iter().collect::<Vec<_>>());
        assert!(of(&["t.py::adds[1]", "t.py::adds[2]"]));
        assert!(!of(&["t.py::adds[1]", "t.py::halves[1]"]) && !of(&["t.py::adds", "t.py::halves"]) && !of(&[]));
    }
}
