//! Long-running calls as jobs. A client that supports tasks gets a task handle once the call has
//! lasted for `foreground_s` and is detached, that is, known not to touch the user's files until its
//! end. Every other call is answered with its result.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CreateTaskResult, ErrorData};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Server, tasks};
use supervisor_engine::event::CallKey;
use supervisor_engine::session::jobs::{HeldJob, JobState, JobStore};
use supervisor_skills::JobProgress;

/// How often to check for a cancel request.
const CANCEL_POLL: Duration = Duration::from_millis(500);

/// The jobs this server is working on, with their latest progress.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkingJobs(Arc<Mutex<HashMap<String, Arc<JobProgress>>>>);

/// Removes the job from [`WorkingJobs`] when dropped.
struct TrackedJob {
    jobs: WorkingJobs,
    id: String,
}

impl WorkingJobs {
    fn track(&self, id: &str, progress: Arc<JobProgress>) -> TrackedJob {
        self.jobs().insert(id.to_owned(), progress);
        TrackedJob {
            jobs: self.clone(),
            id: id.to_owned(),
        }
    }

    /// The latest progress message of a job, if this server is working on it.
    pub(super) fn last_progress(&self, id: &str) -> Option<String> {
        let progress = self.jobs().get(id).cloned()?;
        Some(progress.last()).filter(|last| !last.is_empty())
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<String, Arc<JobProgress>>> {
        self.0.lock()
    }
}

impl Drop for TrackedJob {
    fn drop(&mut self) {
        self.jobs.jobs().remove(&self.id);
    }
}

impl Server {
    /// Whether the client accepts a task handle as a response.
    pub(super) fn supports_task_handles(cx: &RequestContext<RoleServer>) -> bool {
        cx.client_capabilities()
            .is_some_and(|client| client.supports_tasks())
    }

    /// Runs the call in its own task, so that it can continue after the response.
    pub(super) async fn call_or_job(
        &self,
        request: CallToolRequestParams,
        mut cx: RequestContext<RoleServer>,
        found_root: Option<String>,
    ) -> Result<CallToolResponse, ErrorData> {
        // The request's own token ends with its reply.
        let request_cancelled = std::mem::replace(&mut cx.ct, self.jobs_stop.child_token());
        let progress = Arc::new(JobProgress::default());
        cx.extensions.insert(Arc::clone(&progress));
        let (answer, answered) = oneshot::channel();
        let server = self.clone();
        tokio::spawn(self.calls.track_future(async move {
            server
                .run_call(request, cx, found_root, request_cancelled, progress, answer)
                .await;
        }));
        answered
            .await
            .map_err(|_| ErrorData::internal_error("the call ended without an answer", None))
    }

    async fn run_call(
        self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
        found_root: Option<String>,
        request_cancelled: CancellationToken,
        progress: Arc<JobProgress>,
        answer: oneshot::Sender<CallToolResponse>,
    ) {
        let stop = cx.ct.clone();
        let tool = request.name.to_string();
        let root = request
            .arguments
            .as_ref()
            .and_then(|given| given.get("project_root"))
            .and_then(Value::as_str);
        let root = root.unwrap_or_default().to_owned();
        let foreground = self
            .app()
            .settings()
            .map(|loaded| loaded.routing.foreground);
        let hold = tokio::time::sleep(foreground.unwrap_or_default());
        let call = self.answer_call(request, cx, found_root.as_deref());
        tokio::pin!(call, hold);
        let mut is_detached = false;
        let job = loop {
            tokio::select! {
                response = &mut call => {
                    let _ = answer.send(response);
                    return;
                }
                () = request_cancelled.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                () = progress.detached.notified(), if !is_detached => is_detached = true,
                // A client that has given up does not wait for a handle.
                () = &mut hold, if is_detached && !stop.is_cancelled() => match self.begin_job(&tool, &root, &progress.first_call()) {
                    Ok(job) => break job,
                    Err(error) => {
                        is_detached = false;
                        tracing::warn!("the call is made without a job: {error}");
                    }
                },
            }
        };
        let _ = progress.background_since.set(Instant::now());
        let _tracked = self.working.track(&job.record().id, progress);
        let _ = answer.send(CallToolResponse::Task(CreateTaskResult::new(
            tasks::describe(job.record()),
        )));
        let response = loop {
            tokio::select! {
                response = &mut call => break response,
                () = tokio::time::sleep(CANCEL_POLL), if !stop.is_cancelled() => {
                    if job.is_cancel_requested() {
                        stop.cancel();
                    }
                }
            }
        };
        self.end_job(job, response, &stop).await;
    }

    fn begin_job(
        &self,
        tool: &str,
        project_root: &str,
        first: &CallKey,
    ) -> Result<HeldJob, String> {
        let state = self.app().state().map_err(|error| error.to_string())?;
        JobStore::new(&state)
            .begin(tool, project_root, first)
            .map_err(|error| error.to_string())
    }

    async fn end_job(&self, job: HeldJob, response: CallToolResponse, stop: &CancellationToken) {
        let result = match response {
            CallToolResponse::Complete(result) => serde_json::to_value(result).unwrap_or_default(),
            _ => Value::Null,
        };
        let (state, cause) =
            final_state(&result, stop.is_cancelled(), self.jobs_stop.is_cancelled());
        let message = result["structuredContent"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let written =
            tokio::task::spawn_blocking(move || job.end(state, cause, &message, result)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!("the end of a job is lost: {error}");
        }
    }
}

/// The final state of a job. A call that produced an answer before it noticed the cancellation
/// counts as completed.
fn final_state(
    result: &Value,
    was_stopped: bool,
    server_stopped: bool,
) -> (JobState, &'static str) {
    let is_answer = result["isError"] == false;
    match (is_answer || !was_stopped, server_stopped) {
        (true, _) => (JobState::Completed, ""),
        (false, true) => (JobState::Failed, "stopped"),
        (false, false) => (JobState::Cancelled, ""),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cancel_after_the_answer_changes_nothing() {
        let (answer, error) = (json!({"isError": false}), json!({"isError": true}));
        let rows = [
            (&answer, false, false, JobState::Completed),
            (&error, false, false, JobState::Completed),
            (&answer, true, false, JobState::Completed),
            (&answer, true, true, JobState::Completed),
            (&error, true, false, JobState::Cancelled),
            (&error, true, true, JobState::Failed),
        ];
        for (result, was_stopped, server_stopped, state) in rows {
            assert_eq!(
                final_state(result, was_stopped, server_stopped).0,
                state,
                "{result} {was_stopped} {server_stopped}"
            );
        }
    }
}
