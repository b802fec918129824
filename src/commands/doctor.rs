//! `supervisor doctor`: one line per check, with what helps; the exit code says whether a call can succeed.
//! Knows how findings are shown. What is looked at is in `doctor/checks.rs`; a new check is a function and its line
//! in [`CHECKS`].

mod checks;
mod found;
mod passports;
mod prompts;
mod state_size;
mod walls;

use crate::built_in;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use futures_util::future::{BoxFuture, join_all};
use serde::Serialize;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use supervisor_models::Env;
use supervisor_models::walk::ChainWalk;
use supervisor_models::world::{Look, World};
use supervisor_process::Launcher;
use supervisor_settings as routing;
use supervisor_settings::{RoutingError, Sources};
use supervisor_text::redact::Redactor;
use supervisor_text::words;
use supervisor_workspace::state::{StateDir, StateError};

/// What a check looks at; all of them run at once and share one look at the world.
type Check = for<'a> fn(&'a Case) -> BoxFuture<'a, Vec<Finding>>;

/// The checks, in the order they are shown.
static CHECKS: &[(&str, Check)] = &[
    ("routing", |case| Box::pin(checks::routing(case))),
    ("claude", |case| Box::pin(checks::agents(case))),
    ("cloud", |case| Box::pin(checks::cloud(case))),
    ("gateway", |case| Box::pin(checks::gateways(case))),
    ("found", |case| Box::pin(found::found(case))),
    ("recorded", |case| Box::pin(checks::recorded(case))),
    ("models", |case| Box::pin(checks::models(case))),
    ("loaded", |case| Box::pin(checks::loaded(case))),
    ("passports", |case| Box::pin(passports::passports(case))),
    ("verifier", |case| Box::pin(checks::verifier(case))),
    ("prompts", |case| Box::pin(prompts::prompts(case))),
    ("state", |case| Box::pin(state_size::state(case))),
    ("sandbox", |case| Box::pin(walls::sandbox(case))),
    ("git", |case| Box::pin(checks::git(case))),
    ("tests", |case| Box::pin(checks::tests(case))),
    ("chains", |case| Box::pin(checks::chains(case))),
];

/// Check routing, models, programs and directories, and say what helps
///
/// Exit code 0 if a call can succeed, 1 if none can, 2 if the settings are broken.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(
    arguments: &Arguments,
    config: Option<PathBuf>,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let case = Case::new(
        &built_in::sources(config),
        Look::new(Env::of_this_program(), Launcher::this_program()),
        StateDir::locate(),
        PathBuf::from("."),
    );
    let runtime = super::runtime::build_runtime()?;
    let report = runtime.block_on(examine(&case));
    // A name lookup that never ends would hold an ordinary shutdown.
    runtime.shutdown_background();
    let mut text = Vec::new();
    if arguments.json {
        report.write_json(&mut text)?;
    } else {
        report.write_text(&mut text)?;
    }
    super::print(out, &String::from_utf8_lossy(&text))?;
    Ok(ExitCode::from(report.exit_code))
}

/// Runs every check at once.
pub async fn examine(case: &Case) -> DoctorReport {
    let found = join_all(CHECKS.iter().map(|(_, check)| check(case))).await;
    let redactor = &case.redactor();
    let checks: Vec<Line> = CHECKS
        .iter()
        .zip(found)
        .flat_map(|((check, _), found)| {
            found.into_iter().map(move |finding| Line {
                check,
                finding: finding.shown(redactor),
            })
        })
        .collect();
    let exit_code = match &case.settings {
        Err(_) => 2,
        Ok(_) if checks.iter().any(|line| line.finding.level == Level::Fail) => 1,
        Ok(_) => 0,
    };
    DoctorReport { exit_code, checks }
}

/// What is examined.
pub struct Case {
    settings: Result<routing::LoadedRouting, RoutingError>,
    look: Look,
    state: Result<StateDir, StateError>,
    /// Where the person stands.
    project: PathBuf,
    world: OnceCell<(World, Vec<ChainWalk>)>,
}

impl Case {
    pub fn new(
        sources: &Sources,
        look: Look,
        state: Result<StateDir, StateError>,
        project: PathBuf,
    ) -> Self {
        Self {
            settings: routing::load(sources),
            look,
            state,
            project,
            world: OnceCell::new(),
        }
    }

    /// Takes out the keys that the settings name, and whatever looks like one.
    fn redactor(&self) -> Redactor {
        let backends = self
            .settings
            .iter()
            .flat_map(|settings| settings.routing.backends.values());
        self.look
            .env
            .redactor(backends.filter_map(|backend| backend.api_key_env.as_deref()))
    }

    /// The world, looked at once by the first check that needs it; `None` if the routing does not say where to look.
    async fn world(&self) -> Option<&(World, Vec<ChainWalk>)> {
        let routing = &self.settings.as_ref().ok()?.routing;
        let look = async {
            let world = World::look(routing, &self.look, &CancellationToken::new()).await;
            let walks = world.walks(routing);
            (world, walks)
        };
        Some(self.world.get_or_init(|| look).await)
    }
}

/// What came out of all checks.
#[derive(Debug, Serialize)]
pub struct DoctorReport {
    /// 0: a call can succeed; 1: none can, as when no chain has a tier that can be walked; 2: the routing is broken.
    pub exit_code: u8,
    checks: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    check: &'static str,
    #[serde(flatten)]
    finding: Finding,
}

/// One thing that was found.
#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    /// Something is out, and other things work.
    Warn,
    /// Nothing works before this is fixed.
    Fail,
}

impl Finding {
    fn ok(found: impl Into<String>) -> Self {
        Self {
            level: Level::Ok,
            found: found.into(),
            hint: None,
        }
    }

    fn warn(found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            level: Level::Warn,
            found: found.into(),
            hint: Some(hint.into()),
        }
    }

    fn fail(found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            level: Level::Fail,
            found: found.into(),
            hint: Some(hint.into()),
        }
    }

    /// On one line each, without keys, with nothing in it that moves the cursor: parts of it come from other programs.
    fn shown(mut self, redactor: &Redactor) -> Self {
        let line = |text: &str| one_line(&redactor.redact(text));
        self.hint = self
            .hint
            .as_deref()
            .map(line)
            .filter(|hint| !hint.is_empty());
        self.found = line(&self.found);
        self
    }
}

impl DoctorReport {
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut lines = self.checks.iter().peekable();
        while let Some(Line { check, finding }) = lines.next() {
            let level = match finding.level {
                Level::Ok => "ok",
                Level::Warn => "warn",
                Level::Fail => "fail",
            };
            writeln!(out, "{level:<5} {check:<9} {}", finding.found)?;
            // What helps in several lines of one check is said once, below them.
            let again = lines
                .peek()
                .is_some_and(|next| next.check == *check && next.finding.hint == finding.hint);
            if let Some(hint) = finding.hint.as_ref().filter(|_| !again) {
                writeln!(out, "      hint: {hint}")?;
            }
        }
        out.flush()
    }

    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        writeln!(out)?;
        out.flush()
    }
}

fn one_line(text: &str) -> String {
    words::plain(text.trim()).replace(['\n', '\t'], " ")
}
