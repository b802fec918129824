//! The stop gate that proves the change of a session. It blocks on regressions and on weakened tests. Anything else that
//! is missing is reported to the user only: blocking on it would teach agents to write useless tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use supervisor_prove::{ChangeError, Comparand, MutantMode, ProveError, Verdict, commit_id};
use supervisor_settings::{LoadedRouting, Origin, load};
use supervisor_text::words;
use tokio_util::sync::CancellationToken;

use super::{Decision, HookInput};
use crate::built_in;
use crate::commands::prove::{ProofOptions, launcher_and_env};
use crate::commands::shadow::{Recording, follow_plugin, record_proven};
use crate::commands::verify::BaselineStore;

/// Less than the timeout in the plugin's `hooks.json`, so that this program can still say what it did not get to.
const BUDGET: Duration = Duration::from_secs(840);
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
    let store = BaselineStore::of(project, &input.session_id)?;
    fs::write(store.sibling("commit"), commit)?;
    Ok(())
}

/// Proves what changed since then. The agent must go on if something broke, or tests were deleted or weakened.
pub(super) fn stop(
    config: Option<PathBuf>,
    project: &Path,
    input: &HookInput,
) -> anyhow::Result<Decision> {
    let store = BaselineStore::of(project, &input.session_id)?;
    let base = fs::read_to_string(store.sibling("commit")).unwrap_or_else(|_| String::from("HEAD"));
    let settings = load(&built_in::sources(config))?;
    let root = project.canonicalize()?;
    let options = ProofOptions {
        base,
        comparand: Comparand::WorkingTree,
        test_cmd: None,
        test_report: None,
        allow_test_change: allowed_by_user(&settings, &root),
        tests: Vec::new(),
        fast: true,
        mutants: MutantMode::Never,
        test_limit: None,
        budget: Some(BUDGET),
    };
    let routing = settings.routing;
    let report = match options.prove(&root, &routing)? {
        Ok(report) => report,
        Err(ProveError::Change(ChangeError::Nothing { .. })) => return Ok(Decision::Allow),
        Err(error) => return Err(error.into()),
    };
    let weakened: Vec<String> = report
        .test_changes
        .iter()
        .filter(|change| change.needs_permission())
        .filter(|change| !change.is_allowed_by(&options.allow_test_change))
        .map(ToString::to_string)
        .collect();
    if report.verdict == Verdict::Broken {
        return Ok(Decision::Block(format!(
            "Not done: {}.\n{}Fix the code, or say plainly why a test is wrong and leave it red.",
            report.summary,
            list(&report.regressions)
        )));
    }
    if !weakened.is_empty() {
        return Ok(Decision::Block(format!(
            "Not done: existing tests were deleted or weakened.\n{}Restore them, or tell the user why they have to change. The user can \
             allow it with `verify.allow_test_change` in the settings.",
            list(&weakened)
        )));
    }
    if report.verdict == Verdict::Unproven {
        let gaps: Vec<String> = report.gaps.iter().map(|gap| gap.what.clone()).collect();
        return Ok(Decision::Tell(format!(
            "the change is not proven, which blocks nothing.\n{}Next: {}.",
            list(&gaps),
            report.gaps.first().map_or("", |gap| gap.next.as_str())
        )));
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
    Ok(Decision::Allow)
}

/// The tests that the user allows to change. Only the user's own file counts: an agent can set variables and write to the
/// project.
fn allowed_by_user(settings: &LoadedRouting, root: &Path) -> Vec<String> {
    match settings.origin("verify.allow_test_change") {
        Some(Origin::File(file, _)) if !file.starts_with(root) => {
            settings.routing.verify.allow_test_change.clone()
        }
        _ => Vec::new(),
    }
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
