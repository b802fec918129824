//! A result for people: what came of it, what changed, who tried and at what cost, where the log is, what follows.
//! Knows the one shape of results. Does not know what the tools do.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use super::outline::outline;
use crate::commands::console::Paint;
use supervisor_engine::result::{CallResult, Gate, Status};
use supervisor_engine::session::SessionLog;
use supervisor_engine::{Attempt, Cause};
use supervisor_text::words;
use supervisor_workspace::state::StateDir;

/// Lines of output that are shown; the log has more.
const OUTPUT_LINES: usize = 30;
/// Of a line, and of why an attempt ended.
const LINE: usize = 200;

/// Each part is a word in the first column and what belongs to it; empty parts are left out.
pub(super) struct CallReport<'a> {
    answer: &'a CallResult,
    paint: Paint,
}

impl<'a> CallReport<'a> {
    pub(super) fn of(answer: &'a CallResult, paint: Paint) -> Self {
        Self { answer, paint }
    }
}

/// One line per tool: its name, what it is for, and what it must be told.
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
        // The directory one stands in is taken for it.
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
        .chain([format!("\n{HOW}\n")])
        .collect()
}

const HOW: &str = "In brackets: what must be given, as in `supervisor call tdd_green --arg test_path=tests/add.rs`.\n\
                   Every argument: `supervisor call --output json`, or docs/tools.md.";

impl fmt::Display for CallReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (answer, more) = (self.answer, &self.answer.more);
        self.verdict(f)?;
        // One that says what the message says is not said again.
        for gate in more
            .gates
            .iter()
            .filter(|gate| !gate.pass && gate.detail != answer.message)
        {
            self.part(f, "gate", &self.paint.bad(&sentence(gate)))?;
        }
        if let Some(proof) = more
            .gates
            .iter()
            .find(|gate| gate.id == "proof" && gate.pass)
        {
            self.part(f, "verified", &words::plain(&proof.detail))?;
        }
        self.part(f, "model", &words::plain(&answer.model_used))?;
        self.part(f, "changed", &words::plain(&more.files_changed.join(", ")))?;
        if !more.diff.is_empty() {
            if more.files_changed.is_empty() {
                self.part(f, "refused", "this change, which was taken back")?;
            }
            writeln!(f, "\n{}\n", self.paint.diff(&more.diff))?;
        }
        if answer.status != Status::Pass && !answer.runner_output.trim().is_empty() {
            writeln!(
                f,
                "{}\n{}",
                self.paint.dim("output"),
                tail(&answer.runner_output)
            )?;
        }
        let details = outline(&self.details(), 2);
        if !details.is_empty() {
            write!(f, "{}\n{details}", self.paint.dim("details"))?;
        }
        for (n, attempt) in more.attempts.iter().enumerate() {
            self.part(
                f,
                if n == 0 { "attempts" } else { "" },
                &self.attempt(attempt),
            )?;
        }
        if !more.attempts.is_empty() {
            self.part(f, "cost", &cost(more.cost_usd))?;
        }
        // A call that was refused before anything happened took no time worth telling.
        if let Some(ms) = more
            .duration_ms
            .filter(|_| answer.status != Status::Error || !more.attempts.is_empty())
        {
            self.part(f, "took", &seconds(ms))?;
        }
        self.part(f, "session", &words::plain(&more.session_id))?;
        if let Some(log) = log_of(&more.session_id) {
            self.part(f, "log", &words::plain(&log.to_string_lossy()))?;
        }
        if !more.next.is_null() {
            self.part(f, "next", &next(&more.next))?;
        }
        Ok(())
    }
}

impl CallReport<'_> {
    fn verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.answer.status {
            Status::Pass => self.paint.good("pass"),
            Status::Fail => self.paint.bad("fail"),
            Status::Error => self.paint.bad("error"),
        };
        writeln!(f, "{word}: {}", words::plain(&self.answer.message))
    }

    /// `changed   src/lib.rs`, or nothing.
    fn part(&self, f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
        if text.is_empty() {
            Ok(())
        } else {
            writeln!(f, "{} {text}", self.paint.dim(&format!("{name:<9}")))
        }
    }

    /// What only this tool says. What is unknown, or was said above, is left out.
    fn details(&self) -> Value {
        let mut details = self.answer.more.details.clone();
        if let Some(details) = details.as_object_mut() {
            details.retain(|name, value| !value.is_null() && name != "files_changed");
        }
        details
    }

    fn attempt(&self, attempt: &Attempt) -> String {
        let word = attempt.cause.map_or("error", Cause::word);
        let word = match attempt.cause {
            Some(Cause::Accepted) => self.paint.good(word),
            Some(_) | None => self.paint.doubtful(word),
        };
        let why = attempt.feedback.lines().next().unwrap_or_default();
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(": {}", words::cut_end(why, LINE))
        };
        let (model, why) = (
            words::plain(&attempt.model),
            words::plain(&why).into_owned(),
        );
        let cost = attempt
            .cost_usd
            .map(|usd| format!(", {}", dollars(usd)))
            .unwrap_or_default();
        format!(
            "{} {model} ({}{cost}) {word}{why}",
            attempt.attempt,
            seconds(attempt.duration_ms)
        )
    }
}

fn sentence(gate: &Gate) -> String {
    if gate.detail.is_empty() {
        gate.id.clone()
    } else {
        format!("{}: {}", gate.id, gate.detail)
    }
}

fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    let shown = lines[lines.len().saturating_sub(OUTPUT_LINES)..].iter();
    shown
        .map(|line| format!("  | {}", words::cut_end(&words::plain(line), LINE)))
        .collect::<Vec<_>>()
        .join("\n")
}

fn cost(usd: Option<f64>) -> String {
    usd.map_or_else(|| String::from("unknown"), dollars)
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

/// The log that really has the call.
fn log_of(session: &str) -> Option<PathBuf> {
    let id = session.parse().ok()?;
    let path = SessionLog::open(&StateDir::locate().ok()?).ok()?.path(&id);
    path.exists().then_some(path)
}

/// The call that usually follows, as one would type it.
fn next(next: &Value) -> String {
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
    fn what_follows_can_be_typed() {
        let call = json!({"tool": "tdd_green", "arguments": {"project_root": "/a b", "files": ["x"], "times": 3}});
        assert_eq!(
            next(&call),
            "supervisor call tdd_green --arg project_root='/a b' --arg files='[\"x\"]' --arg times=3"
        );
        assert_eq!(next(&json!("ask a person")), "ask a person");
    }

    #[test]
    fn the_list_says_what_a_tool_must_be_told() {
        let tools = [
            json!({"name": "red", "title": "Write a test",
                "inputSchema": {"required": ["project_root", "spec"]}}),
            json!({"name": "tier", "description": "Which models. Asks no model.", "inputSchema": {}}),
        ];
        assert_eq!(
            list(&tools),
            format!("red   Write a test (spec)\ntier  Which models\n\n{HOW}\n")
        );
    }
}
