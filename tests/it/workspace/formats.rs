//! A call was killed, and the program was replaced before the project could be put right.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::mcp_bench::program;
use crate::workspace::storm::{files, kill_a_call};
use supervisor_test_support::project::TestProject;

fn bench() -> TestProject {
    let bench = TestProject::new();
    for n in 0..12 {
        bench.write(&format!("file-{n}"), &format!("contents of {n}\n"));
    }
    bench
}

fn project(bench: &TestProject) -> PathBuf {
    fs::read_dir(bench.state().path().join("projects"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path()
}

fn manifest(bench: &TestProject) -> PathBuf {
    let stores = fs::read_dir(project(bench))
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

fn recover(bench: &TestProject) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(program());
    let output = command
        .arg("recover")
        .arg("--state-dir")
        .arg(bench.state().path())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

#[test]
fn a_snapshot_of_an_earlier_format_brings_the_project_back() {
    let bench = bench();
    let before = files(&bench.root());
    kill_a_call(&bench);
    rewrite(&manifest(&bench), |bytes| {
        bytes[0] = 2;
        assert_eq!(
            bytes.pop(),
            Some(0),
            "format 2 has all but the last field, which is not set here"
        );
    });
    let (code, said) = recover(&bench);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(files(&bench.root()), before);
}

#[test]
fn a_snapshot_of_a_later_format_is_kept_and_the_way_out_is_named() {
    let bench = bench();
    kill_a_call(&bench);
    let damaged = files(&bench.root());
    rewrite(&manifest(&bench), |bytes| bytes[0] = 99);
    let (code, said) = recover(&bench);
    assert_eq!(code, Some(1), "{said}");
    for word in [
        "format 99",
        "of the version that made it",
        "remove `",
        project(&bench).to_str().unwrap(),
    ] {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
    // Not by a second try either, nor by what tidies up.
    recover(&bench);
    let mut gc = std::process::Command::new(program());
    gc.env("SUPERVISOR_STATE_DIR", bench.state().path())
        .arg("gc")
        .output()
        .unwrap();
    assert!(manifest(&bench).exists() && fs::read(manifest(&bench)).unwrap()[0] == 99);
    assert_eq!(files(&bench.root()), damaged, "half restored");
}
