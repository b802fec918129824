//! MCP over streamable HTTP, by the SDK. One [`HttpEndpoint`] serves one caller: its sessions, and all requests of the
//! protocol without sessions, share one [`Server`]. Who the caller is, is known before a request comes here.

use std::convert::Infallible;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use rmcp::model::{CallToolRequestParams, ServerJsonRpcMessage};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{Server, project_root};
use supervisor_skills::NotificationSender;

/// How long a client may take to accept a progress notification.
const NOTIFY_TIMEOUT: Duration = Duration::from_millis(100);
/// Progress notifications that wait for a slow client; further ones are dropped.
const MAX_WAITING_NOTIFICATIONS: usize = 64;
/// How long cancelled calls may clean up.
const END_GRACE: Duration = Duration::from_secs(5);

/// What the callers of a server may do.
#[derive(Debug, Clone)]
pub struct CallLimits {
    /// Directories whose projects may be named; empty: every project.
    pub roots: Arc<[PathBuf]>,
    /// Tool calls at once, work in the background included.
    pub calls: usize,
}

/// [`CallLimits`] of one server, with the calls that are running.
#[derive(Debug, Clone)]
pub(super) struct CallGuard {
    roots: Arc<[PathBuf]>,
    limit: usize,
    pub(super) slots: Arc<Semaphore>,
}

impl CallGuard {
    fn new(limits: CallLimits) -> Self {
        Self {
            roots: limits.roots,
            limit: limits.calls,
            slots: Arc::new(Semaphore::new(limits.calls)),
        }
    }

    /// Puts the real path of the project into the request, after checking that it is allowed: what is behind a symbolic
    /// link counts.
    pub(super) fn check_root(&self, request: &mut CallToolRequestParams) -> Result<(), ErrorData> {
        let named = request
            .arguments
            .as_mut()
            .and_then(|arguments| arguments.get_mut(project_root::ARGUMENT));
        let Some(named) = named.filter(|named| !named.is_null()) else {
            return Ok(());
        };
        let real = named
            .as_str()
            .and_then(|path| self.allowed(Path::new(path)));
        match real.as_deref().and_then(Path::to_str) {
            Some(real) => *named = Value::from(real),
            None if self.roots.is_empty() => {} // the tool says what is wrong with it
            // Whether it exists is not told.
            None => {
                return Err(ErrorData::invalid_params(
                    "this server does not work on that project; nothing was read or changed. Name one below a directory of `http.roots` in the server's settings",
                    None,
                ));
            }
        }
        Ok(())
    }

    /// The real path of a project that callers may name.
    pub(super) fn allowed(&self, root: &Path) -> Option<PathBuf> {
        let real = root.canonicalize().ok()?;
        let is_below = |allowed: &PathBuf| real.starts_with(allowed);
        (self.roots.is_empty() || self.roots.iter().any(is_below)).then_some(real)
    }

    pub(super) fn too_many(&self) -> String {
        format!(
            "{} of yours are running, the most that this server takes from one caller; nothing was done. Call again when one has ended",
            supervisor_text::words::count(self.limit, "call")
        )
    }
}

/// The server of one caller.
pub struct HttpEndpoint {
    service: StreamableHttpService<Server, LocalSessionManager>,
    server: Server,
}

impl HttpEndpoint {
    /// Answers only requests to these hosts, and from web pages of these origins.
    pub fn new(
        server: Server,
        limits: CallLimits,
        hosts: &[String],
        origins: &[String],
        stop: CancellationToken,
    ) -> Self {
        let server = Server {
            guard: Some(CallGuard::new(limits)),
            ..server
        };
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .with_allowed_origins(origins)
            .enforce_origin_validation()
            .with_cancellation_token(stop);
        let made = server.clone();
        let sessions = Arc::new(LocalSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(made.clone()), sessions, config);
        Self { service, server }
    }

    pub async fn handle<B>(
        &self,
        request: http::Request<B>,
    ) -> http::Response<BoxBody<Bytes, Infallible>>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Display,
    {
        self.service.handle(request).await
    }

    /// Cancels what is running, and waits a moment until it has cleaned up.
    pub async fn stop(&self) {
        self.server.jobs_stop.cancel();
        self.server.calls.close();
        if tokio::time::timeout(END_GRACE, self.server.calls.wait())
            .await
            .is_err()
        {
            tracing::warn!("calls still clean up; not waiting any longer");
        }
    }
}

/// Lets a call report its progress through the SDK, in order and without waiting for the client.
pub(super) fn add_progress_channel(cx: &mut RequestContext<RoleServer>) {
    if cx.extensions.get::<NotificationSender>().is_some() || cx.meta.get_progress_token().is_none()
    {
        return;
    }
    let (send, mut waiting) = mpsc::channel(MAX_WAITING_NOTIFICATIONS);
    let peer = cx.peer.clone();
    tokio::spawn(async move {
        while let Some(notification) = waiting.recv().await {
            let sent = peer.send_notification(notification);
            let _ = tokio::time::timeout(NOTIFY_TIMEOUT, sent).await;
        }
    });
    cx.extensions
        .insert(NotificationSender::new(move |message| {
            if let ServerJsonRpcMessage::Notification(one) = message {
                let _ = send.try_send(one.notification.clone());
            }
        }));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_projects_below_a_root_are_allowed() {
        let dir = tempfile::tempdir().expect("a directory");
        let base = dir.path().canonicalize().expect("it is there");
        for name in ["work/shop", "work-other", "secret"] {
            std::fs::create_dir_all(base.join(name)).expect("made");
        }
        std::os::unix::fs::symlink(base.join("secret"), base.join("work/link")).expect("made");
        std::os::unix::fs::symlink(base.join("work/shop"), base.join("in")).expect("made");
        let guard = |roots: &[PathBuf]| {
            CallGuard::new(CallLimits {
                roots: roots.into(),
                calls: 1,
            })
        };
        let check = |roots: &[PathBuf], root: Value| {
            let arguments = json!({"project_root": root});
            let mut request = CallToolRequestParams::new("review")
                .with_arguments(arguments.as_object().expect("an object").clone());
            let checked = guard(roots).check_root(&mut request);
            checked.map(|()| request.arguments.expect("given")["project_root"].clone())
        };
        let work = [base.join("work")];
        for refused in ["work-other", "secret", "work/link", "work/../secret", "no"] {
            assert!(
                check(&work, json!(base.join(refused))).is_err(),
                "{refused}"
            );
        }
        assert!(check(&work, json!(7)).is_err());
        let shop = json!(base.join("work/shop"));
        for allowed in ["work/shop", "in"] {
            assert_eq!(check(&work, json!(base.join(allowed))), Ok(shop.clone()));
        }
        let secret = json!(base.join("secret"));
        assert_eq!(check(&[], secret.clone()), Ok(secret), "without roots");
    }
}
