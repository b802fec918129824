//! A connection to an engine: addresses, TLS, the token, and what the engine says it can do.

use std::fmt;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::bytestream::byte_stream_client::ByteStreamClient;
use bazel_remote_apis::google::longrunning::operations_client::OperationsClient;
use googleapis_tonic_google_devtools_remoteworkers_v1test2::google::devtools::remoteworkers::v1test2::bots_client::BotsClient;
use reapi::capabilities_client::CapabilitiesClient;
use reapi::content_addressable_storage_client::ContentAddressableStorageClient;
use reapi::execution_client::ExecutionClient;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status};

use crate::digest::DigestFunction;
use crate::error::RemoteError;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Limit for each call that is answered at once.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(60);
/// Largest message that is accepted. Engines send up to 4 MiB of blobs, and their digests with them.
const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Blobs of this size in total are sent in one message, if the engine does not say less.
const MAX_BATCH_BYTES: u64 = 3_500_000;

/// Where an engine is and how to speak to it.
#[derive(Clone)]
pub struct EngineAddress {
    /// `grpc://host:port`, or `grpcs://host:port` for TLS.
    pub execution: String,
    /// The storage, if it is elsewhere.
    pub cas: Option<String>,
    pub instance: String,
    /// Sent as bearer token.
    pub token: Option<String>,
}

impl fmt::Debug for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EngineAddress({}, {})", self.execution, self.instance)
    }
}

type AuthorizedChannel = InterceptedService<Channel, Bearer>;

/// Adds the token to each request.
#[derive(Clone)]
pub(crate) struct Bearer(Option<MetadataValue<Ascii>>);

impl tonic::service::Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request
                .metadata_mut()
                .insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// An open connection. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection {
    execution: AuthorizedChannel,
    cas: AuthorizedChannel,
    pub(crate) instance: String,
    pub(crate) function: DigestFunction,
    pub(crate) max_batch_bytes: u64,
    pub(crate) can_execute: bool,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({})", self.instance)
    }
}

impl Connection {
    /// Connects and asks the engine for its capabilities.
    pub(crate) async fn open(address: &EngineAddress) -> Result<Self, RemoteError> {
        let execution = open_channel(&address.execution, address.token.as_deref()).await?;
        let cas = match &address.cas {
            Some(cas) => open_channel(cas, address.token.as_deref()).await?,
            None => execution.clone(),
        };
        let capabilities = ask_capabilities(&execution, &address.instance).await?;
        let storage = match (&address.cas, capabilities.cache_capabilities) {
            (None, Some(storage)) => storage,
            _ => {
                let capabilities = ask_capabilities(&cas, &address.instance).await?;
                capabilities.cache_capabilities.unwrap_or_default()
            }
        };
        let function = DigestFunction::choose(&storage.digest_functions)
            .ok_or(RemoteError::NoDigestFunction)?;
        let engine_limit = u64::try_from(storage.max_batch_total_size_bytes).unwrap_or_default();
        Ok(Self {
            execution,
            cas,
            instance: address.instance.clone(),
            function,
            // 0 means that the engine sets no limit.
            max_batch_bytes: match engine_limit {
                0 => MAX_BATCH_BYTES,
                limit => limit.min(MAX_BATCH_BYTES),
            },
            can_execute: capabilities
                .execution_capabilities
                .is_some_and(|execution| execution.exec_enabled),
        })
    }

    pub(crate) fn execution(&self) -> ExecutionClient<AuthorizedChannel> {
        ExecutionClient::new(self.execution.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(crate) fn operations(&self) -> OperationsClient<AuthorizedChannel> {
        OperationsClient::new(self.execution.clone())
    }

    pub(crate) fn bots(&self) -> BotsClient<AuthorizedChannel> {
        BotsClient::new(self.execution.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(crate) fn storage(&self) -> ContentAddressableStorageClient<AuthorizedChannel> {
        ContentAddressableStorageClient::new(self.cas.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(crate) fn streams(&self) -> ByteStreamClient<AuthorizedChannel> {
        ByteStreamClient::new(self.cas.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }
}

async fn ask_capabilities(
    channel: &AuthorizedChannel,
    instance: &str,
) -> Result<reapi::ServerCapabilities, Status> {
    let request = reapi::GetCapabilitiesRequest {
        instance_name: instance.to_owned(),
    };
    let mut client = CapabilitiesClient::new(channel.clone());
    let answer = client.get_capabilities(limited(request, CALL_LIMIT)).await;
    answer.map(tonic::Response::into_inner)
}

/// A request that the other side gives up after `limit`, too.
pub(crate) fn limited<T>(message: T, limit: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(limit);
    request
}

async fn open_channel(
    address: &str,
    token: Option<&str>,
) -> Result<AuthorizedChannel, RemoteError> {
    let wrong = || RemoteError::Address(address.to_owned());
    let (scheme, place) = address.split_once("://").ok_or_else(wrong)?;
    let uses_tls = match scheme {
        "grpc" | "http" => false,
        "grpcs" | "https" => true,
        _ => return Err(wrong()),
    };
    let url = format!("{}://{place}", if uses_tls { "https" } else { "http" });
    let mut endpoint = Endpoint::from_shared(url).map_err(|_| wrong())?;
    if token.is_some() && !uses_tls && !is_loopback(endpoint.uri().host()) {
        return Err(RemoteError::TokenInClear(address.to_owned()));
    }
    let unreachable = |why: String| RemoteError::Unreachable {
        address: address.to_owned(),
        why,
    };
    if uses_tls {
        endpoint = endpoint
            .tls_config(ClientTlsConfig::new().with_native_roots())
            .map_err(|error| unreachable(error.to_string()))?;
    }
    let channel = endpoint
        .connect_timeout(CONNECT_LIMIT)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(20))
        .connect()
        .await
        .map_err(|error| unreachable(cause(&error)))?;
    let token = token
        .map(|token| {
            let mut value: MetadataValue<Ascii> =
                format!("Bearer {token}").parse().map_err(|_| {
                    unreachable(String::from(
                        "the token has characters that no header can have",
                    ))
                })?;
            value.set_sensitive(true);
            Ok::<_, RemoteError>(value)
        })
        .transpose()?;
    Ok(InterceptedService::new(channel, Bearer(token)))
}

fn is_loopback(host: Option<&str>) -> bool {
    let host = host.unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// The innermost cause: "transport error" alone helps nobody.
fn cause(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn token_is_not_sent_in_clear() {
        let opened = open_channel("grpc://engine.example:443", Some("secret")).await;
        let error = opened.expect_err("refused");
        assert!(matches!(error, RemoteError::TokenInClear(_)), "{error}");
        let opened = open_channel("engine.example", None).await;
        let error = opened.expect_err("refused");
        assert!(matches!(error, RemoteError::Address(_)), "{error}");
    }
}
