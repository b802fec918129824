//! Ranks files by similarity to the test, using the rare names they share (BM25).

use std::collections::HashMap;

use super::source::words;
use super::tree::{FileId, SourceTree};
use supervisor_languages::{ProjectFiles as _, parent};

/// Maximum number of files read, the nearest first.
const MAX_FILES: usize = 3_000;

/// Files with their score, the most similar first. Each text comes with the weight of its words.
pub(super) fn by_similarity(
    tree: &SourceTree,
    test_path: &str,
    texts: &[(&str, f64)],
) -> Vec<(FileId, f64)> {
    let mut query: HashMap<&str, f64> = HashMap::new();
    for (text, weight) in texts {
        for word in words(text).filter(|w| w.len() > 2) {
            let known = query.entry(word).or_default();
            *known = known.max(*weight);
        }
    }
    let mut ids: Vec<FileId> = tree.ids().collect();
    ids.sort_by_key(|id| (distance(test_path, tree.path(*id)), *id));
    ids.truncate(MAX_FILES);
    let mut counts: Vec<(FileId, usize, HashMap<&str, usize>)> = Vec::with_capacity(ids.len());
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
    let mut scored: Vec<(FileId, f64)> = counts
        .iter()
        .map(|(id, length, found)| {
            let score: f64 = found
                .iter()
                .map(|(word, n)| {
                    let files_with_word = files_with.get(word).copied().unwrap_or(0) as f64;
                    let rarity =
                        ((total - files_with_word + 0.5) / (files_with_word + 0.5) + 1.0).ln();
                    let n = *n as f64;
                    let frequency =
                        n * 2.2 / (n + 1.2 * (0.25 + 0.75 * *length as f64 / mean.max(1.0)));
                    query.get(word).copied().unwrap_or(0.0) * rarity * frequency
                })
                .sum();
            (*id, score + name_similarity(test_path, tree.path(*id)))
        })
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scored
}

/// Bonus for a file with the same subject as the test, and for one in the same directory.
fn name_similarity(test: &str, path: &str) -> f64 {
    let same_name = subject(test) == subject(path) && !subject(path).is_empty();
    f64::from(u8::from(same_name)) * 12.0 + f64::from(u8::from(parent(test) == parent(path))) * 2.0
}

/// What a file is about according to its name: `res.send` for `res.send.test.js`, `static` for
/// `spec_static.rb`.
pub(super) fn subject(path: &str) -> &str {
    const TEST_MARKERS: [&str; 3] = ["tests", "test", "spec"];
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_separator = |c: char| "._-".contains(c);
    let before = TEST_MARKERS
        .iter()
        .find_map(|marker| stem.strip_suffix(marker)?.strip_suffix(is_separator));
    let after = || {
        TEST_MARKERS
            .iter()
            .find_map(|marker| stem.strip_prefix(marker)?.strip_prefix(is_separator))
    };
    // `_cart.py` is a private part of `cart`.
    before
        .or_else(after)
        .unwrap_or(stem)
        .trim_start_matches('_')
}

/// Whether a text mentions a file's subject by whole words: `IntSlice` and "int slice" match
/// `int_slice`, "constant" does not match `stan`.
pub(super) fn mentions_subject(text: &str, subject: &str) -> bool {
    let subject = split_words(subject);
    let letter_count: usize = subject.iter().map(String::len).sum();
    letter_count > 3
        && split_words(text)
            .windows(subject.len().max(1))
            .any(|words| words == subject.as_slice())
}

/// Splits a text into lower-case words: `withProtocol`, `with_protocol` and "with protocol" give
/// the same result.
pub(super) fn split_words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![String::new()];
    let mut last = ' ';
    for c in text.chars() {
        let starts_word = !c.is_alphanumeric() || (c.is_uppercase() && last.is_lowercase());
        if starts_word && found.last().is_some_and(|word| !word.is_empty()) {
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
    use super::{mentions_subject, subject};

    #[test]
    fn subject_is_file_name_without_test_markers() {
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
        for (path, expected) in all {
            assert_eq!(subject(path), expected, "{path}");
        }
    }

    #[test]
    fn subject_matches_whole_words_only() {
        assert!(mentions_subject("fix(res.send): no length", "res.send"));
        assert!(mentions_subject(
            "allow hex input in UintSlice",
            "uint_slice"
        ));
        assert!(mentions_subject("an int slice", "int_slice"));
        assert!(!mentions_subject("a constant", "stan") && !mentions_subject("it makes", "make"));
        assert!(!mentions_subject("", "") && !mentions_subject("a", "a"));
    }
}
