//! A model server on loopback that answers with scripted bytes, or misbehaves, and remembers every request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What one connection gets.
#[derive(Clone, Debug)]
pub enum Says {
    Http {
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
    /// These bytes and then the end of the connection.
    Raw(Vec<u8>),
    /// Nothing, until the client goes away.
    Silence,
    /// A body without end.
    Flood,
}

impl Says {
    pub fn json(status: u16, headers: &[(&str, &str)], body: &Value) -> Self {
        let mut says = Self::text(status, headers, &body.to_string());
        if let Self::Http { headers, .. } = &mut says {
            headers.push(("content-type".into(), "application/json".into()));
        }
        says
    }

    pub fn text(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let headers = headers
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect();
        Self::Http {
            status,
            headers,
            body: body.as_bytes().to_vec(),
        }
    }

    /// An answer as a server without a gateway gives it.
    pub fn content(text: &str) -> Self {
        Self::json(200, &[], &completion(text))
    }
}

pub fn completion(text: &str) -> Value {
    json!({
        "id": "c1", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 2000, "completion_tokens": 7, "total_tokens": 2007},
    })
}

#[derive(Clone, Debug)]
pub struct Request {
    pub head: String,
    pub body: Value,
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<Request>>,
    /// Clients that went away before their answer.
    gone: Mutex<usize>,
    changed: Notify,
}

pub struct Upstream {
    pub url: String,
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

impl Upstream {
    /// One answer for each request, the last one again and again.
    pub async fn start(script: impl IntoIterator<Item = Says>) -> Self {
        let script: Vec<_> = script.into_iter().collect();
        let next = AtomicUsize::new(0);
        Self::answering(move |_| {
            script[next.fetch_add(1, Ordering::Relaxed).min(script.len() - 1)].clone()
        })
        .await
    }

    /// The answer depends on the request.
    pub async fn answering(script: impl Fn(&Request) -> Says + Send + Sync + 'static) -> Self {
        let script = Arc::new(script);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Seen::default());
        let task = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&seen)));
                }
            }
        });
        Self { url, seen, task }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// Waits until a request has come in.
    pub async fn asked(&self) {
        self.until("a request", || {
            !self.seen.requests.lock().unwrap().is_empty()
        })
        .await;
    }

    /// Waits until a client has gone away without its answer.
    pub async fn abandoned(&self) {
        self.until("a client that goes away", || {
            *self.seen.gone.lock().unwrap() > 0
        })
        .await;
    }

    async fn until(&self, what: &str, done: impl Fn() -> bool) {
        let wait = async {
            loop {
                let changed = self.seen.changed.notified();
                if done() {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), wait)
            .await
            .unwrap_or_else(|_| panic!("waited for {what}"));
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, script: Arc<impl Fn(&Request) -> Says>, seen: Arc<Seen>) {
    let Some(request) = read(&mut stream).await else {
        return;
    };
    let says = script(&request);
    seen.requests.lock().unwrap().push(request);
    seen.changed.notify_waiters();
    match says {
        Says::Http {
            status,
            headers,
            body,
        } => {
            let mut head = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n",
                body.len()
            );
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str("\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(&body).await;
        }
        Says::Raw(bytes) => {
            let _ = stream.write_all(&bytes).await;
        }
        Says::Silence => {
            let mut byte = [0];
            let _ = stream.read(&mut byte).await;
            *seen.gone.lock().unwrap() += 1;
            seen.changed.notify_waiters();
        }
        Says::Flood => {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(head.as_bytes()).await;
            let chunk = vec![b' '; 1 << 16];
            while stream.write_all(&chunk).await.is_ok() {}
            *seen.gone.lock().unwrap() += 1;
            seen.changed.notify_waiters();
        }
    }
    let _ = stream.shutdown().await;
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        let n = stream.read(&mut chunk).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&chunk[..n]);
        let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head
            .lines()
            .find_map(|l| {
                l.to_lowercase()
                    .strip_prefix("content-length:")
                    .map(|v| v.trim().parse::<usize>().unwrap())
            })
            .unwrap_or(0);
        if bytes.len() >= end + 4 + length {
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or(Value::Null);
            return Some(Request { head, body });
        }
    }
}
