//! Proofs that travel with a commit: written by `prove --attest`, checked by `prove --check`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use supervisor_test_support::programs::require;

use crate::support::user_shell::program;

fn git(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(arguments)
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A crate with a commit that adds a function and its test.
fn project() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    let write = |path: &str, text: &str| {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), text).unwrap();
    };
    write(
        "Cargo.toml",
        "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
    );
    write(".gitignore", "target\nCargo.lock\n");
    write("src/lib.rs", "pub fn one() -> i32 {\n    1\n}\n");
    git(&root, &["init", "-q"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-qm", "Base"]);
    write(
        "src/lib.rs",
        "pub fn one() -> i32 {\n    1\n}\n\npub fn two() -> i32 {\n    2\n}\n",
    );
    write(
        "tests/two.rs",
        "#[test]\nfn two() {\n    assert_eq!(demo::two(), 2);\n}\n",
    );
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-qm", "Two"]);
    dir
}

fn prove(dir: &Path, arguments: &[&str]) -> Output {
    let identity = [
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@example.org"),
        ("GIT_COMMITTER_NAME", "A"),
        ("GIT_COMMITTER_EMAIL", "a@example.org"),
    ];
    program()
        .arg("prove")
        .args(["--project".as_ref(), dir.join("project").as_os_str()])
        .args(arguments)
        .envs(identity)
        .env("HOME", dir)
        .env("SUPERVISOR_STATE_DIR", dir.join("state"))
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn proof_travels_with_its_commit() {
    let dir = project();
    let root = dir.path().join("project");
    let missing = prove(dir.path(), &["--check", "HEAD"]);
    assert_eq!(missing.status.code(), Some(1), "{}", said(&missing));
    let attested = prove(dir.path(), &["--attest"]);
    assert_eq!(attested.status.code(), Some(0), "{}", said(&attested));
    assert!(said(&attested).contains("refs/notes/proof (not signed"));
    let checked = prove(dir.path(), &["--check", "HEAD"]);
    assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
    assert!(
        said(&checked).contains("integrity only"),
        "{}",
        said(&checked)
    );
    let allowed = dir.path().join("allowed").display().to_string();
    fs::write(&allowed, "").unwrap();
    let unsigned = prove(
        dir.path(),
        &["--check", "HEAD", "--allowed-signers", &allowed],
    );
    assert_eq!(unsigned.status.code(), Some(1), "{}", said(&unsigned));
    assert!(said(&unsigned).contains("carries no signature"));
    let again = prove(dir.path(), &["--check", "HEAD", "--rerun"]);
    assert!(said(&again).contains("proven"), "{}", said(&again));

    let note = git(&root, &["notes", "--ref", "proof", "show", "HEAD"]);
    let mut envelope: Value = serde_json::from_str(&note).unwrap();
    let payload = BASE64.decode(envelope["payload"].as_str().unwrap());
    let statement = String::from_utf8(payload.unwrap()).unwrap();
    assert!(statement.contains("\"sandbox\":\"tests: "), "{statement}");
    // A note that does not say "proven" is no proof.
    envelope["payload"] = BASE64
        .encode(statement.replace("\"proven\"", "\"broken\""))
        .into();
    let other = ["notes", "--ref", "proof", "add", "-f", "-m"];
    git(
        &root,
        &[&other[..], &[&envelope.to_string(), "HEAD"]].concat(),
    );
    let broken = prove(dir.path(), &["--check", "HEAD"]);
    assert_eq!(broken.status.code(), Some(1), "{}", said(&broken));
    git(&root, &[&other[..], &[&note, "HEAD"]].concat());

    // The same note on another commit is refused: it names other files.
    fs::write(root.join("other.md"), "Other.\n").unwrap();
    let dirty = prove(dir.path(), &["--attest"]);
    assert_eq!(dirty.status.code(), Some(2), "{}", said(&dirty));
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-qm", "Other"]);
    git(
        &root,
        &["notes", "--ref", "proof", "add", "-m", &note, "HEAD"],
    );
    let moved = prove(dir.path(), &["--check", "HEAD"]);
    assert_eq!(moved.status.code(), Some(1), "{}", said(&moved));
    assert!(said(&moved).contains("for other files"), "{}", said(&moved));
}

#[test]
#[ignore = "needs ssh-keygen"]
fn signature_counts_only_if_the_verifier_allows_the_signer() {
    require(&["ssh-keygen"]);
    let dir = project();
    for name in ["mine", "other"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f", name])
            .current_dir(dir.path())
            .status();
        assert!(made.unwrap().success());
        let public = fs::read_to_string(dir.path().join(format!("{name}.pub"))).unwrap();
        let allowed = format!("{name}@example.org {public}");
        fs::write(dir.path().join(format!("{name}.allowed")), allowed).unwrap();
    }
    let path = |name: &str| dir.path().join(name).display().to_string();
    let attested = prove(dir.path(), &["--attest", "--key", &path("mine")]);
    assert!(said(&attested).contains("(signed)"), "{}", said(&attested));
    let by = |allowed: &str| {
        prove(
            dir.path(),
            &["--check", "HEAD", "--allowed-signers", allowed],
        )
    };
    let checked = by(&path("mine.allowed"));
    assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
    assert!(said(&checked).contains("signed by mine@example.org"));
    let refused = by(&path("other.allowed"));
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
}
