//! Where does a long file speak of something? The passages that share its rarer words.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::source::words;

/// Lines of one passage: a test, and a little of what is around it.
const LENGTH: usize = 24;
/// Further passages repeat the first.
const MOST: usize = 3;

/// Passages from the most telling on. Each further one says what those before it do not.
pub(super) fn speaking_of(text: &str, task: &str) -> Vec<Range<usize>> {
    let lines: Vec<&str> = text.lines().collect();
    let asked: HashSet<String> = words(task)
        .filter(|w| w.len() > 2)
        .map(str::to_lowercase)
        .collect();
    let known: Vec<HashSet<String>> = lines
        .iter()
        .map(|line| parts(line).filter(|part| asked.contains(part)).collect())
        .collect();
    let mut lines_with: HashMap<&str, usize> = HashMap::new();
    for word in known.iter().flatten() {
        *lines_with.entry(word).or_default() += 1;
    }
    let rarity =
        |word: &str| (lines.len() as f64 / lines_with.get(word).copied().unwrap_or(1) as f64).ln();
    let mut told: HashSet<&str> = HashSet::new();
    let mut found: Vec<Range<usize>> = Vec::new();
    while found.len() < MOST {
        let value = |start: usize| {
            let inside = &known[start..(start + LENGTH).min(known.len())];
            let fresh: HashSet<&str> = inside
                .iter()
                .flatten()
                .map(String::as_str)
                .filter(|w| !told.contains(w))
                .collect();
            fresh.into_iter().map(rarity).sum::<f64>()
        };
        let starts = (0..lines.len()).step_by(LENGTH / 4);
        let best = starts
            .map(|start| (start, value(start)))
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let Some((start, value)) = best.filter(|(_, value)| *value > 0.0) else {
            break;
        };
        let end = (start + LENGTH).min(lines.len());
        let fresh: Vec<&str> = known[start..end]
            .iter()
            .flatten()
            .map(String::as_str)
            .collect();
        told.extend(fresh);
        if found.is_empty() || value > 3.0 {
            found.push(start..end);
        } else {
            break;
        }
    }
    found
}

/// The names of a line, and what they are made of: `test_negative_size` speaks of a negative size.
fn parts(line: &str) -> impl Iterator<Item = String> + '_ {
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
    fn the_passage_that_shares_the_rare_words_is_found() {
        let mut text = String::from("import unittest\n");
        for name in ["taken", "padded", "chunked", "sliced", "windowed"] {
            text += &format!("class {name}Tests:\n    def test_{name}(self):\n");
            text += &"        self.assertEqual(1, 1)\n".repeat(60);
        }
        let at = text
            .lines()
            .position(|l| l.contains("test_chunked"))
            .expect("written above");
        let found = speaking_of(&text, "Raise a ValueError for negative n in chunked()");
        assert_eq!(found.len(), 1);
        assert!(found[0].contains(&at), "{found:?} without {at}");
    }

    #[test]
    fn a_file_that_does_not_speak_of_it_has_no_passage() {
        assert!(speaking_of("a\nb\n", "something else").is_empty());
        assert!(speaking_of("", "x").is_empty());
    }
}
