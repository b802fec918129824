//! Which other files are like the test? Those that share its rarer names.

use std::collections::HashMap;

use super::lang::words;
use super::tree::{Id, Tree, parent};

/// Past this many files the far ones are not read.
const MOST: usize = 3_000;

/// Files from the most to the least alike, with what they share. `test` counts double, `said` is what the runner said.
pub(super) fn by_likeness(tree: &Tree, test_path: &str, test: &str, said: &str) -> Vec<(Id, f64)> {
    let mut query: HashMap<&str, f64> = HashMap::new();
    for (text, weight) in [(test, 2.0), (said, 1.0)] {
        for word in words(text).filter(|w| w.len() > 2) {
            let known = query.entry(word).or_default();
            *known = known.max(weight);
        }
    }
    let mut ids: Vec<Id> = tree.ids().collect();
    ids.sort_by_key(|id| (distance(test_path, tree.path(*id)), *id));
    ids.truncate(MOST);
    let mut counts: Vec<(Id, usize, HashMap<&str, usize>)> = Vec::with_capacity(ids.len());
    let mut files_with: HashMap<&str, usize> = HashMap::new();
    for id in ids {
        let Some(source) = tree.source(id) else { continue };
        let mut found: HashMap<&str, usize> = HashMap::new();
        let mut length = 0;
        for word in words(&source.masked) {
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
                    let often = n * 2.2 / (n + 1.2 * (0.25 + 0.75 * *length as f64 / mean.max(1.0)));
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

/// What a file is about, by its name alone.
fn subject(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    let stem = stem.strip_prefix("test_").unwrap_or(stem);
    ["_test", "_tests", "_spec", "-test", "-spec"].iter().find_map(|end| stem.strip_suffix(end)).unwrap_or(stem)
}

fn distance(a: &str, b: &str) -> usize {
    let shared = parent(a).split('/').zip(parent(b).split('/')).take_while(|(x, y)| x == y).count();
    b.matches('/').count() + a.matches('/').count() - (2 * shared).min(a.matches('/').count() + b.matches('/').count())
}
