//! An MCP client with its server in the same process, connected by an in-memory pipe that carries
//! lines of JSON. Commands that use it get exactly what any MCP client gets: the same argument
//! errors, results and log entries.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use supervisor_mcp as server;
use supervisor_mcp::{Server, SessionEnd};
use supervisor_skills::App;

/// MCP protocol revision that this client speaks.
const PROTOCOL: &str = "2025-11-25";
/// Capacity of the pipe in each direction; a writer waits while it is full.
const PIPE_BYTES: usize = 64 * 1024;

/// A client and its server. [`Client::finish`] waits for everything that still runs; dropping the
/// client cancels without waiting.
pub(super) struct Client {
    server: Server,
    to_server: DuplexStream,
    from_server: Lines<BufReader<DuplexStream>>,
    session: JoinHandle<SessionEnd>,
    last_id: u64,
    _cancel_on_drop: DropGuard,
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CallReply {
    /// The structured result, with any status.
    Answered(Value),
    /// We cancelled it and nothing of it runs any more: the project is as it was before the call.
    Cancelled,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    /// The server's error message, for example about an unknown tool.
    #[error("{0}")]
    Refused(String),
    #[error(
        "the server in this process ended without an answer; `SUPERVISOR_LOG=debug` shows more"
    )]
    Disconnected,
    #[error("the server in this process answered with something that is not a result: {0}")]
    InvalidReply(String),
}

impl Client {
    /// Starts a server and initialises a session. Needs a running runtime.
    pub(super) async fn start(app: App) -> Result<Self, ClientError> {
        let server = Server::new(app);
        let (to_server, input) = tokio::io::duplex(PIPE_BYTES);
        let (output, from_server) = tokio::io::duplex(PIPE_BYTES);
        let stop = CancellationToken::new();
        let session = tokio::spawn(server::serve(server.clone(), input, output, stop.clone()));
        let from_server = BufReader::new(from_server).lines();
        let _cancel_on_drop = stop.drop_guard();
        let mut client = Self {
            server,
            to_server,
            from_server,
            session,
            last_id: 0,
            _cancel_on_drop,
        };
        let params = json!({
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")},
        });
        client.ask("initialize", params).await?;
        client
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await?;
        Ok(client)
    }

    /// Lists the tools as every client sees them.
    pub(super) async fn tools(&mut self) -> Result<Vec<Value>, ClientError> {
        match self
            .ask("tools/list", json!({}))
            .await?
            .get_mut("tools")
            .map(Value::take)
        {
            Some(Value::Array(tools)) => Ok(tools),
            other => Err(ClientError::InvalidReply(format!("{other:?}"))),
        }
    }

    /// Calls a tool and passes each line of progress to `on_progress`. On `stop` it sends a
    /// cancellation and waits for the restore. An answer that was already on its way is still
    /// returned.
    pub(super) async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        stop: &CancellationToken,
        on_progress: &mut (dyn FnMut(&str) + Send),
    ) -> Result<CallReply, ClientError> {
        if stop.is_cancelled() {
            return Ok(CallReply::Cancelled);
        }
        let id = self.last_id + 1;
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
        self.send_request("tools/call", params).await?;
        loop {
            let message = tokio::select! {
                biased;
                message = self.next_message() => message?,
                () = stop.cancelled() => break,
            };
            if message["id"] == id {
                return structured_content(into_result(message)?);
            }
            if let Some(line) = message["params"]["message"].as_str() {
                on_progress(line);
            }
        }
        let cancelled = json!({"requestId": id, "reason": "interrupted"});
        self.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}),
        )
        .await?;
        self.server.idle().await;
        // Replies come in order: the answer to the call, if it was on its way, comes before this
        // one.
        self.send_request("ping", json!({})).await?;
        loop {
            let message = self.next_message().await?;
            if message["id"] == id {
                return structured_content(into_result(message)?);
            }
            if message["id"] == self.last_id {
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
        // Drain the pipe, so that the server does not see it closed.
        let mut rest = from_server;
        while let Ok(Some(_)) = rest.next_line().await {}
        let _ = session.await;
        server.idle().await;
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, ClientError> {
        self.send_request(method, params).await?;
        loop {
            let message = self.next_message().await?;
            if message["id"] == self.last_id {
                return into_result(message);
            }
        }
    }

    async fn send_request(&mut self, method: &str, params: Value) -> Result<(), ClientError> {
        self.last_id += 1;
        self.send(
            &json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}),
        )
        .await
    }

    async fn send(&mut self, message: &Value) -> Result<(), ClientError> {
        let line = format!("{message}\n");
        self.to_server
            .write_all(line.as_bytes())
            .await
            .map_err(|_| ClientError::Disconnected)
    }

    /// Reads the next message. Cancel safe: a partly read line is kept.
    async fn next_message(&mut self) -> Result<Value, ClientError> {
        match self.from_server.next_line().await {
            Ok(Some(line)) => {
                serde_json::from_str(&line).map_err(|e| ClientError::InvalidReply(e.to_string()))
            }
            Ok(None) | Err(_) => Err(ClientError::Disconnected),
        }
    }
}

/// Extracts the result of a reply, or the error it carries.
fn into_result(mut message: Value) -> Result<Value, ClientError> {
    match message
        .get("error")
        .and_then(|error| error["message"].as_str())
    {
        Some(why) => Err(ClientError::Refused(why.to_owned())),
        None => Ok(message["result"].take()),
    }
}

fn structured_content(mut result: Value) -> Result<CallReply, ClientError> {
    match result["structuredContent"].take() {
        Value::Null => Err(ClientError::InvalidReply(result.to_string())),
        content => Ok(CallReply::Answered(content)),
    }
}

/// Reads the full result from the file that a shortened reply names; returns other replies
/// unchanged.
pub(super) fn whole_result(reply: Value) -> Value {
    let full = reply["full_result"]
        .as_str()
        .and_then(|path| std::fs::read(path).ok());
    full.and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn cancelled_call_is_not_sent() {
        let mut client = Client::start(crate::built_in::app(None))
            .await
            .expect("begins");
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
