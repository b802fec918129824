//! `supervisor call`: calls any tool from the shell through an in-process server, so the result is
//! the one an MCP client would get. Handles the signals and the exit code. The answer goes to
//! stdout, progress and errors to stderr.

mod arguments;
mod findings;
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
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::arguments::RawArguments;
use self::interrupted::InterruptedCall;
use self::report::CallReport;
use super::client::{CallReply, Client, whole_result};
use super::console::{Console, Paint};
use super::observers::Observers;
use super::print;
use super::signals::Signals;
use supervisor_engine::Cause;
use supervisor_engine::result::{CallResult, Status};
use supervisor_mcp::project_root;
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
    /// A report for people, exactly the structured result, or the findings of a review for code scanning or a comment
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
    Sarif,
    Markdown,
}

/// Final text for stdout and stderr, and the exit code.
struct FinalOutput {
    out: String,
    err: String,
    code: u8,
    after: ServerExit,
}

/// Whether to wait for the server before exiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerExit {
    Finish,
    /// The user interrupted twice. The shim ends what still runs and restores the project.
    Abandon,
}

const INTERRUPTED: u8 = 130;

impl CallCommand {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        if matches!(self.output, Output::Sarif | Output::Markdown) {
            anyhow::ensure!(
                self.tool.as_deref() == Some("review"),
                "`--output sarif` and `--output markdown` show the findings of `review`; other tools have `text` and `json`"
            );
        }
        // Parse first, so that a typo fails before anything is started.
        let given = RawArguments::read(&self.args, self.json.as_deref())?;
        let app = built_in::app(config);
        let runtime = super::runtime::build_runtime()?;
        let observers = Observers::start(&app, &runtime)?;
        let app = observers.attach(app);
        let final_output = runtime.block_on(self.run_session(app, given));
        observers.finish(&runtime);
        // A hanging name lookup would block a normal shutdown.
        runtime.shutdown_background();
        let final_output = final_output?;
        // Ignore write errors: if we were interrupted by a hangup, the terminal is gone.
        let _ = print(err, &final_output.err);
        print(out, &final_output.out)?;
        Ok(ExitCode::from(final_output.code))
    }

    async fn run_session(&self, app: App, given: RawArguments) -> anyhow::Result<FinalOutput> {
        let mut signals = Signals::new()?;
        if let Ok(loaded) = app.settings() {
            // Printed instead of logged: the user needs neither timestamp nor target.
            loaded
                .warnings
                .iter()
                .for_each(|warning| drop(writeln!(io::stderr(), "warning: {warning}")));
        }
        let mut client = Client::start(app).await?;
        let final_output = self.run_with_client(&mut client, given, &mut signals).await;
        // Also after an error: a server that is dropped in the middle of a reply complains on
        // stderr.
        if !matches!(
            &final_output,
            Ok(FinalOutput {
                after: ServerExit::Abandon,
                ..
            })
        ) {
            tokio::select! {
                () = client.finish() => {}
                () = signals.second_interrupt() => {}
            }
        }
        final_output
    }

    async fn run_with_client(
        &self,
        client: &mut Client,
        given: RawArguments,
        signals: &mut Signals,
    ) -> anyhow::Result<FinalOutput> {
        let tools = client.tools().await?;
        let Some(tool) = &self.tool else {
            given.ensure_empty()?;
            let out = match self.output {
                Output::Json => pretty(&Value::from(tools)),
                Output::Text | Output::Sarif | Output::Markdown => report::list(&tools),
            };
            return Ok(FinalOutput {
                out,
                err: String::new(),
                code: 0,
                after: ServerExit::Finish,
            });
        };
        let mut schema = tools
            .iter()
            .find(|known| known["name"] == *tool)
            .map(|known| known["inputSchema"].clone());
        // In a shell the current directory is the project, with or without a sign of one.
        if project_root::OPTIONAL_FOR.contains(&tool.as_str())
            && let Some(schema) = &mut schema
        {
            match &mut schema["required"] {
                Value::Array(required) => required.push(project_root::ARGUMENT.into()),
                missing => *missing = json!([project_root::ARGUMENT]),
            }
        }
        // An unknown tool has no schema. The server reports it better than we could.
        let arguments = given.into_arguments(schema.as_ref().and_then(Value::as_object))?;
        self.call_tool(client, tool, arguments, signals).await
    }

    /// Makes the call, shows its progress, and cancels it on a signal.
    async fn call_tool(
        &self,
        client: &mut Client,
        tool: &str,
        arguments: Value,
        signals: &mut Signals,
    ) -> anyhow::Result<FinalOutput> {
        let screen = ProgressDisplay::new(tool);
        let interrupted = InterruptedCall::new(tool, &arguments);
        let stop = CancellationToken::new();
        let mut on_progress = |line: &str| screen.on_progress(line);
        let call = client.call(tool, arguments, &stop, &mut on_progress);
        tokio::pin!(call);
        let called = tokio::select! {
            called = &mut call => called,
            _ = signals.next() => {
                stop.cancel();
                screen.show("cancelling the call and restoring your files …");
                tokio::select! {
                    called = &mut call => called,
                    () = signals.second_interrupt() => return Ok(FinalOutput::interrupted(interrupted.second_interrupt_message(), ServerExit::Abandon)),
                }
            }
        };
        Ok(match called? {
            CallReply::Answered(result) => self.render_result(&result)?,
            CallReply::Cancelled => {
                FinalOutput::interrupted(interrupted.cancelled_message(), ServerExit::Finish)
            }
        })
    }

    fn render_result(&self, result: &Value) -> anyhow::Result<FinalOutput> {
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
            (Output::Sarif, Status::Pass | Status::Fail) => out = pretty(&findings::sarif(&answer)),
            (Output::Markdown, Status::Pass | Status::Fail) => out = findings::markdown(&answer),
            // An error goes to stderr, so that nobody reading stdout takes it for an answer.
            (Output::Text | Output::Sarif | Output::Markdown, Status::Error) => {
                err = CallReport::of(&answer, Paint::on(&io::stderr())).to_string();
            }
            (Output::Text, Status::Pass | Status::Fail) => {
                out = CallReport::of(&answer, Paint::on(&io::stdout())).to_string();
            }
        }
        Ok(FinalOutput {
            out,
            err,
            code,
            after: ServerExit::Finish,
        })
    }
}

impl FinalOutput {
    fn interrupted(message: String, after: ServerExit) -> Self {
        Self {
            out: String::new(),
            err: message,
            code: INTERRUPTED,
            after,
        }
    }
}

/// The console, shared by progress updates and signal handling.
struct ProgressDisplay(Mutex<(Console, String)>);

impl ProgressDisplay {
    fn new(tool: &str) -> Self {
        let mut console = Console::stderr();
        // Without a live line, the server's own first line is enough.
        if console.is_live() {
            console.begin(tool);
        }
        Self(Mutex::new((console, String::new())))
    }

    fn show(&self, line: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .set_status(line);
    }

    /// On a terminal, lines about the end of an attempt stay; any other line replaces the live
    /// line.
    fn on_progress(&self, line: &str) {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (console, last) = &mut *guard;
        if !console.is_live() {
            // Skip a line that differs from the last one only in its elapsed time.
            if strip_elapsed(line) != last {
                strip_elapsed(line).clone_into(last);
                console.set_status(line);
            }
            return;
        }
        let paint = console.paint();
        match parse_attempt_cause(line) {
            Some(Cause::Accepted) => console.print_line(&paint.good(line)),
            Some(_) => console.print_line(&paint.warning(line)),
            None => console.set_status(strip_elapsed(line)),
        }
    }
}

/// Parses how an attempt ended from a line like `tdd_green · tier 1/3 small rejected: … · 12 s`.
/// Returns `None` for any other progress line.
fn parse_attempt_cause(line: &str) -> Option<Cause> {
    let (_skill, rest) = line.split_once(" · tier ")?;
    let word = rest.split_once(": ")?.0.split(' ').nth(2)?;
    serde_json::from_value(word.into()).ok()
}

/// Removes the elapsed time, which the live line shows itself.
fn strip_elapsed(line: &str) -> &str {
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
    fn attempt_cause_is_parsed_from_progress_line() {
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
            assert_eq!(parse_attempt_cause(line), cause, "{line}");
        }
    }

    #[test]
    fn only_elapsed_time_is_stripped() {
        assert_eq!(
            strip_elapsed("tdd_red · tier 1/2 small · asking · 3 s"),
            "tdd_red · tier 1/2 small · asking"
        );
        assert_eq!(
            strip_elapsed("tier · asking every endpoint at once"),
            "tier · asking every endpoint at once"
        );
    }
}
