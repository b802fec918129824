//! Which files a phase may change. Code is written outside of tests and configuration, tests only
//! in test files. In Rust both may share a file, so there the parts of the file are compared.

use std::path::Path;

use super::baseline::TestBaseline;
use super::check;
use super::gates::{ChangedText, Gates, ObservedChanges, named};
use supervisor_engine::Cause;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_languages::Language;
use supervisor_prove::{ChangedCode, flags_of};
use supervisor_verify::Flags;
use supervisor_verify::protected::{FileRole, check_untouched, shadows_the_runner};
use supervisor_verify::{
    DependencyFile, TestRegionComparison, dependency_file, rust_regions, same_tests,
};
use supervisor_workspace::{Change, ChangeKind, EntryType};

/// Whether code may be written to this path; the error says why not.
pub(super) fn ensure_code_file(baseline: &TestBaseline, path: &Path) -> Result<(), String> {
    match baseline.role(path) {
        FileRole::Source => Ok(()),
        FileRole::Test => Err("tests are read-only in this phase; fix the code instead".into()),
        FileRole::Snapshot | FileRole::Fixture => Err(
            "files that tests compare with are read-only in this phase; fix the code instead"
                .into(),
        ),
        FileRole::RunnerConfig | FileRole::BuildConfig => {
            Err("the configuration of runner and build is sealed".into())
        }
    }
}

/// Like [`ensure_code_file`], and also protects the test file, whatever its name.
pub(super) fn code_edit_rule<'a>(
    baseline: &'a TestBaseline,
    test: &'a Path,
) -> impl Fn(&Path) -> Result<(), String> + 'a {
    move |path| {
        if let Some(check) = &baseline.check
            && let Some(decided) = check::ensure_editable(baseline, check, path)
        {
            return decided;
        }
        if baseline.may_gain_dependencies(path) || is_new_test_module(baseline, path) {
            return Ok(());
        }
        let hint = if dependency_file(path).is_some() {
            DEPENDENCY_HINT
        } else {
            ""
        };
        ensure_code_file(baseline, path).map_err(|why| format!("{why}{hint}"))?;
        if baseline.is_test_script(path) {
            return Err("it starts the tests; fix the code instead".into());
        }
        if path == test && !may_hold_inline_tests(baseline.ecosystem(), path) {
            return Err("it is the test that must pass; fix the code instead".into());
        }
        Ok(())
    }
}

/// A test file that did not exist before this call. Models often add one to good code. It can be
/// dropped because nothing depends on it.
pub(super) fn is_new_test(baseline: &TestBaseline, path: &Path) -> bool {
    !baseline.existed(path)
        && baseline.role(path) == FileRole::Test
        && !is_new_test_module(baseline, path)
}

/// A new test file that is a module of the code, so the code does not build without it.
fn is_new_test_module(baseline: &TestBaseline, path: &Path) -> bool {
    let has_own_directory = path
        .parent()
        .is_some_and(|dir| dir.iter().any(|part| part == "tests"));
    !baseline.existed(path)
        && may_hold_inline_tests(baseline.ecosystem(), path)
        && baseline.role(path) == FileRole::Test
        && !has_own_directory
}

/// Appended to the refusal of a change to a manifest.
const DEPENDENCY_HINT: &str = "; should the work need a new dependency, the call must allow it with `allow_dependencies` (its name, or true)";

/// The cause for refusing changes to protected files, each given with its text before and after.
/// Adding a dependency without permission is a mistake; everything else is tampering.
pub(super) fn refusal_cause<'a>(
    touched: impl Iterator<Item = (&'a Path, String, String)>,
) -> Cause {
    let mut adds_dependency = false;
    for (path, old, new) in touched {
        match dependency_file(path) {
            Some(DependencyFile::Manifest(format)) => match format.added_dependencies(&old, &new) {
                Ok(added) => adds_dependency |= !added.is_empty(),
                Err(_) => return Cause::Tampered,
            },
            Some(DependencyFile::Lock) => {}
            None => return Cause::Tampered,
        }
    }
    if adds_dependency {
        Cause::Rejected
    } else {
        Cause::Tampered
    }
}

/// Whether a test may be written to this path; the error says why not.
pub(super) fn ensure_test_file(baseline: &TestBaseline, path: &Path) -> Result<(), String> {
    let ecosystem = baseline.ecosystem();
    if baseline.is_test_script(path) {
        return Err("it starts the tests".into());
    }
    match baseline.role(path) {
        FileRole::Test | FileRole::Snapshot | FileRole::Fixture => Ok(()),
        FileRole::Source if may_hold_inline_tests(ecosystem, path) => Ok(()),
        FileRole::Source => Err("only tests may be written in this phase, no code".into()),
        FileRole::RunnerConfig | FileRole::BuildConfig => {
            Err("the configuration of runner and build is sealed".into())
        }
    }
}

/// Whether the file may contain unit tests beside its code, as in Rust.
pub(super) fn may_hold_inline_tests(ecosystem: Option<&'static Language>, path: &Path) -> bool {
    ecosystem.is_some_and(|language| language.has_inline_tests && language.owns(path))
}

/// Refuses changes to protected files and to the tests inside Rust files. Returns the changed
/// files.
pub(super) fn check_protected_files(
    baseline: &TestBaseline,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    observed: &ObservedChanges,
    check_editable: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<Vec<ChangedText>, RefusedWork> {
    let ecosystem = baseline.ecosystem();
    let is_named_by_check = |path: &Path| {
        let check = baseline.check.as_ref();
        check.and_then(|check| check.may_change(path)) == Some(true)
    };
    let is_allowed_addition = |path: &&Path| {
        baseline.may_gain_dependencies(path)
            || is_new_test_module(baseline, path)
            || is_named_by_check(path)
    };
    // A new directory has no effect by itself. Files in it are separate changes.
    let is_new_directory =
        |c: &&Change| c.kind == ChangeKind::Added && c.entry_type == EntryType::Directory;
    let touched = || {
        observed
            .changes
            .iter()
            .filter(|c| !is_new_directory(c))
            .map(|c| c.path.as_path())
            .filter(|path| !is_allowed_addition(path))
    };
    let check = check_untouched(|path| baseline.role(path), touched());
    if !check.passed() {
        let texts = gates.site(observed.read_texts(work.site))?;
        let protected = texts.iter().filter(|t| {
            baseline.role(&t.path).is_protected() && !baseline.may_gain_dependencies(&t.path)
        });
        let cause = refusal_cause(protected.map(|t| {
            (
                t.path.as_path(),
                t.old_text().to_owned(),
                t.new_text().to_owned(),
            )
        }));
        let hint = if cause == Cause::Rejected {
            DEPENDENCY_HINT
        } else {
            ""
        };
        return Err(gates.refuse("sealed", cause, format!("{}{hint}", check.detail())));
    }
    let texts = gates.site(observed.read_texts(work.site))?;
    check_added_dependencies(baseline, gates, &texts)?;
    let shadows_runner = |t: &&ChangedText| {
        t.before.is_none() && t.after.is_some() && shadows_the_runner(ecosystem, &t.path)
    };
    if let Some(text) = texts.iter().find(shadows_runner) {
        let why = format!(
            "{} would be loaded in the place of a module of the test runner; name it otherwise",
            named(&text.path)
        );
        return Err(gates.refuse("sealed", Cause::Tampered, why));
    }
    if let Some((text, why)) = texts
        .iter()
        .find_map(|t| Some((t, check_editable(&t.path).err()?)))
    {
        let why = format!("{} may not be changed here: {why}", named(&text.path));
        return Err(gates.refuse("sealed", Cause::Tampered, why));
    }
    // A new file has no old tests that could be lost.
    for text in texts
        .iter()
        .filter(|t| t.before.is_some() && may_hold_inline_tests(ecosystem, &t.path))
    {
        if is_test_module(work, &text.path) {
            let why = format!(
                "these may not be changed here: {} (a module for tests only)",
                named(&text.path)
            );
            return Err(gates.refuse("sealed", Cause::Tampered, why));
        }
        match same_tests(text.old_text(), text.new_text()) {
            TestRegionComparison::Same => {}
            TestRegionComparison::Differ => {
                let why = format!(
                    "these may not be changed here: the tests in {}",
                    named(&text.path)
                );
                return Err(gates.refuse("sealed", Cause::Tampered, why));
            }
            // A stub with gaps does not parse. If it mentions no tests, none can be lost.
            TestRegionComparison::Unparsable
                if rust_regions(text.new_text()).is_some() && !mentions_tests(text.old_text()) => {}
            TestRegionComparison::Unparsable => {
                let why = format!(
                    "{} does not parse as Rust, so its tests cannot be told from its code",
                    named(&text.path)
                );
                return Err(gates.refuse("sealed", Cause::Rejected, why));
            }
        }
    }
    gates.pass("sealed", check.detail());
    Ok(texts)
}

/// Whether the text appears to contain tests, even if it does not parse.
fn mentions_tests(source: &str) -> bool {
    source.contains("test]") || source.contains("(test") || source.contains("mod tests")
}

/// Allows changes to manifests only if they add dependencies that the caller allows.
fn check_added_dependencies(
    baseline: &TestBaseline,
    gates: &mut Gates,
    texts: &[ChangedText],
) -> Result<(), RefusedWork> {
    for text in texts {
        let Some(DependencyFile::Manifest(format)) = dependency_file(&text.path) else {
            continue;
        };
        if !baseline.may_gain_dependencies(&text.path) {
            continue;
        }
        let added = match format.added_dependencies(text.old_text(), text.new_text()) {
            Ok(added) => added,
            Err(why) => {
                let why = format!("{}: {why}", named(&text.path));
                return Err(gates.refuse("sealed", Cause::Tampered, why));
            }
        };
        if let Some(name) = added.iter().find(|name| !baseline.dependencies.allow(name)) {
            let why = format!(
                "{} would depend on `{name}`, which `allow_dependencies` does not name",
                named(&text.path)
            );
            return Err(gates.refuse("sealed", Cause::Rejected, why));
        }
    }
    Ok(())
}

/// Dependencies added by the answer.
pub(super) fn new_dependencies(texts: &[ChangedText]) -> Vec<String> {
    let added = texts
        .iter()
        .filter_map(|text| match dependency_file(&text.path)? {
            DependencyFile::Manifest(format) => format
                .added_dependencies(text.old_text(), text.new_text())
                .ok(),
            DependencyFile::Lock => None,
        });
    added.flatten().collect()
}

/// Flags suspicious code that a test run cannot judge: code that detects tests, or looks up
/// expected values. Flags never refuse work.
pub(super) fn collect_flags(baseline: &TestBaseline, texts: &[ChangedText], test: &Path) -> Flags {
    let source = std::fs::read_to_string(baseline.files.join(test)).unwrap_or_default();
    let code: Vec<ChangedCode<'_>> = texts
        .iter()
        .map(|text| ChangedCode {
            path: &text.path,
            old: text.old_text(),
            new: text.new_text(),
        })
        .collect();
    flags_of(&code, &[(test, &source)], &baseline.files)
}

/// Whether this file is included by `#[cfg(test)] mod x;` in a parent module.
fn is_test_module(work: &mut SubmittedWork<'_>, path: &Path) -> bool {
    let Ok(armed) = work.site.armed() else {
        return false;
    };
    let mut module = path.with_extension("");
    if module.file_name().is_some_and(|n| n == "mod") {
        module.pop();
    }
    // Each module is declared by its parent; the outermost are in `src`.
    while let (Some(name), Some(dir)) = (
        module.file_name().map(|n| n.to_string_lossy().into_owned()),
        module.parent(),
    ) {
        let parents = [
            dir.join("mod.rs"),
            dir.join("lib.rs"),
            dir.join("main.rs"),
            dir.with_extension("rs"),
        ];
        let declared = parents
            .iter()
            .filter(|p| p.as_path() != path)
            .filter_map(|p| armed.original(p))
            .any(|bytes| {
                rust_regions(&String::from_utf8_lossy(&bytes))
                    .is_some_and(|regions| regions.external_modules.contains(&name))
            });
        if declared {
            return true;
        }
        module = dir.to_owned();
    }
    false
}
