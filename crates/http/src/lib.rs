//! MCP over streamable HTTP, for CI and runners that have a checkout of their own. On loopback it needs no
//! authentication; elsewhere every request carries a bearer token (JWT) of the company's identity provider, and a proxy
//! in front speaks TLS. Each caller has sessions, jobs and limits of its own.

mod callers;
mod config;
mod keys;
mod metadata;
mod token;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use axum::routing::{any, get};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use callers::ServerFactory;
use callers::{Callers, Refused};
pub use config::{ConfigError, DEFAULT_PORT, HttpConfig};
use token::TokenError;

/// Where MCP is served.
pub const PATH: &str = "/mcp";

/// Serves until `stop` is cancelled, then waits a moment for what is running.
pub async fn serve(
    listener: TcpListener,
    config: HttpConfig,
    make: ServerFactory,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let callers = Arc::new(Callers::new(config, make, stop.clone()));
    let mut router = Router::new().route(PATH, any(answer));
    if callers.config.auth.is_some() {
        for path in metadata::paths(&callers.config) {
            router = router.route(&path, get(metadata::answer));
        }
    }
    let router = router.with_state(Arc::clone(&callers));
    let served =
        axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    // Streams of clients end with their sessions; a client that keeps its connection does not hold up the end.
    let result = tokio::select! {
        result = served => result,
        () = async { stop.cancelled().await; callers.stop().await } => Ok(()),
    };
    callers.stop().await;
    result
}

async fn answer(
    State(callers): State<Arc<Callers>>,
    request: Request<Body>,
) -> Result<Response<Body>, Infallible> {
    let caller = match &callers.config.auth {
        None => String::new(),
        Some(auth) => match token::authenticate(auth, request.headers()).await {
            Ok(caller) => caller,
            Err(error) => return Ok(unauthorized(&callers.config, &error)),
        },
    };
    Ok(match callers.enter(&caller) {
        Ok(entered) => {
            let response = entered.endpoint().handle(without_token(request)).await;
            // The place is taken until the last byte of the response.
            response.map(|body| Body::new(callers::Held::new(body, entered)))
        }
        Err(Refused::TooFast { retry_s }) => {
            let mut response = plain(
                StatusCode::TOO_MANY_REQUESTS,
                "Too many requests: wait, then call again.\n",
            );
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, retry_s.into());
            response
        }
        Err(Refused::Full) => plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "This server has no place for another caller now.\n",
        ),
    })
}

/// The token goes no further than here.
fn without_token(mut request: Request<Body>) -> Request<Body> {
    request.headers_mut().remove(header::AUTHORIZATION);
    request
}

fn unauthorized(config: &HttpConfig, error: &TokenError) -> Response<Body> {
    tracing::warn!("a request was refused: {error}");
    let status = match error {
        TokenError::NoKeys(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::UNAUTHORIZED,
    };
    let mut response = plain(status, &format!("{error}\n"));
    if status == StatusCode::UNAUTHORIZED {
        let mut challenge = format!("Bearer resource_metadata=\"{}\"", metadata::url(config));
        if !matches!(error, TokenError::Missing) {
            challenge += ", error=\"invalid_token\"";
        }
        if let Ok(challenge) = challenge.parse() {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, challenge);
        }
    }
    response
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(text.to_owned()));
    *response.status_mut() = status;
    let plain = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// The one bearer token of a request.
fn bearer(headers: &HeaderMap) -> Result<&str, TokenError> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let value = given.next().ok_or(TokenError::Missing)?;
    let text = value.to_str().map_err(|_| TokenError::Malformed)?;
    let (scheme, token) = text.split_once(' ').ok_or(TokenError::Malformed)?;
    if given.next().is_some() || !scheme.eq_ignore_ascii_case("bearer") {
        return Err(TokenError::Malformed);
    }
    Ok(token.trim())
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
