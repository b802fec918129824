//! `supervisor prove`: checks a change with the project's own tests. The exit code is 0 only if it is proven.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use supervisor_process::{Launcher, environment};
use supervisor_prove::{Comparand, MutantMode, ProveRequest, Report, Verdict, prove};
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
    /// A test or test file that may be deleted, skipped or changed; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_test_change: Vec<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown, for a comment on a pull request
    #[arg(long)]
    markdown: bool,
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
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let report = runtime.block_on(self.prove(&root, &routing));
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                writeln!(err, "error: {error}")?;
                let interrupted = matches!(error, supervisor_prove::ProveError::Cancelled);
                return Ok(ExitCode::from(if interrupted { 130 } else { 2 }));
            }
        };
        let text = if self.json {
            serde_json::to_string_pretty(&report)? + "\n"
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

    async fn prove(
        &self,
        root: &std::path::Path,
        routing: &Routing,
    ) -> Result<Report, supervisor_prove::ProveError> {
        let state = StateDir::locate().map_err(|error| {
            supervisor_prove::ProveError::NoSuite(format!("no state directory: {error}"))
        })?;
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let rules = routing.sandbox.rules(home.as_deref(), Some(state.path()));
        let launcher = Launcher::this_program().with_rules(rules);
        let keys: Vec<String> = routing
            .backends
            .values()
            .filter_map(|backend| backend.api_key_env.clone())
            .collect();
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
            comparand: match &self.head {
                Some(head) => Comparand::Commit(head.clone()),
                None if self.staged => Comparand::Staged,
                None => Comparand::WorkingTree,
            },
            test_cmd: self.test_cmd.as_deref(),
            test_report: self.test_report.as_deref(),
            allow_test_change: &self.allow_test_change,
            fast: false,
            mutants: MutantMode::default(),
            environment: RunEnvironment {
                launcher: launcher.clone(),
                env: environment::tests(std::env::vars_os(), &keys, &routing.env_pass),
                limit: self
                    .timeout
                    .map_or(routing.limits.tests, Duration::from_secs),
                guard: None,
                sandbox: TestSandbox::default(),
            },
            state: &state,
            on_step: &on_step,
        };
        let stop = CancellationToken::new();
        let proof = prove(&request, &stop);
        tokio::pin!(proof);
        let interrupted = async {
            let terminate = tokio::signal::unix::SignalKind::terminate();
            match tokio::signal::unix::signal(terminate) {
                Ok(mut terminated) => tokio::select! {
                    _ = tokio::signal::ctrl_c() => {}
                    _ = terminated.recv() => {}
                },
                Err(_) => std::future::pending().await,
            }
        };
        let report = tokio::select! {
            report = &mut proof => report,
            () = interrupted => {
                stop.cancel();
                proof.await
            }
        };
        launcher.wait_for_all().await;
        report
    }
}
