//! `supervisor run-suite`: the command of an Action. Runs in its input root, on any worker.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use supervisor_process::{
    ChildKind, Launcher, SandboxMode, SandboxRecord, SandboxRules, environment, place_dir_at,
};
use supervisor_verify::{Execution, RunEnvironment, TestSandbox};
use tokio_util::sync::CancellationToken;

use crate::suite_run::{
    COMMAND, EXIT_NOT_PASSED, EXIT_PASSED, PROJECT_DIR, REPORT_FILE, REQUEST_FILE, SuiteReport,
    SuiteRequest, version,
};

/// Set by `supervisor worker`: how tests are sandboxed, and where private caches of build tools may be.
pub(crate) const SANDBOX_VARIABLE: &str = "SUPERVISOR_WORKER_SANDBOX";
pub(crate) const CACHES_VARIABLE: &str = "SUPERVISOR_WORKER_CACHES";
/// Exit code without a result.
const EXIT_UNFIT: u8 = 3;
/// A request above this size is not read.
const MAX_REQUEST_BYTES: u64 = 64 << 20;
/// Directories of build output that would outlive the run. Its contents belong to other files, whose times say nothing.
const KEPT_BUILD_VARIABLES: &[&str] = &[
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_BUILD_BUILD_DIR",
];

#[derive(Debug, thiserror::Error)]
enum RunnerError {
    #[error("`{REQUEST_FILE}` cannot be read: {0}")]
    Request(String),
    #[error("this worker has version {ours}, and the request is of version {theirs}")]
    Version { ours: String, theirs: String },
    #[error("the project needs its own path, and {0}")]
    Placement(String),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Runs the suite if this process was started for that. Call it before threads are started and arguments parsed.
pub fn run_if_suite_runner() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == COMMAND).then_some(())?;
    Some(match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::from(EXIT_UNFIT)
        }
    })
}

fn run() -> Result<u8, RunnerError> {
    let dir = std::env::current_dir()?;
    let request = read_request(&dir)?;
    let project = dir.join(PROJECT_DIR);
    for (path, target) in &request.links {
        let path = project.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(&project))?;
        std::os::unix::fs::symlink(target, path)?;
    }
    let placed = place_dir_at(&project, &request.root);
    if let (Err(error), true) = (&placed, request.needs_root) {
        return Err(RunnerError::Placement(error.to_string()));
    }
    let at_root = placed.is_ok();
    let report = run_suite(request, &project, at_root)?;
    write_report(&dir, &report)?;
    let code = match report.run.outcome().is_passed() {
        true => EXIT_PASSED,
        false => EXIT_NOT_PASSED,
    };
    Ok(u8::try_from(code).unwrap_or(EXIT_UNFIT))
}

fn read_request(dir: &Path) -> Result<SuiteRequest, RunnerError> {
    let file = dir.join(REQUEST_FILE);
    let refused = |why: String| RunnerError::Request(why);
    let size = std::fs::metadata(&file).map_err(|error| refused(error.to_string()))?;
    if size.len() > MAX_REQUEST_BYTES {
        return Err(refused(format!("it has {} bytes", size.len())));
    }
    let text = std::fs::read_to_string(&file).map_err(|error| refused(error.to_string()))?;
    // The version first: everything else may have another form.
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
    let theirs = value["version"].as_str().unwrap_or_default().to_owned();
    if theirs != version() {
        let ours = version();
        return Err(RunnerError::Version { ours, theirs });
    }
    serde_json::from_value(value).map_err(|error| refused(error.to_string()))
}

fn run_suite(
    request: SuiteRequest,
    project: &Path,
    at_root: bool,
) -> Result<SuiteReport, RunnerError> {
    let moved = |text: &str, from: &Path, to: &Path| {
        text.replace(&*from.to_string_lossy(), &to.to_string_lossy())
    };
    let root = if at_root { &request.root } else { project };
    let suite = if at_root {
        request.suite
    } else {
        let text = serde_json::to_string(&request.suite).map_err(io::Error::other)?;
        let text = moved(&text, &request.root, project);
        serde_json::from_str(&text).map_err(io::Error::other)?
    };
    let record = SandboxRecord::default();
    let environment = RunEnvironment {
        launcher: Launcher::this_program().with_rules(rules(root)),
        env: variables(request.variables),
        limit: Duration::from_secs(request.limit_s),
        guard: None,
        sandbox: TestSandbox {
            network: request.network,
            record: record.clone(),
            ..TestSandbox::default()
        },
        execution: Execution::default(),
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let run = runtime.block_on(async {
        let run = suite.run(&environment, &CancellationToken::new()).await;
        // No process of the tests is left when the report is written.
        environment.launcher.wait_for_all().await;
        run
    });
    let run = if at_root {
        run
    } else {
        let text = serde_json::to_string(&run).map_err(io::Error::other)?;
        let text = moved(&text, project, &request.root);
        serde_json::from_str(&text).map_err(io::Error::other)?
    };
    Ok(SuiteReport {
        version: version(),
        run,
        sandbox: record.of(ChildKind::Tests),
        at_root,
    })
}

fn rules(root: &Path) -> SandboxRules {
    let mode = match std::env::var(SANDBOX_VARIABLE).as_deref() {
        Ok("off") => SandboxMode::Off,
        Ok("require") => SandboxMode::Require,
        _ => SandboxMode::Auto,
    };
    SandboxRules {
        mode,
        write: vec![root.to_owned()],
        private_caches: std::env::var_os(CACHES_VARIABLE).map(PathBuf::from),
        home: std::env::var_os("HOME").map(PathBuf::from),
        ..SandboxRules::default()
    }
}

/// The worker's variables without secrets, and those of the request.
fn variables(requested: BTreeMap<String, String>) -> BTreeMap<OsString, OsString> {
    let mut variables = environment::tests(std::env::vars_os(), &[], &[]);
    for name in KEPT_BUILD_VARIABLES {
        variables.remove(OsStr::new(name));
    }
    let requested = requested.into_iter();
    variables.extend(requested.map(|(name, value)| (name.into(), value.into())));
    variables
}

/// Replaces whatever is there: without a sandbox, the tests could write there too.
fn write_report(dir: &Path, report: &SuiteReport) -> Result<(), RunnerError> {
    let bytes = serde_json::to_vec(report).map_err(io::Error::other)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(&bytes)?;
    let path = dir.join(REPORT_FILE);
    if path.is_dir() && !path.is_symlink() {
        std::fs::remove_dir_all(&path)?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
