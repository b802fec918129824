//! The one way to speak HTTP: clients built on first use, answers of bounded size, and why there was no answer.
//! Knows addresses, keys and time limits. Does not know what an answer means.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use secrecy::{ExposeSecret as _, SecretString};

pub use reqwest::Url;

/// Until there is a connection; what comes after has its own limit.
const CONNECT: Duration = Duration::from_secs(3);

/// How long a connection is kept unused. Less than any server keeps one (5 s is the shortest default seen): a question
/// must not meet a connection that is just being closed.
const IDLE: Duration = Duration::from_secs(2);
const IDLE_CONNECTIONS: usize = 32;

/// Why an address gave no HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    #[error("no address is configured")]
    NotConfigured,
    #[error("the address is not an http or https URL")]
    BadUrl,
    #[error("the host name is not known")]
    Dns,
    #[error("the connection was refused")]
    Refused,
    #[error("no answer within {:.1} s", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error("no secure connection: {0}")]
    Tls(String),
    #[error("the connection closed before an answer came")]
    Closed,
    #[error("what answers there does not speak HTTP")]
    NotHttp,
    #[error("no connection: {0}")]
    Other(String),
}

impl Unreachable {
    /// One word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotConfigured => "not_configured",
            Self::BadUrl => "bad_url",
            Self::Dns => "dns",
            Self::Refused => "refused",
            Self::TimedOut(_) => "timed_out",
            Self::Tls(_) => "tls",
            Self::Closed => "closed",
            Self::NotHttp => "not_http",
            Self::Other(_) => "no_connection",
        }
    }
}

/// A whole answer, or as much of it as was allowed.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: u16,
    pub body: Vec<u8>,
    /// The body was longer than the cap, so only its beginning is here.
    pub cut: bool,
}

/// Is there any HTTP answer at all? Nothing of it is read beyond the status line and headers.
pub async fn knock(url: &Url, limit: Duration) -> Result<Duration, Unreachable> {
    let began = Instant::now();
    let request = client(url)?.get(url.clone()).send();
    match tokio::time::timeout(limit, request).await {
        Ok(Ok(_)) => Ok(began.elapsed()),
        Ok(Err(error)) => Err(why(&error, limit)),
        Err(_) => Err(Unreachable::TimedOut(limit)),
    }
}

/// Fetches `url`, at most `cap` bytes of it. The limit holds for all of it, name lookup and body included.
pub async fn get(
    url: &Url,
    key: Option<&SecretString>,
    limit: Duration,
    cap: usize,
) -> Result<HttpAnswer, Unreachable> {
    let mut request = client(url)?.get(url.clone());
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, bearer(key)?);
    }
    whole(request, limit, cap).await
}

/// Sends JSON, and reads at most `cap` bytes of what comes back.
pub async fn post(
    url: &Url,
    key: Option<&SecretString>,
    body: &serde_json::Value,
    limit: Duration,
    cap: usize,
) -> Result<HttpAnswer, Unreachable> {
    let mut request = client(url)?.post(url.clone()).json(body);
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, bearer(key)?);
    }
    whole(request, limit, cap).await
}

async fn whole(
    request: reqwest::RequestBuilder,
    limit: Duration,
    cap: usize,
) -> Result<HttpAnswer, Unreachable> {
    let whole = async {
        let response = request.send().await.map_err(|e| why(&e, limit))?;
        let status = response.status().as_u16();
        let (body, cut) = read(response, cap).await.map_err(|e| why(&e, limit))?;
        Ok(HttpAnswer { status, body, cut })
    };
    tokio::time::timeout(limit, whole)
        .await
        .unwrap_or(Err(Unreachable::TimedOut(limit)))
}

/// The client for an address. Nothing is built before the first question, so a server that is only asked for its
/// tools starts without reading certificates.
///
/// - Redirects are never followed: a key would travel along.
/// - Loopback never goes through a proxy, which would answer for a gateway that is down.
/// - Plain HTTP needs no certificates, so it also works where the system has none.
/// - Connections are not kept: a probe should find out whether one can be made.
pub fn client(url: &Url) -> Result<&'static Client, Unreachable> {
    built(url, Connections::Fresh)
}

/// The same for questions, which follow each other closely: their connections are kept for a moment.
pub fn asking(url: &Url) -> Result<&'static Client, Unreachable> {
    built(url, Connections::Kept)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Connections {
    Fresh,
    Kept,
}

fn built(url: &Url, connections: Connections) -> Result<&'static Client, Unreachable> {
    static CLIENTS: [OnceLock<Client>; 8] = [const { OnceLock::new() }; 8];
    let (secure, loopback, kept) = (
        is_secure(url)?,
        is_loopback(url),
        connections == Connections::Kept,
    );
    let slot = &CLIENTS[usize::from(kept) * 4 + usize::from(secure) * 2 + usize::from(loopback)];
    if let Some(client) = slot.get() {
        return Ok(client);
    }
    // An error means that a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("supervisor/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(CONNECT)
        .pool_max_idle_per_host(if kept { IDLE_CONNECTIONS } else { 0 })
        .pool_idle_timeout(IDLE);
    if loopback {
        builder = builder.no_proxy();
    }
    if !secure {
        builder = builder.tls_certs_only([]);
    }
    let built = builder.build().map_err(|e| Unreachable::Tls(deepest(&e)))?;
    Ok(slot.get_or_init(|| built))
}

/// The key as a header that debug output leaves out.
pub fn bearer(key: &SecretString) -> Result<HeaderValue, Unreachable> {
    let mut value =
        HeaderValue::from_str(&format!("Bearer {}", key.expose_secret())).map_err(|_| {
            Unreachable::Other("the key holds characters that no header can carry".into())
        })?;
    value.set_sensitive(true);
    Ok(value)
}

/// An address below a base; a base that already ends in `/v1` is understood too.
pub fn below(base: &str, path: &str) -> Result<Url, Unreachable> {
    let mut url = Url::parse(base.trim()).map_err(|_| Unreachable::BadUrl)?;
    is_secure(&url)?;
    let stem = url.path().trim_end_matches('/');
    let stem = stem.strip_suffix("/v1").unwrap_or(stem);
    let path = format!("{stem}/{}", path.trim_start_matches('/'));
    url.set_path(&path);
    Ok(url)
}

/// An address as it may be shown: without user, password, query and fragment, any of which can be a secret.
pub fn shown(address: &str) -> Option<String> {
    let mut url = Url::parse(address.trim()).ok()?;
    is_secure(&url).ok()?;
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.set_query(None);
    url.set_fragment(None);
    Some(url.as_str().trim_end_matches('/').to_owned())
}

/// Reads up to `cap` bytes; true if there was more.
pub async fn read(mut response: Response, cap: usize) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = cap - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((body, true));
        }
    }
    Ok((body, false))
}

/// What a failed request means. The library's own text is never shown: it holds the address with its credentials.
pub fn why(error: &reqwest::Error, limit: Duration) -> Unreachable {
    if error.is_timeout() {
        return Unreachable::TimedOut(limit);
    }
    if error.is_builder() {
        return Unreachable::BadUrl;
    }
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(found) = meaning(cause, limit) {
            return found;
        }
        next = inner(cause);
    }
    Unreachable::Other(deepest(error))
}

/// What one link in the chain of causes says, if it says anything. Where the libraries keep their types to
/// themselves, their words have to do; the tests ask real sockets, so a change of words is seen.
fn meaning(cause: &(dyn Error + 'static), limit: Duration) -> Option<Unreachable> {
    if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
        return Some(Unreachable::Tls(tls.to_string()));
    }
    let text = cause.to_string();
    if text == "dns error" {
        return Some(Unreachable::Dns);
    }
    if text == "tls handshake eof" {
        return Some(Unreachable::Tls(
            "the other side ended the handshake".into(),
        ));
    }
    if text.contains("invalid HTTP") {
        return Some(Unreachable::NotHttp);
    }
    if text.contains("connection closed before") || text.contains("end of file before") {
        return Some(Unreachable::Closed);
    }
    match cause.downcast_ref::<io::Error>().map(io::Error::kind)? {
        io::ErrorKind::ConnectionRefused => Some(Unreachable::Refused),
        io::ErrorKind::TimedOut => Some(Unreachable::TimedOut(limit)),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => Some(Unreachable::Closed),
        _ => None,
    }
}

/// The cause behind a cause. An I/O error hides the error it wraps from `source`.
fn inner<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match cause
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        Some(wrapped) => Some(wrapped),
        None => cause.source(),
    }
}

fn is_secure(url: &Url) -> Result<bool, Unreachable> {
    match (url.scheme(), url.host_str()) {
        ("https", Some(_)) => Ok(true),
        ("http", Some(_)) => Ok(false),
        _ => Err(Unreachable::BadUrl),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The innermost cause: the outer ones repeat the address.
fn deepest(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else {
        return "unknown cause".into();
    };
    while let Some(deeper) = inner(cause) {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_anything_that_could_be_a_secret() {
        assert_eq!(
            shown("http://me:pw@host:4000/x/?key=abc#d").as_deref(),
            Some("http://host:4000/x")
        );
        assert_eq!(
            shown("http://host:4000/").as_deref(),
            Some("http://host:4000")
        );
        assert_eq!(shown("me:pw@host"), None);
        assert_eq!(shown("file:///etc/passwd"), None);
    }

    #[test]
    fn paths_are_joined_below_a_base_with_or_without_v1() {
        for base in [
            "http://h:1",
            "http://h:1/",
            "http://h:1/v1",
            "http://h:1/v1/",
            " http://h:1 ",
        ] {
            assert_eq!(
                below(base, "/v1/models").expect("joined").as_str(),
                "http://h:1/v1/models",
                "{base}"
            );
        }
        assert_eq!(
            below("http://h/gate/v1", "model/info")
                .expect("joined")
                .as_str(),
            "http://h/gate/model/info"
        );
        for bad in [
            "",
            "localhost:4000",
            "ftp://h",
            "http://",
            "://",
            "unix:/run/x",
        ] {
            assert_eq!(
                below(bad, "x").expect_err(bad),
                Unreachable::BadUrl,
                "{bad}"
            );
        }
    }

    #[test]
    fn loopback_is_recognised_by_name_and_number() {
        for (url, loopback) in [
            ("http://localhost:1", true),
            ("http://gate.localhost", true),
            ("http://127.9.0.1", true),
            ("http://[::1]:80", true),
            ("http://localhost.example.org", false),
            ("http://192.168.0.1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).expect(url)), loopback, "{url}");
        }
    }

    #[tokio::test]
    async fn a_host_name_that_cannot_exist_is_told_from_a_host_that_is_down() {
        // A label of 64 letters is refused by the resolver itself, without a question on the network.
        let url =
            Url::parse(&format!("http://{}.localhost.invalid/", "a".repeat(64))).expect("a URL");
        let error = get(&url, None, Duration::from_secs(20), 10)
            .await
            .expect_err("no such host");
        assert_eq!(error, Unreachable::Dns);
    }

    #[test]
    fn a_key_is_not_shown_by_debug_output_and_a_broken_one_is_refused() {
        let header = bearer(&SecretString::from("sk-canary")).expect("a header");
        assert!(!format!("{header:?}").contains("canary"));
        assert!(
            !bearer(&SecretString::from("sk\ncanary"))
                .expect_err("newline")
                .to_string()
                .contains("canary")
        );
    }
}
