//! `supervisor prove`: checks a change with the project's own tests. The exit code is 0 only if it is proven.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use supervisor_process::{Launcher, environment};
use supervisor_prove::{Comparand, MutantMode, ProveError, ProveRequest, Report, Verdict, prove};
use supervisor_settings::{Routing, load};
use supervisor_verify::{RunEnvironment, TestSandbox};
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

use super::console::Console;
use crate::built_in;

/// Prove a change: run its tests with and without it
///
/// Compares the working tree with a base commit, whoever made the change. Runs the tests on both, runs the change's tests
/// on the base's code (they must fail there), and changes their expectations (they must fail then). Your files are not
/// touched. Exit code 0 if the change is proven, 1 if something broke, 3 if a proof is missing, 2 if it cannot be told,
/// 130 if interrupted.
#[derive(Debug, Args)]
pub(super) struct ProveCommand {
    /// The project
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,
    /// The commit to compare with
    #[arg(long, value_name = "REF", default_value = "HEAD")]
    base: String,
    /// Prove what is staged, not the files as they are
    #[arg(long, conflicts_with = "head")]
    staged: bool,
    /// Prove this commit, not the files as they are
    #[arg(long, value_name = "REF")]
    head: Option<String>,
    /// The test command, as words, instead of the detected one
    #[arg(long, value_name = "WORDS")]
    test_cmd: Option<String>,
    /// Where the command writes JUnit reports, as a pattern: `build/**/*.xml`
    #[arg(long, value_name = "GLOB")]
    test_report: Option<String>,
    /// A test or test file that may be deleted, skipped or changed, or `*`; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_test_change: Vec<String>,
    /// Skip the base where nothing fails with the change and no existing test was edited
    #[arg(long)]
    fast: bool,
    /// Change the changed lines too, and see whether a test notices; for at most this many seconds
    #[arg(long, value_name = "S", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    mutants: Option<u64>,
    /// Print JSON
    #[arg(long, group = "format")]
    json: bool,
    /// Print Markdown, for a comment on a pull request
    #[arg(long, group = "format")]
    markdown: bool,
    /// Print SARIF, for code scanning
    #[arg(long, group = "format")]
    sarif: bool,
    /// Seconds until one test run is ended, in place of `limits.tests_s`
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: Option<u64>,
}

impl ProveCommand {
    pub(super) fn run(
        &self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let routing = load(&built_in::sources(config))?.routing;
        let root = self.project.canonicalize().map_err(|error| {
            anyhow::anyhow!("{} cannot be opened: {error}", self.project.display())
        })?;
        let options = ProofOptions {
            base: self.base.clone(),
            comparand: match &self.head {
                Some(head) => Comparand::Commit(head.clone()),
                None if self.staged => Comparand::Staged,
                None => Comparand::WorkingTree,
            },
            test_cmd: self.test_cmd.clone(),
            test_report: self.test_report.clone(),
            allow_test_change: self.allow_test_change.clone(),
            fast: self.fast,
            mutants: match self.mutants {
                None => MutantMode::IfNeeded,
                Some(0) => MutantMode::Always(None),
                Some(seconds) => MutantMode::Always(Some(Duration::from_secs(seconds))),
            },
            test_limit: self.timeout.map(Duration::from_secs),
            limit: None,
        };
        let report = match options.prove(&root, &routing)? {
            Ok(report) => report,
            Err(error) => {
                writeln!(err, "error: {error}")?;
                let interrupted = matches!(error, ProveError::Cancelled);
                return Ok(ExitCode::from(if interrupted { 130 } else { 2 }));
            }
        };
        let text = if self.json {
            serde_json::to_string_pretty(&report)? + "\n"
        } else if self.sarif {
            serde_json::to_string_pretty(&report.to_sarif())? + "\n"
        } else if self.markdown {
            report.to_markdown()
        } else {
            report.to_text()
        };
        super::print(out, &text)?;
        Ok(ExitCode::from(match report.verdict {
            Verdict::Proven => 0,
            Verdict::Broken => 1,
            Verdict::Unproven => 3,
        }))
    }
}

/// What the command and the stop gate can choose.
pub(super) struct ProofOptions {
    pub(super) base: String,
    pub(super) comparand: Comparand,
    pub(super) test_cmd: Option<String>,
    pub(super) test_report: Option<String>,
    pub(super) allow_test_change: Vec<String>,
    pub(super) fast: bool,
    pub(super) mutants: MutantMode,
    /// For one test run, in place of `limits.tests_s`.
    pub(super) test_limit: Option<Duration>,
    /// For the whole proof.
    pub(super) limit: Option<Duration>,
}

impl ProofOptions {
    /// Proves the change of a project until it is done, interrupted or out of time.
    pub(super) fn prove(
        &self,
        root: &Path,
        routing: &Routing,
    ) -> anyhow::Result<Result<Report, ProveError>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (launcher, env) = launcher_and_env(routing)?;
        let state = StateDir::locate()?;
        let console = std::sync::Mutex::new(Console::stderr());
        let on_step = |step: &str| {
            let mut console = console
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            if console.is_live() {
                console.begin(&format!("prove: {step}"));
            }
        };
        let request = ProveRequest {
            root,
            base: &self.base,
            comparand: self.comparand.clone(),
            test_cmd: self.test_cmd.as_deref(),
            test_report: self.test_report.as_deref(),
            allow_test_change: &self.allow_test_change,
            checks: &routing.verify.checks,
            fast: self.fast,
            mutants: self.mutants,
            environment: RunEnvironment {
                launcher: launcher.clone(),
                env,
                limit: self.test_limit.unwrap_or(routing.limits.tests),
                guard: None,
                sandbox: TestSandbox::default(),
            },
            state: &state,
            on_step: &on_step,
        };
        Ok(runtime.block_on(async {
            let stop = CancellationToken::new();
            let proof = prove(&request, &stop);
            tokio::pin!(proof);
            let report = tokio::select! {
                report = &mut proof => report,
                () = interrupted_or_late(self.limit) => {
                    stop.cancel();
                    proof.await
                }
            };
            launcher.wait_for_all().await;
            report
        }))
    }
}

/// The launcher and the environment of a project's programs, as the settings say.
pub(super) fn launcher_and_env(
    routing: &Routing,
) -> anyhow::Result<(Launcher, BTreeMap<OsString, OsString>)> {
    let state = StateDir::locate()?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let rules = routing.sandbox.rules(home.as_deref(), Some(state.path()));
    let keys: Vec<String> = routing
        .backends
        .values()
        .filter_map(|backend| backend.api_key_env.clone())
        .collect();
    Ok((
        Launcher::this_program().with_rules(rules),
        environment::tests(std::env::vars_os(), &keys, &routing.env_pass),
    ))
}

async fn interrupted_or_late(limit: Option<Duration>) {
    let late = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let terminated = async {
        let kind = tokio::signal::unix::SignalKind::terminate();
        match tokio::signal::unix::signal(kind) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = late => {}
        () = terminated => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
