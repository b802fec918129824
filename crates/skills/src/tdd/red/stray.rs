//! A slip of an honest hand, told from what it looks like: a name that the test itself does not know.

use supervisor_languages::Language;

/// A name that the test uses and was not given, by the words of its failure. In compiled languages the compiler tells.
pub(in crate::tdd) fn name(
    language: Option<&'static Language>,
    source: &str,
    said: &str,
) -> Option<String> {
    let (before, after) = language?.unbound_name?;
    let (name, _) = said.split_once(before)?.1.split_once(after)?;
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let is_name = !name.is_empty() && name.chars().all(word);
    // What fails in the project's own code is the project's.
    (is_name && source.split(|c| !word(c)).any(|other| other == name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use supervisor_languages::{JAVASCRIPT, PYTHON};

    #[test]
    fn a_name_that_only_the_test_says_is_found() {
        let python = |source: &str, said: &str| name(Some(&PYTHON), source, said);
        let said = "test_a.py:3: NameError: name 'slugfy' is not defined. Did you mean: 'slugify'?";
        assert_eq!(
            python("assert slugfy('a') == 'a'", said).as_deref(),
            Some("slugfy")
        );
        assert_eq!(
            python("assert slugify('a') == 'a'", said),
            None,
            "it fails in the project"
        );
        assert_eq!(
            python(
                "assert slugfy('a')",
                "AssertionError: assert 'x' == 'slugfy'"
            ),
            None
        );
        let node = name(
            Some(&JAVASCRIPT),
            "totl([])",
            "ReferenceError: totl is not defined",
        );
        assert_eq!(node.as_deref(), Some("totl"));
        assert_eq!(
            name(None, "totl([])", "ReferenceError: totl is not defined"),
            None
        );
    }
}
