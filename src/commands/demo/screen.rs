//! Prints the demo: 80 columns, readable without colour. On a terminal a live line shows the
//! current step.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::super::console::{self, Console, Paint};
use super::fixture::{SCRIPT, SavedLog};
use super::ledger::Ledger;
use super::progress::{ProgressUpdate, parse_progress};

const WIDTH: usize = 80;
/// Column at which the text of a row starts.
const TEXT_COLUMN: usize = 13;
/// Indent of code.
const CODE_INDENT: usize = 4;

pub(super) struct Screen {
    console: Console,
    /// Models whose rejection is already printed.
    reported: Vec<String>,
    /// The tier whose work was accepted, as in `2/3`.
    accepted_at: Option<String>,
}

impl Screen {
    pub(super) fn new(console: Console) -> Self {
        Self {
            console,
            reported: Vec::new(),
            accepted_at: None,
        }
    }

    pub(super) fn print_intro(&mut self) {
        let title = self.paint().bold("supervisor demo");
        self.console.print_line(&format!(
            "{title}: red, green, refactor, with real tests and scripted models"
        ));
        self.console.print_line("");
        self.print_row(
            "real",
            "a little Rust project, every `cargo test`, every check and undo",
        );
        self.print_row(
            "scripted",
            "the models' answers, tokens and prices: no keys, no network",
        );
    }

    pub(super) fn begin_step(&mut self, name: &str, goal: &str) {
        (self.reported, self.accepted_at) = (Vec::new(), None);
        self.print_heading(name, goal);
        if self.console.is_live() {
            self.console.begin(goal);
        }
    }

    /// Handles one progress line.
    pub(super) fn on_progress(&mut self, line: &str) {
        match parse_progress(line) {
            ProgressUpdate::TestsBefore(sentence) => self.print_row("before", sentence),
            ProgressUpdate::Rejected {
                position,
                model,
                cause,
                because,
            } => self.print_rejected(position, model, cause, because),
            ProgressUpdate::Accepted { position } => self.accepted_at = Some(position.to_owned()),
            ProgressUpdate::Status(what) if self.console.is_live() => self.console.set_status(what),
            ProgressUpdate::Status(_) => {}
        }
    }

    fn print_rejected(&mut self, position: &str, model: &str, cause: &str, because: &str) {
        self.reported.push(model.to_owned());
        let verdict = self.paint().bad(&format!("{cause:<8}"));
        self.print_attempt(position, model, &verdict, because);
        if cause == "tampered" {
            self.print_diff(&scripted_diff(model));
        }
    }

    /// Prints the result of a call that succeeded.
    pub(super) fn finish_step(&mut self, result: &Value, shown_attempts: Option<&str>) {
        self.clear_live_line();
        let attempts = result["attempts"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let position = |n: usize| format!("{}/{}", n + 1, attempts.len());
        for (n, attempt) in attempts.iter().enumerate() {
            let (model, cause) = (text(&attempt["model"]), text(&attempt["cause"]));
            // Progress lines may be missed; the result has every attempt.
            if cause != "accepted" && !self.reported.iter().any(|known| known == model) {
                self.print_rejected(&position(n), model, cause, text(&attempt["feedback"]));
            }
        }
        let undone = attempts
            .iter()
            .filter(|attempt| text(&attempt["output_summary"]).contains("\nkept in "));
        for attempt in undone {
            self.print_row(
                "undone",
                &format!("what {} had written, to the byte", text(&attempt["model"])),
            );
        }
        if let Some(text) = shown_attempts {
            self.print_row("evidence", text);
        }
        let position = self
            .accepted_at
            .take()
            .unwrap_or_else(|| position(attempts.len().saturating_sub(1)));
        let verdict = self.paint().good("accepted");
        self.print_attempt(
            &position,
            text(&result["model_used"]),
            &verdict,
            text(&result["message"]),
        );
        self.print_diff(text(&result["diff"]));
        let gates = result["gates"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let after = gates
            .iter()
            .find(|gate| gate["id"] == "tests" || gate["id"] == "red");
        let took = Duration::from_millis(result["duration_ms"].as_u64().unwrap_or_default());
        if let Some(after) = after {
            self.print_row(
                "after",
                &format!("{} ({})", text(&after["detail"]), format_seconds(took)),
            );
        }
    }

    pub(super) fn print_summary(&mut self, ledger: &Ledger, saved_log: &SavedLog, took: Duration) {
        self.print_heading("COST", "tokens and prices are scripted, the sums are not");
        let Ledger {
            calls,
            answers,
            paid_answers,
            top_model,
            ..
        } = ledger;
        let free = answers - paid_answers;
        self.print_row(
            "paid",
            &format!(
                "{}  {paid_answers} of {answers} answers bought, {free} local ones free",
                format_usd(ledger.paid)
            ),
        );
        let otherwise = format!(
            "{}  estimated, had {top_model} answered all {calls} calls",
            format_usd(ledger.top_tier)
        );
        self.print_row("otherwise", &otherwise);
        self.print_heading(
            "DONE",
            &format!(
                "after {}; everything but the log is gone again",
                format_seconds(took)
            ),
        );
        let log = shell_path(&saved_log.path);
        self.print_command("the log", &log);
        if let Some(why) = &saved_log.fallback_reason {
            self.print_row("", &format!("there, because {why}"));
        }
        self.print_command(
            "read it",
            "jq -r '.attempts[] | \"\\(.model) \\(.cause) \\(.feedback // \"\")\"' \\",
        );
        self.print_command("", &format!("  {log}"));
        let program = std::env::current_exe()
            .map_or_else(|_| String::from("supervisor"), |path| shell_path(&path));
        self.print_command("use it", &format!("claude mcp add supervisor -- {program}"));
        self.print_command("check it", &format!("{program} doctor"));
    }

    pub(super) fn print_interrupted(&mut self) {
        self.console
            .print_line("Cancelled. The demo's temporary project was removed.");
    }

    /// Removes the live line.
    pub(super) fn clear_live_line(&mut self) {
        self.console.clear_live_line();
    }

    fn print_heading(&mut self, name: &str, words: &str) {
        let name = self.paint().bold(name);
        self.console.print_line("");
        self.console.print_line(&format!("{name}  {words}"));
    }

    /// Prints a label and wrapped text.
    pub(super) fn print_row(&mut self, word: &str, text: &str) {
        self.print_wrapped(&self.row_label(word), TEXT_COLUMN, text);
    }

    /// Prints a label and text to copy, which is never wrapped.
    fn print_command(&mut self, word: &str, command: &str) {
        let line = format!(
            "{}{}",
            self.row_label(word),
            supervisor_text::words::plain(command)
        );
        self.console.print_line(&line);
    }

    fn row_label(&self, word: &str) -> String {
        self.paint()
            .dim(&format!("  {word:<width$}", width = TEXT_COLUMN - 2))
    }

    fn print_attempt(&mut self, position: &str, model: &str, verdict: &str, text: &str) {
        let head = format!("  {position} {model:<14}  {verdict}  ");
        self.print_wrapped(&head, 2 + 3 + 1 + 14 + 2 + 8 + 2, text);
    }

    /// Prints a diff without hunk headers and with one line of context.
    fn print_diff(&mut self, diff: &str) {
        let paint = self.paint();
        let lines: Vec<&str> = diff.lines().collect();
        let is_name = |line: &str| line.starts_with("+++ ") || line.starts_with("--- ");
        let is_change = |line: &str| line.starts_with(['+', '-']) && !is_name(line);
        for (n, line) in lines.iter().enumerate() {
            let mut near = lines[n.saturating_sub(1)..lines.len().min(n + 2)].iter();
            let is_context = line.starts_with(' ') && !line.trim().is_empty();
            if let Some(file) = line.strip_prefix("+++ b/") {
                self.console
                    .print_line(&format!("{:CODE_INDENT$}{}", "", paint.dim(file)));
            } else if is_change(line) || (is_context && near.any(|line| is_change(line))) {
                self.console
                    .print_line(&format!("{:CODE_INDENT$}{}", "", paint.diff(line)));
            }
        }
    }

    /// Prints text after a label that is `column` wide and aligns further lines below it.
    fn print_wrapped(&mut self, head: &str, column: usize, text: &str) {
        let text = supervisor_text::words::plain(text).into_owned();
        for (n, line) in console::wrap(&text, WIDTH - column).iter().enumerate() {
            let begin = if n == 0 {
                head.to_owned()
            } else {
                " ".repeat(column)
            };
            self.console.print_line(format!("{begin}{line}").trim_end());
        }
    }

    fn paint(&self) -> Paint {
        self.console.paint()
    }
}

/// The scripted change of this model, as a diff.
fn scripted_diff(model: &str) -> String {
    let lines = SCRIPT
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let edits = lines
        .filter(|line| line["model"] == model)
        .filter_map(|line| line["answer"]["edits"].as_array().cloned());
    let mut diff = String::new();
    for edit in edits.flatten() {
        for (sign, key) in [('-', "search"), ('+', "replace")] {
            for line in edit[key].as_str().unwrap_or_default().lines() {
                diff += &format!("{sign}{line}\n");
            }
        }
    }
    diff
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn format_usd(amount: Option<f64>) -> String {
    amount.map_or_else(|| String::from("unknown"), |usd| format!("${usd:.4}"))
}

fn format_seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

/// The path as it can be typed in a shell, with `~` for the home directory.
fn shell_path(path: &Path) -> String {
    let text = path.display().to_string();
    let quoted = shell_words::quote(&text).into_owned();
    let home = std::env::var("HOME")
        .ok()
        .filter(|home| home.len() > 1 && home.starts_with('/'));
    match home.and_then(|home| {
        text.strip_prefix(&format!("{}/", home.trim_end_matches('/')))
            .map(str::to_owned)
    }) {
        Some(below) if quoted == text => format!("~/{below}"),
        _ => quoted,
    }
}
