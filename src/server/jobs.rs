//! Calls that last, as the tasks of the protocol: the client is answered with a handle at once, asks for the result when
//! it likes, and may ask again. Only where the client offers it, and only for tools that edit nothing.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use rmcp::RoleServer;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, JsonObject,
    Task, TaskPayload, TaskStatus,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::{Server, reply, said};
use crate::session::jobs::{HeldJob, JobRecord, JobState, JobStore, KEPT_FOR};
use crate::skills;

/// How often a wish to cancel is looked for, and how often a client should ask.
const WISHES: Duration = Duration::from_millis(500);
const POLL_MS: u64 = 2_000;

impl Server {
    /// Should this call be answered with a handle?
    pub(super) fn becomes_job(&self, request: &CallToolRequestParams, cx: &RequestContext<RoleServer>) -> bool {
        let is_offered = cx.client_capabilities().is_some_and(|client| client.supports_tasks());
        let is_dry = request.arguments.as_ref().and_then(|given| given.get("dry_run")).is_some_and(|dry| dry != false);
        is_offered && !is_dry && skills::edits_nothing(&request.name)
    }

    /// Starts the call in the background and answers with its handle. Without a place for its record it is made as ever.
    pub(super) fn start_job(
        &self,
        request: CallToolRequestParams,
        mut cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, Box<(CallToolRequestParams, RequestContext<RoleServer>)>> {
        let root = request.arguments.as_ref().and_then(|given| given.get("project_root")).and_then(Value::as_str);
        let begun = self.app.state().map_err(|error| error.to_string()).and_then(|state| {
            JobStore::new(&state).begin(&request.name, root.unwrap_or_default()).map_err(|error| error.to_string())
        });
        let job = match begun {
            Ok(job) => job,
            Err(error) => {
                tracing::warn!("the call is made without a job: {error}");
                return Err(Box::new((request, cx)));
            }
        };
        let handle = task(job.record());
        // The request's own token ends with its reply.
        cx.ct = self.jobs_stop.child_token();
        let server = self.clone();
        tokio::spawn(self.calls.track_future(async move { server.work_on(job, request, cx).await }));
        Ok(CallToolResponse::Task(CreateTaskResult::new(handle)))
    }

    async fn work_on(&self, job: HeldJob, request: CallToolRequestParams, cx: RequestContext<RoleServer>) {
        let (name, stop) = (request.name.clone(), cx.ct.clone());
        let call = AssertUnwindSafe(self.tools.call(ToolCallContext::new(self, request, cx))).catch_unwind();
        let mut was_cancelled = false;
        let ended = {
            tokio::pin!(call);
            loop {
                tokio::select! {
                    ended = &mut call => break ended,
                    () = tokio::time::sleep(WISHES), if !was_cancelled => {
                        if job.is_cancel_wanted() {
                            was_cancelled = true;
                            stop.cancel();
                        }
                    }
                }
            }
        };
        let result = match ended {
            Ok(Ok(CallToolResponse::Complete(result))) => serde_json::to_value(result),
            Ok(Ok(_)) => {
                serde_json::to_value(reply::reply(reply::failed(&name, "it asked for what a job has not".into())))
            }
            Ok(Err(error)) => serde_json::to_value(reply::reply(reply::failed(&name, error.message.into_owned()))),
            Err(panic) => {
                let said = format!("`{name}` failed by a defect of this server: {}", said(&*panic));
                serde_json::to_value(reply::reply(reply::failed(&name, said)))
            }
        };
        let result = result.unwrap_or_default();
        let message = result["structuredContent"]["message"].as_str().unwrap_or_default().to_owned();
        let (state, cause) = match (was_cancelled, stop.is_cancelled()) {
            (true, _) => (JobState::Cancelled, ""),
            (false, true) => (JobState::Failed, "stopped"),
            (false, false) => (JobState::Completed, ""),
        };
        let written = tokio::task::spawn_blocking(move || job.end(state, cause, &message, result)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!("the end of a job is lost: {error}");
        }
    }

    pub(super) fn find_job(&self, id: &str) -> Result<JobRecord, ErrorData> {
        let state = self.app.state().map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        JobStore::new(&state).find(id).ok_or_else(|| {
            let said = "unknown task: there is none of this id, or its result was kept for its time and is gone";
            ErrorData::invalid_params(said, None)
        })
    }

    pub(super) fn answer_task(&self, id: &str) -> Result<GetTaskResult, ErrorData> {
        let job = self.find_job(id)?;
        let base = task(&job);
        let payload = match job.state {
            JobState::Working => TaskPayload::Working,
            JobState::Cancelled => TaskPayload::Cancelled,
            JobState::Completed => TaskPayload::Completed { result: object(job.result) },
            JobState::Failed => TaskPayload::Failed {
                error: object(json!({"code": -32_000, "message": format!("{}: {}", job.cause, job.message)})),
            },
        };
        Ok(GetTaskResult::new(DetailedTask::new(base, payload)))
    }

    pub(super) fn cancel_job(&self, id: &str) -> Result<(), ErrorData> {
        self.find_job(id)?;
        let state = self.app.state().map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        // One that is over stays as it ended.
        let asked = JobStore::new(&state).ask_to_cancel(id);
        asked.map(drop).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

fn task(job: &JobRecord) -> Task {
    let status = match job.state {
        JobState::Working => TaskStatus::Working,
        JobState::Completed => TaskStatus::Completed,
        JobState::Failed => TaskStatus::Failed,
        JobState::Cancelled => TaskStatus::Cancelled,
    };
    let kept = u64::try_from(KEPT_FOR.as_millis()).unwrap_or(u64::MAX);
    let task = Task::new(&job.id, status, &job.began, &job.changed).with_ttl_ms(kept).with_poll_interval_ms(POLL_MS);
    if job.message.is_empty() { task } else { task.with_status_message(&job.message) }
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(fields) => fields,
        _ => JsonObject::default(),
    }
}
