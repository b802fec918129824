//! A real, very small model on a real llama.cpp server, asked directly and through a real LiteLLM gateway.
//! Needs `SUPERVISOR_TEST_LLAMA` (a python with `xllamacpp`), `SUPERVISOR_TEST_GGUF` (a model) and `litellm`;
//! `tests/interop/backends llama` installs them and runs this.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use supervisor_models::{Ask, AskError, AskResult, AskStep, Backends, Env, SharedResources};
use supervisor_process::Launcher;
use supervisor_settings::{BackendKind, Tier};
use tokio_util::sync::CancellationToken;

use crate::backend::real_litellm::Gateway;
use crate::support::debug_project as error;
use supervisor_test_support::tiers::tier;

#[tokio::test]
#[ignore = "needs llama.cpp and litellm"]
async fn real_small_model_answers_by_schema_within_limits() {
    let server = Server::start();
    let gateway = Gateway::start(&server.url).await;
    let (through, _) = gateway.question("local/good");

    // Its form is right. Whether it is true is not for a backend to say.
    let ask = question("A person called Bob is 41 years old.");
    let (reply, _) = server.ask(&ask).await;
    let direct = reply.unwrap();
    let by_gateway = gateway.put(&through, &ask).await.unwrap();
    for reply in [&direct, &by_gateway] {
        assert!(
            reply.body["name"].is_string() && reply.body["age"].is_i64(),
            "{reply:?}"
        );
        assert!(
            ["pass", "fail"].contains(&reply.body["verdict"].as_str().unwrap()),
            "{reply:?}"
        );
        assert!(
            reply.usage.tokens_in.unwrap() > 50 && reply.usage.tokens_out.unwrap() > 5,
            "{:?}",
            reply.usage
        );
    }
    assert_eq!(
        (by_gateway.usage.cost_usd, direct.usage.cost_usd),
        (Some(0.0), None),
        "known to be free, and unknown"
    );
    assert_eq!(by_gateway.model_answered, "local/good");
    assert_eq!(
        direct.notes.len(),
        1,
        "it answers to any name: {:?}",
        direct.notes
    );

    let long = question(&"word ".repeat(6000));
    let (too_long, _) = server.ask(&long).await;
    for answered in [too_long, gateway.put(&through, &long).await] {
        let failure = answered.expect_err("2,048 tokens fit");
        assert!(
            matches!(failure.why, AskError::ContextTooLong { .. }),
            "{failure:?}"
        );
    }

    let short = Ask {
        max_tokens: Some(3),
        ..ask.clone()
    };
    let (cut, _) = server.ask(&short).await;
    for answered in [cut, gateway.put(&through, &short).await] {
        let failure = answered.expect_err("three tokens hold no answer");
        assert!(
            matches!(failure.why, AskError::AnswerCut { .. }),
            "{failure:?}"
        );
    }

    // A schema that the server does not take: asked again without.
    let strange = Ask {
        schema: json!({"type": "object", "properties": {"a": {"type": "nonsense"}}}),
        max_tokens: Some(40),
        ..ask
    };
    let (_, steps) = server.ask(&strange).await;
    assert_eq!(steps, [AskStep::Asked, AskStep::AskedWithoutFormat]);
}

/// What a tool asks for must be something that a server can hold a model to.
#[tokio::test]
#[ignore = "needs llama.cpp"]
async fn schemas_of_every_tool_are_accepted() {
    let server = Server::start();
    let rows = [
        (
            crate::support::review_project::shop(&["small"]),
            "review",
            crate::support::review_project::both(),
        ),
        (
            error::project(&["small"]),
            "debug",
            json!({"error": error::ERROR, "repro_cmd": error::REPRO}),
        ),
        (
            crate::support::scenario::Scenario::chain(&["small"], &[]),
            "spec",
            json!({"requirements": "read CSV files"}),
        ),
    ];
    for (mut scenario, tool, mut arguments) in rows {
        arguments["model"] = json!("small");
        scenario.say("small", &json!({}));
        scenario.call(tool, arguments);
        let asked =
            std::fs::read_to_string(scenario.state.path().join("answers.jsonl.asked")).unwrap();
        let asked: serde_json::Value = serde_json::from_str(asked.lines().next().unwrap()).unwrap();
        let mut ask = question("Answer in the form that is asked for.");
        ask.schema = asked["schema"].clone();
        let (answered, steps) = server.ask(&ask).await;
        assert_eq!(
            steps,
            [AskStep::Asked],
            "{tool}: refused, and asked again without: {answered:?}"
        );
        // So small a model may talk to the end of its tokens; it is the form that counts.
        if let Err(failure) = answered {
            assert!(
                matches!(failure.why, AskError::AnswerCut { .. }),
                "{tool}: {failure:?}"
            );
        }
    }
}

fn question(prompt: &str) -> Ask {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "age": {"type": "integer"},
            "verdict": {"enum": ["pass", "fail"]},
        },
        "required": ["name", "age", "verdict"],
        "additionalProperties": false,
    });
    let mut ask = Ask::new("You take data out of a text.", prompt, schema, "/");
    ask.limit = Duration::from_secs(300);
    ask.max_tokens = Some(200);
    ask
}

pub(crate) struct Server {
    program: Child,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with_window(2048)
    }

    /// The same, with a window of so many tokens.
    pub(crate) fn with_window(tokens: u32) -> Self {
        Self::with(tokens, None)
    }

    /// The same, with a grammar, a file in GBNF, among whose words the model chooses.
    pub(crate) fn with(tokens: u32, grammar: Option<&Path>) -> Self {
        let variable = |name: &str| {
            std::env::var(name)
                .unwrap_or_else(|_| panic!("{name} is set by tests/interop/backends"))
        };
        let (python, gguf) = (
            variable("SUPERVISOR_TEST_LLAMA"),
            variable("SUPERVISOR_TEST_GGUF"),
        );
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut program = Command::new(python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/llama_server.py"))
            .args([gguf, port.to_string(), tokens.to_string()])
            .args(grammar)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It may say more before; the address comes when it listens.
        let lines = BufReader::new(program.stdout.take().unwrap()).lines();
        let url = lines
            .map_while(Result::ok)
            .find(|line| line.starts_with("http"));
        Self {
            program,
            url: url.expect("the server does not start"),
        }
    }

    async fn ask(&self, ask: &Ask) -> (AskResult, Vec<AskStep>) {
        let mut tier: Tier = tier("llama", BackendKind::Openai, "small");
        tier.backend.base_url = Some(self.url.clone());
        let backends = Backends::new(SharedResources::new(
            Launcher::this_program(),
            Env::default(),
            1,
        ));
        let steps = Mutex::default();
        let note = |step| Vec::push(&mut steps.lock().unwrap(), step);
        let answered = backends
            .of(&tier)
            .unwrap()
            .ask(ask, &tier, &CancellationToken::new(), &note)
            .await;
        (answered, steps.into_inner().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
