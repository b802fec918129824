//! Calls that last: a client that offers tasks is answered with a handle as soon as a call is set apart, which is when it
//! is known to leave the user's files alone until its end. Every other call is answered with its result, as ever.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CreateTaskResult, ErrorData};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Server, tasks};
use supervisor_engine::event::CallKey;
use supervisor_engine::session::jobs::{HeldJob, JobState, JobStore};
use supervisor_skills::JobStory;

/// How often a wish to cancel is looked for.
const WISHES: Duration = Duration::from_millis(500);

/// The jobs that this server works on, and what each told last.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkingJobs(Arc<Mutex<HashMap<String, Arc<JobStory>>>>);

/// A job is told about as long as this lives.
struct ToldJob {
    jobs: WorkingJobs,
    id: String,
}

impl WorkingJobs {
    fn tell(&self, id: &str, story: Arc<JobStory>) -> ToldJob {
        self.jobs().insert(id.to_owned(), story);
        ToldJob {
            jobs: self.clone(),
            id: id.to_owned(),
        }
    }

    /// What the job told last, if this server works on it.
    pub(super) fn last_word(&self, id: &str) -> Option<String> {
        let story = self.jobs().get(id).cloned()?;
        Some(story.last()).filter(|last| !last.is_empty())
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<String, Arc<JobStory>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ToldJob {
    fn drop(&mut self) {
        self.jobs.jobs().remove(&self.id);
    }
}

impl Server {
    /// Does the client of this request take a handle for an answer?
    pub(super) fn takes_handles(cx: &RequestContext<RoleServer>) -> bool {
        cx.client_capabilities()
            .is_some_and(|client| client.supports_tasks())
    }

    /// Makes the call in a task of its own, so that it can go on after the answer.
    pub(super) async fn call_or_job(
        &self,
        request: CallToolRequestParams,
        mut cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // The request's own token ends with its reply.
        let asked = std::mem::replace(&mut cx.ct, self.jobs_stop.child_token());
        let story = Arc::new(JobStory::default());
        cx.extensions.insert(Arc::clone(&story));
        let (answer, answered) = oneshot::channel();
        let server = self.clone();
        tokio::spawn(
            self.calls
                .track_future(async move { server.drive(request, cx, asked, story, answer).await }),
        );
        answered
            .await
            .map_err(|_| ErrorData::internal_error("the call ended without an answer", None))
    }

    async fn drive(
        self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
        asked: CancellationToken,
        story: Arc<JobStory>,
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
        let call = self.answer_call(request, cx);
        tokio::pin!(call);
        let job = loop {
            tokio::select! {
                response = &mut call => {
                    let _ = answer.send(response);
                    return;
                }
                () = asked.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                // A client that has given up waits for no handle.
                () = story.apart.notified(), if !stop.is_cancelled() => match self.begin_job(&tool, &root, &story.first_call()) {
                    Ok(job) => break job,
                    Err(error) => tracing::warn!("the call is made without a job: {error}"),
                },
            }
        };
        let _told = self.working.tell(&job.record().id, story);
        let _ = answer.send(CallToolResponse::Task(CreateTaskResult::new(
            tasks::describe(job.record()),
        )));
        let response = loop {
            tokio::select! {
                response = &mut call => break response,
                () = tokio::time::sleep(WISHES), if !stop.is_cancelled() => {
                    if job.is_cancel_wanted() {
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
        let (state, cause) = ending(&result, stop.is_cancelled(), self.jobs_stop.is_cancelled());
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

/// How a job ended. A call that came to an answer before it heard of the cancel has done its work, and is completed.
fn ending(result: &Value, was_stopped: bool, by_the_server: bool) -> (JobState, &'static str) {
    let is_answer = result["isError"] == false;
    match (is_answer || !was_stopped, by_the_server) {
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
    fn a_cancel_that_comes_after_the_answer_changes_nothing() {
        let (answer, error) = (json!({"isError": false}), json!({"isError": true}));
        let rows = [
            (&answer, false, false, JobState::Completed),
            (&error, false, false, JobState::Completed),
            (&answer, true, false, JobState::Completed),
            (&answer, true, true, JobState::Completed),
            (&error, true, false, JobState::Cancelled),
            (&error, true, true, JobState::Failed),
        ];
        for (result, was_stopped, by_the_server, state) in rows {
            assert_eq!(
                ending(result, was_stopped, by_the_server).0,
                state,
                "{result} {was_stopped} {by_the_server}"
            );
        }
    }
}
