//! Checks that the product builds without its tests, because code that depends on test-only
//! definitions does not work in production. The check runs only where it is cheap, and refuses an
//! answer only if the compiler reports an error that it does not report without the answer.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

use super::baseline::TestBaseline;
use super::gates::{self, ChangedText, Gates, ObservedChanges, output_excerpt};
use super::without_work::known_run_without_work;
use supervisor_engine::Cause;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_text::words;
use supervisor_verify as verify;
use supervisor_verify::{Outcome, RunEnvironment, TestRun, without_varying_parts};

/// Time limit of a build; the tests' own time where they take longer.
const MIN_LIMIT: Duration = Duration::from_secs(30);

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
            Some(String::from("cargo check --lib --message-format short"))
        }
        "javascript" if has_changed("ts") && root.join("tsconfig.json").is_file() => root
            .join("node_modules/.bin/tsc")
            .is_file()
            .then(|| type_check_command(root)),
        _ => None,
    }
}

/// Checks the types as the project's own build does: with the configuration of a build script, or the
/// one that is named after the build.
fn type_check_command(root: &Path) -> String {
    const CHECK: &str = "node_modules/.bin/tsc --noEmit";
    let scripts = fs::read_to_string(root.join("package.json"))
        .ok()
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
        .and_then(|manifest| manifest["scripts"].as_object().cloned())
        .unwrap_or_default();
    // In the order of their names, `build` comes before `build:esm`.
    let scripts: BTreeMap<String, String> = scripts
        .into_iter()
        .filter(|(name, _)| name.starts_with("build"))
        .filter_map(|(name, script)| Some((name, script.as_str()?.to_owned())))
        .collect();
    let configured = scripts
        .values()
        .find_map(|script| project_option(script))
        .into_iter()
        .chain(["tsconfig.prod.json", "tsconfig.build.json"].map(String::from))
        .find(|file| root.join(file).exists());
    match configured {
        Some(file) => format!("{CHECK} --project {}", shell_words::quote(&file)),
        None => String::from(CHECK),
    }
}

/// The configuration that a script gives to the TypeScript compiler.
fn project_option(script: &str) -> Option<String> {
    let words = shell_words::split(script).ok()?;
    let compiler = words
        .iter()
        .position(|word| word == "tsc" || word.ends_with("/tsc"))?;
    let mut options = words[compiler..]
        .iter()
        .take_while(|word| !["&&", "||", ";", "&", "|"].contains(&word.as_str()));
    while let Some(option) = options.next() {
        if matches!(option.as_str(), "-p" | "--project" | "-b" | "--build") {
            return options.next().cloned();
        }
        if let Some(file) = option.strip_prefix("--project=") {
            return Some(file.to_owned());
        }
    }
    None
}

/// The errors that the output tells, without line numbers, and how often. A caller in another file can be what a change
/// broke, so those of all files count.
fn diagnostics(output: &str) -> BTreeMap<String, usize> {
    static POSITION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\.[A-Za-z]+[:(][0-9]").expect("the pattern is valid"));
    let mut found = BTreeMap::new();
    for line in output
        .lines()
        .filter(|line| POSITION.is_match(line) && !line.contains("warning"))
    {
        *found.entry(without_varying_parts(line)).or_default() += 1;
    }
    found
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
    let limit = MIN_LIMIT.max(tests.took());
    let bench = gates.site(baseline.bench_for_run(work.site))?;
    let bench = RunEnvironment {
        limit: limit.min(bench.limit),
        ..bench
    };
    let run = suite.run(&bench, work.stop).await;
    drop(bench);
    gates::ensure_unchanged_by_run(baseline, work, gates, observed, &run)?;
    let command = words::plain(&command).into_owned();
    let detail = match run.outcome() {
        Outcome::Passed => format!("`{command}` builds it without its tests"),
        Outcome::Failed | Outcome::DidNotBuild { .. } => {
            let before = known_run_without_work(baseline, work, gates, observed, &suite).await?;
            let said = diagnostics(before.output());
            let is_new = diagnostics(run.output())
                .iter()
                .any(|(line, times)| said.get(line).is_none_or(|before| before < times));
            match before.outcome() {
                Outcome::Failed | Outcome::DidNotBuild { .. } if !is_new => {
                    format!("`{command}` says what it said before the change")
                }
                Outcome::Passed | Outcome::Failed | Outcome::DidNotBuild { .. } => {
                    let why =
                        format!("`{command}` fails: the product does not build without its tests");
                    return Err(gates.refuse_with(
                        "product",
                        Cause::Rejected,
                        why,
                        output_excerpt(&run),
                    ));
                }
                _ => format!("unknown: without the change, {}", before.sentence()),
            }
        }
        // A build that does not end in time says nothing, as it depends on what else runs.
        _ => format!("unknown: {}", run.sentence()),
    };
    gates.pass("product", detail);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_script_decides_how_types_are_checked() {
        let dir = tempfile::tempdir().expect("temp dir");
        let write = |file: &str, text: &str| {
            std::fs::write(dir.path().join(file), text).expect("written");
        };
        let check = || {
            type_check_command(dir.path())
                .trim_start_matches("node_modules/.bin/tsc --noEmit")
                .trim()
                .to_owned()
        };
        write("tsconfig.json", "{}");
        assert_eq!(check(), "");
        write("tsconfig.prod.json", "{}");
        assert_eq!(check(), "--project tsconfig.prod.json");
        write("tsconfig.esm.json", "{}");
        write(
            "package.json",
            r#"{"scripts": {"build": "npm run build:esm && echo done", "build:esm": "rm -rf dist && tsc -p tsconfig.esm.json && cp a b", "test": "tsc -p tsconfig.test.json"}}"#,
        );
        assert_eq!(check(), "--project tsconfig.esm.json");
        write(
            "package.json",
            r#"{"scripts": {"build": "tsc -p gone.json"}}"#,
        );
        assert_eq!(check(), "--project tsconfig.prod.json");
    }

    #[test]
    fn moved_diagnostic_is_the_same() {
        let old = "src/a.ts(3,5): error TS2322: no\n";
        let before = diagnostics(&format!("{old}Found 1 error in 1.3 s.\n"));
        let after = diagnostics("src/a.ts(4,5): error TS2322: no\nFound 2 errors.\n");
        assert_eq!(before, after);
        assert_ne!(before, diagnostics(&old.repeat(2)));
        let caller = "src/b.ts(9,1): error TS2554: Expected 2 arguments, but got 1.\n";
        assert_ne!(before, diagnostics(&format!("{old}{caller}")));
        assert_eq!(
            before,
            diagnostics(&format!("{old}src/b.rs:1:1: warning: unused\n"))
        );
    }
}
