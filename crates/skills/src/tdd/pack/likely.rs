//! Which file will be changed? Every sign gives its files points: what the caller and the runner name, what the test
//! imports, the methods it calls, the file it is named after, words they share. Tests are never it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::find::{Finder, WantedName};
use super::rank::{humps, subject};
use super::said::OutputHints;
use super::source::{Source, is_word, words};
use super::tree::{Id, Tree};
use supervisor_languages::{Language, ProjectFiles as _, parent};

/// A method or a word that is defined in more files than this says nothing about one of them.
const FEW: usize = 3;
/// One function may be written in several clauses.
const CLAUSES: usize = 8;
/// Names that are looked up.
const MOST: usize = 80;
/// Definitions whose own words are followed, and lines of each that are read.
const FOLLOWED: usize = 16;
const FOLLOWED_LINES: usize = 120;

/// What is known before a choice is made.
pub(super) struct Signs<'s> {
    pub tree: &'s Tree,
    pub finder: &'s Finder<'s>,
    pub is_test: &'s dyn Fn(Id) -> bool,
    /// What the test takes from the project.
    pub wants: &'s [WantedName],
    pub given: &'s [Id],
    /// What the caller wrote.
    pub named: &'s str,
    pub said: &'s OutputHints,
    pub test_path: &'s str,
    pub test: Option<&'s Source>,
    /// What fails of the test, with the helpers it uses; empty if that is not known.
    pub red: &'s str,
    /// By shared words, the most alike first.
    pub ranked: &'s [(Id, f64)],
    /// What recent commits changed together with the test, the most often first.
    pub together: &'s [(PathBuf, f64)],
}

/// Files from the most likely on, and definitions that the signs point at.
pub(super) struct Likely {
    pub files: Vec<Id>,
    pub wants: Vec<WantedName>,
}

impl Signs<'_> {
    pub(super) fn weigh(&self) -> Likely {
        let mut points: HashMap<Id, f64> = HashMap::new();
        let mut give = |id: Id, more: f64, most: f64| {
            let known = points.entry(id).or_default();
            *known += more.min((most - *known).max(0.0));
        };
        for id in self.given {
            give(*id, 60.0, 60.0);
        }
        for id in self.files_named(self.named) {
            give(id, 40.0, 60.0);
        }
        let mut wants = Vec::new();
        let mut asked: HashSet<String> = HashSet::new();
        let is_red = |name: &str| words(self.red).any(|word| word == name);
        let called = self
            .test
            .map(|t| called_methods(t.masked()))
            .unwrap_or_default();
        let from_red = self.few_definitions(words(self.red), &mut asked);
        let from_caller = self.few_definitions(words(self.named), &mut asked);
        let from_called = self.few_definitions(
            called.into_iter().filter(|_| self.red.is_empty()),
            &mut asked,
        );
        let mut found = vec![
            (from_red.clone(), 6.0, 36.0),
            (from_caller, 8.0, 60.0),
            (from_called, 5.0, 30.0),
        ];
        // Each step further says less.
        let mut last = from_red;
        for each in [2.0, 1.0, 0.5] {
            last = self.followed(&last, &mut asked);
            found.push((last.clone(), each, 20.0));
        }
        for (found, each, most) in found {
            for (want, share) in found {
                if let WantedName::Defined { file, .. } = &want {
                    give(*file, each * share, most);
                }
                wants.push(want);
            }
        }
        for want in self.wants {
            match want {
                // What the rest of the file uses is not what fails.
                WantedName::Defined { file, name, .. } if !self.red.is_empty() && !is_red(name) => {
                    give(*file, 1.0, 6.0);
                }
                WantedName::Defined { file, .. } => give(*file, 5.0, 25.0),
                WantedName::Missing { home } => home
                    .iter()
                    .for_each(|id| give(*id, 8.0 / home.len() as f64, 30.0)),
            }
        }
        // A trace leads through the file that is wrong: the first mention says that it does, further ones how much.
        let mut traced: Vec<Id> = Vec::new();
        for (path, _) in self.said.places.iter().take(16) {
            for id in self.at_or_ending(path) {
                let first = if traced.contains(&id) { 0.0 } else { 10.0 };
                traced.push(id);
                give(id, first + 4.0, 35.0);
            }
        }
        // `take_while` in a failing test may be what `take_while.rs` is about.
        let told = humps(&format!("{}\n{}", self.red, self.named));
        for id in self.tree.ids() {
            let about = humps(subject(self.tree.path(id)));
            if about.iter().map(String::len).sum::<usize>() > 3
                && told.windows(about.len()).any(|w| w == about)
            {
                give(id, 6.0 * about.len() as f64 - 1.0, 60.0);
            }
        }
        // A test that takes nothing from the project by name runs the program.
        let is_taken = |want: &WantedName| match want {
            WantedName::Defined { file, .. } => !(self.is_test)(*file),
            WantedName::Missing { home } => !home.iter().all(|id| (self.is_test)(*id)),
        };
        if !self.wants.iter().any(is_taken) {
            self.tree
                .programs()
                .into_iter()
                .for_each(|id| give(id, 20.0, 60.0));
        }
        // `test/router/*` are tests of `router`.
        let folder = parent(self.test_path)
            .rsplit('/')
            .next()
            .filter(|name| name.len() > 3);
        for id in self
            .tree
            .ids()
            .filter(|id| folder == Some(subject(self.tree.path(*id))))
        {
            give(id, 10.0, 60.0);
        }
        let own = subject(self.test_path);
        for id in self
            .tree
            .ids()
            .filter(|id| !own.is_empty() && subject(self.tree.path(*id)) == own)
        {
            let beside = parent(self.tree.path(id)) == parent(self.test_path);
            give(id, if beside { 18.0 } else { 10.0 }, 60.0);
        }
        let best = self
            .ranked
            .iter()
            .map(|(_, score)| *score)
            .fold(0.0_f64, f64::max);
        for (id, score) in self.ranked.iter().filter(|_| best > 0.0).take(30) {
            give(*id, 6.0 * score / best, 60.0);
        }
        // What was changed with the test before is likely to be changed with it again.
        let known = self
            .together
            .iter()
            .filter_map(|(path, n)| Some((self.tree.at(path.to_str()?)?, *n)));
        let known: Vec<(Id, f64)> = known.filter(|(id, _)| !(self.is_test)(*id)).collect();
        let most = known.iter().map(|(_, n)| *n).fold(0.0_f64, f64::max);
        for (id, n) in known {
            give(id, 12.0 * n / most, 60.0);
        }
        let mut files: Vec<(Id, f64)> = points
            .into_iter()
            .filter(|(id, _)| !(self.is_test)(*id) && self.tree.path(*id) != self.test_path)
            .collect();
        files.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Likely {
            files: files.into_iter().map(|(id, _)| id).collect(),
            wants,
        }
    }

    /// Where these names are defined outside of tests, as long as that says something, and how much it says: a name that
    /// stands in three files says a third. What was asked before is not asked again.
    fn few_definitions<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        asked: &mut HashSet<String>,
    ) -> Vec<(WantedName, f64)> {
        let mut found = Vec::new();
        let mut left = MOST;
        for name in names.filter(|n| n.len() > 2) {
            if asked.contains(name) {
                continue;
            }
            if left == 0 {
                break;
            }
            left -= 1;
            asked.insert(name.to_owned());
            let all = self.finder.defined_anywhere(name, FEW * CLAUSES);
            let outside = |want: &WantedName| match want {
                WantedName::Defined { file, .. } => {
                    Some(*file).filter(|file| !(self.is_test)(*file))
                }
                WantedName::Missing { .. } => None,
            };
            let files: HashSet<Id> = all.iter().filter_map(outside).collect();
            if (1..=FEW).contains(&files.len()) {
                let share = |file: Id| {
                    let clauses = all
                        .iter()
                        .filter(|want| outside(want) == Some(file))
                        .count();
                    1.0 / (files.len() * clauses) as f64
                };
                found.extend(
                    all.iter()
                        .filter_map(|want| Some((want.clone(), share(outside(want)?)))),
                );
            }
        }
        found
    }

    /// What those definitions use themselves: the cause of a failure often lies a step further. What the same file
    /// defines is meant before what others do.
    fn followed(
        &self,
        from: &[(WantedName, f64)],
        asked: &mut HashSet<String>,
    ) -> Vec<(WantedName, f64)> {
        let mut found = Vec::new();
        for (want, _) in from.iter().take(FOLLOWED) {
            let WantedName::Defined { file, lines, .. } = want else {
                continue;
            };
            let Some(source) = self.tree.source(*file) else {
                continue;
            };
            let code = source
                .masked()
                .lines()
                .skip(lines.start)
                .take(lines.len().min(FOLLOWED_LINES));
            let code = code.collect::<Vec<&str>>().join("\n");
            let (here, elsewhere): (Vec<&str>, Vec<&str>) = words(&code)
                .filter(|word| word.len() > 2 && !asked.contains(*word))
                .partition(|word| source.items().iter().any(|item| item.name == *word));
            for name in here {
                if asked.insert(name.to_owned()) {
                    let own = self.finder.defined_in(*file, name);
                    let share = 1.0 / own.len().max(1) as f64;
                    found.extend(own.into_iter().map(|want| (want, share)));
                }
            }
            found.extend(self.few_definitions(elsewhere.into_iter(), asked));
        }
        found
    }

    /// Files of the project that a text names by their paths.
    fn files_named(&self, text: &str) -> Vec<Id> {
        let path = |word: &str| {
            let word = word
                .trim_matches(|c: char| !c.is_alphanumeric() && c != '_')
                .split(':')
                .next()
                .unwrap_or_default()
                .to_owned();
            Language::of_path(Path::new(&word)).map(|_| word)
        };
        text.split(|c: char| c.is_whitespace() || "()[]'\"`,;".contains(c))
            .filter_map(path)
            .flat_map(|word| self.at_or_ending(&word))
            .collect()
    }

    fn at_or_ending(&self, path: &str) -> Vec<Id> {
        match self.tree.at(path) {
            Some(id) => vec![id],
            None => {
                let below = |id: &Id| {
                    path.strip_suffix(self.tree.path(*id))
                        .is_some_and(|b| b.ends_with('/'))
                };
                let mut found = self.tree.ending(path);
                found.extend(self.tree.ids().filter(below));
                found.truncate(FEW);
                found
            }
        }
    }
}

/// `.status(…)`: methods that a test calls on objects it has.
fn called_methods(masked: &str) -> Vec<&str> {
    let bytes = masked.as_bytes();
    let mut found = Vec::new();
    for (at, _) in masked.match_indices('.') {
        let rest = &masked[at + 1..];
        let end = rest
            .bytes()
            .position(|b| !is_word(b) && b != b'!' && b != b'?')
            .unwrap_or(rest.len());
        let is_value = at
            .checked_sub(1)
            .is_some_and(|i| is_word(bytes[i]) || matches!(bytes[i], b')' | b']'));
        let is_name = rest.starts_with(|c: char| !c.is_ascii_digit());
        if end > 0 && is_value && is_name && !found.contains(&&rest[..end]) {
            found.push(&rest[..end]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::called_methods;

    #[test]
    fn methods_are_told_from_other_words() {
        let found = called_methods(
            "request(app).get('/').expect(200); res.status(1.5); [a].map(x) == y.empty?",
        );
        assert_eq!(found, ["get", "expect", "status", "map", "empty?"]);
    }
}
