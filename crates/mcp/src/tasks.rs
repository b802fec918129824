//! Task methods of the protocol, for jobs. They follow the 2026-07 extension (`tasks/get`,
//! `tasks/update`, `tasks/cancel`), which the SDK implements. `tasks/list` and `tasks/result` are
//! from the revision before and are still answered.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    DetailedTask, ErrorCode, ErrorData, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::Server;
use supervisor_engine::session::jobs::{JobRecord, JobState, JobStore, KEPT_FOR};

/// Recommended poll interval for clients.
const POLL_MS: u64 = 2_000;
/// How often a job's record is read for a waiting client.
const RESULT_POLL: Duration = Duration::from_millis(250);
/// Maximum number of listed jobs.
const MAX_LISTED: usize = 100;
/// Error code for a job without a result; the range is implementation-defined.
const NO_RESULT: ErrorCode = ErrorCode(-32_000);

impl Server {
    fn job_store(&self) -> Result<JobStore, ErrorData> {
        let state = self
            .app()
            .state()
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(JobStore::new(&state))
    }

    pub(super) fn find_job(&self, id: &str) -> Result<JobRecord, ErrorData> {
        self.job_store()?.find(id).ok_or_else(|| {
            let message = "unknown task: there is none of this id, or its result was kept for its time and is gone";
            ErrorData::invalid_params(message, None)
        })
    }

    pub(super) fn answer_task(&self, id: &str) -> Result<GetTaskResult, ErrorData> {
        let job = self.find_job(id)?;
        let mut base = describe(&job);
        if let Some(last) = self
            .working
            .last_progress(id)
            .filter(|_| job.state == JobState::Working)
        {
            base = base.with_status_message(last);
        }
        let payload = match job.state {
            JobState::Working => TaskPayload::Working,
            JobState::Cancelled => TaskPayload::Cancelled,
            JobState::Completed => TaskPayload::Completed {
                result: object(job.result),
            },
            JobState::Failed => TaskPayload::Failed {
                error: object(json!(no_result(&job))),
            },
        };
        Ok(GetTaskResult::new(DetailedTask::new(base, payload)))
    }

    /// Requests cancellation. A finished job is left unchanged.
    pub(super) fn cancel_job(&self, id: &str) -> Result<(), ErrorData> {
        self.find_job(id)?;
        let asked = self.job_store()?.request_cancel(id);
        asked
            .map(drop)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Task methods that the SDK does not know; `None` for any other method.
    pub(super) async fn answer_older_task_method(
        &self,
        method: &str,
        params: Option<&Value>,
        cx: &RequestContext<RoleServer>,
    ) -> Option<Result<Value, ErrorData>> {
        match method {
            "tasks/list" => Some(self.list_tasks()),
            "tasks/result" => Some(self.wait_for_result(params, cx).await),
            _ => None,
        }
    }

    fn list_tasks(&self) -> Result<Value, ErrorData> {
        let jobs = self.job_store()?.list();
        let tasks: Vec<Value> = jobs
            .iter()
            .take(MAX_LISTED)
            .map(|job| with_older_names(&describe(job)))
            .collect();
        Ok(json!({"tasks": tasks}))
    }

    /// Waits for the job and returns the call's response.
    async fn wait_for_result(
        &self,
        params: Option<&Value>,
        cx: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let id = params.and_then(|params| params["taskId"].as_str());
        let id = id.ok_or_else(|| {
            ErrorData::invalid_params("`tasks/result`: `taskId` is missing, a string", None)
        })?;
        loop {
            let job = self.find_job(id)?;
            match job.state {
                JobState::Working => tokio::select! {
                    () = tokio::time::sleep(RESULT_POLL) => {}
                    () = cx.ct.cancelled() => return Err(ErrorData::internal_error("the request was cancelled", None)),
                },
                JobState::Completed => {
                    let mut result = job.result;
                    result["_meta"]["io.modelcontextprotocol/related-task"] =
                        json!({"taskId": job.id});
                    return Ok(result);
                }
                JobState::Failed | JobState::Cancelled => return Err(no_result(&job)),
            }
        }
    }
}

/// A job as a protocol task.
pub(super) fn describe(job: &JobRecord) -> Task {
    let status = match job.state {
        JobState::Working => TaskStatus::Working,
        JobState::Completed => TaskStatus::Completed,
        JobState::Failed => TaskStatus::Failed,
        JobState::Cancelled => TaskStatus::Cancelled,
    };
    let kept = u64::try_from(KEPT_FOR.as_millis()).unwrap_or(u64::MAX);
    let task = Task::new(&job.id, status, &job.began, &job.changed)
        .with_ttl_ms(kept)
        .with_poll_interval_ms(POLL_MS);
    if job.message.is_empty() {
        task
    } else {
        task.with_status_message(&job.message)
    }
}

/// Adds two fields under their older names.
fn with_older_names(task: &Task) -> Value {
    let mut value = json!(task);
    for (older, newer) in [("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs")] {
        value[older] = value[newer].clone();
    }
    value
}

/// The error of a job without a result, with the cause as data.
fn no_result(job: &JobRecord) -> ErrorData {
    let cause = if job.cause.is_empty() {
        job.state.word()
    } else {
        &job.cause
    };
    ErrorData::new(
        NO_RESULT,
        format!("{cause}: {}", job.message),
        Some(json!({"cause": cause})),
    )
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(fields) => fields,
        _ => JsonObject::default(),
    }
}
