//! Failing tests in sentences and in results: which, how many of them are named, and what the first one said.

use supervisor_text::words;
use supervisor_verify::{Refusal, TestName, TestRun};

/// What fails, by name; the rest is as bad.
pub(super) fn failures(run: &TestRun) -> Vec<String> {
    failures_but(run, &[])
}

pub(super) fn failures_but(run: &TestRun, known: &[TestName]) -> Vec<String> {
    run.failed()
        .map(|(name, _)| name)
        .filter(|name| !known.contains(name))
        .take(20)
        .map(ToString::to_string)
        .collect()
}

/// The refusal, with what the first of its tests said.
pub(super) fn with_message(refusal: &Refusal, run: &TestRun) -> String {
    let Some((name, message)) = run.failed().next() else {
        return refusal.to_string();
    };
    let mut said = refusal.to_string();
    let named = format!("`{name}`");
    if !said.contains(&named) {
        said = format!("{said}: {named}");
    }
    said + &first_line(message)
}

/// `: ` and the line that tells what went wrong, with the two values where they stand on lines of their own.
pub(super) fn first_line(message: &str) -> String {
    let mut lines = message
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .peekable();
    // Where a Rust thread panicked is said first, and why only then.
    let is_place = |l: &&str| l.starts_with("thread '") && l.contains(" panicked at ");
    let place = lines.next_if(is_place);
    let Some(first) = lines.next().or(place) else {
        return String::new();
    };
    let values = lines.take_while(|l| l.starts_with("left:") || l.starts_with("right:"));
    let said = std::iter::once(first)
        .chain(values)
        .collect::<Vec<_>>()
        .join(", ");
    format!(": {}", words::cut_end(&words::plain(&said), 300))
}

pub(super) fn list(names: &[TestName], first: &TestName) -> String {
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
    fn a_failure_is_told_by_why_and_not_by_where() {
        let panicked = "\nthread 'nine' (26164) panicked at tests/roman.rs:10:5:\nassertion `left == right` failed\n  \
                        left: \"VIIII\"\n right: \"IX\"\nnote: run with `RUST_BACKTRACE=1`";
        assert_eq!(
            first_line(panicked),
            ": assertion `left == right` failed, left: \"VIIII\", right: \"IX\""
        );
        assert_eq!(
            first_line("  assert 1 == 2\n +  where 1 = one()"),
            ": assert 1 == 2"
        );
        assert_eq!(
            first_line("thread 'a' panicked at src/lib.rs:1:1:"),
            ": thread 'a' panicked at src/lib.rs:1:1:"
        );
        assert_eq!(first_line("\n"), "");
    }
}
