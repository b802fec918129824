//! `supervisor hook`: what the plugin's hooks run. Reads the event from stdin as Claude Code sends it. Exit code 2 hands
//! what is on stderr to the model and keeps it at work; any other code lets it go. A hook that cannot tell lets go.

mod guard;

use std::io::{Read as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::verify::{BaselineComparison, BaselinePlace, Verify};

/// Run one hook of the Claude Code plugin
#[derive(Debug, Args)]
pub(super) struct Hook {
    #[arg(value_enum)]
    event: HookEvent,
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

/// What Claude Code says about the event; more than is read here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HookInput {
    session_id: String,
    cwd: Option<PathBuf>,
    /// The agent is at work already because of a stop hook: a second refusal could go on for ever.
    stop_hook_active: bool,
    tool_input: serde_json::Value,
}

/// Longer events are not ours.
const MOST: u64 = 16 << 20;
const REFUSED: u8 = 2;

impl Hook {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        err: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let mut text = String::new();
        std::io::stdin().take(MOST).read_to_string(&mut text)?;
        let input: HookInput = serde_json::from_str(&text).unwrap_or_default();
        let project = std::env::var_os("CLAUDE_PROJECT_DIR")
            .filter(|dir| !dir.is_empty())
            .map(PathBuf::from);
        let Some(project) = project.or_else(|| input.cwd.clone()) else {
            return Ok(ExitCode::SUCCESS);
        };
        let refused = match self.event {
            HookEvent::Start => start(config, project, &input).map(|()| None),
            HookEvent::Stop => stop(config, project, &input),
            HookEvent::Edit => guard::refusal(&project, &input.tool_input),
        };
        match refused {
            Ok(None) => Ok(ExitCode::SUCCESS),
            Ok(Some(why)) => {
                writeln!(err, "{why}")?;
                Ok(ExitCode::from(REFUSED))
            }
            // Shown to the user, not to the model; nothing is held up by a hook that does not work.
            Err(error) => {
                writeln!(err, "supervisor: the hook told nothing: {error}")?;
                Ok(ExitCode::from(1))
            }
        }
    }
}

fn start(config: Option<PathBuf>, project: PathBuf, input: &HookInput) -> anyhow::Result<()> {
    let place = BaselinePlace::of(&project, &input.session_id)?;
    let (_, run) = Verify::of_project(project).test(config)?;
    place.keep(&run)
}

fn stop(
    config: Option<PathBuf>,
    project: PathBuf,
    input: &HookInput,
) -> anyhow::Result<Option<String>> {
    if input.stop_hook_active {
        return Ok(None);
    }
    let place = BaselinePlace::of(&project, &input.session_id)?;
    // Without a baseline it is unknown what was red before.
    let Some(baseline) = place.load() else {
        return Ok(None);
    };
    if baseline.manifest == place.manifest()? {
        return Ok(None);
    }
    let (_, run) = Verify::of_project(project).test(config)?;
    match baseline.compare(&run) {
        BaselineComparison::NothingNew => place.keep(&run).map(|()| None),
        BaselineComparison::Unknown(_) => Ok(None),
        red @ BaselineComparison::NewlyRed(_) => Ok(Some(format!(
            "Not done: `{}` passed at the start of this session and fails now.\n{}Fix the code, or say plainly why a test is wrong and leave it \
             red.",
            run.command(),
            red.text()
        ))),
    }
}
