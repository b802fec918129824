//! Serves one client from its first byte to the end of its work. At the end of input all open
//! requests are answered. On a stop, or when the client stops reading, everything is cancelled.
//! Running calls are awaited last.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::io::AsyncRead;
use tokio_util::sync::CancellationToken;

use super::Server;
use super::outbox::{self, Outbox, OutboxSink};
use super::transport::LineTransport;

/// How long cancelled calls may clean up after a stop: clients kill the process 400 ms after the
/// interrupt.
const STOP_GRACE: Duration = Duration::from_millis(300);

/// How long they may clean up otherwise. Recovery finishes what takes longer.
const END_GRACE: Duration = Duration::from_secs(5);

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The client closed our input; all requests were answered.
    Input,
    /// Our output is no longer read.
    Output,
    /// We were told to stop.
    Stopped,
}

/// Serves one client until it is gone, or until `stop` is cancelled.
pub async fn serve<R, W>(server: Server, input: R, output: W, stop: CancellationToken) -> SessionEnd
where
    R: AsyncRead + Unpin + Send + 'static,
    W: OutboxSink,
{
    let outbox = Arc::new(Outbox::default());
    let writer = tokio::spawn(outbox::write_all(Arc::clone(&outbox), output));
    let (calls, jobs_stop) = (server.calls.clone(), server.jobs_stop.clone());
    let work = stop.child_token();
    let run_service = run_service(
        server,
        LineTransport::new(input, Arc::clone(&outbox)),
        work.clone(),
    );

    let ended = tokio::select! {
        () = run_service => SessionEnd::Input,
        () = outbox.broken() => SessionEnd::Output,
        () = stop.cancelled() => SessionEnd::Stopped,
    };
    let ended = match ended {
        // Replies are queued. The reader may still leave, or a stop may come, before all are
        // written.
        SessionEnd::Input => tokio::select! {
            () = outbox.flushed() => SessionEnd::Input,
            () = stop.cancelled() => SessionEnd::Stopped,
        },
        other => other,
    };
    work.cancel();
    jobs_stop.cancel();
    calls.close();
    let grace = if ended == SessionEnd::Stopped {
        STOP_GRACE
    } else {
        END_GRACE
    };
    if tokio::time::timeout(grace, calls.wait()).await.is_err() {
        tracing::warn!(
            "{} still clean up; not waiting any longer",
            supervisor_text::words::count(calls.len(), "call")
        );
    }
    outbox.finish();
    if ended == SessionEnd::Input {
        let _ = writer.await;
    }
    ended
}

async fn run_service<R: AsyncRead + Unpin + Send + 'static>(
    server: Server,
    transport: LineTransport<R>,
    work: CancellationToken,
) {
    match server.serve_with_ct(transport, work).await {
        Ok(running) => {
            if let Err(error) = running.waiting().await {
                tracing::error!(%error, "the session ended by a defect");
            }
        }
        // A client may leave before it sends anything.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
        Err(error) => tracing::error!(%error, "the session could not begin"),
    }
}
