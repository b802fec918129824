//! The side of the fake engine that workers speak to.

use std::task::{Context, Poll};
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::rpc;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use googleapis_tonic_google_devtools_remoteworkers_v1test2::google::devtools::remoteworkers::v1test2 as workers;
use prost::Message as _;
use reapi::execution_stage::Value as Stage;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};
use workers::{BotSession, BotStatus, Lease, LeaseState};

use super::engine::{FakeEngine, JobState};

pub(super) fn server(engine: FakeEngine) -> BotsServer {
    BotsServer(engine)
}

impl FakeEngine {
    /// Notices that a worker is gone: its session is over, and its work goes back to the queue.
    pub(super) fn declare_dead(&self, bot: &str) {
        let mut state = self.state.lock().unwrap();
        state.dead_bots.insert(bot.to_owned());
        let lost: Vec<String> = state
            .jobs
            .iter()
            .filter(|(_, job)| {
                job.bot.as_deref() == Some(bot) && job.state.borrow().response.is_none()
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in lost {
            let job = state.jobs.get_mut(&name).unwrap();
            job.bot = None;
            job.state.send_replace(JobState {
                stage: Stage::Queued,
                response: None,
            });
            state.queue.push_back(name);
        }
        drop(state);
        self.notify();
    }

    async fn exchange(&self, mut session: BotSession) -> Result<BotSession, Status> {
        let bot = session.bot_id.clone();
        if self.state.lock().unwrap().dead_bots.contains(&bot) {
            return Err(Status::invalid_argument("Bot does not exist"));
        }
        for lease in std::mem::take(&mut session.leases) {
            let is_cancelled = self.state.lock().unwrap().cancelled.contains(&lease.id);
            if lease.state == LeaseState::Completed as i32 {
                self.complete(&bot, lease);
            } else if !is_cancelled {
                session.leases.push(lease);
            }
        }
        let is_leaving = session.status == BotStatus::BotTerminating as i32;
        if !is_leaving && session.leases.is_empty() {
            session.leases.extend(self.next_lease(&bot).await);
        }
        Ok(session)
    }

    fn complete(&self, bot: &str, lease: Lease) {
        let is_theirs = {
            let state = self.state.lock().unwrap();
            state.jobs.get(&lease.id).and_then(|job| job.bot.as_deref()) == Some(bot)
        };
        if !is_theirs {
            return;
        }
        let status = lease.status.unwrap_or_default();
        let result = lease
            .result
            .map(|any| reapi::ActionResult::decode(any.value.as_slice()).unwrap());
        self.finish(
            &lease.id,
            reapi::ExecuteResponse {
                result,
                status: Some(rpc::Status {
                    code: status.code,
                    message: status.message,
                    details: Vec::new(),
                }),
                ..Default::default()
            },
        );
    }

    /// A long poll, as BuildGrid makes it.
    async fn next_lease(&self, bot: &str) -> Option<Lease> {
        let mut changed = self.changed.subscribe();
        let wait = async {
            loop {
                if let Some(lease) = self.assign(bot) {
                    return lease;
                }
                changed.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(5), wait)
            .await
            .ok()
    }

    fn assign(&self, bot: &str) -> Option<Lease> {
        let mut state = self.state.lock().unwrap();
        if state.dead_bots.contains(bot) {
            return None;
        }
        let name = state.queue.pop_front()?;
        let job = state.jobs.get_mut(&name).unwrap();
        job.bot = Some(bot.to_owned());
        job.state.send_replace(JobState {
            stage: Stage::Executing,
            response: None,
        });
        let payload = prost_types::Any {
            type_url: String::from("type.googleapis.com/build.bazel.remote.execution.v2.Action"),
            value: job.action.encode_to_vec(),
        };
        drop(state);
        self.notify();
        Some(Lease {
            id: name,
            payload: Some(payload),
            state: LeaseState::Active as i32,
            ..Default::default()
        })
    }
}

/// The generated crate has the client only.
#[derive(Clone)]
pub(super) struct BotsServer(FakeEngine);

impl NamedService for BotsServer {
    const NAME: &'static str = "google.devtools.remoteworkers.v1test2.Bots";
}

/// Both calls have the session in the same field of their requests, under different numbers.
struct Exchange(FakeEngine);

impl UnaryService<workers::CreateBotSessionRequest> for Exchange {
    type Response = BotSession;
    type Future = BoxFuture<'static, Result<Response<BotSession>, Status>>;

    fn call(&mut self, request: Request<workers::CreateBotSessionRequest>) -> Self::Future {
        let engine = self.0.clone();
        let mut session = request.into_inner().bot_session.unwrap();
        session.name = format!("session-of-{}", session.bot_id);
        async move { engine.exchange(session).await.map(Response::new) }.boxed()
    }
}

impl UnaryService<workers::UpdateBotSessionRequest> for Exchange {
    type Response = BotSession;
    type Future = BoxFuture<'static, Result<Response<BotSession>, Status>>;

    fn call(&mut self, request: Request<workers::UpdateBotSessionRequest>) -> Self::Future {
        let engine = self.0.clone();
        let session = request.into_inner().bot_session.unwrap();
        async move { engine.exchange(session).await.map(Response::new) }.boxed()
    }
}

impl Service<http::Request<tonic::body::Body>> for BotsServer {
    type Response = http::Response<tonic::body::Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let exchange = Exchange(self.0.clone());
        async move {
            let is_create = request.uri().path().ends_with("/CreateBotSession");
            Ok(if is_create {
                let codec = tonic_prost::ProstCodec::<BotSession, workers::CreateBotSessionRequest>::default();
                Grpc::new(codec).unary(exchange, request).await
            } else {
                let codec = tonic_prost::ProstCodec::<BotSession, workers::UpdateBotSessionRequest>::default();
                Grpc::new(codec).unary(exchange, request).await
            })
        }
        .boxed()
    }
}
