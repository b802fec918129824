//! What a phase may touch. Code is written outside of tests and configuration, a test inside of tests alone; in Rust
//! both may share a file, so there the parts of the file are compared.

use std::path::Path;

use super::additions;
use super::baseline::Ground;
use super::gates::{Gates, Seen, Text, named};
use crate::engine::Cause;
use crate::engine::job::{Failed, Work};
use crate::verify::sealed::{Role, role, untouched};
use crate::verify::{Added, Ecosystem, SameTests, Weight, rust_regions, same_tests, suspicious_additions};

/// For edits as data: may code be written here?
pub(super) fn code_only(ecosystem: Option<Ecosystem>, path: &Path) -> Result<(), String> {
    match role(ecosystem, path) {
        Role::Source => Ok(()),
        Role::Test => Err("tests are sealed; mend the code".into()),
        Role::Snapshot | Role::Fixture => Err("what tests compare with is sealed; mend the code".into()),
        Role::RunnerConfig | Role::BuildConfig => Err("the configuration of runner and build is sealed".into()),
    }
}

/// The same where these are the tests in question, whatever their file is called.
pub(super) fn code_beside<'a>(ground: &'a Ground, test: &'a Path) -> impl Fn(&Path) -> Result<(), String> + 'a {
    move |path| {
        code_only(ground.ecosystem(), path)?;
        if ground.starts(path) {
            return Err("it is what the tests are started by; mend the code".into());
        }
        if path == test && !in_file_tests(ground.ecosystem(), path) {
            return Err("it is the test that must pass; mend the code".into());
        }
        Ok(())
    }
}

/// For edits as data: may a test be written here?
pub(super) fn tests_only(ground: &Ground, path: &Path) -> Result<(), String> {
    let ecosystem = ground.ecosystem();
    if ground.starts(path) {
        return Err("it is what the tests are started by".into());
    }
    match role(ecosystem, path) {
        Role::Test | Role::Snapshot | Role::Fixture => Ok(()),
        Role::Source if in_file_tests(ecosystem, path) => Ok(()),
        Role::Source => Err("only tests may be written in this phase, no code".into()),
        Role::RunnerConfig | Role::BuildConfig => Err("the configuration of runner and build is sealed".into()),
    }
}

/// Rust keeps unit tests beside the code.
pub(super) fn in_file_tests(ecosystem: Option<Ecosystem>, path: &Path) -> bool {
    ecosystem == Some(Ecosystem::Rust) && path.extension().is_some_and(|e| e == "rs")
}

/// Nothing sealed was touched, in whole files and in the test parts of Rust files. Gives the changed texts.
pub(super) fn sealed(
    ground: &Ground,
    work: &mut Work<'_>,
    gates: &mut Gates,
    seen: &Seen,
    allowed: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<Vec<Text>, Failed> {
    let ecosystem = ground.ecosystem();
    let check = untouched(ecosystem, seen.changes.iter().map(|c| c.path.as_path()));
    if !check.passed() {
        return Err(gates.refuse("sealed", Cause::Tampered, check.detail()));
    }
    let texts = seen.texts(work.site).map_err(|e| gates.broken(&e))?;
    if let Some((text, why)) = texts.iter().find_map(|t| Some((t, allowed(&t.path).err()?))) {
        let why = format!("{} may not be changed here: {why}", named(&text.path));
        return Err(gates.refuse("sealed", Cause::Tampered, why));
    }
    for text in texts.iter().filter(|t| in_file_tests(ecosystem, &t.path)) {
        if is_test_module(work, &text.path) {
            let why = format!("these may not be changed here: {} (a module for tests only)", named(&text.path));
            return Err(gates.refuse("sealed", Cause::Tampered, why));
        }
        match same_tests(text.was(), text.is()) {
            SameTests::Same => {}
            SameTests::Differ => {
                let why = format!("these may not be changed here: the tests in {}", named(&text.path));
                return Err(gates.refuse("sealed", Cause::Tampered, why));
            }
            SameTests::CannotTell => {
                let why =
                    format!("{} does not parse as Rust, so its tests cannot be told from its code", named(&text.path));
                return Err(gates.refuse("sealed", Cause::Rejected, why));
            }
        }
    }
    gates.pass("sealed", check.detail());
    deceives(ecosystem, gates, &texts)?;
    Ok(texts)
}

/// Additions that could deceive the tests: rejected where the runner has no channel of its own, else told.
fn deceives(ecosystem: Option<Ecosystem>, gates: &mut Gates, texts: &[Text]) -> Result<(), Failed> {
    let mut flags = Vec::new();
    for text in texts {
        let lines = additions::lines(text.was(), text.is()).added;
        let added = Added { file: &text.path, source: text.is(), lines: &lines };
        for finding in suspicious_additions(ecosystem, added) {
            let what = format!("{}:{} has `{}`", named(&finding.file), finding.line, finding.what);
            if finding.weight == Weight::Reject {
                let why = format!("{what}, which could deceive the tests; do without it in code that tests run");
                return Err(gates.refuse("deception", Cause::Rejected, why));
            }
            flags.push(what);
        }
    }
    let detail =
        if flags.is_empty() { String::from("nothing added that could deceive the tests") } else { flags.join("; ") };
    gates.pass("deception", detail);
    Ok(())
}

/// Is this file the text of a `#[cfg(test)] mod x;` somewhere above it?
fn is_test_module(work: &mut Work<'_>, path: &Path) -> bool {
    let Ok(armed) = work.site.armed() else { return false };
    let mut module = path.with_extension("");
    if module.file_name().is_some_and(|n| n == "mod") {
        module.pop();
    }
    // Each module is declared by the one above it; the outermost lie in `src`.
    while let (Some(name), Some(dir)) = (module.file_name().map(|n| n.to_string_lossy().into_owned()), module.parent())
    {
        let parents = [dir.join("mod.rs"), dir.join("lib.rs"), dir.join("main.rs"), dir.with_extension("rs")];
        let declared = parents.iter().filter(|p| p.as_path() != path).filter_map(|p| armed.original(p)).any(|bytes| {
            rust_regions(&String::from_utf8_lossy(&bytes)).is_some_and(|regions| regions.elsewhere.contains(&name))
        });
        if declared {
            return true;
        }
        module = dir.to_owned();
    }
    false
}
