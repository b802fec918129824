//! Executes one Action: starts it, follows it through lost connections, and cancels it if nobody waits for it any more.

use std::collections::BTreeMap;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::longrunning::{CancelOperationRequest, Operation, operation};
use bazel_remote_apis::google::protobuf;
use prost::Message as _;
use reapi::execution_stage::Value as Stage;
use reapi::{
    Action, ActionResult, Command, Digest, ExecuteOperationMetadata, ExecuteRequest,
    ExecuteResponse, Platform, WaitExecutionRequest,
};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Streaming};

use crate::connection::{CALL_LIMIT, Connection, limited};
use crate::error::{RemoteError, first_line};
use crate::storage::{Blob, Blobs};

/// How long an engine that went away is waited for.
const RECONNECT_LIMIT: Duration = Duration::from_secs(60);
/// How long the end of a call waits for the engine to take note.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

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
    /// Executes an Action whose blobs the engine has. If `stop` is cancelled, or the future is dropped, so is the Action:
    /// without that, the engine would run it to its end.
    pub(crate) async fn execute(
        &self,
        request: &ActionRequest,
        action: Digest,
        stop: &CancellationToken,
    ) -> Result<Finished, RemoteError> {
        let execute = ExecuteRequest {
            instance_name: self.instance.clone(),
            skip_cache_lookup: !request.is_cacheable,
            action_digest: Some(action),
            digest_function: self.function.number(),
            inline_output_files: request.outputs.clone(),
            ..ExecuteRequest::default()
        };
        let stop = stop.child_token();
        let _cancel_on_drop = stop.clone().drop_guard();
        let running = RunningAction {
            connection: self.clone(),
            queue: QueueTime::new(request.queue_limit),
            deadline: Instant::now() + request.queue_limit + request.limit + RECONNECT_LIMIT,
            name: None,
        };
        // A task of its own, because an Action can only be cancelled when its name is known.
        let task = tokio::spawn(running.run(execute, stop));
        task.await.map_err(std::io::Error::other)?
    }
}

/// An Action that the engine works on.
struct RunningAction {
    connection: Connection,
    queue: QueueTime,
    deadline: Instant,
    /// The engine's name for it.
    name: Option<String>,
}

impl RunningAction {
    async fn run(
        mut self,
        execute: ExecuteRequest,
        stop: CancellationToken,
    ) -> Result<Finished, RemoteError> {
        let mut client = self.connection.execution();
        let begin = async {
            let mut stream = client.execute(Request::new(execute)).await?.into_inner();
            let first = stream.message().await?;
            Ok::<_, tonic::Status>((stream, first))
        };
        let (mut stream, first) = timeout(CALL_LIMIT, begin).await.map_err(|_| silent())??;
        let first = first.ok_or_else(silent)?;
        self.name = Some(first.name.clone());
        if first.done {
            return finished(first);
        }
        self.queue.note(&first);
        loop {
            let followed = tokio::select! {
                () = stop.cancelled() => Err(RemoteError::Cancelled),
                followed = self.follow(&mut stream) => followed,
            };
            let error = match followed {
                Ok(operation) => return finished(operation),
                Err(error) => error,
            };
            match self.reconnect(error).await {
                Ok(found) => stream = found,
                Err(error) => {
                    self.cancel().await;
                    return Err(error);
                }
            }
        }
    }

    /// Reads until the Action has ended.
    async fn follow(
        &mut self,
        stream: &mut Streaming<Operation>,
    ) -> Result<Operation, RemoteError> {
        loop {
            let until = self.queue.deadline().unwrap_or(self.deadline);
            let message = timeout_at(until.min(self.deadline), stream.message()).await;
            let Ok(message) = message else {
                return Err(match self.queue.deadline() {
                    Some(_) => RemoteError::NotStarted(self.queue.limit.as_secs()),
                    None => RemoteError::NotFinished {
                        code: Code::DeadlineExceeded,
                        message: String::from("the engine did not end it in time"),
                    },
                });
            };
            let operation = message?.ok_or_else(silent)?;
            if operation.done {
                return Ok(operation);
            }
            self.queue.note(&operation);
        }
    }

    /// Finds the Action again after the connection was lost.
    async fn reconnect(&self, lost: RemoteError) -> Result<Streaming<Operation>, RemoteError> {
        let is_connection = matches!(
            &lost,
            RemoteError::Refused { code, .. }
                if matches!(code, Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled)
        );
        let Some(name) = self.name.clone().filter(|_| is_connection) else {
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

    async fn cancel(&self) {
        let name = self.name.clone().unwrap_or_default();
        let request = limited(CancelOperationRequest { name }, CANCEL_LIMIT);
        let mut client = self.connection.operations();
        let cancelled = timeout(CANCEL_LIMIT, client.cancel_operation(request)).await;
        if let Ok(Err(status)) = cancelled {
            tracing::debug!("an action is not cancelled: {status}");
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
        message: String::from("the engine closed the stream or does not answer"),
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
