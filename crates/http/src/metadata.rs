//! RFC 9728: tells clients which issuer has tokens for this server.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use url::Url;

use super::PATH;
use super::callers::Callers;
use super::config::HttpConfig;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Where it is served: with the path of the server, as the RFC says, and without, where some clients look.
pub(crate) fn paths(config: &HttpConfig) -> Vec<String> {
    let mut paths = vec![WELL_KNOWN.to_owned(), format!("{WELL_KNOWN}{PATH}")];
    let own = Url::parse(&config.resource).ok();
    let own = own.map(|url| format!("{WELL_KNOWN}{}", url.path().trim_end_matches('/')));
    // A path with braces would be a pattern to the router.
    paths.extend(own.filter(|path| !path.contains(['{', '}'])));
    paths.sort();
    paths.dedup();
    paths
}

/// The address for the `WWW-Authenticate` header.
pub(crate) fn url(config: &HttpConfig) -> String {
    match Url::parse(&config.resource) {
        Ok(url) => {
            let path = url.path().trim_end_matches('/');
            format!("{}{WELL_KNOWN}{path}", url.origin().ascii_serialization())
        }
        Err(_) => WELL_KNOWN.to_owned(),
    }
}

pub(crate) async fn answer(State(callers): State<Arc<Callers>>) -> Json<Value> {
    let config = &callers.config;
    let issuer = config.auth.as_ref().map(|auth| auth.issuer.as_str());
    Json(json!({
        "resource": config.resource,
        "authorization_servers": [issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "supervisor",
    }))
}
