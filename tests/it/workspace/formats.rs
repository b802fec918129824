//! A call was killed, and the program was replaced before the project could be put right.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::mcp_session::program;
use crate::workspace::restarts::{files, kill_a_call};
use supervisor_test_support::project::TestProject;

fn scenario() -> TestProject {
    let scenario = TestProject::new();
    for n in 0..12 {
        scenario.write(&format!("file-{n}"), &format!("contents of {n}\n"));
    }
    scenario
}

fn project(scenario: &TestProject) -> PathBuf {
    fs::read_dir(scenario.state().path().join("projects"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path()
}

fn manifest(scenario: &TestProject) -> PathBuf {
    let stores = fs::read_dir(project(scenario))
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir());
    let names = stores.flat_map(|store| {
        fs::read_dir(store)
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
    });
    let is_manifest = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .as_encoded_bytes()
            .starts_with(b"manifest.")
    };
    names.filter(is_manifest).max().unwrap()
}

/// Writes a manifest as another version would have done. Its format is its first byte.
fn rewrite(path: &Path, change: impl Fn(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    bytes.truncate(bytes.len() - 32);
    change(&mut bytes);
    let sum = blake3::hash(&bytes);
    bytes.extend_from_slice(sum.as_bytes());
    fs::write(path, bytes).unwrap();
}

fn recover(scenario: &TestProject) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(program());
    let output = command
        .arg("recover")
        .arg("--state-dir")
        .arg(scenario.state().path())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

#[test]
fn snapshot_of_another_format_is_kept() {
    [2, 99].into_iter().for_each(assert_is_kept);
}

fn assert_is_kept(format: u8) {
    let scenario = scenario();
    kill_a_call(&scenario);
    let damaged = files(&scenario.root());
    rewrite(&manifest(&scenario), |bytes| bytes[0] = format);
    let (code, said) = recover(&scenario);
    assert_eq!(code, Some(1), "{said}");
    for word in [
        format!("format {format}").as_str(),
        "of the version that made it",
        "remove `",
        project(&scenario).to_str().unwrap(),
    ] {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
    // Not by a second try either, nor by what tidies up.
    recover(&scenario);
    let mut gc = std::process::Command::new(program());
    gc.env("SUPERVISOR_STATE_DIR", scenario.state().path())
        .arg("gc")
        .output()
        .unwrap();
    assert!(manifest(&scenario).exists() && fs::read(manifest(&scenario)).unwrap()[0] == format);
    assert_eq!(files(&scenario.root()), damaged, "half restored");
}
