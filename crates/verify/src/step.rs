//! One command of a suite: where it runs, in which surroundings, and what it is there for. A script such as
//! `eslint . && vitest run` is two of them; only the second speaks of tests.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::runners::{self, Runner};
use super::{command, scripts};

/// One command, ready to be run.
#[derive(Debug, Clone)]
pub(super) struct SuiteStep {
    pub(super) argv: Vec<String>,
    /// Absolute.
    pub(super) dir: PathBuf,
    pub(super) surroundings: StepSurroundings,
    pub(super) task: StepTask,
    /// The text that a package manager would hand to `sh`, where words alone do not carry what it says.
    pub(super) shell: Option<String>,
    /// Words that stand for files, as in `mocha test/*.js`: which these are is found out in each run.
    pub(super) patterns: Vec<String>,
    /// Where the command leaves JUnit reports, as a pattern relative to where it runs.
    pub(super) reports: Option<String>,
}

/// What a command is there for.
#[derive(Debug, Clone, Copy)]
pub(super) enum StepTask {
    Tests(&'static Runner),
    /// Comes before the tests and may make what they run: without it their result would be about something older.
    Build,
    /// Looks at the project and changes nothing that is tested: linters, formatters, type checks.
    Check,
}

/// What a command finds around it, beside the environment of every run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StepSurroundings {
    /// Go before the PATH, first one first.
    pub(super) path: Vec<PathBuf>,
    pub(super) variables: Vec<(String, String)>,
}

/// A command beside the tests, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// As typed: `prettier --check .`
    pub command: String,
    pub passed: bool,
    /// What it wrote, cut.
    pub output: String,
}

impl SuiteStep {
    pub(super) fn new(argv: Vec<String>, dir: impl Into<PathBuf>) -> Self {
        let task = StepTask::Tests(runners::recognise(&argv));
        let (dir, surroundings) = (dir.into(), StepSurroundings::default());
        Self {
            argv,
            dir,
            surroundings,
            task,
            shell: None,
            patterns: Vec::new(),
            reports: None,
        }
    }

    /// The same command, of which these words are patterns of files.
    pub(super) fn with_patterns(mut self, patterns: Vec<String>) -> Self {
        self.patterns = patterns;
        self
    }

    /// The same command with the files that its patterns match where its files are read.
    pub(super) fn with_files_of(&self, files: &Path) -> Self {
        let argv = command::expanded(&self.argv, &self.patterns, files);
        Self {
            argv,
            patterns: Vec::new(),
            ..self.clone()
        }
    }

    /// The same command, understood by this runner.
    pub(super) fn run_by(mut self, runner: &'static Runner) -> Self {
        self.task = StepTask::Tests(runner);
        self
    }

    pub(super) fn within(mut self, surroundings: StepSurroundings) -> Self {
        self.surroundings = surroundings;
        self
    }

    pub(super) fn argv(&self) -> &[String] {
        &self.argv
    }

    /// As typed, without what was put before it to make it run.
    pub(super) fn typed(&self) -> String {
        self.shell
            .clone()
            .unwrap_or_else(|| command::typed_with(&self.argv, &self.patterns))
    }

    pub(super) fn runner(&self) -> Option<&'static Runner> {
        match self.task {
            StepTask::Tests(runner) => Some(runner),
            StepTask::Build | StepTask::Check => None,
        }
    }

    /// The words to start, with `more` behind them, where the text needs a shell as well.
    pub(super) fn with_arguments(&self, more: &[String]) -> Vec<String> {
        let Some(text) = &self.shell else {
            return self.argv.iter().chain(more).cloned().collect();
        };
        let mut argv: Vec<String> = ["sh", "-c", &format!("{text} \"$@\""), "sh"]
            .map(String::from)
            .to_vec();
        argv.extend_from_slice(more);
        argv
    }

    /// The files that the command itself starts, as its words name them.
    pub(super) fn scripts(&self) -> Vec<PathBuf> {
        let mut words: Vec<String> = command::script(&self.argv)
            .map(str::to_owned)
            .into_iter()
            .collect();
        words.extend(scripts::started_by_manager(&self.argv, &self.dir));
        words
            .iter()
            .map(|word| self.dir.join(word))
            .filter(|path| path.is_file())
            .collect()
    }
}

impl StepSurroundings {
    /// What is set for a command, given the PATH it would have.
    pub(super) fn variables(&self, path: Option<&OsString>) -> Vec<(OsString, OsString)> {
        let mut set: Vec<(OsString, OsString)> = self
            .variables
            .iter()
            .map(|(k, v)| (OsString::from(k), OsString::from(v)))
            .collect();
        if !self.path.is_empty() {
            let rest: Vec<PathBuf> = path
                .map(|p| std::env::split_paths(p).collect())
                .unwrap_or_default();
            if let Ok(joined) = std::env::join_paths(self.path.iter().chain(&rest)) {
                set.push((OsString::from("PATH"), joined));
            }
        }
        set
    }

    /// As `npm` and its kin do: programs of installed packages, the nearest first.
    pub(super) fn of_node(dir: &Path) -> Self {
        let bins = dir
            .ancestors()
            .map(|d| d.join("node_modules/.bin"))
            .filter(|d| d.is_dir())
            .collect();
        Self {
            path: bins,
            variables: Vec::new(),
        }
    }
}

/// Programs that only look, by name and by what they are told.
#[derive(Debug, Deserialize)]
struct LookingPrograms {
    programs: BTreeSet<String>,
    /// With one of these words a builder only checks.
    flags: BTreeSet<String>,
}

static LOOKING: LazyLock<LookingPrograms> = LazyLock::new(|| {
    toml::from_str(include_str!("step/looking.toml")).expect("the compiled-in list is well-formed")
});

/// Does this command look at the project without making anything?
pub(super) fn only_looks(argv: &[String]) -> bool {
    command::unwrapped(argv).any(|inner| {
        LOOKING.programs.contains(command::program(inner))
            || inner.iter().any(|word| LOOKING.flags.contains(word))
    })
}

#[cfg(test)]
mod tests {
    use super::super::command::argv;
    use super::*;

    #[test]
    fn linters_and_type_checks_are_told_from_builds() {
        for words in [
            "eslint .",
            "npx prettier --check .",
            "tsc --noEmit",
            "xo",
            "cross-env CI=1 biome check",
        ] {
            assert!(only_looks(&argv(words)), "{words}");
        }
        for words in ["tsc -b", "rollup -c", "node build.js", "make"] {
            assert!(!only_looks(&argv(words)), "{words}");
        }
    }

    #[test]
    fn a_pattern_stands_for_the_files_that_are_there_when_it_is_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let step =
            SuiteStep::new(argv("mocha t/*.js"), dir.path()).with_patterns(vec!["t/*.js".into()]);
        std::fs::create_dir(dir.path().join("t")).expect("made");
        assert_eq!(
            step.with_files_of(dir.path()).argv,
            ["mocha", "t/*.js"],
            "nothing matches"
        );
        for file in ["t/b.js", "t/a.js"] {
            std::fs::write(dir.path().join(file), "").expect("written");
        }
        assert_eq!(
            step.with_files_of(dir.path()).argv,
            ["mocha", "t/a.js", "t/b.js"]
        );
    }

    #[test]
    fn what_goes_before_the_path_is_found_first() {
        let around = StepSurroundings {
            path: vec!["/p/bin".into()],
            variables: vec![("A".into(), "1".into())],
        };
        let set = around.variables(Some(&OsString::from("/usr/bin")));
        assert_eq!(
            set,
            [
                ("A".into(), "1".into()),
                ("PATH".into(), OsString::from("/p/bin:/usr/bin"))
            ]
        );
    }
}
