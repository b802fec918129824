//! The stop gate that proves the change of a session. It blocks on regressions and on weakened tests. Anything else that
//! is missing is reported to the user only: blocking on it would teach agents to write useless tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use supervisor_prove::{ChangeError, Comparand, MutantMode, ProveError, Verdict, commit_id};
use supervisor_settings::load;
use supervisor_text::words;
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

use super::HookInput;
use crate::built_in;
use crate::commands::prove::{ProofOptions, launcher_and_env};
use crate::commands::shadow::{Recording, follow_plugin, record_proven};

/// Less than the timeout in the plugin's `hooks.json`, so that this program can still say what it did not get to.
const LIMIT: Duration = Duration::from_secs(840);
const DIR_NAME: &str = "baselines";
const MAX_LISTED: usize = 10;

/// Remembers the commit at which the session begins.
pub(super) fn start(
    config: Option<PathBuf>,
    project: &Path,
    input: &HookInput,
) -> anyhow::Result<()> {
    follow_plugin();
    let routing = load(&built_in::sources(config))?.routing;
    let (launcher, env) = launcher_and_env(&routing)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let stop = CancellationToken::new();
    let commit = runtime.block_on(commit_id(project, "HEAD", &launcher, &env, &stop))?;
    fs::write(file(project, &input.session_id)?, commit)?;
    Ok(())
}

/// Proves what changed since then. Returns why the agent must go on.
pub(super) fn stop(
    config: Option<PathBuf>,
    project: &Path,
    input: &HookInput,
) -> anyhow::Result<Option<String>> {
    if input.stop_hook_active {
        return Ok(None);
    }
    let base = fs::read_to_string(file(project, &input.session_id)?)
        .unwrap_or_else(|_| String::from("HEAD"));
    let routing = load(&built_in::sources(config))?.routing;
    let root = project.canonicalize()?;
    let options = ProofOptions {
        base,
        comparand: Comparand::WorkingTree,
        test_cmd: None,
        test_report: None,
        // An agent cannot allow itself to change tests.
        allow_test_change: Vec::new(),
        fast: true,
        mutants: MutantMode::Never,
        test_limit: None,
        limit: Some(LIMIT),
    };
    let report = match options.prove(&root, &routing)? {
        Ok(report) => report,
        Err(ProveError::Change(ChangeError::Nothing { .. })) => return Ok(None),
        Err(ProveError::Cancelled) => {
            anyhow::bail!("the tests did not finish in {} s", LIMIT.as_secs())
        }
        Err(error) => return Err(error.into()),
    };
    let weakened: Vec<String> = report
        .test_changes
        .iter()
        .filter(|change| change.needs_permission())
        .map(ToString::to_string)
        .collect();
    if report.verdict == Verdict::Broken {
        return Ok(Some(format!(
            "Not done: {}.\n{}Fix the code, or say plainly why a test is wrong and leave it red.",
            report.summary,
            list(&report.regressions)
        )));
    }
    if !weakened.is_empty() {
        return Ok(Some(format!(
            "Not done: existing tests were deleted or weakened.\n{}Restore them, or tell the user why they have to change.",
            list(&weakened)
        )));
    }
    if report.verdict == Verdict::Unproven {
        anyhow::bail!("not proven: {}", report.summary);
    }
    record_proven(
        &routing,
        &report,
        &Recording {
            root: &root,
            base: &options.base,
            test_cmd: None,
            transcript: input.transcript_path.as_deref(),
        },
    );
    Ok(None)
}

fn file(project: &Path, session: &str) -> anyhow::Result<PathBuf> {
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(session.as_bytes())
        .update(&[0])
        .update(project.as_os_str().as_encoded_bytes());
    let name = hasher.finalize().to_hex();
    let folder = StateDir::locate()?.sub(DIR_NAME)?;
    Ok(folder.join(format!("{}.commit", &name[..32])))
}

fn list(items: &[String]) -> String {
    let mut text = String::new();
    for item in items.iter().take(MAX_LISTED) {
        text += &format!("  {}\n", words::plain(item));
    }
    if items.len() > MAX_LISTED {
        text += &format!("  and {} more\n", items.len() - MAX_LISTED);
    }
    text
}
