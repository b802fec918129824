//! HTTP client for all backends: clients are built on first use, responses are limited in size, and
//! errors are classified as [`Unreachable`].

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use secrecy::{ExposeSecret as _, SecretString};

pub(crate) use reqwest::Url;

/// Time limit for connecting. The request itself has its own limit.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long an unused connection is kept. Shorter than any server's own idle limit (5 s is the
/// shortest default seen), so that a request never uses a connection that is just being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_IDLE_CONNECTIONS: usize = 32;

/// Why an address gave no HTTP response.
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
    /// Machine-readable code.
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

/// An HTTP response, up to the size limit.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub status: u16,
    pub body: Vec<u8>,
    /// True if the body was longer than the limit; only its beginning is kept.
    pub truncated: bool,
}

/// Checks for any HTTP response at all. Reads only the status line and headers.
pub(crate) async fn probe(url: &Url, limit: Duration) -> Result<Duration, Unreachable> {
    let began = Instant::now();
    let request = client(url)?.get(url.clone()).send();
    match tokio::time::timeout(limit, request).await {
        Ok(Ok(_)) => Ok(began.elapsed()),
        Ok(Err(error)) => Err(classify(&error, limit)),
        Err(_) => Err(Unreachable::TimedOut(limit)),
    }
}

/// Fetches `url`, at most `cap` bytes. The time limit covers everything, including name lookup and
/// body.
pub(crate) async fn get(
    url: &Url,
    key: Option<&SecretString>,
    limit: Duration,
    cap: usize,
) -> Result<HttpResponse, Unreachable> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        headers.insert(AUTHORIZATION, bearer(key)?);
    }
    get_with(url, headers, limit, cap).await
}

/// Fetches a public document, at most `cap` bytes, following no redirect. An error says why there is none.
pub async fn fetch(url: &str, limit: Duration, cap: usize) -> Result<Vec<u8>, String> {
    let url = Url::parse(url).map_err(|_| Unreachable::BadUrl.to_string())?;
    match get(&url, None, limit, cap).await {
        Ok(HttpResponse {
            truncated: true, ..
        }) => Err(format!("it is longer than {cap} bytes")),
        Ok(HttpResponse {
            status: 200, body, ..
        }) => Ok(body),
        Ok(HttpResponse { status, .. }) => Err(format!("it answers with HTTP {status}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Like [`get`], with other headers.
pub(crate) async fn get_with(
    url: &Url,
    headers: HeaderMap,
    limit: Duration,
    cap: usize,
) -> Result<HttpResponse, Unreachable> {
    send(client(url)?.get(url.clone()).headers(headers), limit, cap).await
}

/// Sends JSON and reads at most `cap` bytes of the response.
pub(crate) async fn post(
    url: &Url,
    key: Option<&SecretString>,
    body: &serde_json::Value,
    limit: Duration,
    cap: usize,
) -> Result<HttpResponse, Unreachable> {
    let mut request = client(url)?.post(url.clone()).json(body);
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, bearer(key)?);
    }
    send(request, limit, cap).await
}

async fn send(
    request: reqwest::RequestBuilder,
    limit: Duration,
    cap: usize,
) -> Result<HttpResponse, Unreachable> {
    let send = async {
        let response = request.send().await.map_err(|e| classify(&e, limit))?;
        let status = response.status().as_u16();
        let (body, truncated) = read_capped(response, cap)
            .await
            .map_err(|e| classify(&e, limit))?;
        Ok(HttpResponse {
            status,
            body,
            truncated,
        })
    };
    tokio::time::timeout(limit, send)
        .await
        .unwrap_or(Err(Unreachable::TimedOut(limit)))
}

/// The client for an address. It is built on first use, so a server that is only asked for its
/// tools starts without reading certificates.
///
/// - Redirects are never followed: the key would be sent along.
/// - Loopback never goes through a proxy, which would answer for a gateway that is down.
/// - Plain HTTP needs no certificates, so it also works where the system has none.
/// - Connections are not reused: a probe should find out whether one can be made.
pub(crate) fn client(url: &Url) -> Result<&'static Client, Unreachable> {
    client_for(url, Connections::Fresh)
}

/// The client for an address that is not a backend's.
pub fn client_for_address(url: &str) -> Result<&'static Client, Unreachable> {
    client(&Url::parse(url).map_err(|_| Unreachable::BadUrl)?)
}

/// A client for questions, which often follow each other closely: keeps connections for a moment.
pub(crate) fn pooled_client(url: &Url) -> Result<&'static Client, Unreachable> {
    client_for(url, Connections::Kept)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Connections {
    Fresh,
    Kept,
}

fn client_for(url: &Url, connections: Connections) -> Result<&'static Client, Unreachable> {
    static CLIENTS: [OnceLock<Client>; 8] = [const { OnceLock::new() }; 8];
    let (secure, loopback, keep_alive) = (
        is_secure(url)?,
        is_loopback(url),
        connections == Connections::Kept,
    );
    let slot =
        &CLIENTS[usize::from(keep_alive) * 4 + usize::from(secure) * 2 + usize::from(loopback)];
    if let Some(client) = slot.get() {
        return Ok(client);
    }
    // An error means that a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("supervisor/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(if keep_alive { MAX_IDLE_CONNECTIONS } else { 0 })
        .pool_idle_timeout(IDLE_TIMEOUT);
    if loopback {
        builder = builder.no_proxy();
    }
    if !secure {
        builder = builder.tls_certs_only([]);
    }
    let client = builder
        .build()
        .map_err(|e| Unreachable::Tls(root_cause(&e)))?;
    Ok(slot.get_or_init(|| client))
}

/// The key as a header value that is hidden in debug output.
pub(crate) fn bearer(key: &SecretString) -> Result<HeaderValue, Unreachable> {
    let mut value =
        HeaderValue::from_str(&format!("Bearer {}", key.expose_secret())).map_err(|_| {
            Unreachable::Other("the key holds characters that no header can carry".into())
        })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Joins a path to a base URL. The base may already end in `/v1`.
pub(crate) fn join_url(base: &str, path: &str) -> Result<Url, Unreachable> {
    let mut url = Url::parse(base.trim()).map_err(|_| Unreachable::BadUrl)?;
    is_secure(&url)?;
    let stem = url.path().trim_end_matches('/');
    let stem = stem.strip_suffix("/v1").unwrap_or(stem);
    let path = format!("{stem}/{}", path.trim_start_matches('/'));
    url.set_path(&path);
    Ok(url)
}

/// The address without user, password, query and fragment, any of which may be secret.
pub(crate) fn displayable(address: &str) -> Option<String> {
    let mut url = Url::parse(address.trim()).ok()?;
    is_secure(&url).ok()?;
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.set_query(None);
    url.set_fragment(None);
    Some(url.as_str().trim_end_matches('/').to_owned())
}

/// Reads up to `cap` bytes. The flag is true if there was more.
pub(crate) async fn read_capped(
    mut response: Response,
    cap: usize,
) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let remaining = cap - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(remaining)]);
        if chunk.len() > remaining {
            return Ok((body, true));
        }
    }
    Ok((body, false))
}

/// Classifies a failed request. The library's own text is never shown, because it contains the URL
/// with its credentials.
pub(crate) fn classify(error: &reqwest::Error, limit: Duration) -> Unreachable {
    if error.is_timeout() {
        return Unreachable::TimedOut(limit);
    }
    if error.is_builder() {
        return Unreachable::BadUrl;
    }
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(found) = classify_cause(cause, limit) {
            return found;
        }
        next = source_of(cause);
    }
    Unreachable::Other(root_cause(error))
}

/// Classifies one error in the source chain. Some libraries keep their error types private, so
/// their texts are matched; tests against real sockets detect when those change.
fn classify_cause(cause: &(dyn Error + 'static), limit: Duration) -> Option<Unreachable> {
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

/// The source of an error. `io::Error` does not expose the error it wraps through `source`.
fn source_of<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
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

pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The innermost error: the outer ones repeat the address.
fn root_cause(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else {
        return "unknown cause".into();
    };
    while let Some(source) = source_of(cause) {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_address_contains_no_secret() {
        assert_eq!(
            displayable("http://me:pw@host:4000/x/?key=abc#d").as_deref(),
            Some("http://host:4000/x")
        );
        assert_eq!(
            displayable("http://host:4000/").as_deref(),
            Some("http://host:4000")
        );
        assert_eq!(displayable("me:pw@host"), None);
        assert_eq!(displayable("file:///etc/passwd"), None);
    }

    #[test]
    fn path_joins_base_with_or_without_v1() {
        for base in [
            "http://h:1",
            "http://h:1/",
            "http://h:1/v1",
            "http://h:1/v1/",
            " http://h:1 ",
        ] {
            assert_eq!(
                join_url(base, "/v1/models").expect("joined").as_str(),
                "http://h:1/v1/models",
                "{base}"
            );
        }
        assert_eq!(
            join_url("http://h/gate/v1", "model/info")
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
                join_url(bad, "x").expect_err(bad),
                Unreachable::BadUrl,
                "{bad}"
            );
        }
    }

    #[test]
    fn loopback_is_recognised_by_name_and_address() {
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
    async fn unknown_host_is_a_dns_error() {
        // The resolver itself rejects a label of 64 letters, without a network request.
        let url =
            Url::parse(&format!("http://{}.localhost.invalid/", "a".repeat(64))).expect("a URL");
        let error = get(&url, None, Duration::from_secs(20), 10)
            .await
            .expect_err("no such host");
        assert_eq!(error, Unreachable::Dns);
    }

    #[test]
    fn key_is_hidden_and_invalid_key_rejected() {
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
