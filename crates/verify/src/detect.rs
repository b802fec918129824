//! Detects the test suite of a project from its manifests or, without any, from the names of its files. A command given
//! by the caller bypasses the search. Detection starts no programs. [`detect`] and [`DetectRequest`] are the entry points.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::command::{self, split_chain};
use super::protected::{FileRole, role};
use super::runners::{self, Runner, reports};
use super::scripts;
use super::step::SuiteStep;
use super::suite::{Alternative, DetectError, Suite};
use supervisor_languages::Language;

/// Where to look for tests, and what the caller already knows about them.
#[derive(Debug, Clone, Copy)]
pub struct DetectRequest<'a> {
    pub root: &'a Path,
    /// A file of the project; the manifest nearest to it is used.
    pub near: Option<&'a Path>,
    /// The caller's test command, which bypasses the search.
    pub test_cmd: Option<&'a str>,
    /// A glob for the JUnit reports that the command writes.
    pub test_report: Option<&'a str>,
    /// The PATH to look for programs in; by default that of this process.
    pub path: Option<&'a OsStr>,
}

/// A directory to search for tests, with the context that runners need.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchPlace<'a> {
    pub(super) dir: &'a Path,
    /// The project root; the search does not go above it.
    pub(super) root: &'a Path,
    pub(super) path: &'a OsStr,
}

/// A suite that a runner detected in a directory.
#[derive(Debug, Clone)]
pub(super) struct FoundSuite {
    /// The command a user would type.
    pub(super) argv: Vec<String>,
    pub(super) steps: Vec<SuiteStep>,
    /// The file that the suite was detected from.
    pub(super) found_by: String,
    pub(super) notes: Vec<String>,
    pub(super) confidence: Confidence,
}

/// How clearly a directory states how it is tested. Later variants win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Confidence {
    /// There are files named like tests, but no manifest.
    TestFilesOnly,
    /// There is a manifest that does not say how the project is tested.
    ManifestOnly,
    Explicit,
}

impl FoundSuite {
    /// A suite that consists of one command.
    pub(super) fn new(step: SuiteStep, found_by: impl Into<String>) -> Self {
        Self {
            argv: step.argv.clone(),
            steps: vec![step],
            found_by: found_by.into(),
            notes: Vec::new(),
            confidence: Confidence::Explicit,
        }
    }

    pub(super) fn with_confidence(mut self, confidence: Confidence) -> Self {
        self.confidence = confidence;
        self
    }
}

impl<'a> SearchPlace<'a> {
    #[cfg(test)]
    pub(super) fn for_tests(dir: &'a Path) -> Self {
        Self {
            dir,
            root: dir,
            path: OsStr::new(""),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.dir.join(name).is_file()
    }

    /// The text of a file in this directory, unless it is too large.
    pub(super) fn read(&self, name: &str) -> Option<String> {
        read_small_file(&self.dir.join(name))
    }

    /// Whether this program is on the PATH.
    pub(super) fn has_program(&self, name: &str) -> bool {
        std::env::split_paths(self.path).any(|dir| is_executable(&dir.join(name)))
    }

    /// This directory and its ancestors within the project, nearest first.
    pub(super) fn ancestors(&self) -> impl Iterator<Item = &Path> {
        self.dir
            .ancestors()
            .take_while(|d| d.starts_with(self.root))
    }
}

/// Finds the tests of `root`. Uses the manifest nearest to `near`; `test_cmd` bypasses the search.
pub fn detect(
    root: &Path,
    near: Option<&Path>,
    test_cmd: Option<&str>,
) -> Result<Suite, DetectError> {
    DetectRequest {
        root,
        near,
        test_cmd,
        test_report: None,
        path: None,
    }
    .detect()
}

impl DetectRequest<'_> {
    pub fn detect(&self) -> Result<Suite, DetectError> {
        let not_a_directory = |_: io::Error| DetectError::NotADirectory(self.root.to_owned());
        let root = self.root.canonicalize().map_err(not_a_directory)?;
        if !root.is_dir() {
            return Err(DetectError::NotADirectory(root));
        }
        // An unreadable directory must not be reported as one without tests.
        if let Err(why) = root.read_dir() {
            return Err(DetectError::Unreadable { root, why });
        }
        let process_path =
            std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
        let path = self.path.unwrap_or(&process_path);
        let mut suite = match self.test_cmd {
            Some(words) => suite_from_command(&root, words, path)?,
            None => search(&root, &nearest_directory(&root, self.near)?, path)?,
        };
        if let Some(pattern) = self.test_report {
            glob::Pattern::new(pattern)
                .map_err(|e| DetectError::BadReportPattern(e.to_string()))?;
            let step = match suite.steps.as_slice() {
                [one] => one.clone(),
                steps => {
                    let tests = steps.iter().find(|step| step.runner().is_some());
                    let environment = tests.map(|step| step.environment.clone());
                    SuiteStep::new(suite.argv.clone(), &suite.root)
                        .with_environment(environment.unwrap_or_default())
                }
            };
            let step = SuiteStep {
                reports: Some(pattern.to_owned()),
                ..step
            };
            suite.steps = vec![step.with_runner(&reports::RUNNER)];
        }
        Ok(suite)
    }
}

/// The suite for a command given by the caller.
fn suite_from_command(root: &Path, words: &str, path: &OsStr) -> Result<Suite, DetectError> {
    let bad = |why: &str| DetectError::BadCommand(why.to_owned());
    let pieces = split_chain(words).map_err(|operator| match operator.as_str() {
        "|" | "||" | "&" => bad(&format!(
            "`{operator}` needs a shell, which is run only as `sh -c '…'`"
        )),
        why => bad(why),
    })?;
    if pieces.is_empty() {
        return Err(bad("it is empty"));
    }
    let written = shell_words::split(words).map_err(|e| bad(&e.to_string()))?;
    let mut steps: Vec<SuiteStep> = Vec::new();
    let (mut dir, mut exported, mut commands) = (root.to_owned(), Vec::new(), Vec::new());
    for mut piece in pieces {
        if let [cd, target] = piece.words.as_slice()
            && cd == "cd"
        {
            dir = directory_below(root, &dir, target).map_err(|why| bad(&why))?;
            continue;
        }
        // Only the words of the command itself are left, so that no shell is needed.
        let mut variables: Vec<(String, String)> = exported.clone();
        variables.extend(command::take_assignments(&mut piece));
        if piece.words.is_empty() {
            exported = variables;
            continue;
        }
        let place = SearchPlace {
            dir: &dir,
            root,
            path,
        };
        let mut step = SuiteStep::new(piece.words.clone(), &dir).with_patterns(piece.patterns());
        // A program of the project's own environment, as if that were activated.
        if let Some(program) = piece.words.first()
            && !program.contains('/')
            && !place.has_program(program)
        {
            step = step.with_environment(runners::project_environment(&place));
        }
        let mut resolved = scripts::resolve(&place, &piece).unwrap_or_else(|| vec![step]);
        for step in &mut resolved {
            step.environment.variables.extend(variables.iter().cloned());
        }
        steps.extend(resolved);
        commands.push(piece.words);
    }
    let Some(first) = steps.first() else {
        return Err(bad("it runs no program"));
    };
    let is_in_one_place = steps.iter().all(|step| step.dir == first.dir);
    let suite_root: &Path = if is_in_one_place { &first.dir } else { root };
    let suite_root = suite_root.to_owned();
    // Directory and variables are the step's own, so they are not part of its command.
    let argv = match commands.as_slice() {
        [one] => one.clone(),
        _ => written,
    };
    scripts::assign_tasks(&mut steps);
    let found_by = String::from("test_cmd");
    Ok(Suite {
        root: suite_root,
        argv,
        steps,
        found_by,
        notes: Vec::new(),
        alternatives: Vec::new(),
        varying_names: Arc::default(),
        run_counts: Arc::default(),
        is_selection: false,
    })
}

/// The directory that `cd` goes to, which must be in the project.
fn directory_below(root: &Path, dir: &Path, target: &str) -> Result<PathBuf, String> {
    let found = dir.join(target).canonicalize();
    match found {
        Ok(found) if found.is_dir() && found.starts_with(root) => Ok(found),
        Ok(_) => Err(format!("`cd {target}` does not stay in the project")),
        Err(why) => Err(format!("`cd {target}`: {why}")),
    }
}

/// The suites found in one directory, the likeliest first.
fn find_in_dir<'a>(place: &SearchPlace<'a>) -> Vec<(FoundSuite, &'static Runner, &'a Path)> {
    let mut found: Vec<_> = runners::all()
        .filter_map(|runner| Some(((runner.find)(runner, place)?, runner, place.dir)))
        .collect();
    if found.len() > 1 {
        // Several kinds of project in one directory: prefer the language with the most test files, then the order of runners.
        let counts = TestFileCounts::count_in(place.dir);
        found.sort_by_key(|(suite, runner, _)| {
            (
                std::cmp::Reverse(suite.confidence),
                std::cmp::Reverse(counts.count(runner.ecosystem)),
            )
        });
    }
    found
}

fn search(root: &Path, start: &Path, path: &OsStr) -> Result<Suite, DetectError> {
    let at = |dir| SearchPlace { dir, root, path };
    let dirs: Vec<&Path> = start
        .ancestors()
        .take_while(|d| d.starts_with(root))
        .collect();
    let found: Vec<_> = dirs.iter().flat_map(|dir| find_in_dir(&at(dir))).collect();
    let stated: Vec<_> = found
        .iter()
        .filter(|(suite, ..)| suite.confidence > Confidence::TestFilesOnly)
        .collect();
    // A manifest that does not state how to test yields to one of the same language further up that does.
    let chosen = stated.first().map(|first| {
        let is_better = |other: &&&(FoundSuite, &Runner, &Path)| {
            other.0.confidence == Confidence::Explicit && other.1.ecosystem == first.1.ecosystem
        };
        if first.0.confidence == Confidence::Explicit {
            *first
        } else {
            stated.iter().find(is_better).unwrap_or(first)
        }
    });
    // Without a manifest, the outermost directory with test files is the project.
    let chosen = chosen.or_else(|| {
        found
            .iter()
            .rev()
            .min_by_key(|(_, _, dir)| dir.components().count())
    });
    if let Some((suite, _, dir)) = chosen {
        let others = found
            .iter()
            .filter(|(other, _, d)| !(other.argv == suite.argv && d == dir));
        let others = others
            .map(|(other, _, d)| alternative(root, d, other))
            .collect();
        return Ok(into_suite(root, dir, suite.clone(), others));
    }
    let below = find_below(root, path);
    if let [(suite, dir)] = below.as_slice() {
        return Ok(into_suite(root, dir, suite.clone(), Vec::new()));
    }
    let nested = below
        .iter()
        .map(|(suite, dir)| alternative(root, dir, suite))
        .collect();
    Err(DetectError::NoTestsFound {
        nested,
        above: manifest_above(root, path),
        root: root.to_owned(),
    })
}

fn into_suite(root: &Path, dir: &Path, found: FoundSuite, alternatives: Vec<Alternative>) -> Suite {
    let found_by = dir
        .strip_prefix(root)
        .unwrap_or(dir)
        .join(&found.found_by)
        .display()
        .to_string();
    Suite {
        root: dir.to_owned(),
        argv: found.argv,
        steps: found.steps,
        found_by,
        notes: found.notes,
        alternatives,
        varying_names: Arc::default(),
        run_counts: Arc::default(),
        is_selection: false,
    }
}

fn alternative(root: &Path, dir: &Path, found: &FoundSuite) -> Alternative {
    Alternative {
        manifest: dir.strip_prefix(root).unwrap_or(dir).join(&found.found_by),
        command: command::to_command_line(&found.argv),
    }
}

fn nearest_directory(root: &Path, near: Option<&Path>) -> Result<PathBuf, DetectError> {
    let Some(near) = near else {
        return Ok(root.to_owned());
    };
    let path = root.join(near);
    // The file may not exist yet: start from the nearest directory that does.
    let existing = path.ancestors().find(|p| p.is_dir()).unwrap_or(root);
    let outside = || DetectError::Outside {
        file: near.to_owned(),
        root: root.to_owned(),
    };
    let existing = existing.canonicalize().map_err(|_| outside())?;
    if existing.starts_with(root) {
        Ok(existing)
    } else {
        Err(outside())
    }
}

/// The nearest manifest above `root`, in case `root` is inside of the project. Used only for the error message.
fn manifest_above(root: &Path, path: &OsStr) -> Option<PathBuf> {
    root.ancestors().skip(1).find_map(|dir| {
        let place = SearchPlace {
            dir,
            root: dir,
            path,
        };
        let (suite, ..) = find_in_dir(&place)
            .into_iter()
            .find(|(s, ..)| s.confidence > Confidence::TestFilesOnly)?;
        Some(dir.join(suite.found_by))
    })
}

pub(super) fn format_above(above: Option<&Path>) -> String {
    above
        .map(|manifest| format!("; above it lies `{}`", manifest.display()))
        .unwrap_or_default()
}

/// The suites one level below `root` that have a manifest.
fn find_below(root: &Path, path: &OsStr) -> Vec<(FoundSuite, PathBuf)> {
    /// Bounds the search in a directory with thousands of packages.
    const MAX_DIRS: usize = 200;
    let mut dirs: Vec<PathBuf> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.is_dir())
        .collect();
    dirs.sort();
    let is_ignored = |d: &Path| {
        let name = d
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        name.starts_with('.') || ["node_modules", "vendor", "target"].contains(&name.as_str())
    };
    let mut found = Vec::new();
    for dir in dirs.into_iter().filter(|d| !is_ignored(d)).take(MAX_DIRS) {
        let found_here = find_in_dir(&SearchPlace {
            dir: &dir,
            root: &dir,
            path,
        });
        found.extend(
            found_here
                .into_iter()
                .filter(|(s, ..)| s.confidence > Confidence::TestFilesOnly)
                .map(|(s, _, d)| (s, d.to_owned())),
        );
    }
    found
}

pub(super) fn format_nested(nested: &[Alternative]) -> String {
    if nested.is_empty() {
        return String::new();
    }
    let names: Vec<_> = nested
        .iter()
        .take(5)
        .map(|a| format!("`{}`", a.manifest.display()))
        .collect();
    format!(
        " (found below it: {}; name a file near the one you mean)",
        names.join(", ")
    )
}

/// The number of test files per language.
#[derive(Debug, Default)]
struct TestFileCounts(HashMap<&'static Language, usize>);

impl TestFileCounts {
    /// Counts files that are not git-ignored, up to a limit. For a large project, a sample is enough.
    fn count_in(dir: &Path) -> Self {
        const MAX_ENTRIES: usize = 20_000;
        let mut counts = Self::default();
        let walk = ignore::WalkBuilder::new(dir)
            .max_depth(Some(8))
            .require_git(false)
            .build();
        for entry in walk
            .flatten()
            .take(MAX_ENTRIES)
            .filter(|e| e.file_type().is_some_and(|t| t.is_file()))
        {
            let path = entry.path().strip_prefix(dir).unwrap_or(entry.path());
            let Some(language) = Language::of_path(path) else {
                continue;
            };
            if role(Some(language), path) == FileRole::Test {
                *counts.0.entry(language).or_default() += 1;
            }
        }
        counts
    }

    fn count(&self, language: Option<&'static Language>) -> usize {
        language
            .and_then(|language| self.0.get(language))
            .copied()
            .unwrap_or_default()
    }
}

/// Reads a text file, unless it is larger than a manifest could reasonably be.
pub(super) fn read_small_file(path: &Path) -> Option<String> {
    const MAX_BYTES: u64 = 4 * 1024 * 1024;
    path.metadata()
        .ok()
        .filter(|m| m.is_file() && m.len() <= MAX_BYTES)?;
    std::fs::read(path)
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
