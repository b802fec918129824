//! Finds the passages of a long file that are about a task, by the rare words they share with it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::source::words;

/// Lines of one passage: one test and some context.
const PASSAGE_LINES: usize = 24;
/// Further passages add little.
const MAX_PASSAGES: usize = 3;

/// The most relevant passages first. Words found in one passage do not count for the next.
pub(super) fn find_passages(text: &str, task: &str) -> Vec<Range<usize>> {
    let lines: Vec<&str> = text.lines().collect();
    let task_words: HashSet<String> = words(task)
        .filter(|w| w.len() > 2)
        .map(str::to_lowercase)
        .collect();
    let words_by_line: Vec<HashSet<String>> = lines
        .iter()
        .map(|line| {
            words_and_parts(line)
                .filter(|part| task_words.contains(part))
                .collect()
        })
        .collect();
    let mut lines_with: HashMap<&str, usize> = HashMap::new();
    for word in words_by_line.iter().flatten() {
        *lines_with.entry(word).or_default() += 1;
    }
    let rarity =
        |word: &str| (lines.len() as f64 / lines_with.get(word).copied().unwrap_or(1) as f64).ln();
    let mut covered: HashSet<&str> = HashSet::new();
    let mut found: Vec<Range<usize>> = Vec::new();
    while found.len() < MAX_PASSAGES {
        let value = |start: usize| {
            let window = &words_by_line[start..(start + PASSAGE_LINES).min(words_by_line.len())];
            let new_words: HashSet<&str> = window
                .iter()
                .flatten()
                .map(String::as_str)
                .filter(|w| !covered.contains(w))
                .collect();
            new_words.into_iter().map(rarity).sum::<f64>()
        };
        let starts = (0..lines.len()).step_by(PASSAGE_LINES / 4);
        let best = starts
            .map(|start| (start, value(start)))
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let Some((start, value)) = best.filter(|(_, value)| *value > 0.0) else {
            break;
        };
        let end = (start + PASSAGE_LINES).min(lines.len());
        let new_words: Vec<&str> = words_by_line[start..end]
            .iter()
            .flatten()
            .map(String::as_str)
            .collect();
        covered.extend(new_words);
        if found.is_empty() || value > 3.0 {
            found.push(start..end);
        } else {
            break;
        }
    }
    found
}

/// The words of a line and their parts: `test_negative_size` also yields `negative` and `size`.
fn words_and_parts(line: &str) -> impl Iterator<Item = String> + '_ {
    words(line).flat_map(|word| {
        let whole = std::iter::once(word.to_lowercase());
        whole.chain(
            word.split('_')
                .filter(|part| part.len() < word.len())
                .map(str::to_lowercase),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
