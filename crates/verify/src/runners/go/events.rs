//! The events of `go test -json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::super::outcome::{TestName, TestState};
use super::super::super::report::failed;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GoTestEnd {
    Pass,
    Fail,
    Skip,
}

/// Everything the events tell.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// How each package ended.
    pub(super) packages: BTreeMap<String, Option<GoTestEnd>>,
    /// Every end of each test; more than one is a forgery.
    ends: BTreeMap<TestName, Vec<GoTestEnd>>,
    said: BTreeMap<TestName, String>,
    /// What was printed, as without `-json`.
    pub(super) printed: String,
    /// What the compiler said, where it says so in events.
    pub(super) build: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    test: Option<String>,
    #[serde(default)]
    output: String,
}

pub(super) fn parse(lines: &str) -> Events {
    let mut events = Events::default();
    for line in lines.lines() {
        let Ok(event) = serde_json::from_str::<Event>(line) else {
            // Older versions write some of their own words between the events.
            events.printed.push_str(line);
            events.printed.push('\n');
            continue;
        };
        let name = event
            .test
            .as_ref()
            .map(|test| TestName(format!("{} {test}", event.package)));
        let end = match event.action.as_str() {
            "pass" => Some(GoTestEnd::Pass),
            "fail" => Some(GoTestEnd::Fail),
            "skip" => Some(GoTestEnd::Skip),
            "build-output" => {
                events.build.push_str(&event.output);
                continue;
            }
            "output" => {
                events.printed.push_str(&event.output);
                if let Some(name) = name.filter(|_| !is_frame(&event.output)) {
                    let said = events.said.entry(name).or_default();
                    // The end of a long tale is of no use, and memory is bounded.
                    if said.len() < 64 * 1024 {
                        said.push_str(&event.output);
                    }
                }
                continue;
            }
            _ => None,
        };
        match (name, end) {
            (Some(name), Some(end)) => events.ends.entry(name).or_default().push(end),
            // Begun: an end must follow.
            (Some(name), None) => drop(events.ends.entry(name).or_default()),
            (None, end) if !event.package.is_empty() => {
                let package = events.packages.entry(event.package).or_default();
                *package = end.or(*package);
            }
            (None, _) => {}
        }
    }
    events
}

fn is_frame(output: &str) -> bool {
    let text = output.trim_start();
    text.starts_with("=== ") || text.starts_with("--- ")
}

impl Events {
    /// Tests with exactly one end. One that began and did not end has failed, if its package has.
    pub(super) fn tests(&self) -> BTreeMap<TestName, TestState> {
        let said = |name: &TestName| self.said.get(name).map(String::as_str).unwrap_or_default();
        let state = |name: &TestName, ends: &[GoTestEnd]| match ends {
            [GoTestEnd::Pass] => Some(TestState::Passed),
            [GoTestEnd::Skip] => Some(TestState::Skipped),
            [] => self
                .package_failed(name)
                .then(|| failed(format!("it did not end\n{}", said(name)))),
            _ => Some(failed(said(name))),
        };
        self.ends
            .iter()
            .filter_map(|(name, ends)| Some((name.clone(), state(name, ends)?)))
            .collect()
    }

    fn package_failed(&self, name: &TestName) -> bool {
        let package = name.0.split(' ').next().unwrap_or_default();
        self.packages
            .get(package)
            .is_some_and(|end| *end == Some(GoTestEnd::Fail))
    }

    pub(super) fn doubled(&self) -> impl Iterator<Item = &TestName> {
        self.ends
            .iter()
            .filter(|(_, ends)| ends.len() > 1)
            .map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_become_named_results_and_a_second_end_is_noticed() {
        let events = parse(
            r#"{"Action":"run","Package":"x","Test":"TestA"}
{"Action":"output","Package":"x","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"x","Test":"TestA","Elapsed":0}
{"Action":"run","Package":"x","Test":"TestB"}
{"Action":"output","Package":"x","Test":"TestB","Output":"    a_test.go:5: boo\n"}
{"Action":"fail","Package":"x","Test":"TestB","Elapsed":0}
{"Action":"pass","Package":"x","Test":"TestB","Elapsed":0}
{"Action":"run","Package":"x","Test":"TestC"}
not json
{"Action":"fail","Package":"x","Elapsed":0}"#,
        );
        let tests = events.tests();
        assert_eq!(tests[&TestName::from("x TestA")], TestState::Passed);
        assert_eq!(
            tests[&TestName::from("x TestB")],
            failed("a_test.go:5: boo")
        );
        assert!(
            matches!(&tests[&TestName::from("x TestC")], TestState::Failed(m) if m.contains("did not end"))
        );
        assert_eq!(
            events.doubled().map(|n| n.0.as_str()).collect::<Vec<_>>(),
            ["x TestB"]
        );
        assert_eq!(events.packages["x"], Some(GoTestEnd::Fail));
    }

    proptest::proptest! {
        #[test]
        fn no_event_is_too_odd(text in super::super::super::super::garbage::garbage(
            "{\"Action\":\"run\",\"Package\":\"x\",\"Test\":\"T\"}\n{\"Action\":\"pass\",\"Package\":\"x\",\"Test\":\"T\"}\n"
        )) {
            let events = parse(&text);
            let _ = (events.tests(), events.doubled().count());
        }
    }
}
