//! Expands package manager scripts into the commands they run: `pnpm test` becomes `eslint .`, then `vitest run`.
//! Each command then runs on its own, in the environment the package manager would give it, so that the test command can
//! write a report and the others are classified by name. A script that cannot be expanded runs unchanged.

mod packages;

use std::path::{Path, PathBuf};

use regex::Regex;

pub(super) use packages::{Package, PackageManager};

use super::command::{self, ChainCommand, program, split_chain};
use super::detect::SearchPlace;
use super::runners;
use super::step::{StepEnvironment, StepTask, SuiteStep, is_read_only};

/// Nesting limit for scripts that call scripts. Deeper nesting means that a script calls itself.
const MAX_DEPTH: usize = 8;
/// Limit for the commands of one suite. A larger monorepo runs its script unchanged.
const MAX_STEPS: usize = 200;

/// The commands that a package manager call runs. `None` if the command is not such a call, cannot be expanded or runs
/// no known tests.
pub(super) fn resolve(place: &SearchPlace<'_>, piece: &ChainCommand) -> Option<Vec<SuiteStep>> {
    let reader = ScriptExpander { root: place.root };
    let call = ScriptCall::parse(&piece.words, &Package::read(place.dir)?)?;
    let steps = reader.call_steps(place.dir, &call, 0)?;
    steps
        .iter()
        .any(|step| runners::is_test_command(&step.argv))
        .then_some(steps)
}

/// The script files that the `test` script starts, for a `test` script that the package manager runs itself.
pub(super) fn scripts_started_by_manager(argv: &[String], dir: &Path) -> Vec<String> {
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
        .filter_map(|command| super::command::script_file(&command).map(str::to_owned))
        .collect()
}

/// The commands of the script `name` in this directory; `None` if none of them is a known test command.
pub(super) fn script_steps(place: &SearchPlace<'_>, name: &str) -> Option<Vec<SuiteStep>> {
    let reader = ScriptExpander { root: place.root };
    let steps = reader.script_steps(place.dir, &Package::read(place.dir)?, name, &[], 0)?;
    steps
        .iter()
        .any(|step| runners::is_test_command(&step.argv))
        .then_some(steps)
}

/// The commands of the `test` scripts of all packages of a workspace.
pub(super) fn workspace_steps(place: &SearchPlace<'_>) -> Option<Vec<SuiteStep>> {
    let steps = ScriptExpander { root: place.root }.workspace_steps(place.dir, "test", &[], 0)?;
    steps
        .iter()
        .any(|step| runners::is_test_command(&step.argv))
        .then_some(steps)
}

/// Sets the purpose of each command: known test commands, builds before them, and checks. If no test command is known,
/// the last command that is not a check is assumed to run the tests.
pub(super) fn assign_tasks(steps: &mut [SuiteStep]) {
    let is_known_test: Vec<bool> = steps
        .iter()
        .map(|s| runners::is_test_command(&s.argv))
        .collect();
    let last_test = is_known_test.iter().rposition(|k| *k);
    let main_test = last_test
        .or_else(|| steps.iter().rposition(|s| !is_read_only(&s.argv)))
        .unwrap_or(steps.len() - 1);
    for (at, step) in steps.iter_mut().enumerate() {
        step.task = if is_known_test[at] || at == main_test {
            StepTask::Tests(runners::runner_for(&step.argv))
        } else if at < main_test && !is_read_only(&step.argv) {
            StepTask::Build
        } else {
            StepTask::Check
        };
    }
}

/// A package manager call: which scripts to run, in which packages, with which extra arguments.
#[derive(Debug, PartialEq, Eq)]
struct ScriptCall {
    scripts: Vec<String>,
    arguments: Vec<String>,
    every_package: bool,
}

impl ScriptCall {
    fn parse(words: &[String], package: &Package) -> Option<Self> {
        let mut words = words;
        while words.first().is_some_and(|w| command::is_assignment(w)) {
            words = &words[1..];
        }
        match program(words) {
            "npm" | "pnpm" | "yarn" | "bun" => Self::parse_manager_call(words, package),
            "run-s" | "run-p" | "npm-run-all" | "npm-run-all2" => {
                let names = words[1..].iter().filter(|w| !w.starts_with('-'));
                let scripts: Vec<String> = names
                    .flat_map(|name| package.scripts_matching(name))
                    .collect();
                (!scripts.is_empty()).then_some(Self {
                    scripts,
                    arguments: Vec::new(),
                    every_package: false,
                })
            }
            _ => None,
        }
    }

    fn parse_manager_call(words: &[String], package: &Package) -> Option<Self> {
        let manager = program(words);
        let mut every_package = false;
        let mut rest = words[1..].iter();
        let mut name = None;
        for word in rest.by_ref() {
            match word.as_str() {
                "-r" | "--recursive" | "--workspaces" | "-ws" | "workspaces" | "foreach" => {
                    every_package = true;
                }
                // Selects other packages or directories, which is not supported.
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
            // `bun test` is bun's own test runner, not the script.
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
            // npm does not pass on the arguments before `--`.
            Some(at) if manager == "npm" => drop(arguments.drain(..=at)),
            Some(at) => drop(arguments.remove(at)),
            None if manager == "npm" => arguments.clear(),
            None => {}
        }
        let scripts = if every_package {
            vec![name]
        } else {
            package.scripts_matching(&name)
        };
        (!scripts.is_empty()).then_some(Self {
            scripts,
            arguments,
            every_package,
        })
    }
}

struct ScriptExpander<'a> {
    root: &'a Path,
}

impl ScriptExpander<'_> {
    fn call_steps(&self, dir: &Path, call: &ScriptCall, depth: usize) -> Option<Vec<SuiteStep>> {
        let mut steps = Vec::new();
        for name in &call.scripts {
            steps.extend(if call.every_package {
                self.workspace_steps(dir, name, &call.arguments, depth + 1)?
            } else {
                self.script_steps(dir, &Package::read(dir)?, name, &call.arguments, depth + 1)?
            });
        }
        (steps.len() <= MAX_STEPS).then_some(steps)
    }

    fn workspace_steps(
        &self,
        dir: &Path,
        name: &str,
        arguments: &[String],
        depth: usize,
    ) -> Option<Vec<SuiteStep>> {
        let mut steps = Vec::new();
        for member in Package::read(dir)?.members(MAX_STEPS)? {
            if member.script(name).is_some() {
                steps.extend(self.script_steps(
                    &member.dir,
                    &member,
                    name,
                    arguments,
                    depth + 1,
                )?);
            }
        }
        (!steps.is_empty() && steps.len() <= MAX_STEPS).then_some(steps)
    }

    fn script_steps(
        &self,
        dir: &Path,
        package: &Package,
        name: &str,
        arguments: &[String],
        depth: usize,
    ) -> Option<Vec<SuiteStep>> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut steps = Vec::new();
        for (script, is_main) in [
            (format!("pre{name}"), false),
            (name.to_owned(), true),
            (format!("post{name}"), false),
        ] {
            let Some(line) = package.script(&script) else {
                continue;
            };
            let more = if is_main { arguments } else { &[] };
            steps.extend(self.line_steps(dir, package, &script, line, more, depth)?);
        }
        (!steps.is_empty()).then_some(steps)
    }

    /// The commands of one script line; `None` if only a shell can split it and it may run tests.
    fn line_steps(
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
            let command = as_shell_command(line).filter(|_| arguments.is_empty())?;
            return Some(vec![build_step(&dir, package, name, &command, &[])]);
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
                && let Some(package_here) = Package::read(&dir)
                && let Some(mut call) = ScriptCall::parse(&piece.words, &package_here)
            {
                call.arguments.extend_from_slice(more);
                steps.extend(self.call_steps(&dir, &call, depth)?);
                continue;
            }
            steps.push(build_step(&dir, package, name, piece, more));
        }
        Some(steps)
    }
}

/// Treats a line that is not a plain chain, such as `eclint check $(git ls-files | grep x)`, as one shell command. `None`
/// if it may run tests, because their results would be lost.
fn as_shell_command(line: &str) -> Option<ChainCommand> {
    let parts = line
        .split(['|', '&', ';', '(', ')', '`', '\n'])
        .map(shell_words::split);
    let runs_tests = |words: &Vec<String>| {
        runners::is_test_command(words)
            || matches!(
                program(words),
                "npm" | "pnpm" | "yarn" | "bun" | "run-s" | "run-p"
            )
    };
    if parts.flatten().any(|words| runs_tests(&words)) {
        return None;
    }
    Some(ChainCommand {
        words: shell_words::split(line).ok()?,
        text: line.to_owned(),
        needs_shell: true,
    })
}

fn build_step(
    dir: &Path,
    package: &Package,
    script: &str,
    piece: &ChainCommand,
    more: &[String],
) -> SuiteStep {
    let mut environment = StepEnvironment::for_node(dir);
    environment.variables.extend(package.variables(script));
    let mut words = piece.words.clone();
    while !piece.needs_shell && words.first().is_some_and(|w| command::is_assignment(w)) {
        let (variable, value) = words[0]
            .split_once('=')
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .unwrap_or_default();
        environment.variables.push((variable, value));
        words.remove(0);
    }
    words.extend_from_slice(more);
    if let Some(installed) = installed_tool(&words, &environment) {
        words = installed;
    }
    // Watch mode would never end.
    words.retain(|w| !matches!(w.as_str(), "--watch" | "--watchAll" | "--watch-all"));
    let shell = piece.needs_shell.then(|| {
        let more = if more.is_empty() {
            String::new()
        } else {
            format!(" {}", command::to_command_line(more))
        };
        format!("{}{more}", piece.text)
    });
    SuiteStep {
        shell,
        ..SuiteStep::new(words, dir)
    }
    .with_patterns(piece.patterns())
    .with_environment(environment)
}

/// A runner installed in `node_modules` can be started without the package manager: `jest` for `corepack pnpm jest`.
fn installed_tool(words: &[String], environment: &StepEnvironment) -> Option<Vec<String>> {
    const STARTERS: &[&str] = &["corepack", "npx", "pnpx", "bunx", "pnpm", "yarn", "npm"];
    STARTERS.contains(&program(words)).then_some(())?;
    let is_installed = |inner: &&[String]| {
        environment
            .path
            .iter()
            .any(|dir| dir.join(program(inner)).exists())
    };
    command::inner_commands(words)
        .filter(is_installed)
        .find(|inner| runners::is_test_command(inner))
        .map(<[String]>::to_vec)
}

/// Whether a script name matches: a plain name, a glob `test:*` or a pnpm regular expression `/^test:/`.
fn script_name_matches(wanted: &str, name: &str) -> bool {
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
        let dir = tempfile::tempdir().expect("a temporary directory");
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("inside the root"))
                .expect("the directory is created");
            std::fs::write(path, text).expect("the file is written");
        }
        dir
    }

    fn commands(dir: &tempfile::TempDir, line: &str) -> Option<Vec<String>> {
        let root = dir.path().canonicalize().expect("the path exists");
        let place = SearchPlace::for_tests(&root);
        let pieces = split_chain(line).expect("a command chain");
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
                .expect("inside the root")
                .display()
                .to_string()
        };
        Some(
            steps
                .iter()
                .map(|s| {
                    format!("{}: {} {}", task(s), s.command_line(), below(s))
                        .trim_end()
                        .to_owned()
                })
                .collect(),
        )
    }

    #[test]
    fn shell_only_line_keeps_other_commands() {
        let scripts = r#"{"scripts": {"pretest": "npm run lint", "lint": "eslint .", "postlint": "eclint check $(git ls-files | grep -v x)",
            "test": "mocha", "all": "mocha | tee log"}}"#;
        let dir = project(&[("package.json", scripts)]);
        let found = commands(&dir, "npm test").unwrap_or_default();
        assert_eq!(
            found,
            [
                "check: eslint .",
                "check: eclint check $(git ls-files | grep -v x)",
                "mocha: mocha"
            ]
        );
        assert_eq!(
            commands(&dir, "npm run all"),
            None,
            "a pipe hides the exit code"
        );
    }

    #[test]
    fn script_is_expanded_into_its_commands() {
        let scripts = r#"{"scripts": {"pretest": "tsc -b", "test": "npm run lint && vitest run", "lint": "eslint . && prettier -c src",
            "all": "pnpm run \"/^test:.*/\"", "test:a": "tsc --noEmit", "test:b": "NODE_ENV=test mocha 'x y'", "loop": "npm run loop",
            "piped": "jest | tee log", "in": "cd web && jest", "shell": "jest $FLAGS", "s": "run-s test:*"}}"#;
        let dir = project(&[("package.json", scripts), ("web/package.json", "{}")]);
        let expand = |line: &str| commands(&dir, line).unwrap_or_default();
        assert_eq!(
            expand("npm test -- --bail"),
            [
                "build: tsc -b",
                "check: eslint .",
                "check: prettier -c src",
                "vitest: vitest run --bail"
            ]
        );
        assert_eq!(
            expand("pnpm all"),
            ["check: tsc --noEmit", "mocha: mocha 'x y'"]
        );
        assert_eq!(expand("yarn s"), expand("pnpm all"));
        assert_eq!(expand("npm run in"), ["jest: jest web"]);
        assert_eq!(expand("npm run shell"), ["jest: jest $FLAGS"]);
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
    fn installed_runner_needs_no_package_manager() {
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
    fn workspace_packages_run_in_their_own_directories() {
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
        .expect("the file is written");
        std::fs::write(
            dir.path().join("package.json"),
            r#"{"scripts": {"test": "pnpm -r test"}}"#,
        )
        .expect("the file is written");
        assert_eq!(
            commands(&dir, "pnpm test"),
            Some(vec!["node_test: node --test packages/a".into()])
        );
    }

    #[test]
    fn last_command_runs_tests_if_none_is_known() {
        let mut steps: Vec<SuiteStep> = ["make", "./check.sh", "eslint ."]
            .map(|w| SuiteStep::new(argv(w), "/p"))
            .to_vec();
        assign_tasks(&mut steps);
        assert!(matches!(steps[0].task, StepTask::Build));
        assert!(matches!(steps[1].task, StepTask::Tests(r) if r.name == "generic"));
        assert!(matches!(steps[2].task, StepTask::Check));
    }
}
