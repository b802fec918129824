//! Runs of `claude` against a server that is not Anthropic's. Such a server never gets the user's
//! login: the program sees an empty configuration directory and a key of the settings. A program that
//! runs models of the user's own servers has no network either: a Unix socket leads to the server
//! and nowhere else.

use std::path::PathBuf;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixListener};
use tokio::task::{JoinHandle, JoinSet};

use crate::AskError;
use crate::http::Url;
use supervisor_process::environment::Environment;
use supervisor_process::{Confinement, NetworkReach, ScratchDir};
use supervisor_settings::BackendSettings;

/// What a server gets that wants no key.
pub(super) const NO_KEY: &str = "local";
/// A subscription's login, or a way to another provider.
const LOGIN_VARS: &[&str] = &[
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
];
const PROXY_VARS: &[&str] = &["http_proxy", "https_proxy", "all_proxy"];

/// Removes the login from an environment, and sets the key of a server that wants none.
pub(super) fn hide_login(env: &mut Environment, settings: &BackendSettings) {
    for name in LOGIN_VARS.iter().chain(&["CLAUDE_CONFIG_DIR"]) {
        env.remove(std::ffi::OsStr::new(name));
    }
    let token = std::ffi::OsStr::new("ANTHROPIC_AUTH_TOKEN");
    // Only a token that was named for this very server is meant for it.
    if settings.api_key_env.as_deref() != token.to_str() {
        env.remove(token);
    }
    if !env.contains_key(token) {
        env.entry("ANTHROPIC_API_KEY".into())
            .or_insert_with(|| NO_KEY.into());
    }
    if settings.runs_own_models() {
        env.retain(|name, _| {
            !PROXY_VARS
                .iter()
                .any(|proxy| name.eq_ignore_ascii_case(proxy))
        });
    }
    for (name, value) in [
        // A line that differs per prompt would keep the server from using its cache.
        ("CLAUDE_CODE_ATTRIBUTION_HEADER", "0"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ] {
        env.insert(name.into(), value.into());
    }
}

/// The private directory of one run, and the way to its server. Removed when dropped.
#[derive(Debug)]
pub(super) struct ServerAccess {
    dir: ScratchDir,
    relay: Option<Relay>,
}

impl ServerAccess {
    /// `None` for Anthropic's own address.
    pub(super) fn open(settings: &BackendSettings) -> Result<Option<Self>, AskError> {
        let Some(base_url) = settings
            .base_url
            .as_deref()
            .filter(|_| settings.is_foreign())
        else {
            return Ok(None);
        };
        let misconfigured = |why: String| AskError::Misconfigured {
            setting: format!("backends.{}.base_url", settings.name),
            why,
        };
        let failed = |what: &str, error: std::io::Error| {
            misconfigured(format!("{what} could not be made: {error}"))
        };
        let target = if settings.runs_own_models() {
            Some(target(base_url).map_err(misconfigured)?)
        } else {
            None
        };
        let dir = ScratchDir::short("c-").map_err(|e| failed("a private directory", e))?;
        std::fs::create_dir(dir.path().join("config"))
            .map_err(|e| failed("a private directory", e))?;
        let relay = target.map(|target| Relay::start(dir.path().join("api"), target));
        let relay = relay.transpose().map_err(|e| failed("a socket", e))?;
        Ok(Some(Self { dir, relay }))
    }

    pub(super) fn apply(&self, env: &mut Environment, confine: &mut Confinement) {
        let dir = self.dir.path();
        env.insert("CLAUDE_CONFIG_DIR".into(), dir.join("config").into());
        confine.write.push(dir.to_owned());
        if let Some(relay) = &self.relay {
            env.insert("ANTHROPIC_UNIX_SOCKET".into(), relay.socket.clone().into());
            // With any other scheme the program speaks TLS on the socket.
            let base = format!("http://localhost{}", relay.target.path);
            env.insert("ANTHROPIC_BASE_URL".into(), base.into());
            confine.network = Some(NetworkReach::Private);
        }
    }
}

/// Where a relay leads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    host: String,
    port: u16,
    /// Path before `/v1/messages`; empty if there is none.
    path: String,
}

fn target(base_url: &str) -> Result<Target, String> {
    let url = Url::parse(base_url).map_err(|error| error.to_string())?;
    if url.scheme() == "https" {
        return Err(String::from(
            "`claude` with models of your own is not supported over https, because it gets no network but a socket \
             to its server; give the server's http address, put a local gateway such as LiteLLM in front of it, or \
             use it as text workers with kind = \"anthropic\"",
        ));
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match url.port_or_known_default() {
        Some(port) if url.scheme() == "http" && !host.is_empty() => Ok(Target {
            host: host.to_owned(),
            port,
            path: url.path().trim_end_matches('/').to_owned(),
        }),
        _ => Err(format!("`{}` is not an address with http://", url.scheme())),
    }
}

/// Passes bytes between a Unix socket and a server. Ends, with all its connections, when dropped.
#[derive(Debug)]
struct Relay {
    socket: PathBuf,
    target: Target,
    task: JoinHandle<()>,
}

impl Relay {
    fn start(socket: PathBuf, target: Target) -> std::io::Result<Self> {
        let listener = UnixListener::bind(&socket)?;
        let task = tokio::spawn(serve(listener, target.clone()));
        Ok(Self {
            socket,
            target,
            task,
        })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: UnixListener, target: Target) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((mut client, _)) = accepted else { return };
                let target = target.clone();
                connections.spawn(async move {
                    // A connection that fails is closed: the program reports and repeats it.
                    let address = (target.host.as_str(), target.port);
                    if let Ok(mut server) = TcpStream::connect(address).await {
                        let _ = copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_is_refused_with_a_way_out() {
        assert_eq!(
            target("http://[::1]:8080/prefix/"),
            Ok(Target {
                host: "::1".into(),
                port: 8080,
                path: "/prefix".into()
            })
        );
        assert_eq!(target("http://gpu.lan").map(|t| t.port), Ok(80));
        let why = target("https://gpu.lan").expect_err("no TLS on the socket");
        assert!(why.contains("kind = \"anthropic\""), "{why}");
        assert!(target("unix:/x").is_err());
    }
}
