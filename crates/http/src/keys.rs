//! The public keys of the issuer, from its JWKS. They are read again when they are old, and when a token names a key that
//! is not among them, but not more often than every half minute: anybody can send such a token.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{Jwk, JwkSet};
use tokio::sync::Mutex;
use url::{Host, Url};

const MAX_BYTES: usize = 256 * 1024;
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_AGE: Duration = Duration::from_secs(60 * 60);
const MIN_PAUSE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(crate) enum KeySource {
    File(PathBuf),
    Url(String),
}

impl KeySource {
    /// Plain HTTP only from this machine: somebody who can change the keys can sign tokens.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.starts_with('/') {
            return Some(Self::File(PathBuf::from(text)));
        }
        let url = Url::parse(text).ok()?;
        let is_loopback = match url.host()? {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.is_loopback(),
        };
        (url.scheme() == "https" || url.scheme() == "http" && is_loopback)
            .then(|| Self::Url(text.to_owned()))
    }

    async fn read(&self) -> Result<JwkSet, String> {
        let text = match self {
            Self::Url(url) => supervisor_models::fetch(url, FETCH_TIMEOUT, MAX_BYTES).await?,
            Self::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_file(&path)).await;
                read.map_err(|error| error.to_string())?
                    .map_err(|error| error.to_string())?
            }
        };
        serde_json::from_slice(&text).map_err(|_| String::from("it is not a JWKS document"))
    }
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut file = File::open(path)?.take(MAX_BYTES as u64);
    file.read_to_end(&mut text).map(|_| text)
}

/// The keys, as last read.
#[derive(Debug)]
pub(crate) struct Keys {
    source: KeySource,
    read: Mutex<Option<KeysRead>>,
}

#[derive(Debug, Clone)]
struct KeysRead {
    at: Instant,
    keys: Arc<JwkSet>,
    /// Why the last try to read them failed.
    error: Option<String>,
}

impl Keys {
    pub(crate) fn new(source: KeySource) -> Self {
        Self {
            source,
            read: Mutex::default(),
        }
    }

    /// The key of this name. The error says why the keys cannot be read; old ones serve until they can.
    pub(crate) async fn find(&self, id: &str) -> Result<Option<Jwk>, String> {
        let mut read = self.read.lock().await;
        let is_due = read.as_ref().is_none_or(|read| {
            let pause = match read.keys.find(id) {
                Some(_) => MAX_AGE,
                None => MIN_PAUSE,
            };
            read.at.elapsed() >= pause
        });
        if is_due {
            let (keys, error) = match self.source.read().await {
                Ok(keys) => (Arc::new(keys), None),
                Err(error) => {
                    tracing::warn!("`http.jwks` cannot be read: {error}");
                    let old = read.take().map(|read| read.keys);
                    (
                        old.unwrap_or_else(|| Arc::new(JwkSet { keys: Vec::new() })),
                        Some(error),
                    )
                }
            };
            let at = Instant::now();
            *read = Some(KeysRead { at, keys, error });
        }
        let read = read.clone().expect("it was read above");
        match (read.keys.find(id), read.error) {
            (Some(key), _) => Ok(Some(key.clone())),
            (None, Some(error)) if read.keys.keys.is_empty() => Err(error),
            (None, _) => Ok(None),
        }
    }
}
