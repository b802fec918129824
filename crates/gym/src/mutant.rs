//! Almost correct answers: a reference with one operator changed. Mutants that pass the visible
//! tests show which mistakes of a careless model they would miss; the hidden tests catch most of
//! them.

use std::path::Path;

use supervisor_languages::Language;

/// Operators and their replacements, longest first. Operators of one character include the blanks,
/// because otherwise they could be generics, arrows or pipes.
const REPLACEMENTS: &[(&str, &str)] = &[
    (" <= ", " < "),
    (" >= ", " > "),
    (" == ", " != "),
    (" != ", " == "),
    (" === ", " !== "),
    (" !== ", " === "),
    (" && ", " || "),
    (" and ", " or "),
    (" or ", " and "),
    (" < ", " <= "),
    (" > ", " >= "),
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " + "),
    (" / ", " * "),
    (" // ", " * "),
    (" % ", " + "),
];

/// A text with one operator changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// From 1.
    pub line: usize,
    pub from: &'static str,
    pub to: &'static str,
    pub text: String,
}

/// All texts with one operator changed. Comments and literals are not changed.
pub fn mutants(path: &str, source: &str) -> Vec<Mutant> {
    let path = Path::new(path);
    let masked =
        Language::of_path(path).and_then(|language| Some(language.parse(path, source)?.masked()));
    let Some(masked) = masked.filter(|masked| masked.len() == source.len()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (from, to) in REPLACEMENTS {
        for (at, _) in masked.match_indices(from) {
            let line = source[..at].matches('\n').count() + 1;
            let text = format!("{}{to}{}", &source[..at], &source[at + from.len()..]);
            found.push(Mutant {
                line,
                from: from.trim(),
                to: to.trim(),
                text,
            });
        }
    }
    found.sort_by(|a, b| (a.line, a.from).cmp(&(b.line, b.from)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_change_one_operator_outside_literals() {
        let source =
            "def f(a, b):\n    # a + b\n    if a <= b and \" + \" in a:\n        return a + b\n";
        let all: Vec<_> = mutants("f.py", source)
            .into_iter()
            .map(|m| (m.line, m.from, m.to))
            .collect();
        assert_eq!(all, [(3, "<=", "<"), (3, "and", "or"), (4, "+", "-")]);
        assert!(mutants("f.py", source)[0].text.contains("if a < b and"));
        assert!(mutants("f.txt", "a + b").is_empty());
    }

    #[test]
    fn most_built_in_references_have_mutants() {
        let tasks = super::super::task_set::TaskSet::own()
            .and_then(|set| set.tasks())
            .expect("our own tasks");
        let with = tasks.iter().filter(|task| {
            task.reference
                .iter()
                .any(|(path, text)| !mutants(path, text).is_empty())
        });
        assert!(with.count() >= 36, "too few tasks can be mutated");
    }
}
