//! A result check in the place of a test command; [`crate::Suite::of_check`] makes its step.

use futures_util::future::FutureExt as _;

use super::super::compare;
use super::{Runner, never_detected};

pub(super) static RUNNER: Runner = Runner {
    name: "check",
    ecosystem: None,
    manifests: &[],
    command: &[],
    find: never_detected,
    // A program of the project may have this name.
    recognises: |_| false,
    run: |step, session| async move { compare::run(step, session).await }.boxed(),
    select: |step, _| Some(step.argv.clone()),
    names_are_paths: false,
};
