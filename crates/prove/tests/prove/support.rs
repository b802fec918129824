//! A small cargo project, and how its changes are proven.

use std::time::Duration;

use supervisor_process::{SandboxMode, SandboxRules};
use supervisor_prove::{Comparand, ProveError, ProveRequest, Report, prove};
use supervisor_test_support::project::{TestProject, git};
use supervisor_test_support::suites::run_environment;
use supervisor_verify::RunEnvironment;
use tokio_util::sync::CancellationToken;

pub(crate) const MANIFEST: &str =
    "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n";
pub(crate) const ADD: &str = "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n";
pub(crate) const ADD_TEST: &str = "#[test]\nfn adds() {\n    assert_eq!(demo::add(1, 2), 3);\n}\n";
pub(crate) const DOUBLE: &str = "\npub fn double(n: i32) -> i32 {\n    n * 2\n}\n";
pub(crate) const DOUBLE_TEST: &str =
    "\n#[test]\nfn doubles() {\n    assert_eq!(demo::double(21), 42);\n}\n";

/// A committed project with one function and one test.
pub(crate) fn project() -> TestProject {
    let project = TestProject::with(&[
        ("Cargo.toml", MANIFEST),
        (".gitignore", "target\nCargo.lock\n"),
        ("src/lib.rs", ADD),
        ("tests/add.rs", ADD_TEST),
    ]);
    project.git(&["init", "-q"]);
    commit(&project, "base");
    project
}

pub(crate) fn commit(project: &TestProject, message: &str) {
    git(&project.root(), &["add", "-A"]);
    git(&project.root(), &["commit", "-q", "-m", message]);
}

/// In an overlay where the system allows it, as the program does by default.
pub(crate) fn environment() -> RunEnvironment {
    let mut environment = run_environment(Duration::from_secs(300));
    environment.launcher = environment.launcher.with_rules(SandboxRules {
        mode: SandboxMode::Auto,
        ..SandboxRules::default()
    });
    environment
}

/// The working tree, with a request that `set` completes.
pub(crate) async fn prove_request<'a>(
    project: &TestProject,
    set: impl FnOnce(&mut ProveRequest<'a>),
) -> Report {
    let (root, state) = (project.root().canonicalize().unwrap(), project.state());
    let (root, state) = (Box::leak(Box::new(root)), Box::leak(Box::new(state)));
    let mut request = ProveRequest {
        environment: environment(),
        ..ProveRequest::new(root, state)
    };
    set(&mut request);
    prove(&request, &CancellationToken::new()).await.unwrap()
}

pub(crate) async fn try_prove(
    project: &TestProject,
    base: &str,
    comparand: Comparand,
    allow: &[&str],
) -> Result<Report, ProveError> {
    let allow: Vec<String> = allow.iter().map(|name| (*name).to_owned()).collect();
    let (root, state) = (project.root().canonicalize().unwrap(), project.state());
    let request = ProveRequest {
        base,
        comparand,
        allow_test_change: &allow,
        environment: environment(),
        ..ProveRequest::new(&root, &state)
    };
    let before = git(&root, &["status", "--porcelain"]);
    let report = prove(&request, &CancellationToken::new()).await;
    assert_eq!(
        git(&root, &["status", "--porcelain"]),
        before,
        "the user's files changed"
    );
    report
}

pub(crate) async fn prove_working_tree(project: &TestProject) -> Report {
    try_prove(project, "HEAD", Comparand::WorkingTree, &[])
        .await
        .unwrap()
}
