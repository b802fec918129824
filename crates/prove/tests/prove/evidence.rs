//! What counts as evidence that tests check a change.

use supervisor_prove::{Comparand, Verdict};

use crate::support::*;

#[tokio::test]
async fn code_without_a_grammar_needs_a_test() {
    let project = project();
    project.write("src/cart.php", "<?php\nfunction total() { return 1; }\n");
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Unproven, "{report:#?}");
    assert!(
        report.gaps[0]
            .what
            .contains("cannot be made of src/cart.php"),
        "{report:#?}"
    );
}

#[tokio::test]
async fn test_that_only_fails_to_build_is_unproven() {
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    project.write(
        "tests/double.rs",
        "#[test]\nfn doubles() {\n    let _ = demo::double(21);\n    assert_eq!(40 + 2, 42);\n}\n",
    );
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Unproven, "{report:#?}");
    assert!(
        report
            .gaps
            .iter()
            .any(|gap| gap.what.contains("none of them noticed")),
        "{report:#?}"
    );
}

#[tokio::test]
async fn new_type_without_mutants_is_proven_by_its_name() {
    let project = project();
    let point = "\n#[derive(Debug, PartialEq)]\npub struct Point {\n    pub x: i32,\n}\n";
    project.write("src/lib.rs", &format!("{ADD}{point}"));
    project.write(
        "tests/point.rs",
        "#[test]\nfn points() {\n    assert_eq!(demo::Point { x: 4 }.x, 4);\n}\n",
    );
    let report = prove_working_tree(&project).await;
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
}

#[tokio::test]
async fn named_test_must_fail_without_the_change() {
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    project.write("tests/double.rs", DOUBLE_TEST);
    for (name, expected) in [
        ("doubles", None),
        ("tests/double.rs", None),
        (
            "adds",
            Some("`demo::add adds` does not fail without the change."),
        ),
        ("triples", Some("No test `triples` passed.")),
    ] {
        let tests = [name.to_owned()];
        let report = prove_request(&project, |request| request.tests = tests.as_slice()).await;
        let gap = report.gaps.first().map(|gap| gap.what.as_str());
        assert_eq!(gap, expected, "{name}: {report:#?}");
    }
}

#[tokio::test]
async fn time_that_runs_out_is_a_gap() {
    let project = project();
    project.write("src/lib.rs", &format!("{ADD}{DOUBLE}"));
    project.write("tests/double.rs", DOUBLE_TEST);
    let now = tokio::time::Instant::now();
    let report = prove_request(&project, |request| request.deadline = Some(now)).await;
    assert_eq!(report.verdict, Verdict::Unproven, "{report:#?}");
    assert!(
        report.gaps[0]
            .what
            .starts_with("Not checked, time ran out: the tests with the change;"),
        "{report:#?}"
    );
    let report = try_prove(&project, "HEAD", Comparand::WorkingTree, &[])
        .await
        .unwrap();
    assert_eq!(report.verdict, Verdict::Proven, "{report:#?}");
}
