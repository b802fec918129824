//! A line of progress, understood again. The demo sees what every client sees, and clients get lines.

/// What a line tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeardLine<'a> {
    /// What the tests showed before anything was changed.
    Before(&'a str),
    /// Which tier's work holds; the result says the rest.
    Accepted { place: &'a str },
    /// An attempt ended and was not accepted.
    Refused {
        place: &'a str,
        model: &'a str,
        cause: &'a str,
        because: &'a str,
    },
    /// Anything else, for the live line.
    Doing(&'a str),
}

/// `tdd_green · tier 1/3 small rejected: nine_is_ix still fails · 2 s`
pub(super) fn heard(line: &str) -> HeardLine<'_> {
    let middle = line.split_once(" · ").map_or(line, |(_skill, rest)| rest);
    let middle = middle
        .rsplit_once(" · ")
        .map_or(middle, |(rest, _seconds)| rest);
    if let Some(sentence) = middle.strip_prefix("before: ") {
        return HeardLine::Before(sentence);
    }
    ended(middle).unwrap_or(HeardLine::Doing(middle))
}

fn ended(middle: &str) -> Option<HeardLine<'_>> {
    let (place, rest) = middle.strip_prefix("tier ")?.split_once(' ')?;
    let (model, rest) = rest.split_once(' ')?;
    let (cause, because) = rest.split_once(": ")?;
    let is_one_word = cause.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    match cause {
        "accepted" => Some(HeardLine::Accepted { place }),
        cause => is_one_word.then_some(HeardLine::Refused {
            place,
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
    use supervisor_engine::event::{ChainPlace, Event, Listener, StoryLine, Teller};

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Listener for Lines {
        fn hear(&self, told: &StoryLine) {
            self.0
                .lock()
                .expect("no thread panicked")
                .push(told.line.clone());
        }
    }

    #[test]
    fn what_the_engine_tells_is_understood() {
        let at = ChainPlace {
            tier: 1,
            of: 3,
            model: "scripted/small".into(),
        };
        let lines = Lines::default();
        let teller = Teller::new("tdd_green", &lines);
        teller.tell(Event::Doing {
            what: "before: `cargo test` failed: 1 passed · 1 failed".into(),
        });
        teller.tell(Event::Checking {
            at: at.clone(),
            what: "running `cargo test`: all".into(),
        });
        teller.tell(Event::Ended {
            at: at.clone(),
            cause: Cause::CannotVerify,
            because: "a · b: c".into(),
            left: Default::default(),
        });
        teller.tell(Event::Accepted {
            at,
            because: "green: all pass".into(),
            left: Default::default(),
        });
        let lines = lines.0.into_inner().expect("no thread panicked");
        let heard: Vec<HeardLine<'_>> = lines.iter().map(|line| heard(line)).collect();
        let model = "scripted/small";
        assert_eq!(
            heard,
            [
                HeardLine::Before("`cargo test` failed: 1 passed · 1 failed"),
                HeardLine::Doing("tier 1/3 scripted/small · running `cargo test`: all"),
                HeardLine::Refused {
                    place: "1/3",
                    model,
                    cause: "cannot_verify",
                    because: "a · b: c"
                },
                HeardLine::Accepted { place: "1/3" },
            ]
        );
    }
}
