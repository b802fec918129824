//! Runs that are easily mistaken for something else.

use std::path::Path;

use supervisor_verify::{
    Baseline, BaselineOrigin, BuildBlame, Outcome, Proof, RetryOutcome, TestName, TestState, blame,
    detect, run_with_retry,
};
use tokio_util::sync::CancellationToken;

use supervisor_test_support::programs::require;
use supervisor_test_support::suites::{
    PLENTY, file, run, run_environment, run_within, rust_manifest,
};

fn rust(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    rust_manifest(dir.path());
    for (path, text) in files {
        file(dir.path(), path, text);
    }
    dir
}

#[test]
fn missing_runner_is_not_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    for words in [
        "no-such-runner-here",
        "sh -c 'no-such-runner-here'",
        "/etc/passwd",
    ] {
        let seen = run_within(dir.path(), Some(words), PLENTY);
        let Outcome::CouldNotRun { remedy, .. } = seen.outcome() else {
            panic!("{words}: {seen:#?}")
        };
        assert!(remedy.contains("test_cmd"), "{remedy}");
    }
}

#[test]
fn variables_of_the_command_reach_its_program() {
    let dir = tempfile::tempdir().unwrap();
    file(
        dir.path(),
        "sub/said.sh",
        "echo $GREETING $WHOM from ${PWD##*/}",
    );
    let words = "export GREETING=hello && cd sub && WHOM='all of you' sh said.sh";
    let seen = run_within(dir.path(), Some(words), PLENTY);
    assert_eq!(seen.outcome(), &Outcome::Passed, "{seen:#?}");
    assert!(
        seen.output().contains("hello all of you from sub"),
        "{seen:#?}"
    );
}

#[test]
fn unknown_runner_is_judged_by_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let green = run_within(dir.path(), Some("sh -c 'echo fine'"), PLENTY);
    assert_eq!(
        (green.outcome(), green.exit_code()),
        (&Outcome::Passed, Some(0))
    );
    assert!(
        green.notes().iter().any(|n| n.contains("exit code alone")),
        "{green:#?}"
    );
    assert!(green.output().contains("fine"));
    let red = run_within(dir.path(), Some("sh -c 'echo words >&2; exit 3'"), PLENTY);
    assert_eq!(
        (red.outcome(), red.exit_code()),
        (&Outcome::Failed, Some(3))
    );
    assert!(red.output().contains("words"));
    let killed = run_within(dir.path(), Some("sh -c 'kill -9 $$'"), PLENTY);
    assert_eq!(killed.outcome(), &Outcome::Killed { signal: 9 });
}

#[test]
fn npm_placeholder_is_not_a_failure() {
    for (manifest, what) in [
        (
            r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#,
            "placeholder",
        ),
        ("{}", "no script"),
        ("{", "not valid JSON"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        file(dir.path(), "package.json", manifest);
        let seen = run(dir.path());
        let Outcome::CouldNotRun { why, remedy } = seen.outcome() else {
            panic!("{seen:#?}")
        };
        assert!(
            why.contains(what) && remedy.contains("test_cmd"),
            "{why}; {remedy}"
        );
    }
}

#[test]
#[ignore = "needs npm"]
fn missing_script_program_suggests_npm_install() {
    require(&["npm"]);
    let dir = tempfile::tempdir().unwrap();
    file(
        dir.path(),
        "package.json",
        r#"{"name": "x", "version": "1.0.0", "scripts": {"test": "no-such-runner-here"}}"#,
    );
    let seen = run(dir.path());
    let Outcome::CouldNotRun { remedy, .. } = seen.outcome() else {
        panic!("{seen:#?}")
    };
    assert!(remedy.contains("npm install"), "{remedy}");
}

#[test]
#[ignore = "needs node and npm"]
fn node_script_with_file_names_is_understood() {
    require(&["node", "npm"]);
    let dir = tempfile::tempdir().unwrap();
    file(
        dir.path(),
        "package.json",
        r#"{"name": "x", "version": "1.0.0", "scripts": {"test": "node --test checks/sums.js"}}"#,
    );
    file(
        dir.path(),
        "checks/sums.js",
        "const { describe, it } = require('node:test');\nconst assert = require('node:assert');\n\
         describe('sums', () => {\n  it('adds', () => assert.equal(1 + 2, 3));\n  it('is wrong', () => assert.equal(1 + 2, 4));\n  \
         it.skip('waits', () => {});\n});\n",
    );
    let seen = run(dir.path());
    let named: Vec<_> = seen
        .named()
        .map(|(n, s)| (n.0.as_str(), matches!(s, TestState::Failed(_))))
        .collect();
    assert_eq!(
        named,
        [
            ("checks/sums.js > sums > adds", false),
            ("checks/sums.js > sums > is wrong", true),
            ("checks/sums.js > sums > waits", false)
        ]
    );
}

#[test]
fn each_cargo_target_has_its_own_name() {
    let dir = rust(&[
        (
            "src/lib.rs",
            "/// ```\n/// assert!(demo::yes());\n/// ```\npub fn yes() -> bool { true }\n\
             #[cfg(test)]\nmod tests {\n    #[test]\n    fn same() {}\n    #[test]\n    #[ignore = \"takes a while\"]\n    fn slow() {}\n    \
             #[test]\n    #[should_panic]\n    fn panics() { panic!(\"as it should\") }\n}\n",
        ),
        ("src/main.rs", "fn main() {}\n#[test]\nfn same() {}\n"),
        ("tests/one.rs", "#[test]\nfn same() {}\n"),
        (
            "tests/own.rs",
            "fn main() { assert!(std::env::args().len() == 1, \"not asked for a list\"); }\n",
        ),
        ("examples/show.rs", "fn main() {}\n"),
    ]);
    let manifest = std::fs::read_to_string(dir.path().join("Cargo.toml")).unwrap();
    file(
        dir.path(),
        "Cargo.toml",
        &format!("{manifest}\n[[test]]\nname = \"own\"\nharness = false\n"),
    );
    let seen = run(dir.path());
    assert_eq!(seen.outcome(), &Outcome::Passed, "{seen:#?}");
    let passed: Vec<_> = seen.passed().map(|n| n.0.as_str()).collect();
    assert_eq!(
        passed,
        [
            "demo tests::panics",
            "demo tests::same",
            "demo::bin/demo same",
            "demo::one same",
            "demo::own",
            "doctest src/lib.rs - yes"
        ]
    );
    assert_eq!(
        seen.skipped().map(|n| n.0.as_str()).collect::<Vec<_>>(),
        ["demo tests::slow"]
    );
}

#[test]
fn workspace_members_have_distinct_names() {
    let dir = tempfile::tempdir().unwrap();
    file(
        dir.path(),
        "Cargo.toml",
        "[workspace]\nmembers = [\"a\", \"b\"]\nresolver = \"2\"\n",
    );
    for (name, body) in [
        ("a", "assert!(true)"),
        ("b", "assert_eq!(1, 2, \"b is wrong\")"),
    ] {
        file(
            dir.path(),
            &format!("{name}/Cargo.toml"),
            &format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        );
        file(
            dir.path(),
            &format!("{name}/src/lib.rs"),
            &format!("#[test]\nfn same() {{ {body} }}\n"),
        );
    }
    let seen = run(dir.path());
    assert_eq!(seen.outcome(), &Outcome::Failed, "{seen:#?}");
    let failed: Vec<_> = seen.failed().collect();
    assert_eq!(failed[0].0.0, "b same");
    assert!(failed[0].1.contains("b is wrong"), "{failed:?}");
    assert_eq!(
        seen.passed().map(|n| n.0.as_str()).collect::<Vec<_>>(),
        ["a same"]
    );
    let only_a = run_within(dir.path(), Some("cargo test -p a"), PLENTY);
    assert_eq!(only_a.outcome(), &Outcome::Passed, "{only_a:#?}");
}

#[test]
fn crashing_test_fails_by_name() {
    let dir = rust(&[
        ("src/lib.rs", ""),
        (
            "tests/crash.rs",
            "#[test]\nfn a_fine() {}\n#[test]\nfn b_crashes() { std::process::abort() }\n",
        ),
    ]);
    let seen = run(dir.path());
    assert_eq!(seen.outcome(), &Outcome::Failed, "{seen:#?}");
    assert!(
        seen.failed()
            .any(|(n, m)| n.0 == "demo::crash b_crashes" && m.contains("exit code 134")),
        "{seen:#?}"
    );
}

#[test]
fn output_flood_does_not_hide_results() {
    let dir = rust(&[
        ("src/lib.rs", ""),
        (
            "tests/flood.rs",
            "use std::io::Write;\n#[test]\nfn floods() {\n    let line = [b'x'; 1000];\n    let mut out = std::io::stdout().lock();\n    \
             for _ in 0..2000 { out.write_all(&line).unwrap(); out.write_all(b\"\\ntest floods ... FAILED\\n\").unwrap(); }\n}\n",
        ),
    ]);
    let seen = run(dir.path());
    assert_eq!(
        seen.outcome(),
        &Outcome::Passed,
        "{:?} {}",
        seen.outcome(),
        seen.counts()
    );
    assert!(seen.output().len() < 100_000);
}

#[test]
fn missing_name_differs_from_broken_project() {
    let test = "use demo::sub;\n#[test]\nfn subtracts() { assert_eq!(sub(3, 2), 1); }\n";
    for (library, expected) in [
        ("pub fn add() {}\n", BuildBlame::MissingNames),
        ("pub fn add( {}\n", BuildBlame::Elsewhere),
    ] {
        let dir = rust(&[("src/lib.rs", library), ("tests/sums.rs", test)]);
        let seen = run(dir.path());
        let Outcome::DidNotBuild { errors } = seen.outcome() else {
            panic!("{seen:#?}")
        };
        assert_eq!(
            blame(errors, Path::new("tests/sums.rs"), test),
            expected,
            "{errors:#?}"
        );
    }
}

#[test]
fn single_test_can_be_run() {
    let dir = rust(&[(
        "src/lib.rs",
        "#[test]\nfn right() {}\n#[test]\nfn wrong() { panic!() }\n",
    )]);
    let suite = detect(dir.path(), None, None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let only = suite
        .only(&TestName::from("demo right"))
        .expect("cargo can select");
    let seen = runtime.block_on(only.run(&run_environment(PLENTY), &CancellationToken::new()));
    assert_eq!(
        (seen.outcome(), seen.counts().as_str()),
        (&Outcome::Passed, "1 passed, 0 failed, 0 skipped"),
        "{seen:#?}"
    );
}

#[test]
fn flaky_test_is_never_green() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark").display().to_string();
    let library = format!(
        "#[test]\nfn steady() {{}}\n#[test]\nfn moody() {{\n    let first = !std::path::Path::new({mark:?}).exists();\n    \
         std::fs::write({mark:?}, \"\").unwrap();\n    assert!(!first);\n}}\n"
    );
    rust_manifest(dir.path());
    file(dir.path(), "src/lib.rs", &library);
    let suite = detect(dir.path(), None, None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let settled = runtime.block_on(run_with_retry(
        &suite,
        &run_environment(PLENTY),
        None,
        &|_| false,
        &CancellationToken::new(),
    ));
    let RetryOutcome::Flaky { names, .. } = &settled else {
        panic!("{settled:#?}")
    };
    assert_eq!(names, &[TestName::from("demo moody")]);
    assert!(Proof::of_tests(settled.run()).is_err());
}

#[test]
fn red_then_green_is_proved() {
    let dir = rust(&[(
        "src/lib.rs",
        "pub fn add(_: i32, _: i32) -> i32 { 0 }\n#[test]\nfn old() {}\n",
    )]);
    let before = Baseline::of(run(dir.path()), BaselineOrigin::Ran).expect("green");
    file(
        dir.path(),
        "tests/sums.rs",
        "#[test]\nfn adds() { assert_eq!(demo::add(1, 2), 3); }\n",
    );
    let red = run(dir.path());
    let (_, name) = Proof::of_red(&before, &red, None).expect("one new failure");
    assert_eq!(name.0, "demo::sums adds");
    let red = Baseline::of(red, BaselineOrigin::Ran).expect("a baseline");
    assert!(Proof::of_green(&red, red.run(), std::slice::from_ref(&name)).is_err());
    file(
        dir.path(),
        "src/lib.rs",
        "pub fn add(a: i32, b: i32) -> i32 { a + b }\n#[test]\nfn old() {}\n",
    );
    let proof = Proof::of_green(&red, &run(dir.path()), &[name]).expect("it passes");
    assert!(
        proof.sentence().contains("2 passed, 0 failed"),
        "{}",
        proof.sentence()
    );
}

#[test]
fn run_can_be_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let began = dir.path().join("began");
    let words = format!("sh -c 'touch {}; sleep 600'", began.display());
    let suite = detect(dir.path(), None, Some(&words)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let seen = runtime.block_on(async {
        let stop = CancellationToken::new();
        let when_begun = async {
            while !began.exists() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            stop.cancel();
        };
        let environment = run_environment(PLENTY);
        tokio::join!(suite.run(&environment, &stop), when_begun).0
    });
    assert_eq!(seen.outcome(), &Outcome::Cancelled);
}
