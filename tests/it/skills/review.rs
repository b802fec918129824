//! Reviews over stdio with recorded reviewers: what stands is what the server found in the files itself.

mod agent;
mod concurrent;
mod input;
mod parts;
mod range;

use crate::support::review_project::{
    both, clean, finding, findings, good, good_but, reviewed, shop,
};
use serde_json::{Value, json};

use crate::support::scenario::{gate, trail};

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("no `{key}` in {value}"))
}

#[test]
fn sound_review_is_accepted_at_first_tier() {
    let mut scenario = shop(&["small", "large"]).answers("small", &good());
    let before = scenario.tree();
    let review = scenario.call("review", both());
    assert_eq!(
        (&review["status"], &review["verified"]),
        (&json!("pass"), &json!(true)),
        "{review:#}"
    );
    assert_eq!(
        (trail(&review).as_str(), text(&review, "model_used")),
        ("small accepted", "small")
    );
    assert_eq!(text(&review, "message"), "3 warnings in 2 files");
    let details = &review["details"];
    assert_eq!(
        details["counts"],
        json!({"critical": 0, "warning": 3, "suggestion": 0, "dropped": 0})
    );
    assert_eq!(
        (
            &details["findings"][2]["line"],
            &details["findings"][2]["end_line"]
        ),
        (&json!(15), &json!(16))
    );
    assert_eq!(details["findings"][0]["source"], "model");
    assert_eq!(
        (
            &details["coverage"][0]["read"],
            &details["coverage"][0]["lines"]
        ),
        (&json!("full"), &json!(16))
    );
    let sums = std::process::Command::new("sha256sum")
        .arg(scenario.root().join("src/shop.py"))
        .output();
    if let Ok(sums) = sums {
        assert!(
            String::from_utf8_lossy(&sums.stdout)
                .starts_with(text(&details["coverage"][0], "sha256"))
        );
    }
    assert_eq!(text(&review, "runner_output").lines().count(), 3);
    assert!(
        text(&review, "runner_output")
            .starts_with("warning src/shop.py:5 an empty list divides by zero\n")
    );
    for id in [
        "untouched",
        "shape",
        "citations",
        "coverage",
        "checks",
        "proof",
    ] {
        assert_eq!(gate(&review, id)["pass"], true, "{id}");
    }
    assert_eq!(scenario.tree(), before);
    let asked = &scenario.asked_of("small")[0];
    assert!(
        asked.contains("5:     return sum(prices) / len(prices)\n")
            && asked.contains("\"src/util.py\">"),
        "{asked}"
    );
}

#[test]
fn critical_finding_is_a_verified_fail() {
    let reply = good_but(|r| r["findings"][1]["severity"] = json!("CRITICAL"));
    let mut scenario = shop(&["small"]).answers("small", &reply);
    let review = scenario.call("review", both());
    assert_eq!(
        (&review["status"], &review["verified"]),
        (&json!("fail"), &json!(true)),
        "{review:#}"
    );
    assert_eq!(
        text(&review, "message"),
        "1 critical, 2 warnings in 2 files"
    );
    assert_eq!(review["details"]["findings"][0]["line"], 9, "gravest first");
}

/// What is wrong with a review, and what the next tier must be told.
pub(crate) type Row = (&'static str, Value, &'static [&'static str]);

pub(crate) fn rows() -> Vec<Row> {
    let each = |change: &dyn Fn(&mut Value)| {
        good_but(|r| {
            r["findings"]
                .as_array_mut()
                .unwrap()
                .iter_mut()
                .for_each(change);
        })
    };
    vec![
        (
            "invented line numbers",
            each(&|f| f["line"] = json!(f["line"].as_u64().unwrap() + 40)),
            &[
                "3 of 3 findings do not hold",
                "`src/shop.py` has 16 lines, so there is no line 45",
            ],
        ),
        (
            "wrong quotes",
            each(&|f| f["quote"] = json!("eval(name)")),
            &[
                "3 of 3",
                "`src/shop.py:9` does not say `eval(name)` but `os.system(\"ls \" + name)`",
            ],
        ),
        (
            "findings outside the scope",
            each(&|f| f["file"] = json!("src/other.py")),
            &["`src/other.py` is not among the files that were shown, so it is out of scope"],
        ),
        (
            "nothing said",
            each(&|f| f["why"] = json!("")),
            &["its `why` is empty"],
        ),
        (
            "severities of its own",
            each(&|f| f["severity"] = json!("P0")),
            &["its severity is `P0` instead of `critical`, `warning` or `suggestion`"],
        ),
        (
            "five copies of one idea",
            good_but(|r| {
                r["findings"] = json!(vec![
                    finding(
                        5,
                        "return sum(prices) / len(prices)",
                        "divides by zero"
                    );
                    5
                ]);
            }),
            &[
                "4 of 5 findings do not hold",
                "says the same as one before it",
            ],
        ),
        (
            "a lazy all clear",
            json!({"findings": [], "reviewed": []}),
            &["does not say what was checked in `src/shop.py`, `src/util.py`"],
        ),
        (
            "an all clear without the iron laws",
            good_but(|r| {
                *r = clean(&["src/shop.py", "src/util.py"]);
                r["reviewed"][0]["checks"] = json!(["style"]);
                r["reviewed"][1]["checks"] = json!(["style"]);
            }),
            &["leave out `security`, `errors`, `validation`, `tests`"],
        ),
        (
            "a file passed over",
            good_but(|r| r["reviewed"] = reviewed(&["src/shop.py"])),
            &["does not say what was checked in `src/util.py`"],
        ),
        (
            "another shape",
            json!({"verdict": "approve", "summary": "ship it"}),
            &["`findings` is missing in the reply"],
        ),
    ]
}

#[test]
fn malformed_reviews_are_refused_with_reasons() {
    let rows = rows();
    assert_eq!(
        rows.len(),
        10,
        "of the 15 bad reviews that were refused; the other 5 are flagged below"
    );
    for (name, bad, reasons) in rows {
        let mut scenario = shop(&["small", "large"])
            .answers("small", &bad)
            .answers("large", &good());
        let review = scenario.call("review", both());
        assert_eq!(
            trail(&review),
            "small rejected | large accepted",
            "{name}: {review:#}"
        );
        assert_eq!(
            (&review["status"], &review["verified"]),
            (&json!("pass"), &json!(true)),
            "{name}"
        );
        let feedback = text(&review["attempts"][0], "feedback");
        let told = &scenario.asked_of("large")[0];
        assert!(
            told.contains("Prior attempt feedback: [1 · small · rejected]"),
            "{name}: {told}"
        );
        for reason in reasons {
            assert!(feedback.contains(reason), "{name}: {feedback}");
            assert!(told.contains(reason), "{name}: {told}");
        }
    }
}

#[test]
fn quotes_as_models_write_them_are_accepted() {
    let (quote, why) = (
        "quote",
        "the name is run by a shell, so that it can hold any command",
    );
    for (said, changes) in [
        ("part of the line", json!({quote: "\"ls \" + name"})),
        (
            "in ticks, with its number",
            json!({quote: "`9:     os.system(\"ls \" + name)`"}),
        ),
        ("abridged", json!({quote: "os.system(... + name)"})),
        (
            "with lines as a range",
            json!({"line": "8-9", quote: "def run(name):\n    os.system(\"ls \" + name)"}),
        ),
        ("with an end that does not fit", json!({"end_line": 12})),
    ] {
        let mut one = finding(9, "os.system(\"ls \" + name)", why);
        one.as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        let mut scenario =
            shop(&["small"]).answers("small", &good_but(|r| r["findings"] = json!([one])));
        let review = scenario.call("review", both());
        assert_eq!(trail(&review), "small accepted", "{said}: {review:#}");
        assert_eq!(text(&review, "message"), "1 warning in 2 files", "{said}");
    }
}

#[test]
fn the_same_reviews_without_their_defect_are_accepted() {
    let shopped = ["src/shop.py", "src/util.py"];
    let once = json!({"findings": [finding(5, "return sum(prices) / len(prices)", "divides by zero")], "reviewed": reviewed(&shopped)});
    for (reply, message) in [
        (once, "1 warning in 2 files"),
        (
            clean(&shopped),
            "no findings in 2 files; looked at security, ",
        ),
    ] {
        let mut scenario = shop(&["small"]).answers("small", &reply);
        let review = scenario.call("review", both());
        assert_eq!(
            (&review["status"], trail(&review).as_str()),
            (&json!("pass"), "small accepted"),
            "{review:#}"
        );
        assert!(text(&review, "message").starts_with(message), "{review:#}");
    }
}

#[test]
fn half_of_the_findings_may_be_dropped() {
    let mut reply = good();
    reply["findings"][0]["line"] = json!(12);
    let mut scenario = shop(&["small"]).answers("small", &reply);
    let review = scenario.call("review", both());
    assert_eq!(
        text(&review, "message"),
        "2 warnings in 2 files; 1 finding of the model did not hold and was dropped"
    );
    assert_eq!(review["details"]["dropped"][0]["finding"], 1);
    assert!(
        text(&review["details"]["dropped"][0], "because").contains("`src/shop.py:12` does not say"),
        "{review:#}"
    );
    assert!(
        text(gate(&review, "citations"), "detail")
            .starts_with("1 of 3 findings dropped: finding 1: ")
    );
}

#[test]
fn shifted_lines_are_corrected_changed_quotes_refused() {
    let shifted = |by: i64| {
        let shift = |f: &mut Value| f["line"] = json!(f["line"].as_i64().unwrap() + by);
        good_but(|r| {
            r["findings"]
                .as_array_mut()
                .unwrap()
                .iter_mut()
                .for_each(shift);
        })
    };
    let mut scenario = shop(&["small"]);
    for by in [-3, -1, 1, 3] {
        scenario.say("small", &shifted(by));
        let review = scenario.call("review", both());
        assert_eq!(
            (&review["status"], trail(&review).as_str()),
            (&json!("pass"), "small accepted"),
            "{by}: {review:#}"
        );
        for (found, right) in review["details"]["findings"]
            .as_array()
            .unwrap()
            .iter()
            .zip(findings())
        {
            assert_eq!(found["line"], right["line"], "{by}");
            assert_eq!(
                found["corrected_from"].as_i64(),
                right["line"].as_i64().map(|line| line + by),
                "marked"
            );
        }
        assert!(
            text(&review, "runner_output")
                .contains(&format!("src/shop.py:5 (line {} corrected)", 5 + by))
        );
    }
    // A quote that stands nowhere within three lines is still dropped.
    let mut cases: Vec<Value> = vec![shifted(-4), shifted(100)];
    // One character of each kind that the quotes have: a letter, a digit or sign, a bracket, a quotation mark.
    for kind in [
        char::is_alphabetic,
        |c: char| "/+.".contains(c),
        |c: char| "()".contains(c),
        |c: char| ":\"".contains(c),
    ] {
        let change = |f: &mut Value| {
            let mut letters: Vec<char> = text(f, "quote").chars().collect();
            let at = letters
                .iter()
                .position(|c| kind(*c))
                .unwrap_or_else(|| letters.len() - 1);
            letters[at] = if letters[at] == 'x' { 'y' } else { 'x' };
            f["quote"] = json!(letters.into_iter().collect::<String>());
        };
        cases.push(good_but(|r| {
            r["findings"]
                .as_array_mut()
                .unwrap()
                .iter_mut()
                .for_each(change);
        }));
    }
    for case in &cases {
        scenario.say("small", case);
        let review = scenario.call("review", both());
        assert_eq!(
            (&review["status"], trail(&review).as_str()),
            (&json!("error"), "small rejected"),
            "{case:#}"
        );
        let feedback = text(&review["attempts"][0], "feedback");
        assert!(
            feedback.starts_with("3 of 3 findings do not hold"),
            "{feedback}"
        );
        assert_eq!(
            text(&review["attempts"][0], "runner_output")
                .lines()
                .count(),
            findings().len()
        );
    }
    assert_eq!(cases.len(), 6);
    scenario.say("small", &good());
    assert_eq!(scenario.call("review", both())["status"], "pass");
}
