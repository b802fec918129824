//! Scripts of package managers, read into the commands they come to: `pnpm test` is `eslint .`, then `vitest run`.
//! Each is then run by itself, in the surroundings the package manager would give it, so that the one which runs tests
//! can be asked for a report and the others are judged by name. What cannot be read this way is run as it is.

mod packages;

use std::path::{Path, PathBuf};

use regex::Regex;

pub(super) use packages::{Manager, Package};

use super::command::{self, Piece, program, split_chain};
use super::detect::SearchPlace;
use super::runners;
use super::step::{StepSurroundings, StepTask, SuiteStep, only_looks};

/// Scripts that call scripts; deeper than this they call themselves.
const DEEPEST: usize = 8;
/// Commands of one suite; a monorepo with more is run as it is.
const MOST: usize = 200;

/// The commands behind a call of a package manager; `None` if it is none, or if they cannot be told.
pub(super) fn resolve(place: &SearchPlace<'_>, piece: &Piece) -> Option<Vec<SuiteStep>> {
    let reader = ScriptReader { root: place.root };
    let called = ScriptCall::of(&piece.words, &Package::read(place.dir)?)?;
    let steps = reader.called(place.dir, &called, 0)?;
    steps
        .iter()
        .any(|step| runners::is_known(&step.argv))
        .then_some(steps)
}

/// The files that the script `test` starts, where the package manager is left to run it.
pub(super) fn started_by_manager(argv: &[String], dir: &Path) -> Vec<String> {
    if !matches!(program(argv), "npm" | "pnpm" | "yarn" | "bun") {
        return Vec::new();
    }
    let package = Package::read(dir);
    let line = package
        .as_ref()
        .and_then(|package| package.script("test"))
        .unwrap_or_default();
    let commands = line
        .split(['&', '|', ';', '\n'])
        .filter_map(|command| shell_words::split(command).ok());
    commands
        .filter_map(|command| super::command::script(&command).map(str::to_owned))
        .collect()
}

/// The commands of the script `name` in this directory, where one of them runs tests that we understand.
pub(super) fn of_script(place: &SearchPlace<'_>, name: &str) -> Option<Vec<SuiteStep>> {
    let reader = ScriptReader { root: place.root };
    let steps = reader.script(place.dir, &Package::read(place.dir)?, name, &[], 0)?;
    steps
        .iter()
        .any(|step| runners::is_known(&step.argv))
        .then_some(steps)
}

/// The tests of every package of a workspace that has a script for them.
pub(super) fn of_workspace(place: &SearchPlace<'_>) -> Option<Vec<SuiteStep>> {
    let steps = ScriptReader { root: place.root }.workspace(place.dir, "test", &[], 0)?;
    steps
        .iter()
        .any(|step| runners::is_known(&step.argv))
        .then_some(steps)
}

/// Says what each command is there for: tests that we understand, what comes before them and may make what they run, and
/// what only looks. Where nothing is understood, the last command that does not only look is taken for the tests.
pub(super) fn assign_tasks(steps: &mut [SuiteStep]) {
    let known: Vec<bool> = steps.iter().map(|s| runners::is_known(&s.argv)).collect();
    let last_test = known.iter().rposition(|k| *k);
    let taken = last_test
        .or_else(|| steps.iter().rposition(|s| !only_looks(&s.argv)))
        .unwrap_or(steps.len() - 1);
    for (at, step) in steps.iter_mut().enumerate() {
        step.task = if known[at] || at == taken {
            StepTask::Tests(runners::recognise(&step.argv))
        } else if at < taken && !only_looks(&step.argv) {
            StepTask::Build
        } else {
            StepTask::Check
        };
    }
}

/// A call of a package manager: which scripts, of which packages, with which further words.
#[derive(Debug, PartialEq, Eq)]
struct ScriptCall {
    scripts: Vec<String>,
    arguments: Vec<String>,
    every_package: bool,
}

impl ScriptCall {
    fn of(words: &[String], package: &Package) -> Option<Self> {
        let mut words = words;
        while words.first().is_some_and(|w| command::is_assignment(w)) {
            words = &words[1..];
        }
        match program(words) {
            "npm" | "pnpm" | "yarn" | "bun" => Self::by_manager(words, package),
            "run-s" | "run-p" | "npm-run-all" | "npm-run-all2" => {
                let names = words[1..].iter().filter(|w| !w.starts_with('-'));
                let scripts: Vec<String> = names.flat_map(|name| package.matching(name)).collect();
                (!scripts.is_empty()).then_some(Self {
                    scripts,
                    arguments: Vec::new(),
                    every_package: false,
                })
            }
            _ => None,
        }
    }

    fn by_manager(words: &[String], package: &Package) -> Option<Self> {
        let manager = program(words);
        let mut every_package = false;
        let mut rest = words[1..].iter();
        let mut name = None;
        for word in rest.by_ref() {
            match word.as_str() {
                "-r" | "--recursive" | "--workspaces" | "-ws" | "workspaces" | "foreach" => {
                    every_package = true
                }
                // A part of the packages, elsewhere: not ours to tell.
                "-w" | "--workspace" | "--filter" | "-F" | "-C" | "--prefix" | "--cwd" => {
                    return None;
                }
                "run" | "run-script" => {}
                word if word.starts_with('-') => {}
                word => {
                    name = Some(word.to_owned());
                    break;
                }
            }
        }
        let name = match (manager, name?) {
            // This is the runner of bun itself.
            ("bun", name) if name == "test" && words.get(1).is_some_and(|w| w == "test") => {
                return None;
            }
            (_, name) if matches!(name.as_str(), "t" | "tst") => String::from("test"),
            (_, name) => name,
        };
        let mut arguments: Vec<String> = rest.cloned().collect();
        if arguments
            .iter()
            .any(|a| matches!(a.as_str(), "--workspaces" | "-ws"))
        {
            every_package = true;
        }
        match arguments.iter().position(|a| a == "--") {
            // npm keeps what stands before the dashes to itself.
            Some(at) if manager == "npm" => drop(arguments.drain(..=at)),
            Some(at) => drop(arguments.remove(at)),
            None if manager == "npm" => arguments.clear(),
            None => {}
        }
        let scripts = if every_package {
            vec![name]
        } else {
            package.matching(&name)
        };
        (!scripts.is_empty()).then_some(Self {
            scripts,
            arguments,
            every_package,
        })
    }
}

struct ScriptReader<'a> {
    root: &'a Path,
}

impl ScriptReader<'_> {
    fn called(&self, dir: &Path, called: &ScriptCall, depth: usize) -> Option<Vec<SuiteStep>> {
        let mut steps = Vec::new();
        for name in &called.scripts {
            steps.extend(if called.every_package {
                self.workspace(dir, name, &called.arguments, depth + 1)?
            } else {
                self.script(
                    dir,
                    &Package::read(dir)?,
                    name,
                    &called.arguments,
                    depth + 1,
                )?
            });
        }
        (steps.len() <= MOST).then_some(steps)
    }

    fn workspace(
        &self,
        dir: &Path,
        name: &str,
        arguments: &[String],
        depth: usize,
    ) -> Option<Vec<SuiteStep>> {
        let mut steps = Vec::new();
        for member in Package::read(dir)?.members(MOST)? {
            if member.script(name).is_some() {
                steps.extend(self.script(&member.dir, &member, name, arguments, depth + 1)?);
            }
        }
        (!steps.is_empty() && steps.len() <= MOST).then_some(steps)
    }

    fn script(
        &self,
        dir: &Path,
        package: &Package,
        name: &str,
        arguments: &[String],
        depth: usize,
    ) -> Option<Vec<SuiteStep>> {
        if depth > DEEPEST {
            return None;
        }
        let mut steps = Vec::new();
        for (part, own) in [
            (format!("pre{name}"), false),
            (name.to_owned(), true),
            (format!("post{name}"), false),
        ] {
            let Some(line) = package.script(&part) else {
                continue;
            };
            let more = if own { arguments } else { &[] };
            steps.extend(self.line(dir, package, &part, line, more, depth)?);
        }
        (!steps.is_empty()).then_some(steps)
    }

    /// The commands of one line; `None` if only a shell could say what they are, and tests may be among them.
    fn line(
        &self,
        dir: &Path,
        package: &Package,
        name: &str,
        line: &str,
        arguments: &[String],
        depth: usize,
    ) -> Option<Vec<SuiteStep>> {
        let mut dir: PathBuf = dir.to_owned();
        let mut steps = Vec::new();
        let Ok(pieces) = split_chain(line) else {
            let whole = shell_line(line).filter(|_| arguments.is_empty())?;
            return Some(vec![step(&dir, package, name, &whole, &[])]);
        };
        let last = pieces.len().checked_sub(1)?;
        for (at, piece) in pieces.iter().enumerate() {
            let more = if at == last { arguments } else { &[] };
            if let [cd, to] = piece.words.as_slice()
                && cd == "cd"
            {
                dir = dir
                    .join(to)
                    .canonicalize()
                    .ok()
                    .filter(|d| d.starts_with(self.root))?;
                continue;
            }
            if !piece.needs_shell
                && let Some(here) = Package::read(&dir)
                && let Some(mut called) = ScriptCall::of(&piece.words, &here)
            {
                called.arguments.extend_from_slice(more);
                steps.extend(self.called(&dir, &called, depth)?);
                continue;
            }
            steps.push(step(&dir, package, name, piece, more));
        }
        Some(steps)
    }
}

/// A line that is no chain, such as `eclint check $(git ls-files | grep x)`, as one command of a shell. `None` if it may
/// run tests: what they showed would be lost in it.
fn shell_line(line: &str) -> Option<Piece> {
    let parts = line
        .split(['|', '&', ';', '(', ')', '`', '\n'])
        .map(shell_words::split);
    let runs_tests = |words: &Vec<String>| {
        runners::is_known(words)
            || matches!(
                program(words),
                "npm" | "pnpm" | "yarn" | "bun" | "run-s" | "run-p"
            )
    };
    if parts.flatten().any(|words| runs_tests(&words)) {
        return None;
    }
    Some(Piece {
        words: shell_words::split(line).ok()?,
        text: line.to_owned(),
        needs_shell: true,
    })
}

fn step(dir: &Path, package: &Package, script: &str, piece: &Piece, more: &[String]) -> SuiteStep {
    let mut around = StepSurroundings::of_node(dir);
    around.variables.extend(package.variables(script));
    let mut words = piece.words.clone();
    while !piece.needs_shell && words.first().is_some_and(|w| command::is_assignment(w)) {
        let (variable, value) = words[0]
            .split_once('=')
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .unwrap_or_default();
        around.variables.push((variable, value));
        words.remove(0);
    }
    words.extend_from_slice(more);
    if let Some(installed) = installed_tool(&words, &around) {
        words = installed;
    }
    // Nothing is shown twice here.
    words.retain(|w| !matches!(w.as_str(), "--watch" | "--watchAll" | "--watch-all"));
    let shell = piece.needs_shell.then(|| {
        let more = if more.is_empty() {
            String::new()
        } else {
            format!(" {}", command::typed(more))
        };
        format!("{}{more}", piece.text)
    });
    SuiteStep {
        shell,
        ..SuiteStep::new(words, dir)
    }
    .with_patterns(piece.patterns())
    .within(around)
}

/// A runner that stands in the project's packages needs no package manager to be started: `corepack pnpm jest` is `jest`.
fn installed_tool(words: &[String], around: &StepSurroundings) -> Option<Vec<String>> {
    const STARTERS: &[&str] = &["corepack", "npx", "pnpx", "bunx", "pnpm", "yarn", "npm"];
    STARTERS.contains(&program(words)).then_some(())?;
    let is_installed = |inner: &&[String]| {
        around
            .path
            .iter()
            .any(|dir| dir.join(program(inner)).exists())
    };
    command::unwrapped(words)
        .filter(is_installed)
        .find(|inner| runners::is_known(inner))
        .map(<[String]>::to_vec)
}

/// Scripts whose names match: by name, by `test:*` or, as pnpm has it, by `/^test:/`.
fn is_called(wanted: &str, name: &str) -> bool {
    if let Some(pattern) = wanted.strip_prefix('/').and_then(|w| w.strip_suffix('/')) {
        return Regex::new(pattern).is_ok_and(|p| p.is_match(name));
    }
    match wanted.split_once('*') {
        Some((before, after)) => {
            name.starts_with(before) && name.ends_with(after.trim_start_matches('*'))
        }
        None => wanted == name,
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::argv;
    use super::*;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("below")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        dir
    }

    fn commands(dir: &tempfile::TempDir, line: &str) -> Option<Vec<String>> {
        let root = dir.path().canonicalize().expect("there");
        let place = SearchPlace::for_tests(&root);
        let pieces = split_chain(line).expect("a chain");
        let mut steps = resolve(&place, &pieces[0])?;
        assign_tasks(&mut steps);
        let task = |s: &SuiteStep| match s.task {
            StepTask::Tests(runner) => runner.name,
            StepTask::Build => "build",
            StepTask::Check => "check",
        };
        let below = |s: &SuiteStep| {
            s.dir
                .strip_prefix(&root)
                .expect("below")
                .display()
                .to_string()
        };
        Some(
            steps
                .iter()
                .map(|s| {
                    format!("{}: {} {}", task(s), s.typed(), below(s))
                        .trim_end()
                        .to_owned()
                })
                .collect(),
        )
    }

    #[test]
    fn a_line_that_only_a_shell_can_run_hides_no_other() {
        let scripts = r#"{"scripts": {"pretest": "npm run lint", "lint": "eslint .", "postlint": "eclint check $(git ls-files | grep -v x)",
            "test": "mocha", "all": "mocha | tee log"}}"#;
        let dir = project(&[("package.json", scripts)]);
        let told = commands(&dir, "npm test").unwrap_or_default();
        assert_eq!(
            told,
            [
                "check: eslint .",
                "check: eclint check $(git ls-files | grep -v x)",
                "mocha: mocha"
            ]
        );
        assert_eq!(
            commands(&dir, "npm run all"),
            None,
            "its own exit code is lost in a pipe"
        );
    }

    #[test]
    fn the_commands_of_a_script_are_told_one_by_one() {
        let scripts = r#"{"scripts": {"pretest": "tsc -b", "test": "npm run lint && vitest run", "lint": "eslint . && prettier -c src",
            "all": "pnpm run \"/^test:.*/\"", "test:a": "tsc --noEmit", "test:b": "NODE_ENV=test mocha 'x y'", "loop": "npm run loop",
            "piped": "jest | tee log", "in": "cd web && jest", "shell": "jest $FLAGS", "s": "run-s test:*"}}"#;
        let dir = project(&[("package.json", scripts), ("web/package.json", "{}")]);
        let told = |line: &str| commands(&dir, line).unwrap_or_default();
        assert_eq!(
            told("npm test -- --bail"),
            [
                "build: tsc -b",
                "check: eslint .",
                "check: prettier -c src",
                "vitest: vitest run --bail"
            ]
        );
        assert_eq!(
            told("pnpm all"),
            ["check: tsc --noEmit", "mocha: mocha 'x y'"]
        );
        assert_eq!(told("yarn s"), told("pnpm all"));
        assert_eq!(told("npm run in"), ["jest: jest web"]);
        assert_eq!(told("npm run shell"), ["jest: jest $FLAGS"]);
        for line in [
            "npm run loop",
            "npm run piped",
            "npm install",
            "npm run nothing",
            "bun test",
            "make",
        ] {
            assert_eq!(commands(&dir, line), None, "{line}");
        }
    }

    #[test]
    fn an_installed_runner_needs_no_package_manager() {
        let dir = project(&[
            (
                "package.json",
                r#"{"scripts": {"test": "corepack pnpm jest ./*.js", "there": "yarn vitest run"}}"#,
            ),
            ("node_modules/.bin/jest", ""),
            ("a.js", ""),
        ]);
        assert_eq!(
            commands(&dir, "npm test"),
            Some(vec!["jest: jest ./*.js".into()])
        );
        assert_eq!(
            commands(&dir, "npm run there"),
            Some(vec!["vitest: yarn vitest run".into()]),
            "not installed here"
        );
    }

    #[test]
    fn the_packages_of_a_workspace_are_run_where_they_are() {
        let dir = project(&[
            (
                "package.json",
                r#"{"workspaces": ["packages/*"], "scripts": {"test": "npm test --workspaces --if-present"}}"#,
            ),
            (
                "packages/b/package.json",
                r#"{"scripts": {"test": "jest"}}"#,
            ),
            (
                "packages/a/package.json",
                r#"{"scripts": {"test": "node --test"}}"#,
            ),
            ("packages/c/package.json", "{}"),
        ]);
        assert_eq!(
            commands(&dir, "npm test"),
            Some(vec![
                "node_test: node --test packages/a".into(),
                "jest: jest packages/b".into()
            ])
        );
        std::fs::write(
            dir.path().join("pnpm-workspace.yaml"),
            "packages:\n  - 'packages/*'\n  - \"!packages/b\"\n",
        )
        .expect("written");
        std::fs::write(
            dir.path().join("package.json"),
            r#"{"scripts": {"test": "pnpm -r test"}}"#,
        )
        .expect("written");
        assert_eq!(
            commands(&dir, "pnpm test"),
            Some(vec!["node_test: node --test packages/a".into()])
        );
    }

    #[test]
    fn where_nothing_is_understood_the_last_command_is_taken_for_the_tests() {
        let mut steps: Vec<SuiteStep> = ["make", "./check.sh", "eslint ."]
            .map(|w| SuiteStep::new(argv(w), "/p"))
            .to_vec();
        assign_tasks(&mut steps);
        assert!(matches!(steps[0].task, StepTask::Build));
        assert!(matches!(steps[1].task, StepTask::Tests(r) if r.name == "generic"));
        assert!(matches!(steps[2].task, StepTask::Check));
    }
}
