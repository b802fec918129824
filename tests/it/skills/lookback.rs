//! What is made of past work: notes from a session, training data from its trail, and knowledge in the next brief.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::mcp_session::result_of;
use crate::support::review_project::{both, good, good_but, shop};
use crate::support::scenario::Scenario;

/// A shop with notes, training data and the whole exchange of its own.
fn workshop() -> Scenario {
    let scenario = shop(&["small", "large"]).env("SUPERVISOR_LOG__EXCHANGE", "full");
    let (notes, data) = (
        scenario.state.path().join("notes"),
        scenario.state.path().join("data"),
    );
    scenario
        .env("SUPERVISOR_BRAIN__DIR", notes.to_str().unwrap())
        .env("XDG_DATA_HOME", data.to_str().unwrap())
}

/// A tool that takes no `project_root`.
fn ask(scenario: &mut Scenario, id: u32, tool: &str, arguments: Value) -> Value {
    let session = scenario.session();
    session.call(id, tool, arguments);
    result_of(&session.reply_after_tests(id))
}

fn refused(n: usize) -> Value {
    good_but(|review| {
        for finding in review["findings"].as_array_mut().unwrap() {
            finding["quote"] = json!(format!("no line of the shop says this ({n})"));
        }
    })
}

/// Two reviews, each refused once and then accepted, and one that passes at once.
fn worked(session: &str) -> Scenario {
    let mut scenario = workshop();
    for n in 1..=3 {
        if n < 3 {
            scenario.say("small", &refused(n));
        }
        scenario.say(if n < 3 { "large" } else { "small" }, &good());
        let mut arguments = both();
        arguments["session_id"] = json!(session);
        arguments["context"] = json!(format!("look number {n}"));
        let review = scenario.call("review", arguments);
        assert_eq!(review["status"], "pass", "{review:#}");
    }
    scenario
}

fn lines(path: PathBuf) -> Vec<Value> {
    let files = fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| fs::read_to_string(entry.path()).unwrap());
    files
        .flat_map(|text| {
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn trainer_writes_exactly_the_logged_pairs() {
    let mut scenario = worked("trail-1");
    let score = |id: &str, score: u8| json!({"id": id, "score": score, "why": "w"});
    let scores = [
        score("d1", 4),
        score("s1", 1),
        score("d2", 3),
        score("s2", 2),
        score("s3", 2),
    ];
    scenario.say("small", &json!({"scores": scores}));
    let label = |id: &str| json!({"id": id, "label": "quote lines as they stand", "tags": ["Python", "code review"]});
    scenario.say("small", &json!({"labels": [label("d1"), label("d2")]}));
    let trained = ask(
        &mut scenario,
        90,
        "trainer",
        json!({"session_id": "trail-1"}),
    );
    assert_eq!(
        (&trained["status"], &trained["verified"]),
        (&json!("pass"), &json!(true)),
        "{trained:#}"
    );
    assert_eq!(trained["details"]["kept"], 2, "{trained:#}");
    let training = scenario.state.path().join("data/supervisor/training");
    let pairs = lines(training.join("dpo"));
    assert_eq!(
        (pairs.len(), lines(training.join("sft")).len()),
        (2, 0),
        "{trained:#}"
    );
    for (n, pair) in pairs.iter().enumerate() {
        let said = |side: &str| {
            serde_json::from_str::<Value>(pair[side][0]["content"].as_str().unwrap()).unwrap()
        };
        assert_eq!((said("rejected"), said("chosen")), (refused(n + 1), good()));
        assert_eq!(
            (&pair["prompt"][0]["role"], &pair["prompt"][1]["role"]),
            (&json!("system"), &json!("user"))
        );
        let prompt = pair["prompt"][1]["content"].as_str().unwrap();
        assert!(
            prompt.contains(&format!("look number {}", n + 1)) && !prompt.contains("Prior attempt"),
            "{prompt}"
        );
        assert_eq!(pair["tags"], json!(["python", "code-review"]));
        assert!(
            !pair.to_string().contains("trail-1")
                && !pair.to_string().contains(scenario.root().to_str().unwrap())
        );
    }
    // Once more: what is written stays written once.
    scenario.say(
        "small",
        &json!({"scores": [score("s1", 1), score("s2", 2), score("s3", 2)]}),
    );
    let again = ask(
        &mut scenario,
        91,
        "trainer",
        json!({"session_id": "trail-1"}),
    );
    assert_eq!(
        (&again["status"], &again["verified"]),
        (&json!("pass"), &json!(false)),
        "{again:#}"
    );
    assert_eq!(
        again["details"]["skipped"]["written before"], 2,
        "{again:#}"
    );
    assert_eq!(lines(training.join("dpo")).len(), 2);
}

#[test]
fn missing_exchanges_are_counted_and_scores_checked() {
    let mut scenario = worked("trail-2");
    scenario.say(
        "small",
        &json!({"scores": [{"id": "d1", "score": 9, "why": ""}]}),
    );
    scenario.say("large", &json!({"scores": []}));
    let refused = ask(
        &mut scenario,
        90,
        "trainer",
        json!({"session_id": "trail-2"}),
    );
    assert_eq!(refused["status"], "error", "{refused:#}");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("the score of `d1` is 9"),
        "{refused:#}"
    );
    for entry in fs::read_dir(scenario.state.path().join("state/exchange"))
        .unwrap()
        .flatten()
    {
        fs::remove_dir_all(entry.path()).unwrap();
    }
    let nothing = ask(&mut scenario, 91, "trainer", json!({"since": "1d"}));
    assert_eq!(
        (&nothing["status"], &nothing["verified"]),
        (&json!("pass"), &json!(false))
    );
    assert!(
        nothing["message"]
            .as_str()
            .unwrap()
            .contains("5 skipped: the question was not kept"),
        "{nothing:#}"
    );
    for (arguments, said) in [
        (json!({}), "say which calls"),
        (json!({"since": "soon"}), "`since`"),
        (json!({"session_id": "../x"}), "is not a name"),
        (json!({"session_id": "s", "min_score": 9}), "1 to 5"),
    ] {
        let answer = ask(&mut scenario, 92, "trainer", arguments);
        assert!(
            answer["status"] == "error" && answer["message"].as_str().unwrap().contains(said),
            "{said}: {answer}"
        );
        assert_eq!(answer["status"], "error", "{said}");
    }
}

#[test]
fn retrospective_notes_are_found_again() {
    let mut scenario = worked("look-back");
    let learning = |title: &str, evidence: &str, recommendation: &str| json!({"title": title, "kind": "failure", "context": "two reviews", "recommendation": recommendation, "evidence": [evidence]});
    let learnings = json!({"learnings": [
        learning("Quotes are copied", "look-back:1", "Copy the cited line into the quote instead of describing it."),
        learning("Invented", "look-back:9", "Something that no call of this session has shown at all."),
        learning("Private", "look-back:2", "Always read src/shop.py before anything else is done."),
    ]});
    scenario.say("small", &learnings);
    let shown = ask(
        &mut scenario,
        90,
        "retrospective",
        json!({"session_id": "look-back"}),
    );
    let details = &shown["details"];
    assert_eq!(
        (&shown["status"], &shown["verified"]),
        (&json!("pass"), &json!(true)),
        "{shown:#}"
    );
    assert_eq!(
        (
            details["learnings"].as_array().unwrap().len(),
            details["dropped"].as_array().unwrap().len()
        ),
        (1, 2),
        "{details:#}"
    );
    assert_eq!(
        (
            &details["stats"]["calls"],
            &details["stats"]["routine"],
            &details["written"]
        ),
        (&json!(3), &json!(1), &json!([]))
    );
    let asked = scenario.asked_of("small").pop().unwrap();
    assert!(
        asked.contains("look-back:1") && !asked.contains("look-back:3:"),
        "{asked}"
    );
    scenario.say("small", &learnings);
    let written = ask(
        &mut scenario,
        91,
        "retrospective",
        json!({"session_id": "look-back", "write": true}),
    );
    assert_eq!(
        written["details"]["written"],
        json!(["quotes-are-copied.md"]),
        "{written:#}"
    );
    let root = scenario.root();
    let found = ask(
        &mut scenario,
        92,
        "brain_query",
        json!({"query": "quotes copied", "project_root": root}),
    );
    let hit = &found["details"]["hits"][0];
    assert_eq!(
        (&hit["path"], &hit["unproven"]),
        (&json!("quotes-are-copied.md"), &Value::Null),
        "{found:#}"
    );
    scenario.say("small", &learnings);
    let known = ask(
        &mut scenario,
        93,
        "retrospective",
        json!({"session_id": "look-back", "write": true}),
    );
    assert_eq!(
        known["details"]["known"][0]["similar"], "quotes-are-copied.md",
        "{known:#}"
    );
    for (arguments, said) in [
        (
            json!({"session_id": "look-bakc"}),
            "did you mean `look-back`?",
        ),
        (json!({"session_id": ""}), "session_id is required"),
        (json!({"session_id": "../x"}), "is not a name"),
    ] {
        let answer = ask(&mut scenario, 94, "retrospective", arguments);
        assert!(
            answer["message"].as_str().unwrap().contains(said),
            "{said}: {answer}"
        );
    }
}

#[test]
fn brief_has_wanted_notes_and_none_stale() {
    for (recall, notes, session) in [
        ("false", false, false),
        ("true", true, false),
        ("\"session\"", true, true),
    ] {
        let mut scenario = workshop().settings(&format!("recall = {recall}\n"));
        let root = scenario.root();
        let note = |title: &str, content: &str, file: &str| json!({"title": title, "content": content, "project_root": root, "evidence": {"files": [file]}});
        for (id, arguments) in [
            (
                80,
                note(
                    "Prices",
                    "Prices of the shop are reviewed as whole cents.",
                    "src/util.py",
                ),
            ),
            (
                81,
                note(
                    "Old",
                    "Review of the shop: this was true once.",
                    "src/shop.py",
                ),
            ),
        ] {
            assert_eq!(
                ask(&mut scenario, id, "brain_write", arguments)["status"],
                "pass"
            );
        }
        let path = root.join("src/shop.py");
        fs::write(&path, fs::read_to_string(&path).unwrap() + "\n").unwrap();
        for n in 1..=2 {
            scenario.say("small", &good());
            let mut arguments = both();
            (arguments["session_id"], arguments["context"]) =
                (json!("s"), json!(format!("prices of the shop, look {n}")));
            assert_eq!(scenario.call("review", arguments)["status"], "pass");
        }
        let asked = scenario.asked_of("small").pop().unwrap();
        assert_eq!(
            asked.contains("## Relevant knowledge"),
            notes || session,
            "{recall}: {asked}"
        );
        assert_eq!(asked.contains("whole cents"), notes, "{recall}: {asked}");
        assert_eq!(
            asked.contains("earlier in this session, review → pass"),
            session,
            "{recall}: {asked}"
        );
        assert!(!asked.contains("true once"), "{recall}: {asked}");
    }
}
