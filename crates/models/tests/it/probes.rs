//! Any HTTP answer counts as there; what is not there is told apart by cause; nothing secret is shown or sent on.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use supervisor_models::probe::{AddressRole, ProbedAddress, endpoints, probe};
use supervisor_models::{Env, Unreachable};
use supervisor_settings::{Warm, WarmKind};

use supervisor_test_support::loopback::{ClosedPort, Do, Server, http};
use supervisor_test_support::settings::{gateway, routing};

/// Far longer than any answer takes on loopback; only what never answers comes near it.
const PATIENT: Duration = Duration::from_secs(30);
/// For what never answers.
const SHORT: Duration = Duration::from_millis(200);

/// Probes one gateway at this address, with the cloud on a port where nobody listens.
async fn gateway_at(url: &str, limit: Duration) -> ProbedAddress {
    let closed = ClosedPort::hold();
    let env = Env::from_iter([("ANTHROPIC_BASE_URL", closed.url.as_str())]);
    let all = probe(
        endpoints(&routing([gateway("gate", Some(url))], None), &env),
        limit,
    )
    .await;
    all.into_iter()
        .find(|p| p.role == AddressRole::Gateway)
        .unwrap()
}

#[tokio::test]
async fn any_http_answer_counts_as_reachable() {
    let elsewhere = Server::always(Do::Json(200, "{}".into()));
    let redirect = format!(
        "HTTP/1.1 302 X\r\nlocation: {}/\r\ncontent-length: 0\r\n\r\n",
        elsewhere.url
    );
    for (what, reply) in [
        ("ok", Do::Json(200, "\"I'm alive!\"".into())),
        ("no key", Do::Json(401, "{}".into())),
        ("not found", Do::Json(404, "{}".into())),
        (
            "broken",
            Do::Raw(http(500, "text/plain", "Internal Server Error")),
        ),
        (
            "a web page",
            Do::Raw(http(200, "text/html", "<html></html>")),
        ),
        ("a redirect", Do::Raw(redirect.into_bytes())),
        ("a body that never ends", Do::Flood),
        (
            "a body that stops short",
            Do::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nI'm".to_vec()),
        ),
        (
            "a body that stalls",
            Do::Stall(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n".to_vec()),
        ),
    ] {
        let server = Server::always(reply);
        let found = gateway_at(&server.url, PATIENT).await;
        assert!(found.is_reachable(), "{what}: {found:?}");
        assert_eq!(found.url.as_deref(), Some(server.url.as_str()), "{what}");
    }
    assert!(elsewhere.asked().is_empty(), "a redirect was followed");
}

#[tokio::test]
async fn unreachable_address_names_the_cause() {
    let closed = ClosedPort::hold();
    let silent = Server::always(Do::Stall(vec![]));
    let garbage = Server::always(Do::Raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec()));
    let hangs_up = Server::always(Do::Close);
    let half_a_head = Server::always(Do::Stall(b"HTTP/1.1 200 OK\r\ncontent-".to_vec()));

    assert_eq!(
        gateway_at(&closed.url, PATIENT).await.answer,
        Err(Unreachable::Refused)
    );
    assert_eq!(
        gateway_at(&silent.url, SHORT).await.answer,
        Err(Unreachable::TimedOut(SHORT))
    );
    assert_eq!(
        gateway_at(&half_a_head.url, SHORT).await.answer,
        Err(Unreachable::TimedOut(SHORT))
    );
    assert_eq!(
        gateway_at(&garbage.url, PATIENT).await.answer,
        Err(Unreachable::NotHttp)
    );
    assert_eq!(
        gateway_at(&hangs_up.url, PATIENT).await.answer,
        Err(Unreachable::Closed)
    );
    assert_eq!(
        gateway_at("localhost:4000", PATIENT).await.answer,
        Err(Unreachable::BadUrl)
    );
    assert_eq!(
        gateway_at("", PATIENT).await.answer,
        Err(Unreachable::NotConfigured)
    );

    let plain = Server::always(Do::Close);
    let secure = gateway_at(&plain.url.replace("http:", "https:"), PATIENT).await;
    assert!(
        matches!(secure.answer, Err(Unreachable::Tls(_))),
        "{secure:?}"
    );
}

#[tokio::test]
async fn addresses_are_probed_concurrently() {
    // Nobody answers until all three have been asked: one after another would never end.
    let together = Arc::new(Barrier::new(3));
    let wait = |reply: Do| {
        let together = Arc::clone(&together);
        Server::start(move |_| {
            together.wait();
            reply.clone()
        })
    };
    let (cloud, gate, swap) = (
        wait(Do::Json(404, "{}".into())),
        wait(Do::Json(200, "{}".into())),
        wait(Do::Raw(http(200, "text/plain", "OK"))),
    );
    let warm = Warm {
        kind: WarmKind::LlamaSwap,
        url: swap.url.clone(),
    };
    let env = Env::from_iter([
        ("ANTHROPIC_BASE_URL", cloud.url.as_str()),
        ("GATE_KEY", "sk-canary"),
    ]);
    let all = probe(
        endpoints(
            &routing([gateway("gate", Some(&gate.url))], Some(warm)),
            &env,
        ),
        PATIENT,
    )
    .await;

    assert!(all.iter().all(ProbedAddress::is_reachable), "{all:?}");
    assert_eq!(
        all.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(),
        ["anthropic", "gate", "llama-swap"]
    );
    assert_eq!(gate.paths(), ["/health/liveliness"]);
    let heads: Vec<_> = [cloud, gate, swap]
        .iter()
        .flat_map(Server::asked)
        .map(|a| a.head)
        .collect();
    assert!(
        !heads.join("").contains("canary"),
        "a probe carries no key: {heads:?}"
    );
}

#[tokio::test]
async fn credentials_in_address_are_never_shown() {
    let server = Server::always(Do::Json(200, "{}".into()));
    let address = server.url.replace("http://", "http://me:canary@") + "/?key=canary";
    let found = gateway_at(&address, PATIENT).await;
    assert!(
        found.is_reachable() && !format!("{found:?}").contains("canary"),
        "{found:?}"
    );

    let closed = ClosedPort::hold();
    let found = gateway_at(&closed.url.replace("http://", "http://me:canary@"), PATIENT).await;
    assert!(!format!("{found:?}").contains("canary"), "{found:?}");
    let found = gateway_at("http//me:canary@host", PATIENT).await;
    assert!(!format!("{found:?}").contains("canary"), "{found:?}");
}
