//! The test runners we understand. Adding one is a file here, its `mod` and its line in [`RUNNERS`].

mod ava;
mod bun;
mod cargo;
mod ctest;
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
mod pytest;
pub(super) mod reports;
mod rspec;
mod tap;
mod unittest;
mod vitest;

use futures_util::future::BoxFuture;

use super::command;
use super::detect::{FoundSuite, SearchPlace};
use super::session::{Judgement, Session};
use super::step::SuiteStep;
use supervisor_languages::Language;

/// One runner: how it is found, recognised, started, understood and narrowed.
#[derive(Debug)]
pub struct Runner {
    pub name: &'static str,
    /// What its tests are written in.
    pub ecosystem: Option<&'static Language>,
    /// Files whose presence means that this runner may be the one.
    manifests: &'static [&'static str],
    /// What is run if a manifest decided and says no more.
    command: &'static [&'static str],
    /// What it finds in a directory.
    pub(super) find: fn(&'static Runner, &SearchPlace<'_>) -> Option<FoundSuite>,
    /// Is this command one of this runner's? Without the wrappers before it.
    recognises: fn(&[String]) -> bool,
    pub(super) run: for<'a> fn(&'a SuiteStep, &'a Session<'a>) -> BoxFuture<'a, Judgement>,
    /// The command narrowed to these tests; `None` if that cannot be said.
    pub(super) select: fn(&SuiteStep, &[&str]) -> Option<Vec<String>>,
    /// Names begin with the path of a file, relative to where the command runs.
    pub(super) names_are_paths: bool,
}

/// In the order in which a project is asked; the last one takes every command.
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
    &nextest::RUNNER,
    &unittest::RUNNER,
    &minitest::RUNNER,
    &node_test::RUNNER,
    &vitest::RUNNER,
    &jest::RUNNER,
    &mocha::RUNNER,
    &ava::RUNNER,
    &tap::RUNNER,
    &bun::RUNNER,
    &reports::RUNNER,
    &generic::RUNNER,
];

impl Runner {
    pub(super) fn argv(&self) -> Vec<String> {
        self.command.iter().map(|w| (*w).to_owned()).collect()
    }
}

pub(super) use fuzz::test_report;

pub(super) fn all() -> impl Iterator<Item = &'static Runner> {
    RUNNERS.iter().copied()
}

/// Who understands this command.
pub(super) fn recognise(argv: &[String]) -> &'static Runner {
    let understood = |inner: &[String]| {
        RUNNERS
            .iter()
            .find(|r| (r.recognises)(inner) && r.name != generic::RUNNER.name)
    };
    command::unwrapped(argv)
        .find_map(understood)
        .copied()
        .unwrap_or(&generic::RUNNER)
}

/// Is this command about tests, as far as anybody can tell?
pub(super) fn is_known(argv: &[String]) -> bool {
    !std::ptr::eq(recognise(argv), &raw const generic::RUNNER)
}

/// Every manifest that is looked for, in order.
pub fn manifests() -> impl Iterator<Item = &'static str> {
    RUNNERS.iter().flat_map(|r| r.manifests.iter().copied())
}

/// A manifest is all that is looked for, and the usual command is run.
fn by_manifest(runner: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    let manifest = runner.manifests.iter().find(|m| place.has(m))?;
    Some(FoundSuite::of(
        SuiteStep::new(runner.argv(), place.dir).run_by(runner),
        *manifest,
    ))
}

/// Found by nothing that lies about; a command must name it.
fn by_command_alone(_: &'static Runner, _: &SearchPlace<'_>) -> Option<FoundSuite> {
    None
}

/// Text as a regular expression that matches nothing else.
fn quoted(text: &str) -> String {
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
    fn every_file_of_the_folder_is_in_the_table() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/runners");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .expect("the folder is there")
            .map(|e| e.expect("readable").path())
            .filter(|p| p.extension().is_some_and(|e| e == "rs"))
            .map(|p| {
                p.file_stem()
                    .expect("has a name")
                    .to_string_lossy()
                    .into_owned()
            })
            // Reads what the others parse.
            .filter(|name| name != "fuzz")
            .collect();
        let table: BTreeSet<String> = RUNNERS.iter().map(|r| r.name.to_owned()).collect();
        assert_eq!(files, table);
    }
}
