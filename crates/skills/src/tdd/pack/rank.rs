//! Which other files are like the test? Those that share its rarer names.

use std::collections::HashMap;

use super::source::words;
use super::tree::{Id, Tree};
use supervisor_languages::{ProjectFiles as _, parent};

/// Past this many files the far ones are not read.
const MOST: usize = 3_000;

/// Files from the most to the least alike, with what they share of these texts, each with what one of its words weighs.
pub(super) fn by_likeness(tree: &Tree, test_path: &str, texts: &[(&str, f64)]) -> Vec<(Id, f64)> {
    let mut query: HashMap<&str, f64> = HashMap::new();
    for (text, weight) in texts {
        for word in words(text).filter(|w| w.len() > 2) {
            let known = query.entry(word).or_default();
            *known = known.max(*weight);
        }
    }
    let mut ids: Vec<Id> = tree.ids().collect();
    ids.sort_by_key(|id| (distance(test_path, tree.path(*id)), *id));
    ids.truncate(MOST);
    let mut counts: Vec<(Id, usize, HashMap<&str, usize>)> = Vec::with_capacity(ids.len());
    let mut files_with: HashMap<&str, usize> = HashMap::new();
    for id in ids {
        let Some(source) = tree.source(id) else {
            continue;
        };
        let mut found: HashMap<&str, usize> = HashMap::new();
        let mut length = 0;
        for word in words(&source.text) {
            length += 1;
            if let Some((word, _)) = query.get_key_value(word) {
                *found.entry(*word).or_default() += 1;
            }
        }
        for word in found.keys() {
            *files_with.entry(*word).or_default() += 1;
        }
        counts.push((id, length, found));
    }
    let total = counts.len() as f64;
    let mean = counts.iter().map(|(_, l, _)| *l as f64).sum::<f64>() / total.max(1.0);
    let mut scored: Vec<(Id, f64)> = counts
        .iter()
        .map(|(id, length, found)| {
            let score: f64 = found
                .iter()
                .map(|(word, n)| {
                    let with = files_with.get(word).copied().unwrap_or(0) as f64;
                    let rare = ((total - with + 0.5) / (with + 0.5) + 1.0).ln();
                    let n = *n as f64;
                    let often =
                        n * 2.2 / (n + 1.2 * (0.25 + 0.75 * *length as f64 / mean.max(1.0)));
                    query.get(word).copied().unwrap_or(0.0) * rare * often
                })
                .sum();
            (*id, score + kinship(test_path, tree.path(*id)))
        })
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scored
}

/// `test_cart.py` is about `cart.py`; a file beside the test is its neighbour.
fn kinship(test: &str, path: &str) -> f64 {
    let same_name = subject(test) == subject(path) && !subject(path).is_empty();
    f64::from(u8::from(same_name)) * 12.0 + f64::from(u8::from(parent(test) == parent(path))) * 2.0
}

/// What a file is about, by its name alone: `res.send` of `res.send.test.js`, `static` of `spec_static.rb`.
pub(super) fn subject(path: &str) -> &str {
    const MARKS: [&str; 3] = ["tests", "test", "spec"];
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_joint = |c: char| "._-".contains(c);
    let before = MARKS
        .iter()
        .find_map(|mark| stem.strip_suffix(mark)?.strip_suffix(is_joint));
    let after = || {
        MARKS
            .iter()
            .find_map(|mark| stem.strip_prefix(mark)?.strip_prefix(is_joint))
    };
    // `_cart.py` is what `cart` is made of.
    before
        .or_else(after)
        .unwrap_or(stem)
        .trim_start_matches('_')
}

/// Does a text speak of what a file is about? `IntSlice` and "int slice" are about `int_slice`, "constant" not about `stan`.
pub(super) fn names_subject(text: &str, subject: &str) -> bool {
    let subject = humps(subject);
    let letters: usize = subject.iter().map(String::len).sum();
    letters > 3
        && humps(text)
            .windows(subject.len().max(1))
            .any(|words| words == subject.as_slice())
}

/// The words of a text, each in small letters: `withProtocol`, `with_protocol` and "with protocol" have the same.
pub(super) fn humps(text: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![String::new()];
    let mut last = ' ';
    for c in text.chars() {
        let begins = !c.is_alphanumeric() || (c.is_uppercase() && last.is_lowercase());
        if begins && found.last().is_some_and(|word| !word.is_empty()) {
            found.push(String::new());
        }
        if let Some(word) = found.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        last = c;
    }
    found.retain(|word| !word.is_empty());
    found
}

fn distance(a: &str, b: &str) -> usize {
    let shared = parent(a)
        .split('/')
        .zip(parent(b).split('/'))
        .take_while(|(x, y)| x == y)
        .count();
    b.matches('/').count() + a.matches('/').count()
        - (2 * shared).min(a.matches('/').count() + b.matches('/').count())
}

#[cfg(test)]
mod tests {
    use super::{names_subject, subject};

    #[test]
    fn a_file_is_about_what_its_name_says_without_the_marks_of_a_test() {
        let all = [
            ("tests/test_cart.py", "cart"),
            ("lib/cart_test.rb", "cart"),
            ("test/spec_static.rb", "static"),
            ("test/res.send.js", "res.send"),
            ("src/parse.test.ts", "parse"),
            ("spec/unit/chain_spec.rb", "chain"),
            ("contest.py", "contest"),
            ("tests/tests.rs", "tests"),
            ("src/shop/_cart.py", "cart"),
        ];
        for (path, about) in all {
            assert_eq!(subject(path), about, "{path}");
        }
    }

    #[test]
    fn a_subject_is_named_by_whole_words() {
        assert!(names_subject("fix(res.send): no length", "res.send"));
        assert!(names_subject("allow hex input in UintSlice", "uint_slice"));
        assert!(names_subject("an int slice", "int_slice"));
        assert!(!names_subject("a constant", "stan") && !names_subject("it makes", "make"));
        assert!(!names_subject("", "") && !names_subject("a", "a"));
    }
}
