//! Errors explained over stdio, with recorded models, real commands and real tests.

mod hostile;
mod repro;

use crate::support::debug_project::{
    ERROR, REPRO, SCRIPT, project, sound, spoilt, text, with_files,
};
use serde_json::{Value, json};

use crate::skills::tdd::{ADD_TEST, MANIFEST, OLD_TEST, WRONG};
use crate::support::scenario::{gate, trail};

#[test]
fn sound_answer_is_accepted_and_verified() {
    let mut scenario = project(&["small", "large"]).answers("small", &sound());
    let before = scenario.tree();
    let result = scenario.call(
        "debug",
        json!({"error": ERROR, "repro_cmd": REPRO, "session_id": "one"}),
    );
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(true)),
        "{result:#}"
    );
    assert_eq!(trail(&result), "small accepted");
    let message = text(&result, "message");
    assert!(
        message.contains(" Reproduced: `sh report.sh empty.txt` ended with exit code 3"),
        "{message}"
    );
    assert!(
        message.contains("the other 2 causes are ruled out"),
        "{message}"
    );
    let details = &result["details"];
    assert_eq!(
        (&details["reproduced"], &details["visit"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(details["repro"]["cmd"], REPRO);
    assert_eq!(
        (
            &details["repro"]["exit_code"],
            &details["repro"]["matched_error"]
        ),
        (&json!(3), &json!(true))
    );
    assert!(
        text(&details["repro"], "output").contains("RowError"),
        "{details:#}"
    );
    let first = &details["hypotheses"][0];
    assert_eq!(
        (&first["rank"], &first["likelihood"], &first["outcome"]),
        (&json!(1), &json!("high"), &json!("not_found"))
    );
    assert_eq!(
        (&first["as_predicted"], &first["outcome_detail"]),
        (&json!(true), &json!("no line of `report.sh`"))
    );
    assert_eq!(first["tells_from"], json!([2, 3]));
    assert_eq!(
        first["evidence"][0],
        json!({"file": "report.sh", "line": 4, "text": "first=${rows%% *}"})
    );
    for id in [
        "untouched",
        "count",
        "order",
        "mechanism",
        "test",
        "evidence",
        "distinct",
        "proof",
    ] {
        assert_eq!(gate(&result, id)["pass"], true, "{id}");
    }
    assert_eq!(
        (
            &result["next"]["tool"],
            &result["next"]["arguments"]["session_id"]
        ),
        (&json!("tdd_red"), &json!("one"))
    );
    assert!(
        result.to_string().len() < 6_000,
        "{}",
        result.to_string().len()
    );
    assert_eq!(scenario.tree(), before);

    let asked = &scenario.asked_of("small")[0];
    assert!(
        asked.contains("4| first=${rows%% *}"),
        "the file that the error names, with numbers: {asked}"
    );
    assert!(
        asked.contains("reproduced: ") && asked.contains("RowError: the first row has no fields"),
        "{asked}"
    );
}

/// A defect, words of the reason it must be refused with, and the answer that has it.
pub(crate) type Row = (&'static str, &'static str, Value);

pub(crate) fn defects() -> Vec<Row> {
    let one = |n: usize, change: fn(&mut Value)| spoilt(move |h| change(&mut h[n]));
    vec![
        (
            "an invented line",
            "`report.sh` has 9 lines, so there is no line 41",
            one(0, |h| {
                h["evidence"] = json!([{"file": "report.sh", "line": 41}]);
            }),
        ),
        (
            "a wrong quote",
            "`report.sh:4` does not say `first=${rows%%,*}`",
            one(0, |h| {
                h["evidence"][0]["quote"] = json!("first=${rows%%,*}");
            }),
        ),
        (
            "a quote from another line",
            "those words stand in line 4",
            one(0, |h| h["evidence"][0]["line"] = json!(9)),
        ),
        (
            "a file that is not there",
            "there is no file `lib/report.sh`",
            one(1, |h| {
                h["evidence"][0]["file"] = json!("lib/report.sh");
            }),
        ),
        (
            "a file outside the project",
            "lies outside the project",
            one(1, |h| {
                h["evidence"] = json!([{"file": "/etc/passwd", "line": 1}]);
            }),
        ),
        (
            "no evidence",
            "has no evidence",
            one(2, |h| h["evidence"] = json!([])),
        ),
        (
            "no test",
            "hypothesis 2 (\"leading blanks hide the field\") has no test",
            one(1, |h| h["confirm"] = json!({})),
        ),
        (
            "one idea five times",
            "are one idea in other words",
            spoilt(|h| {
                let mut copies = vec![h[0].clone(); 5];
                copies[1]["mechanism"] = json!(
                    "the guard takes it for a broken row, since `first` is empty: an empty file gives nothing to `cat`"
                );
                *h = copies;
            }),
        ),
        (
            "two hypotheses only",
            "2 of 3 to 5 hypotheses",
            spoilt(|h| drop(h.pop())),
        ),
        (
            "rising likelihood",
            "is likelier than the one before it",
            one(2, |h| h["likelihood"] = json!("high")),
        ),
        (
            "nothing to learn",
            "expects `not_found` whether it is true or not",
            one(0, |h| h["expect_if_false"] = json!("not_found")),
        ),
        (
            "outcomes of another kind",
            "`expect_if_true` of `fails`",
            one(0, |h| h["expect_if_true"] = json!("fails")),
        ),
        (
            "a pattern that fits everything",
            "fits every line",
            one(0, |h| h["confirm"]["search"]["pattern"] = json!(".*")),
        ),
        (
            "a pattern that is none",
            "is not a regular expression",
            one(0, |h| h["confirm"]["search"]["pattern"] = json!("a(")),
        ),
        (
            "the same test for two",
            "cannot tell them apart",
            spoilt(|h| h[2]["confirm"] = h[1]["confirm"].clone()),
        ),
        (
            "the error said again",
            "only says the error again",
            one(0, |h| {
                h["mechanism"] = json!(
                    "in report.sh the first row has no fields, and that is why RowError has no fields"
                );
            }),
        ),
        (
            "no mechanism",
            "has no mechanism",
            one(0, |h| h["mechanism"] = json!(" … ")),
        ),
        (
            "another shape",
            "the answer has no `hypotheses`",
            json!({"summary": "the file is empty"}),
        ),
        (
            "a pattern that fits nearly everything",
            "names nothing and fits 7 of 9 lines",
            one(0, |h| h["confirm"]["search"]["pattern"] = json!("[a-e]")),
        ),
        (
            "a line without a word",
            "cites only lines without a word",
            one(0, |h| {
                h["evidence"] = json!([{"file": "blank.sh", "line": 2}]);
            }),
        ),
        (
            "a list of words",
            "`hypotheses[0]` has the wrong shape",
            json!({"hypotheses": ["the file is empty"]}),
        ),
    ]
}

#[test]
fn malformed_answers_are_refused_with_reasons() {
    let rows = defects();
    assert_eq!(rows.len(), 21);
    let files = [
        ("report.sh", SCRIPT),
        ("empty.txt", ""),
        ("blank.sh", "echo\n\n"),
    ];
    let mut scenario = with_files(&["small", "large"], &files);
    let before = scenario.tree();
    for (n, (defect, reason, answer)) in rows.iter().enumerate() {
        scenario.say("small", answer);
        scenario.say("large", &sound());
        let result = scenario.call("debug", json!({"error": ERROR, "repro_cmd": REPRO}));
        assert_eq!(
            trail(&result),
            "small rejected | large accepted",
            "{defect}: {result:#}"
        );
        assert_eq!(result["verified"], true, "{defect}");
        let feedback = text(&result["attempts"][0], "feedback");
        assert!(feedback.contains(reason), "{defect}: {feedback}");
        let told = &scenario.asked_of("large")[n];
        assert!(
            told.contains("[1 · small · rejected]") && told.contains(reason),
            "{defect}: {told}"
        );
    }
    assert_eq!(scenario.tree(), before);
}

#[test]
fn searches_beside_the_cause_are_flagged() {
    let answer = spoilt(|h| {
        for (n, h) in h.iter_mut().enumerate() {
            h["confirm"]["search"]["pattern"] = json!(format!("xyzzy{n}"));
            (h["expect_if_true"], h["expect_if_false"]) = (json!("not_found"), json!("found"));
        }
    });
    let mut bench = project(&["small"]).answers("small", &answer);
    let result = bench.call("debug", json!({"error": ERROR, "repro_cmd": REPRO}));
    assert_eq!(
        (trail(&result).as_str(), &result["status"]),
        ("small accepted", &json!("pass")),
        "{result:#}"
    );
    assert_eq!(
        result["details"]["flags"][0]["id"], "beside_the_cause",
        "{result:#}"
    );
    let first = text(&result, "message").lines().next().unwrap_or_default();
    assert!(first.contains(" flag"), "{first}");
}

#[test]
fn citation_off_by_a_line_is_corrected() {
    let off = spoilt(|h| {
        h[0]["evidence"][0]["line"] = json!(3);
        h[1]["evidence"][0]["line"] = json!(8);
    });
    let mut scenario = project(&["small"]).answers("small", &off);
    let result = scenario.call("debug", json!({"error": ERROR, "repro_cmd": REPRO}));
    assert_eq!(
        (trail(&result).as_str(), &result["verified"]),
        ("small accepted", &json!(true)),
        "{result:#}"
    );
    let cited = |n: usize| &result["details"]["hypotheses"][n]["evidence"][0];
    assert_eq!(
        *cited(0),
        json!({"file": "report.sh", "line": 4, "text": "first=${rows%% *}", "corrected_from": 3})
    );
    assert_eq!(
        (&cited(1)["line"], &cited(1)["corrected_from"]),
        (&json!(5), &json!(8))
    );
    assert!(cited(2).get("corrected_from").is_none());
}

#[test]
fn rivals_that_always_hold_are_not_verified() {
    // The first two find the very lines they cite, which stand there whichever cause is true; the third is right.
    let flattering = spoilt(|h| {
        h.rotate_left(1);
        for (h, (likelihood, pattern)) in h
            .iter_mut()
            .zip([("high", r"-z .\$first"), ("medium", r"cat .\$1")])
        {
            h["likelihood"] = json!(likelihood);
            h["confirm"]["search"]["pattern"] = json!(pattern);
        }
        h[2]["likelihood"] = json!("low");
        h[2]["confirm"]["search"]["pattern"] = json!(r"rows%% \*");
        (h[2]["expect_if_true"], h[2]["expect_if_false"]) = (json!("found"), json!("not_found"));
    });
    let mut scenario = project(&["small"]).answers("small", &flattering);
    let result = scenario.call("debug", json!({"error": ERROR, "repro_cmd": REPRO}));
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(false)),
        "{result:#}"
    );
    assert!(
        text(&result, "message").contains("nothing about the cause"),
        "{result:#}"
    );
    for n in 0..3 {
        let hypothesis = &result["details"]["hypotheses"][n];
        assert_eq!(
            (&hypothesis["outcome"], &hypothesis["as_predicted"]),
            (&json!("found"), &Value::Null),
            "{result:#}"
        );
        assert!(
            text(hypothesis, "told_nothing").contains("cited already"),
            "{result:#}"
        );
    }
    assert!(
        text(gate(&result, "proof"), "detail").contains("none tells its cause from all the others"),
        "{result:#}"
    );

    // Two that come true where each predicts otherwise for the other do not tell the two apart either.
    let both = spoilt(|h| {
        h[1]["confirm"]["search"]["pattern"] = json!(r"trim|sed .*blank");
        (h[1]["expect_if_true"], h[1]["expect_if_false"]) = (json!("not_found"), json!("found"));
    });
    scenario.say("small", &both);
    let result = scenario.call("debug", json!({"error": ERROR, "repro_cmd": REPRO}));
    assert_eq!(result["verified"], false, "{result:#}");
    let second = &result["details"]["hypotheses"][1];
    assert!(
        text(second, "told_nothing").starts_with("1 came out as predicted too"),
        "{result:#}"
    );

    // A rival that predicts the same is not told from it, and says so.
    let same = spoilt(|h| {
        h[0]["rivals"] =
            json!([{"rank": 2, "expects": "not_found"}, {"rank": 3, "expects": "not_found"}]);
    });
    scenario.say("small", &same);
    let result = scenario.call("debug", json!({"error": ERROR, "repro_cmd": REPRO}));
    assert_eq!(result["verified"], false, "{result:#}");
    assert!(
        text(&result["details"]["hypotheses"][0], "told_nothing")
            .starts_with("every rival predicts the same")
    );
}

#[test]
fn without_a_sound_answer_there_is_none() {
    let mut scenario = project(&["small", "large"]);
    scenario.say("small", &spoilt(|h| drop(h.pop())));
    scenario.say(
        "large",
        &spoilt(|h| h[0]["evidence"][0]["line"] = json!(70)),
    );
    let result = scenario.call("debug", json!({"error": ERROR, "repro_cmd": REPRO}));
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("error"), &json!(false))
    );
    let message = text(&result, "message");
    assert!(
        message.contains("2 of 3 to 5") && message.contains("there is no line 70"),
        "{message}"
    );
    assert!(
        message.contains("The server itself found: reproduced"),
        "what was seen is not lost: {message}"
    );
    assert_eq!(result["details"]["reproduced"], true, "{result:#}");
}

#[test]
fn failed_prediction_verifies_nothing() {
    let wrong = spoilt(|h| {
        for (n, hypothesis) in h.iter_mut().enumerate() {
            hypothesis["confirm"]["search"]["pattern"] = json!(format!("no such text {n}"));
            (hypothesis["expect_if_true"], hypothesis["expect_if_false"]) =
                (json!("found"), json!("not_found"));
        }
    });
    let mut scenario = project(&["small"]).answers("small", &wrong);
    let result = scenario.call("debug", json!({"error": ERROR, "repro_cmd": REPRO}));
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(false)),
        "{result:#}"
    );
    assert!(text(&result, "message").contains("ruled out"), "{result:#}");
    assert_eq!(result["details"]["hypotheses"][0]["as_predicted"], false);
    assert_eq!(gate(&result, "proof")["pass"], false);
}

#[test]
fn unrelated_search_verifies_nothing() {
    let beside = spoilt(|h| {
        h[0]["confirm"]["search"]["pattern"] = json!("exit 3");
        (h[0]["expect_if_true"], h[0]["expect_if_false"]) = (json!("found"), json!("not_found"));
        h[1]["confirm"]["search"]["pattern"] = json!("no such text");
        h[2]["confirm"]["search"]["pattern"] = json!("xyzzy");
        (h[2]["expect_if_true"], h[2]["expect_if_false"]) = (json!("not_found"), json!("found"));
    });
    let mut scenario = project(&["small"]).answers("small", &beside);
    let result = scenario.call("debug", json!({"error": ERROR, "repro_cmd": REPRO}));
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(false)),
        "{result:#}"
    );
    let message = text(&result, "message");
    assert!(message.contains("nothing about the cause"), "{message}");
    let first = &result["details"]["hypotheses"][0];
    assert_eq!(
        (&first["outcome"], &first["as_predicted"]),
        (&json!("found"), &Value::Null),
        "{result:#}"
    );
    assert!(
        text(first, "told_nothing").contains("says no word of what is searched"),
        "{result:#}"
    );
}

#[test]
fn project_test_runs_alone_and_is_undone() {
    let writes = "#[test]\nfn writes() {\n    std::fs::write(\"left.txt\", \"x\").unwrap();\n    \
                  std::fs::write(\"tests/old.rs\", \"\").unwrap();\n}\n";
    let mut scenario = with_files(
        &["small"],
        &[
            MANIFEST,
            ("src/lib.rs", WRONG),
            OLD_TEST,
            ("tests/add.rs", ADD_TEST),
            ("tests/writes.rs", writes),
        ],
    );
    let before = scenario.tree();
    let one = |likelihood: &str, mechanism: &str, line: usize, test: &str, expected: [&str; 2]| {
        json!({"likelihood": likelihood, "mechanism": mechanism, "evidence": [{"file": "src/lib.rs", "line": line}],
               "confirm": {"run_test": test}, "expect_if_true": expected[0], "expect_if_false": expected[1]})
    };
    scenario.say(
        "small",
        &json!({"hypotheses": [
            one("high", "`add` subtracts its second argument, so that every sum but those with zero is too small", 6,
                "tests/add.rs::adds_two_numbers", ["fails", "passes"]),
            one("medium", "`one` was changed to another constant, on which callers of the library silently depend", 2,
                "demo::old one_is_one", ["fails", "passes"]),
            one("low", "another program writes into the directory while tests read their fixtures from it", 1,
                "writes", ["fails", "passes"]),
            one("low", "overflow of the smallest integer wraps around where debug assertions are off", 5,
                "overflow_is_caught", ["fails", "passes"]),
        ]}),
    );
    let error = "thread 'adds_two_numbers' panicked at tests/add.rs:3:5:\nassertion `left == right` failed\n  left: -1\n right: 3";
    let result = scenario.call(
        "debug",
        json!({"error": error, "repro_cmd": "cargo test --test add"}),
    );
    assert_eq!(
        (&result["status"], &result["verified"]),
        (&json!("pass"), &json!(true)),
        "{result:#}"
    );
    let came: Vec<(&str, &Value)> = result["details"]["hypotheses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| (text(h, "outcome"), &h["as_predicted"]))
        .collect();
    let (yes, no, unknown) = (json!(true), json!(false), Value::Null);
    assert_eq!(
        came,
        [
            ("fails", &yes),
            ("passes", &no),
            ("passes", &no),
            ("could_not_run", &unknown)
        ],
        "{result:#}"
    );
    let last = &result["details"]["hypotheses"][3];
    assert_eq!(
        text(last, "outcome_detail"),
        "no test is called `overflow_is_caught`"
    );
    assert!(text(&result, "message").contains("could not be run: "));
    assert_eq!(
        result["details"]["taken_back"],
        json!(["Cargo.lock", "left.txt", "tests/old.rs"]),
        "{result:#}"
    );
    assert_eq!(
        result["details"]["left_behind"],
        json!(["target"]),
        "{result:#}"
    );
    assert_eq!(
        scenario.tree(),
        before,
        "what the tests wrote is gone, what they overwrote is back"
    );
}

#[test]
fn third_visit_advises_questioning_the_design() {
    let mut scenario = project(&["small"]);
    // The same error, each time told a little differently.
    for (n, error) in [
        ERROR,
        "today: RowError: the first row has no fields",
        "report.sh:6: RowError: the first row has no fields\nagain",
    ]
    .iter()
    .enumerate()
    {
        scenario.say("small", &sound());
        let result = scenario.call("debug", json!({"error": error, "session_id": "again"}));
        assert_eq!(
            (&result["status"], &result["details"]["visit"]),
            (&json!("pass"), &json!(n + 1)),
            "{result:#}"
        );
        assert_eq!(
            result["details"].get("advice").is_some(),
            n == 2,
            "{result:#}"
        );
        assert_eq!(
            text(&result, "message").contains("question the design"),
            n == 2,
            "{result:#}"
        );
        assert_eq!(
            scenario.asked_of("small")[n].contains("question the design"),
            n == 2
        );
    }
    for (error, session) in [("KeyError: 'colour'", "again"), (ERROR, "another")] {
        scenario.say("small", &sound());
        let result = scenario.call("debug", json!({"error": error, "session_id": session}));
        assert_eq!(result["details"]["visit"], 1, "{error} in {session}");
    }
}

#[test]
fn verifier_sees_cited_lines_and_runs() {
    let file = |scenario: &crate::support::scenario::Scenario| {
        scenario
            .state
            .path()
            .join("answers.jsonl")
            .display()
            .to_string()
    };
    let scenario = project(&["small", "large"]);
    let more = format!(
        "verifier = \"judge\"\n[backends.judges]\nkind = \"replay\"\ntier = \"subagent\"\nfile = \"{}\"\nmodels = [\"judge\"]\n",
        file(&scenario)
    );
    let mut scenario = scenario.settings(&more);
    let refused = json!({"accept": false, "feedback": "the third cause is contradicted by the lock in line 1"});
    scenario.say("small", &sound());
    scenario.line(&json!({"model": "judge", "answer": refused, "cost_usd": 0.001}));
    scenario.say(
        "large",
        &spoilt(|h| h[2]["title"] = json!("somebody else writes the file")),
    );
    let result = scenario.call("debug", json!({"error": ERROR, "repro_cmd": REPRO}));
    assert_eq!(
        trail(&result),
        "small rejected | large accepted",
        "{result:#}"
    );
    let judged = &scenario.asked_of("judge")[0];
    for part in [
        "4: first=${rows%% *}",
        "RowError",
        "an empty file is not told from a bad one",
        "as predicted",
    ] {
        assert!(judged.contains(part), "{part}: {judged}");
    }
    assert!(scenario.asked_of("large")[0].contains("contradicted by the lock in line 1"));
}

#[test]
fn dry_run_runs_nothing_and_asks_nobody() {
    let mut scenario = project(&["small", "large"]);
    let before = scenario.tree();
    let plan = scenario.call(
        "debug",
        json!({"error": ERROR, "repro_cmd": "touch canary", "dry_run": true}),
    );
    assert_eq!(
        (plan["status"].as_str(), plan["verified"].as_bool()),
        (Some("pass"), Some(false)),
        "{plan:#}"
    );
    assert_eq!(plan["details"]["repro_cmd"], "touch canary");
    let first = &plan["details"]["chain"][0];
    assert!(
        first["prompt_bytes"].as_u64().unwrap() < first["window_bytes"].as_u64().unwrap(),
        "{plan:#}"
    );
    assert!(scenario.asked_of("small").is_empty());
    assert_eq!(scenario.tree(), before);
}

#[test]
fn wrong_arguments_fail_before_anything_runs() {
    let mut scenario = project(&["small"]);
    let before = scenario.tree();
    for (arguments, named) in [
        (json!({"error": "  "}), "error is required"),
        (json!({}), "error"),
        (
            json!({"error": ERROR, "repro_cmd": "sh 'report.sh"}),
            "`repro_cmd` is not a command",
        ),
        (
            json!({"error": ERROR, "repro_cmd": "touch canary", "files": ["none.sh"]}),
            "files: there is no file `none.sh`",
        ),
        (
            json!({"error": ERROR, "repro_cmd": "touch canary", "files": ["../x"]}),
            "lies outside the project",
        ),
        (
            json!({"error": ERROR, "repro_cmd": "touch canary", "test_cmd": "a 'b"}),
            "`test_cmd` is not a command",
        ),
        (
            json!({"error": ERROR, "project_root": "/no/such/project"}),
            "does not exist",
        ),
        (json!({"error": ERROR, "model": "nobody"}), "nobody"),
    ] {
        let result = scenario.call("debug", arguments.clone());
        assert_eq!(result["status"], "error", "{arguments}: {result:#}");
        assert!(
            text(&result, "message").contains(named),
            "{arguments}: {result:#}"
        );
    }
    assert!(scenario.asked_of("small").is_empty());
    assert_eq!(scenario.tree(), before);
}
