//! Which files a worker may not touch, by name alone: a file that does not exist yet is judged like one that does.
//! Knows paths only. Rust's test regions inside source files are in [`super::rust_regions`].

mod names;

use std::path::{Component, Path};

use serde::Serialize;

use super::proof::Check;
use super::suite::Ecosystem;
use names::{BUILD_DIRS, BUILD_FILES, RUNNER_FILES, RUNNER_STEMS};

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Test,
    /// Recorded expectations.
    Snapshot,
    /// Data that tests read.
    Fixture,
    /// What the runner or its plug-ins load.
    RunnerConfig,
    /// What decides what is built, fetched, ignored, or told to tools.
    BuildConfig,
    Source,
}

impl Role {
    /// Sealed files stay byte-equal while code is written.
    pub fn is_sealed(self) -> bool {
        self != Self::Source
    }

    /// What a phase that writes a test may add.
    pub fn belongs_to_tests(self) -> bool {
        matches!(self, Self::Test | Self::Snapshot | Self::Fixture)
    }
}

/// The role of a path relative to the project. Letter case does not matter: some file systems ignore it.
pub fn role(ecosystem: Option<Ecosystem>, path: &Path) -> Role {
    let parts: Vec<String> = path
        .components()
        .filter_map(|c| match c {
            Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
            _ => None,
        })
        .collect();
    let Some((name, dirs)) = parts.split_last() else { return Role::Source };
    let dirs: Vec<&str> = dirs.iter().map(String::as_str).collect();
    if is_build_config(name, &dirs) {
        Role::BuildConfig
    } else if is_runner_config(name, &dirs) {
        Role::RunnerConfig
    } else if is_snapshot(name, &dirs) {
        Role::Snapshot
    } else if is_fixture(&dirs) {
        Role::Fixture
    } else if is_test(ecosystem, name, &dirs) {
        Role::Test
    } else {
        Role::Source
    }
}

/// Were sealed files left alone? `changed` are paths relative to the project.
pub fn untouched<'a>(ecosystem: Option<Ecosystem>, changed: impl IntoIterator<Item = &'a Path>) -> Check {
    let sealed: Vec<String> = changed
        .into_iter()
        .filter(|p| role(ecosystem, p).is_sealed())
        .map(|p| format!("`{}`", crate::words::plain(&p.to_string_lossy())))
        .collect();
    if sealed.is_empty() {
        Check::new("sealed", true, "tests and configuration are as they were")
    } else {
        Check::new("sealed", false, format!("these may not be changed here: {}", sealed.join(", ")))
    }
}

fn is_build_config(name: &str, dirs: &[&str]) -> bool {
    dirs.iter().any(|d| BUILD_DIRS.contains(d))
        || BUILD_FILES.contains(&name)
        || name.ends_with(".pth")
        || name.ends_with(".gemspec")
        || (name.starts_with("requirements") && name.ends_with(".txt"))
        || (name.starts_with("tsconfig") && name.ends_with(".json"))
        || name == ".env"
        || name.starts_with(".env.")
}

fn is_runner_config(name: &str, dirs: &[&str]) -> bool {
    RUNNER_FILES.contains(&name)
        || RUNNER_STEMS.iter().any(|stem| name.starts_with(stem))
        // What an application is told for its tests alone, in Elixir and in Rails.
        || (name == "test.exs" && dirs.last() == Some(&"config"))
        || (name == "test.rb" && dirs.ends_with(&["config", "environments"]))
}

fn is_snapshot(name: &str, dirs: &[&str]) -> bool {
    name.ends_with(".snap")
        || name.ends_with(".snap.new")
        || name.ends_with(".ambr")
        || name.ends_with(".golden")
        || dirs.iter().any(|d| ["__snapshots__", "snapshots", "__image_snapshots__"].contains(d))
}

fn is_fixture(dirs: &[&str]) -> bool {
    dirs.iter().any(|d| ["testdata", "fixtures", "__fixtures__", "fixture", "cassettes", "__mocks__"].contains(d))
}

fn is_test(ecosystem: Option<Ecosystem>, name: &str, dirs: &[&str]) -> bool {
    let in_dir = |names: &[&str]| dirs.iter().any(|d| names.contains(d));
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let rust = || {
        in_dir(&["tests", "benches"])
            || (name.ends_with(".rs")
                && (matches!(stem, "test" | "tests") || stem.ends_with("_test") || stem.ends_with("_tests")))
    };
    let node = || {
        in_dir(&["__tests__", "__test__", "test", "tests", "spec", "e2e", "cypress"])
            || [".test", ".spec", "-test", "_test", "-spec", "_spec", ".cy", ".e2e"]
                .iter()
                .any(|end| stem.ends_with(end))
            || stem.starts_with("test-")
            || stem == "test"
            || name.ends_with(".test-d.ts")
    };
    let python = || {
        in_dir(&["test", "tests"]) || (name.ends_with(".py") && (stem.starts_with("test_") || stem.ends_with("_test")))
    };
    let go = || name.ends_with("_test.go");
    let ruby = || in_dir(&["spec", "test", "features"]) || name.ends_with("_spec.rb") || name.ends_with("_test.rb");
    let elixir = || in_dir(&["test"]) || name.ends_with("_test.exs");
    match ecosystem {
        Some(Ecosystem::Rust) => rust(),
        Some(Ecosystem::Node) => node(),
        Some(Ecosystem::Python) => python(),
        Some(Ecosystem::Go) => go(),
        Some(Ecosystem::Ruby) => ruby(),
        Some(Ecosystem::Elixir) => elixir(),
        // Unknown: whatever anybody would call a test.
        None => rust() || node() || python() || go() || ruby() || elixir(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: &[Ecosystem] =
        &[Ecosystem::Go, Ecosystem::Node, Ecosystem::Python, Ecosystem::Rust, Ecosystem::Ruby, Ecosystem::Elixir];

    #[test]
    fn configuration_is_sealed_in_every_ecosystem_and_in_every_letter_case() {
        for path in [
            "conftest.py",
            "tests/conftest.py",
            "pytest.ini",
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
            "vendor/x/y.go",
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
            for ecosystem in ANY.iter().copied().map(Some).chain([None]) {
                for path in [path.to_owned(), path.to_uppercase()] {
                    let role = role(ecosystem, Path::new(&path));
                    assert!(role.is_sealed() && !role.belongs_to_tests(), "{path} is {role:?} for {ecosystem:?}");
                }
            }
        }
    }

    #[test]
    fn tests_are_sealed_in_their_own_ecosystem() {
        use Ecosystem::{Elixir, Go, Node, Python, Ruby, Rust};
        for (ecosystem, path, expected) in [
            (Rust, "tests/api.rs", Role::Test),
            (Rust, "crates/a/tests/it/main.rs", Role::Test),
            (Rust, "src/parser/tests.rs", Role::Test),
            (Rust, "src/snapshots/x.snap", Role::Snapshot),
            (Rust, "tests/fixtures/a.json", Role::Fixture),
            (Rust, "src/lib.rs", Role::Source),
            (Rust, "src/contest.rs", Role::Source),
            (Rust, "clippy.toml", Role::Source),
            (Rust, "rustfmt.toml", Role::Source),
            (Go, "pkg/a_test.go", Role::Test),
            (Go, "pkg/testdata/a.txt", Role::Fixture),
            (Go, "pkg/a.go", Role::Source),
            (Node, "src/__tests__/a.js", Role::Test),
            (Node, "src/a.spec.ts", Role::Test),
            (Node, "src/__snapshots__/a.js.snap", Role::Snapshot),
            (Node, "src/latest.js", Role::Source),
            (Python, "tests/test_a.py", Role::Test),
            (Python, "a_test.py", Role::Test),
            (Python, "app/contest.py", Role::Source),
            (Ruby, "spec/models/a_spec.rb", Role::Test),
            (Ruby, "lib/a.rb", Role::Source),
            (Elixir, "test/a_test.exs", Role::Test),
            (Elixir, "lib/a.ex", Role::Source),
        ] {
            assert_eq!(role(Some(ecosystem), Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_touched_seal_is_named() {
        let check = untouched(Some(Ecosystem::Rust), [Path::new("src/lib.rs"), Path::new("Cargo.toml")]);
        assert!(!check.passed() && check.detail().contains("`Cargo.toml`") && !check.detail().contains("lib.rs"));
        assert!(untouched(Some(Ecosystem::Rust), [Path::new("src/lib.rs")]).passed());
    }
}
