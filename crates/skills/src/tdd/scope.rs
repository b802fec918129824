//! What a phase may touch. Code is written outside of tests and configuration, a test inside of tests alone; in Rust
//! both may share a file, so there the parts of the file are compared.

use std::path::Path;

use super::additions;
use super::baseline::Ground;
use super::gates::{Gates, SeenChanges, Text, named};
use supervisor_engine::Cause;
use supervisor_engine::work::{RefusedWork, SubmittedWork};
use supervisor_languages::Language;
use supervisor_verify::Flags;
use supervisor_verify::awareness::{looked_up, right_only_under_test};
use supervisor_verify::falsify::FalsifiableTests;
use supervisor_verify::sealed::{FileRole, role, shadows_the_runner, untouched};
use supervisor_verify::{DependencyFile, SameTests, dependency_file, rust_regions, same_tests};
use supervisor_workspace::{Change, ChangeKind, Thing};

/// For edits as data: may code be written here?
pub(super) fn code_only(ecosystem: Option<&'static Language>, path: &Path) -> Result<(), String> {
    match role(ecosystem, path) {
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

/// The same where these are the tests in question, whatever their file is called.
pub(super) fn code_beside<'a>(
    ground: &'a Ground,
    test: &'a Path,
) -> impl Fn(&Path) -> Result<(), String> + 'a {
    move |path| {
        if ground.may_grow(path) || is_new_module_of_tests(ground, path) {
            return Ok(());
        }
        let needs = if dependency_file(path).is_some() {
            NEEDS_DEPENDENCY
        } else {
            ""
        };
        code_only(ground.ecosystem(), path).map_err(|why| format!("{why}{needs}"))?;
        if ground.starts(path) {
            return Err("it starts the tests; fix the code instead".into());
        }
        if path == test && !in_file_tests(ground.ecosystem(), path) {
            return Err("it is the test that must pass; fix the code instead".into());
        }
        Ok(())
    }
}

/// A test file that did not exist before this call. It comes along with much good code, and nothing depends on it.
pub(super) fn is_new_test(ground: &Ground, path: &Path) -> bool {
    !ground.had(path)
        && role(ground.ecosystem(), path) == FileRole::Test
        && !is_new_module_of_tests(ground, path)
}

/// A new file of tests that is a module of the code, so that the code does not build without it.
fn is_new_module_of_tests(ground: &Ground, path: &Path) -> bool {
    let has_own_directory = path
        .parent()
        .is_some_and(|dir| dir.iter().any(|part| part == "tests"));
    !ground.had(path)
        && in_file_tests(ground.ecosystem(), path)
        && role(ground.ecosystem(), path) == FileRole::Test
        && !has_own_directory
}

/// Said of a manifest that an answer wants to change.
const NEEDS_DEPENDENCY: &str = "; should the work need a new dependency, the call must allow it with `allow_dependencies` (its name, or true)";

/// What touching sealed files counts as: to ask for a dependency that was not allowed is a mistake, and no more.
/// Each with its text before and after.
pub(super) fn cause_of<'a>(touched: impl Iterator<Item = (&'a Path, String, String)>) -> Cause {
    let mut asked = false;
    for (path, was, is) in touched {
        match dependency_file(path) {
            Some(DependencyFile::Manifest(format)) => match format.added_dependencies(&was, &is) {
                Ok(added) => asked |= !added.is_empty(),
                Err(_) => return Cause::Tampered,
            },
            Some(DependencyFile::Lock) => {}
            None => return Cause::Tampered,
        }
    }
    if asked {
        Cause::Rejected
    } else {
        Cause::Tampered
    }
}

/// For edits as data: may a test be written here?
pub(super) fn tests_only(ground: &Ground, path: &Path) -> Result<(), String> {
    let ecosystem = ground.ecosystem();
    if ground.starts(path) {
        return Err("it starts the tests".into());
    }
    match role(ecosystem, path) {
        FileRole::Test | FileRole::Snapshot | FileRole::Fixture => Ok(()),
        FileRole::Source if in_file_tests(ecosystem, path) => Ok(()),
        FileRole::Source => Err("only tests may be written in this phase, no code".into()),
        FileRole::RunnerConfig | FileRole::BuildConfig => {
            Err("the configuration of runner and build is sealed".into())
        }
    }
}

/// Rust keeps unit tests beside the code.
pub(super) fn in_file_tests(ecosystem: Option<&'static Language>, path: &Path) -> bool {
    ecosystem.is_some_and(|language| language.tests_beside_code && language.owns(path))
}

/// Nothing sealed was touched, in whole files and in the test parts of Rust files. Gives the changed texts.
pub(super) fn sealed(
    ground: &Ground,
    work: &mut SubmittedWork<'_>,
    gates: &mut Gates,
    seen: &SeenChanges,
    allowed: &dyn Fn(&Path) -> Result<(), String>,
) -> Result<Vec<Text>, RefusedWork> {
    let ecosystem = ground.ecosystem();
    let may_come = |path: &&Path| ground.may_grow(path) || is_new_module_of_tests(ground, path);
    // A new directory does nothing by itself; what lies in it is a change of its own.
    let is_new_place = |c: &&Change| c.kind == ChangeKind::Added && c.thing == Thing::Directory;
    let touched = || {
        seen.changes
            .iter()
            .filter(|c| !is_new_place(c))
            .map(|c| c.path.as_path())
            .filter(|path| !may_come(path))
    };
    let check = untouched(ecosystem, touched());
    if !check.passed() {
        let texts = seen
            .texts(work.site)
            .map_err(|e| gates.refuse_for_site(&e))?;
        let sealed = texts
            .iter()
            .filter(|t| role(ecosystem, &t.path).is_sealed() && !ground.may_grow(&t.path));
        let cause =
            cause_of(sealed.map(|t| (t.path.as_path(), t.was().to_owned(), t.is().to_owned())));
        let needs = if cause == Cause::Rejected {
            NEEDS_DEPENDENCY
        } else {
            ""
        };
        return Err(gates.refuse("sealed", cause, format!("{}{needs}", check.detail())));
    }
    let texts = seen
        .texts(work.site)
        .map_err(|e| gates.refuse_for_site(&e))?;
    dependencies_only(ground, gates, &texts)?;
    let is_shadow = |t: &&Text| {
        t.before.is_none() && t.after.is_some() && shadows_the_runner(ecosystem, &t.path)
    };
    if let Some(text) = texts.iter().find(is_shadow) {
        let why = format!(
            "{} would be loaded in the place of a module of the test runner; name it otherwise",
            named(&text.path)
        );
        return Err(gates.refuse("sealed", Cause::Tampered, why));
    }
    if let Some((text, why)) = texts
        .iter()
        .find_map(|t| Some((t, allowed(&t.path).err()?)))
    {
        let why = format!("{} may not be changed here: {why}", named(&text.path));
        return Err(gates.refuse("sealed", Cause::Tampered, why));
    }
    // In a file that was not there no test can be lost.
    for text in texts
        .iter()
        .filter(|t| t.before.is_some() && in_file_tests(ecosystem, &t.path))
    {
        if is_test_module(work, &text.path) {
            let why = format!(
                "these may not be changed here: {} (a module for tests only)",
                named(&text.path)
            );
            return Err(gates.refuse("sealed", Cause::Tampered, why));
        }
        match same_tests(text.was(), text.is()) {
            SameTests::Same => {}
            SameTests::Differ => {
                let why = format!(
                    "these may not be changed here: the tests in {}",
                    named(&text.path)
                );
                return Err(gates.refuse("sealed", Cause::Tampered, why));
            }
            // A stub with a gap in it is no Rust yet; where it names no test, none can be lost.
            SameTests::CannotTell
                if rust_regions(text.is()).is_some() && !names_tests(text.was()) => {}
            SameTests::CannotTell => {
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

/// Does this text speak of tests, whether or not it can be read?
fn names_tests(source: &str) -> bool {
    source.contains("test]") || source.contains("(test") || source.contains("mod tests")
}

/// Manifests may grow where dependencies stand, by those the caller allows; everything else in them stays.
fn dependencies_only(
    ground: &Ground,
    gates: &mut Gates,
    texts: &[Text],
) -> Result<(), RefusedWork> {
    for text in texts {
        let Some(DependencyFile::Manifest(format)) = dependency_file(&text.path) else {
            continue;
        };
        if !ground.may_grow(&text.path) {
            continue;
        }
        let added = match format.added_dependencies(text.was(), text.is()) {
            Ok(added) => added,
            Err(why) => {
                let why = format!("{}: {why}", named(&text.path));
                return Err(gates.refuse("sealed", Cause::Tampered, why));
            }
        };
        if let Some(name) = added.iter().find(|name| !ground.dependencies.allow(name)) {
            let why = format!(
                "{} would depend on `{name}`, which `allow_dependencies` does not name",
                named(&text.path)
            );
            return Err(gates.refuse("sealed", Cause::Rejected, why));
        }
    }
    Ok(())
}

/// The dependencies that an answer adds.
pub(super) fn new_dependencies(texts: &[Text]) -> Vec<String> {
    let added = texts
        .iter()
        .filter_map(|text| match dependency_file(&text.path)? {
            DependencyFile::Manifest(format) => {
                format.added_dependencies(text.was(), text.is()).ok()
            }
            DependencyFile::Lock => None,
        });
    added.flatten().collect()
}

/// What a run cannot decide about new code: a look at who runs it, a look-up of visible inputs. Flags refuse nothing.
pub(super) fn flags(ground: &Ground, texts: &[Text], test: &Path) -> Flags {
    let source = std::fs::read_to_string(ground.files.join(test)).unwrap_or_default();
    let expectations = FalsifiableTests::whole_file(test, &source)
        .map(|tests| tests.expectations())
        .unwrap_or_default();
    let of_text = |text: &Text| {
        let lines = additions::lines(text.was(), text.is()).added;
        let mut flags = right_only_under_test(&text.path, text.is(), &lines);
        flags.extend(looked_up(&text.path, text.is(), &lines, &expectations));
        flags
    };
    let mut raised = Flags::default();
    texts
        .iter()
        .flat_map(of_text)
        .for_each(|flag| raised.raise(flag.id, flag.place, flag.detail));
    raised
}

/// Is this file the text of a `#[cfg(test)] mod x;` somewhere above it?
fn is_test_module(work: &mut SubmittedWork<'_>, path: &Path) -> bool {
    let Ok(armed) = work.site.armed() else {
        return false;
    };
    let mut module = path.with_extension("");
    if module.file_name().is_some_and(|n| n == "mod") {
        module.pop();
    }
    // Each module is declared by the one above it; the outermost lie in `src`.
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
                    .is_some_and(|regions| regions.elsewhere.contains(&name))
            });
        if declared {
            return true;
        }
        module = dir.to_owned();
    }
    false
}
