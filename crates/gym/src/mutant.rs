//! Answers that are nearly right: a reference with one operator changed. What the visible tests let pass of these is what
//! they would let pass of a careless model; the hidden tests catch most of the rest.

use std::path::Path;

use supervisor_languages::Language;

/// What is written instead of what, longest first. Operators of one character need their blanks: without them they are
/// generics, arrows and pipes.
const CHANGES: &[(&str, &str)] = &[
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

/// Every text that is one operator away. Comments and literals are left alone.
pub fn mutants(path: &str, source: &str) -> Vec<Mutant> {
    let path = Path::new(path);
    let masked =
        Language::of_path(path).and_then(|language| Some(language.parse(path, source)?.masked()));
    let Some(masked) = masked.filter(|masked| masked.len() == source.len()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (from, to) in CHANGES {
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
    fn operators_change_one_at_a_time_and_text_stays() {
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
    fn every_reference_of_ours_has_a_mutant_or_none_by_nature() {
        let tasks = super::super::own_tasks::TaskSet::own()
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
