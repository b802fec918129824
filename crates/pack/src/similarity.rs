//! Compares files with a task by the words they share: ranks files, and finds the relevant passages
//! of a long file.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::project::{FileId, Project};

/// Maximum number of files compared, the nearest to the test first.
const MAX_FILES: usize = 3_000;
/// Lines of one passage: one test and some context.
const PASSAGE_LINES: usize = 24;
/// Further passages add little.
const MAX_PASSAGES: usize = 3;
/// Value that a second or third passage must have.
const MIN_FURTHER_VALUE: f64 = 3.0;

/// Files with their score (BM25), the most similar first. Each text comes with the weight of its
/// words.
pub(super) fn rank_files(
    project: &Project,
    test_path: &str,
    texts: &[(&str, f64)],
) -> Vec<(FileId, f64)> {
    let mut weights: HashMap<&str, f64> = HashMap::new();
    for (text, weight) in texts {
        for word in words(text).filter(|w| w.len() > 2) {
            let known = weights.entry(word).or_default();
            *known = known.max(*weight);
        }
    }
    let ids = project.nearest(test_path, MAX_FILES);
    let mut files: Vec<(FileId, f64, BTreeMap<&str, f64>)> = Vec::new();
    let mut files_with: HashMap<&str, f64> = HashMap::new();
    for id in ids {
        let source = project.source(id);
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for word in words(&source.text).filter(|w| weights.contains_key(w)) {
            *counts.entry(word).or_default() += 1.0;
        }
        for word in counts.keys() {
            *files_with.entry(word).or_default() += 1.0;
        }
        files.push((id, source.text.len() as f64, counts));
    }
    let total = files.len() as f64;
    let mean_size = files.iter().map(|(_, size, _)| size).sum::<f64>() / total.max(1.0);
    let score = |(id, size, counts): &(FileId, f64, BTreeMap<&str, f64>)| {
        let damping = 0.3 + 0.9 * size / mean_size.max(1.0);
        let of_word = |(word, count): (&&str, &f64)| {
            let rarity = ((total + 1.0) / (files_with[word] + 0.5)).ln();
            weights[word] * rarity * count * 2.2 / (count + damping)
        };
        (*id, counts.iter().map(of_word).sum::<f64>())
    };
    let mut scored: Vec<(FileId, f64)> = files.iter().map(score).collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scored
}

/// Passages that share rare words with a task, the most relevant first. Words found in one passage
/// do not count for the next.
pub(super) fn find_passages(text: &str, task: &str) -> Vec<Range<usize>> {
    let task: HashSet<String> = words(task)
        .filter(|w| w.len() > 2)
        .map(str::to_lowercase)
        .collect();
    let words_in = |line: &str| -> BTreeSet<String> {
        // `test_negative_size` also counts as `negative` and `size`.
        let parts = words(line).flat_map(|word| word.split('_').chain([word]));
        parts
            .map(str::to_lowercase)
            .filter(|part| task.contains(part))
            .collect()
    };
    let mut lines: Vec<BTreeSet<String>> = text.lines().map(words_in).collect();
    let mut lines_with: HashMap<String, f64> = HashMap::new();
    for word in lines.iter().flatten() {
        *lines_with.entry(word.clone()).or_default() += 1.0;
    }
    let total = lines.len();
    let mut found: Vec<Range<usize>> = Vec::new();
    while found.len() < MAX_PASSAGES {
        let passage = |start: usize| start..(start + PASSAGE_LINES).min(total);
        let value = |start: usize| {
            let words: BTreeSet<&String> = lines[passage(start)].iter().flatten().collect();
            words
                .into_iter()
                .map(|w| (total as f64 / lines_with[w]).ln())
                .sum::<f64>()
        };
        let starts = (0..total).step_by(PASSAGE_LINES / 4);
        let best = starts
            .map(|start| (value(start), Reverse(start)))
            .max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let min_value = if found.is_empty() {
            0.0
        } else {
            MIN_FURTHER_VALUE
        };
        let Some((_, Reverse(start))) = best.filter(|(value, _)| *value > min_value) else {
            break;
        };
        let covered: HashSet<String> = lines[passage(start)].iter().flatten().cloned().collect();
        lines
            .iter_mut()
            .for_each(|line| line.retain(|word| !covered.contains(word)));
        found.push(start..(start + PASSAGE_LINES).min(total));
    }
    found
}

/// What a file is about according to its name: `res.send` for `res.send.test.js`, `static` for
/// `spec_static.rb`.
pub(super) fn subject(path: &str) -> &str {
    const TEST_MARKERS: [&str; 3] = ["tests", "test", "spec"];
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_separator = |c: char| "._-".contains(c);
    let without_marker = TEST_MARKERS.iter().find_map(|marker| {
        let before = stem
            .strip_suffix(marker)
            .and_then(|s| s.strip_suffix(is_separator));
        before.or_else(|| stem.strip_prefix(marker)?.strip_prefix(is_separator))
    });
    // `_cart.py` is a private part of `cart`.
    without_marker.unwrap_or(stem).trim_start_matches('_')
}

/// How many words of a text, as given by [`split_words`], name this subject: `IntSlice` and "int
/// slice" match `int_slice`, "constant" does not match `stan`. 0 if it is not mentioned.
pub(super) fn mentioned_words(text: &[String], subject: &str) -> usize {
    let subject = split_words(subject);
    let is_specific = subject.iter().map(String::len).sum::<usize>() > 3;
    let is_mentioned = is_specific && text.windows(subject.len()).any(|words| words == subject);
    if is_mentioned { subject.len() } else { 0 }
}

/// Splits a text into lower-case words: `withProtocol`, `with_protocol` and "with protocol" give
/// the same result.
pub(super) fn split_words(text: &str) -> Vec<String> {
    let mut spaced = String::new();
    for c in text.chars() {
        if c.is_uppercase() && spaced.ends_with(char::is_lowercase) {
            spaced.push(' ');
        }
        spaced.push(c);
    }
    let spaced = spaced.to_lowercase();
    let parts = spaced.split(|c: char| !c.is_alphanumeric());
    parts
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

/// The words of a text that could be identifiers.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_word(c))
        .filter(|w| w.len() > 1 && !w.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mentions_subject =
            |text: &str, subject: &str| mentioned_words(&split_words(text), subject) > 0;
        assert!(mentions_subject("fix(res.send): no length", "res.send"));
        assert!(mentions_subject(
            "allow hex input in UintSlice",
            "uint_slice"
        ));
        assert!(mentions_subject("an int slice", "int_slice"));
        assert!(!mentions_subject("a constant", "stan") && !mentions_subject("it makes", "make"));
        assert!(!mentions_subject("", "") && !mentions_subject("a", "a"));
    }

    #[test]
    fn passage_with_rare_words_is_found() {
        let mut text = String::from("import unittest\n");
        for name in ["taken", "padded", "chunked", "sliced", "windowed"] {
            text += &format!("class {name}Tests:\n    def test_{name}(self):\n");
            text += &"        self.assertEqual(1, 1)\n".repeat(60);
        }
        let at = text
            .lines()
            .position(|l| l.contains("test_chunked"))
            .expect("written above");
        let found = find_passages(&text, "Raise a ValueError for negative n in chunked()");
        assert_eq!(found.len(), 1);
        assert!(found[0].contains(&at), "{found:?} without {at}");
    }

    #[test]
    fn unrelated_file_has_no_passage() {
        assert!(find_passages("a\nb\n", "something else").is_empty());
        assert!(find_passages("", "x").is_empty());
    }
}
