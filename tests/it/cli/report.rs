//! `supervisor report`: one page that shows what the log says, in a real browser, whatever is in the log.

mod browser;
mod made;
mod pictures;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use browser::Browser;

/// A state directory with these calls in it.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn with(calls: &[Value]) -> Self {
        let place = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let sessions = place.dir.path().join("state/sessions");
        fs::create_dir_all(&sessions).unwrap();
        let mut logs = std::collections::BTreeMap::<&str, String>::new();
        for call in calls {
            let log = logs
                .entry(call["session_id"].as_str().unwrap())
                .or_default();
            *log += &call.to_string();
            log.push('\n');
        }
        for (session, log) in logs {
            fs::write(sessions.join(format!("{session}.jsonl")), log).unwrap();
        }
        place
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
        command
            .arg("report")
            .args(arguments)
            .env_clear()
            .stdin(Stdio::null())
            .current_dir(self.dir.path());
        command
            .env("HOME", self.dir.path())
            .env("SUPERVISOR_STATE_DIR", self.dir.path().join("state"));
        command.output().unwrap()
    }

    fn shows(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn page(&self) -> PathBuf {
        let file = self.dir.path().join("report.html");
        self.shows(&["--html", file.to_str().unwrap()]);
        file
    }
}

#[test]
fn short_report() {
    let mut calls = made::calls(300);
    calls[7]["attempts"][0]["flaky"] = json!(["clock::ticks"]);
    insta::assert_snapshot!("report", Place::with(&calls).shows(&[]));
}

#[test]
fn empty_report_and_mistakes_name_their_remedy() {
    let place = Place::with(&[]);
    assert!(place.shows(&[]).starts_with("No calls yet: "));
    assert!(
        place
            .shows(&["--since", "2w"])
            .starts_with("No calls match --since")
    );
    for (arguments, said) in [
        (["--html", "state"], "is a directory; name a file in it"),
        (
            ["--html", "missing/report.html"],
            "name a file in a directory that you may write",
        ),
        (["--since", "soon"], "write a date as in"),
    ] {
        let output = place.run(&arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(2) && text.contains(said),
            "{arguments:?}: {text}"
        );
    }
}

#[test]
fn page_is_one_private_file_without_external_resources() {
    let place = Place::with(&made::calls(50_000));
    let file = place.page();
    let page = fs::read_to_string(&file).unwrap();
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(page.len() < 64 << 20, "{}", page.len());
    assert!(
        page.contains("newest calls can be opened"),
        "not all of them fit"
    );
    for address in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(address), "{address}");
    }
    assert_eq!(
        place
            .shows(&["--html", "-", "--session", "s3"])
            .matches("<script type")
            .count(),
        6_251
    );
}

#[tokio::test]
#[ignore = "needs chromium"]
async fn calls_are_listed_filtered_and_opened_in_browser() {
    let browser = Browser::start().await;
    for count in [0, 1, 5_000] {
        let calls = made::calls(count);
        let place = Place::with(&calls);
        browser.open(&place.page()).await;
        let listed = "return document.querySelectorAll('article.call').length";
        assert_eq!(
            browser.run(listed).await,
            json!(count.min(100)),
            "{count} calls"
        );
        if count > 0 {
            let newest = calls.last().unwrap();
            browser
                .run("document.querySelector('article.call .head').click()")
                .await;
            let message = "return document.querySelector('[data-field=message]').textContent";
            assert_eq!(browser.run(message).await, newest["message"]);
            let feedback = "return [...document.querySelectorAll('[data-field=feedback]')].map((e) => e.textContent)";
            let told: Vec<&Value> = newest["attempts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|a| &a["feedback"])
                .collect();
            let told: Vec<&Value> = told.into_iter().filter(|said| *said != "").collect();
            assert_eq!(browser.run(feedback).await, json!(told));
        }
        if count == 5_000 {
            let passed = calls
                .iter()
                .filter(|call| call["final_status"] == "fail")
                .count();
            let shown = browser.choose("status", "fail").await;
            assert_eq!(shown, format!(" {passed} of 5000"));
            browser
                .run("document.getElementById('clear').click()")
                .await;
            let about = calls
                .iter()
                .filter(|call| call["message"].as_str().unwrap().contains("number 4,9"))
                .count();
            browser.run("const w = document.getElementById('words'); w.value = 'NUMBER 4,9'; w.dispatchEvent(new Event('input', {bubbles: true}))").await;
            assert_eq!(
                browser
                    .run("return document.getElementById('shown').textContent")
                    .await,
                format!(" {about} of 5000")
            );
            browser.run("document.getElementById('clear').click(); document.getElementById('more').click()").await;
            assert_eq!(browser.run(listed).await, json!(200));
            // A bar of the chart, a reason and a model each leave their calls.
            for click in [".bar[tabindex]", "[data-reason]", "[data-model]"] {
                browser
                    .run(&format!(
                        "document.querySelector('{click}').dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
                    ))
                    .await;
                let shown = browser
                    .run("return document.getElementById('shown').textContent")
                    .await;
                assert!(
                    shown.as_str().unwrap().ends_with(" of 5000") && shown != " 0 of 5000",
                    "{click}: {shown}"
                );
                browser
                    .run("document.getElementById('clear').click()")
                    .await;
            }
            let wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth";
            browser.resize(390, 800).await;
            assert_eq!(
                browser.run(wide).await,
                json!(true),
                "a phone need not scroll sideways"
            );
        }
        browser.assert_silent().await;
    }
    browser.end().await;
}

#[tokio::test]
#[ignore = "needs chromium"]
async fn hostile_text_is_inert_in_a_browser() {
    let browser = Browser::start().await;
    let calls = made::hostile();
    let place = Place::with(&calls);
    browser.open(&place.page()).await;
    browser
        .run("document.querySelectorAll('article.call .head').forEach((head) => head.click())")
        .await;
    let fields = "return [...document.querySelectorAll('article.call')].reverse().map((call) => Object.fromEntries(
        [...call.querySelectorAll('[data-field]')].map((e) => [e.dataset.field, e.textContent])))";
    let shown = browser.run(fields).await;
    for (call, shown) in calls.iter().zip(shown.as_array().unwrap()) {
        for name in [
            "message",
            "project_root",
            "file_path",
            "model_used",
            "phase",
        ] {
            assert_eq!(shown[name], call[name], "{name}");
        }
        let attempt = &call["attempts"][0];
        for name in ["feedback", "output_summary", "runner_output", "model"] {
            assert_eq!(shown[name], attempt[name], "{name}");
        }
        assert_eq!(
            (&shown["gate"], &shown["gate-detail"]),
            (&attempt["gates"][0]["id"], &attempt["gates"][0]["detail"])
        );
        let input: Value = serde_json::from_str(shown["input"].as_str().unwrap()).unwrap();
        assert_eq!(input, call["input"]);
    }
    // Two scripts of our own that run nothing but us, no picture, no frame, nothing fetched, and no trap was sprung.
    let world = "return [typeof window.sprung, document.querySelectorAll('img, iframe, object, a, [onerror], [onclick]').length,
        document.querySelectorAll('script:not([type])').length, performance.getEntriesByType('resource').length]";
    assert_eq!(browser.run(world).await, json!(["undefined", 0, 1, 0]));
    browser.assert_silent().await;
    browser.end().await;
}
