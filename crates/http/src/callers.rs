//! The callers of a server: each has an endpoint of its own, so that nobody reaches another's sessions, and limits.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::HttpBody;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use supervisor_mcp::{CallLimits, HttpEndpoint, Server};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::config::HttpConfig;

/// Callers that are known at once.
const MAX_CALLERS: usize = 1_000;
/// Requests and open streams of one caller.
const MAX_OPEN: usize = 64;

/// Makes the server of one caller. The name is a file name; empty for the only caller of a server without tokens.
pub type ServerFactory = Box<dyn Fn(&str) -> Server + Send + Sync>;

pub(crate) struct Callers {
    pub(crate) config: HttpConfig,
    make: ServerFactory,
    stop: CancellationToken,
    known: Mutex<HashMap<String, Arc<Caller>>>,
}

struct Caller {
    endpoint: HttpEndpoint,
    open: Arc<Semaphore>,
    rate: Mutex<Rate>,
}

/// Why a request is not taken.
pub(crate) enum Refused {
    TooFast { retry_s: u64 },
    Full,
}

/// A request that is being answered.
pub(crate) struct Entered {
    caller: Arc<Caller>,
    _open: OwnedSemaphorePermit,
}

impl Entered {
    pub(crate) fn endpoint(&self) -> &HttpEndpoint {
        &self.caller.endpoint
    }
}

impl Callers {
    pub(crate) fn new(config: HttpConfig, make: ServerFactory, stop: CancellationToken) -> Self {
        Self {
            config,
            make,
            stop,
            known: Mutex::default(),
        }
    }

    /// Takes a request of this caller.
    pub(crate) fn enter(&self, subject: &str) -> Result<Entered, Refused> {
        let caller = {
            let mut known = self.known.lock();
            match known.get(subject) {
                Some(caller) => Arc::clone(caller),
                None if known.len() >= MAX_CALLERS => return Err(Refused::Full),
                None => {
                    let caller = Arc::new(self.caller(subject));
                    known.insert(subject.to_owned(), Arc::clone(&caller));
                    caller
                }
            }
        };
        let wait = caller.rate.lock().take(Instant::now());
        if let Some(retry_s) = wait {
            return Err(Refused::TooFast { retry_s });
        }
        let open = Arc::clone(&caller.open).try_acquire_owned();
        let _open = open.map_err(|_| Refused::TooFast { retry_s: 1 })?;
        Ok(Entered { caller, _open })
    }

    fn caller(&self, subject: &str) -> Caller {
        let server = (self.make)(&folder_name(subject));
        let limits = CallLimits {
            roots: Arc::clone(&self.config.roots),
            calls: self.config.calls,
        };
        let (hosts, origins) = (&self.config.hosts, &self.config.origins);
        Caller {
            endpoint: HttpEndpoint::new(server, limits, hosts, origins, self.stop.child_token()),
            open: Arc::new(Semaphore::new(MAX_OPEN)),
            rate: Mutex::new(Rate::new(self.config.requests_per_minute, Instant::now())),
        }
    }

    pub(crate) async fn stop(&self) {
        let all: Vec<_> = self.known.lock().values().cloned().collect();
        let mut stopping = tokio::task::JoinSet::new();
        for caller in all {
            stopping.spawn(async move { caller.endpoint.stop().await });
        }
        stopping.join_all().await;
    }
}

/// A subject can be any text, so its folder has a hash for a name.
fn folder_name(subject: &str) -> String {
    if subject.is_empty() {
        return String::new();
    }
    let digest = Sha256::digest(subject.as_bytes());
    digest[..16].iter().fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// A minute's worth of requests at once, refilled evenly.
struct Rate {
    per_minute: f64,
    left: f64,
    at: Instant,
}

impl Rate {
    fn new(per_minute: u32, now: Instant) -> Self {
        Self {
            per_minute: f64::from(per_minute),
            left: f64::from(per_minute),
            at: now,
        }
    }

    /// Takes one request, or returns the seconds until there is one.
    fn take(&mut self, now: Instant) -> Option<u64> {
        let per_second = self.per_minute / 60.0;
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * per_second).min(self.per_minute);
        self.at = now;
        if self.left >= 1.0 {
            self.left -= 1.0;
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most a minute"
        )]
        Some(((1.0 - self.left) / per_second).ceil() as u64)
    }
}

/// A response body that keeps its request's place until it ends.
pub(crate) struct Held<B> {
    body: B,
    _entered: Entered,
}

impl<B> Held<B> {
    pub(crate) fn new(body: B, entered: Entered) -> Self {
        Self {
            body,
            _entered: entered,
        }
    }
}

impl<B: HttpBody + Unpin> HttpBody for Held<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn requests_beyond_the_rate_wait() {
        let start = Instant::now();
        let mut rate = Rate::new(60, start);
        assert!((0..60).all(|_| rate.take(start).is_none()));
        assert_eq!(rate.take(start), Some(1));
        let later = start + Duration::from_secs(2);
        assert!((0..2).all(|_| rate.take(later).is_none()));
        assert_eq!(rate.take(later), Some(1));
        let much_later = later + Duration::from_secs(3600);
        assert!((0..60).all(|_| rate.take(much_later).is_none()));
        assert_eq!(rate.take(much_later), Some(1), "what is saved has a limit");
    }

    #[test]
    fn subjects_have_folders_of_their_own() {
        let names = ["a", "b", "../a", "a/b"].map(folder_name);
        for name in &names {
            assert!(name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit()));
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1);
        }
        assert_eq!(folder_name(""), "");
    }
}
