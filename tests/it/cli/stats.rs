//! `supervisor stats`: what it shows is what the log says, by three ways of counting.

mod made;
mod naive;
mod page;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use supervisor_test_support::programs::require;

use serde_json::{Value, json};
use supervisor_engine::{Basis, TopTier};

use supervisor_test_support::chain::Bench;

/// A state directory, and a home without settings.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn empty() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// Several hundred calls in eight sessions, with all that may lie in a log.
    fn made() -> Self {
        let place = Self::empty();
        fs::create_dir_all(place.sessions()).unwrap();
        for (session, text) in made::logs() {
            fs::write(place.sessions().join(format!("{session}.jsonl")), text).unwrap();
        }
        place
    }

    fn sessions(&self) -> PathBuf {
        self.dir.path().join("state/sessions")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
        command
            .arg("stats")
            .args(arguments)
            .env_clear()
            .stdin(Stdio::null());
        command
            .env("HOME", self.dir.path())
            .env("SUPERVISOR_STATE_DIR", self.dir.path().join("state"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What it prints when all is well.
    fn shows(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && err.is_empty(),
            "{arguments:?}: {err}"
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.shows(&[&["--json"], arguments].concat())).unwrap()
    }

    /// What it says to a mistake: one sentence and exit code 2, nothing on stdout.
    fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{arguments:?}"
        );
        String::from_utf8(output.stderr)
            .unwrap()
            .replace(self.dir.path().to_str().unwrap(), "<dir>")
    }
}

#[test]
fn the_whole_page() {
    insta::assert_snapshot!("stats", Place::made().shows(&[]));
}

#[test]
fn the_whole_json() {
    let session = Place::made().json(&["--session", "s3", "--skill", "review"]);
    insta::assert_snapshot!(
        "stats_json",
        serde_json::to_string_pretty(&session).unwrap()
    );
}

#[test]
fn every_figure_equals_a_naive_second_count() {
    let place = Place::made();
    for filter in [
        naive::Filter::default(),
        naive::Filter {
            skill: Some("tdd"),
            ..Default::default()
        },
        naive::Filter {
            skill: Some("tdd_green"),
            session: Some("s2"),
            ..Default::default()
        },
        naive::Filter {
            since: Some("2026-02-01"),
            ..Default::default()
        },
        naive::Filter {
            since: Some("2026-01-20T06:30:00Z"),
            skill: Some("review"),
            ..Default::default()
        },
    ] {
        let shown = place.json(&filter.arguments());
        let counted = naive::count(&place.sessions(), &filter);
        assert!(
            counted["total"]["calls"].as_u64().unwrap() > 5,
            "the log says something about {filter:?}"
        );
        assert_same(&format!("{filter:?}"), &without_remedies(shown), &counted);
    }
}

#[test]
#[ignore = "needs jq"]
fn every_figure_equals_the_documented_command() {
    require(&["jq"]);
    let place = Place::made();
    let stats = place.json(&[]);
    let page = page::Page::read();
    let of = |name: &str| page.run(name, &place.sessions());
    let row = |found: &Value| -> &Value {
        let skills = stats["skills"].as_array().unwrap();
        let skill = skills
            .iter()
            .find(|skill| skill["skill"] == found["skill"])
            .unwrap();
        skill["models"]
            .as_array()
            .unwrap()
            .iter()
            .find(|model| model["model"] == found["model"])
            .unwrap()
    };
    let rows = |wanted: &dyn Fn(&Value) -> bool| {
        let skills = stats["skills"].as_array().unwrap();
        skills
            .iter()
            .flat_map(|skill| skill["models"].as_array().unwrap())
            .filter(|row| wanted(row))
            .count()
    };
    // Between them they have every field of a row; each field they do not name would be found missing here.
    let mut seen = vec!["model", "tier"];
    for (name, wanted) in [
        (
            "answers",
            &(|row: &Value| row["attempts"] != 0) as &dyn Fn(&Value) -> bool,
        ),
        ("effort", &|row: &Value| row["attempts"] != 0),
        ("causes", &|_: &Value| true),
    ] {
        let found = of(name);
        assert_eq!(found.len(), rows(wanted), "{name}");
        for one in &found {
            for (field, value) in one
                .as_object()
                .unwrap()
                .iter()
                .filter(|(field, _)| *field != "skill")
            {
                assert_same(&format!("{name} {one} .{field}"), &row(one)[field], value);
            }
        }
        seen.extend(
            row(&found[0])
                .as_object()
                .unwrap()
                .keys()
                .filter(|key| found[0].get(key.as_str()).is_some())
                .map(String::as_str),
        );
    }
    for field in stats["skills"][0]["models"][0].as_object().unwrap().keys() {
        assert!(
            seen.contains(&field.as_str()),
            "no line of the page finds `{field}`"
        );
    }

    let calls = of("calls");
    assert_eq!(calls.len(), stats["skills"].as_array().unwrap().len() + 1);
    for mut one in calls {
        let skill = one.as_object_mut().unwrap().shift_remove("skill").unwrap();
        let mut shown = match skill.as_str() {
            None => stats["total"].clone(),
            Some(_) => stats["skills"]
                .as_array()
                .unwrap()
                .iter()
                .find(|s| s["skill"] == skill)
                .unwrap()
                .clone(),
        };
        shown
            .as_object_mut()
            .unwrap()
            .retain(|key, _| key != "skill" && key != "models");
        assert_same(&format!("calls of {skill}"), &shown, &one);
    }
    let [span] = &of("span")[..] else {
        panic!("one line")
    };
    for field in ["sessions", "from", "to"] {
        assert_same(field, &stats[field], &span[field]);
    }
    let advice: Vec<Value> = without_remedies(stats.clone())["advice"]
        .as_array()
        .unwrap()
        .clone();
    assert!(!advice.is_empty());
    assert_same("advice", &by_name(advice), &by_name(of("advice")));
    let unread = &stats["unread"];
    let lines = ["torn", "broken", "too_long"]
        .iter()
        .map(|field| unread[*field].as_u64().unwrap())
        .sum::<u64>();
    assert_same(
        "unread",
        &json!({"lines": lines, "attempts": unread["attempts"]}),
        &of("unread")[0],
    );
}

#[test]
#[ignore = "needs jq"]
fn every_other_documented_command_prints_something() {
    require(&["jq"]);
    let (place, page) = (Place::made(), page::Page::read());
    for name in [
        "escalations",
        "latency",
        "cold-starts",
        "refusals",
        "verifier-cost",
    ] {
        assert!(!page.run(name, &place.sessions()).is_empty(), "{name}");
    }
    let named: Vec<&str> = page.names().collect();
    assert_eq!(
        named,
        [
            "escalations",
            "latency",
            "cold-starts",
            "refusals",
            "verifier-cost",
            "definitions",
            "answers",
            "causes",
            "effort",
            "calls",
            "span",
            "advice",
            "unread"
        ],
        "each is run by a test"
    );
}

#[test]
fn without_calls_the_next_step_is_shown() {
    let place = Place::empty();
    let text = place
        .shows(&[])
        .replace(place.dir.path().to_str().unwrap(), "<dir>")
        .replace('\n', " ");
    assert!(
        text.starts_with("No calls yet: ")
            && text.contains("claude mcp add supervisor -- supervisor"),
        "{text}"
    );
    assert_eq!(
        fs::read_dir(place.dir.path()).unwrap().count(),
        0,
        "looking leaves nothing behind"
    );
    let json = place.json(&[]);
    assert_eq!(
        (&json["total"]["calls"], &json["from"], &json["skills"]),
        (&json!(0), &json!(null), &json!([]))
    );
}

#[test]
fn mistakes_are_one_sentence_and_exit_code_2() {
    let place = Place::made();
    let mut page = String::new();
    for arguments in [
        &["--since", "yesterday"][..],
        &["--since", ""],
        &["--skill", "reveiw"],
        &["--skill", "zzz\u{1b}[31m"],
        &["--session", "s33"],
        &["--session", "another"],
        &["--session", "../s3"],
        &["--jsn"],
        &["more"],
    ] {
        page += &format!(
            "$ supervisor stats {arguments:?}\n{}\n",
            place.refuses(arguments)
        );
    }
    insta::assert_snapshot!("stats_mistakes", page);
    // A skill that was never called is no mistake, and neither is a quiet week.
    let sentence = "No calls of `spec`. Ask for more, or for all with `supervisor stats`.\n";
    assert!(place.shows(&["--skill", "spec"]).starts_with(sentence));
    assert!(
        place
            .shows(&["--since", "0d"])
            .starts_with("No calls since ")
    );
}

#[test]
fn unreadable_log_is_named_and_others_counted() {
    let place = Place::made();
    let before = place.json(&[]);
    symlink("/etc/hostname", place.sessions().join("linked.jsonl")).unwrap();
    fs::create_dir(place.sessions().join("folder.jsonl")).unwrap();
    let after = place.json(&[]);
    assert_eq!(
        (&after["total"], &after["unread"]["files"]),
        (&before["total"], &json!(2))
    );
    let text = place
        .shows(&[])
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        text.contains("2 logs could not be opened")
            && text.contains("linked.jsonl` is a symbolic link"),
        "{text}"
    );
}

#[test]
fn calls_of_a_newer_version_are_reported() {
    let place = Place::empty();
    std::fs::create_dir_all(place.sessions()).unwrap();
    let line = |v: u32, status: &str| {
        format!(r#"{{"v":{v},"session_id":"s","skill":"spec","final_status":"{status}"}}"#)
    };
    std::fs::write(
        place.sessions().join("s.jsonl"),
        format!("{}\n{}\n", line(2, "pass"), line(3, "splendid")),
    )
    .unwrap();
    let page = place.shows(&[]);
    assert!(
        page.contains(
            "\n1 call by a newer version, counted as far as this one understands them.\n"
        ),
        "{page}"
    );
    let json = place.json(&[]);
    assert_eq!(
        (&json["total"]["calls"], &json["unread"]["newer"]),
        (&2.into(), &1.into()),
        "{json}"
    );
}

#[test]
fn unlistable_directory_is_named_with_a_remedy() {
    let place = Place::empty();
    fs::create_dir(place.dir.path().join("state")).unwrap();
    fs::write(place.sessions(), "not a directory").unwrap();
    let said = place.refuses(&[]);
    assert!(
        said.starts_with("error: the session logs in `<dir>/state/sessions` cannot be listed: "),
        "{said}"
    );
    assert!(said.contains("$SUPERVISOR_STATE_DIR"), "{said}");
}

#[test]
fn advice_names_the_current_settings_line() {
    let place = Place::made();
    let config = place.dir.path().join("mine.toml");
    let advice = |settings: &str, variables: &[(&str, &str)]| -> Value {
        fs::write(&config, settings).unwrap();
        let mut command = place.command(&[
            "--json",
            "--skill",
            "review",
            "--config",
            config.to_str().unwrap(),
        ]);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let [one] = &json["advice"].as_array().unwrap()[..] else {
            panic!("{json:#}")
        };
        assert_eq!(
            (&one["skill"], &one["model"]),
            (&json!("review"), &json!(made::WEAK))
        );
        json!([one["step"], one["table"], one["line"], one["now"]])
    };
    let table = "[skills.review]";
    let of_file = |line: usize| format!("skills.review.chain ({}:{line})", config.display());
    assert_eq!(
        advice(
            "# mine\nskills.review.chain = [\"ollama/devstral-tuned\", \"claude-sonnet-4-6\", \"opus\"]",
            &[]
        ),
        json!([
            "leave_out",
            table,
            "chain = [\"claude-sonnet-4-6\", \"opus\"]",
            of_file(2)
        ])
    );
    assert_eq!(
        advice(
            "",
            &[(
                "SUPERVISOR_SKILLS__REVIEW__CHAIN",
                "ollama/devstral-tuned,opus"
            )]
        ),
        json!([
            "change_variable",
            table,
            "SUPERVISOR_SKILLS__REVIEW__CHAIN=opus",
            "skills.review.chain ($SUPERVISOR_SKILLS__REVIEW__CHAIN)"
        ])
    );
    assert_eq!(
        advice("skills.review.chain = [\"ollama/devstral-tuned\"]", &[]),
        json!(["replace", table, null, of_file(1)])
    );
    assert_eq!(
        advice("skills.review.chain = [\"opus\"]", &[]),
        json!(["done", table, null, of_file(1)])
    );
    // Broken settings take the line away, not the figures.
    assert_eq!(
        advice("no such key = 1", &[]),
        json!(["leave_out", table, null, null])
    );
}

#[test]
fn closed_stdout_is_not_an_error() {
    let place = Place::made();
    for arguments in [&[][..], &["--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place.command(arguments).stdout(writer).output().unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{:?}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn output_has_no_control_characters() {
    let place = Place::made();
    let text = place.shows(&[]);
    assert!(
        text.contains("\\u{1b}"),
        "the log holds a model whose name would colour the screen"
    );
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
    let coloured = place
        .command(&[])
        .env("CLICOLOR_FORCE", "1")
        .env("TERM", "xterm-256color")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(coloured.stdout).unwrap(), text);
}

#[tokio::test]
async fn log_records_the_cost_of_top_tier_alone() {
    let prices = "[models.large]\nprice_in = 3.0\nprice_out = 15.0\n";
    let top = |cost_usd, basis| {
        Some(TopTier {
            model: "large".into(),
            cost_usd,
            basis,
        })
    };
    let chain = || {
        Bench::chain(&["small", "large"])
            .settings(prices)
            .without_verifier()
    };

    let small = chain().writes("small", "42").run().await;
    assert_eq!(small.trail(), "small accepted");
    assert_eq!(
        small.entry.top_tier,
        top(Some((100.0 * 3.0 + 20.0 * 15.0) / 1e6), Basis::Estimated)
    );

    let both = chain()
        .writes("small", "17")
        .writes("large", "42")
        .run()
        .await;
    assert_eq!(both.trail(), "small rejected | large accepted");
    assert_eq!(both.entry.top_tier, top(Some(0.01), Basis::Asked));

    let unpriced = Bench::chain(&["small", "large"])
        .without_verifier()
        .writes("small", "42")
        .run()
        .await;
    assert_eq!(unpriced.entry.top_tier, top(None, Basis::Estimated));

    // The verifier says what it cost, and which part of the whole that is.
    let judged = Bench::chain(&["small", "large"])
        .settings(prices)
        .writes("small", "42");
    let opinion = json!({"model": "judge", "answer": {"accept": true, "feedback": ""}, "tokens_in": 900, "tokens_out": 90, "cost_usd": 0.002});
    let judged = judged.line(opinion).run().await;
    let attempt = &judged.entry.attempts[0];
    assert_eq!(
        (attempt.tokens_in, attempt.tokens_out),
        (Some(1000), Some(110))
    );
    assert_eq!(
        attempt
            .verifier
            .as_ref()
            .map(|v| (v.model.as_str(), v.tokens_in, v.cost_usd)),
        Some(("judge", Some(900), Some(0.002)))
    );
    assert_eq!(judged.entry.top_tier, small.entry.top_tier);
}

#[test]
fn calls_of_all_projects_add_up() {
    let stats = Place::made().json(&[]);
    let projects = stats["projects"].as_array().unwrap();
    for figure in ["calls", "pass", "fail", "error", "cost_unknown"] {
        let sum: u64 = projects
            .iter()
            .map(|one| one[figure].as_u64().unwrap())
            .sum();
        assert_eq!(json!(sum), stats["total"][figure], "{figure}");
    }
}

#[test]
fn subscription_is_counted_in_tokens() {
    let place = Place::empty();
    fs::create_dir_all(place.sessions()).unwrap();
    let call = |project: &str, subscription: bool| {
        let attempt = json!({"attempt": 1, "model": "sonnet", "tier": "subagent", "duration_ms": 900, "cause": "accepted",
            "verdict": "accept", "tokens_in": 12_000, "tokens_out": 400, "cost_usd": 0.5, "subscription": subscription});
        let entry = json!({"v": 2, "session_id": "s", "timestamp": "2026-03-01T09:00:00Z", "skill": "review", "tool": "review",
            "final_status": "pass", "project_root": project, "attempts": [attempt],
            "top_tier": {"model": "sonnet", "cost_usd": null, "basis": "estimated"}});
        format!("{entry}\n")
    };
    let log = call("/home/me/shop", true) + &call("/home/me/blog", false);
    fs::write(place.sessions().join("s.jsonl"), log).unwrap();
    let stats = place.json(&[]);
    assert_eq!(
        (
            &stats["total"]["cost_usd"],
            &stats["total"]["subscription_tokens"]
        ),
        (&json!(0.5), &json!(12_400))
    );
    let text = place.shows(&[]);
    let row = |project: &str| text.lines().find(|line| line.contains(project)).unwrap();
    assert!(row("/home/me/shop").contains("12k tokens"), "{text}");
    assert!(row("/home/me/blog").contains("$0.50"), "{text}");
}

#[tokio::test]
async fn docs_name_every_log_and_json_field() {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/log.md")).unwrap();
    let judged = Bench::chain(&["small", "large"])
        .writes("small", "17")
        .writes("large", "42")
        .judges(true, "")
        .run()
        .await;
    let mut entry = serde_json::to_value(judged.entry).unwrap();
    entry["input"] = json!({});
    let mut stats = Place::made().json(&[]);
    for model in stats["skills"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .flat_map(|s| s["models"].as_array_mut().unwrap())
    {
        model["causes"] = json!({});
    }
    let mut missing = Vec::new();
    for value in [&entry, &stats] {
        each_key(value, &mut |key| {
            if !page.contains(&format!("`{key}`")) && !page.contains(&format!("`{key}[]`")) {
                missing.push(key.to_owned());
            }
        });
    }
    assert!(
        missing.is_empty(),
        "docs/log.md says nothing about {missing:?}"
    );
}

fn each_key(value: &Value, tell: &mut dyn FnMut(&str)) {
    for (key, value) in value.as_object().into_iter().flatten() {
        tell(key);
        each_key(value, tell);
    }
    for value in value.as_array().into_iter().flatten() {
        each_key(value, tell);
    }
}

/// Without what settings decide.
fn without_remedies(mut stats: Value) -> Value {
    stats.as_object_mut().unwrap().shift_remove("worth");
    stats.as_object_mut().unwrap().shift_remove("projects");
    for one in stats["advice"].as_array_mut().unwrap() {
        one.as_object_mut()
            .unwrap()
            .retain(|key, _| !["table", "line", "now", "step"].contains(&key.as_str()));
    }
    stats
}

fn by_name(mut rows: Vec<Value>) -> Value {
    rows.sort_by_key(|row| format!("{} {}", row["skill"], row["model"]));
    Value::Array(rows)
}

/// Equal, where numbers that were added up in another order may differ by dust.
fn assert_same(what: &str, a: &Value, b: &Value) {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            let (x, y) = (x.as_f64().unwrap(), y.as_f64().unwrap());
            assert!(
                (x - y).abs() <= 1e-9 * (1.0 + x.abs()),
                "{what}: {x} and {y}"
            );
        }
        (Value::Array(x), Value::Array(y)) => {
            assert_eq!(x.len(), y.len(), "{what}: {a:#} and {b:#}");
            for (n, (x, y)) in x.iter().zip(y).enumerate() {
                assert_same(&format!("{what}[{n}]"), x, y);
            }
        }
        (Value::Object(x), Value::Object(y)) => {
            let keys = |map: &serde_json::Map<String, Value>| {
                let mut keys: Vec<String> = map.keys().cloned().collect();
                keys.sort();
                keys
            };
            assert_eq!(keys(x), keys(y), "{what}");
            for (key, value) in x {
                assert_same(&format!("{what}.{key}"), value, &y[key]);
            }
        }
        _ => assert_eq!(a, b, "{what}"),
    }
}

/// The lines of every log in a directory, file by file.
fn lines(directory: &Path) -> Vec<(String, Vec<String>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let text = |file: &PathBuf| {
        String::from_utf8_lossy(&fs::read(file).unwrap())
            .lines()
            .map(str::to_owned)
            .collect()
    };
    files
        .iter()
        .map(|file| {
            (
                file.file_stem().unwrap().to_string_lossy().into_owned(),
                text(file),
            )
        })
        .collect()
}
