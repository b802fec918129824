//! Changes of projects whose tests a script runs, which can do what real runners seldom do.

use std::time::Duration;

use supervisor_prove::{ProveError, ProveRequest, Report, Verdict, prove};
use supervisor_test_support::project::TestProject;
use supervisor_test_support::suites::run_environment;
use supervisor_verify::RunEnvironment;
use tokio_util::sync::CancellationToken;

use crate::support::*;

/// Called like `pytest`: one test that passes if the code is right, and one whose name differs in each run.
const VARYING_RUNNER: &str = r#"#!/bin/sh
for word in "$@"; do case "$word" in --junitxml=*) out=${word#--junitxml=};; esac; done
id=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
failure=""
code=0
if ! grep -q 'a + b' calc.py; then failure='<failure message="no"/>'; code=1; fi
cat > "$out" <<END
<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase classname="test_calc" name="test_adds" file="test_calc.py" line="1">$failure</testcase>
<testcase classname="test_now" name="test_now[08:$id]" file="test_now.py" line="1"/>
</testsuite></testsuites>
END
exit $code
"#;

#[tokio::test]
async fn names_that_vary_are_not_deleted_tests() {
    let project = TestProject::with(&[
        ("calc.py", "def add(a, b):\n    return b + a\n"),
        (
            "test_calc.py",
            "def test_adds():\n    assert calc.add(1, 2) == 3\n",
        ),
        ("test_now.py", "def test_now(now):\n    assert now\n"),
        ("pytest", &VARYING_RUNNER.replace("'a + b'", "' + '")),
    ]);
    let runner = project.root().join("pytest");
    std::fs::set_permissions(runner, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    project.git(&["init", "-q"]);
    commit(&project, "base");
    project.write("calc.py", "def add(a, b):\n    return a + b\n");
    let (root, state) = (project.root().canonicalize().unwrap(), project.state());
    let request = ProveRequest {
        test_cmd: Some("./pytest"),
        environment: environment(),
        ..ProveRequest::new(&root, &state)
    };
    let report = prove(&request, &CancellationToken::new()).await.unwrap();
    assert!(report.test_changes.is_empty(), "{report:#?}");
    assert!(report.regressions.is_empty(), "{report:#?}");
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.contains("`test_now.py::test_now`")),
        "{report:#?}"
    );
}

/// What `prove` says of a change of a project whose tests this script runs as `./NAME`.
async fn prove_with_script(name: &str, script: &str) -> Result<Report, ProveError> {
    prove_script_in(environment(), name, script).await
}

async fn prove_script_in(
    environment: RunEnvironment,
    name: &str,
    script: &str,
) -> Result<Report, ProveError> {
    let files = [
        ("calc.py", "def add(a, b):\n    return b + a\n"),
        ("test_calc.py", "def test_adds():\n    assert True\n"),
        (name, script),
    ];
    let project = TestProject::with(&files);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.root().join(name), mode).unwrap();
    project.git(&["init", "-q"]);
    commit(&project, "base");
    project.write("calc.py", "def add(a, b):\n    return a + b\n");
    let (root, state) = (project.root().canonicalize().unwrap(), project.state());
    let command = format!("./{name}");
    let request = ProveRequest {
        test_cmd: Some(&command),
        environment,
        ..ProveRequest::new(&root, &state)
    };
    prove(&request, &CancellationToken::new()).await
}

#[tokio::test]
async fn command_that_fails_anyway_is_no_verdict() {
    let error = prove_with_script("check", "#!/bin/sh\necho no such tool\nexit 1\n")
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ProveError::FailsAnyway { output, .. } if output.contains("no such tool")),
        "{error:?}"
    );
}

#[tokio::test]
async fn session_that_dies_is_no_verdict() {
    let script = "#!/bin/sh\nfor arg; do case $arg in --junitxml=*) out=${arg#*=};; esac; done\ncat > \"$out\" <<END\n<?xml version=\"1.0\"?><testsuites><testsuite name=\"pytest\"><testcase classname=\"test_calc\" name=\"test_adds\" file=\"test_calc.py\" line=\"1\"/></testsuite></testsuites>\nEND\necho 'INTERNALERROR> ValueError: half way'\nexit 3\n";
    let error = prove_with_script("pytest", script).await.unwrap_err();
    let message = error.to_string();
    assert!(
        matches!(error, ProveError::Inconclusive { .. }) && message.contains("half way"),
        "{message}"
    );
}

/// Called like `pytest`. `FAILS` is a condition of the shell; tests are selected with `::`.
const CONDITIONAL_RUNNER: &str = r#"#!/bin/sh
alone=no
for word in "$@"; do case "$word" in --junitxml=*) out=${word#--junitxml=};; *::*) alone=yes;; esac; done
grep -q 'a + b' calc.py && changed=yes || changed=no
failure=""
code=0
if FAILS; then failure='<failure message="no"/>'; code=1; fi
cat > "$out" <<END
<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase classname="test_calc" name="test_adds" file="test_calc.py" line="1">$failure</testcase>
</testsuite></testsuites>
END
exit $code
"#;

async fn prove_conditional(fails: &str) -> Report {
    // Without a sandbox, so that a run can leave a trace outside of the project.
    let environment = run_environment(Duration::from_secs(60));
    let script = CONDITIONAL_RUNNER.replace("FAILS", fails);
    prove_script_in(environment, "pytest", &script)
        .await
        .unwrap()
}

#[tokio::test]
async fn failure_only_after_other_tests_is_broken() {
    let report = prove_conditional("[ $changed = yes ] && [ $alone = no ]").await;
    assert_eq!(report.verdict, Verdict::Broken, "{report:#?}");
    assert_eq!(
        report.regressions,
        ["test_calc.py::test_adds"],
        "{report:#?}"
    );
}

#[tokio::test]
async fn failure_that_does_not_repeat_is_flaky() {
    let marker = tempfile::tempdir().unwrap();
    let once = format!(
        "[ $changed = yes ] && mkdir {}/ran 2>/dev/null",
        marker.path().display()
    );
    let report = prove_conditional(&once).await;
    assert_ne!(report.verdict, Verdict::Broken, "{report:#?}");
    assert_eq!(report.flaky[0].0, "test_calc.py::test_adds", "{report:#?}");
    assert!(
        report
            .to_text()
            .contains("flaky          test_calc.py::test_adds")
    );
    assert!(report.to_markdown().contains("Flaky"), "{report:#?}");
}
