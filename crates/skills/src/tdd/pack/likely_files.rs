//! Estimates which file will be changed. Each signal scores files: paths and names in the caller's
//! text and in the output, the test's imports, methods it calls, its file name, and shared words.
//! Test files are excluded.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::find::{Finder, WantedName};
use super::rank::{split_words, subject};
use super::runner_output_refs::OutputHints;
use super::source::{SourceFile, is_word, words};
use super::tree::{FileId, SourceTree};
use supervisor_languages::{Language, ProjectFiles as _, parent};

/// A name defined in more files than this is too ambiguous to score.
const MAX_FILES_PER_NAME: usize = 3;
/// A function may be defined in several clauses, as in Elixir.
const MAX_CLAUSES: usize = 8;
/// Maximum number of names looked up.
const MAX_NAMES: usize = 80;
/// Number of definitions whose own names are followed, and lines read of each.
const MAX_FOLLOWED: usize = 16;
const MAX_FOLLOWED_LINES: usize = 120;

/// Input for scoring.
pub(super) struct RelevanceSignals<'s> {
    pub tree: &'s SourceTree,
    pub finder: &'s Finder<'s>,
    pub is_test: &'s dyn Fn(FileId) -> bool,
    /// Names that the test uses from the project.
    pub wants: &'s [WantedName],
    pub extra_files: &'s [FileId],
    /// Text written by the caller.
    pub caller_text: &'s str,
    pub hints: &'s OutputHints,
    pub test_path: &'s str,
    pub test: Option<&'s SourceFile>,
    /// The failing part of the test with its helpers; empty if unknown.
    pub failing_text: &'s str,
    /// Files by word similarity, the most similar first.
    pub ranked: &'s [(FileId, f64)],
    /// Files that recent commits changed together with the test, the most frequent first.
    pub co_changed: &'s [(PathBuf, f64)],
}

/// Files by likelihood, and the definitions that the signals refer to.
pub(super) struct LikelyFiles {
    pub files: Vec<FileId>,
    pub wants: Vec<WantedName>,
}

impl RelevanceSignals<'_> {
    pub(super) fn score(&self) -> LikelyFiles {
        let mut points: HashMap<FileId, f64> = HashMap::new();
        let mut add_points = |id: FileId, amount: f64, max: f64| {
            let known = points.entry(id).or_default();
            *known += amount.min((max - *known).max(0.0));
        };
        for id in self.extra_files {
            add_points(*id, 60.0, 60.0);
        }
        for id in self.files_mentioned(self.caller_text) {
            add_points(id, 40.0, 60.0);
        }
        let mut wants = Vec::new();
        let mut looked_up: HashSet<String> = HashSet::new();
        let is_failing = |name: &str| words(self.failing_text).any(|word| word == name);
        let called = self
            .test
            .map(|t| called_methods(t.masked()))
            .unwrap_or_default();
        let from_failing = self.unambiguous_definitions(words(self.failing_text), &mut looked_up);
        let from_caller = self.unambiguous_definitions(words(self.caller_text), &mut looked_up);
        let from_called = self.unambiguous_definitions(
            called.into_iter().filter(|_| self.failing_text.is_empty()),
            &mut looked_up,
        );
        let mut found = vec![
            (from_failing.clone(), 6.0, 36.0),
            (from_caller, 8.0, 60.0),
            (from_called, 5.0, 30.0),
        ];
        // Each further step counts less.
        let mut last = from_failing;
        for weight in [2.0, 1.0, 0.5] {
            last = self.definitions_used_by(&last, &mut looked_up);
            found.push((last.clone(), weight, 20.0));
        }
        for (found, weight, max) in found {
            for (want, share) in found {
                if let WantedName::Defined { file, .. } = &want {
                    add_points(*file, weight * share, max);
                }
                wants.push(want);
            }
        }
        for want in self.wants {
            match want {
                // Names used only by other tests of the file.
                WantedName::Defined { file, name, .. }
                    if !self.failing_text.is_empty() && !is_failing(name) =>
                {
                    add_points(*file, 1.0, 6.0);
                }
                WantedName::Defined { file, .. } => add_points(*file, 5.0, 25.0),
                WantedName::Missing { candidates } => candidates
                    .iter()
                    .for_each(|id| add_points(*id, 8.0 / candidates.len() as f64, 30.0)),
            }
        }
        // A stack trace usually passes through the faulty file. The first mention counts most.
        let mut traced: Vec<FileId> = Vec::new();
        for (path, _) in self.hints.locations.iter().take(16) {
            for id in self.files_matching(path) {
                let first = if traced.contains(&id) { 0.0 } else { 10.0 };
                traced.push(id);
                add_points(id, first + 4.0, 35.0);
            }
        }
        // `take_while` in a failing test may refer to `take_while.rs`.
        let mentioned_words = split_words(&format!("{}\n{}", self.failing_text, self.caller_text));
        for id in self.tree.ids() {
            let subject_words = split_words(subject(self.tree.path(id)));
            if subject_words.iter().map(String::len).sum::<usize>() > 3
                && mentioned_words
                    .windows(subject_words.len())
                    .any(|w| w == subject_words)
            {
                add_points(id, 6.0 * subject_words.len() as f64 - 1.0, 60.0);
            }
        }
        // A test that uses nothing of the project by name probably runs its program.
        let uses_project_file = |want: &WantedName| match want {
            WantedName::Defined { file, .. } => !(self.is_test)(*file),
            WantedName::Missing { candidates } => !candidates.iter().all(|id| (self.is_test)(*id)),
        };
        if !self.wants.iter().any(uses_project_file) {
            self.tree
                .programs()
                .into_iter()
                .for_each(|id| add_points(id, 20.0, 60.0));
        }
        // Files in `test/router/` test `router`.
        let folder = parent(self.test_path)
            .rsplit('/')
            .next()
            .filter(|name| name.len() > 3);
        for id in self
            .tree
            .ids()
            .filter(|id| folder == Some(subject(self.tree.path(*id))))
        {
            add_points(id, 10.0, 60.0);
        }
        let test_subject = subject(self.test_path);
        for id in self
            .tree
            .ids()
            .filter(|id| !test_subject.is_empty() && subject(self.tree.path(*id)) == test_subject)
        {
            let beside = parent(self.tree.path(id)) == parent(self.test_path);
            add_points(id, if beside { 18.0 } else { 10.0 }, 60.0);
        }
        let best = self
            .ranked
            .iter()
            .map(|(_, score)| *score)
            .fold(0.0_f64, f64::max);
        for (id, score) in self.ranked.iter().filter(|_| best > 0.0).take(30) {
            add_points(*id, 6.0 * score / best, 60.0);
        }
        // Files changed together with the test before are likely to change with it again.
        let known = self
            .co_changed
            .iter()
            .filter_map(|(path, n)| Some((self.tree.at(path.to_str()?)?, *n)));
        let known: Vec<(FileId, f64)> = known.filter(|(id, _)| !(self.is_test)(*id)).collect();
        let max = known.iter().map(|(_, n)| *n).fold(0.0_f64, f64::max);
        for (id, n) in known {
            add_points(id, 12.0 * n / max, 60.0);
        }
        let mut files: Vec<(FileId, f64)> = points
            .into_iter()
            .filter(|(id, _)| !(self.is_test)(*id) && self.tree.path(*id) != self.test_path)
            .collect();
        files.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        LikelyFiles {
            files: files.into_iter().map(|(id, _)| id).collect(),
            wants,
        }
    }

    /// Definitions of these names outside of tests, each with a weight: a name defined in three
    /// files counts a third. Skips ambiguous names and names in `looked_up`.
    fn unambiguous_definitions<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        looked_up: &mut HashSet<String>,
    ) -> Vec<(WantedName, f64)> {
        let mut found = Vec::new();
        let mut names_left = MAX_NAMES;
        for name in names.filter(|n| n.len() > 2) {
            if looked_up.contains(name) {
                continue;
            }
            if names_left == 0 {
                break;
            }
            names_left -= 1;
            looked_up.insert(name.to_owned());
            let all = self
                .finder
                .defined_anywhere(name, MAX_FILES_PER_NAME * MAX_CLAUSES);
            let non_test_file = |want: &WantedName| match want {
                WantedName::Defined { file, .. } => {
                    Some(*file).filter(|file| !(self.is_test)(*file))
                }
                WantedName::Missing { .. } => None,
            };
            let files: HashSet<FileId> = all.iter().filter_map(non_test_file).collect();
            if (1..=MAX_FILES_PER_NAME).contains(&files.len()) {
                let share = |file: FileId| {
                    let clauses = all
                        .iter()
                        .filter(|want| non_test_file(want) == Some(file))
                        .count();
                    1.0 / (files.len() * clauses) as f64
                };
                found.extend(
                    all.iter()
                        .filter_map(|want| Some((want.clone(), share(non_test_file(want)?)))),
                );
            }
        }
        found
    }

    /// Definitions that the given ones use, because the cause of a failure is often one call
    /// further. Definitions in the same file take precedence.
    fn definitions_used_by(
        &self,
        from: &[(WantedName, f64)],
        looked_up: &mut HashSet<String>,
    ) -> Vec<(WantedName, f64)> {
        let mut found = Vec::new();
        for (want, _) in from.iter().take(MAX_FOLLOWED) {
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
                .take(lines.len().min(MAX_FOLLOWED_LINES));
            let code = code.collect::<Vec<&str>>().join("\n");
            let (here, elsewhere): (Vec<&str>, Vec<&str>) = words(&code)
                .filter(|word| word.len() > 2 && !looked_up.contains(*word))
                .partition(|word| source.items().iter().any(|item| item.name == *word));
            for name in here {
                if looked_up.insert(name.to_owned()) {
                    let definitions = self.finder.defined_in(*file, name);
                    let share = 1.0 / definitions.len().max(1) as f64;
                    found.extend(definitions.into_iter().map(|want| (want, share)));
                }
            }
            found.extend(self.unambiguous_definitions(elsewhere.into_iter(), looked_up));
        }
        found
    }

    /// Project files whose path the text contains.
    fn files_mentioned(&self, text: &str) -> Vec<FileId> {
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
            .flat_map(|word| self.files_matching(&word))
            .collect()
    }

    fn files_matching(&self, path: &str) -> Vec<FileId> {
        match self.tree.at(path) {
            Some(id) => vec![id],
            None => {
                let is_suffix = |id: &FileId| {
                    path.strip_suffix(self.tree.path(*id))
                        .is_some_and(|b| b.ends_with('/'))
                };
                let mut found = self.tree.ending(path);
                found.extend(self.tree.ids().filter(is_suffix));
                found.truncate(MAX_FILES_PER_NAME);
                found
            }
        }
    }
}

/// Names of methods called on a value, as in `.status(…)`.
fn called_methods(masked: &str) -> Vec<&str> {
    let bytes = masked.as_bytes();
    let mut found = Vec::new();
    for (at, _) in masked.match_indices('.') {
        let rest = &masked[at + 1..];
        let end = rest
            .bytes()
            .position(|b| !is_word(b) && b != b'!' && b != b'?')
            .unwrap_or(rest.len());
        let follows_value = at
            .checked_sub(1)
            .is_some_and(|i| is_word(bytes[i]) || matches!(bytes[i], b')' | b']'));
        let is_name = rest.starts_with(|c: char| !c.is_ascii_digit());
        if end > 0 && follows_value && is_name && !found.contains(&&rest[..end]) {
            found.push(&rest[..end]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::called_methods;

    #[test]
    fn called_methods_are_found() {
        let found = called_methods(
            "request(app).get('/').expect(200); res.status(1.5); [a].map(x) == y.empty?",
        );
        assert_eq!(found, ["get", "expect", "status", "map", "empty?"]);
    }
}
