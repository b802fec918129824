//! Formats failing tests for messages and results.

use supervisor_text::words;
use supervisor_verify::{ProofError, TestName, TestRun};

/// Names of failing tests, up to a limit.
pub(super) fn failures(run: &TestRun) -> Vec<String> {
    failures_except(run, &[])
}

pub(super) fn failures_except(run: &TestRun, excluded: &[TestName]) -> Vec<String> {
    run.failed()
        .map(|(name, _)| name)
        .filter(|name| !excluded.contains(name))
        .take(20)
        .map(ToString::to_string)
        .collect()
}

/// The refusal, followed by the message of the first failing test.
pub(super) fn with_message(refusal: &ProofError, run: &TestRun) -> String {
    let Some((name, message)) = run.failed().next() else {
        return refusal.to_string();
    };
    let mut text = refusal.to_string();
    let named = format!("`{name}`");
    if !text.contains(&named) {
        text = format!("{text}: {named}");
    }
    text + &failure_summary(message)
}

/// `: ` and the line that explains the failure, including `left:` and `right:` values on lines of
/// their own.
pub(super) fn failure_summary(message: &str) -> String {
    let mut lines = message
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .peekable();
    // A Rust panic message starts with the location; the reason follows on the next line.
    let is_location = |l: &&str| l.starts_with("thread '") && l.contains(" panicked at ");
    let location = lines.next_if(is_location);
    let Some(first) = lines.next().or(location) else {
        return String::new();
    };
    let values = lines.take_while(|l| l.starts_with("left:") || l.starts_with("right:"));
    let text = std::iter::once(first)
        .chain(values)
        .collect::<Vec<_>>()
        .join(", ");
    format!(": {}", words::cut_end(&words::plain(&text), 300))
}

/// Max bytes of the failure that a red shows.
const MAX_FAILURE_BYTES: usize = 400;

/// Why a test fails: its message in the runner's report, or the part of the output that tells of a
/// failure.
pub(super) fn failure_text(run: &TestRun, test: &str) -> String {
    let base = TestName(test.to_owned());
    let message = run
        .failed()
        .filter(|(name, _)| name.base() == base.base())
        .map(|(_, message)| message.trim())
        .find(|message| !message.is_empty());
    match message {
        Some(message) => words::cut_end(&words::plain(message), MAX_FAILURE_BYTES).into_owned(),
        None => supervisor_pack::cut_output(run.output(), MAX_FAILURE_BYTES),
    }
}

pub(super) fn format_names(names: &[TestName], first: &TestName) -> String {
    match names.len() {
        1 => format!("`{first}`"),
        n => {
            let shown: Vec<String> = names.iter().take(5).map(|n| format!("`{n}`")).collect();
            let more = if n > 5 {
                format!(" and {}", words::count(n - 5, "other"))
            } else {
                String::new()
            };
            format!("{}{more}", shown.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_summary_skips_the_panic_location() {
        let panicked = "\nthread 'nine' (26164) panicked at tests/roman.rs:10:5:\nassertion `left == right` failed\n  \
                        left: \"VIIII\"\n right: \"IX\"\nnote: run with `RUST_BACKTRACE=1`";
        assert_eq!(
            failure_summary(panicked),
            ": assertion `left == right` failed, left: \"VIIII\", right: \"IX\""
        );
        assert_eq!(
            failure_summary("  assert 1 == 2\n +  where 1 = one()"),
            ": assert 1 == 2"
        );
        assert_eq!(
            failure_summary("thread 'a' panicked at src/lib.rs:1:1:"),
            ": thread 'a' panicked at src/lib.rs:1:1:"
        );
        assert_eq!(failure_summary("\n"), "");
    }
}
