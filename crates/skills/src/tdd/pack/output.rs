//! What a test run said, cut to the room there is: what passed goes first, then what is said twice; the failure stays.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use supervisor_text::redact::Redactor;
use supervisor_text::words;

/// Lines that only say that something passed, began or was built.
static PASSED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^=== (?:RUN|PAUSE|CONT|NAME)\b|^\s*--- PASS|^PASS$|^ok\s|\.\.\. ok$|\bPASSED\b|^\s*[✓✔√]\s",
        r"|^[.sx]+\s*(?:\[\s*\d+%\])?$|\.py [.sx]+\s*(?:\[\s*\d+%\])?$",
        r"|^\s*(?:Compiling|Finished|Running|Downloaded|Downloading|Checking|Blocking) |^\[INFO\]",
    ))
    .expect("a pattern that a test compiles")
});

/// Lines from which on a failure is told.
static FAILED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\bFAIL(?:ED|URES?|ING)?\b|^not ok|\berror(?:\[|:|s\b)|panicked at|✖|✗|^E\s|assert|expected|\bException\b|Traceback")
        .expect("a pattern that a test compiles")
});

/// At most this many bytes of a run's output, with control characters made visible.
pub fn cut(output: &str, most: usize) -> String {
    // First secrets, then length: half a key is still half a key. Tests print keys and addresses with passwords.
    let clean = Redactor::by_shape().redact(output).into_owned();
    let shown = words::plain(&clean);
    if shown.len() <= most {
        return shown.into_owned();
    }
    let without_passed = leave_out(&shown, |line| PASSED.is_match(line));
    if without_passed.len() <= most {
        return without_passed;
    }
    let mut seen = HashSet::new();
    let once = leave_out(&without_passed, |line| {
        line.trim().len() > 8 && !seen.insert(line.trim().to_owned())
    });
    if once.len() <= most {
        return once;
    }
    // Around the first failure, and the end, where runners sum up.
    let lines: Vec<&str> = once.lines().collect();
    let Some(first) = lines.iter().position(|line| FAILED.is_match(line)) else {
        return words::cut_middle(&once, most).into_owned();
    };
    let from: usize = lines[..first.saturating_sub(3)]
        .iter()
        .map(|line| line.len() + 1)
        .sum();
    let begin = if from > 0 { "…\n" } else { "" };
    let tail = once.get(from..).unwrap_or(&once);
    format!(
        "{begin}{}",
        words::cut_middle(tail, most.saturating_sub(begin.len()))
    )
}

/// Without the lines that go; a note says how many.
fn leave_out(text: &str, mut goes: impl FnMut(&str) -> bool) -> String {
    let mut gone = 0;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        if goes(line) {
            gone += 1;
        } else {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    if gone > 0 {
        kept.push_str(&format!(
            "({} about what passed or was said before left out)\n",
            words::count(gone, "line")
        ));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_goes_and_the_failure_stays() {
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
    fn the_first_failure_is_kept_where_all_is_long() {
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
    fn what_tests_print_is_shown_without_what_looks_like_a_secret() {
        let printed = "connecting to postgres://app:hunter2@db/x\n-----BEGIN RSA PRIVATE KEY-----\nMIIEabc+/=\n\
                       -----END RSA PRIVATE KEY-----\nassertion failed: got 1, want 2\n";
        let shown = cut(printed, 1_000);
        assert!(
            !shown.contains("hunter2") && !shown.contains("MIIE"),
            "{shown}"
        );
        assert!(
            shown.contains("app:[redacted]@db") && shown.contains("got 1, want 2"),
            "{shown}"
        );
    }

    #[test]
    fn control_characters_are_made_visible() {
        assert_eq!(cut("\u{1b}[31mred", 100), "\\u{1b}[31mred");
    }
}
