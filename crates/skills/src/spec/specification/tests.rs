//! Breaks each check once, and accepts honest answers without flags.

use serde_json::{Value, json};

use super::*;

fn requirements() -> RequirementItems {
    RequirementItems::split(ASKED).expect("three")
}

/// A draft that passes every check.
fn good() -> Value {
    json!({
        "problem": "People copy tables by hand, which loses rows.",
        "criteria": [
            {"id": "AC-1", "text": "Every row of a CSV file becomes one record", "test": {"command": "cargo test csv"}},
            {"id": "AC-2", "text": "JSON output of 10 MB is written fast", "test":
                {"metric": "time to write JSON", "comparison": "<=", "value": 2, "unit": "s"}},
            {"id": "AC-3", "text": "A broken row is named", "test":
                {"given": "a CSV file whose row 3 is broken", "when": "it is read", "then": "the message names row 3"}},
        ],
        "constraints": ["Runs without a network"],
        "out_of_scope": ["Excel files are not read"],
        "approach": [{"decision": "Read row by row", "rationale": "Memory stays below 50 MB for any file"}],
        "risks": [{"risk": "Unknown encodings", "mitigation": "Refuse what is not UTF-8, naming the byte"}],
        "requirement_map": [
            {"requirement": "R1", "criteria": ["AC-1", "AC-3"]},
            {"requirement": "R2", "criteria": ["AC-2"]},
            {"requirement": "R3", "out_of_scope": 1},
        ],
        "questions": [],
    })
}

fn examined(reply: &Value) -> ExaminedSpecification {
    match read(reply).expect("the shape") {
        SpecificationAnswer::Draft(draft) => draft.examine(&requirements()),
        SpecificationAnswer::Questions(questions) => panic!("questions: {questions:?}"),
    }
}

/// The failed checks, such as `ids: …`.
fn faults(reply: &Value) -> Vec<String> {
    let failed = |checks: &[Check]| {
        checks
            .iter()
            .filter(|c| !c.passed())
            .map(|c| format!("{}: {}", c.id(), c.detail()))
            .collect()
    };
    match read(reply) {
        Ok(SpecificationAnswer::Draft(draft)) => failed(&draft.examine(&requirements()).checks),
        Ok(SpecificationAnswer::Questions(questions)) => {
            failed(&[examine_questions(&questions, &requirements())])
        }
        Err(check) => failed(&[check]),
    }
}

/// The flags of a structurally valid draft, such as `unrelated, R2: …`.
fn flags(asked: &str, reply: &Value) -> Vec<String> {
    let Ok(SpecificationAnswer::Draft(draft)) = read(reply) else {
        panic!("no draft: {reply}")
    };
    let examined = draft.examine(&RequirementItems::split(asked).expect("not too long"));
    assert!(
        examined.checks.iter().all(Check::passed),
        "{:#?}",
        examined.checks
    );
    examined.flags.iter().map(ToString::to_string).collect()
}

const ASKED: &str = "- read CSV files\n- write JSON\n- support Excel files";

fn with(pointer: &str, value: Value) -> Value {
    let mut reply = good();
    *reply
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("no {pointer}")) = value;
    reply
}

#[test]
fn complete_specification_passes() {
    let examined = examined(&good());
    assert!(
        examined.checks.iter().all(Check::passed),
        "{:#?}",
        examined.checks
    );
    let ids: Vec<_> = examined.checks.iter().map(Check::id).collect();
    assert_eq!(ids, ["sections", "ids", "testable", "reasons", "mapped"]);
    assert!(examined.flags.is_empty(), "{:?}", examined.flags);
    let spec = examined.specification.expect("all checks passed");
    assert_eq!(
        spec.criteria[1].test.to_string(),
        "time to write JSON ≤ 2 s"
    );
    assert_eq!(
        (
            spec.requirement_map[0].criteria.len(),
            &spec.requirement_map[2].out_of_scope[..]
        ),
        (2, &[1][..])
    );
}

#[test]
fn structural_fault_is_rejected_and_named() {
    let rows: Vec<(&str, Value, &str)> = vec![
        (
            "/problem",
            json!(""),
            "sections: the section `problem` must not be missing or empty",
        ),
        (
            "/problem",
            json!("  ... "),
            "sections: the section `problem`",
        ),
        (
            "/constraints",
            json!([]),
            "sections: the section `constraints`",
        ),
        (
            "/constraints",
            json!(null),
            "sections: the section `constraints`",
        ),
        (
            "/constraints",
            json!(["Offline", " "]),
            "sections: these say nothing: constraint 2",
        ),
        ("/approach", json!([]), "sections: the section `approach`"),
        ("/risks", json!([]), "sections: the section `risks`"),
        (
            "/criteria/0/text",
            json!(""),
            "sections: these say nothing: criterion 1",
        ),
        (
            "/criteria/1/id",
            json!("AC-3"),
            "ids: two criteria have the id `AC-3`",
        ),
        (
            "/criteria/1/id",
            json!("ac-3"),
            "ids: two criteria have the id `AC-3`",
        ),
        (
            "/criteria/2/id",
            json!(""),
            "ids: criterion 3 has the id ``",
        ),
        (
            "/criteria/2/id",
            json!("the last one"),
            "ids: criterion 3 has the id `the last one`",
        ),
        (
            "/criteria/2/id",
            json!("R3"),
            "ids: criterion 3 has the id `R3`",
        ),
        (
            "/criteria/0/test",
            json!(null),
            "testable: criterion `AC-1` has no test",
        ),
        (
            "/criteria/2/test/then",
            json!("???"),
            "testable: criterion `AC-3` has a test without `then`",
        ),
        (
            "/approach/0/rationale",
            json!(""),
            "reasons: decision 1 (`Read row by row`) has no rationale",
        ),
        (
            "/approach/0/rationale",
            json!("Read, row by row."),
            "reasons: the rationale of decision 1 only repeats it",
        ),
        (
            "/risks/0/mitigation",
            json!("-"),
            "reasons: risk 1 (`Unknown encodings`) has no mitigation",
        ),
        (
            "/requirement_map/1",
            json!({"requirement": "R1", "criteria": ["AC-1"]}),
            "mapped: requirement R2 (`write JSON`)",
        ),
        (
            "/requirement_map/1/criteria",
            json!([]),
            "mapped: R2 (`write JSON`) is mapped to nothing",
        ),
        (
            "/requirement_map/1/criteria",
            json!(["AC-9"]),
            "mapped: R2 is mapped to `AC-9`, but there is no such criterion",
        ),
        (
            "/criteria/1/test",
            json!({"command": "cargo test csv"}),
            "testable: the criteria `AC-1`, `AC-2` have the same test",
        ),
        (
            "/requirement_map/1",
            json!({"requirement": "R2", "background": true}),
            "mapped: R2 (`write JSON`) is called background, but it is an item of a list",
        ),
        (
            "/requirement_map/2/out_of_scope",
            json!(2),
            "mapped: R3 is mapped to number 2 of `out_of_scope`",
        ),
        (
            "/requirement_map/2/out_of_scope",
            json!(0),
            "mapped: R3 is mapped to number 0 of `out_of_scope`",
        ),
        (
            "/requirement_map/2",
            json!({"requirement": "R3", "question": 1}),
            "mapped: R3 is mapped to number 1 of `questions`",
        ),
        (
            "/requirement_map/2/requirement",
            json!("R7"),
            "mapped: `requirement_map` names `R7`; the requirements are R1 to R3",
        ),
        (
            "/questions",
            json!([{"requirement": "R1", "question": "Which dialect"}]),
            "questions: question 1 (`Which dialect`)",
        ),
        (
            "/problem",
            json!(7),
            "shape: the answer does not have the shape asked for: at `problem`",
        ),
        (
            "/constraints",
            json!("one"),
            "shape: the answer does not have the shape",
        ),
        (
            "/constraints",
            json!(vec!["x y"; 61]),
            "shape: `constraints` has 61 entries; 60 is the most",
        ),
        (
            "/problem",
            json!("long ".repeat(2000)),
            "shape: the problem has 10000 bytes",
        ),
    ];
    assert_eq!(faults(&good()), Vec::<String>::new());
    let count = rows.len();
    for (pointer, value, expected) in rows {
        let found = faults(&with(pointer, value.clone()));
        let first = found
            .first()
            .unwrap_or_else(|| panic!("{pointer} = {value} was not noticed"));
        assert!(
            found.iter().any(|fault| fault.starts_with(expected)),
            "{pointer} = {value}: {found:?}"
        );
        assert!(first.len() < 700, "{first}");
    }
    assert_eq!(count, 32);
    let error = faults(&with("/criteria/0/test", json!("cargo test")));
    assert!(
        error[0].contains("`criteria[0].test`")
            && error[0].contains("an object that holds one kind of test"),
        "{error:?}"
    );
}

#[test]
fn extra_keys_reject_nothing() {
    for place in ["", "/criteria/0", "/criteria/0/test", "/risks/0"] {
        let mut more = good();
        more.pointer_mut(place).expect("an object")["title"] = json!("Import");
        assert_eq!(faults(&more), Vec::<String>::new(), "{place}");
    }
}

#[test]
fn empty_out_of_scope_breaks_section_and_mapping() {
    let found = faults(&with("/out_of_scope", json!([])));
    assert!(
        found[0].starts_with("sections: the section `out_of_scope`"),
        "{found:?}"
    );
    assert!(
        found[1].starts_with("mapped: R3 is mapped to number 1 of `out_of_scope`, which has 0"),
        "{found:?}"
    );
}

#[test]
fn requirement_may_map_to_its_own_question() {
    let mut reply = with(
        "/requirement_map/2",
        json!({"requirement": "R3", "question": 1}),
    );
    reply["questions"] = json!([{"requirement": "R3", "question": "Which versions of Excel?"}]);
    assert_eq!(faults(&reply), Vec::<String>::new());
    reply["questions"][0]["requirement"] = json!("R1");
    assert!(
        faults(&reply)[0].starts_with("mapped: R3 is mapped to question 1, which is about `R1`"),
        "{:?}",
        faults(&reply)
    );
}

fn faults_about(asked: &str, reply: &Value) -> Vec<String> {
    let Ok(SpecificationAnswer::Draft(draft)) = read(reply) else {
        panic!("no draft: {reply}")
    };
    let checks = draft
        .examine(&RequirementItems::split(asked).expect("not too long"))
        .checks;
    checks
        .iter()
        .filter(|c| !c.passed())
        .map(|c| c.detail().to_owned())
        .collect()
}

#[test]
fn map_must_not_avoid_the_work() {
    let mut reply = good();
    reply["out_of_scope"] = json!(["Reading CSV files", "Writing JSON", "Excel files"]);
    let out = |n: usize| json!({"requirement": format!("R{n}"), "out_of_scope": n});
    reply["requirement_map"] = json!([out(1), out(2), out(3)]);
    assert!(
        faults(&reply)[0].starts_with("mapped: no requirement leads to a criterion"),
        "{:?}",
        faults(&reply)
    );
    reply["requirement_map"][0] = json!({"requirement": "R1", "criteria": ["AC-1"]});
    assert_eq!(
        faults(&reply),
        Vec::<String>::new(),
        "requirements may be excluded"
    );
    let four = "- read CSV files\n- write JSON\n- support Excel files\n- read XML files";
    reply["out_of_scope"]
        .as_array_mut()
        .expect("a list")
        .push(json!("XML files"));
    reply["requirement_map"]
        .as_array_mut()
        .expect("a list")
        .push(out(4));
    let most = "mostly_excluded, R2, R3, R4: 3 of 4 requirements are put out of scope";
    assert_eq!(flags(four, &reply), [most]);
    let declined = "- read CSV files\n- no JSON\n- Excel files later\n- XML files are out of scope";
    assert_eq!(
        flags(declined, &reply),
        Vec::<String>::new(),
        "an exclusion answers a declined requirement"
    );

    let mut one = good();
    one["criteria"] = json!([{"id": "AC-1", "text": "CSV, JSON, Excel and XML files work", "test": {"command": "cargo test"}}]);
    one["requirement_map"] = (1..=4)
        .map(|n| json!({"requirement": format!("R{n}"), "criteria": ["AC-1"]}))
        .collect();
    let alone = "one_for_all, criterion `AC-1`: alone answers for 4 requirements (R1, R2, R3, R4)";
    assert_eq!(flags(four, &one), [alone]);
}

#[test]
fn most_sentences_cannot_be_background() {
    let letter = "Hi all,\nOur people copy tables by hand. It must read CSV files. It must write JSON. \
                  That takes Ingrid half a day.\nThanks,\nMarijke";
    let mut reply = good();
    let background = |n: usize| json!({"requirement": format!("R{n}"), "background": true});
    let to = |n: usize, id: &str| json!({"requirement": format!("R{n}"), "criteria": [id]});
    reply["requirement_map"] = json!([background(1), to(2, "AC-1"), to(3, "AC-2"), background(4)]);
    assert_eq!(flags(letter, &reply), Vec::<String>::new());
    let text = "CSV comes from the bank. JSON goes to the shop. Both are large.";
    reply["requirement_map"] = json!([background(1), background(2), to(3, "AC-1")]);
    reply["criteria"][0]["text"] = json!("Large CSV files are read");
    let found = faults_about(text, &reply);
    assert!(
        found[0].starts_with("2 of 3 sentences are called background (R1, R2)"),
        "{found:?}"
    );
}

#[test]
fn unrelated_criterion_is_flagged_unless_explained() {
    let asked = "- read CSV files\n- write JSON\n- support Excel files\n- GDPR applies";
    let mut reply = good();
    let erased = json!({"id": "AC-4", "text": "A person can have their rows erased", "test":
        {"given": "a row with a name", "when": "erasure is asked for", "then": "the name is nowhere on disk"}});
    reply["criteria"]
        .as_array_mut()
        .expect("a list")
        .push(erased);
    let to = json!({"requirement": "R4", "criteria": ["AC-4"]});
    reply["requirement_map"]
        .as_array_mut()
        .expect("a list")
        .push(to);
    let found = flags(asked, &reply);
    assert!(
        found[0].starts_with("unrelated, R4: is mapped to what has none of its words (gdpr"),
        "{found:?}"
    );
    reply["constraints"] = json!(["GDPR"]);
    assert_eq!(flags(asked, &reply), Vec::<String>::new());
    reply["requirement_map"][1]["criteria"] = json!(["AC-4"]);
    reply["constraints"] = json!(["GDPR", "JSON is valid"]);
    let found = flags(asked, &reply);
    assert!(
        found[0].starts_with("unrelated, R2: ") && found[0].ends_with("; `AC-2` does"),
        "{found:?}"
    );
}

#[test]
fn questions_alone_are_a_valid_answer() {
    let ask = |questions: Value| faults(&json!({"questions": questions}));
    let one = json!({"requirement": "R1", "question": "Which dialect of CSV?"});
    assert_eq!(ask(json!([one])), Vec::<String>::new());
    for (questions, expected) in [
        (json!([one, one]), "question 2 repeats question 1"),
        (
            json!([{"requirement": "R1", "question": "Tell me more."}]),
            "does not end with a question mark",
        ),
        (
            json!([{"requirement": "", "question": "What for?"}]),
            "name the requirement it is about: R1 to R3",
        ),
        (
            json!([{"requirement": "R9", "question": "What for?"}]),
            "question 1 is about `R9`",
        ),
        (
            json!([{"requirement": "R1", "question": "???"}]),
            "asks nothing",
        ),
        (
            json!(
                (0..11)
                    .map(|n| json!({"requirement": "R1", "question": format!("Is it {n}?")}))
                    .collect::<Vec<_>>()
            ),
            "11 questions",
        ),
    ] {
        let found = ask(questions.clone());
        assert!(
            found.first().is_some_and(|fault| fault.contains(expected)),
            "{questions}: {found:?}"
        );
    }
    assert!(
        ask(json!([]))[0].starts_with("sections: the sections `problem`, `criteria`"),
        "an empty answer is not a question"
    );
}

#[test]
fn nulls_and_empty_strings_count_as_left_out() {
    let mut reply = good();
    reply["questions"] = json!(null);
    reply["criteria"][0]["test"] =
        json!({"command": "cargo test csv", "metric": "", "value": null, "given": ""});
    reply["requirement_map"][0]["out_of_scope"] = json!(null);
    assert_eq!(faults(&reply), Vec::<String>::new());
}

#[test]
fn written_file_must_match_expected() {
    let check = check_written(b"abc", Ok(b"abc".to_vec()));
    assert!(
        check.passed()
            && check
                .detail()
                .ends_with("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    );
    assert!(!check_written(b"abc", Ok(b"abd".to_vec())).passed());
    assert!(!check_written(b"abc", Err(io::ErrorKind::NotFound.into())).passed());
}
