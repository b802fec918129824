//! Parses progress lines. The demo gets the same lines as every MCP client and nothing else.

/// A parsed progress line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProgressUpdate<'a> {
    /// Test results before any change.
    TestsBefore(&'a str),
    /// The work of a tier was accepted; the result has the details.
    Accepted { position: &'a str },
    /// An attempt ended and was not accepted.
    Rejected {
        position: &'a str,
        model: &'a str,
        cause: &'a str,
        because: &'a str,
    },
    /// Anything else, for the live line.
    Status(&'a str),
}

/// Parses a line such as `tdd_green · tier 1/3 small rejected: nine_is_ix still fails · 2 s`.
pub(super) fn parse_progress(line: &str) -> ProgressUpdate<'_> {
    let body = line.split_once(" · ").map_or(line, |(_skill, rest)| rest);
    let body = body
        .rsplit_once(" · ")
        .map_or(body, |(rest, _seconds)| rest);
    if let Some(sentence) = body.strip_prefix("before: ") {
        return ProgressUpdate::TestsBefore(sentence);
    }
    parse_attempt_end(body).unwrap_or(ProgressUpdate::Status(body))
}

fn parse_attempt_end(body: &str) -> Option<ProgressUpdate<'_>> {
    let (position, rest) = body.strip_prefix("tier ")?.split_once(' ')?;
    let (model, rest) = rest.split_once(' ')?;
    let (cause, because) = rest.split_once(": ")?;
    let is_one_word = cause.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    match cause {
        "accepted" => Some(ProgressUpdate::Accepted { position }),
        cause => is_one_word.then_some(ProgressUpdate::Rejected {
            position,
            model,
            cause,
            because,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use supervisor_engine::Cause;
    use supervisor_engine::event::{ChainPosition, Event, EventReporter, Listener, ProgressLine};

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Listener for Lines {
        fn on_event(&self, progress: &ProgressLine) {
            self.0
                .lock()
                .expect("no thread panicked")
                .push(progress.line.clone());
        }
    }

    #[test]
    fn engine_progress_lines_are_parsed() {
        let at = ChainPosition {
            tier: 1,
            of: 3,
            model: "scripted/small".into(),
        };
        let lines = Lines::default();
        let reporter = EventReporter::new("tdd_green", &lines);
        reporter.report(Event::Doing {
            what: "before: `cargo test` failed: 1 passed · 1 failed".into(),
        });
        reporter.report(Event::Checking {
            at: at.clone(),
            what: "running `cargo test`: all".into(),
        });
        reporter.report(Event::Ended {
            at: at.clone(),
            cause: Cause::CannotVerify,
            because: "a · b: c".into(),
            left: Default::default(),
        });
        reporter.report(Event::Accepted {
            at,
            because: "green: all pass".into(),
            left: Default::default(),
        });
        let lines = lines.0.into_inner().expect("no thread panicked");
        let parsed: Vec<ProgressUpdate<'_>> =
            lines.iter().map(|line| parse_progress(line)).collect();
        let model = "scripted/small";
        assert_eq!(
            parsed,
            [
                ProgressUpdate::TestsBefore("`cargo test` failed: 1 passed · 1 failed"),
                ProgressUpdate::Status("tier 1/3 scripted/small · running `cargo test`: all"),
                ProgressUpdate::Rejected {
                    position: "1/3",
                    model,
                    cause: "cannot_verify",
                    because: "a · b: c"
                },
                ProgressUpdate::Accepted { position: "1/3" },
            ]
        );
    }
}
