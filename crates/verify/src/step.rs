//! One command of a suite: its directory, its environment and its purpose. A script such as `eslint . && vitest run`
//! becomes two steps, of which only the second runs tests.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::runners::{self, Runner};
use super::{command, scripts};

/// One command, ready to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SuiteStep {
    pub(super) argv: Vec<String>,
    /// The absolute path of the directory to run in.
    pub(super) dir: PathBuf,
    pub(super) environment: StepEnvironment,
    pub(super) task: StepTask,
    /// The text that a package manager would pass to `sh`, if the command needs shell syntax.
    pub(super) shell: Option<String>,
    /// The words of `argv` that are glob patterns, as in `mocha test/*.js`. They are expanded anew in each run.
    pub(super) patterns: Vec<String>,
    /// A glob for the JUnit reports that the command writes, relative to `dir`.
    pub(super) reports: Option<String>,
}

/// The purpose of a command.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum StepTask {
    Tests(#[serde(with = "runners::by_name")] &'static Runner),
    /// Runs before the tests and may build what they run. If it fails, the tests would run against an older build.
    Build,
    /// Inspects the project without building anything: linters, formatters, type checks.
    Check,
}

/// Environment of one command, in addition to that of the whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StepEnvironment {
    /// Directories to prepend to the PATH, in this order.
    pub(super) path: Vec<PathBuf>,
    pub(super) variables: Vec<(String, String)>,
}

/// The result of a command that does not run tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The command line: `prettier --check .`
    pub command: String,
    pub passed: bool,
    /// Its output, shortened.
    pub output: String,
}

impl SuiteStep {
    pub(super) fn new(argv: Vec<String>, dir: impl Into<PathBuf>) -> Self {
        let task = StepTask::Tests(runners::runner_for(&argv));
        let (dir, environment) = (dir.into(), StepEnvironment::default());
        Self {
            argv,
            dir,
            environment,
            task,
            shell: None,
            patterns: Vec::new(),
            reports: None,
        }
    }

    /// Marks these words of the command as glob patterns.
    pub(super) fn with_patterns(mut self, patterns: Vec<String>) -> Self {
        self.patterns = patterns;
        self
    }

    /// The command with its glob patterns replaced by the files that match in `files`.
    pub(super) fn with_expanded_globs(&self, files: &Path) -> Self {
        let argv = command::expand_globs(&self.argv, &self.patterns, files);
        Self {
            argv,
            patterns: Vec::new(),
            ..self.clone()
        }
    }

    /// Marks the command as a test command of this runner.
    pub(super) fn with_runner(mut self, runner: &'static Runner) -> Self {
        self.task = StepTask::Tests(runner);
        self
    }

    pub(super) fn with_environment(mut self, environment: StepEnvironment) -> Self {
        self.environment = environment;
        self
    }

    pub(super) fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The command line as the user or the script wrote it.
    pub(super) fn command_line(&self) -> String {
        self.shell
            .clone()
            .unwrap_or_else(|| command::to_command_line_with_globs(&self.argv, &self.patterns))
    }

    pub(super) fn runner(&self) -> Option<&'static Runner> {
        match self.task {
            StepTask::Tests(runner) => Some(runner),
            StepTask::Build | StepTask::Check => None,
        }
    }

    /// The command to start, with `more` arguments appended. Starts `sh` if the command needs a shell.
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

    /// The script files that the command starts and that exist.
    pub(super) fn script_files(&self) -> Vec<PathBuf> {
        let mut words: Vec<String> = command::script_file(&self.argv)
            .map(str::to_owned)
            .into_iter()
            .collect();
        words.extend(scripts::scripts_started_by_manager(&self.argv, &self.dir));
        words
            .iter()
            .map(|word| self.dir.join(word))
            .filter(|path| path.is_file())
            .collect()
    }
}

impl StepEnvironment {
    /// The variables to set, given the PATH that the command would otherwise have.
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

    /// Puts the programs of installed packages on the PATH, the nearest first, as `npm` does.
    pub(super) fn for_node(dir: &Path) -> Self {
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

/// Programs that only inspect the project, by name and by flag.
#[derive(Debug, Deserialize)]
struct ReadOnlyTools {
    programs: BTreeSet<String>,
    /// Flags with which a build tool only checks.
    flags: BTreeSet<String>,
}

static READ_ONLY_TOOLS: LazyLock<ReadOnlyTools> = LazyLock::new(|| {
    toml::from_str(include_str!("step/read_only_tools.toml"))
        .expect("the compiled-in list is well-formed")
});

/// Whether this command inspects the project without building anything.
pub(super) fn is_read_only(argv: &[String]) -> bool {
    command::inner_commands(argv).any(|inner| {
        READ_ONLY_TOOLS.programs.contains(command::program(inner))
            || inner
                .iter()
                .any(|word| READ_ONLY_TOOLS.flags.contains(word))
    })
}

#[cfg(test)]
mod tests {
    use super::super::command::argv;
    use super::*;

    #[test]
    fn linters_are_told_from_builds() {
        for words in [
            "eslint .",
            "npx prettier --check .",
            "tsc --noEmit",
            "xo",
            "cross-env CI=1 biome check",
        ] {
            assert!(is_read_only(&argv(words)), "{words}");
        }
        for words in ["tsc -b", "rollup -c", "node build.js", "make"] {
            assert!(!is_read_only(&argv(words)), "{words}");
        }
    }

    #[test]
    fn globs_are_expanded_when_the_step_runs() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let step =
            SuiteStep::new(argv("mocha t/*.js"), dir.path()).with_patterns(vec!["t/*.js".into()]);
        std::fs::create_dir(dir.path().join("t")).expect("the directory is created");
        assert_eq!(
            step.with_expanded_globs(dir.path()).argv,
            ["mocha", "t/*.js"],
            "nothing matches"
        );
        for file in ["t/b.js", "t/a.js"] {
            std::fs::write(dir.path().join(file), "").expect("the file is written");
        }
        assert_eq!(
            step.with_expanded_globs(dir.path()).argv,
            ["mocha", "t/a.js", "t/b.js"]
        );
    }

    #[test]
    fn step_directories_come_first_in_path() {
        let environment = StepEnvironment {
            path: vec!["/p/bin".into()],
            variables: vec![("A".into(), "1".into())],
        };
        let set = environment.variables(Some(&OsString::from("/usr/bin")));
        assert_eq!(
            set,
            [
                ("A".into(), "1".into()),
                ("PATH".into(), OsString::from("/p/bin:/usr/bin"))
            ]
        );
    }
}
