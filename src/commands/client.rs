//! A server in this process, spoken to as any client would speak to it: lines of JSON through a pipe in memory.
//! So what a command shows is what an MCP client gets: the same argument errors, the same result, the same log entry.
//! Knows the protocol. Does not know what tools do, nor how a run looks.

use crate::built_in;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use supervisor_mcp as server;
use supervisor_mcp::{Server, SessionEnd};
use supervisor_skills::App;

/// The revision of the protocol that is spoken here.
const PROTOCOL: &str = "2025-11-25";
/// How much may be under way in each direction; more waits for its reader.
const PIPE: usize = 64 * 1024;

/// A client and its server. [`Client::finish`] waits for what still runs; dropping it cancels and does not wait.
pub(super) struct Client {
    server: Server,
    to_server: DuplexStream,
    from_server: Lines<BufReader<DuplexStream>>,
    session: JoinHandle<SessionEnd>,
    asked: u64,
    _ends_with_us: DropGuard,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CallReply {
    /// The structured result, whatever its status.
    Answered(Value),
    /// Stopped by us, and nothing of it runs any more: the project is as it was before the call.
    Cancelled,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    /// In the server's own words, such as an unknown tool.
    #[error("{0}")]
    Refused(String),
    #[error(
        "the server in this process ended without an answer; `SUPERVISOR_LOG=debug` shows more"
    )]
    Gone,
    #[error("the server in this process answered what is no result: {0}")]
    Nonsense(String),
}

impl Client {
    /// Starts a server and begins a session with it. Needs a running runtime.
    pub(super) async fn start(app: App) -> Result<Self, ClientError> {
        let server = Server::new(app);
        let (to_server, input) = tokio::io::duplex(PIPE);
        let (output, from_server) = tokio::io::duplex(PIPE);
        let stop = CancellationToken::new();
        let session = tokio::spawn(server::serve(server.clone(), input, output, stop.clone()));
        let from_server = BufReader::new(from_server).lines();
        let _ends_with_us = stop.drop_guard();
        let mut client = Self {
            server,
            to_server,
            from_server,
            session,
            asked: 0,
            _ends_with_us,
        };
        let hello = json!({
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")},
        });
        client.ask("initialize", hello).await?;
        client
            .say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await?;
        Ok(client)
    }

    /// The tools as every client sees them.
    pub(super) async fn tools(&mut self) -> Result<Vec<Value>, ClientError> {
        match self
            .ask("tools/list", json!({}))
            .await?
            .get_mut("tools")
            .map(Value::take)
        {
            Some(Value::Array(tools)) => Ok(tools),
            other => Err(ClientError::Nonsense(format!("{other:?}"))),
        }
    }

    /// Calls a tool and tells `hear` each line of progress. On `stop` it cancels as clients do, and waits for the restore.
    /// An answer that was on its way already is still the answer.
    pub(super) async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        stop: &CancellationToken,
        hear: &mut (dyn FnMut(&str) + Send),
    ) -> Result<CallReply, ClientError> {
        if stop.is_cancelled() {
            return Ok(CallReply::Cancelled);
        }
        let id = self.asked + 1;
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
        self.request("tools/call", params).await?;
        loop {
            let message = tokio::select! {
                biased;
                message = self.next() => message?,
                () = stop.cancelled() => break,
            };
            if message["id"] == id {
                return structured(answer(message)?);
            }
            if let Some(line) = message["params"]["message"].as_str() {
                hear(line);
            }
        }
        let cancelled = json!({"requestId": id, "reason": "interrupted"});
        self.say(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}),
        )
        .await?;
        self.server.idle().await;
        // What is answered after this was not on its way before.
        self.request("ping", json!({})).await?;
        loop {
            let message = self.next().await?;
            if message["id"] == id {
                return structured(answer(message)?);
            }
            if message["id"] == self.asked {
                return Ok(CallReply::Cancelled);
            }
        }
    }

    /// Ends the session and waits until nothing of it runs any more.
    pub(super) async fn finish(self) {
        let Self {
            server,
            to_server,
            from_server,
            session,
            ..
        } = self;
        drop(to_server);
        // Read to its end, so that the server does not see a closed pipe.
        let mut rest = from_server;
        while let Ok(Some(_)) = rest.next_line().await {}
        let _ = session.await;
        server.idle().await;
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, ClientError> {
        self.request(method, params).await?;
        loop {
            let message = self.next().await?;
            if message["id"] == self.asked {
                return answer(message);
            }
        }
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<(), ClientError> {
        self.asked += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}))
            .await
    }

    async fn say(&mut self, message: &Value) -> Result<(), ClientError> {
        let line = format!("{message}\n");
        self.to_server
            .write_all(line.as_bytes())
            .await
            .map_err(|_| ClientError::Gone)
    }

    /// The next message. May be dropped while it waits: what was read so far stays.
    async fn next(&mut self) -> Result<Value, ClientError> {
        match self.from_server.next_line().await {
            Ok(Some(line)) => {
                serde_json::from_str(&line).map_err(|e| ClientError::Nonsense(e.to_string()))
            }
            Ok(None) | Err(_) => Err(ClientError::Gone),
        }
    }
}

/// The result of a reply, or why there is none.
fn answer(mut message: Value) -> Result<Value, ClientError> {
    match message
        .get("error")
        .and_then(|error| error["message"].as_str())
    {
        Some(why) => Err(ClientError::Refused(why.to_owned())),
        None => Ok(message["result"].take()),
    }
}

fn structured(mut result: Value) -> Result<CallReply, ClientError> {
    match result["structuredContent"].take() {
        Value::Null => Err(ClientError::Nonsense(result.to_string())),
        content => Ok(CallReply::Answered(content)),
    }
}

/// The whole of a result whose reply is an outline, from the file that the reply names; else the reply itself.
pub(super) fn whole_result(reply: Value) -> Value {
    let kept = reply["full_result"]
        .as_str()
        .and_then(|path| std::fs::read(path).ok());
    kept.and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_that_is_stopped_before_it_begins_is_not_made() {
        let mut client = Client::start(built_in::app(None)).await.expect("begins");
        let stop = CancellationToken::new();
        stop.cancel();
        let called = client
            .call("no such tool", json!({}), &stop, &mut |_| {})
            .await
            .expect("nothing was asked");
        assert_eq!(called, CallReply::Cancelled);
        client.finish().await;
    }
}
