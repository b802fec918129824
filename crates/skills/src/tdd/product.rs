//! The product must build without its tests: code that leans on what only tests define works in no program. Asked only
//! where it is cheap, and held against an answer only if the compiler names a file that the answer changed.

use std::time::Duration;

use super::baseline::Ground;
use super::gates::{self, Gates, SeenChanges, Text, output_excerpt};
use supervisor_engine::Cause;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_text::words;
use supervisor_verify as verify;
use supervisor_verify::{Bench, Outcome, TestRun};

/// It may take this share of what the tests took, and no less than [`LEAST`].
const SHARE: f64 = 0.5;
const LEAST: Duration = Duration::from_secs(5);

/// The command that builds the product alone; `None` where there is none that is cheap and sure.
fn command(ground: &Ground, texts: &[Text]) -> Option<String> {
    let changed = |ending: &str| {
        texts
            .iter()
            .any(|t| t.after.is_some() && t.path.extension().is_some_and(|e| e == ending))
    };
    let root = ground.suite.root();
    match ground.ecosystem()?.name {
        "go" if changed("go") => {
            let dirs = texts
                .iter()
                .filter(|t| t.path.extension().is_some_and(|e| e == "go"));
            let mut dirs: Vec<String> = dirs
                .filter_map(|t| {
                    ground
                        .as_run(&t.path)
                        .parent()
                        .map(|dir| format!("./{}", dir.display()))
                })
                .collect();
            dirs.sort();
            dirs.dedup();
            // The one program of a single package would be written; several packages are only checked.
            let one: &[&str] = if dirs.len() == 1 {
                &["-o", "/dev/null"]
            } else {
                &[]
            };
            let words = ["go", "build"]
                .iter()
                .chain(one)
                .map(|word| (*word).to_owned())
                .chain(dirs);
            Some(shell_words::join(words))
        }
        // Tests in a directory of their own link to the library as every program does.
        "rust"
            if changed("rs")
                && root.join("src/lib.rs").is_file()
                && !root.join("tests").is_dir() =>
        {
            Some(String::from("cargo check --lib"))
        }
        "javascript" if changed("ts") && root.join("tsconfig.json").is_file() => root
            .join("node_modules/.bin/tsc")
            .is_file()
            .then(|| String::from("node_modules/.bin/tsc --noEmit")),
        _ => None,
    }
}

/// Builds the product without its tests, where that is cheap.
pub(super) async fn check(
    ground: &Ground,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    seen: &SeenChanges,
    texts: &[Text],
    tests: &TestRun,
) -> Result<(), RefusedWork> {
    let Some(command) = command(ground, texts) else {
        return Ok(());
    };
    let Ok(suite) = verify::detect(ground.suite.root(), None, Some(&command)) else {
        return Ok(());
    };
    work.checking(format!("running `{command}`"));
    let limit = LEAST.max(tests.took().mul_f64(SHARE));
    let bench = ground
        .bench(work.site)
        .map_err(|e| gates.refuse_for_site(&e))?;
    let bench = Bench {
        limit: limit.min(bench.limit),
        ..bench
    };
    let run = suite.run(&bench, work.stop).await;
    drop(bench);
    gates::untouched_by_run(ground, work, gates, seen, &run)?;
    let names_change = || {
        texts.iter().any(|t| {
            run.output()
                .contains(&*ground.as_run(&t.path).to_string_lossy())
        })
    };
    match run.outcome() {
        Outcome::Passed => gates.pass(
            "product",
            format!("`{}` builds it without its tests", words::plain(&command)),
        ),
        Outcome::Failed if names_change() => {
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
