//! Runs the commands of a checkpoint in an overlay of the project and judges them by their exit
//! code. A command is a list of arguments, never a shell line. Everything it writes is discarded.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::App;
use supervisor_engine::call::caps_of;
use supervisor_engine::project_access::Site;
use supervisor_process::{
    ChildKind, CommandSpec, Confinement, End, FinishedProcess, Launcher, environment,
};
use supervisor_settings::{Routing, ViewStrategy};
use supervisor_team::definition::CheckDefinition;
use supervisor_team::verdict::{CheckFinding, EvidenceLocation};
use supervisor_text::words;
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{Mode, Scope, SnapshotLimits, Workspace};

/// Max bytes of command output kept as evidence.
const MAX_OUTPUT_BYTES: usize = 600;

/// Where a checkpoint definition comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandTrust {
    /// The user named this file on the command line.
    NamedByUser,
    /// The file is in the project, so its contents are untrusted.
    InProject,
}

/// Everything needed to start a command.
#[derive(Debug)]
pub(super) struct CommandRunner {
    launcher: Launcher,
    env: BTreeMap<OsString, OsString>,
    limit: Duration,
    lock_wait: Duration,
    state: StateDir,
    caps: SnapshotLimits,
    strategy: ViewStrategy,
}

impl CommandRunner {
    /// The error is a message for the user.
    pub(super) fn new(app: &App, routing: &Routing) -> Result<Self, String> {
        let keys: Vec<String> = routing
            .backends
            .values()
            .filter_map(|b| b.api_key_env.clone())
            .collect();
        Ok(Self {
            launcher: app.sandboxed_launcher(routing),
            env: environment::tests(app.env().vars().clone(), &keys, &routing.env_pass),
            limit: routing.limits.tests,
            lock_wait: routing.limits.lock_wait,
            state: app.state().map_err(|e| e.to_string())?,
            caps: caps_of(&routing.workspace),
            strategy: routing.workspace.strategy,
        })
    }

    pub(super) async fn run(
        &self,
        trust: CommandTrust,
        root: &Path,
        check: &CheckDefinition,
        argv: &[String],
        timeout_s: Option<u64>,
        stop: &CancellationToken,
    ) -> CheckFinding {
        let command_line = shell_words::join(argv);
        let place = |text: String| EvidenceLocation {
            file: command_line.clone(),
            line: 0,
            text,
        };
        if trust == CommandTrust::InProject {
            let why = format!(
                "`{command_line}` was not run: the definition lies in the project; run it with `supervisor check FILE`, which names it"
            );
            return check.warn(why, [place(String::from("refused"))]);
        }
        let limit = timeout_s.map_or(self.limit, Duration::from_secs);
        let finished = match self.run_in_overlay(root, argv, limit, stop).await {
            Ok(finished) => finished,
            Err(why) => {
                return check.warn(format!("`{command_line}` was not run: {why}"), [place(why)]);
            }
        };
        let output = words::cut_middle(
            &format!("{}{}", finished.stdout.text(), finished.stderr.text()),
            MAX_OUTPUT_BYTES,
        )
        .into_owned();
        match finished.end {
            End::Exited(0) => check.pass(format!("`{command_line}` ended with 0")),
            End::Exited(code) => check.fail(
                format!("`{command_line}` ended with {code}: {}", last_line(&output)),
                [place(output)],
            ),
            End::TimedOut => check.fail(
                format!("`{command_line}` did not end within {} s", limit.as_secs()),
                [place(output)],
            ),
            End::Signalled(signal) => check.fail(
                format!("`{command_line}` was ended by signal {signal}"),
                [place(output)],
            ),
            End::Cancelled => {
                check.warn(format!("`{command_line}` was cancelled"), [place(output)])
            }
            End::CouldNotStart(why) => check.fail(
                format!("`{command_line}` could not be started: {why}"),
                [place(output)],
            ),
        }
    }

    /// Runs in an overlay where the system supports one, else in place with a snapshot to restore.
    async fn run_in_overlay(
        &self,
        root: &Path,
        argv: &[String],
        limit: Duration,
        stop: &CancellationToken,
    ) -> Result<FinishedProcess, String> {
        let workspace =
            Workspace::open(root, self.caps.clone(), &self.state).map_err(|e| e.to_string())?;
        let lease = workspace
            .lock(Mode::Exclusive, "check", self.lock_wait, stop)
            .await
            .map_err(|e| e.to_string())?;
        let mut site = Site::open_for_edit(lease, &self.launcher, self.strategy)
            .await
            .map_err(|e| e.to_string())?;
        let mut spec = CommandSpec::new(argv.iter().map(OsString::from), root);
        spec.env = self.env.clone();
        spec.limit = limit;
        spec.confine = Some(Confinement::new(ChildKind::Tests));
        spec.guard = site.guard().map_err(|e| e.to_string())?;
        let finished = self.launcher.run(spec, stop).await;
        site.discard(Scope::Applied)
            .await
            .map_err(|e| e.to_string())?;
        Ok(finished)
    }
}

fn last_line(output: &str) -> String {
    words::cut_end(
        output
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("no output")
            .trim(),
        200,
    )
    .into_owned()
}
