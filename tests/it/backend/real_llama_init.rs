//! `supervisor init` on a machine with a real llama.cpp server and a `claude`: its settings pass `doctor`, and a call goes
//! through the chain that it wrote. Needs what `real_llama` needs; `tests/interop/backends llama` runs this too.

use serde_json::Value;

use crate::backend::real_llama::Server;
use crate::cli::init::{Newcomer, works};
use supervisor_test_support::fake_claude::FakeClaude;

/// So small a model makes nothing that holds. It is asked and judged all the same, and the tier after it is accepted.
#[test]
#[ignore = "needs llama.cpp"]
fn init_writes_working_settings_for_real_server() {
    let server = Server::start();
    let claude = FakeClaude::that_does("echo right > code.txt");
    let newcomer = Newcomer::new()
        .with(&claude)
        .set("SUPERVISOR_LOOK_AT", &server.url);
    let said = newcomer.run(&["init", "--yes", "--canary"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(
        said.out.contains("llama.cpp at ") && said.out.contains(" answers"),
        "{}",
        said.out
    );
    assert!(
        newcomer.settings().contains("context = 2048"),
        "{}",
        newcomer.settings()
    );
    works(&newcomer);

    let [entry] = &logged(&newcomer)[..] else {
        panic!("one call, one line")
    };
    crate::backend::real_llama_chain::show(&[format!("{:#}", entry["attempts"])]);
    assert_eq!(entry["final_status"], "pass", "{entry:#}");
    let first = &entry["attempts"][0];
    assert_eq!(first["tier"], "local", "{entry:#}");
    // It was asked, it answered, and what it said was judged. A busy machine may run out of time at a later question.
    let answered = |asked: &Value| {
        asked["tokens_in"]
            .as_u64()
            .is_some_and(|tokens| tokens > 100)
    };
    let asks = first["asks"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    assert!(answered(first) || asks.iter().any(answered), "{entry:#}");
    assert!(
        first["verdict"] != "accept" || entry["attempts"][1].is_null(),
        "{entry:#}"
    );
}

fn logged(newcomer: &Newcomer) -> Vec<Value> {
    let sessions = newcomer
        .dir
        .path()
        .join("home/.local/state/supervisor/sessions");
    let files = std::fs::read_dir(sessions)
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    files
        .flat_map(|text| {
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect::<Vec<Value>>()
        })
        .collect()
}
