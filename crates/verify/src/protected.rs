//! Decides by path alone which files a worker must not change, so that files that do not exist yet are covered too.
//! [`super::rust_regions`] finds the test code inside Rust source files.

mod names;

use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use super::proof::Check;
use names::{BUILD_DIRS, BUILD_FILES};
use supervisor_languages::{LANGUAGES, Language};

/// The role of a file in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRole {
    Test,
    /// Recorded expected output.
    Snapshot,
    /// Data that tests read.
    Fixture,
    /// Files that the runner or its plug-ins load.
    RunnerConfig,
    /// Files that decide what is built, fetched or ignored, or that instruct tools.
    BuildConfig,
    Source,
}

impl FileRole {
    /// Protected files must stay byte-identical while code is written.
    pub fn is_protected(self) -> bool {
        self != Self::Source
    }

    /// Whether a phase that writes a test may add such a file.
    pub fn belongs_to_tests(self) -> bool {
        matches!(self, Self::Test | Self::Snapshot | Self::Fixture)
    }
}

/// The role of a path relative to the project. Ignores letter case, as some file systems do.
pub fn role(language: Option<&'static Language>, path: &Path) -> FileRole {
    role_among(language, path, |_| false)
}

/// The role of a path where the files of `collected` are known to hold tests: `src/spec` is a directory of tests if the
/// runner finds tests in it.
pub fn role_among(
    language: Option<&'static Language>,
    path: &Path,
    holds_tests: impl Fn(&Path) -> bool,
) -> FileRole {
    let parts: Vec<String> = path
        .components()
        .filter_map(|c| match c {
            Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
            _ => None,
        })
        .collect();
    let Some((name, dirs)) = parts.split_last() else {
        return FileRole::Source;
    };
    let dirs: Vec<&str> = dirs.iter().map(String::as_str).collect();
    let is_product = |is_test_dir: fn(&[&str]) -> bool| {
        product_dir(&dirs, is_test_dir)
            .is_some_and(|depth| !holds_tests(&path.iter().take(depth).collect::<PathBuf>()))
    };
    if is_build_config(name, &dirs) || is_vendored(language, &dirs) {
        FileRole::BuildConfig
    } else if is_runner_config(name, &dirs) {
        FileRole::RunnerConfig
    } else if is_snapshot(name, &dirs) {
        FileRole::Snapshot
    } else if is_fixture(&dirs) && !is_product(is_fixture) {
        FileRole::Fixture
    } else if is_test(
        language,
        name,
        if is_product(|_| false) { &[] } else { &dirs },
    ) {
        FileRole::Test
    } else {
        FileRole::Source
    }
}

/// Whether a new file at this path would shadow a module that the runner imports.
pub fn shadows_the_runner(language: Option<&'static Language>, path: &Path) -> bool {
    let parts: Vec<String> = path
        .iter()
        .map(|part| part.to_string_lossy().to_lowercase())
        .collect();
    let path = parts.join("/");
    match language {
        Some(language) => language.runner_modules.are_shadowed_by(&path),
        None => LANGUAGES
            .iter()
            .any(|language| language.runner_modules.are_shadowed_by(&path)),
    }
}

/// Checks that no protected file is among the `changed` paths, which are relative to the project.
pub fn check_untouched<'a>(
    role: impl Fn(&Path) -> FileRole,
    changed: impl IntoIterator<Item = &'a Path>,
) -> Check {
    let protected: Vec<String> = changed
        .into_iter()
        .filter(|p| role(p).is_protected())
        .map(|p| format!("`{}`", supervisor_text::words::plain(&p.to_string_lossy())))
        .collect();
    if protected.is_empty() {
        Check::new("sealed", true, "tests and configuration are as they were")
    } else {
        Check::new(
            "sealed",
            false,
            format!("these may not be changed here: {}", protected.join(", ")),
        )
    }
}

fn is_build_config(name: &str, dirs: &[&str]) -> bool {
    dirs.iter()
        .any(|d| BUILD_DIRS.contains(d) || is_python_package_info(d))
        || BUILD_FILES.contains(&name)
        || name == ".env"
        || name.starts_with(".env.")
        || LANGUAGES
            .iter()
            .any(|language| language.build_files.matches(name, dirs))
}

/// Whether it describes an installed Python package, whose entry points are plug-ins of pytest.
fn is_python_package_info(dir: &str) -> bool {
    dir.ends_with(".dist-info") || dir.ends_with(".egg-info")
}

/// Whether it is an installed package, by a name that means this only in some languages.
fn is_vendored(language: Option<&'static Language>, dirs: &[&str]) -> bool {
    LANGUAGES
        .iter()
        .filter(|own| language.is_none_or(|language| language == **own))
        .any(|own| dirs.iter().any(|dir| own.vendored_dirs.contains(dir)))
}

/// `src/spec/parser.ts` and `src/fixtures/seed.ts` are part of the product: a directory of tests is not below `src`, unless
/// it is below another directory of tests, such as `src/test/fixtures`. Returns how many directories lead to that one,
/// itself included.
fn product_dir(dirs: &[&str], is_test_dir: impl Fn(&[&str]) -> bool) -> Option<usize> {
    let source = dirs.iter().position(|dir| *dir == "src")?;
    let is_plain = |dir: &&str| ["spec", "fixtures", "fixture"].contains(dir);
    let depth = source + 1 + dirs[source + 1..].iter().position(is_plain)? + 1;
    let others: Vec<&str> = dirs.iter().copied().filter(|dir| !is_plain(dir)).collect();
    (!is_test_dir(&others) && !is_in_tests(&others)).then_some(depth)
}

fn is_in_tests(dirs: &[&str]) -> bool {
    LANGUAGES.iter().any(|language| {
        dirs.iter()
            .any(|dir| language.test_files.dirs.contains(dir))
    })
}

fn is_runner_config(name: &str, dirs: &[&str]) -> bool {
    // The test environment's configuration in Elixir and in Rails.
    (name == "test.exs" && dirs.last() == Some(&"config"))
        || (name == "test.rb" && dirs.ends_with(&["config", "environments"]))
        || LANGUAGES
            .iter()
            .any(|language| language.runner_files.matches(name, dirs))
}

fn is_snapshot(name: &str, dirs: &[&str]) -> bool {
    name.ends_with(".snap")
        || name.ends_with(".snap.new")
        || name.ends_with(".ambr")
        || name.ends_with(".golden")
        || dirs
            .iter()
            .any(|d| ["__snapshots__", "snapshots", "__image_snapshots__"].contains(d))
}

fn is_fixture(dirs: &[&str]) -> bool {
    dirs.iter().any(|d| {
        [
            "testdata",
            "fixtures",
            "__fixtures__",
            "fixture",
            "cassettes",
            "__mocks__",
        ]
        .contains(d)
    })
}

fn is_test(language: Option<&'static Language>, name: &str, dirs: &[&str]) -> bool {
    match language {
        Some(language) => language.test_files.matches(name, dirs),
        // Unknown language: a test in any language counts.
        None => LANGUAGES
            .iter()
            .any(|language| language.test_files.matches(name, dirs)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_is_protected_in_every_ecosystem() {
        for path in [
            "conftest.py",
            "tests/conftest.py",
            "pytest.ini",
            "pytest.toml",
            ".pytest.toml",
            "tox.ini",
            "setup.cfg",
            "pyproject.toml",
            "sitecustomize.py",
            "src/usercustomize.py",
            "evil.pth",
            "jest.config.ts",
            "vitest.config.mts",
            ".mocharc.yml",
            "babel.config.js",
            "tsconfig.json",
            "tsconfig.build.json",
            ".npmrc",
            "package.json",
            "sub/package-lock.json",
            "Cargo.toml",
            "Cargo.lock",
            "build.rs",
            ".cargo/config.toml",
            ".config/nextest.toml",
            "rust-toolchain.toml",
            "go.mod",
            "go.sum",
            "Gemfile",
            "Gemfile.lock",
            ".rspec",
            "spec/spec_helper.rb",
            "mix.exs",
            "mix.lock",
            "test/test_helper.exs",
            "config/test.exs",
            "config/environments/test.rb",
            ".simplecov",
            "bunfig.toml",
            "rebar.config",
            "pom.xml",
            "core/build.gradle.kts",
            ".mvn/maven.config",
            "gradle/wrapper/gradle-wrapper.properties",
            "src/main/resources/META-INF/services/org.junit.platform.launcher.TestExecutionListener",
            "helper-1.0.dist-info/entry_points.txt",
            "src/demo.egg-info/entry_points.txt",
            "Makefile",
            "justfile",
            ".github/workflows/ci.yml",
            ".gitlab-ci.yml",
            ".gitignore",
            "src/.gitignore",
            "node_modules/jest/index.js",
            ".claude/settings.json",
            "CLAUDE.md",
            "AGENTS.md",
            ".mcp.json",
            ".git/hooks/x",
        ] {
            for language in LANGUAGES.iter().copied().map(Some).chain([None]) {
                for path in [path.to_owned(), path.to_uppercase()] {
                    let role = role(language, Path::new(&path));
                    assert!(
                        role.is_protected() && !role.belongs_to_tests(),
                        "{path} is {role:?} for {language:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn tests_are_protected_in_their_ecosystem() {
        use supervisor_languages::{CPP, ELIXIR, GO, JAVA, JAVASCRIPT, PYTHON, RUBY, RUST};
        for (language, path, expected) in [
            (&RUST, "tests/api.rs", FileRole::Test),
            (&RUST, "crates/a/tests/it/main.rs", FileRole::Test),
            (&RUST, "src/parser/tests.rs", FileRole::Test),
            (&RUST, "src/snapshots/x.snap", FileRole::Snapshot),
            (&RUST, "tests/fixtures/a.json", FileRole::Fixture),
            (&RUST, "src/lib.rs", FileRole::Source),
            (&RUST, "src/contest.rs", FileRole::Source),
            (&RUST, "clippy.toml", FileRole::Source),
            (&RUST, "rustfmt.toml", FileRole::Source),
            (&GO, "pkg/a_test.go", FileRole::Test),
            (&GO, "pkg/testdata/a.txt", FileRole::Fixture),
            (&GO, "pkg/a.go", FileRole::Source),
            (&GO, "vendor/x/y.go", FileRole::BuildConfig),
            (&PYTHON, "app/vendor/y.py", FileRole::Source),
            (&ELIXIR, "deps/a/lib/a.ex", FileRole::BuildConfig),
            (&RUST, "src/deps/mod.rs", FileRole::Source),
            (&JAVASCRIPT, "src/spec/parser.ts", FileRole::Source),
            (&JAVASCRIPT, "src/spec/a.spec.ts", FileRole::Test),
            (&JAVASCRIPT, "src/fixtures/seed.ts", FileRole::Source),
            (&JAVASCRIPT, "src/test/fixtures/a.ts", FileRole::Fixture),
            (&JAVASCRIPT, "spec/support/a.js", FileRole::Test),
            (&JAVASCRIPT, "src/__tests__/a.js", FileRole::Test),
            (&JAVASCRIPT, "src/a.spec.ts", FileRole::Test),
            (
                &JAVASCRIPT,
                "src/__snapshots__/a.js.snap",
                FileRole::Snapshot,
            ),
            (&JAVASCRIPT, "src/latest.js", FileRole::Source),
            (&PYTHON, "tests/test_a.py", FileRole::Test),
            (&PYTHON, "a_test.py", FileRole::Test),
            (&PYTHON, "app/contest.py", FileRole::Source),
            (&RUBY, "spec/models/a_spec.rb", FileRole::Test),
            (&RUBY, "lib/a.rb", FileRole::Source),
            (&ELIXIR, "test/a_test.exs", FileRole::Test),
            (&ELIXIR, "lib/a.ex", FileRole::Source),
            (&JAVA, "core/src/test/java/demo/ATest.java", FileRole::Test),
            (&JAVA, "src/main/java/demo/Latest.java", FileRole::Source),
            (&CPP, "tests/calc.cpp", FileRole::Test),
            (&CPP, "src/calc_test.cc", FileRole::Test),
            (&CPP, "src/latest.cc", FileRole::Source),
        ] {
            assert_eq!(role(Some(language), Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn file_that_shadows_the_runner_is_detected() {
        use supervisor_languages::{CPP, JAVA, JAVASCRIPT, PYTHON, RUBY, RUST};
        for (language, path, shadows) in [
            (Some(&PYTHON), "pytest.py", true),
            (Some(&PYTHON), "unittest/__init__.py", true),
            (Some(&PYTHON), "src/_pytest/runner.py", true),
            (Some(&PYTHON), "calc/unittest.py", false),
            (Some(&PYTHON), "pytest.md", false),
            (Some(&RUBY), "lib/rspec/matchers/built_in/eq.rb", true),
            (Some(&RUBY), "lib/minitest.rb", true),
            (Some(&RUBY), "lib/calc/test.rb", false),
            (Some(&JAVASCRIPT), "jest.js", true),
            (Some(&JAVASCRIPT), "lib/jest.js", false),
            (Some(&CPP), "include/gtest/gtest.h", true),
            (Some(&CPP), "include/cassert", true),
            (Some(&CPP), "include/demo/gtest_helper.h", false),
            (
                Some(&JAVA),
                "core/src/main/java/org/junit/Assert.java",
                true,
            ),
            (Some(&JAVA), "src/main/java/demo/junit/Assert.java", false),
            (Some(&RUST), "src/test.rs", false),
            (None, "pytest.py", true),
        ] {
            assert_eq!(
                shadows_the_runner(language, Path::new(path)),
                shadows,
                "{path}"
            );
        }
    }

    #[test]
    fn directory_with_collected_tests_is_protected() {
        let language = Some(&supervisor_languages::JAVASCRIPT);
        let collected = Path::new("src/spec/a.js");
        let role =
            |path: &str| role_among(language, Path::new(path), |dir| collected.starts_with(dir));
        assert_eq!(role("src/spec/a.js"), FileRole::Test);
        assert_eq!(role("src/spec/support/helper.js"), FileRole::Test);
        assert_eq!(role("src/fixtures/seed.js"), FileRole::Source);
        assert_eq!(role("packages/b/src/spec/a.js"), FileRole::Source);
    }

    #[test]
    fn changed_protected_file_is_named() {
        let check = |path: &str| {
            check_untouched(
                |path| role(Some(&supervisor_languages::RUST), path),
                [Path::new("src/lib.rs"), Path::new(path)],
            )
        };
        let refused = check("Cargo.toml");
        assert!(!refused.passed());
        assert!(refused.detail().contains("`Cargo.toml`") && !refused.detail().contains("lib.rs"));
        assert!(check("src/main.rs").passed());
    }
}
