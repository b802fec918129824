//! Executes one Action: starts it, follows it through lost connections, and cancels it if nobody waits for it any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::longrunning::{CancelOperationRequest, Operation, operation};
use bazel_remote_apis::google::protobuf;
use parking_lot::Mutex;
use prost::Message as _;
use reapi::execution_stage::Value as Stage;
use reapi::{
    Action, ActionResult, Command, Digest, ExecuteOperationMetadata, ExecuteRequest,
    ExecuteResponse, Platform, WaitExecutionRequest,
};
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Request, Streaming};

use crate::connection::{CALL_LIMIT, Connection, limited};
use crate::error::{RemoteError, first_line};
use crate::storage::{Blob, Blobs};

/// How long an engine that went away is waited for.
const RECONNECT_LIMIT: Duration = Duration::from_secs(60);

/// An Action to execute.
#[derive(Debug, Clone)]
pub(crate) struct ActionRequest {
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) platform: BTreeMap<String, String>,
    pub(crate) input_root: Digest,
    /// The engine ends the Action after this time.
    pub(crate) limit: Duration,
    /// How long it may wait for its first worker.
    pub(crate) queue_limit: Duration,
    /// Whether equal runs may share one result, now and later.
    pub(crate) is_cacheable: bool,
}

/// The end of an Action that ran to its end.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) result: ActionResult,
    pub(crate) is_cached: bool,
}

impl ActionRequest {
    /// Adds the messages that describe the Action to `blobs` and returns its digest.
    ///
    /// A run that must happen gets a salt: `skip_cache_lookup` does not keep an engine from joining it to an equal Action
    /// that is still running.
    #[expect(
        deprecated,
        reason = "engines before version 2.2 of the API read the platform of the command"
    )]
    pub(crate) fn describe(&self, connection: &Connection, blobs: &mut Blobs) -> Digest {
        let pairs = |pairs: &BTreeMap<String, String>| {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect::<Vec<_>>()
        };
        let properties = pairs(&self.platform).into_iter();
        let platform = Platform {
            properties: properties
                .map(|(name, value)| reapi::platform::Property { name, value })
                .collect(),
        };
        let variables = pairs(&self.variables).into_iter();
        let command = Command {
            arguments: self.arguments.clone(),
            environment_variables: variables
                .map(|(name, value)| reapi::command::EnvironmentVariable { name, value })
                .collect(),
            output_paths: self.outputs.clone(),
            platform: Some(platform.clone()),
            ..Command::default()
        };
        let mut add = |bytes: Vec<u8>| {
            let digest = connection.function.of_bytes(&bytes);
            blobs.add(digest.clone(), Blob::Bytes(bytes));
            digest
        };
        let command_digest = add(command.encode_to_vec());
        let salt = if self.is_cacheable {
            Vec::new()
        } else {
            crate::storage::random_id().into_bytes()
        };
        let action = Action {
            command_digest: Some(command_digest),
            input_root_digest: Some(self.input_root.clone()),
            timeout: Some(protobuf::Duration {
                seconds: i64::try_from(self.limit.as_secs()).unwrap_or(i64::MAX),
                nanos: 0,
            }),
            do_not_cache: !self.is_cacheable,
            salt,
            platform: Some(platform),
        };
        add(action.encode_to_vec())
    }
}

impl Connection {
    /// Executes an Action whose blobs the engine has. Dropping the future cancels it on the engine.
    pub(crate) async fn execute(
        &self,
        request: &ActionRequest,
        action: Digest,
    ) -> Result<Finished, RemoteError> {
        let execute = ExecuteRequest {
            instance_name: self.instance.clone(),
            skip_cache_lookup: !request.is_cacheable,
            action_digest: Some(action),
            digest_function: self.function.number(),
            inline_output_files: request.outputs.clone(),
            ..ExecuteRequest::default()
        };
        let running = RunningAction {
            connection: self.clone(),
            name: Arc::default(),
        };
        let mut client = self.execution();
        let first = timeout(CALL_LIMIT, client.execute(Request::new(execute)));
        let mut stream = first.await.map_err(|_| silent())??.into_inner();
        let mut queue = QueueTime::new(request.queue_limit);
        let deadline = Instant::now() + request.queue_limit + request.limit + RECONNECT_LIMIT;
        loop {
            match running.follow(&mut stream, &mut queue, deadline).await {
                Ok(operation) => {
                    *running.name.lock() = None;
                    return finished(operation);
                }
                Err(error) => stream = running.reconnect(error).await?,
            }
        }
    }
}

/// An Action that the engine works on. Dropping it cancels the Action.
struct RunningAction {
    connection: Connection,
    /// The engine's name; `None` while unknown and after the end.
    name: Arc<Mutex<Option<String>>>,
}

impl RunningAction {
    /// Reads until the Action has ended.
    async fn follow(
        &self,
        stream: &mut Streaming<Operation>,
        queue: &mut QueueTime,
        deadline: Instant,
    ) -> Result<Operation, RemoteError> {
        loop {
            let until = queue.deadline().unwrap_or(deadline).min(deadline);
            let message = tokio::time::timeout_at(until, stream.message()).await;
            let Ok(message) = message else {
                return Err(match queue.deadline() {
                    Some(_) => RemoteError::NotStarted(queue.limit.as_secs()),
                    None => RemoteError::NotFinished {
                        code: Code::DeadlineExceeded,
                        message: String::from("the engine did not end it in time"),
                    },
                });
            };
            let Some(operation) = message? else {
                return Err(RemoteError::Refused {
                    code: Code::Unavailable,
                    message: String::from("the engine closed the stream"),
                });
            };
            *self.name.lock() = Some(operation.name.clone());
            if operation.done {
                return Ok(operation);
            }
            queue.note(&operation);
        }
    }

    /// Finds the Action again after the connection was lost.
    async fn reconnect(&self, lost: RemoteError) -> Result<Streaming<Operation>, RemoteError> {
        let is_connection = matches!(
            &lost,
            RemoteError::Refused { code, .. }
                if matches!(code, Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled)
        );
        let name = self.name.lock().clone();
        let Some(name) = name.filter(|_| is_connection) else {
            return Err(lost);
        };
        let (began, mut pause) = (Instant::now(), Duration::from_millis(100));
        while began.elapsed() < RECONNECT_LIMIT {
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(2));
            let request = WaitExecutionRequest { name: name.clone() };
            let mut client = self.connection.execution();
            match timeout(CALL_LIMIT, client.wait_execution(Request::new(request))).await {
                Ok(Ok(stream)) => return Ok(stream.into_inner()),
                Ok(Err(status)) if status.code() == Code::NotFound => break,
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(lost)
    }
}

impl Drop for RunningAction {
    fn drop(&mut self) {
        let Some(name) = self.name.lock().take() else {
            return;
        };
        let connection = self.connection.clone();
        // Without this, the engine would run it to its end.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let request = limited(CancelOperationRequest { name }, CALL_LIMIT);
                if let Err(status) = connection.operations().cancel_operation(request).await {
                    tracing::debug!("an action is not cancelled: {status}");
                }
            });
        }
    }
}

/// How long an Action has waited for its first worker. Going back to the queue later is the engine's answer to a worker
/// that died, and needs the time in which the engine notices.
struct QueueTime {
    limit: Duration,
    began: Instant,
    has_started: bool,
}

impl QueueTime {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            began: Instant::now(),
            has_started: false,
        }
    }

    fn note(&mut self, operation: &Operation) {
        let metadata = operation.metadata.as_ref();
        let metadata = metadata
            .and_then(|any| ExecuteOperationMetadata::decode(any.value.as_slice()).ok())
            .unwrap_or_default();
        if metadata.stage >= Stage::Executing as i32 {
            self.has_started = true;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        (!self.has_started).then(|| self.began + self.limit)
    }
}

fn silent() -> RemoteError {
    RemoteError::Refused {
        code: Code::Unavailable,
        message: String::from("no answer"),
    }
}

/// Reads the end of an Action. The status comes first: without a result, the exit code of the message is 0.
fn finished(operation: Operation) -> Result<Finished, RemoteError> {
    let response = match operation.result {
        Some(operation::Result::Response(any)) => {
            ExecuteResponse::decode(any.value.as_slice()).map_err(|_| RemoteError::NoResult)?
        }
        Some(operation::Result::Error(status)) => return Err(not_finished(&status)),
        None => return Err(RemoteError::NoResult),
    };
    if let Some(status) = response.status.filter(|status| status.code != 0) {
        return Err(not_finished(&status));
    }
    Ok(Finished {
        result: response.result.ok_or(RemoteError::NoResult)?,
        is_cached: response.cached_result,
    })
}

fn not_finished(status: &bazel_remote_apis::google::rpc::Status) -> RemoteError {
    RemoteError::NotFinished {
        code: Code::from_i32(status.code),
        message: first_line(&status.message),
    }
}
