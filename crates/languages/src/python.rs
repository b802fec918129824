//! Python. Modules are found by path below several roots, and packages can re-export names.

use std::sync::LazyLock;

use super::cheats::CheatRule::{KnowsTheRunner, ProcessExit, ReachesForTheRunner};
use super::cheats::{CheatRules, text_rules};
use super::imports::by_query;
use super::{Dialect, Language, NamePatterns, ProjectFiles, RunnerModules, join, parent, queries};

pub static PYTHON: Language = Language {
    name: "python",
    dialects: &[&DIALECT],
    is_compiled: false,
    line_comment: "#",
    has_inline_tests: false,
    test_files: NamePatterns {
        dirs: &["test", "tests"],
        stems: &["test", "tests"],
        names: &["test_*.py", "*_test.py"],
    },
    manifests: &["pyproject.toml", "setup.cfg", "requirements.txt"],
    build_files: NamePatterns {
        dirs: &[".venv", "venv", "site-packages"],
        stems: &[],
        names: &[
            "pyproject.toml",
            "setup.py",
            "setup.cfg",
            "pipfile",
            "pipfile.lock",
            "poetry.lock",
            "uv.lock",
            "pdm.lock",
            "sitecustomize.py",
            "usercustomize.py",
            ".python-version",
            "environment.yml",
            "pyvenv.cfg",
            "*.pth",
            "requirements*.txt",
        ],
    },
    runner_files: NamePatterns {
        dirs: &[],
        stems: &[],
        names: &[
            "conftest.py",
            "pytest.ini",
            ".pytest.ini",
            "pytest.toml",
            ".pytest.toml",
            "unittest.cfg",
            "nose2.cfg",
            "tox.ini",
            "noxfile.py",
            ".coveragerc",
        ],
    },
    runner_modules: RunnerModules {
        search_dirs: &["", "src", "lib", "test", "tests"],
        names: &[
            "pytest",
            "_pytest",
            "pluggy",
            "iniconfig",
            "py",
            "unittest",
            "doctest",
            "pdb",
            "bdb",
            "difflib",
            "traceback",
            "inspect",
            "ast",
            "xml",
            "tempfile",
            "faulthandler",
            "warnings",
            "logging",
            "linecache",
            "tokenize",
            "nose2",
            "hypothesis",
            "coverage",
            "mock",
            "exceptiongroup",
            "packaging",
            "pygments",
            "xdist",
            "execnet",
            "asyncio",
        ],
        extensions: &["py", "so", "pyi", "pyc"],
    },
    installed_dirs: &[".venv", "venv", "site-packages"],
    vendored_dirs: &[],
    built_dirs: &["__pycache__"],
    compiled_dirs: &[],
    production_env: &[],
    missing_names: &[
        ("cannot import name '", "'"),
        ("No module named '", "'"),
        ("has no attribute '", "'"),
        ("NameError: name '", "'"),
    ],
    unbound_name: Some(("NameError: name '", "' is not defined")),
    contains_test: |place, name| place.is_named_by_path(name, "::"),
    is_public: |definition, _| definition.depth == 0 && !definition.name.starts_with('_'),
    imports: |tree| by_query(tree, |module| module),
    implicit_imports: |_| Vec::new(),
    package_names: |_| Vec::new(),
    programs,
    locate,
    child_module,
    cheats: CheatRules {
        names: &[
            // Skips everything the runner still has to do, such as correcting a forged report.
            ("os._exit", ReachesForTheRunner),
            ("os.abort", ReachesForTheRunner),
            ("unittest.SkipTest", ReachesForTheRunner),
            ("sys.exit", ProcessExit),
            ("os.kill", ProcessExit),
            ("sys.modules", KnowsTheRunner),
        ],
        modules: &[("_pytest", "_pytest", ReachesForTheRunner)],
        globals: &[],
        guarded: &["unittest", "builtins"],
        texts: LazyLock::new(|| {
            text_rules(&[
                ("PYTEST_", "^PYTEST_", None, ReachesForTheRunner),
                ("--junit", "^--junit|junitxml", None, ReachesForTheRunner),
                ("_pytest", "^_pytest", None, ReachesForTheRunner),
                (
                    "/proc/self/cmdline",
                    "^/proc/self/cmdline$",
                    None,
                    ReachesForTheRunner,
                ),
            ])
        }),
    },
};

static DIALECT: Dialect = Dialect {
    extensions: &["py", "pyi"],
    grammar: || tree_sitter_python::LANGUAGE.into(),
    opaque: &["comment", "string"],
    leading: &["comment"],
    queries: queries!("python"),
};

fn locate(tree: &dyn ProjectFiles, from: &str, module: &str) -> Vec<usize> {
    let dots = module.len() - module.trim_start_matches('.').len();
    let path = module[dots..].replace('.', "/");
    let files = |base: &str| -> Vec<usize> {
        let names = if path.is_empty() {
            vec![String::from("__init__.py")]
        } else {
            vec![
                format!("{path}.py"),
                format!("{path}/__init__.py"),
                format!("{path}.pyi"),
            ]
        };
        names
            .iter()
            .filter_map(|n| tree.at(&join(base, n)?))
            .collect()
    };
    if dots > 0 {
        let mut base = parent(from);
        for _ in 1..dots {
            base = parent(base);
        }
        return files(base);
    }
    // The root, `src/` and `lib/`, then the directories above the file, as runners add them to the path.
    let mut bases = vec![String::new(), String::from("src"), String::from("lib")];
    let mut dir = parent(from);
    while !dir.is_empty() {
        bases.push(dir.to_owned());
        bases.push(format!("{dir}/src"));
        dir = parent(dir);
    }
    let found = bases.iter().map(|b| files(b)).find(|f| !f.is_empty());
    // A package below a folder that is not a package. Only for dotted names, since a single name is too ambiguous.
    found.unwrap_or_else(|| match path.contains('/') {
        true => [
            tree.ending(&format!("{path}.py")),
            tree.ending(&format!("{path}/__init__.py")),
        ]
        .concat(),
        false => Vec::new(),
    })
}

/// Packages can import their modules by name.
fn child_module(files: &dyn ProjectFiles, file: usize, name: &str) -> Option<usize> {
    let path = files.path(file);
    let dir = path
        .strip_suffix("/__init__.py")
        .or_else(|| (path == "__init__.py").then_some(""))?;
    [format!("{name}.py"), format!("{name}/__init__.py")]
        .iter()
        .find_map(|f| files.at(&join(dir, f)?))
}

/// Entries such as `shop = "shop.cli:main"` in `[project.scripts]` or `[tool.poetry.scripts]`.
fn programs(manifest: &str) -> Vec<String> {
    let Ok(manifest) = manifest.parse::<toml::Table>() else {
        return Vec::new();
    };
    let tables = [
        manifest.get("project"),
        manifest.get("tool").and_then(|tool| tool.get("poetry")),
    ];
    let scripts = tables
        .into_iter()
        .filter_map(|table| table?.get("scripts")?.as_table());
    let entry_points = scripts
        .flat_map(|table| table.values())
        .filter_map(|entry| entry.as_str()?.split(':').next());
    let files = entry_points.map(|module| module.trim().replace('.', "/"));
    files
        .flat_map(|file| [format!("{file}.py"), format!("{file}/__init__.py")])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Import;
    use super::super::imports::read;

    #[test]
    fn every_import_form_is_read() {
        let found = read(
            "a.py",
            "from ..pkg.mod import (\n    a,\n    b as c,\n)\nfrom . import x\nimport p.q as r, s\nfrom t import *\n",
        );
        let expected = [
            Import::named("..pkg.mod", "a", "a"),
            Import::named("..pkg.mod", "b", "c"),
            Import::named(".", "x", "x"),
            Import::whole("p.q", "r"),
            Import::whole("s", "s"),
            Import::all("t"),
        ];
        assert_eq!(found, expected);
    }
}
