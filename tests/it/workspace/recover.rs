//! `supervisor recover`, while a call runs and after it was killed.

use std::process::Command;

use supervisor_test_support::live_call::{self, Victim, kill};
use supervisor_test_support::project::TestProject;

#[test]
fn recover_reports_each_project() {
    let project = TestProject::with(&[("a.txt", "a\n"), ("b.txt", "b\n"), ("c/d.txt", "d\n")]);
    let recover = || {
        let output = Command::new(env!("CARGO_BIN_EXE_supervisor"))
            .arg("recover")
            .arg("--state-dir")
            .arg(project.dir.path().join("state"))
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    std::fs::create_dir(project.dir.path().join("state")).unwrap();
    let (code, printed) = recover();
    assert_eq!(
        (code, printed.as_str()),
        (Some(0), "ok    nothing to recover\n")
    );

    let mut server = live_call::start(project.dir.path());
    let (code, printed) = recover();
    assert!(
        code == Some(1) && printed.starts_with("busy  "),
        "{code:?} {printed}"
    );

    kill(&server, Victim::Both);
    server.wait().unwrap();
    let (code, printed) = recover();
    assert!(
        code == Some(0) && printed.starts_with("ok    ") && printed.contains("restored"),
        "{code:?} {printed}"
    );
    assert!(
        printed.contains(project.root().to_str().unwrap()) && printed.contains("rejected"),
        "{printed}"
    );
    assert!(
        printed.contains("programs of the call had outlived it"),
        "{printed}"
    );
    assert_eq!(recover().1, "ok    nothing to recover\n");
}
