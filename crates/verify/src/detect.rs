//! Which tests does a project have? By what is there: manifests and what they say, else test files by their names.
//! The caller's own command bypasses the search. Nothing is run to find out.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::command::{self, split_chain};
use super::runners::{self, Runner, reports};
use super::scripts;
use super::sealed::{FileRole, role};
use super::step::SuiteStep;
use super::suite::{Alternative, DetectError, Suite};
use supervisor_languages::Language;

/// What is asked for, and where.
#[derive(Debug, Clone, Copy)]
pub struct DetectRequest<'a> {
    pub root: &'a Path,
    /// A file of the project: the manifest nearest to it decides.
    pub near: Option<&'a Path>,
    /// The caller's command, instead of what would be found.
    pub test_cmd: Option<&'a str>,
    /// Where that command leaves JUnit reports.
    pub test_report: Option<&'a str>,
    /// Where programs are looked for; of this process, if none is given.
    pub path: Option<&'a OsStr>,
}

/// A directory that is looked at, with all that a runner may want to know about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchPlace<'a> {
    pub(super) dir: &'a Path,
    /// Nothing above it is looked at.
    pub(super) root: &'a Path,
    pub(super) path: &'a OsStr,
}

/// Tests that a runner found in a directory.
#[derive(Debug, Clone)]
pub(super) struct FoundSuite {
    /// As a person would start it.
    pub(super) argv: Vec<String>,
    pub(super) steps: Vec<SuiteStep>,
    /// The file that decided, or what was seen instead.
    pub(super) because: String,
    pub(super) notes: Vec<String>,
    pub(super) strength: Strength,
}

/// How much a directory says about its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// Files whose names look like tests, and no manifest.
    FilesOnly,
    /// A manifest that does not say how the project is tested.
    Nominal,
    Stated,
}

impl FoundSuite {
    /// One command that is the whole of it.
    pub(super) fn of(step: SuiteStep, because: impl Into<String>) -> Self {
        Self {
            argv: step.argv.clone(),
            steps: vec![step],
            because: because.into(),
            notes: Vec::new(),
            strength: Strength::Stated,
        }
    }

    pub(super) fn with_strength(mut self, strength: Strength) -> Self {
        self.strength = strength;
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

    /// A file of this directory, if it is text of a sane size.
    pub(super) fn read(&self, name: &str) -> Option<String> {
        read_small(&self.dir.join(name))
    }

    /// Is there such a program to be started by its name?
    pub(super) fn has_program(&self, name: &str) -> bool {
        std::env::split_paths(self.path).any(|dir| is_executable(&dir.join(name)))
    }

    /// This directory and those above it within the project, nearest first.
    pub(super) fn upwards(&self) -> impl Iterator<Item = &Path> {
        self.dir
            .ancestors()
            .take_while(|d| d.starts_with(self.root))
    }
}

/// Finds the tests of `root`. The manifest nearest to `near` wins; `test_cmd` bypasses the search.
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
        // What may not be seen is not "nothing".
        if let Err(why) = root.read_dir() {
            return Err(DetectError::Unreadable { root, why });
        }
        let of_process =
            std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
        let path = self.path.unwrap_or(&of_process);
        let mut suite = match self.test_cmd {
            Some(words) => named(&root, words, path)?,
            None => search(&root, &nearest_directory(&root, self.near)?, path)?,
        };
        if let Some(pattern) = self.test_report {
            glob::Pattern::new(pattern).map_err(|e| DetectError::BadReports(e.to_string()))?;
            let step = SuiteStep {
                reports: Some(pattern.to_owned()),
                ..SuiteStep::new(suite.argv.clone(), &suite.root)
            };
            suite.steps = vec![step.run_by(&reports::RUNNER)];
        }
        Ok(suite)
    }
}

/// The suite of a command that the caller named.
fn named(root: &Path, words: &str, path: &OsStr) -> Result<Suite, DetectError> {
    let bad = |why: &str| DetectError::BadCommand(why.to_owned());
    let pieces = split_chain(words).map_err(|sign| match sign.as_str() {
        "|" | "||" | "&" => bad(&format!(
            "`{sign}` needs a shell, which is run only as `sh -c '…'`"
        )),
        why => bad(why),
    })?;
    if pieces.is_empty() {
        return Err(bad("it is empty"));
    }
    let argv = match pieces.as_slice() {
        [one] => one.words.clone(),
        _ => shell_words::split(words).map_err(|e| bad(&e.to_string()))?,
    };
    let place = SearchPlace {
        dir: root,
        root,
        path,
    };
    let mut steps: Vec<SuiteStep> = Vec::new();
    for piece in &pieces {
        let one = SuiteStep::new(piece.words.clone(), root).with_patterns(piece.patterns());
        steps.extend(scripts::resolve(&place, piece).unwrap_or_else(|| vec![one]));
    }
    scripts::assign_tasks(&mut steps);
    let because = String::from("test_cmd");
    Ok(Suite {
        root: root.to_owned(),
        argv,
        steps,
        because,
        notes: Vec::new(),
        alternatives: Vec::new(),
    })
}

/// What is found in one directory, the likeliest first.
fn found_in<'a>(place: &SearchPlace<'a>) -> Vec<(FoundSuite, &'static Runner, &'a Path)> {
    let mut found: Vec<_> = runners::all()
        .filter_map(|runner| Some(((runner.find)(runner, place)?, runner, place.dir)))
        .collect();
    if found.len() > 1 {
        // Several kinds of project in one place: what has most tests is meant; among equals, the stated order.
        let census = TestCensus::of(place.dir);
        found.sort_by_key(|(suite, runner, _)| {
            (
                std::cmp::Reverse(suite.strength),
                std::cmp::Reverse(census.count(runner.ecosystem)),
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
    let found: Vec<_> = dirs.iter().flat_map(|dir| found_in(&at(dir))).collect();
    let stated: Vec<_> = found
        .iter()
        .filter(|(suite, ..)| suite.strength > Strength::FilesOnly)
        .collect();
    // A manifest that says nothing of tests gives way to one of its own kind further up which does.
    let chosen = stated.first().map(|first| {
        let is_better = |other: &&&(FoundSuite, &Runner, &Path)| {
            other.0.strength == Strength::Stated && other.1.ecosystem == first.1.ecosystem
        };
        if first.0.strength == Strength::Stated {
            *first
        } else {
            stated.iter().find(is_better).unwrap_or(first)
        }
    });
    // Without any manifest the outermost directory with test files is the project.
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
    let below = nested(root, path);
    if let [(suite, dir)] = below.as_slice() {
        return Ok(into_suite(root, dir, suite.clone(), Vec::new()));
    }
    let nested = below
        .iter()
        .map(|(suite, dir)| alternative(root, dir, suite))
        .collect();
    Err(DetectError::Nothing {
        nested,
        above: above(root, path),
        root: root.to_owned(),
    })
}

fn into_suite(root: &Path, dir: &Path, found: FoundSuite, alternatives: Vec<Alternative>) -> Suite {
    let because = dir
        .strip_prefix(root)
        .unwrap_or(dir)
        .join(&found.because)
        .display()
        .to_string();
    Suite {
        root: dir.to_owned(),
        argv: found.argv,
        steps: found.steps,
        because,
        notes: found.notes,
        alternatives,
    }
}

fn alternative(root: &Path, dir: &Path, found: &FoundSuite) -> Alternative {
    Alternative {
        manifest: dir.strip_prefix(root).unwrap_or(dir).join(&found.because),
        command: command::typed(&found.argv),
    }
}

fn nearest_directory(root: &Path, near: Option<&Path>) -> Result<PathBuf, DetectError> {
    let Some(near) = near else {
        return Ok(root.to_owned());
    };
    let whole = root.join(near);
    // The file may not exist yet; the nearest directory that does is where the search begins.
    let existing = whole.ancestors().find(|p| p.is_dir()).unwrap_or(root);
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

/// The nearest manifest above: the given root lies inside of the project. For the message only.
fn above(root: &Path, path: &OsStr) -> Option<PathBuf> {
    root.ancestors().skip(1).find_map(|dir| {
        let place = SearchPlace {
            dir,
            root: dir,
            path,
        };
        let (suite, ..) = found_in(&place)
            .into_iter()
            .find(|(s, ..)| s.strength > Strength::FilesOnly)?;
        Some(dir.join(suite.because))
    })
}

pub(super) fn higher(above: Option<&Path>) -> String {
    above
        .map(|manifest| format!("; above it lies `{}`", manifest.display()))
        .unwrap_or_default()
}

/// What is found one level below, by manifests alone.
fn nested(root: &Path, path: &OsStr) -> Vec<(FoundSuite, PathBuf)> {
    /// A directory of thousands of packages is named by its first ones.
    const LOOKED_AT: usize = 200;
    let mut dirs: Vec<PathBuf> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.is_dir())
        .collect();
    dirs.sort();
    let hidden = |d: &Path| {
        let name = d
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        name.starts_with('.') || ["node_modules", "vendor", "target"].contains(&name.as_str())
    };
    let mut found = Vec::new();
    for dir in dirs.into_iter().filter(|d| !hidden(d)).take(LOOKED_AT) {
        let here = found_in(&SearchPlace {
            dir: &dir,
            root: &dir,
            path,
        });
        found.extend(
            here.into_iter()
                .filter(|(s, ..)| s.strength > Strength::FilesOnly)
                .map(|(s, _, d)| (s, d.to_owned())),
        );
    }
    found
}

pub(super) fn below(nested: &[Alternative]) -> String {
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

/// How many files look like tests, by kind of project.
#[derive(Debug, Default)]
struct TestCensus(HashMap<&'static Language, usize>);

impl TestCensus {
    /// Counts what is not ignored, up to a bound: large projects are told by a part of theirs.
    fn of(dir: &Path) -> Self {
        const ENTRIES: usize = 20_000;
        let mut census = Self::default();
        let walk = ignore::WalkBuilder::new(dir)
            .max_depth(Some(8))
            .require_git(false)
            .build();
        for entry in walk
            .flatten()
            .take(ENTRIES)
            .filter(|e| e.file_type().is_some_and(|t| t.is_file()))
        {
            let path = entry.path().strip_prefix(dir).unwrap_or(entry.path());
            let Some(language) = Language::of_path(path) else {
                continue;
            };
            if role(Some(language), path) == FileRole::Test {
                *census.0.entry(language).or_default() += 1;
            }
        }
        census
    }

    fn count(&self, language: Option<&'static Language>) -> usize {
        language
            .and_then(|language| self.0.get(language))
            .copied()
            .unwrap_or_default()
    }
}

/// A text file that is no larger than a manifest could be.
pub(super) fn read_small(path: &Path) -> Option<String> {
    const LARGEST: u64 = 4 * 1024 * 1024;
    path.metadata()
        .ok()
        .filter(|m| m.is_file() && m.len() <= LARGEST)?;
    std::fs::read(path)
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
