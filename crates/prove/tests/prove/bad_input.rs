//! Changes and projects that are unusual.

use std::time::Duration;

use supervisor_prove::{Comparand, MutantMode, ProveRequest, Report, Verdict};
use supervisor_test_support::project::TestProject;

use crate::support::*;

/// Called like `pytest`: one test that passes.
const PASSING_RUNNER: &str = r#"#!/bin/sh
for word in "$@"; do case "$word" in --junitxml=*) out=${word#--junitxml=};; esac; done
cat > "$out" <<END
<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase classname="test_calc" name="test_adds" file="test_calc.py" line="1"/>
</testsuite></testsuites>
END
"#;

/// A committed project whose tests this script runs.
fn scripted(script: &str) -> TestProject {
    let project = TestProject::with(&[
        ("calc.py", "def add(a, b):\n    return b + a\n"),
        ("test_calc.py", "def test_adds():\n    assert True\n"),
        ("pytest", script),
    ]);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.root().join("pytest"), mode).unwrap();
    project.git(&["init", "-q"]);
    project
}

async fn prove_scripted<'a>(
    project: &TestProject,
    set: impl FnOnce(&mut ProveRequest<'a>),
) -> Report {
    prove_request(project, |request| {
        request.test_cmd = Some("./pytest");
        request.mutants = MutantMode::Never;
        set(request);
    })
    .await
}

#[tokio::test]
async fn rename_of_500_files_is_read() {
    let project = scripted(PASSING_RUNNER);
    for n in 0..500 {
        project.write(
            &format!("old/f{n}.py"),
            &format!("def f():\n    return {n}\n"),
        );
    }
    commit(&project, "base");
    project.git(&["mv", "old", "new"]);
    let report = prove_scripted(&project, |_| {}).await;
    assert_eq!(report.changed_files.len(), 1_000, "{}", report.summary);
    assert_eq!(report.verdict, Verdict::Unproven, "{}", report.summary);
}

#[tokio::test]
async fn binary_data_needs_no_test() {
    let project = scripted(PASSING_RUNNER);
    commit(&project, "base");
    let bytes = [0x89, b'P', b'N', b'G', 0, 0xff, 0xfe, 0];
    std::fs::write(project.root().join("logo.png"), bytes).unwrap();
    let report = prove_scripted(&project, |_| {}).await;
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
    std::fs::write(project.root().join("native.so"), bytes).unwrap();
    let report = prove_scripted(&project, |_| {}).await;
    assert_eq!(report.verdict, Verdict::Unproven, "{report:#?}");
}

#[tokio::test]
async fn ignored_files_are_not_part_of_a_change() {
    let project = scripted(PASSING_RUNNER);
    project.write(".gitignore", "gen/\n");
    commit(&project, "base");
    project.write("gen/parser.py", "x = 1\n");
    project.write("README.md", "# Calc\n");
    let report = prove_scripted(&project, |_| {}).await;
    assert_eq!(report.changed_files.len(), 1, "{report:#?}");
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
}

#[tokio::test]
async fn suite_longer_than_the_budget_is_a_gap() {
    let project = scripted("#!/bin/sh\nexec sleep 600\n");
    commit(&project, "base");
    project.write("calc.py", "def add(a, b):\n    return a + b\n");
    let deadline = tokio::time::Instant::now() + Duration::from_secs(2);
    let report = prove_scripted(&project, |request| request.deadline = Some(deadline)).await;
    assert_eq!(report.verdict, Verdict::Unproven, "{report:#?}");
    assert!(
        report.gaps[0].what.starts_with("Not checked, time ran out"),
        "{report:#?}"
    );
}

#[tokio::test]
async fn merge_commit_is_compared_with_its_first_parent() {
    let project = project();
    project.git(&["checkout", "-q", "-b", "feature"]);
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    project.write("tests/double.rs", DOUBLE_TEST);
    commit(&project, "double");
    project.git(&["checkout", "-q", "-"]);
    project.write("README.md", "# Demo\n");
    commit(&project, "readme");
    project.git(&["merge", "-q", "--no-ff", "-m", "merge", "feature"]);
    let report = try_prove(&project, "HEAD^1", Comparand::Commit("HEAD".into()), &[])
        .await
        .unwrap();
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
    assert_eq!(report.changed_files.len(), 2, "{report:#?}");
}

#[tokio::test]
async fn fix_of_a_base_that_does_not_build_is_proven() {
    let project = project();
    project.write(
        "src/lib.rs",
        "pub fn add(a: i32, b: i32) -> i32 {\n    a +\n}\n",
    );
    commit(&project, "broken");
    project.write("src/lib.rs", ADD);
    project.write(
        "tests/more.rs",
        "#[test]\nfn adds_more() {\n    assert_eq!(demo::add(2, 2), 4);\n}\n",
    );
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
}
