//! What is loaded, offered and behind each name: read with tolerance, refused with the setting's name.

use std::time::Duration;

use supervisor_models::model_list;
use supervisor_models::model_list::ModelListError;
use supervisor_models::{Env, Unreachable};
use supervisor_settings::{Warm, WarmKind};

use supervisor_test_support::loopback::{ClosedPort, Do, Server, http};
use supervisor_test_support::settings::gateway;

const PATIENT: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(200);

fn with_key() -> Env {
    Env::from_iter([("GATE_KEY", "sk-canary\n")])
}

async fn running(
    kind: WarmKind,
    reply: Do,
) -> Result<Vec<model_list::LoadedModel>, ModelListError> {
    let server = Server::always(reply);
    model_list::loaded(
        &Warm {
            kind,
            url: server.url.clone(),
        },
        PATIENT,
    )
    .await
}

async fn offered(reply: Do, env: &Env, limit: Duration) -> Result<Vec<String>, ModelListError> {
    let server = Server::always(reply);
    model_list::offered(&gateway("gate", Some(&server.url)), env, limit).await
}

fn json(body: &str) -> Do {
    Do::Json(200, body.into())
}

#[tokio::test]
async fn llama_swap_is_warm_only_when_ready() {
    let body = r#"{"running":[{"model":"qwen","state":"ready","ttl":0},{"model":"org/phi4","state":"starting"},
                   {"model":"old"},{"state":"ready"},7,{"model":"","state":"ready"}]}"#;
    let found = running(WarmKind::LlamaSwap, json(body)).await.unwrap();
    let seen: Vec<_> = found
        .iter()
        .map(|m| (m.id.as_str(), m.state.as_str(), m.is_ready()))
        .collect();
    assert_eq!(
        seen,
        [
            ("qwen", "ready", true),
            ("org/phi4", "starting", false),
            ("old", "unknown", false)
        ]
    );
}

#[tokio::test]
async fn prefixed_name_is_warm_or_unknown() {
    let body =
        r#"{"running":[{"model":"qwen","state":"ready"},{"model":"phi4","state":"starting"}]}"#;
    let loaded = running(WarmKind::LlamaSwap, json(body)).await.unwrap();
    let warm = |name: &str| model_list::is_warm(&loaded, &[], "http://localhost:8080", name);
    assert_eq!(warm("ollama/qwen"), Some(true));
    assert_eq!(warm("ollama/phi4"), Some(false), "it is still being loaded");
    assert_eq!(
        warm("ollama/gemma"),
        None,
        "the gateway may have another name for it"
    );
    assert_eq!(warm("gemma"), Some(false));
}

#[tokio::test]
async fn ollama_lists_loaded_models_with_windows() {
    let body = r#"{"models":[{"name":"qwen3:latest","model":"qwen3:latest","context_length":4096},{"name":"phi4:14b"}]}"#;
    let found = running(WarmKind::Ollama, json(body)).await.unwrap();
    assert_eq!((found[0].context, found[1].context), (Some(4096), None));
    assert!(found[0].is("qwen3") && found[0].is("qwen3:latest") && !found[0].is("qwen"));
    assert!(found[1].is("phi4:14b") && !found[1].is("phi4"));
    assert_eq!(
        running(WarmKind::Ollama, json(r#"{"models":[]}"#))
            .await
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn gateway_names_resolve_to_models() {
    let server = Server::start(|path| match path {
        "/v1/models" => json(
            r#"{"object":"list","data":[{"id":"ollama/qwen"},{"id":"openai/*"},{"nothing":1},null]}"#,
        ),
        "/model/info" => json(
            r#"{"data":[{"model_name":"ollama/qwen","litellm_params":{"model":"openai/org/qwen3","api_base":"http://me:canary@swap:8080/v1"}},
                {"model_name":"bare","litellm_params":{"model":"phi4"}},{"model_name":"odd"},{"litellm_params":{}}]}"#,
        ),
        _ => Do::Json(404, "{}".into()),
    });
    let backend = gateway("gate", Some(&format!("{}/v1", server.url)));
    let names = model_list::offered(&backend, &with_key(), PATIENT)
        .await
        .unwrap();
    assert_eq!(names, ["ollama/qwen", "openai/*"]);
    assert!(
        model_list::offers(&names, "openai/anything") && !model_list::offers(&names, "ollama/phi4")
    );

    let behind = model_list::deployments(&backend, &with_key(), PATIENT)
        .await
        .unwrap();
    let seen: Vec<_> = behind
        .iter()
        .map(|d| (d.name.as_str(), d.id.as_str(), d.api_base.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            ("ollama/qwen", "org/qwen3", Some("http://swap:8080/v1")),
            ("bare", "phi4", None)
        ]
    );
    let heads = server.asked();
    assert!(
        heads
            .iter()
            .all(|a| a.head.contains("Bearer sk-canary\r\n")),
        "{heads:?}"
    );
}

#[tokio::test]
async fn missing_or_refused_key_names_the_variable() {
    let no_db = r#"{"error":{"message":"No connected db.","type":"no_db_connection","param":null,"code":"400"}}"#;
    let missing = ModelListError::KeyMissing {
        var: Some("GATE_KEY".into()),
    };
    let refused = ModelListError::KeyRefused {
        var: "GATE_KEY".into(),
    };
    for (reply, without, with) in [
        (Do::Json(401, "{}".into()), &missing, &refused),
        (Do::Json(403, "<html>".into()), &missing, &refused),
        (Do::Json(400, no_db.into()), &missing, &refused),
    ] {
        assert_eq!(
            &offered(reply.clone(), &Env::default(), PATIENT)
                .await
                .unwrap_err(),
            without
        );
        assert_eq!(
            &offered(reply, &with_key(), PATIENT).await.unwrap_err(),
            with
        );
    }
    // LiteLLM without its database package falls over a missing key; with a key the same words are a real failure.
    let fallen = Do::Raw(http(500, "text/plain", "Internal Server Error"));
    assert_eq!(
        offered(fallen.clone(), &Env::default(), PATIENT)
            .await
            .unwrap_err(),
        missing
    );
    assert!(matches!(
        offered(fallen, &with_key(), PATIENT).await.unwrap_err(),
        ModelListError::Status { status: 500, .. }
    ));
    let empty = Env::from_iter([("GATE_KEY", "  ")]);
    assert_eq!(
        offered(Do::Json(401, "{}".into()), &empty, PATIENT)
            .await
            .unwrap_err(),
        missing
    );
    assert!(missing.to_string().contains("$GATE_KEY") && refused.to_string().contains("$GATE_KEY"));
}

#[tokio::test]
async fn invalid_model_lists_are_distinguished() {
    let env = with_key();
    let path = || "/v1/models".to_owned();
    let page = Do::Raw(http(200, "text/html", "<!doctype html><title>hi</title>"));
    assert_eq!(
        offered(page, &env, PATIENT).await.unwrap_err(),
        ModelListError::NotJson {
            path: path(),
            found: "a web page"
        }
    );
    assert_eq!(
        offered(json(""), &env, PATIENT).await.unwrap_err(),
        ModelListError::NotJson {
            path: path(),
            found: "nothing"
        }
    );
    assert_eq!(
        offered(json("{\"data\":["), &env, PATIENT)
            .await
            .unwrap_err(),
        ModelListError::NotJson {
            path: path(),
            found: "broken JSON"
        }
    );
    assert_eq!(
        offered(json("{\"data\":{}}"), &env, PATIENT)
            .await
            .unwrap_err(),
        ModelListError::NoModels { path: path() }
    );
    assert_eq!(
        offered(Do::Flood, &env, PATIENT).await.unwrap_err(),
        ModelListError::TooLarge { path: path() }
    );
    let short = Do::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"da".to_vec());
    assert_eq!(
        offered(short, &env, PATIENT).await.unwrap_err(),
        Unreachable::Closed.into()
    );
    let stalls = Do::Stall(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"da".to_vec());
    assert_eq!(
        offered(stalls, &env, SHORT).await.unwrap_err(),
        Unreachable::TimedOut(SHORT).into()
    );
    let closed = ClosedPort::hold();
    assert_eq!(
        model_list::offered(&gateway("gate", Some(&closed.url)), &env, PATIENT)
            .await
            .unwrap_err(),
        Unreachable::Refused.into()
    );
    let deep = "[".repeat(100_000);
    assert!(matches!(
        offered(json(&deep), &env, PATIENT).await.unwrap_err(),
        ModelListError::NotJson { .. }
    ));
}

#[tokio::test]
async fn key_goes_only_to_its_server() {
    let thief = Server::always(json(r#"{"data":[{"id":"ollama/qwen"}]}"#));
    let redirect = format!(
        "HTTP/1.1 307 X\r\nlocation: {}/v1/models\r\ncontent-length: 0\r\n\r\n",
        thief.url
    );
    let error = offered(Do::Raw(redirect.into_bytes()), &with_key(), PATIENT)
        .await
        .unwrap_err();
    assert_eq!(
        error,
        ModelListError::Redirected {
            path: "/v1/models".into(),
            status: 307
        }
    );
    assert!(thief.asked().is_empty());

    let echo = r#"{"error":{"message":"bad\u001b[31m header: Bearer sk-canary\nend"}}"#;
    let error = offered(Do::Json(502, echo.into()), &with_key(), PATIENT)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`/v1/models` answered 502: bad\\u{1b}[31m header: Bearer [redacted] end"
    );
    assert!(!format!("{error:?}").contains("canary"));
}
