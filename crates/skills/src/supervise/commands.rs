//! Commands of a checkpoint: run by the server in a private view of the project, judged by their exit code. Words, never
//! a shell; what they write is gone afterwards.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::App;
use supervisor_engine::call::caps_of;
use supervisor_engine::site::Site;
use supervisor_process::{
    ChildKind, Confinement, End, FinishedProcess, Launcher, Spec, environment,
};
use supervisor_settings::{Routing, ViewStrategy};
use supervisor_team::definition::CheckDefinition;
use supervisor_team::verdict::{CheckFinding, EvidencePlace};
use supervisor_text::words;
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{Caps, Mode, Scope, Workspace};

/// Kept of what a command wrote.
const OUTPUT: usize = 600;

/// Who wrote the definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandTrust {
    /// The user named this file.
    NamedByUser,
    /// It lies in the project, where anything may have put it.
    InProject,
}

/// What a command is started with.
#[derive(Debug)]
pub(super) struct CommandBench {
    launcher: Launcher,
    env: BTreeMap<OsString, OsString>,
    limit: Duration,
    lock_wait: Duration,
    state: StateDir,
    caps: Caps,
    strategy: ViewStrategy,
}

impl CommandBench {
    /// The error is a sentence.
    pub(super) fn new(app: &App, routing: &Routing) -> Result<Self, String> {
        let keys: Vec<String> = routing
            .backends
            .values()
            .filter_map(|b| b.api_key_env.clone())
            .collect();
        Ok(Self {
            launcher: app.walled_launcher(routing),
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
        let typed = shell_words::join(argv);
        let place = |text: String| EvidencePlace {
            file: typed.clone(),
            line: 0,
            text,
        };
        if trust == CommandTrust::InProject {
            let why = format!(
                "`{typed}` was not run: the definition lies in the project; run it with `supervisor check FILE`, which names it"
            );
            return check.warn(why, [place(String::from("refused"))]);
        }
        let limit = timeout_s.map_or(self.limit, Duration::from_secs);
        let finished = match self.run_apart(root, argv, limit, stop).await {
            Ok(finished) => finished,
            Err(why) => return check.warn(format!("`{typed}` was not run: {why}"), [place(why)]),
        };
        let said = words::cut_middle(
            &format!("{}{}", finished.stdout.text(), finished.stderr.text()),
            OUTPUT,
        )
        .into_owned();
        match finished.end {
            End::Exited(0) => check.pass(format!("`{typed}` ended with 0")),
            End::Exited(code) => check.fail(
                format!("`{typed}` ended with {code}: {}", last_line(&said)),
                [place(said)],
            ),
            End::TimedOut => check.fail(
                format!("`{typed}` did not end within {} s", limit.as_secs()),
                [place(said)],
            ),
            End::Signalled(signal) => check.fail(
                format!("`{typed}` was ended by signal {signal}"),
                [place(said)],
            ),
            End::Cancelled => check.warn(format!("`{typed}` was cancelled"), [place(said)]),
            End::CouldNotStart(why) => check.fail(
                format!("`{typed}` could not be started: {why}"),
                [place(said)],
            ),
        }
    }

    /// In a view of its own where the system gives one, else in place with a snapshot to come back to.
    async fn run_apart(
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
        let mut site = Site::arm_private(lease, &self.launcher, self.strategy)
            .await
            .map_err(|e| e.to_string())?;
        let mut spec = Spec::new(argv.iter().map(OsString::from), root);
        spec.env = self.env.clone();
        spec.limit = limit;
        spec.confine = Some(Confinement::new(ChildKind::Tests));
        spec.guard = site.guard().map_err(|e| e.to_string())?;
        let finished = self.launcher.run(spec, stop).await;
        site.leave(Scope::Applied)
            .await
            .map_err(|e| e.to_string())?;
        Ok(finished)
    }
}

fn last_line(said: &str) -> String {
    words::cut_end(
        said.lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("no output")
            .trim(),
        200,
    )
    .into_owned()
}
