//! The trace that a client's request belongs to. It travels with the task that answers the request, so that the calls made
//! for it can be told apart from those of other requests without being passed through every function.

use std::sync::{Arc, OnceLock};

tokio::task_local! {
    static CURRENT: Arc<RequestTrace>;
}

/// What a request says about its trace (W3C Trace Context).
#[derive(Debug, Default)]
pub struct RequestTrace {
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
    /// The context of the first call, which the others join where the client names no trace.
    pub first: OnceLock<String>,
}

impl RequestTrace {
    /// Runs `work` as a part of this trace.
    pub async fn scope<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(Arc::new(self), work).await
    }

    /// The trace of the running request.
    pub fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }
}
