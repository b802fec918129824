//! Line transport between the SDK and the client: reads whole lines, refuses invalid requests,
//! queues replies. It reports the end of input only when every request is settled, so that no reply
//! is lost.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions as _, GetMeta as _,
    JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;
use tokio::io::AsyncRead;

use super::envelope::{self, Incoming};
use super::lines::LineReader;
use super::outbox::Outbox;
use supervisor_skills::NotificationSender;

pub(super) struct LineTransport<R> {
    lines: LineReader<R>,
    outbox: Arc<Outbox>,
    /// True once the SDK has left its handshake. Before that, any notification would make it end
    /// the session.
    is_started: bool,
    /// Messages for the SDK that come before the next line.
    waiting: VecDeque<ClientJsonRpcMessage>,
}

impl<R: AsyncRead + Unpin> LineTransport<R> {
    pub(super) fn new(input: R, outbox: Arc<Outbox>) -> Self {
        Self {
            lines: LineReader::new(input),
            outbox,
            is_started: false,
            waiting: VecDeque::new(),
        }
    }

    /// Makes the handshake of the oldest protocol in the place of a client that makes none. The
    /// reply is dropped, because no such request is open.
    fn begin_silently(&mut self) {
        let handshake = [
            json!({"jsonrpc": "2.0", "id": "supervisor:initialize", "method": "initialize", "params": envelope::oldest_client()}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        ];
        self.waiting = handshake
            .into_iter()
            .map(|message| serde_json::from_value(message).expect("a valid message"))
            .collect();
        self.is_started = true;
    }

    fn accept(&mut self, incoming: Incoming) -> Option<ClientJsonRpcMessage> {
        match incoming {
            Incoming::Ignored => None,
            Incoming::Refused(refusals) => {
                for refusal in refusals {
                    self.outbox.send(&refusal.to_json());
                }
                None
            }
            Incoming::Request(mut message) => {
                if let JsonRpcMessage::Request(request) = &mut *message {
                    let id = request.id.clone();
                    if !self.is_started {
                        match opening(&request.request) {
                            Opening::Probe => {}
                            Opening::Begins => self.is_started = true,
                            Opening::Silent => self.begin_silently(),
                            Opening::TooEarly => {
                                self.outbox.send(&too_early(id));
                                return None;
                            }
                        }
                    }
                    self.outbox.open(id.clone());
                    request.request.extensions_mut().insert({
                        let outbox = Arc::clone(&self.outbox);
                        NotificationSender::new(move |message| outbox.progress(&id, message))
                    });
                }
                Some(*message)
            }
            Incoming::Answer(message) => self.is_started.then_some(*message),
            Incoming::Notification(message) => {
                if let JsonRpcMessage::Notification(notification) = &*message
                    && let ClientNotification::CancelledNotification(cancelled) =
                        &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.outbox.cancel(id);
                }
                self.is_started.then_some(*message)
            }
        }
    }
}

/// The effect of a request on a session that has not started.
enum Opening {
    /// Answered; the client may still start either way.
    Probe,
    Begins,
    /// Has neither a handshake nor anything that replaces it, as in `echo … | supervisor`.
    Silent,
    TooEarly,
}

fn opening(request: &ClientRequest) -> Opening {
    match request {
        ClientRequest::InitializeRequest(_) => Opening::Begins,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => Opening::Probe,
        request => {
            let meta = request.get_meta();
            match meta.protocol_version() {
                Some(_)
                    if !meta
                        .missing_required_keys(&ProtocolVersion::V_2026_07_28)
                        .is_empty() =>
                {
                    Opening::TooEarly
                }
                Some(version) if ProtocolVersion::KNOWN_VERSIONS.contains(&version) => {
                    Opening::Begins
                }
                Some(_) => Opening::Probe, // refused by the SDK, with the versions we speak
                None if is_plain_tool_request(request) => Opening::Silent,
                None => Opening::TooEarly,
            }
        }
    }
}

/// Whether the request is about tools and says nothing of the protocol.
fn is_plain_tool_request(request: &ClientRequest) -> bool {
    let is_about_tools = matches!(
        request,
        ClientRequest::ListToolsRequest(_) | ClientRequest::CallToolRequest(_)
    );
    let meta = request.get_meta();
    is_about_tools
        && meta
            .keys()
            .all(|key| !key.starts_with("io.modelcontextprotocol/"))
}

fn too_early(id: RequestId) -> ServerJsonRpcMessage {
    let message = "nothing has begun: send `initialize` first, or say in the request's `_meta` \
                   `io.modelcontextprotocol/protocolVersion` and `io.modelcontextprotocol/clientCapabilities`";
    ServerJsonRpcMessage::error(ErrorData::invalid_params(message, None), Some(id))
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for LineTransport<R> {
    type Error = Infallible;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match &message {
            JsonRpcMessage::Response(response) => self.outbox.reply(&response.id, &message),
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => self.outbox.reply(id, &message),
                None => self.outbox.send(&message),
            },
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {
                self.outbox.send(&message);
            }
        }
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            self.outbox.wait_for_capacity().await;
            match self.lines.next().await {
                Ok(Some(line)) => {
                    let message = self.accept(envelope::read(line));
                    self.waiting.extend(message);
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "reading stdin failed; taken as its end");
                    break;
                }
            }
        }
        self.outbox.all_answered().await;
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}
