//! Changes of a small cargo project, proven and refused.

use supervisor_prove::{Comparand, TestChangeKind, Verdict};
use supervisor_test_support::project::TestProject;

use crate::support::*;

#[tokio::test]
async fn feature_with_its_test_is_proven() {
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    project.write("tests/double.rs", DOUBLE_TEST);
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
    assert_eq!(report.falsified, (1, 1), "{report:#?}");
    assert!(
        report.fail_without_change[0].0.contains("doubles"),
        "{report:#?}"
    );
    assert_eq!(project.read("src/lib.rs"), format!("{ADD}{DOUBLE}"));
}

#[tokio::test]
async fn feature_with_a_test_module_is_proven() {
    let project = project();
    let tests = "\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn doubles() {\n        assert_eq!(double(21), 42);\n    }\n}\n";
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}{tests}"));
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
}

#[tokio::test]
async fn regression_is_broken() {
    let project = project();
    project.write("src/lib.rs", &ADD.replace("a + b", "a - b"));
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Broken, "{report:#?}");
    assert!(report.regressions[0].contains("adds"), "{report:#?}");
}

#[tokio::test]
async fn code_without_a_test_is_unproven() {
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Unproven, "{report:#?}");
    assert!(
        report.gaps[0].what.contains("No test fails without"),
        "{report:#?}"
    );
}

#[tokio::test]
async fn test_that_passes_without_the_change_proves_nothing() {
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    project.write(
        "tests/more.rs",
        "#[test]\nfn adds_more() {\n    assert_eq!(demo::add(2, 2), 4);\n}\n",
    );
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Unproven, "{report:#?}");
    assert!(
        report.pass_without_change[0].0.contains("adds_more"),
        "{report:#?}"
    );
}

#[tokio::test]
async fn changed_expectation_needs_permission() {
    let project = project();
    project.write("src/lib.rs", &ADD.replace("a + b", "a + b + 1"));
    project.write("tests/add.rs", &ADD_TEST.replace("3)", "4)"));
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Unproven, "{report:#?}");
    assert_eq!(
        report.test_changes[0].kind,
        TestChangeKind::ExpectationChanged,
        "{report:#?}"
    );
    let allowed = try_prove(&project, "HEAD", Comparand::WorkingTree, &["adds"])
        .await
        .unwrap();
    assert_eq!(allowed.verdict, Verdict::Proven, "{allowed:#?}");
}

#[tokio::test]
async fn deleted_test_needs_permission() {
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    project.write("tests/double.rs", DOUBLE_TEST);
    std::fs::remove_file(project.root().join("tests/add.rs")).unwrap();
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Unproven, "{report:#?}");
    assert_eq!(
        report.test_changes[0].kind,
        TestChangeKind::Deleted,
        "{report:#?}"
    );
}

#[tokio::test]
async fn commit_range_ignores_the_working_tree() {
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    project.write("tests/double.rs", DOUBLE_TEST);
    commit(&project, "double");
    project.write("src/lib.rs", "this does not build\n");
    let report = try_prove(&project, "HEAD~1", Comparand::Commit("HEAD".into()), &[])
        .await
        .unwrap();
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
    assert_eq!(project.read("src/lib.rs"), "this does not build\n");
}

#[tokio::test]
async fn staged_change_is_proven_without_unstaged_edits() {
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    project.write("tests/double.rs", DOUBLE_TEST);
    project.git(&["add", "-A"]);
    project.write("tests/double.rs", "not Rust");
    let report = try_prove(&project, "HEAD", Comparand::Staged, &[])
        .await
        .unwrap();
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
}

#[tokio::test]
async fn documentation_alone_needs_no_test() {
    let project = project();
    project.write("README.md", "# Demo\n");
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
}

#[tokio::test]
async fn wrong_base_and_no_change_are_errors() {
    let project = project();
    let error = try_prove(&project, "no-such", Comparand::WorkingTree, &[])
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("`no-such` is not a commit"),
        "{error}"
    );
    let error = try_prove(&project, "HEAD", Comparand::WorkingTree, &[])
        .await
        .unwrap_err();
    assert!(error.to_string().contains("nothing differs"), "{error}");
}

const COVERED: &str = "pub fn grade(points: i32) -> i32 {\n    if points >= 50 {\n        return 1;\n    }\n    0\n}\n";
const COVERED_TEST: &str = "#[test]\nfn grades() {\n    assert_eq!(demo::grade(50), 1);\n    assert_eq!(demo::grade(49), 0);\n    assert_eq!(demo::grade(80), 1);\n}\n";

/// `project` with a function that its test checks at the boundary.
fn covered_project() -> TestProject {
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{COVERED}"));
    project.write("tests/grade.rs", COVERED_TEST);
    commit(&project, "grade");
    project
}

#[tokio::test]
async fn refactoring_of_checked_lines_is_proven() {
    let project = covered_project();
    let refactored = COVERED.replace(
        "    if points >= 50 {\n        return 1;\n    }\n    0\n",
        "    if points < 50 { 0 } else { 1 }\n",
    );
    project.write("src/lib.rs", &format!("{ADD}{refactored}"));
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
    assert!(report.summary.contains("refactoring"), "{report:#?}");
    let mutants = report.mutants.unwrap();
    assert!(
        mutants.killed > 0 && mutants.survived.is_empty(),
        "{mutants:#?}"
    );
}

#[tokio::test]
async fn refactoring_of_unchecked_lines_is_unproven() {
    let project = covered_project();
    project.write("tests/grade.rs", &COVERED_TEST.replace("49), 0", "80), 1"));
    commit(&project, "weaker");
    project.write(
        "src/lib.rs",
        &format!("{ADD}{}", COVERED.replace(">= 50", "> 49")),
    );
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Proven, "the rest is noticed");
    let report = {
        project.write(
            "src/lib.rs",
            &format!("{ADD}{COVERED}pub fn spare(a: i32) -> i32 {{\n    a - 1\n}}\n"),
        );
        prove_working_tree(&project).await
    };
    assert_eq!(report.verdict, Verdict::Unproven, "{report:#?}");
    let survivors = report.mutants.unwrap().survived;
    assert!(survivors[0].before.contains("a - 1"), "{survivors:#?}");
}

#[tokio::test]
async fn second_proof_takes_the_base_from_the_first() {
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    project.write("tests/double.rs", DOUBLE_TEST);
    prove_working_tree(&project).await;
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
    let base = report.steps.iter().find(|step| step.name == "base");
    assert!(
        base.unwrap().result.contains("from an earlier proof"),
        "{report:#?}"
    );
    project.write("src/lib.rs", &ADD.replace("a + b", "a - b"));
    std::fs::remove_file(project.root().join("tests/double.rs")).unwrap();
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Broken, "{report:#?}");
    let base = report.steps.iter().find(|step| step.name == "base");
    assert!(
        !base.unwrap().result.contains("from an earlier proof"),
        "a failure is compared with a fresh run: {report:#?}"
    );
}

#[tokio::test]
async fn test_behind_a_feature_is_named_as_not_run() {
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    project.write(
        "tests/double.rs",
        &format!("#![cfg(feature = \"extra\")]\n{DOUBLE_TEST}"),
    );
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Unproven, "{report:#?}");
    assert_eq!(
        report.gaps[0].what, "No test of tests/double.rs ran.",
        "{report:#?}"
    );
}

#[tokio::test]
async fn check_that_is_clean_on_the_base_must_stay_clean() {
    let project = project();
    project.write("lint", "#!/bin/sh\n! grep -rn TODO src\n");
    std::fs::set_permissions(
        project.root().join("lint"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    commit(&project, "lint");
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}// TODO\n"));
    project.write("tests/double.rs", DOUBLE_TEST);
    let lint = [String::from("./lint")];
    let report = prove_request(&project, |request| request.checks = &lint).await;
    assert_eq!(report.verdict, Verdict::Broken, "{report:#?}");
    assert_eq!(report.regressions, ["./lint"], "{report:#?}");
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    let report = prove_request(&project, |request| request.checks = &lint).await;
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
}

#[tokio::test]
async fn extended_test_is_not_weakened() {
    let join = "pub fn join(items: &[&str]) -> String {\n    items.join(\",\")\n}\n";
    let quoted = "pub fn join(items: &[&str]) -> String {\n    let quote = |item: &&str| match item.contains(',') {\n        true => format!(\"<{item}>\"),\n        false => item.to_string(),\n    };\n    let quoted: Vec<String> = items.iter().map(quote).collect();\n    quoted.join(\",\")\n}\n";
    let test = "#[test]\nfn joins() {\n    assert_eq!(demo::join(&[\"a\", \"b\"]), \"a,b\");\n}\n";
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{join}"));
    project.write("tests/join.rs", test);
    commit(&project, "join");
    project.write("src/lib.rs", &format!("{ADD}{quoted}"));
    let extended = test
        .replace("\"b\"]", "\"b\", \"c,d\"]")
        .replace("\"a,b\"", "\"a,b,<c,d>\"");
    project.write("tests/join.rs", &extended);
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
    let kinds: Vec<_> = report.test_changes.iter().map(|c| c.kind).collect();
    assert_eq!(kinds, [TestChangeKind::Edited], "{report:#?}");
}

#[tokio::test]
async fn refactoring_with_one_more_test_is_proven() {
    let project = covered_project();
    let refactored = COVERED.replace(
        "    if points >= 50 {\n        return 1;\n    }\n    0\n",
        "    if points < 50 { 0 } else { 1 }\n",
    );
    project.write("src/lib.rs", &format!("{ADD}{refactored}"));
    project.write(
        "tests/more.rs",
        "#[test]\nfn grades_60() {\n    assert_eq!(demo::grade(60), 1);\n}\n",
    );
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
    assert_eq!(report.pass_without_change.len(), 1, "{report:#?}");
}
