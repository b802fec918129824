//! The test runners we understand. Adding one is a file here, its `mod` and its line in [`RUNNERS`].

mod cargo;
mod generic;
mod go;
mod jest;
mod mix;
mod mocha;
mod node_test;
mod npm;
mod pytest;
mod rspec;
mod vitest;

use std::path::Path;

use futures_util::future::BoxFuture;

use super::session::{Judgement, Session};
use super::suite::{Ecosystem, Suite};

/// One runner: how it is recognised, started, understood and narrowed.
#[derive(Debug)]
pub struct Runner {
    pub name: &'static str,
    pub ecosystem: Option<Ecosystem>,
    /// Files whose presence means that this runner is the one.
    manifests: &'static [&'static str],
    /// What is run if a manifest decided.
    command: &'static [&'static str],
    /// Is this command one of this runner's?
    recognises: fn(&[String]) -> bool,
    pub(super) run: for<'a> fn(&'a Suite, &'a Session<'a>) -> BoxFuture<'a, Judgement>,
    /// The command narrowed to one test; `None` if that cannot be said.
    pub(super) only: fn(&[String], &str) -> Option<Vec<String>>,
}

/// In the order in which a project is asked; the last one takes every command.
pub(super) static RUNNERS: &[&Runner] = &[
    &go::RUNNER,
    &npm::RUNNER,
    &pytest::RUNNER,
    &cargo::RUNNER,
    &rspec::RUNNER,
    &mix::RUNNER,
    &node_test::RUNNER,
    &vitest::RUNNER,
    &jest::RUNNER,
    &mocha::RUNNER,
    &generic::RUNNER,
];

impl Runner {
    pub(super) fn argv(&self) -> Vec<String> {
        self.command.iter().map(|w| (*w).to_owned()).collect()
    }
}

/// Who understands this command.
pub(super) fn recognise(argv: &[String]) -> &'static Runner {
    RUNNERS.iter().find(|r| (r.recognises)(argv)).copied().unwrap_or(&generic::RUNNER)
}

/// What the script behind a command such as `npm test` starts.
pub(super) fn scripts_of(argv: &[String], root: &Path) -> Vec<String> {
    npm::scripts(argv, root)
}

/// Every manifest that is looked for, in order.
pub fn manifests() -> impl Iterator<Item = &'static str> {
    RUNNERS.iter().flat_map(|r| r.manifests.iter().copied())
}

/// The manifests in one directory, in order, one per runner.
pub(super) fn manifests_in(dir: &Path) -> impl Iterator<Item = (&'static str, &'static Runner)> {
    RUNNERS.iter().filter_map(move |runner| {
        let manifest = runner.manifests.iter().find(|m| dir.join(m).is_file())?;
        Some((*manifest, *runner))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_in_the_table() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/verify/runners");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .expect("the folder is there")
            .map(|e| e.expect("readable").path())
            .filter(|p| p.extension().is_some_and(|e| e == "rs"))
            .map(|p| p.file_stem().expect("has a name").to_string_lossy().into_owned())
            .collect();
        let table: BTreeSet<String> = RUNNERS.iter().map(|r| r.name.to_owned()).collect();
        assert_eq!(files, table);
    }
}
