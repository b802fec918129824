//! `supervisor prove`: checks a change with the project's own tests. The exit code is 0 only if it is proven.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use supervisor_process::{Launcher, environment};
use supervisor_prove::{
    AttestationError, CheckedProof, Comparand, MutantMode, ProofNotes, ProveError, ProveRequest,
    Report, Verdict, prove, user_signing_key,
};
use supervisor_settings::{Routing, load};
use supervisor_verify::{RunEnvironment, TestSandbox};
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

use super::console::Console;
use super::shadow::{Recording, record_proven};
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
    /// A test or test file that must fail without the change; may be repeated
    #[arg(long, value_name = "NAME")]
    test: Vec<String>,
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
    /// Prove the commit `HEAD` against its parent, or --base, and keep the proof as a git note
    #[arg(long, conflicts_with_all = ["staged", "head", "check"])]
    attest: bool,
    /// The SSH key that signs the note, in place of the one that signs your commits
    #[arg(long, value_name = "FILE", requires = "attest")]
    key: Option<PathBuf>,
    /// Check the proof that a commit carries, without running anything
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["staged", "head"])]
    check: Option<String>,
    /// Who may sign, in place of your git's `gpg.ssh.allowedSignersFile`
    #[arg(long, value_name = "FILE", requires = "check")]
    allowed_signers: Option<PathBuf>,
    /// Then repeat it: prove the commit against the base that its proof names
    #[arg(long, requires = "check")]
    rerun: bool,
    /// Seconds until one test run is ended, in place of `limits.tests_s`
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: Option<u64>,
    /// Seconds for all runs together; what was not checked then is a gap of the proof
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    budget: Option<u64>,
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
        let mut notes = NoteKeeper::new(&root)?;
        let mut base = self.base.clone();
        let mut head = self.head.clone();
        if let Some(commit) = &self.check {
            let proof = match notes.check(commit, self.allowed_signers.as_deref()) {
                Ok(proof) => proof,
                Err(error) => {
                    writeln!(err, "error: {error}")?;
                    return Ok(ExitCode::from(1));
                }
            };
            super::print(out, &describe(&proof))?;
            if !self.rerun {
                return Ok(ExitCode::SUCCESS);
            }
            (base, head) = (proof.base, Some(proof.commit));
        }
        if self.attest {
            if !notes.is_clean()? {
                writeln!(
                    err,
                    "error: files differ from HEAD, and a proof is kept for a commit; commit first"
                )?;
                return Ok(ExitCode::from(2));
            }
            if base == "HEAD" {
                base = String::from("HEAD~1");
            }
            head = Some(String::from("HEAD"));
        }
        let options = ProofOptions {
            base,
            comparand: match head {
                Some(head) => Comparand::Commit(head),
                None if self.staged => Comparand::Staged,
                None => Comparand::WorkingTree,
            },
            test_cmd: self.test_cmd.clone(),
            test_report: self.test_report.clone(),
            allow_test_change: [
                self.allow_test_change.as_slice(),
                &routing.verify.allow_test_change,
            ]
            .concat(),
            tests: self.test.clone(),
            fast: self.fast,
            mutants: match self.mutants {
                None => MutantMode::IfNeeded,
                Some(0) => MutantMode::Always(None),
                Some(seconds) => MutantMode::Always(Some(Duration::from_secs(seconds))),
            },
            test_limit: self.timeout.map(Duration::from_secs),
            budget: self.budget.map(Duration::from_secs),
        };
        let report = match options.prove(&root, &routing)? {
            Ok(report) => report,
            Err(error) => {
                if matches!(error, ProveError::Cancelled) {
                    writeln!(err, "{error}")?;
                    return Ok(ExitCode::from(130));
                }
                writeln!(err, "error: {error}")?;
                return Ok(ExitCode::from(2));
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
        if options.comparand == Comparand::WorkingTree {
            record_proven(
                &routing,
                &report,
                &Recording {
                    root: &root,
                    base: &options.base,
                    test_cmd: options.test_cmd.as_deref(),
                    transcript: None,
                },
            );
        }
        if self.attest && report.verdict == Verdict::Proven {
            let (trailer, is_signed) = notes.attest(&report, self.key.as_deref())?;
            let signed = if is_signed {
                "signed"
            } else {
                "not signed: it shows integrity only; --key FILE signs it"
            };
            writeln!(
                err,
                "Kept as a git note in refs/notes/proof ({signed}). It is not pushed: `git push origin refs/notes/proof` does that. For a commit message:\n\n    {trailer}"
            )?;
        }
        Ok(ExitCode::from(match report.verdict {
            Verdict::Proven => 0,
            Verdict::Broken => 1,
            Verdict::Unproven => 3,
        }))
    }
}

/// Reads and writes proofs of commits with the user's own git and ssh-keygen.
struct NoteKeeper {
    runtime: tokio::runtime::Runtime,
    root: PathBuf,
    launcher: Launcher,
    env: BTreeMap<OsString, OsString>,
    stop: CancellationToken,
}

impl NoteKeeper {
    fn new(root: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
            root: root.to_owned(),
            launcher: Launcher::this_program(),
            env: std::env::vars_os().collect(),
            stop: CancellationToken::new(),
        })
    }

    fn notes(&self) -> ProofNotes<'_> {
        ProofNotes {
            root: &self.root,
            launcher: &self.launcher,
            env: &self.env,
            stop: &self.stop,
        }
    }

    fn is_clean(&self) -> Result<bool, AttestationError> {
        self.runtime.block_on(self.notes().is_clean())
    }

    fn check(
        &mut self,
        commit: &str,
        allowed_signers: Option<&Path>,
    ) -> Result<CheckedProof, AttestationError> {
        let notes = self.notes();
        self.runtime.block_on(async {
            let of_user = notes.user_setting("gpg.ssh.allowedSignersFile").await;
            let allowed = allowed_signers
                .map(Path::to_owned)
                .or_else(|| of_user.map(PathBuf::from));
            let needs_signature = allowed_signers.is_some();
            notes
                .check(commit, allowed.as_deref(), needs_signature)
                .await
        })
    }

    /// Returns the line for a commit message, and whether the note is signed.
    fn attest(
        &self,
        report: &Report,
        key: Option<&Path>,
    ) -> Result<(String, bool), AttestationError> {
        let notes = self.notes();
        self.runtime.block_on(async {
            let key = match key {
                Some(key) => Some(key.to_owned()),
                None => user_signing_key(&notes).await,
            };
            let version = env!("CARGO_PKG_VERSION");
            let trailer = notes
                .attest(report, "HEAD", key.as_deref(), version)
                .await?;
            Ok((trailer, key.is_some()))
        })
    }
}

fn describe(proof: &CheckedProof) -> String {
    let signer = match &proof.signer {
        Some(signer) => format!("signed by {signer}"),
        None => String::from(
            "integrity only: it belongs to these files, and nobody you trust has signed it",
        ),
    };
    let summary = proof.predicate["supervisor"]["summary"].as_str();
    format!(
        "{} has a proof ({signer})\n  tree {}\n  base {}\n  {}\n",
        proof.commit,
        proof.tree,
        supervisor_text::words::plain(&proof.base),
        supervisor_text::words::plain(summary.unwrap_or_default())
    )
}

/// What the command and the stop gate can choose.
pub(super) struct ProofOptions {
    pub(super) base: String,
    pub(super) comparand: Comparand,
    pub(super) test_cmd: Option<String>,
    pub(super) test_report: Option<String>,
    pub(super) allow_test_change: Vec<String>,
    pub(super) tests: Vec<String>,
    pub(super) fast: bool,
    pub(super) mutants: MutantMode,
    /// For one test run, in place of `limits.tests_s`.
    pub(super) test_limit: Option<Duration>,
    /// For the whole proof.
    pub(super) budget: Option<Duration>,
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
        let (test_cmd, test_report) =
            routing.test_command(root, self.test_cmd.clone(), self.test_report.clone());
        let request = ProveRequest {
            base: &self.base,
            comparand: self.comparand.clone(),
            test_cmd: test_cmd.as_deref(),
            test_report: test_report.as_deref(),
            allow_test_change: &self.allow_test_change,
            tests: &self.tests,
            checks: routing.checks(root),
            fast: self.fast,
            mutants: self.mutants,
            environment: RunEnvironment {
                launcher: launcher.clone(),
                env,
                limit: self.test_limit.unwrap_or(routing.limits.tests),
                guard: None,
                sandbox: TestSandbox::default(),
                execution: super::remote::of_process(routing)?,
            },
            on_step: &on_step,
            deadline: self
                .budget
                .map(|budget| tokio::time::Instant::now() + budget),
            ..ProveRequest::new(root, &state)
        };
        Ok(runtime.block_on(async {
            let stop = CancellationToken::new();
            let proof = prove(&request, &stop);
            tokio::pin!(proof);
            let report = tokio::select! {
                report = &mut proof => report,
                () = interrupted() => {
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

async fn interrupted() {
    let terminated = async {
        let kind = tokio::signal::unix::SignalKind::terminate();
        match tokio::signal::unix::signal(kind) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = terminated => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
