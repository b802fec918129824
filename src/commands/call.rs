//! `call`: any tool from the shell, through a server in this process, so that it is what an MCP client would get.
//! Owns the signals and the exit code; the answer goes to stdout, everything on the way to stderr.

mod arguments;
mod interrupted;
mod outline;
mod report;

use crate::built_in;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::arguments::GivenArguments;
use self::interrupted::InterruptedCall;
use self::report::CallReport;
use super::client::{CallReply, Client, whole_result};
use super::console::{Console, Paint};
use super::print;
use super::signals::Signals;
use supervisor_engine::Cause;
use supervisor_engine::result::{CallResult, Status};
use supervisor_skills::App;

/// Call a tool from the shell, as an MCP client would
///
/// Without TOOL the tools are listed. A relative `project_root` counts from the current directory, which is also taken
/// where a tool needs one and none is given. The answer goes to stdout, progress and errors to stderr.
///
/// Exit code 0 if the status is pass, 1 if it is fail, 2 if it is error or the arguments are wrong, 130 if interrupted.
/// Ctrl-C cancels the call and waits until the project is as it was; a second one leaves that to its guard.
#[derive(Debug, Args)]
pub(super) struct CallCommand {
    /// The tool to call
    tool: Option<String>,
    /// One argument; repeat a name to make a list, or write the list as JSON
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    args: Vec<String>,
    /// All arguments as one JSON object, from a file or from stdin
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// A report for people, or exactly the structured result
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// What goes to stdout and stderr at the end, and the exit code.
struct FinalOutput {
    out: String,
    err: String,
    code: u8,
    then: Then,
}

/// What happens to the server once all is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Finish,
    /// The person waits no longer. What still runs is ended by its shim, which also brings the project back.
    Leave,
}

const INTERRUPTED: u8 = 130;

impl CallCommand {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        // Read before anything starts: a typing error should cost nothing.
        let given = GivenArguments::read(&self.args, self.json.as_deref())?;
        let app = built_in::app(config);
        let runtime = super::runtime::build_runtime()?;
        let said = runtime.block_on(self.in_session(app, given));
        // A name lookup that never ends would hold an ordinary shutdown.
        runtime.shutdown_background();
        let said = said?;
        // The terminal may be gone, which is why we were interrupted.
        let _ = print(err, &said.err);
        print(out, &said.out)?;
        Ok(ExitCode::from(said.code))
    }

    async fn in_session(&self, app: App, given: GivenArguments) -> anyhow::Result<FinalOutput> {
        let mut signals = Signals::new()?;
        if let Ok(loaded) = app.settings() {
            // The caller sees them, so they need neither a time nor a place.
            loaded
                .warnings
                .iter()
                .for_each(|warning| drop(writeln!(io::stderr(), "warning: {warning}")));
        }
        let mut client = Client::start(app).await?;
        let said = self.with(&mut client, given, &mut signals).await;
        // Also after a mistake: a server that is torn away in the middle of a reply complains on stderr.
        if !matches!(
            &said,
            Ok(FinalOutput {
                then: Then::Leave,
                ..
            })
        ) {
            tokio::select! {
                () = client.finish() => {}
                () = signals.second_interrupt() => {}
            }
        }
        said
    }

    async fn with(
        &self,
        client: &mut Client,
        given: GivenArguments,
        signals: &mut Signals,
    ) -> anyhow::Result<FinalOutput> {
        let tools = client.tools().await?;
        let Some(tool) = &self.tool else {
            given.none_without_a_tool()?;
            let out = match self.output {
                Output::Text => report::list(&tools),
                Output::Json => pretty(&Value::from(tools)),
            };
            return Ok(FinalOutput {
                out,
                err: String::new(),
                code: 0,
                then: Then::Finish,
            });
        };
        let schema = tools
            .iter()
            .find(|known| known["name"] == *tool)
            .map(|known| &known["inputSchema"]);
        // Without a schema the tool is unknown, which the server says better.
        let arguments = given.for_tool(schema.and_then(Value::as_object))?;
        self.watched(client, tool, arguments, signals).await
    }

    /// Makes the call, shows how it goes, and cancels it on a signal.
    async fn watched(
        &self,
        client: &mut Client,
        tool: &str,
        arguments: Value,
        signals: &mut Signals,
    ) -> anyhow::Result<FinalOutput> {
        let screen = Screen::new(tool);
        let interrupted = InterruptedCall::possible(tool, &arguments);
        let stop = CancellationToken::new();
        let mut hear = |line: &str| screen.hear(line);
        let call = client.call(tool, arguments, &stop, &mut hear);
        tokio::pin!(call);
        let called = tokio::select! {
            called = &mut call => called,
            _ = signals.next() => {
                stop.cancel();
                screen.says("interrupted; the call is cancelled and the project brought back");
                tokio::select! {
                    called = &mut call => called,
                    () = signals.second_interrupt() => return Ok(FinalOutput::interrupted(interrupted.twice(), Then::Leave)),
                }
            }
        };
        Ok(match called? {
            CallReply::Answered(result) => self.answered(&result)?,
            CallReply::Cancelled => FinalOutput::interrupted(interrupted.came_to(), Then::Finish),
        })
    }

    fn answered(&self, result: &Value) -> anyhow::Result<FinalOutput> {
        let answer: CallResult =
            serde_json::from_value(whole_result(result.clone())).context("reading the result")?;
        let code = match answer.status {
            Status::Pass => 0,
            Status::Fail => 1,
            Status::Error => 2,
        };
        let (mut out, mut err) = (String::new(), String::new());
        match (self.output, answer.status) {
            (Output::Json, _) => out = pretty(result),
            // An error is no answer: a reader of stdout should not take it for one.
            (Output::Text, Status::Error) => {
                err = CallReport::of(&answer, Paint::on(&io::stderr())).to_string()
            }
            (Output::Text, Status::Pass | Status::Fail) => {
                out = CallReport::of(&answer, Paint::on(&io::stdout())).to_string();
            }
        }
        Ok(FinalOutput {
            out,
            err,
            code,
            then: Then::Finish,
        })
    }
}

impl FinalOutput {
    fn interrupted(words: String, then: Then) -> Self {
        Self {
            out: String::new(),
            err: words,
            code: INTERRUPTED,
            then,
        }
    }
}

/// The console, told by the call and by signals alike.
struct Screen(Mutex<(Console, String)>);

impl Screen {
    fn new(tool: &str) -> Self {
        let mut console = Console::stderr();
        // Where lines stay, the first one is the server's.
        if console.is_live() {
            console.begin(tool);
        }
        Self(Mutex::new((console, String::new())))
    }

    fn says(&self, line: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .now(line);
    }

    /// On a terminal how an attempt ended stays, and the rest is replaced by what comes next.
    fn hear(&self, line: &str) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (console, last) = &mut *held;
        if !console.is_live() {
            // Where lines stay, one that only counts on is not written again.
            if without_time(line) != last {
                without_time(line).clone_into(last);
                console.now(line);
            }
            return;
        }
        let paint = console.paint();
        match ending(line) {
            Some(Cause::Accepted) => console.line(&paint.good(line)),
            Some(_) => console.line(&paint.doubtful(line)),
            None => console.now(without_time(line)),
        }
    }
}

/// How an attempt ended, if that is what the line tells: `tdd_green · tier 1/3 small rejected: … · 12 s`.
fn ending(line: &str) -> Option<Cause> {
    let (_skill, rest) = line.split_once(" · tier ")?;
    let word = rest.split_once(": ")?.0.split(' ').nth(2)?;
    serde_json::from_value(word.into()).ok()
}

/// The live line counts the time itself.
fn without_time(line: &str) -> &str {
    match line.rsplit_once(" · ") {
        Some((head, time))
            if time
                .strip_suffix(" s")
                .is_some_and(|n| n.parse::<u64>().is_ok()) =>
        {
            head
        }
        _ => line,
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON serialises") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_how_an_attempt_ended_stays_on_the_screen() {
        let cases = [
            (
                "tdd_green · tier 1/3 qwen3 rejected: adds_two: left · right · 12 s",
                Some(Cause::Rejected),
            ),
            (
                "tdd_green · tier 2/3 a/b cannot_verify: flaky · 12 s",
                Some(Cause::CannotVerify),
            ),
            (
                "tdd_green · tier 3/3 large accepted: 2 tests · 12 s",
                Some(Cause::Accepted),
            ),
            ("tdd_green · tier 1/3 qwen3 · running tests · 1 s", None),
            ("tdd_green · tier 1/3 qwen3 · Bash: cargo test · 1 s", None),
            ("tdd_green · tests before · 1 s", None),
            ("tier · asking every endpoint at once", None),
        ];
        for (line, cause) in cases {
            assert_eq!(ending(line), cause, "{line}");
        }
    }

    #[test]
    fn only_the_time_is_taken_off_a_line() {
        assert_eq!(
            without_time("tdd_red · tier 1/2 small · asking · 3 s"),
            "tdd_red · tier 1/2 small · asking"
        );
        assert_eq!(
            without_time("tier · asking every endpoint at once"),
            "tier · asking every endpoint at once"
        );
    }
}
