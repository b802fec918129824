//! Renders the result of a call for people: verdict, changes, attempts and their cost, log file,
//! and the next call. Works for every tool because all results have the same shape.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use super::outline::outline;
use crate::commands::console::Paint;
use crate::commands::stats::table::short;
use supervisor_engine::result::{CallResult, Gate, Status};
use supervisor_engine::session::SessionLog;
use supervisor_engine::{Attempt, Basis, Cause, TopTier};
use supervisor_text::words;

/// Maximum lines of runner output; the log has more.
const OUTPUT_LINES: usize = 30;
/// Maximum length of an output line and of an attempt's reason.
const MAX_LINE_LEN: usize = 200;

/// Each part is a label in the first column and its text; empty parts are left out.
pub(super) struct CallReport<'a> {
    answer: &'a CallResult,
    paint: Paint,
}

impl<'a> CallReport<'a> {
    pub(super) fn of(answer: &'a CallResult, paint: Paint) -> Self {
        Self { answer, paint }
    }
}

/// One line per tool: its name, its purpose and its required arguments.
pub(super) fn list(tools: &[Value]) -> String {
    let word = |value: &'_ Value| words::plain(value.as_str().unwrap_or_default()).into_owned();
    let width = tools
        .iter()
        .map(|tool| word(&tool["name"]).len())
        .max()
        .unwrap_or_default();
    let line = |tool: &Value| {
        let purpose = match &tool["title"] {
            Value::String(title) => title.as_str(),
            _ => tool["description"]
                .as_str()
                .and_then(|text| text.split(['.', '\n']).next())
                .unwrap_or_default(),
        };
        let required = tool["inputSchema"]["required"]
            .as_array()
            .into_iter()
            .flatten();
        // Defaults to the current directory.
        let needs: Vec<String> = required
            .filter(|name| *name != "project_root")
            .map(word)
            .collect();
        let needs = if needs.is_empty() {
            String::new()
        } else {
            format!(" ({})", needs.join(", "))
        };
        format!(
            "{:width$}  {}{needs}\n",
            word(&tool["name"]),
            words::plain(purpose)
        )
    };
    tools
        .iter()
        .map(line)
        .chain([format!("\n{LIST_HELP}\n")])
        .collect()
}

const LIST_HELP: &str = "In brackets: what must be given, as in `supervisor call tdd_green --arg test_path=tests/add.rs`.\n\
                   Every argument: `supervisor call --output json`, or docs/tools.md.";

impl fmt::Display for CallReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (answer, more) = (self.answer, &self.answer.more);
        self.write_verdict(f)?;
        // Skip a gate whose detail repeats the message.
        for gate in more
            .gates
            .iter()
            .filter(|gate| !gate.pass && gate.detail != answer.message)
        {
            self.write_part(f, "gate", &self.paint.bad(&gate_text(gate)))?;
        }
        if let Some(proof) = more
            .gates
            .iter()
            .find(|gate| gate.id == "proof" && gate.pass)
        {
            self.write_part(f, "verified", &words::plain(&proof.detail))?;
        }
        self.write_part(f, "model", &words::plain(&answer.model_used))?;
        self.write_part(f, "changed", &words::plain(&more.files_changed.join(", ")))?;
        if !more.diff.is_empty() {
            if more.files_changed.is_empty() {
                self.write_part(f, "refused", "this change, which was undone")?;
            }
            writeln!(f, "\n{}\n", self.paint.diff(&more.diff))?;
        }
        if answer.status != Status::Pass && !answer.runner_output.trim().is_empty() {
            writeln!(
                f,
                "{}\n{}",
                self.paint.dim("output"),
                output_tail(&answer.runner_output)
            )?;
        }
        let details = outline(&self.details(), 2);
        if !details.is_empty() {
            write!(f, "{}\n{details}", self.paint.dim("details"))?;
        }
        for (n, attempt) in more.attempts.iter().enumerate() {
            self.write_part(
                f,
                if n == 0 { "attempts" } else { "" },
                &self.format_attempt(attempt),
            )?;
        }
        if !more.attempts.is_empty() {
            let prepaid = more.attempts.iter().filter(|attempt| attempt.subscription);
            let tokens: u64 = prepaid.map(Attempt::tokens).sum();
            let instead = more.top_tier.as_ref().map(instead_of).unwrap_or_default();
            let paid = match tokens {
                0 => cost(more.cost_usd) + &instead,
                _ => format!("{} tokens of the subscription", short(tokens)),
            };
            self.write_part(f, "cost", &paid)?;
        }
        // The duration of a call that failed before any attempt is not interesting.
        if let Some(ms) = more
            .duration_ms
            .filter(|_| answer.status != Status::Error || !more.attempts.is_empty())
        {
            self.write_part(f, "took", &seconds(ms))?;
        }
        self.write_part(f, "session", &words::plain(&more.session_id))?;
        if let Some(log) = session_log_path(&more.session_id) {
            self.write_part(f, "log", &words::plain(&log.to_string_lossy()))?;
        }
        if !more.next.is_null() {
            self.write_part(f, "next", &next_command(&more.next))?;
        }
        Ok(())
    }
}

impl CallReport<'_> {
    fn write_verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.answer.status {
            Status::Pass => self.paint.good("pass"),
            Status::Fail => self.paint.bad("fail"),
            Status::Error => self.paint.bad("error"),
        };
        writeln!(f, "{word}: {}", words::plain(&self.answer.message))
    }

    /// `changed   src/lib.rs`, or nothing.
    fn write_part(&self, f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
        if text.is_empty() {
            Ok(())
        } else {
            writeln!(f, "{} {text}", self.paint.dim(&format!("{name:<9}")))
        }
    }

    /// Details specific to the tool, without unknown values and what is shown above.
    fn details(&self) -> Value {
        let mut details = self.answer.more.details.clone();
        if let Some(details) = details.as_object_mut() {
            // The attempts tell of the phases of a `tdd` call.
            let shown_elsewhere = ["files_changed", "phases"];
            details.retain(|name, value| {
                !value.is_null() && !shown_elsewhere.contains(&name.as_str())
            });
        }
        details
    }

    fn format_attempt(&self, attempt: &Attempt) -> String {
        let word = attempt.cause.map_or("error", Cause::word);
        let word = match attempt.cause {
            Some(Cause::Accepted) => self.paint.good(word),
            Some(_) | None => self.paint.warning(word),
        };
        let why = attempt.reason();
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(": {}", words::cut_end(why, MAX_LINE_LEN))
        };
        let (model, why) = (
            words::plain(&attempt.model),
            words::plain(&why).into_owned(),
        );
        let cost = match attempt.cost_usd {
            _ if attempt.subscription => format!(", {} tokens", short(attempt.tokens())),
            Some(usd) => format!(", {}", dollars(usd)),
            None => String::new(),
        };
        let phase = match attempt.phase.as_str() {
            "" => String::new(),
            phase => format!("{} ", words::plain(phase)),
        };
        format!(
            "{phase}{} {model} ({}{cost}) {word}{why}",
            attempt.attempt,
            seconds(attempt.duration_ms)
        )
    }
}

fn gate_text(gate: &Gate) -> String {
    if gate.detail.is_empty() {
        gate.id.clone()
    } else {
        format!("{}: {}", gate.id, gate.detail)
    }
}

fn output_tail(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    let shown = lines[lines.len().saturating_sub(OUTPUT_LINES)..].iter();
    shown
        .map(|line| format!("  | {}", words::cut_end(&words::plain(line), MAX_LINE_LEN)))
        .collect::<Vec<_>>()
        .join("\n")
}

fn cost(usd: Option<f64>) -> String {
    usd.map_or_else(|| String::from("unknown"), dollars)
}

/// What the top tier alone would have cost; an estimate is called one.
fn instead_of(top: &TopTier) -> String {
    let model = words::plain(&top.model);
    match (top.basis, top.cost_usd) {
        (Basis::Estimated, Some(usd)) => {
            format!("; `{model}` alone: about {} (estimate)", dollars(usd))
        }
        _ => String::new(),
    }
}

fn dollars(usd: f64) -> String {
    format!("${usd:.4}")
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of a call, shown with one digit"
)]
fn seconds(ms: u64) -> String {
    format!("{:.1} s", ms as f64 / 1000.0)
}

/// Path of the session's log, if it exists.
fn session_log_path(session: &str) -> Option<PathBuf> {
    let id = session.parse().ok()?;
    let path = SessionLog::open(&crate::commands::state_dir().ok()?)
        .ok()?
        .path(&id);
    path.exists().then_some(path)
}

/// The suggested next call as a shell command.
fn next_command(next: &Value) -> String {
    let (Some(tool), Some(arguments)) = (next["tool"].as_str(), next["arguments"].as_object())
    else {
        return words::plain(next.as_str().unwrap_or(&next.to_string())).into_owned();
    };
    let here = std::env::current_dir()
        .and_then(|path| path.canonicalize())
        .ok();
    let mut command = format!("supervisor call {tool}");
    for (name, value) in arguments {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        if name == "project_root"
            && here
                .as_deref()
                .is_some_and(|here| here == std::path::Path::new(&text))
        {
            continue;
        }
        command += &format!(" --arg {name}={}", shell_words::quote(&text));
    }
    words::plain(&command).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn next_call_is_a_shell_command() {
        let call = json!({"tool": "tdd_green", "arguments": {"project_root": "/a b", "files": ["x"], "times": 3}});
        assert_eq!(
            next_command(&call),
            "supervisor call tdd_green --arg project_root='/a b' --arg files='[\"x\"]' --arg times=3"
        );
        assert_eq!(next_command(&json!("ask a person")), "ask a person");
    }

    #[test]
    fn tool_list_names_required_arguments() {
        let tools = [
            json!({"name": "red", "title": "Write a test",
                "inputSchema": {"required": ["project_root", "spec"]}}),
            json!({"name": "tier", "description": "Which models. Asks no model.", "inputSchema": {}}),
        ];
        assert_eq!(
            list(&tools),
            format!("red   Write a test (spec)\ntier  Which models\n\n{LIST_HELP}\n")
        );
    }
}
