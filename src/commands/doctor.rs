//! `supervisor doctor`: prints one line per check with a hint on how to fix it; the exit code says
//! whether a call can succeed. Most checks are in `doctor/checks.rs`. A new check is a function and
//! a line in `CHECKS`.

mod checks;
mod client;
mod passports;
mod prompts;
mod sandbox;
mod state_size;
mod unconfigured;

use crate::built_in;
use crate::commands::claude_code;
use crate::commands::console;
use crate::commands::gc::GcCommand;
use crate::commands::init::Init;
use std::io::{self, BufRead as _, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use futures_util::future::{BoxFuture, join_all};
use serde::Serialize;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use supervisor_models::Env;
use supervisor_models::availability::{Availability, ProbeConfig};
use supervisor_models::chain_status::ChainStatus;
use supervisor_process::Launcher;
use supervisor_settings as routing;
use supervisor_settings::{RoutingError, Sources};
use supervisor_text::redact::Redactor;
use supervisor_text::words;
use supervisor_workspace::state::{StateDir, StateError};

/// A check. All checks run concurrently and share one probe of the backends.
type Check = for<'a> fn(&'a DoctorContext) -> BoxFuture<'a, Vec<Finding>>;

/// All checks, in display order.
static CHECKS: &[(&str, Check)] = &[
    ("routing", |context| Box::pin(checks::routing(context))),
    ("claude", |context| Box::pin(checks::agents(context))),
    ("cloud", |context| Box::pin(checks::cloud(context))),
    ("gateway", |context| Box::pin(checks::gateways(context))),
    ("found", |context| {
        Box::pin(unconfigured::unconfigured_servers(context))
    }),
    ("recorded", |context| Box::pin(checks::recorded(context))),
    ("models", |context| Box::pin(checks::models(context))),
    ("loaded", |context| Box::pin(checks::loaded(context))),
    ("windows", |context| Box::pin(checks::windows(context))),
    ("passports", |context| {
        Box::pin(passports::passports(context))
    }),
    ("verifier", |context| Box::pin(checks::verifier(context))),
    ("prompts", |context| Box::pin(prompts::prompts(context))),
    ("state", |context| Box::pin(state_size::state(context))),
    ("sandbox", |context| Box::pin(sandbox::sandbox(context))),
    ("client", |context| Box::pin(client::client(context))),
    ("git", |context| Box::pin(checks::git(context))),
    ("tests", |context| Box::pin(checks::tests(context))),
    ("chains", |context| Box::pin(checks::chains(context))),
];

/// Check settings, models, programs and directories, and suggest fixes
///
/// Exit code 0 if a call can succeed, 1 if none can, 2 if the settings are broken.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,

    /// Fix what can be fixed, asking before each step
    #[arg(long, conflicts_with = "json")]
    fix: bool,
}

/// What `--fix` can do about a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fix {
    /// `supervisor init` writes the settings.
    Init,
    /// A command of Claude Code, to be run in a directory.
    Claude(Vec<String>, PathBuf),
    /// `supervisor init --register` makes the server known to Claude Code.
    Register,
    /// `supervisor gc` frees space.
    Gc,
}

impl Fix {
    fn claude(words: &[&str], dir: impl Into<PathBuf>) -> Self {
        let words = std::iter::once(&"claude").chain(words);
        Self::Claude(words.map(|&word| word.to_owned()).collect(), dir.into())
    }

    fn command(&self) -> String {
        match self {
            // The file is shown before it is replaced.
            Self::Init => String::from("supervisor init --force"),
            Self::Claude(argv, dir) if dir == Path::new("/") => argv.join(" "),
            Self::Claude(argv, dir) => format!("{} (in {})", argv.join(" "), dir.display()),
            Self::Register => String::from("supervisor init --register"),
            Self::Gc => String::from("supervisor gc"),
        }
    }

    fn apply(&self, config: Option<PathBuf>, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Self::Init => Init::replacing().run(config, out).map(drop),
            Self::Claude(argv, dir) => {
                let runtime = super::runtime::build_runtime()?;
                let ran = runtime.block_on(claude_code::run(argv, dir, &Env::from_process()));
                let said = ran.map_or_else(|why| why + "\n", |()| String::from("done\n"));
                super::print(out, &words::plain(&said))
            }
            Self::Register => Init::registering().run(config, out).map(drop),
            Self::Gc => GcCommand::default().run(config, out).map(drop),
        }
    }
}

pub fn run(
    arguments: &Arguments,
    config: Option<&PathBuf>,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let context = DoctorContext::new(
        &built_in::sources(config.cloned()),
        ProbeConfig::new(Env::from_process(), Launcher::this_program()),
        crate::commands::state_dir(),
        PathBuf::from("."),
    );
    let runtime = super::runtime::build_runtime()?;
    let report = runtime.block_on(examine(&context));
    // A hanging name lookup would block a normal shutdown.
    runtime.shutdown_background();
    let mut text = Vec::new();
    if arguments.json {
        report.write_json(&mut text)?;
    } else {
        report.write_text(&mut text)?;
    }
    super::print(out, &String::from_utf8_lossy(&text))?;
    if arguments.fix {
        return report.fix(config, out);
    }
    Ok(ExitCode::from(report.exit_code))
}

/// Runs all checks concurrently.
pub async fn examine(context: &DoctorContext) -> DoctorReport {
    let found = join_all(CHECKS.iter().map(|(_, check)| check(context))).await;
    let redactor = &context.redactor();
    let checks: Vec<Line> = CHECKS
        .iter()
        .zip(found)
        .flat_map(|((check, _), found)| {
            found.into_iter().map(move |finding| Line {
                check,
                finding: finding.sanitized(redactor),
            })
        })
        .collect();
    let exit_code = match &context.settings {
        Err(_) => 2,
        Ok(_) if checks.iter().any(|line| line.finding.level == Level::Fail) => 1,
        Ok(_) => 0,
    };
    DoctorReport { exit_code, checks }
}

/// Input of the checks.
pub struct DoctorContext {
    settings: Result<routing::LoadedRouting, RoutingError>,
    probe_config: ProbeConfig,
    state: Result<StateDir, StateError>,
    /// The user's current directory.
    project: PathBuf,
    availability: OnceCell<(Availability, Vec<ChainStatus>)>,
}

impl DoctorContext {
    pub fn new(
        sources: &Sources,
        probe_config: ProbeConfig,
        state: Result<StateDir, StateError>,
        project: PathBuf,
    ) -> Self {
        Self {
            settings: routing::load(sources),
            probe_config,
            state,
            project,
            availability: OnceCell::new(),
        }
    }

    /// Removes the keys that the settings name, and whatever looks like a key.
    fn redactor(&self) -> Redactor {
        let backends = self
            .settings
            .iter()
            .flat_map(|settings| settings.routing.backends.values());
        self.probe_config
            .env
            .redactor(backends.filter_map(|backend| backend.api_key_env.as_deref()))
    }

    /// Probes the backends on first use. `None` if the settings could not be loaded.
    async fn availability(&self) -> Option<&(Availability, Vec<ChainStatus>)> {
        let routing = &self.settings.as_ref().ok()?.routing;
        let probe = async {
            let availability =
                Availability::probe(routing, &self.probe_config, &CancellationToken::new()).await;
            let walks = availability.chain_statuses(routing);
            (availability, walks)
        };
        Some(self.availability.get_or_init(|| probe).await)
    }
}

/// The findings of all checks.
#[derive(Debug, Serialize)]
pub struct DoctorReport {
    /// 0: a call can succeed; 1: no call can succeed, for example because no chain has a usable
    /// tier; 2: the settings are broken.
    pub exit_code: u8,
    checks: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    check: &'static str,
    #[serde(flatten)]
    finding: Finding,
}

/// The result of a check.
#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip)]
    fix: Option<Fix>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    /// Something does not work, but calls can still succeed.
    Warn,
    /// No call can succeed until this is fixed.
    Fail,
}

impl Finding {
    fn ok(found: impl Into<String>) -> Self {
        Self {
            level: Level::Ok,
            found: found.into(),
            hint: None,
            fix: None,
        }
    }

    fn warn(found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            level: Level::Warn,
            found: found.into(),
            hint: Some(hint.into()),
            fix: None,
        }
    }

    fn fail(found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            level: Level::Fail,
            found: found.into(),
            hint: Some(hint.into()),
            fix: None,
        }
    }

    fn fixed_by(self, fix: Fix) -> Self {
        Self {
            fix: Some(fix),
            ..self
        }
    }

    /// Redacts keys, escapes control characters and joins lines: parts of the text come from other
    /// programs.
    fn sanitized(mut self, redactor: &Redactor) -> Self {
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
    /// Runs the commands that fix findings, each only if the user agrees.
    fn fix(&self, config: Option<&PathBuf>, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let mut wanted: Vec<&Fix> = Vec::new();
        for fix in self
            .checks
            .iter()
            .filter_map(|line| line.finding.fix.as_ref())
        {
            if !wanted.contains(&fix) {
                wanted.push(fix);
            }
        }
        if wanted.is_empty() {
            super::print(out, "There is nothing that `--fix` can do.\n")?;
            return Ok(ExitCode::from(self.exit_code));
        }
        let is_interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
        for fix in wanted {
            let command = fix.command();
            if !is_interactive {
                super::print(out, &words::plain(&format!("To fix: {command}\n")))?;
                continue;
            }
            super::print(out, &words::plain(&format!("Run `{command}`? [Y/n] ")))?;
            let mut answer = String::new();
            let is_answered = io::stdin().lock().read_line(&mut answer)? > 0;
            if is_answered && matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes") {
                fix.apply(config.cloned(), out)?;
            }
        }
        super::print(out, "`supervisor doctor` checks again.\n")?;
        Ok(ExitCode::from(self.exit_code))
    }

    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut lines = self.checks.iter().peekable();
        while let Some(Line { check, finding }) = lines.next() {
            let level = match finding.level {
                Level::Ok => "ok",
                Level::Warn => "warn",
                Level::Fail => "fail",
            };
            let line = format!("{level:<5} {check:<9} {}", finding.found);
            writeln!(out, "{}", console::fit_terminal(&line))?;
            // Print a hint shared by several lines of a check only once, below them.
            let hint_repeats = lines
                .peek()
                .is_some_and(|next| next.check == *check && next.finding.hint == finding.hint);
            if let Some(hint) = finding.hint.as_ref().filter(|_| !hint_repeats) {
                let line = format!("      hint: {hint}");
                writeln!(out, "{}", console::fit_terminal(&line))?;
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
