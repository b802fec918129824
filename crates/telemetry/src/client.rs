//! The HTTP client of the exporters. They run on threads of their own, without a runtime; requests are made on ours.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;

/// Collectors answer with a few bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct OtlpClient {
    runtime: Handle,
}

impl OtlpClient {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self { runtime }
    }
}

impl HttpClient for OtlpClient {
    fn send_bytes<'this, 'returned>(
        &'this self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'returned>>
    where
        'this: 'returned,
        Self: 'returned,
    {
        Box::pin(async move { self.runtime.spawn(send(request)).await? })
    }
}

async fn send(request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let client = supervisor_models::client_for_address(&request.uri().to_string())?;
    let mut answer = client.execute(request.try_into()?).await?;
    let mut response = Response::builder().status(answer.status());
    if let Some(headers) = response.headers_mut() {
        headers.extend(std::mem::take(answer.headers_mut()));
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = answer.chunk().await? {
        let room = MAX_RESPONSE_BYTES - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == MAX_RESPONSE_BYTES {
            break;
        }
    }
    Ok(response.body(body.freeze())?)
}
