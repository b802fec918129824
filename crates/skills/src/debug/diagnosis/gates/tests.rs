//! One valid answer and every way to break it.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::super::draft::drafts;
use super::*;

const ERROR: &str = "IndexError: list index out of range";
const FILE: &str = "def first(items):\n    return items[0]\n\n\ndef load(path):\n    rows = open(path).read().split()\n    return first(rows)\n";

fn valid_answer() -> Value {
    let one = |likelihood: &str, mechanism: &str, line: usize, pattern: &str| {
        json!({"likelihood": likelihood, "mechanism": mechanism, "evidence": [{"file": "a.py", "line": line}],
               "confirm": {"search": {"pattern": pattern, "file": "a.py"}},
               "expect_if_true": "found", "expect_if_false": "not_found"})
    };
    json!({"hypotheses": [
        one("high", "`first` takes item 0 without looking whether there is any, and an empty file gives none", 2, r"items\[0\]"),
        one("medium", "`load` splits on white space, so that a file of blanks turns into no rows at all", 6, r"split\(\)"),
        one("low", "the path names another file, truncated by a writer that has not flushed its buffer yet", 5, r"open\(path\)"),
    ]})
}

fn examined(answer: &Value) -> ExaminedDiagnosis {
    let drafts = drafts(answer).expect("the shape is right");
    let sources =
        EvidenceSources::of(
            drafts.iter().flat_map(HypothesisDraft::files),
            |name| match name {
                "a.py" => Ok((PathBuf::from("a.py"), FILE.to_owned())),
                other => Err(format!("there is no file `{other}` in the project")),
            },
        );
    let examined = examine(&drafts, ERROR, &sources);
    assert_eq!(
        examined.hypotheses.is_some(),
        examined.checks.iter().all(Check::passed)
    );
    examined
}

fn failing(answer: &Value) -> Vec<(&'static str, String)> {
    let examined = examined(answer);
    examined
        .checks
        .iter()
        .filter(|c| !c.passed())
        .map(|c| (c.id(), c.detail().to_owned()))
        .collect()
}

#[test]
fn valid_answer_passes() {
    assert_eq!(failing(&valid_answer()), []);
    assert!(examined(&valid_answer()).flags.is_empty());
}

#[test]
fn structural_defect_fails_its_own_gate() {
    let broken = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut answer = valid_answer();
        change(answer["hypotheses"].as_array_mut().expect("a list"));
        failing(&answer)
    };
    type Change = fn(&mut Vec<Value>);
    let rows: &[(&str, &str, Change)] = &[
        ("count", "2 of 3 to 5", |h| drop(h.pop())),
        ("count", "0 of 3 to 5", |h| h.clear()),
        ("order", "hypothesis 3", |h| {
            h[2]["likelihood"] = json!("high");
        }),
        ("order", "no `likelihood`", |h| {
            h[1]["likelihood"] = json!("certain");
        }),
        ("mechanism", "hypothesis 1 has no mechanism", |h| {
            h[0]["mechanism"] = json!("");
        }),
        ("mechanism", "only says the error again", |h| {
            h[0]["mechanism"] =
                json!("there is an IndexError because the list index is out of range");
        }),
        ("evidence", "cites only lines without a word", |h| {
            h[0]["evidence"] = json!([{"file": "a.py", "line": 3}]);
        }),
        ("test", "names nothing and fits 4 of 5 lines", |h| {
            h[0]["confirm"]["search"]["pattern"] = json!(r"\(");
        }),
        ("test", "has no test", |h| h[1]["confirm"] = Value::Null),
        (
            "test",
            "has no test",
            |h| h[1]["confirm"] = json!({"run_test": " ", "search": {"pattern": "", "file": ""}}),
        ),
        ("test", "has two tests", |h| {
            h[1]["confirm"]["run_test"] = json!("test_load");
        }),
        ("test", "whether it is true or not", |h| {
            h[0]["expect_if_false"] = json!("found");
        }),
        ("test", "`expect_if_true` of `passes`", |h| {
            h[0]["expect_if_true"] = json!("passes");
        }),
        ("test", "`expect_if_false` of ``", |h| {
            h[0]["expect_if_false"] = Value::Null;
        }),
        ("test", "fits every line", |h| {
            h[0]["confirm"]["search"]["pattern"] = json!(".*");
        }),
        ("test", "fits every line of the file", |h| {
            h[0]["confirm"]["search"]["pattern"] = json!("[a-z]");
        }),
        ("test", "is not a regular expression", |h| {
            h[0]["confirm"]["search"]["pattern"] = json!("(");
        }),
        ("test", "there is no file `b.py`", |h| {
            h[0]["confirm"]["search"]["file"] = json!("b.py");
        }),
        ("evidence", "has no evidence", |h| {
            h[2]["evidence"] = json!([]);
        }),
        ("evidence", "more than 20 lines", |h| {
            h[2]["evidence"] = json!(vec!["a.py:1"; 21]);
        }),
        ("evidence", "there is no line 99", |h| {
            h[2]["evidence"][0]["line"] = json!(99);
        }),
        ("evidence", "does not say", |h| {
            h[2]["evidence"][0]["quote"] = json!("def save(path):");
        }),
        ("evidence", "there is no file `b.py`", |h| {
            h[2]["evidence"][0]["file"] = json!("b.py");
        }),
        ("test", "names rival 4 of 3", |h| {
            h[0]["rivals"] = json!([{"rank": 4, "expects": "found"}]);
        }),
        ("distinct", "one idea in other words", |h| {
            h[1]["mechanism"] = json!(
                "without looking whether there is any, item 0 is what `first` takes; none gives an empty file"
            );
        }),
        ("distinct", "cannot tell them apart", |h| {
            h[1]["confirm"] = h[0]["confirm"].clone();
        }),
    ];
    assert_eq!(rows.len(), 26);
    for (gate, named, change) in rows {
        let wrong = broken(change);
        assert!(
            matches!(wrong.as_slice(), [(id, detail)] if id == gate && detail.contains(named)),
            "{gate} {named}: {wrong:?}"
        );
    }
}

#[test]
fn searches_beside_the_cause_are_flagged() {
    let mut answer = valid_answer();
    for (n, h) in answer["hypotheses"]
        .as_array_mut()
        .expect("a list")
        .iter_mut()
        .enumerate()
    {
        h["confirm"]["search"]["pattern"] = json!(format!("xyzzy{n}"));
        (h["expect_if_true"], h["expect_if_false"]) = (json!("not_found"), json!("found"));
    }
    let examined = examined(&answer);
    assert!(examined.hypotheses.is_some(), "{:?}", examined.checks);
    let ids: Vec<_> = examined.flags.iter().map(|flag| flag.id.as_str()).collect();
    assert_eq!(ids, ["beside_the_cause"]);
}

#[test]
fn copies_of_one_hypothesis_are_rejected() {
    let mut answer = valid_answer();
    let one = answer["hypotheses"][0].clone();
    answer["hypotheses"] = json!(vec![one; 5]);
    let wrong = failing(&answer);
    assert_eq!(
        wrong.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        ["distinct"]
    );
    assert_eq!(wrong[0].1.matches("one idea in other words").count(), 10);
}

#[test]
fn too_many_hypotheses_are_only_counted() {
    let mut answer = valid_answer();
    let one = answer["hypotheses"][0].clone();
    answer["hypotheses"] = json!(vec![one; 3_000]);
    let wrong = failing(&answer);
    assert!(
        matches!(wrong.as_slice(), [("count", said)] if said.starts_with("3000 of 3 to 5")),
        "{wrong:?}"
    );
}

#[test]
fn all_defects_are_reported_at_once() {
    let mut answer = valid_answer();
    answer["hypotheses"][0]["evidence"][0]["line"] = json!(99);
    answer["hypotheses"][1]["confirm"] = Value::Null;
    let gates: Vec<_> = failing(&answer).iter().map(|(id, _)| *id).collect();
    assert_eq!(gates, ["test", "evidence"]);
}
