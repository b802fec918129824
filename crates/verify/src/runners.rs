//! The supported test runners. To add one, write a file in `runners/`, declare its `mod` and list it in `RUNNERS`.

mod ava;
mod bun;
mod cargo;
mod check;
mod ctest;
mod django;
mod fuzz;
mod generic;
mod go;
mod gradle;
mod jest;
mod maven;
mod minitest;
mod mix;
mod mocha;
mod nextest;
mod node_test;
mod npm;
mod phpunit;
mod pytest;
pub(super) mod reports;
mod rspec;
mod tap;
mod unittest;
mod vitest;

use futures_util::future::BoxFuture;

use super::command;
use super::detect::{FoundSuite, SearchPlace};
use super::session::{RunnerResult, Session};
use super::step::{StepEnvironment, SuiteStep};
use supervisor_languages::Language;

/// One test runner: how to detect it, recognise its commands, run it, read its results and select tests.
#[derive(Debug)]
pub struct Runner {
    pub name: &'static str,
    /// The language its tests are written in.
    pub ecosystem: Option<&'static Language>,
    /// Files whose presence suggests this runner.
    manifests: &'static [&'static str],
    /// The default command, used when only a manifest was found.
    command: &'static [&'static str],
    /// Looks for tests of this runner in a directory.
    pub(super) find: fn(&'static Runner, &SearchPlace<'_>) -> Option<FoundSuite>,
    /// Whether a command, without its wrappers, belongs to this runner.
    recognises: fn(&[String]) -> bool,
    pub(super) run: for<'a> fn(&'a SuiteStep, &'a Session<'a>) -> BoxFuture<'a, RunnerResult>,
    /// The command that runs only these tests; `None` if the runner cannot select them.
    pub(super) select: fn(&SuiteStep, &[&str]) -> Option<Vec<String>>,
    /// Whether test names begin with a file path, relative to the directory the command runs in.
    pub(super) names_are_paths: bool,
}

/// In order of priority, which counts only if confidence and the number of test files are equal. The last one accepts every
/// command.
static RUNNERS: &[&Runner] = &[
    &go::RUNNER,
    &npm::RUNNER,
    &pytest::RUNNER,
    &cargo::RUNNER,
    &rspec::RUNNER,
    &mix::RUNNER,
    &maven::RUNNER,
    &gradle::RUNNER,
    &ctest::RUNNER,
    &phpunit::RUNNER,
    &nextest::RUNNER,
    &unittest::RUNNER,
    &django::RUNNER,
    &minitest::RUNNER,
    &node_test::RUNNER,
    &vitest::RUNNER,
    &jest::RUNNER,
    &mocha::RUNNER,
    &ava::RUNNER,
    &tap::RUNNER,
    &bun::RUNNER,
    &reports::RUNNER,
    &check::RUNNER,
    &generic::RUNNER,
];

impl Runner {
    pub(super) fn default_argv(&self) -> Vec<String> {
        self.command.iter().map(|w| (*w).to_owned()).collect()
    }
}

pub(super) use fuzz::test_report;

pub(super) fn all() -> impl Iterator<Item = &'static Runner> {
    RUNNERS.iter().copied()
}

/// A runner, written as its name.
pub(super) mod by_name {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use super::{Runner, all};

    pub(in super::super) fn serialize<S: Serializer>(
        runner: &&'static Runner,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(runner.name)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<&'static Runner, D::Error> {
        let name = String::deserialize(from)?;
        all()
            .find(|runner| runner.name == name)
            .ok_or_else(|| D::Error::custom(format!("no test runner is called `{name}`")))
    }
}

/// The runner of result checks, which no command names.
pub(super) fn check_runner() -> &'static Runner {
    &check::RUNNER
}

/// The runner for this command; the generic one if no other recognises it.
pub(super) fn runner_for(argv: &[String]) -> &'static Runner {
    let find_runner = |inner: &[String]| {
        RUNNERS
            .iter()
            .find(|r| (r.recognises)(inner) && r.name != generic::RUNNER.name)
    };
    command::inner_commands(argv)
        .find_map(find_runner)
        .copied()
        .unwrap_or(&generic::RUNNER)
}

/// The programs and variables of the project's own environment.
pub(super) fn project_environment(place: &SearchPlace<'_>) -> StepEnvironment {
    let mut environment = pytest::project_environment(place).unwrap_or_default();
    environment
        .path
        .extend(StepEnvironment::for_node(place.dir).path);
    environment
}

/// Whether a runner other than the generic one recognises this command.
pub(super) fn is_test_command(argv: &[String]) -> bool {
    !std::ptr::eq(runner_for(argv), &raw const generic::RUNNER)
}

/// Every manifest that detection looks for, in order.
pub fn manifests() -> impl Iterator<Item = &'static str> {
    RUNNERS.iter().flat_map(|r| r.manifests.iter().copied())
}

/// A `find` that runs the default command if one of the manifests exists.
fn find_by_manifest(runner: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    let manifest = runner.manifests.iter().find(|m| place.has(m))?;
    Some(FoundSuite::new(
        SuiteStep::new(runner.default_argv(), place.dir).with_runner(runner),
        *manifest,
    ))
}

/// A `find` for runners that are never detected, only named by a command.
fn never_detected(_: &'static Runner, _: &SearchPlace<'_>) -> Option<FoundSuite> {
    None
}

/// Escapes `text` so that the regular expression matches it literally.
fn escape_regex(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            r"\.+*?()|[]{}^$/"
                .contains(c)
                .then_some('\\')
                .into_iter()
                .chain([c])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_runner_file_is_in_the_table() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/runners");
        let files: BTreeSet<String> = std::fs::read_dir(dir)
            .expect("the directory exists")
            .map(|e| e.expect("readable").path())
            .filter(|p| p.extension().is_some_and(|e| e == "rs"))
            .map(|p| {
                p.file_stem()
                    .expect("has a name")
                    .to_string_lossy()
                    .into_owned()
            })
            // Not a runner: feeds arbitrary text to their parsers.
            .filter(|name| name != "fuzz")
            .collect();
        let table: BTreeSet<String> = RUNNERS.iter().map(|r| r.name.to_owned()).collect();
        assert_eq!(files, table);
    }
}
