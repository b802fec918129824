//! Detects how a Python project is tested from its environments, lock files, configuration and test files.

use std::path::{Path, PathBuf};

use toml::Value;

use super::super::super::command::{ChainCommand, split_chain};
use super::super::super::detect::{Confidence, FoundSuite, SearchPlace};
use super::super::super::protected::{FileRole, role};
use super::super::super::step::{StepEnvironment, SuiteStep};
use super::super::{Runner, unittest};
use super::environment::{PythonEnvironment, environments};
use supervisor_languages::PYTHON;

/// Files that mark a directory as a Python project, in order of priority.
const MANIFESTS: &[&str] = &[
    "pyproject.toml",
    "pytest.ini",
    ".pytest.ini",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "noxfile.py",
    "manage.py",
    "requirements.txt",
];

/// Files in which a project may require or configure pytest.
const PYTEST_CONFIG_FILES: &[&str] = &[
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "noxfile.py",
    "setup.py",
    "Pipfile",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-test.txt",
    "dev-requirements.txt",
    "test-requirements.txt",
    "requirements/dev.txt",
    "requirements/tests.txt",
    "conftest.py",
    "tests/conftest.py",
    "test/conftest.py",
];

/// Tools that manage the environment: their files, their table in `pyproject.toml`, and their command prefix.
const ENV_MANAGERS: &[(&[&str], &str, &[&str])] = &[
    (&["uv.lock"], "tool.uv", &["uv", "run"]),
    (&["poetry.lock"], "tool.poetry", &["poetry", "run"]),
    (&["pdm.lock"], "tool.pdm", &["pdm", "run"]),
    (&["Pipfile.lock", "Pipfile"], "", &["pipenv", "run"]),
    (&["hatch.toml"], "tool.hatch.envs", &["hatch", "run"]),
];

pub(super) fn find(_: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    let manifest = MANIFESTS.iter().find(|m| place.has(m));
    let tests = TestFiles::find_in(place.dir);
    let confidence = match (manifest, tests.first()) {
        (None, None) => return None,
        (None, Some(_)) => Confidence::TestFilesOnly,
        // A list of packages alone does not make a project with tests.
        (Some(&"requirements.txt"), None) => return None,
        (Some(_), Some(_)) => Confidence::Explicit,
        (Some(_), None) if wants_pytest(place, &tests) => Confidence::Explicit,
        (Some(_), None) => Confidence::ManifestOnly,
    };
    let found_by = manifest
        .map(|m| (*m).to_owned())
        .or_else(|| tests.first().map(|p| p.display().to_string()))?;
    let environments = environments(place);
    let mut suite = FoundSuite::new(choose_step(place, &tests, &environments), found_by)
        .with_confidence(confidence);
    for broken in environments.iter().filter(|e| !e.is_usable) {
        let dir = broken
            .dir
            .strip_prefix(place.dir)
            .unwrap_or(&broken.dir)
            .display();
        suite.notes.push(format!(
            "the interpreter of `{dir}` is gone, so that environment is not used; make it anew"
        ));
    }
    Some(suite)
}

/// Chooses the command. The first matching case wins.
fn choose_step(
    place: &SearchPlace<'_>,
    tests: &TestFiles,
    environments: &[PythonEnvironment],
) -> SuiteStep {
    let step = |words: Vec<String>| SuiteStep::new(words, place.dir);
    let usable = || environments.iter().filter(|e| e.is_usable);
    let wants_pytest = wants_pytest(place, tests);
    let python = usable().next();
    let interpreter = python.map_or_else(
        || system_python(place),
        |env| env.program(place.dir, "python"),
    );
    let environment = python
        .map(PythonEnvironment::step_environment)
        .unwrap_or_default();
    let stated = tox_step(place, &interpreter, &environment);
    // `python -m pytest` can import from the current directory, `pytest` cannot.
    let needs_python = stated
        .as_ref()
        .is_some_and(|step| step.argv.windows(2).any(|two| two == ["-m", "pytest"]));
    let stated = stated.filter(|_| !wants_pytest);
    // A command stated by the project takes precedence over an installed pytest.
    let states_unittest = stated
        .as_ref()
        .is_some_and(|step| (unittest::RUNNER.recognises)(&step.argv));
    if !states_unittest && let Some(env) = usable().find(|e| e.has_pytest()) {
        let program = if !needs_python && env.dir.join("bin/pytest").is_file() {
            vec![env.program(place.dir, "pytest")]
        } else {
            words([&env.program(place.dir, "python"), "-m", "pytest"])
        };
        return step(tests.append_uncollected_files(place, program))
            .with_environment(env.step_environment());
    }
    if wants_pytest && let Some(argv) = env_manager_command(place) {
        return step(argv);
    }
    if wants_pytest && python.is_some() {
        return step(tests.append_uncollected_files(place, words([&interpreter, "-m", "pytest"])))
            .with_environment(environment);
    }
    if let Some(stated) = stated {
        return stated;
    }
    if !wants_pytest && place.has("manage.py") {
        return step(words([&interpreter, "manage.py", "test"])).with_environment(environment);
    }
    if place.has_program("pytest") && python.is_none() {
        return step(tests.append_uncollected_files(place, words(["pytest"])));
    }
    if !wants_pytest && !tests.files.is_empty() {
        return step(unittest::test_command(&interpreter, &tests.files))
            .with_environment(environment);
    }
    // Nothing matches: run what a user would try, so that its error message is shown.
    match environments.first() {
        Some(broken) if python.is_none() => step(words([
            &broken.program(place.dir, "python"),
            "-m",
            "pytest",
        ])),
        _ => step(words(["pytest"])),
    }
}

fn system_python(place: &SearchPlace<'_>) -> String {
    let known = ["python3", "python"]
        .into_iter()
        .find(|p| place.has_program(p));
    known.unwrap_or("python3").to_owned()
}

/// Whether the project requires pytest, by its configuration or its test files.
fn wants_pytest(place: &SearchPlace<'_>, tests: &TestFiles) -> bool {
    // These files are used only by pytest, whatever they contain.
    let is_pytest_file = |name: &&str| {
        (name.ends_with("conftest.py") || name.ends_with("pytest.ini")) && place.has(name)
    };
    PYTEST_CONFIG_FILES.iter().any(|name| {
        is_pytest_file(name) || place.read(name).is_some_and(|text| text.contains("pytest"))
    }) || tests
        .files
        .iter()
        .take(20)
        .filter_map(|file| place.read(&file.to_string_lossy()))
        .any(|text| text.contains("import pytest") || has_test_functions(&text))
}

/// Whether a file has test functions outside of classes, which unittest would not find.
fn has_test_functions(text: &str) -> bool {
    let is_test_function = |line: &str| line.trim_start_matches("async ").starts_with("def test_");
    text.lines().any(is_test_function) && !text.contains("TestCase")
}

/// The command that runs pytest through the tool that manages the environment, if that tool is installed.
fn env_manager_command(place: &SearchPlace<'_>) -> Option<Vec<String>> {
    let pyproject: Value = place
        .read("pyproject.toml")
        .and_then(|t| toml::from_str(&t).ok())
        .unwrap_or(Value::Boolean(false));
    let has_table = |path: &str| {
        !path.is_empty()
            && path
                .split('.')
                .try_fold(&pyproject, |v, key| v.get(key))
                .is_some()
    };
    let is_used = |files: &[&str], table: &str| {
        files
            .iter()
            .any(|f| place.ancestors().any(|d| d.join(f).is_file()))
            || has_table(table)
    };
    let (_, _, run) = ENV_MANAGERS
        .iter()
        .find(|(files, table, run)| is_used(files, table) && place.has_program(run[0]))?;
    let mut argv: Vec<String> = run.iter().map(|w| (*w).to_owned()).collect();
    match run[0] {
        "uv" => argv.extend(pytest_group_options(&pyproject)),
        "hatch" => {
            argv.push(hatch_program(&pyproject));
            return Some(argv);
        }
        _ => {}
    }
    argv.push(String::from("pytest"));
    Some(argv)
}

/// The options that include pytest, if it is in a dependency group or extra that uv does not install by default.
fn pytest_group_options(pyproject: &Value) -> Vec<String> {
    let tables_with_pytest = |table: Option<&Value>| {
        let entries = table.and_then(Value::as_table).into_iter().flatten();
        let includes_pytest = |list: &Value| {
            list.as_array()
                .is_some_and(|l| l.iter().filter_map(Value::as_str).any(is_pytest))
        };
        entries
            .filter(|(_, list)| includes_pytest(list))
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    let groups = tables_with_pytest(pyproject.get("dependency-groups"));
    let extras = tables_with_pytest(
        pyproject
            .get("project")
            .and_then(|p| p.get("optional-dependencies")),
    );
    match (
        groups.iter().any(|g| g == "dev"),
        groups.first(),
        extras.first(),
    ) {
        (true, _, _) | (_, None, None) => Vec::new(),
        (_, Some(group), _) => vec![String::from("--group"), group.clone()],
        (_, None, Some(extra)) => vec![String::from("--extra"), extra.clone()],
    }
}

fn is_pytest(requirement: &str) -> bool {
    requirement.strip_prefix("pytest").is_some_and(|rest| {
        !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_')
    })
}

/// `pytest`, prefixed with the hatch environment that includes it.
fn hatch_program(pyproject: &Value) -> String {
    let envs = pyproject
        .get("tool")
        .and_then(|t| t.get("hatch"))
        .and_then(|h| h.get("envs"))
        .and_then(Value::as_table);
    let includes_pytest = |env: &Value, key: &str| {
        env.get(key)
            .and_then(Value::as_array)
            .is_some_and(|l| l.iter().filter_map(Value::as_str).any(is_pytest))
    };
    let with_pytest = envs.into_iter().flatten().find(|(_, env)| {
        includes_pytest(env, "dependencies") || includes_pytest(env, "extra-dependencies")
    });
    match with_pytest.map(|(name, _)| name.as_str()) {
        None | Some("default") => String::from("pytest"),
        Some(env) => format!("{env}:pytest"),
    }
}

/// The command that `tox` would run, if it is a single plain command that needs no tox environment.
fn tox_step(
    place: &SearchPlace<'_>,
    python: &str,
    environment: &StepEnvironment,
) -> Option<SuiteStep> {
    let text = place.read("tox.ini")?;
    let section = text
        .split("\n[")
        .find(|s| s.trim_start_matches('[').starts_with("testenv]"))?;
    let mut value = String::new();
    let (mut dir, mut inside): (PathBuf, bool) = (place.dir.to_owned(), false);
    for line in section.lines().skip(1) {
        let key = line
            .split_once('=')
            .filter(|(k, _)| !k.starts_with([' ', '\t', '#']))
            .map(|(k, v)| (k.trim(), v.trim()));
        match key {
            Some(("commands", first)) => {
                inside = true;
                value = first.to_owned();
            }
            Some(("changedir" | "change_dir", to)) => dir = place.dir.join(to),
            Some(_) => inside = false,
            None if inside && value.is_empty() => value = line.trim().to_owned(),
            None if inside && value.ends_with('\\') => {
                value.pop();
                value += line.trim();
            }
            None => {}
        }
    }
    let value = default_posargs(&value)
        .replace("{envpython}", python)
        .replace("{toxinidir}/", "");
    let chain = split_chain(&value)
        .ok()
        .filter(|_| !value.contains(['{', '}']))?;
    let [
        ChainCommand {
            words,
            needs_shell: false,
            ..
        },
    ] = chain.as_slice()
    else {
        return None;
    };
    let mut words = without_coverage(words);
    if matches!(words[0].as_str(), "python" | "python3") {
        words[0] = python.to_owned();
    }
    // A relative program path must be absolute if the command runs in another directory.
    if words[0].contains('/') && !words[0].starts_with('/') && dir != place.dir {
        words[0] = place.dir.join(&words[0]).display().to_string();
    }
    dir.is_dir()
        .then(|| SuiteStep::new(words, dir).with_environment(environment.clone()))
}

/// `{posargs}` and `{posargs:DEFAULT}` without arguments.
fn default_posargs(command: &str) -> String {
    let mut text = command.replace("{posargs}", "");
    while let Some(start) = text.find("{posargs:") {
        let Some(end) = text[start..].find('}') else {
            break;
        };
        let default = text[start + "{posargs:".len()..start + end].to_owned();
        text.replace_range(start..=start + end, &default);
    }
    text
}

/// A command that measures coverage, without that: `python -m pytest` for `coverage run --branch -m pytest` and for
/// `python -W error -m coverage run -m pytest`. The tests do not need it, and it is often not installed.
fn without_coverage(command: &[String]) -> Vec<String> {
    let is_run = |at: usize| {
        command[at] == "coverage" && command.get(at + 1).is_some_and(|word| word == "run")
    };
    let Some(at) = (0..command.len()).find(|at| is_run(*at)) else {
        return command.to_vec();
    };
    // `coverage run script.py` stays: what the script needs is unknown.
    let Some(module) = command[at..].iter().position(|word| word == "-m") else {
        return command.to_vec();
    };
    let python = command[..at].first().map_or("python", String::as_str);
    let mut words = vec![python.to_owned()];
    words.extend_from_slice(&command[at + module..]);
    words
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// Files named like tests, in a directory and in its `tests` and `test` subdirectories.
struct TestFiles {
    /// Relative to the directory.
    files: Vec<PathBuf>,
}

impl TestFiles {
    fn find_in(dir: &Path) -> Self {
        const MAX_FILES: usize = 200;
        let mut files = Vec::new();
        for below in ["", "tests", "test"] {
            let names = dir
                .join(below)
                .read_dir()
                .into_iter()
                .flatten()
                .flatten()
                .map(|e| Path::new(below).join(e.file_name()));
            files.extend(
                names
                    .filter(|p| is_test(p) && dir.join(p).is_file())
                    .take(MAX_FILES),
            );
        }
        files.sort();
        Self { files }
    }

    /// Appends the test files if pytest would not collect them. It collects `test_*.py` and `*_test.py`; a project whose
    /// only tests are in `test.py` and which configures nothing else needs the file name on the command line.
    fn append_uncollected_files(
        &self,
        place: &SearchPlace<'_>,
        mut argv: Vec<String>,
    ) -> Vec<String> {
        const MAX_ENTRIES: usize = 20_000;
        let is_configured = || {
            let configures_collection =
                |text: String| text.contains("testpaths") || text.contains("python_files");
            PYTEST_CONFIG_FILES
                .iter()
                .any(|name| place.read(name).is_some_and(configures_collection))
        };
        let is_collected = |name: &str| {
            name.strip_suffix(".py")
                .is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
        };
        let walk = || {
            ignore::WalkBuilder::new(place.dir)
                .require_git(false)
                .build()
                .flatten()
                .take(MAX_ENTRIES)
        };
        if !self.files.is_empty()
            && !is_configured()
            && !walk().any(|entry| entry.file_name().to_str().is_some_and(is_collected))
        {
            argv.extend(self.files.iter().map(|file| file.display().to_string()));
        }
        argv
    }

    fn first(&self) -> Option<&PathBuf> {
        self.files.first()
    }
}

fn is_test(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.extension().is_some_and(|e| e == "py")
        && role(Some(&PYTHON), path) == FileRole::Test
        && (stem.starts_with("test") || stem.ends_with("_test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("inside the root"))
                .expect("the directory is created");
            std::fs::write(&path, text).expect("the file is written");
            if path.parent().is_some_and(|p| p.ends_with("bin")) {
                use std::os::unix::fs::PermissionsExt as _;
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
                    .expect("the permission is set");
            }
        }
        dir
    }

    /// The detected command, with these programs on the PATH.
    fn found(files: &[(&str, &str)], programs: &[&str]) -> String {
        let dir = project(files);
        let root = dir.path().canonicalize().expect("the path exists");
        let made: Vec<(String, &str)> = programs.iter().map(|p| (format!("bin/{p}"), "")).collect();
        let tools = project(
            &made
                .iter()
                .map(|(p, t)| (p.as_str(), *t))
                .collect::<Vec<_>>(),
        );
        let path = tools.path().join("bin");
        let place = SearchPlace {
            path: path.as_os_str(),
            ..SearchPlace::for_tests(&root)
        };
        let Some(suite) = find(&super::super::RUNNER, &place) else {
            return String::from("nothing");
        };
        let below = suite.steps[0]
            .dir
            .strip_prefix(&root)
            .expect("inside the root")
            .display()
            .to_string();
        let runner = suite.steps[0].runner().expect("about tests").name;
        format!("{runner}: {} {below}", suite.steps[0].command_line())
            .trim_end()
            .to_owned()
    }

    #[test]
    fn command_depends_on_project_files() {
        let test = ("tests/test_a.py", "import pytest");
        let plain = ("test_a.py", "import unittest");
        let (python, lib) = (
            ".venv/bin/python",
            ".venv/lib/python3.12/site-packages/pytest/__init__.py",
        );
        let groups = (
            "pyproject.toml",
            "[dependency-groups]\ntests = [\"pytest>=8\"]\ndocs = [\"pytest-x\"]\n",
        );
        for (files, programs, expected) in [
            (&[test][..], &["pytest"][..], "pytest: pytest"),
            (
                &[test, (python, ""), (lib, ""), (".venv/bin/pytest", "")],
                &["pytest", "uv"],
                "pytest: .venv/bin/pytest",
            ),
            (
                &[test, (python, ""), (lib, "")],
                &["pytest"],
                "pytest: .venv/bin/python -m pytest",
            ),
            (
                &[test, (python, "")],
                &["pytest"],
                "pytest: .venv/bin/python -m pytest",
            ),
            (
                &[test, groups, ("uv.lock", "")],
                &["uv", "pytest"],
                "pytest: uv run --group tests pytest",
            ),
            (
                &[test, ("poetry.lock", "")],
                &["poetry", "pytest"],
                "pytest: poetry run pytest",
            ),
            (&[test, ("poetry.lock", "")], &["pytest"], "pytest: pytest"),
            (
                &[("test.py", "import pytest")],
                &["pytest"],
                "pytest: pytest test.py",
            ),
            (
                &[("test.py", "import pytest"), ("shop/tests/test_a.py", "")],
                &["pytest"],
                "pytest: pytest",
            ),
            (
                &[
                    test,
                    (
                        "pyproject.toml",
                        "[tool.hatch.envs.t]\ndependencies = [\"pytest\"]",
                    ),
                ],
                &["hatch"],
                "pytest: hatch run t:pytest",
            ),
            (&[plain], &["python3"], "unittest: python3 -m unittest"),
            (&[plain], &["python3", "pytest"], "pytest: pytest"),
            (
                &[("test_a.py", "def test_a():\n    pass\n")],
                &["python3"],
                "pytest: pytest",
            ),
            (
                &[(
                    "test_a.py",
                    "class A(TestCase):\n    pass\n\n\ndef test_suite():\n    return A\n",
                )],
                &["python3"],
                "unittest: python3 -m unittest",
            ),
            (
                &[plain, (python, "")],
                &["pytest"],
                "unittest: .venv/bin/python -m unittest",
            ),
            (
                &[("manage.py", "")],
                &["python3", "pytest"],
                "django: python3 manage.py test",
            ),
            (
                &[
                    ("pyproject.toml", ""),
                    (
                        "tox.ini",
                        "[tox]\nx = 1\n[testenv]\nchangedir = tests\ncommands =\n    {envpython} runtests.py {posargs}\n",
                    ),
                    ("tests/runtests.py", ""),
                ],
                &["python3"],
                "django: python3 runtests.py tests",
            ),
            (
                &[
                    plain,
                    (
                        "tox.ini",
                        "[testenv]\ncommands = {envpython} -m unittest -v {posargs}\n",
                    ),
                    (python, ""),
                    (lib, ""),
                ],
                &["python3", "pytest"],
                "unittest: .venv/bin/python -m unittest -v",
            ),
            (
                &[
                    plain,
                    (
                        "tox.ini",
                        "[testenv]\ncommands =\n    coverage run --source=x -m unittest discover {toxinidir}/tests\n    coverage xml\n",
                    ),
                    (python, ""),
                    (lib, ""),
                ],
                &["python3"],
                "unittest: .venv/bin/python -m unittest discover tests",
            ),
            (
                &[
                    plain,
                    (
                        "tox.ini",
                        "[testenv]\ncommands =\n    python \\\n      -W error \\\n      -m coverage run \\\n      -m pytest {posargs:tests}\n",
                    ),
                    (python, ""),
                    (lib, ""),
                ],
                &["python3"],
                "pytest: .venv/bin/python -m pytest",
            ),
            (&[("requirements.txt", "flask")], &["pytest"], "nothing"),
            (&[("README.md", "")], &["pytest"], "nothing"),
        ] {
            assert_eq!(found(files, programs), expected, "{files:?}");
        }
    }
}
