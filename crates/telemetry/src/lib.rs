//! Traces and metrics of calls over OTLP, on when `OTEL_EXPORTER_OTLP_ENDPOINT` is set. They are derived from what the engine
//! tells a recorder and a watcher anyway: the log entry, its attempts, and the events in between. Nothing waits for the
//! collector: the SDK queues and drops.

mod client;
mod metrics;
mod names;
mod recorder;
mod spans;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use supervisor_engine::services::Recorder;
use tokio::runtime::Handle;

use client::OtlpClient;
use metrics::Metrics;
use recorder::TracedRecorder;

/// Turns telemetry on; the other variables of the specification work too.
pub const ENDPOINT_VAR: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const DISABLED_VAR: &str = "OTEL_SDK_DISABLED";
const PROTOCOL_VAR: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";

/// How long the end of the program waits for what is not sent yet.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error(
        "${PROTOCOL_VAR} is `{0}`, but only `http/protobuf` is spoken; no traces are sent. Unset it, and give the collector's HTTP port in ${ENDPOINT_VAR}"
    )]
    Protocol(String),
    #[error("no traces are sent: {0}; check ${ENDPOINT_VAR}")]
    Exporter(#[from] ExporterBuildError),
}

/// Sends traces and metrics. Cheap to clone.
#[derive(Clone)]
pub struct Telemetry(Arc<Providers>);

struct Providers {
    traces: SdkTracerProvider,
    meters: SdkMeterProvider,
    tracer: SdkTracer,
    metrics: Metrics,
}

impl Telemetry {
    /// Reads the variables of this process; `None` if they turn nothing on. Requests are made on `runtime`, which has to run
    /// until [`Self::shutdown`] has returned.
    pub fn from_env(runtime: &Handle) -> Result<Option<Self>, TelemetryError> {
        let var = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let is_disabled = var(DISABLED_VAR).is_some_and(|v| v.eq_ignore_ascii_case("true"));
        if var(ENDPOINT_VAR).is_none() || is_disabled {
            return Ok(None);
        }
        if let Some(protocol) = var(PROTOCOL_VAR).filter(|p| p != "http/protobuf") {
            return Err(TelemetryError::Protocol(protocol));
        }
        Self::build(None, runtime).map(Some)
    }

    /// Sends to this collector, such as `http://localhost:4318`.
    pub fn to_endpoint(endpoint: &str, runtime: &Handle) -> Result<Self, TelemetryError> {
        Self::build(Some(endpoint), runtime)
    }

    fn build(endpoint: Option<&str>, runtime: &Handle) -> Result<Self, TelemetryError> {
        let client = OtlpClient::new(runtime.clone());
        let (mut spans, mut points) = (
            SpanExporter::builder()
                .with_http()
                .with_http_client(client.clone()),
            MetricExporter::builder()
                .with_http()
                .with_http_client(client),
        );
        if let Some(endpoint) = endpoint {
            spans = spans.with_endpoint(format!("{endpoint}/v1/traces"));
            points = points.with_endpoint(format!("{endpoint}/v1/metrics"));
        }
        let (spans, points) = (spans.build()?, points.build()?);
        let resource = Resource::builder()
            .with_service_name(
                std::env::var("OTEL_SERVICE_NAME").unwrap_or_else(|_| names::SERVICE.into()),
            )
            .with_attribute(opentelemetry::KeyValue::new(
                "service.version",
                env!("CARGO_PKG_VERSION"),
            ))
            .build();
        let traces = SdkTracerProvider::builder()
            .with_batch_exporter(spans)
            .with_resource(resource.clone())
            .build();
        let meters = SdkMeterProvider::builder()
            .with_periodic_exporter(points)
            .with_resource(resource)
            .build();
        let (tracer, metrics) = (
            traces.tracer(names::SERVICE),
            Metrics::new(&meters.meter(names::SERVICE)),
        );
        Ok(Self(Arc::new(Providers {
            traces,
            meters,
            tracer,
            metrics,
        })))
    }

    /// A recorder that does what `inner` does, and makes spans and metrics of it.
    pub fn wrap(&self, inner: Arc<dyn Recorder>) -> Arc<dyn Recorder> {
        Arc::new(TracedRecorder::new(self.clone(), inner))
    }

    /// Sends what is left, waiting at most two seconds for each kind. Blocks: not for a thread of the runtime.
    pub fn shutdown(&self) {
        let traces = self.0.traces.shutdown_with_timeout(SHUTDOWN_TIMEOUT);
        let meters = self.0.meters.shutdown_with_timeout(SHUTDOWN_TIMEOUT);
        for error in [traces.err(), meters.err()].into_iter().flatten() {
            tracing::debug!("traces or metrics were not sent: {error}");
        }
    }
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
