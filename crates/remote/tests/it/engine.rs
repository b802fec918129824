//! An engine in this process: storage in memory, jobs for workers, and answers that a test prescribes.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::{bytestream, longrunning, protobuf, rpc};
use futures_util::{Stream, stream};
use prost::Message as _;
use reapi::execution_stage::Value as Stage;
use reapi::{ActionResult, ExecuteResponse};
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

type Answer<T> = Result<Response<T>, Status>;
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What becomes of the next Action. Without an order, a worker runs it.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    /// Ends with this code and an empty result, whose exit code reads 0.
    End(tonic::Code),
    /// Ends without an error and without a result.
    NoResult,
    /// Ends with this result.
    Result(Box<ActionResult>),
    /// `Execute` itself is refused.
    Refuse(tonic::Code),
    /// All blobs are lost and the engine says so.
    LoseBlobs,
}

#[derive(Debug, Clone)]
pub(crate) struct JobState {
    pub(crate) stage: Stage,
    pub(crate) response: Option<ExecuteResponse>,
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) action_hash: String,
    pub(crate) action: reapi::Action,
    pub(crate) bot: Option<String>,
    pub(crate) state: watch::Sender<JobState>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) blobs: HashMap<String, Vec<u8>>,
    pub(crate) orders: VecDeque<Order>,
    pub(crate) jobs: HashMap<String, Job>,
    pub(crate) queue: VecDeque<String>,
    pub(crate) cache: HashMap<String, ActionResult>,
    /// Digests of all Actions that `Execute` was asked for.
    pub(crate) asked: Vec<String>,
    pub(crate) cancelled: BTreeSet<String>,
    pub(crate) digest_functions: Vec<i32>,
    /// Sessions that the engine declared dead.
    pub(crate) dead_bots: BTreeSet<String>,
}

#[derive(Clone)]
pub(crate) struct FakeEngine {
    pub(crate) state: Arc<Mutex<State>>,
    pub(crate) changed: watch::Sender<u64>,
}

impl FakeEngine {
    pub(crate) fn new() -> Self {
        let state = State {
            digest_functions: vec![reapi::digest_function::Value::Sha256 as i32],
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            changed: watch::Sender::new(0),
        }
    }

    /// Serves on a port of this machine and returns the address.
    pub(crate) async fn serve(&self) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let engine = self.clone();
        tokio::spawn(async move {
            tonic::transport::Server::builder()
                .add_service(reapi::capabilities_server::CapabilitiesServer::new(
                    engine.clone(),
                ))
                .add_service(reapi::execution_server::ExecutionServer::new(
                    engine.clone(),
                ))
                .add_service(
                    reapi::content_addressable_storage_server::ContentAddressableStorageServer::new(
                        engine.clone(),
                    ),
                )
                .add_service(bytestream::byte_stream_server::ByteStreamServer::new(
                    engine.clone(),
                ))
                .add_service(longrunning::operations_server::OperationsServer::new(
                    engine.clone(),
                ))
                .add_service(super::bots::server(engine))
                .serve(address)
                .await
                .unwrap();
        });
        while tokio::net::TcpStream::connect(address).await.is_err() {
            tokio::task::yield_now().await;
        }
        format!("grpc://{address}")
    }

    pub(crate) fn order(&self, orders: impl IntoIterator<Item = Order>) {
        self.state.lock().unwrap().orders.extend(orders);
    }

    pub(crate) fn notify(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    /// Waits until the state is as wanted.
    pub(crate) async fn until(&self, wanted: impl Fn(&State) -> bool) {
        let mut changed = self.changed.subscribe();
        let wait = async {
            while !wanted(&self.state.lock().unwrap()) {
                changed.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(60), wait)
            .await
            .expect("the engine gets there");
    }

    pub(crate) fn finish(&self, name: &str, response: ExecuteResponse) {
        let mut state = self.state.lock().unwrap();
        let job = &state.jobs[name];
        let ok = response
            .status
            .as_ref()
            .is_none_or(|status| status.code == 0);
        let cached = (ok && !job.action.do_not_cache).then(|| job.action_hash.clone());
        job.state.send_replace(JobState {
            stage: Stage::Completed,
            response: Some(response.clone()),
        });
        if let (Some(hash), Some(result)) = (cached, response.result) {
            state.cache.insert(hash, result);
        }
        drop(state);
        self.notify();
    }

    fn operations(&self, name: String) -> Answers<longrunning::Operation> {
        let receiver = self.state.lock().unwrap().jobs[&name].state.subscribe();
        let steps = (receiver, name, true, false);
        Box::pin(stream::unfold(
            steps,
            |(mut receiver, name, is_first, is_over)| async move {
                if is_over || (!is_first && receiver.changed().await.is_err()) {
                    return None;
                }
                let now = receiver.borrow_and_update().clone();
                let operation = operation(&name, &now);
                Some((
                    Ok(operation),
                    (receiver, name, false, now.response.is_some()),
                ))
            },
        ))
    }
}

fn any(name: &str, message: &impl prost::Message) -> protobuf::Any {
    protobuf::Any {
        type_url: format!("type.googleapis.com/build.bazel.remote.execution.v2.{name}"),
        value: message.encode_to_vec(),
    }
}

fn operation(name: &str, state: &JobState) -> longrunning::Operation {
    let metadata = reapi::ExecuteOperationMetadata {
        stage: state.stage as i32,
        ..Default::default()
    };
    let result = state
        .response
        .as_ref()
        .map(|response| longrunning::operation::Result::Response(any("ExecuteResponse", response)));
    longrunning::Operation {
        name: name.to_owned(),
        metadata: Some(any("ExecuteOperationMetadata", &metadata)),
        done: result.is_some(),
        result,
    }
}

#[tonic::async_trait]
impl reapi::capabilities_server::Capabilities for FakeEngine {
    async fn get_capabilities(
        &self,
        _: Request<reapi::GetCapabilitiesRequest>,
    ) -> Answer<reapi::ServerCapabilities> {
        let digest_functions = self.state.lock().unwrap().digest_functions.clone();
        Ok(Response::new(reapi::ServerCapabilities {
            cache_capabilities: Some(reapi::CacheCapabilities {
                digest_functions,
                max_batch_total_size_bytes: 100_000,
                ..Default::default()
            }),
            execution_capabilities: Some(reapi::ExecutionCapabilities {
                exec_enabled: true,
                ..Default::default()
            }),
            ..Default::default()
        }))
    }
}

#[tonic::async_trait]
impl reapi::execution_server::Execution for FakeEngine {
    type ExecuteStream = Answers<longrunning::Operation>;
    type WaitExecutionStream = Answers<longrunning::Operation>;

    async fn execute(
        &self,
        request: Request<reapi::ExecuteRequest>,
    ) -> Answer<Self::ExecuteStream> {
        let request = request.into_inner();
        let hash = request.action_digest.unwrap().hash;
        let name = {
            let mut state = self.state.lock().unwrap();
            state.asked.push(hash.clone());
            let order = state.orders.pop_front();
            if let Some(Order::Refuse(code)) = order {
                return Err(Status::new(code, "by order"));
            }
            let Some(action) = state.blobs.get(&hash) else {
                return Err(Status::failed_precondition("blobs are missing"));
            };
            let action = reapi::Action::decode(action.as_slice()).unwrap();
            // As BuildGrid does, whatever `skip_cache_lookup` says.
            let running = state
                .jobs
                .iter()
                .find(|(_, job)| job.action_hash == hash && job.state.borrow().response.is_none());
            if let (Some((name, _)), None) = (running, &order) {
                let name = name.clone();
                drop(state);
                return Ok(Response::new(self.operations(name)));
            }
            let name = format!("job-{}", state.jobs.len() + 1);
            let response = match order {
                None if !request.skip_cache_lookup && state.cache.contains_key(&hash) => {
                    Some(ExecuteResponse {
                        result: state.cache.get(&hash).cloned(),
                        cached_result: true,
                        ..Default::default()
                    })
                }
                None => None,
                Some(Order::NoResult) => Some(ExecuteResponse::default()),
                Some(Order::Result(result)) => Some(ExecuteResponse {
                    result: Some(*result),
                    ..Default::default()
                }),
                Some(Order::LoseBlobs) => {
                    state.blobs.clear();
                    Some(ended(tonic::Code::FailedPrecondition))
                }
                Some(Order::End(code)) => Some(ended(code)),
                Some(Order::Refuse(_)) => unreachable!("answered above"),
            };
            if response.is_none() {
                state.queue.push_back(name.clone());
            }
            let job = Job {
                action_hash: hash,
                action,
                bot: None,
                state: watch::Sender::new(JobState {
                    stage: Stage::Queued,
                    response,
                }),
            };
            state.jobs.insert(name.clone(), job);
            name
        };
        self.notify();
        Ok(Response::new(self.operations(name)))
    }

    async fn wait_execution(
        &self,
        request: Request<reapi::WaitExecutionRequest>,
    ) -> Answer<Self::WaitExecutionStream> {
        Ok(Response::new(self.operations(request.into_inner().name)))
    }
}

/// A status and the empty result that comes with it.
fn ended(code: tonic::Code) -> ExecuteResponse {
    ExecuteResponse {
        result: Some(ActionResult::default()),
        status: Some(rpc::Status {
            code: code as i32,
            message: String::from("by order"),
            details: Vec::new(),
        }),
        ..Default::default()
    }
}

#[tonic::async_trait]
impl longrunning::operations_server::Operations for FakeEngine {
    async fn list_operations(
        &self,
        _: Request<longrunning::ListOperationsRequest>,
    ) -> Answer<longrunning::ListOperationsResponse> {
        Err(Status::unimplemented(""))
    }

    async fn get_operation(
        &self,
        _: Request<longrunning::GetOperationRequest>,
    ) -> Answer<longrunning::Operation> {
        Err(Status::unimplemented(""))
    }

    async fn delete_operation(
        &self,
        _: Request<longrunning::DeleteOperationRequest>,
    ) -> Answer<protobuf::Empty> {
        Err(Status::unimplemented(""))
    }

    async fn cancel_operation(
        &self,
        request: Request<longrunning::CancelOperationRequest>,
    ) -> Answer<protobuf::Empty> {
        let name = request.into_inner().name;
        let mut state = self.state.lock().unwrap();
        state.queue.retain(|queued| *queued != name);
        state.cancelled.insert(name.clone());
        drop(state);
        self.finish(&name, ended(tonic::Code::Cancelled));
        Ok(Response::new(protobuf::Empty {}))
    }

    async fn wait_operation(
        &self,
        _: Request<longrunning::WaitOperationRequest>,
    ) -> Answer<longrunning::Operation> {
        Err(Status::unimplemented(""))
    }
}

#[tonic::async_trait]
impl reapi::content_addressable_storage_server::ContentAddressableStorage for FakeEngine {
    type GetTreeStream = Answers<reapi::GetTreeResponse>;
    type GetChunkMappingStream = Answers<reapi::GetChunkMappingResponse>;

    async fn find_missing_blobs(
        &self,
        request: Request<reapi::FindMissingBlobsRequest>,
    ) -> Answer<reapi::FindMissingBlobsResponse> {
        let state = self.state.lock().unwrap();
        let digests = request.into_inner().blob_digests.into_iter();
        let missing = digests.filter(|digest| !state.blobs.contains_key(&digest.hash));
        Ok(Response::new(reapi::FindMissingBlobsResponse {
            missing_blob_digests: missing.collect(),
        }))
    }

    async fn batch_update_blobs(
        &self,
        request: Request<reapi::BatchUpdateBlobsRequest>,
    ) -> Answer<reapi::BatchUpdateBlobsResponse> {
        let mut state = self.state.lock().unwrap();
        for blob in request.into_inner().requests {
            state.blobs.insert(blob.digest.unwrap().hash, blob.data);
        }
        Ok(Response::new(reapi::BatchUpdateBlobsResponse::default()))
    }

    async fn batch_read_blobs(
        &self,
        request: Request<reapi::BatchReadBlobsRequest>,
    ) -> Answer<reapi::BatchReadBlobsResponse> {
        let state = self.state.lock().unwrap();
        let digests = request.into_inner().digests.into_iter();
        let responses = digests.map(|digest| {
            let data = state.blobs.get(&digest.hash).cloned();
            let status = data.is_none().then(|| rpc::Status {
                code: tonic::Code::NotFound as i32,
                ..Default::default()
            });
            reapi::batch_read_blobs_response::Response {
                digest: Some(digest),
                data: data.unwrap_or_default(),
                status,
                compressor: 0,
            }
        });
        Ok(Response::new(reapi::BatchReadBlobsResponse {
            responses: responses.collect(),
        }))
    }

    async fn get_tree(&self, _: Request<reapi::GetTreeRequest>) -> Answer<Self::GetTreeStream> {
        Err(Status::unimplemented(""))
    }

    async fn split_blob(
        &self,
        _: Request<reapi::SplitBlobRequest>,
    ) -> Answer<reapi::SplitBlobResponse> {
        Err(Status::unimplemented(""))
    }

    async fn get_chunk_mapping(
        &self,
        _: Request<reapi::GetChunkMappingRequest>,
    ) -> Answer<Self::GetChunkMappingStream> {
        Err(Status::unimplemented(""))
    }

    async fn splice_blob(
        &self,
        _: Request<reapi::SpliceBlobRequest>,
    ) -> Answer<reapi::SpliceBlobResponse> {
        Err(Status::unimplemented(""))
    }

    async fn register_chunk_mapping(
        &self,
        _: Request<Streaming<reapi::RegisterChunkMappingRequest>>,
    ) -> Answer<reapi::RegisterChunkMappingResponse> {
        Err(Status::unimplemented(""))
    }
}

#[tonic::async_trait]
impl bytestream::byte_stream_server::ByteStream for FakeEngine {
    type ReadStream = Answers<bytestream::ReadResponse>;

    async fn read(&self, request: Request<bytestream::ReadRequest>) -> Answer<Self::ReadStream> {
        let name = request.into_inner().resource_name;
        let hash = name.split('/').nth_back(1).unwrap_or_default();
        let state = self.state.lock().unwrap();
        let data = state
            .blobs
            .get(hash)
            .ok_or_else(|| Status::not_found(name.clone()))?;
        let parts = data.chunks(64 * 1024).map(|part| {
            Ok(bytestream::ReadResponse {
                data: part.to_vec(),
            })
        });
        let parts: Vec<_> = parts.collect();
        Ok(Response::new(Box::pin(stream::iter(parts))))
    }

    async fn write(
        &self,
        request: Request<Streaming<bytestream::WriteRequest>>,
    ) -> Answer<bytestream::WriteResponse> {
        let (mut parts, mut data, mut name) = (request.into_inner(), Vec::new(), String::new());
        while let Some(part) = parts.message().await? {
            if !part.resource_name.is_empty() {
                name = part.resource_name;
            }
            data.extend(part.data);
        }
        let hash = name.split('/').nth_back(1).unwrap_or_default().to_owned();
        let committed_size = i64::try_from(data.len()).unwrap();
        self.state.lock().unwrap().blobs.insert(hash, data);
        Ok(Response::new(bytestream::WriteResponse { committed_size }))
    }

    async fn query_write_status(
        &self,
        _: Request<bytestream::QueryWriteStatusRequest>,
    ) -> Answer<bytestream::QueryWriteStatusResponse> {
        Err(Status::unimplemented(""))
    }
}
