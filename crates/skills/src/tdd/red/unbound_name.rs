//! Detects a test that fails because it uses a name that it neither defines nor imports.

use supervisor_languages::Language;

/// The unknown name in a failure message. Compiled languages report it as a build error instead.
pub(in crate::tdd) fn unknown_name(
    language: Option<&'static Language>,
    source: &str,
    message: &str,
) -> Option<String> {
    let (before, after) = language?.unbound_name?;
    let (name, _) = message.split_once(before)?.1.split_once(after)?;
    let is_word_char = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let is_name = !name.is_empty() && name.chars().all(is_word_char);
    // If the test does not contain the name, the failure is in the project's code.
    (is_name && source.split(|c| !is_word_char(c)).any(|word| word == name))
        .then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use supervisor_languages::{JAVASCRIPT, PYTHON};

    #[test]
    fn name_unknown_to_the_test_is_found() {
        let python = |source: &str, message: &str| unknown_name(Some(&PYTHON), source, message);
        let message =
            "test_a.py:3: NameError: name 'slugfy' is not defined. Did you mean: 'slugify'?";
        assert_eq!(
            python("assert slugfy('a') == 'a'", message).as_deref(),
            Some("slugfy")
        );
        assert_eq!(
            python("assert slugify('a') == 'a'", message),
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
        let node = unknown_name(
            Some(&JAVASCRIPT),
            "totl([])",
            "ReferenceError: totl is not defined",
        );
        assert_eq!(node.as_deref(), Some("totl"));
        assert_eq!(
            unknown_name(None, "totl([])", "ReferenceError: totl is not defined"),
            None
        );
    }
}
