//! A specification that holds, and the ways to break it, one at a time.

use serde_json::{Value, json};

pub(crate) const REQUIREMENTS: &str =
    "The tool must:\n- read CSV files\n- write JSON\n- support Excel files\n";

/// One thing that is wrong, and what the refusal says about it.
pub(crate) struct Row {
    pub(super) what: &'static str,
    pub(super) reply: Value,
    pub(super) said: &'static str,
}

pub(crate) fn good() -> Value {
    json!({
        "problem": "People copy tables by hand, which loses rows.",
        "criteria": [
            {"id": "AC-1", "text": "Every row of a CSV file becomes one record", "test": {"command": "cargo test csv"}},
            {"id": "AC-2", "text": "JSON is written fast", "test":
                {"metric": "time to write 10 MB of JSON", "comparison": "<=", "value": 2, "unit": "s"}},
            {"id": "AC-3", "text": "A broken row of a CSV file is named", "test":
                {"given": "a CSV file whose row 3 is broken", "when": "it is read", "then": "the message names `row 3`"}},
        ],
        "constraints": ["Runs without a network"],
        "out_of_scope": ["Excel files are not read"],
        "approach": [{"decision": "Read row by row", "rationale": "Memory stays below 50 MB for any file"}],
        "risks": [{"risk": "Encodings other than UTF-8", "mitigation": "Refuse them, naming the first wrong byte"}],
        "requirement_map": [
            {"requirement": "R1", "criteria": ["AC-1", "AC-3"]},
            {"requirement": "R2", "criteria": ["AC-2"]},
            {"requirement": "R3", "out_of_scope": 1},
        ],
        "questions": [],
    })
}

/// The same with one value changed.
pub(super) fn bad(pointer: &str, value: Value) -> Value {
    let mut reply = good();
    *reply
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("no {pointer}")) = value;
    reply
}

fn without(section: &str) -> Value {
    let mut reply = good();
    reply.as_object_mut().unwrap().remove(section).unwrap();
    reply
}

/// What structure alone refuses.
pub(crate) fn faults() -> Vec<Row> {
    let row = |what, reply, said| Row { what, reply, said };
    vec![
        row(
            "a missing section",
            without("risks"),
            "the section `risks` must not be missing or empty",
        ),
        row(
            "an empty section",
            bad("/constraints", json!([])),
            "the section `constraints` must not be missing or empty",
        ),
        row(
            "nothing out of scope",
            bad("/out_of_scope", json!([])),
            "the section `out_of_scope` must not be missing or empty",
        ),
        row(
            "a criterion without a test",
            bad("/criteria/0/test", json!(null)),
            "criterion `AC-1` has no test",
        ),
        row(
            "half a scenario",
            bad(
                "/criteria/2/test",
                json!({"given": "a file", "then": "rows"}),
            ),
            "criterion `AC-3` has a test without `when`",
        ),
        row(
            "a number without a unit",
            bad("/criteria/1/test/unit", json!("")),
            "criterion `AC-2` has a test without `unit`",
        ),
        row(
            "two criteria of one name",
            bad("/criteria/2/id", json!("AC-1")),
            "two criteria have the id `AC-1`",
        ),
        row(
            "a criterion without a name",
            bad("/criteria/2/id", json!("")),
            "criterion 3 has the id ``",
        ),
        row(
            "a decision without a reason",
            bad("/approach/0/rationale", json!(" ")),
            "decision 1 (`Read row by row`) has no rationale",
        ),
        row(
            "a risk without a remedy",
            bad("/risks/0/mitigation", json!("")),
            "has no mitigation",
        ),
        row(
            "a requirement that went nowhere",
            bad(
                "/requirement_map",
                json!([{"requirement": "R1", "criteria": ["AC-1"]}, {"requirement": "R2", "criteria": ["AC-2"]}]),
            ),
            "requirement R3 (`support Excel files`) is not in `requirement_map`",
        ),
        row(
            "a criterion that does not exist",
            bad("/requirement_map/1/criteria/0", json!("AC-12")),
            "R2 is mapped to `AC-12`, but there is no such criterion",
        ),
        row(
            "an exclusion that does not exist",
            bad("/requirement_map/2/out_of_scope", json!(5)),
            "R3 is mapped to number 5 of `out_of_scope`, which has 1",
        ),
        row(
            "one test for two criteria",
            bad("/criteria/2/test", json!({"command": "cargo test csv"})),
            "the criteria `AC-1`, `AC-3` have the same test",
        ),
        row(
            "a demand called a story",
            bad(
                "/requirement_map/1",
                json!({"requirement": "R2", "background": true}),
            ),
            "R2 (`write JSON`) is called background",
        ),
        row(
            "questions that ask nothing",
            json!({"questions": [{"requirement": "R1", "question": "Tell me more"}]}),
            "does not end with a question mark",
        ),
    ]
}

/// A map that is complete but seems to be filled in without reading: R2 goes to a criterion that has none of its words.
pub(crate) fn unrelated() -> Value {
    bad("/requirement_map/1/criteria/0", json!("AC-3"))
}
