//! `supervisor hook`: run by the hooks of the Claude Code plugin. Reads the event from stdin. Exit
//! code 2 passes stderr to the model and keeps it working; any other code lets it stop. A hook that
//! fails must not block the agent.

mod guard;
mod prove_gate;

use std::fs;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::verify::{BaselineComparison, BaselineStore, Verify};

/// Run one hook of the Claude Code plugin
#[derive(Debug, Args)]
pub(super) struct Hook {
    #[arg(value_enum)]
    event: HookEvent,
    /// Prove the change at a stop, instead of comparing test names
    #[arg(long)]
    prove: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum HookEvent {
    /// A session begins: remember what the tests show
    Start,
    /// The agent says it is done: refuse on newly red tests
    Stop,
    /// A file is about to be edited: refuse production code without a red test
    Edit,
}

/// The fields of the event that are used here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HookInput {
    session_id: String,
    cwd: Option<PathBuf>,
    transcript_path: Option<PathBuf>,
    /// The agent is already continuing because of a stop hook. Refusing again could loop forever.
    stop_hook_active: bool,
    tool_input: serde_json::Value,
}

/// What a hook decides about what the agent is doing.
enum Decision {
    Allow,
    /// The agent may go on, and the user should know this.
    Tell(String),
    /// The agent must not go on, and is told why.
    Block(String),
}

impl Decision {
    fn of(refusal: Option<String>) -> Self {
        refusal.map_or(Self::Allow, Self::Block)
    }
}

/// Maximum size of an event.
const MAX_EVENT_BYTES: u64 = 16 << 20;
const BLOCK_EXIT_CODE: u8 = 2;

impl Hook {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        err: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let mut text = String::new();
        std::io::stdin()
            .take(MAX_EVENT_BYTES)
            .read_to_string(&mut text)?;
        let input: HookInput = serde_json::from_str(&text).unwrap_or_default();
        let project = std::env::var_os("CLAUDE_PROJECT_DIR")
            .filter(|dir| !dir.is_empty())
            .map(PathBuf::from);
        let Some(project) = project.or_else(|| input.cwd.clone()) else {
            return Ok(ExitCode::SUCCESS);
        };
        let decision = match self.event {
            HookEvent::Start if self.prove => {
                prove_gate::start(config, &project, &input).map(|()| Decision::Allow)
            }
            HookEvent::Start => start(config, &project, &input).map(|()| Decision::Allow),
            HookEvent::Edit => guard::refusal(&project, &input.tool_input).map(Decision::of),
            HookEvent::Stop if input.stop_hook_active => Ok(Decision::Allow),
            HookEvent::Stop => {
                let decision = match self.prove {
                    true => prove_gate::stop(config, &project, &input),
                    false => stop(config, &project, &input).map(Decision::of),
                };
                decision.and_then(|decision| block_once(decision, &project, &input))
            }
        };
        match decision {
            Ok(Decision::Allow) => Ok(ExitCode::SUCCESS),
            Ok(Decision::Block(why)) => {
                writeln!(err, "{why}")?;
                Ok(ExitCode::from(BLOCK_EXIT_CODE))
            }
            // Exit code 1 is shown to the user and not to the model, and blocks nothing.
            Ok(Decision::Tell(what)) => {
                writeln!(err, "supervisor: {what}")?;
                Ok(ExitCode::from(1))
            }
            Err(error) => {
                writeln!(
                    err,
                    "supervisor: the hook could not check anything, so it blocks nothing: {error}"
                )?;
                Ok(ExitCode::from(1))
            }
        }
    }
}

/// Blocks once for each state of the project in a session: not every event says that the agent was blocked before.
fn block_once(decision: Decision, project: &Path, input: &HookInput) -> anyhow::Result<Decision> {
    let Decision::Block(why) = decision else {
        return Ok(decision);
    };
    let store = BaselineStore::of(project, &input.session_id)?;
    let (mark, files) = (store.sibling("blocked"), store.manifest()?);
    if fs::read_to_string(&mark).is_ok_and(|known| known == files) {
        return Ok(Decision::Tell(format!(
            "the agent may stop, because it was told before and changed nothing since. {why}"
        )));
    }
    fs::write(mark, files)?;
    Ok(Decision::Block(why))
}

fn start(config: Option<PathBuf>, project: &Path, input: &HookInput) -> anyhow::Result<()> {
    let store = BaselineStore::of(project, &input.session_id)?;
    let (_, run) = Verify::of_project(project.to_owned()).test(config)?;
    store.save(&run)
}

fn stop(
    config: Option<PathBuf>,
    project: &Path,
    input: &HookInput,
) -> anyhow::Result<Option<String>> {
    let store = BaselineStore::of(project, &input.session_id)?;
    // Without a baseline it is unknown which tests failed before.
    let Some(baseline) = store.load() else {
        return Ok(None);
    };
    if baseline.manifest == store.manifest()? {
        return Ok(None);
    }
    let (_, run) = Verify::of_project(project.to_owned()).test(config)?;
    match baseline.compare(&run) {
        BaselineComparison::NothingNew => store.save(&run).map(|()| None),
        BaselineComparison::Unknown(_) => Ok(None),
        red @ BaselineComparison::NewlyRed(_) => Ok(Some(format!(
            "Not done: `{}` passed at the start of this session and fails now.\n{}Fix the code, or say plainly why a test is wrong and leave it \
             red.",
            run.command(),
            red.text()
        ))),
    }
}
