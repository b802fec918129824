//! What is said of arguments that cannot be meant: one sentence, for every tool there is, and exit code 2.

use std::process::Stdio;

use serde_json::{Map, Value, json};

use super::{call, masked, red_demo, text};
use crate::support::mcp_session::{Which, command};
use crate::support::scenario::Scenario;

/// The tools as they are, so that one that is added is tried as well.
fn tools() -> Vec<Value> {
    let output = command(Which::Real)
        .args(["call", "--output", "json"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let tools: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(tools.len() >= 4, "{tools:?}");
    tools
}

/// Calls with these words and takes the one sentence that comes of it.
fn sentence(scenario: &Scenario, words: &[&str]) -> String {
    let output = call(scenario, words);
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(
        (output.status.code(), out.as_str()),
        (Some(2), ""),
        "{words:?}: {said}"
    );
    assert!(
        said.starts_with("error: ") && said.trim_end().lines().count() == 1,
        "{words:?}: {said}"
    );
    masked(said.trim_end(), scenario)
}

fn kind(property: &Value) -> &str {
    let one_of_several = || property["anyOf"].as_array()?.last()?["type"].as_str();
    property["type"]
        .as_str()
        .or_else(one_of_several)
        .unwrap_or("string")
}

/// A value of another kind than the property has.
fn misfit(property: &Value) -> Value {
    match kind(property) {
        "integer" | "number" => json!("plenty"),
        "boolean" => json!("perhaps"),
        "object" => json!("[]"),
        "array" => json!({"no": "list"}),
        _ => json!(["no", "text"]),
    }
}

/// A text that the field takes: one of its words, where only some are known.
fn fitting(schema: &Value, field: &str) -> String {
    let property = &schema["properties"][field];
    let named = property["$ref"]
        .as_str()
        .and_then(|path| schema.pointer(path.trim_start_matches('#')));
    let property = named.unwrap_or(property);
    let word = property["enum"][0]
        .as_str()
        .or_else(|| property["oneOf"][0]["const"].as_str());
    word.unwrap_or("x").to_owned()
}

#[test]
fn every_tool_explains_wrong_arguments() {
    let scenario = red_demo(&["small"]);
    let before = scenario.tree();
    for tool in tools() {
        let name = tool["name"].as_str().unwrap();
        let schema = &tool["inputSchema"];
        let properties = schema["properties"].as_object().unwrap();
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map_or(vec![], |all| all.iter().flat_map(Value::as_str).collect());
        let needed: Vec<&str> = required
            .iter()
            .copied()
            .filter(|field| *field != "project_root")
            .collect();
        let mut page = String::new();

        for missing in &needed {
            let others = needed
                .iter()
                .filter(|field| *field != missing)
                .flat_map(|field| {
                    [
                        String::from("--arg"),
                        format!("{field}={}", fitting(schema, field)),
                    ]
                });
            let words: Vec<String> = [name.to_owned()].into_iter().chain(others).collect();
            let said = sentence(
                &scenario,
                &words.iter().map(String::as_str).collect::<Vec<_>>(),
            );
            assert!(
                said.contains(&format!("`{name}`: {missing} is required")),
                "{said}"
            );
            page += &format!("without {missing}\n  {said}\n");
        }

        // A letter alone could mean anything.
        for field in properties.keys().filter(|field| field.len() > 2) {
            let misspelt = format!("{}{}=x", &field[..1], &field[2..]);
            let said = sentence(&scenario, &[name, "--arg", &misspelt]);
            let meant = format!("did you mean `{field}`?");
            assert!(
                said.contains("unknown argument `") && said.contains(&meant),
                "{said}"
            );
            if Some(field.as_str())
                == needed
                    .first()
                    .copied()
                    .or(properties.keys().next().map(String::as_str))
            {
                page += &format!("with {misspelt}\n  {said}\n");
            }
        }

        let mut kinds = Vec::new();
        for (field, property) in properties {
            let mut arguments: Map<String, Value> = needed
                .iter()
                .map(|field| ((*field).to_owned(), json!(fitting(schema, field))))
                .collect();
            arguments.insert(field.clone(), misfit(property));
            let file = scenario.state.path().join("wrong.json");
            std::fs::write(&file, Value::Object(arguments).to_string()).unwrap();
            let said = sentence(&scenario, &[name, "--json", file.to_str().unwrap()]);
            assert!(
                said.contains(&format!("`{field}` does not fit")) && said.contains("accepted: "),
                "{said}"
            );
            // One of each kind is enough to read.
            if !kinds.contains(&kind(property)) {
                kinds.push(kind(property));
                page += &format!("with {field} of the wrong kind\n  {said}\n");
            }
            if matches!(kind(property), "integer" | "number" | "boolean") {
                let word = format!("{field}={}", misfit(property).as_str().unwrap());
                let mut words = vec![name, "--arg", &word];
                let pairs: Vec<String> = needed
                    .iter()
                    .map(|field| format!("{field}={}", fitting(schema, field)))
                    .collect();
                pairs.iter().for_each(|pair| words.extend(["--arg", pair]));
                assert_eq!(
                    sentence(&scenario, &words),
                    said,
                    "the same from the command line"
                );
            }
        }
        insta::assert_snapshot!(format!("call_mistakes_{name}"), page);
    }
    assert_eq!(scenario.tree(), before);
    assert!(
        !scenario.state.path().join("state/sessions").exists(),
        "nothing was begun, so nothing is logged"
    );
}

#[test]
fn invalid_command_line_fails_before_anything_starts() {
    let scenario = red_demo(&["small"]);
    let write = |name: &str, bytes: &[u8]| {
        let path = scenario.state.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let (broken, list) = (
        write("broken.json", b"{\"test_path\": "),
        write("list.json", b"[1]"),
    );
    let bytes = write("bytes.json", b"{\"spec\": \"\xff\"}");
    let none = scenario
        .state
        .path()
        .join("none.json")
        .display()
        .to_string();
    let directory = scenario.state.path().display().to_string();
    let cases: &[&[&str]] = &[
        &["tdd_gren", "--arg", "test_path=x"],
        &["zzz"],
        &["tdd_green", "--arg", "test_path"],
        &["tdd_green", "--arg", "=x"],
        &["tdd_green", "--arg", "model=a", "--arg", "model=b"],
        &["tdd_green", "--arg", "test_path=a", "--json", &list],
        &["tdd_green", "--json", &none],
        &["tdd_green", "--json", &directory],
        &["tdd_green", "--json", &broken],
        &["tdd_green", "--json", &bytes],
        &["tdd_green", "--json", &list],
        &["tdd_green", "--json", "-"],
        &["--arg", "test_path=a"],
        &[
            "tdd_green",
            "--arg",
            "test_path=x",
            "--arg",
            "project_root=",
        ],
        &["tdd_green", "--arg", "spec\u{1b}[31m=x"],
    ];
    let page: String = cases
        .iter()
        .map(|words| {
            format!(
                "{}\n  {}\n",
                masked(&words.join(" "), &scenario),
                sentence(&scenario, words)
            )
        })
        .collect();
    assert!(
        !page.contains('\u{1b}') || page.matches('\u{1b}').count() == 1,
        "only in what was typed: {page}"
    );
    insta::assert_snapshot!("call_unclear", page.replace('\u{1b}', "ESC"));
}

#[test]
fn tool_used_as_command_shows_the_syntax() {
    for (words, tip) in [
        (
            &["call", "tdd_green", "--test_path", "x"][..],
            "  tip: an argument of the tool is written as '--arg test_path=…'",
        ),
        (
            &["call", "tdd_green", "--outptu=json"],
            "  tip: a similar argument exists: '--output'",
        ),
        (
            &["call", "tdd_green", "test_path=x"],
            "  tip: an argument of the tool is written as '--arg test_path=x'",
        ),
        (
            &["tdd_green"],
            "  tip: a tool is called with 'supervisor call tdd_green'",
        ),
        (&["cal"], "  tip: a similar subcommand exists: 'call'"),
        (
            &["stats", "--jsn"],
            "  tip: a similar argument exists: '--json'",
        ),
    ] {
        let output = command(Which::Real)
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let tips: Vec<&str> = said.lines().filter(|line| line.contains("tip:")).collect();
        assert_eq!(tips, [tip], "{words:?}: {said}");
    }
}
