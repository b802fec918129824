//! How a Python project is tested, by what lies about: its environments, its lock files, its configuration, and the test
//! files themselves.

use std::path::{Path, PathBuf};

use toml::Value;

use super::super::super::command::{Piece, split_chain};
use super::super::super::detect::{FoundSuite, SearchPlace, Strength};
use super::super::super::sealed::{FileRole, role};
use super::super::super::step::{StepSurroundings, SuiteStep};
use super::super::{Runner, unittest};
use super::environment::{PythonEnvironment, environments};
use supervisor_languages::PYTHON;

/// What says that a directory is a Python project, first one first.
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

/// Where a project may say that it needs pytest, or how it is to behave.
const TELLS_OF_PYTEST: &[&str] = &[
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

/// Tools that keep the environment themselves: what they leave, and how they run a program in it.
const MANAGED: &[(&[&str], &str, &[&str])] = &[
    (&["uv.lock"], "tool.uv", &["uv", "run"]),
    (&["poetry.lock"], "tool.poetry", &["poetry", "run"]),
    (&["pdm.lock"], "tool.pdm", &["pdm", "run"]),
    (&["Pipfile.lock", "Pipfile"], "", &["pipenv", "run"]),
    (&["hatch.toml"], "tool.hatch.envs", &["hatch", "run"]),
];

pub(super) fn find(_: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    let manifest = MANIFESTS.iter().find(|m| place.has(m));
    let tests = TestFiles::of(place.dir);
    let strength = match (manifest, tests.first()) {
        (None, None) => return None,
        (None, Some(_)) => Strength::FilesOnly,
        // A list of packages alone makes no project of tests.
        (Some(&"requirements.txt"), None) => return None,
        (Some(_), Some(_)) => Strength::Stated,
        (Some(_), None) if wants_pytest(place, &tests) => Strength::Stated,
        (Some(_), None) => Strength::Nominal,
    };
    let because = manifest
        .map(|m| (*m).to_owned())
        .or_else(|| tests.first().map(|p| p.display().to_string()))?;
    let environments = environments(place);
    let mut suite =
        FoundSuite::of(step(place, &tests, &environments), because).with_strength(strength);
    for gone in environments.iter().filter(|e| !e.works) {
        let dir = gone
            .dir
            .strip_prefix(place.dir)
            .unwrap_or(&gone.dir)
            .display();
        suite.notes.push(format!(
            "the interpreter of `{dir}` is gone, so that environment is not used; make it anew"
        ));
    }
    Some(suite)
}

/// The command, by the first of these that fits.
fn step(
    place: &SearchPlace<'_>,
    tests: &TestFiles,
    environments: &[PythonEnvironment],
) -> SuiteStep {
    let at = |words: Vec<String>| SuiteStep::new(words, place.dir);
    let working = || environments.iter().filter(|e| e.works);
    let wanted = wants_pytest(place, tests);
    let python = working().next();
    let interpreter =
        python.map_or_else(|| own_python(place), |env| env.program(place.dir, "python"));
    let around = python
        .map(PythonEnvironment::surroundings)
        .unwrap_or_default();
    let stated = if wanted {
        None
    } else {
        of_tox(place, &interpreter, &around)
    };
    // What the project says it runs counts for more than what happens to be installed beside it.
    let says_unittest = stated
        .as_ref()
        .is_some_and(|step| (unittest::RUNNER.recognises)(&step.argv));
    if !says_unittest && let Some(env) = working().find(|e| e.has_pytest()) {
        let program = if env.dir.join("bin/pytest").is_file() {
            vec![env.program(place.dir, "pytest")]
        } else {
            words([&env.program(place.dir, "python"), "-m", "pytest"])
        };
        return at(tests.named_for_pytest(place, program)).within(env.surroundings());
    }
    if wanted && let Some(argv) = managed(place) {
        return at(argv);
    }
    if wanted && python.is_some() {
        return at(tests.named_for_pytest(place, words([&interpreter, "-m", "pytest"])))
            .within(around);
    }
    if let Some(stated) = stated {
        return stated;
    }
    if !wanted && place.has("manage.py") {
        return at(words([&interpreter, "manage.py", "test"])).within(around);
    }
    if place.has_program("pytest") && python.is_none() {
        return at(tests.named_for_pytest(place, words(["pytest"])));
    }
    if !wanted && !tests.files.is_empty() {
        return at(unittest::command(&interpreter, &tests.files)).within(around);
    }
    // Nothing fits: what a person would try, and its own message.
    match environments.first() {
        Some(gone) if python.is_none() => {
            at(words([&gone.program(place.dir, "python"), "-m", "pytest"]))
        }
        _ => at(words(["pytest"])),
    }
}

fn own_python(place: &SearchPlace<'_>) -> String {
    let known = ["python3", "python"]
        .into_iter()
        .find(|p| place.has_program(p));
    known.unwrap_or("python3").to_owned()
}

/// Is pytest named anywhere that counts?
fn wants_pytest(place: &SearchPlace<'_>, tests: &TestFiles) -> bool {
    // These are about nothing else, whatever they say.
    let named = |name: &&str| {
        (name.ends_with("conftest.py") || name.ends_with("pytest.ini")) && place.has(name)
    };
    TELLS_OF_PYTEST
        .iter()
        .any(|name| named(name) || place.read(name).is_some_and(|text| text.contains("pytest")))
        || tests
            .files
            .iter()
            .take(20)
            .filter_map(|file| place.read(&file.to_string_lossy()))
            .any(|text| text.contains("import pytest") || has_bare_tests(&text))
}

/// Functions for tests: unittest would find nothing in such a file.
fn has_bare_tests(text: &str) -> bool {
    let is_bare = |line: &str| line.trim_start_matches("async ").starts_with("def test_");
    text.lines().any(is_bare) && !text.contains("TestCase")
}

/// By the tool that keeps the environment, where it is there to be asked.
fn managed(place: &SearchPlace<'_>) -> Option<Vec<String>> {
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
            .any(|f| place.upwards().any(|d| d.join(f).is_file()))
            || has_table(table)
    };
    let (_, _, run) = MANAGED
        .iter()
        .find(|(files, table, run)| is_used(files, table) && place.has_program(run[0]))?;
    let mut argv: Vec<String> = run.iter().map(|w| (*w).to_owned()).collect();
    match run[0] {
        "uv" => argv.extend(group_of_pytest(&pyproject)),
        "hatch" => {
            argv.push(hatch_program(&pyproject));
            return Some(argv);
        }
        _ => {}
    }
    argv.push(String::from("pytest"));
    Some(argv)
}

/// The options that bring pytest along, where it stands in a group or extra that is not taken by itself.
fn group_of_pytest(pyproject: &Value) -> Vec<String> {
    let listing = |table: Option<&Value>| {
        let entries = table.and_then(Value::as_table).into_iter().flatten();
        let has = |list: &Value| {
            list.as_array()
                .is_some_and(|l| l.iter().filter_map(Value::as_str).any(is_pytest))
        };
        entries
            .filter(|(_, list)| has(list))
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    let groups = listing(pyproject.get("dependency-groups"));
    let extras = listing(
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

/// `pytest` in the environment of hatch that has it.
fn hatch_program(pyproject: &Value) -> String {
    let envs = pyproject
        .get("tool")
        .and_then(|t| t.get("hatch"))
        .and_then(|h| h.get("envs"))
        .and_then(Value::as_table);
    let needs = |env: &Value, key: &str| {
        env.get(key)
            .and_then(Value::as_array)
            .is_some_and(|l| l.iter().filter_map(Value::as_str).any(is_pytest))
    };
    let with = envs
        .into_iter()
        .flatten()
        .find(|(_, env)| needs(env, "dependencies") || needs(env, "extra-dependencies"));
    match with.map(|(name, _)| name.as_str()) {
        None | Some("default") => String::from("pytest"),
        Some(env) => format!("{env}:pytest"),
    }
}

/// What `tox` would run, where that is one plain command which we need no environment of tox for.
fn of_tox(place: &SearchPlace<'_>, python: &str, around: &StepSurroundings) -> Option<SuiteStep> {
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
            None => {}
        }
    }
    let value = value
        .replace("{envpython}", python)
        .replace("{posargs}", "")
        .replace("{toxinidir}/", "");
    let chain = split_chain(&value)
        .ok()
        .filter(|_| !value.contains(['{', '}']))?;
    let [
        Piece {
            words,
            needs_shell: false,
            ..
        },
    ] = chain.as_slice()
    else {
        return None;
    };
    let mut words = words.clone();
    if matches!(words[0].as_str(), "python" | "python3") {
        words[0] = python.to_owned();
    }
    // From another directory a path of the project is another path.
    if words[0].contains('/') && !words[0].starts_with('/') && dir != place.dir {
        words[0] = place.dir.join(&words[0]).display().to_string();
    }
    dir.is_dir()
        .then(|| SuiteStep::new(words, dir).within(around.clone()))
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// Files that are called like tests, in a directory and where tests usually stand below it.
struct TestFiles {
    /// Relative to the directory.
    files: Vec<PathBuf>,
}

impl TestFiles {
    fn of(dir: &Path) -> Self {
        const MOST: usize = 200;
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
                    .take(MOST),
            );
        }
        files.sort();
        Self { files }
    }

    /// pytest collects `test_*.py` and `*_test.py`. Where no file is called so and nothing else is configured, the tests
    /// are those that it is told by name: a project whose only tests are `test.py`.
    fn named_for_pytest(&self, place: &SearchPlace<'_>, mut argv: Vec<String>) -> Vec<String> {
        const MOST: usize = 20_000;
        let is_configured = || {
            let says = |text: String| text.contains("testpaths") || text.contains("python_files");
            TELLS_OF_PYTEST
                .iter()
                .any(|name| place.read(name).is_some_and(says))
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
                .take(MOST)
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
        let dir = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("below")).expect("made");
            std::fs::write(&path, text).expect("written");
            if path.parent().is_some_and(|p| p.ends_with("bin")) {
                use std::os::unix::fs::PermissionsExt as _;
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
                    .expect("set");
            }
        }
        dir
    }

    /// The command that is found, with these programs on the PATH.
    fn found(files: &[(&str, &str)], programs: &[&str]) -> String {
        let dir = project(files);
        let root = dir.path().canonicalize().expect("there");
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
            .expect("below")
            .display()
            .to_string();
        let runner = suite.steps[0].runner().expect("about tests").name;
        format!("{runner}: {} {below}", suite.steps[0].typed())
            .trim_end()
            .to_owned()
    }

    #[test]
    fn the_command_follows_from_what_lies_about() {
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
                "generic: python3 manage.py test",
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
                "generic: python3 runtests.py tests",
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
            (&[("requirements.txt", "flask")], &["pytest"], "nothing"),
            (&[("README.md", "")], &["pytest"], "nothing"),
        ] {
            assert_eq!(found(files, programs), expected, "{files:?}");
        }
    }
}
