//! Does anything happen in a scenario? "When the system is used" could begin all of them.

/// What every scenario of a project is about.
const THINGS: &[&str] = &[
    "system",
    "feature",
    "application",
    "app",
    "tool",
    "software",
    "product",
    "functionality",
    "requirement",
    "implementation",
    "solution",
    "criterion",
];

/// "When the feature is used" is no event: it happens in every scenario. "When it is used" is one if a thing is given.
pub(super) fn is_any_use(when: &str, given: &str) -> bool {
    let bare = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase);
        words.filter(|word| !["the", "this", "a", "new"].contains(&word.as_str())).collect()
    };
    let (when, given) = (bare(when), bare(given));
    let any_thing = given.first().is_some_and(|first| THINGS.contains(&first.as_str()))
        && given[1..]
            .iter()
            .all(|word| ["is", "exists", "running", "in", "place", "implemented"].contains(&word.as_str()));
    match when.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [thing, "is" | "was" | "gets", deed] => {
            (THINGS.contains(thing) || (*thing == "it" && any_thing))
                && ["used", "tested", "implemented", "complete", "completed", "run"].contains(deed)
        }
        ["used" | "tested" | "implemented" | "testing"] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_could_begin_every_scenario_is_no_event() {
        for (when, given) in [
            ("The feature is used.", "a member"),
            ("the system is tested", "anything"),
            ("it is used", "the system is running"),
            ("tested", "the requirement"),
        ] {
            assert!(is_any_use(when, given), "{when} / {given}");
        }
        for (when, given) in [
            ("it is used", "an expired token"),
            ("it is run", "the job of yesterday"),
            ("the service is deployed", "two replicas"),
            ("the tool is run without arguments", "a terminal"),
            ("mdlint runs", "a file with one finding"),
        ] {
            assert!(!is_any_use(when, given), "{when} / {given}");
        }
    }
}
