//! Settings of one's own: what they do not need is no trouble, and what they lack is.

use std::fs;

use super::{examined, text};
use crate::support::machine::Machine;
use supervisor_test_support::loopback::{ClosedPort, Do, Server};

fn block_of_the_readme(heading: &str) -> String {
    let readme =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/recipes.md")).unwrap();
    let rest = readme
        .split_once(heading)
        .unwrap()
        .1
        .split_once("```toml\n")
        .unwrap()
        .1;
    rest.split_once("\n```").unwrap().0.to_owned()
}

fn warnings(shown: &str) -> Vec<&str> {
    shown
        .lines()
        .filter(|line| line.starts_with("warn") || line.starts_with("fail"))
        .collect()
}

#[tokio::test]
async fn ollama_recipe_gives_no_other_warnings() {
    let (closed, ollama) = (
        ClosedPort::hold(),
        Server::start(|path| match path {
            "/v1/models" => Do::Json(200, r#"{"data":[{"id":"qwen3.6:27b"}]}"#.into()),
            _ => Do::Json(200, r#"{"models":[]}"#.into()),
        }),
    );
    let recipe = block_of_the_readme("Ollama alone, no cloud")
        .replace("http://localhost:11434", &ollama.url);
    let machine = Machine::new(&closed.url, &closed.url, "")
        .without_claude()
        .file(&recipe);
    fs::write(machine.dir.path().join("go.mod"), "module x\n").unwrap();
    let report = examined(&machine).await;
    let shown = text(&report);
    // Whether there is a `go` is this machine's own affair.
    let told: Vec<_> = warnings(&shown)
        .into_iter()
        .filter(|line| !line.starts_with("warn  tests"))
        .collect();
    assert_eq!(told, [""; 0], "{shown}");
    assert!(
        shown.contains("ok    claude    `claude` is not on the PATH; no chain needs it\n"),
        "{shown}"
    );
    assert!(
        shown.contains("the connection was refused; no chain needs it\n"),
        "{shown}"
    );
    assert!(
        shown.contains("ok    chains    all 7 skills can start, and every model can be reached\n"),
        "{shown}"
    );
    assert_eq!(report.exit_code, 0);
}

#[tokio::test]
async fn missing_recording_is_a_failure() {
    let closed = ClosedPort::hold();
    let machine = Machine::new(&closed.url, &closed.url, &closed.url).without_claude();
    let file = machine.dir.path().join("answers.jsonl");
    let recipe = block_of_the_readme("CI without models")
        .replace("/srv/ci/answers.jsonl", file.to_str().unwrap());
    let machine = machine.file(&recipe);
    let shown = text(&examined(&machine).await);
    let sentence = format!(
        "warn  recorded  `recorded` has no recorded answers: `{}` cannot be read",
        file.display()
    );
    assert!(
        shown.contains(&sentence) && shown.contains("correct `backends.recorded.file`"),
        "{shown}"
    );
    assert!(shown.contains("fail  chains"), "{shown}");
    fs::write(&file, "").unwrap();
    let shown = text(&examined(&machine).await);
    assert!(
        shown.contains("warn  chains    1 of 7 skills can start"),
        "{shown}"
    );
}

#[tokio::test]
async fn shared_hint_is_printed_once() {
    let closed = ClosedPort::hold();
    let machine = Machine::new(&closed.url, &closed.url, &closed.url)
        .without_claude()
        .file("[backends.litellm]\nmodels = [\"q*\"]\n");
    let shown = text(&examined(&machine).await);
    assert!(
        shown.matches("which no backend serves\n").count() > 3,
        "{shown}"
    );
    assert_eq!(shown.matches("hint: backends serve ").count(), 1, "{shown}");
}

#[tokio::test]
async fn own_prompts_are_counted_and_checked() {
    let closed = ClosedPort::hold();
    let machine = Machine::new(&closed.url, &closed.url, &closed.url).without_claude();
    let folder = machine.dir.path().join("prompts");
    let machine = machine.set("SUPERVISOR_PROMPTS_DIR", folder.to_str().unwrap());
    let shown = machine.masked(&text(&examined(&machine).await), None);
    assert!(
        shown.contains(
            "warn  prompts   DIR/prompts is not a directory, so every call that needs a prompt is refused\n"
        ),
        "{shown}"
    );

    fs::create_dir_all(folder.join("tdd")).unwrap();
    fs::copy(
        concat!(env!("CARGO_MANIFEST_DIR"), "/prompts/tdd/red.md"),
        folder.join("tdd/red.md"),
    )
    .unwrap();
    fs::write(folder.join("tdd/gren.md"), "x").unwrap();
    fs::write(folder.join("verifier.md"), "no slots").unwrap();
    let shown = machine.masked(&text(&examined(&machine).await), None);
    let lines: Vec<&str> = shown
        .lines()
        .skip_while(|line| !line.contains(" prompts "))
        .take(4)
        .collect();
    assert_eq!(lines[0], "ok    prompts   1 of 19 prompts from DIR/prompts");
    assert!(
        lines[1].starts_with("warn  prompts   DIR/prompts/verifier.md: the slot `"),
        "{shown}"
    );
    assert_eq!(
        lines[2],
        "warn  prompts   DIR/prompts/tdd/gren.md is not used: no prompt has that name"
    );
    assert_eq!(lines[3], "      hint: did you mean `tdd/green.md`?");
}
