//! The arguments that rmcp extracts for a tool method besides its [`Parameters`](crate::Parameters).

use rmcp::ErrorData;
use rmcp::handler::server::common::{AsRequestContext, FromContextPart};
use tokio_util::sync::CancellationToken;

use crate::Progress;

/// What a tool method may ask for besides its [`Parameters`](crate::Parameters).
#[derive(Debug, Clone)]
pub struct Call {
    /// Cancelled by the client, by a signal or because our output is no longer read.
    pub stop: CancellationToken,
    pub progress: Progress,
}

impl<C: AsRequestContext> FromContextPart<C> for Call {
    fn from_context_part(context: &mut C) -> Result<Self, ErrorData> {
        let cx = context.as_request_context();
        Ok(Self {
            stop: cx.ct.clone(),
            progress: Progress::of(cx),
        })
    }
}
