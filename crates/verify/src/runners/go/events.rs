//! Parses the events of `go test -json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::super::outcome::{TestName, TestState};
use super::super::super::report::failed;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GoTestResult {
    Pass,
    Fail,
    Skip,
}

/// The parsed events of one run.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The final result of each package.
    pub(super) packages: BTreeMap<String, Option<GoTestResult>>,
    /// All results of each test. More than one means that the output was forged.
    results: BTreeMap<TestName, Vec<GoTestResult>>,
    output: BTreeMap<TestName, String>,
    /// The output as it would be without `-json`.
    pub(super) printed: String,
    /// The compiler output, if it comes as events.
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
            // Older Go versions print some messages between the events.
            events.printed.push_str(line);
            events.printed.push('\n');
            continue;
        };
        let name = event
            .test
            .as_ref()
            .map(|test| TestName(format!("{} {test}", event.package)));
        let result = match event.action.as_str() {
            "pass" => Some(GoTestResult::Pass),
            "fail" => Some(GoTestResult::Fail),
            "skip" => Some(GoTestResult::Skip),
            "build-output" => {
                events.build.push_str(&event.output);
                continue;
            }
            "output" => {
                events.printed.push_str(&event.output);
                if let Some(name) = name.filter(|_| !is_status_line(&event.output)) {
                    let output = events.output.entry(name).or_default();
                    // Bounds memory; the rest of a long output is not useful.
                    if output.len() < 64 * 1024 {
                        output.push_str(&event.output);
                    }
                }
                continue;
            }
            _ => None,
        };
        match (name, result) {
            (Some(name), Some(result)) => events.results.entry(name).or_default().push(result),
            // The test has started, so a result must follow.
            (Some(name), None) => drop(events.results.entry(name).or_default()),
            (None, result) if !event.package.is_empty() => {
                let package = events.packages.entry(event.package).or_default();
                *package = result.or(*package);
            }
            (None, _) => {}
        }
    }
    events
}

fn is_status_line(output: &str) -> bool {
    let text = output.trim_start();
    text.starts_with("=== ") || text.starts_with("--- ")
}

impl Events {
    /// The state of each test. A test that started and did not end has failed if its package has failed.
    pub(super) fn tests(&self) -> BTreeMap<TestName, TestState> {
        let output = |name: &TestName| {
            self.output
                .get(name)
                .map(String::as_str)
                .unwrap_or_default()
        };
        let state = |name: &TestName, results: &[GoTestResult]| match results {
            [GoTestResult::Pass] => Some(TestState::Passed),
            [GoTestResult::Skip] => Some(TestState::Skipped),
            [] => self
                .package_failed(name)
                .then(|| failed(format!("it did not end\n{}", output(name)))),
            _ => Some(failed(output(name))),
        };
        self.results
            .iter()
            .filter_map(|(name, results)| Some((name.clone(), state(name, results)?)))
            .collect()
    }

    fn package_failed(&self, name: &TestName) -> bool {
        let package = name.0.split(' ').next().unwrap_or_default();
        self.packages
            .get(package)
            .is_some_and(|end| *end == Some(GoTestResult::Fail))
    }

    pub(super) fn tests_with_several_results(&self) -> impl Iterator<Item = &TestName> {
        self.results
            .iter()
            .filter(|(_, results)| results.len() > 1)
            .map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_result_of_a_test_is_detected() {
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
            events
                .tests_with_several_results()
                .map(|n| n.0.as_str())
                .collect::<Vec<_>>(),
            ["x TestB"]
        );
        assert_eq!(events.packages["x"], Some(GoTestResult::Fail));
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_events_do_not_panic(text in super::super::super::super::garbage::garbage(
            "{\"Action\":\"run\",\"Package\":\"x\",\"Test\":\"T\"}\n{\"Action\":\"pass\",\"Package\":\"x\",\"Test\":\"T\"}\n"
        )) {
            let events = parse(&text);
            let _ = (events.tests(), events.tests_with_several_results().count());
        }
    }
}
