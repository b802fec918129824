//! Estimates which files will be changed. Each [`Signal`] is a reason; [`Signal::points`] says how
//! much each one counts.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::PackRequest;
use super::failure::Failure;
use super::project::{FileId, Found, Project, SourceFile, relative};
use super::resolve::UsedNames;
use super::similarity::{mentioned_words, split_words, subject, words};
use supervisor_languages::{Language, ProjectFiles as _, parent};

/// A name defined in more files than this is too ambiguous to count.
const MAX_FILES_PER_NAME: usize = 3;
/// The same for definitions. A function may be defined in several clauses, as in Elixir.
const MAX_DEFINITIONS: usize = 24;
/// Maximum number of names looked up for one text.
const MAX_NAMES: usize = 200;
/// Number of definitions whose own names are followed.
const MAX_FOLLOWED: usize = 16;

/// A reason why a file may have to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Signal {
    /// The caller gave the file.
    Given,
    /// The caller's text contains its path.
    PathInText,
    /// It defines a name that the caller's text contains.
    DefinesNameInText,
    /// It defines a name that the failing test contains.
    DefinesNameInTest,
    /// It defines a name that those definitions use, directly or through others. The cause of a
    /// failure is often one call further.
    DefinesNameUsedThere,
    /// It defines a name that the failing test imports.
    DefinesImport,
    /// It defines a name that only other tests of the file import.
    DefinesImportOfOtherTest,
    /// The test imports a name from it that is not defined yet.
    LacksImport,
    /// The output contains a location in it. A stack trace usually passes through the faulty file.
    InOutput,
    /// The failing test or the caller's text contains its name; counts per word of the name.
    NameInText,
    /// It has the name of the test; counts twice in the same directory.
    NameOfTest,
    /// It shares rare words with the test; counts relative to the most similar file.
    SharesWords,
    /// Recent commits changed it together with the test; counts relative to the most frequent file.
    ChangedTogether,
}

impl Signal {
    /// The points for one occurrence, and the maximum for all occurrences in one file.
    fn points(self) -> (f64, f64) {
        match self {
            Self::Given => (60.0, 60.0),
            Self::PathInText => (40.0, 40.0),
            Self::DefinesNameInText => (8.0, 40.0),
            Self::DefinesNameInTest => (6.0, 36.0),
            Self::DefinesNameUsedThere => (2.0, 12.0),
            Self::DefinesImport => (5.0, 25.0),
            Self::DefinesImportOfOtherTest => (1.0, 6.0),
            Self::LacksImport => (8.0, 24.0),
            Self::InOutput => (14.0, 28.0),
            Self::NameInText => (6.0, 24.0),
            Self::NameOfTest => (10.0, 18.0),
            Self::SharesWords => (6.0, 6.0),
            Self::ChangedTogether => (12.0, 12.0),
        }
    }
}

/// Files that may be changed, the likeliest first, and the definitions that lead to them.
pub(super) struct LikelyFiles<'p> {
    pub files: Vec<FileId>,
    pub definitions: Vec<Found<'p>>,
}

/// Combines all signals. Test files are excluded. `ranked` are files by shared words.
pub(super) fn likely_files<'p>(
    project: &'p Project,
    request: &PackRequest<'_>,
    test: &SourceFile,
    failure: &Failure,
    used: &UsedNames<'p>,
    ranked: &[(FileId, f64)],
) -> LikelyFiles<'p> {
    // Ordered, so that sums do not depend on chance.
    let mut counts: BTreeMap<(FileId, Signal), f64> = BTreeMap::new();
    let mut add = |signal, id, count| *counts.entry((id, signal)).or_default() += count;
    for path in request.extra_files.iter().filter_map(|path| relative(path)) {
        project
            .at(&path)
            .into_iter()
            .for_each(|id| add(Signal::Given, id, 1.0));
    }
    for id in files_mentioned(project, request.caller_text) {
        add(Signal::PathInText, id, 1.0);
    }

    let mut names = NameLookup {
        project,
        known: HashSet::new(),
    };
    let in_test = names.find(words(&failure.text), None);
    let in_text = names.find(words(request.caller_text), None);
    let mut steps = vec![
        (Signal::DefinesNameInTest, 1.0, in_test.clone()),
        (Signal::DefinesNameInText, 1.0, in_text),
    ];
    // Each further step counts less.
    let mut last = in_test;
    for weight in [1.0, 0.5, 0.25] {
        last = names.find_used_by(&last);
        steps.push((Signal::DefinesNameUsedThere, weight, last.clone()));
    }
    let mut definitions = Vec::new();
    for (signal, weight, found) in steps {
        for (one, share) in found {
            add(signal, one.file, weight * share);
            definitions.push(one);
        }
    }

    let failing_words: HashSet<&str> = words(&failure.text).collect();
    for Found { file, item } in &used.definitions {
        let signal = if failing_words.contains(item.name.as_str()) {
            Signal::DefinesImport
        } else {
            Signal::DefinesImportOfOtherTest
        };
        add(signal, *file, 1.0);
    }
    for files in &used.missing {
        for id in files {
            add(Signal::LacksImport, *id, 1.0 / files.len() as f64);
        }
    }
    for (id, _) in &failure.locations {
        add(Signal::InOutput, *id, 1.0);
    }

    let text = split_words(&format!("{}\n{}", failure.text, request.caller_text));
    for id in project.ids() {
        let path = project.path(id);
        let name = subject(path);
        let mentioned = mentioned_words(&text, name);
        if mentioned > 0 {
            add(Signal::NameInText, id, mentioned as f64);
        }
        if !name.is_empty() && name == subject(&test.path) {
            let is_beside = parent(path) == parent(&test.path);
            add(Signal::NameOfTest, id, if is_beside { 2.0 } else { 1.0 });
        }
    }

    let best = ranked.first().map_or(0.0, |(_, score)| *score);
    for (id, score) in ranked.iter().take(30).filter(|(_, score)| *score > 0.0) {
        add(Signal::SharesWords, *id, score / best);
    }
    let in_project = |(path, count): &(PathBuf, f64)| Some((project.at(path.to_str()?)?, *count));
    let co_changed: Vec<(FileId, f64)> = request.co_changed.iter().filter_map(in_project).collect();
    let most = co_changed
        .iter()
        .map(|(_, count)| *count)
        .fold(0.0, f64::max);
    for (id, count) in co_changed {
        add(Signal::ChangedTogether, id, count / most);
    }

    let mut totals: BTreeMap<FileId, f64> = BTreeMap::new();
    for ((id, signal), count) in counts {
        let (points, max) = signal.points();
        *totals.entry(id).or_default() += (points * count).min(max);
    }
    let mut files: Vec<FileId> = totals.keys().copied().collect();
    files.retain(|id| !project.is_test(*id) && project.path(*id) != test.path);
    files.sort_by(|a, b| totals[b].total_cmp(&totals[a]));
    LikelyFiles { files, definitions }
}

/// The existing test that is the best example for a new one: similar in words, and named like the
/// new test, like the file that will be changed, or in the caller's text.
pub(super) fn nearest_test(
    project: &Project,
    request: &PackRequest<'_>,
    test_path: &str,
    target: Option<FileId>,
    ranked: &[(FileId, f64)],
) -> Option<FileId> {
    let is_example = |id| project.is_test(id) && !project.source(id).text.trim().is_empty();
    let text = split_words(request.caller_text);
    let tests = ranked.iter().filter(|(id, _)| is_example(*id));
    let best = tests.clone().next()?.1.max(f64::MIN_POSITIVE);
    let points = |(id, score): &(FileId, f64)| {
        let name = subject(project.path(*id));
        let is_target_name = target.is_some_and(|id| subject(project.path(id)) == name);
        let is_test_name = !name.is_empty() && name == subject(test_path);
        let is_mentioned = mentioned_words(&text, name) > 0;
        10.0 * score / best
            + 30.0 * f64::from(is_test_name)
            + 12.0 * f64::from(is_target_name)
            + 12.0 * f64::from(is_mentioned)
    };
    let nearest = tests.rev().max_by(|a, b| points(a).total_cmp(&points(b)))?;
    Some(nearest.0)
}

/// Looks up definitions by name alone, each name once.
struct NameLookup<'p> {
    project: &'p Project,
    known: HashSet<String>,
}

impl<'p> NameLookup<'p> {
    /// Definitions of these names outside of tests, each with its share of all definitions of the
    /// name. Definitions in the file `near` take precedence. Skips ambiguous names.
    fn find<'n>(
        &mut self,
        names: impl Iterator<Item = &'n str>,
        near: Option<FileId>,
    ) -> Vec<(Found<'p>, f64)> {
        let mut found = Vec::new();
        let is_new = |name: &&str| name.len() > 2 && self.known.insert((*name).to_owned());
        for name in names.filter(is_new).take(MAX_NAMES) {
            let here = near.map(|file| self.project.definitions_in(file, name));
            let all = here.filter(|here| !here.is_empty()).unwrap_or_else(|| {
                let anywhere = self.project.definitions_of(name);
                let sources = anywhere.filter(|one| !self.project.is_test(one.file));
                sources.take(MAX_DEFINITIONS + 1).collect()
            });
            let files: HashSet<FileId> = all.iter().map(|one| one.file).collect();
            if files.len() <= MAX_FILES_PER_NAME && all.len() <= MAX_DEFINITIONS {
                let share = 1.0 / all.len() as f64;
                found.extend(all.into_iter().map(|one| (one, share)));
            }
        }
        found
    }

    /// Definitions that the given ones use.
    fn find_used_by(&mut self, from: &[(Found<'p>, f64)]) -> Vec<(Found<'p>, f64)> {
        let mut found = Vec::new();
        for (Found { file, item }, _) in from.iter().take(MAX_FOLLOWED) {
            let lines = self.project.source(*file).masked().lines();
            let lines = lines.skip(item.lines.start).take(item.lines.len());
            found.extend(self.find(lines.flat_map(words), Some(*file)));
        }
        found
    }
}

/// Project files whose path the text contains.
fn files_mentioned(project: &Project, text: &str) -> Vec<FileId> {
    let parts = text.split(|c: char| c.is_whitespace() || "()[]'\"`,;".contains(c));
    let paths = parts.filter_map(|part| {
        let part = part.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let path = part.split(':').next()?;
        Language::of_path(Path::new(path)).map(|_| path)
    });
    paths
        .flat_map(|path| project.files_matching(path))
        .collect()
}
