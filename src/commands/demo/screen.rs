//! How the demo looks: 80 columns, every line sensible without colour. On a terminal a live line says what goes on now.
//! Knows results as clients get them. Does not know how they come about.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::super::console::{Console, Paint};
use super::heard::{HeardLine, heard};
use super::ledger::Ledger;
use super::stage::{KeptLog, SCRIPT};

const WIDTH: usize = 80;
/// Where the text of a row begins.
const ROW: usize = 13;
/// Where code begins.
const CODE: usize = 4;

pub(super) struct Screen {
    console: Console,
    /// Models whose refusal is on the screen already.
    told: Vec<String>,
    /// The tier whose work was accepted, as in `2/3`.
    accepted_at: Option<String>,
}

impl Screen {
    pub(super) fn new(console: Console) -> Self {
        Self {
            console,
            told: Vec::new(),
            accepted_at: None,
        }
    }

    pub(super) fn opening(&mut self) {
        let title = self.paint().bold("supervisor demo");
        self.console.line(&format!(
            "{title}: red, green, refactor, with real tests and scripted models"
        ));
        self.console.line("");
        self.row(
            "real",
            "a little Rust project, every `cargo test`, every check and undo",
        );
        self.row(
            "scripted",
            "the models' answers, tokens and prices: no keys, no network",
        );
    }

    pub(super) fn open(&mut self, name: &str, goal: &str) {
        (self.told, self.accepted_at) = (Vec::new(), None);
        self.heading(name, goal);
        if self.console.is_live() {
            self.console.begin(goal);
        }
    }

    /// A line of progress.
    pub(super) fn hear(&mut self, line: &str) {
        match heard(line) {
            HeardLine::Before(sentence) => self.row("before", sentence),
            HeardLine::Refused {
                place,
                model,
                cause,
                because,
            } => self.refused(place, model, cause, because),
            HeardLine::Accepted { place } => self.accepted_at = Some(place.to_owned()),
            HeardLine::Doing(what) if self.console.is_live() => self.console.now(what),
            HeardLine::Doing(_) => {}
        }
    }

    fn refused(&mut self, place: &str, model: &str, cause: &str, because: &str) {
        self.told.push(model.to_owned());
        let verdict = self.paint().bad(&format!("{cause:<8}"));
        self.attempt(place, model, &verdict, because);
        if cause == "tampered" {
            self.code(&attempted(model));
        }
    }

    /// What came of a call that reached its goal.
    pub(super) fn close(&mut self, result: &Value, told_of_others: Option<&str>) {
        self.rest();
        let attempts = result["attempts"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let place = |n: usize| format!("{}/{}", n + 1, attempts.len());
        for (n, attempt) in attempts.iter().enumerate() {
            let (model, cause) = (text(&attempt["model"]), text(&attempt["cause"]));
            // Progress may be missed; the result has it all.
            if cause != "accepted" && !self.told.iter().any(|told| told == model) {
                self.refused(&place(n), model, cause, text(&attempt["feedback"]));
            }
        }
        let undone = attempts
            .iter()
            .filter(|attempt| text(&attempt["output_summary"]).contains("\nkept in "));
        for attempt in undone {
            self.row(
                "undone",
                &format!("what {} had written, to the byte", text(&attempt["model"])),
            );
        }
        if let Some(told) = told_of_others {
            self.row("evidence", told);
        }
        let place = self
            .accepted_at
            .take()
            .unwrap_or_else(|| place(attempts.len().saturating_sub(1)));
        let verdict = self.paint().good("accepted");
        self.attempt(
            &place,
            text(&result["model_used"]),
            &verdict,
            text(&result["message"]),
        );
        self.code(text(&result["diff"]));
        let gates = result["gates"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let after = gates
            .iter()
            .find(|gate| gate["id"] == "tests" || gate["id"] == "red");
        let took = Duration::from_millis(result["duration_ms"].as_u64().unwrap_or_default());
        if let Some(after) = after {
            self.row(
                "after",
                &format!("{} ({})", text(&after["detail"]), seconds(took)),
            );
        }
    }

    pub(super) fn end(&mut self, ledger: &Ledger, kept: &KeptLog, took: Duration) {
        self.heading("COST", "tokens and prices are scripted, the sums are not");
        let Ledger {
            calls,
            answers,
            bought,
            top_model,
            ..
        } = ledger;
        let free = answers - bought;
        self.row(
            "paid",
            &format!(
                "{}  {bought} of {answers} answers bought, {free} local ones free",
                usd(ledger.paid)
            ),
        );
        let otherwise = format!(
            "{}  estimated, had {top_model} answered all {calls} calls",
            usd(ledger.top_tier)
        );
        self.row("otherwise", &otherwise);
        self.heading(
            "DONE",
            &format!(
                "after {}; everything but the log is gone again",
                seconds(took)
            ),
        );
        let log = shown(&kept.path);
        self.command("the log", &log);
        if let Some(why) = &kept.instead {
            self.row("", &format!("there, because {why}"));
        }
        self.command(
            "read it",
            "jq -r '.attempts[] | \"\\(.model) \\(.cause) \\(.feedback // \"\")\"' \\",
        );
        self.command("", &format!("  {log}"));
        let program = std::env::current_exe()
            .map_or_else(|_| String::from("supervisor"), |path| shown(&path));
        self.command("use it", &format!("claude mcp add supervisor -- {program}"));
        self.command("check it", &format!("{program} doctor"));
    }

    pub(super) fn interrupted(&mut self) {
        self.console
            .line("interrupted: the project is gone, and nothing is left behind");
    }

    /// Takes the live line away.
    pub(super) fn rest(&mut self) {
        self.console.rest();
    }

    fn heading(&mut self, name: &str, words: &str) {
        let name = self.paint().bold(name);
        self.console.line("");
        self.console.line(&format!("{name}  {words}"));
    }

    /// A word and what there is to say about it.
    pub(super) fn row(&mut self, word: &str, text: &str) {
        self.wrapped(&self.head(word), ROW, text);
    }

    /// A word and what can be copied: never broken, however long.
    fn command(&mut self, word: &str, command: &str) {
        let line = format!(
            "{}{}",
            self.head(word),
            supervisor_text::words::plain(command)
        );
        self.console.line(&line);
    }

    fn head(&self, word: &str) -> String {
        self.paint()
            .dim(&format!("  {word:<width$}", width = ROW - 2))
    }

    fn attempt(&mut self, place: &str, model: &str, verdict: &str, text: &str) {
        let head = format!("  {place} {model:<14}  {verdict}  ");
        self.wrapped(&head, 2 + 3 + 1 + 14 + 2 + 8 + 2, text);
    }

    /// A diff without its numbers, and with one line around each change.
    fn code(&mut self, diff: &str) {
        let paint = self.paint();
        let lines: Vec<&str> = diff.lines().collect();
        let is_name = |line: &str| line.starts_with("+++ ") || line.starts_with("--- ");
        let is_change = |line: &str| line.starts_with(['+', '-']) && !is_name(line);
        for (n, line) in lines.iter().enumerate() {
            let mut near = lines[n.saturating_sub(1)..lines.len().min(n + 2)].iter();
            let is_context = line.starts_with(' ') && !line.trim().is_empty();
            if let Some(file) = line.strip_prefix("+++ b/") {
                self.console
                    .line(&format!("{:CODE$}{}", "", paint.dim(file)));
            } else if is_change(line) || (is_context && near.any(|line| is_change(line))) {
                self.console
                    .line(&format!("{:CODE$}{}", "", paint.diff(line)));
            }
        }
    }

    /// Text after a head that is `column` wide, further lines below its first.
    fn wrapped(&mut self, head: &str, column: usize, text: &str) {
        let text = supervisor_text::words::plain(text).into_owned();
        for (n, line) in wrap(&text, WIDTH - column).iter().enumerate() {
            let begin = if n == 0 {
                head.to_owned()
            } else {
                " ".repeat(column)
            };
            self.console.line(format!("{begin}{line}").trim_end());
        }
    }

    fn paint(&self) -> Paint {
        self.console.paint()
    }
}

/// What this model wanted to change, from the script.
fn attempted(model: &str) -> String {
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

/// Breaks between words; a word that is too long has a line of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always one");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

fn usd(amount: Option<f64>) -> String {
    amount.map_or_else(|| String::from("unknown"), |usd| format!("${usd:.4}"))
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

/// A path as it can be typed in a shell, short below the home directory.
fn shown(path: &Path) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_breaks_between_words_and_loses_none() {
        let text = "`numerals::roman nine_is_ix` still fails: left: \"VIIII\", right: \"IX\"";
        let lines = wrap(text, 30);
        assert!(
            lines.iter().all(|line| line.chars().count() <= 30),
            "{lines:?}"
        );
        assert_eq!(lines.join(" "), text);
        assert_eq!(wrap("a/very/long/path b", 5), ["a/very/long/path", "b"]);
    }
}
