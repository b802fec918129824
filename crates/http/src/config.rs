//! What a server over HTTP needs to know, checked before it listens.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use supervisor_settings::HttpSettings;
use url::Url;

use super::keys::{KeySource, Keys};

/// The port of the first version of this program.
pub const DEFAULT_PORT: u16 = 3200;

/// A checked configuration.
#[derive(Debug)]
pub struct HttpConfig {
    pub(crate) roots: Arc<[PathBuf]>,
    pub(crate) hosts: Vec<String>,
    pub(crate) origins: Vec<String>,
    /// Where clients reach the server.
    pub(crate) resource: String,
    /// `None`: every caller that can connect is allowed.
    pub(crate) auth: Option<Auth>,
    pub(crate) calls: usize,
    pub(crate) requests_per_minute: u32,
}

/// Which bearer tokens are accepted.
#[derive(Debug)]
pub(crate) struct Auth {
    pub issuer: String,
    pub audience: String,
    pub keys: Keys,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(
        "`{address}` is not loopback, and there `http.{key}` is required: {why}. Nothing was started. Set it in your models.toml \
         (docs/team.md has an example), or listen on 127.0.0.1"
    )]
    Required {
        address: SocketAddr,
        key: &'static str,
        why: &'static str,
    },
    #[error(
        "`http.{key}` is required with `http.issuer`; nothing was started. Set it in your models.toml"
    )]
    RequiredWithIssuer { key: &'static str },
    #[error("`http.roots` names `{path}`, which is not a directory: {error}; nothing was started")]
    Root { path: String, error: std::io::Error },
    #[error(
        "`http.jwks` takes an `https` address (`http` on loopback) or an absolute path; nothing was started"
    )]
    Jwks,
    #[error(
        "`http.resource` is not an `https` address. Tokens must not travel in the clear: put a proxy with a certificate in front, \
         and give its address. Nothing was started"
    )]
    NotHttps,
}

impl HttpConfig {
    /// Checks the settings for a server that listens on `address`.
    pub fn new(settings: &HttpSettings, address: SocketAddr) -> Result<Self, ConfigError> {
        let is_public = !address.ip().is_loopback();
        let required = |key, why| ConfigError::Required { address, key, why };
        if is_public {
            if settings.roots.is_empty() {
                return Err(required("roots", "it says which projects callers may name"));
            }
            if settings.issuer.is_none() {
                return Err(required("issuer", "callers must show a token"));
            }
        }
        let resource = match &settings.resource {
            Some(resource) if is_public && !resource.starts_with("https://") => {
                return Err(ConfigError::NotHttps);
            }
            Some(resource) => resource.clone(),
            None if is_public => {
                let why = "it is the address of the proxy that speaks TLS in front";
                return Err(required("resource", why));
            }
            None => format!("http://{address}{}", super::PATH),
        };
        let mut hosts = ["localhost", "127.0.0.1", "::1"].map(String::from).to_vec();
        hosts.extend(settings.hosts.iter().cloned());
        let host = Url::parse(&resource).ok();
        hosts.extend(host.and_then(|url| url.host_str().map(str::to_owned)));
        Ok(Self {
            roots: real_roots(&settings.roots)?,
            hosts,
            origins: settings.origins.clone(),
            auth: auth(settings, &resource)?,
            resource,
            calls: settings.calls as usize,
            requests_per_minute: settings.requests_per_minute,
        })
    }

    /// Whether every call needs a token.
    pub fn needs_token(&self) -> bool {
        self.auth.is_some()
    }
}

fn real_roots(roots: &[String]) -> Result<Arc<[PathBuf]>, ConfigError> {
    let real = |path: &String| {
        let found = std::fs::canonicalize(path).and_then(|real| match real.is_dir() {
            true => Ok(real),
            false => Err(std::io::ErrorKind::NotADirectory.into()),
        });
        found.map_err(|error| ConfigError::Root {
            path: path.clone(),
            error,
        })
    };
    roots.iter().map(real).collect()
}

fn auth(settings: &HttpSettings, resource: &str) -> Result<Option<Auth>, ConfigError> {
    let Some(issuer) = &settings.issuer else {
        return Ok(None);
    };
    let jwks = settings.jwks.as_deref();
    let jwks = jwks.ok_or(ConfigError::RequiredWithIssuer { key: "jwks" })?;
    let source = KeySource::parse(jwks).ok_or(ConfigError::Jwks)?;
    // A default resource would name a port of loopback, which no provider puts into tokens.
    let audience = settings
        .audience
        .clone()
        .or_else(|| settings.resource.clone());
    debug_assert!(!resource.is_empty());
    Ok(Some(Auth {
        issuer: issuer.clone(),
        audience: audience.ok_or(ConfigError::RequiredWithIssuer { key: "audience" })?,
        keys: Keys::new(source),
    }))
}
