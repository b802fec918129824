//! Shortens test output: drops lines about passing tests first, then repeated lines, and keeps the
//! failure.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use supervisor_text::redact::Redactor;
use supervisor_text::words;

/// Lines that only report that something passed, started or was built.
static PASSED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^=== (?:RUN|PAUSE|CONT|NAME)\b|^\s*--- PASS|^PASS$|^ok\s|\.\.\. ok$|\bPASSED\b|^\s*[✓✔√]\s",
        r"|^[.sx]+\s*(?:\[\s*\d+%\])?$|\.py [.sx]+\s*(?:\[\s*\d+%\])?$",
        r"|^\s*(?:Compiling|Finished|Running|Downloaded|Downloading|Checking|Blocking) |^\[INFO\]",
    ))
    .expect("valid regex")
});

/// Lines with which the report of a failure starts.
static FAILED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\bFAIL(?:ED|URES?|ING)?\b|^not ok|\berror(?:\[|:|s\b)|panicked at|✖|✗|^E\s|assert|expected|\bException\b|Traceback")
        .expect("valid regex")
});

/// Shortens the output to `max_bytes` and makes control characters visible.
pub fn cut(output: &str, max_bytes: usize) -> String {
    // Before cutting, because part of a key is still a secret. Tests print keys and URLs with
    // passwords.
    let redacted = Redactor::patterns_only().hide(output).into_owned();
    let shown = words::plain(&redacted);
    if shown.len() <= max_bytes {
        return shown.into_owned();
    }
    let without_passed = drop_lines(&shown, |line| PASSED.is_match(line));
    if without_passed.len() <= max_bytes {
        return without_passed;
    }
    let mut seen = HashSet::new();
    let deduplicated = drop_lines(&without_passed, |line| {
        line.trim().len() > 8 && !seen.insert(line.trim().to_owned())
    });
    if deduplicated.len() <= max_bytes {
        return deduplicated;
    }
    // Keep the first failure and the end, where runners print a summary.
    let lines: Vec<&str> = deduplicated.lines().collect();
    let Some(first) = lines.iter().position(|line| FAILED.is_match(line)) else {
        return words::cut_middle(&deduplicated, max_bytes).into_owned();
    };
    let start: usize = lines[..first.saturating_sub(3)]
        .iter()
        .map(|line| line.len() + 1)
        .sum();
    let prefix = if start > 0 { "…\n" } else { "" };
    let tail = deduplicated.get(start..).unwrap_or(&deduplicated);
    format!(
        "{prefix}{}",
        words::cut_middle(tail, max_bytes.saturating_sub(prefix.len()))
    )
}

/// Drops the matching lines and appends a note with their number.
fn drop_lines(text: &str, mut should_drop: impl FnMut(&str) -> bool) -> String {
    let mut dropped = 0;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        if should_drop(line) {
            dropped += 1;
        } else {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    if dropped > 0 {
        kept.push_str(&format!(
            "({} about what passed or was said before left out)\n",
            words::count(dropped, "line")
        ));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passing_lines_are_dropped_first() {
        let mut go = String::new();
        for n in 0..300 {
            go.push_str(&format!(
                "=== RUN   TestFlag{n}\n--- PASS: TestFlag{n} (0.00s)\n"
            ));
        }
        go.push_str("=== RUN   TestBroken\n    flag_test.go:12: got 1, want 2\n--- FAIL: TestBroken (0.00s)\nFAIL\n");
        let short = cut(&go, 400);
        assert!(
            short.contains("got 1, want 2") && short.contains("--- FAIL: TestBroken"),
            "{short}"
        );
        assert!(
            !short.contains("TestFlag17") && short.len() <= 400,
            "{short}"
        );
    }

    #[test]
    fn first_failure_survives_cutting() {
        let noise: String = (0..500)
            .map(|n| format!("a line of a log, number {n}\n"))
            .collect();
        let short = cut(&format!("{noise}AssertionError: expected 6\n{noise}"), 600);
        assert!(
            short.contains("expected 6") && short.len() <= 700,
            "{short}"
        );
    }

    #[test]
    fn secrets_in_output_are_redacted() {
        let printed = "connecting to postgres://app:hunter2@db/x\n-----BEGIN RSA PRIVATE KEY-----\nMIIEabc+/=\n\
                       -----END RSA PRIVATE KEY-----\nassertion failed: got 1, want 2\n";
        let shown = cut(printed, 1_000);
        assert!(
            !shown.contains("hunter2") && !shown.contains("MIIE"),
            "{shown}"
        );
        assert!(
            shown.contains("app:[redacted-") && shown.contains("got 1, want 2"),
            "{shown}"
        );
    }

    #[test]
    fn control_characters_are_made_visible() {
        assert_eq!(cut("\u{1b}[31mred", 100), "\\u{1b}[31mred");
    }
}
