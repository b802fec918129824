//! Checks that the product builds without its tests, because code that depends on test-only
//! definitions does not work in production. The check runs only where it is cheap, and refuses an
//! answer only if the compiler names a file that the answer changed.

use std::time::Duration;

use super::baseline::TestBaseline;
use super::gates::{self, ChangedText, Gates, ObservedChanges, output_excerpt};
use supervisor_engine::Cause;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_text::words;
use supervisor_verify as verify;
use supervisor_verify::{Outcome, RunEnvironment, TestRun};

/// Time limit as a share of the test run's duration, but at least [`MIN_LIMIT`].
const MAX_SHARE: f64 = 0.5;
const MIN_LIMIT: Duration = Duration::from_secs(5);

/// The command that builds only the product; `None` if there is no cheap and reliable one.
fn build_command(baseline: &TestBaseline, texts: &[ChangedText]) -> Option<String> {
    let has_changed = |ending: &str| {
        texts
            .iter()
            .any(|t| t.after.is_some() && t.path.extension().is_some_and(|e| e == ending))
    };
    let root = baseline.suite.root();
    match baseline.ecosystem()?.name {
        "go" if has_changed("go") => {
            let dirs = texts
                .iter()
                .filter(|t| t.path.extension().is_some_and(|e| e == "go"));
            let mut dirs: Vec<String> = dirs
                .filter_map(|t| {
                    baseline
                        .suite_relative(&t.path)
                        .parent()
                        .map(|dir| format!("./{}", dir.display()))
                })
                .collect();
            dirs.sort();
            dirs.dedup();
            // `go build` writes a binary if given a single package; for several packages it only
            // checks.
            let output_args: &[&str] = if dirs.len() == 1 {
                &["-o", "/dev/null"]
            } else {
                &[]
            };
            let args = ["go", "build"]
                .iter()
                .chain(output_args)
                .map(|word| (*word).to_owned())
                .chain(dirs);
            Some(shell_words::join(args))
        }
        // Tests in a separate directory link to the library like any other program, so they
        // already prove that it builds.
        "rust"
            if has_changed("rs")
                && root.join("src/lib.rs").is_file()
                && !root.join("tests").is_dir() =>
        {
            Some(String::from("cargo check --lib"))
        }
        "javascript" if has_changed("ts") && root.join("tsconfig.json").is_file() => root
            .join("node_modules/.bin/tsc")
            .is_file()
            .then(|| String::from("node_modules/.bin/tsc --noEmit")),
        _ => None,
    }
}

/// Builds the product without its tests where that is cheap.
pub(super) async fn check(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    texts: &[ChangedText],
    tests: &TestRun,
) -> Result<(), RefusedWork> {
    let Some(command) = build_command(baseline, texts) else {
        return Ok(());
    };
    let Ok(suite) = verify::detect(baseline.suite.root(), None, Some(&command)) else {
        return Ok(());
    };
    work.checking(format!("running `{command}`"));
    let limit = MIN_LIMIT.max(tests.took().mul_f64(MAX_SHARE));
    let bench = gates.site(baseline.bench(work.site))?;
    let bench = RunEnvironment {
        limit: limit.min(bench.limit),
        ..bench
    };
    let run = suite.run(&bench, work.stop).await;
    drop(bench);
    gates::ensure_unchanged_by_run(baseline, work, gates, observed, &run)?;
    let names_changed_file = || {
        texts.iter().any(|t| {
            run.output()
                .contains(&*baseline.suite_relative(&t.path).to_string_lossy())
        })
    };
    match run.outcome() {
        Outcome::Passed => gates.pass(
            "product",
            format!("`{}` builds it without its tests", words::plain(&command)),
        ),
        Outcome::Failed if names_changed_file() => {
            let why = format!(
                "`{}` fails: the product does not build without its tests",
                words::plain(&command)
            );
            return Err(gates.refuse_with("product", Cause::Rejected, why, output_excerpt(&run)));
        }
        _ => gates.pass(
            "product",
            format!(
                "unknown: `{}` told nothing about these changes",
                words::plain(&command)
            ),
        ),
    }
    Ok(())
}
