//! The spans of one call: the call, its tiers, and in each the asks, test runs, checks and gates.

use std::collections::HashMap;
use std::time::SystemTime;

use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{SpanKind, Status as SpanStatus, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use supervisor_engine::event::Event;
use supervisor_engine::trace::RequestTrace;
use supervisor_engine::{Attempt, Cause, Entry, Status};

use super::names;

/// The open spans of a running call.
pub(crate) struct CallSpans {
    tracer: SdkTracer,
    call: Context,
    tier: Option<Context>,
    /// What goes on now: an ask, a test run or a check.
    activity: Option<Context>,
}

impl CallSpans {
    pub(crate) fn begin(tracer: &SdkTracer, entry: &Entry) -> Self {
        let tool = entry.tool.clone();
        let mut attributes = vec![
            KeyValue::new(names::MCP_METHOD_NAME, names::TOOLS_CALL),
            KeyValue::new(names::GEN_AI_OPERATION_NAME, names::EXECUTE_TOOL),
            KeyValue::new(names::GEN_AI_TOOL_NAME, tool.clone()),
            KeyValue::new(names::GEN_AI_CONVERSATION_ID, entry.session_id.clone()),
            KeyValue::new(names::CALL, entry.call.clone()),
        ];
        for (name, value) in [
            (names::PHASE, &entry.phase),
            (names::CYCLE, &entry.cycle_id),
        ] {
            if !value.is_empty() {
                attributes.push(KeyValue::new(name, value.clone()));
            }
        }
        let request = RequestTrace::current();
        let parent = request.as_deref().map(parent_of).unwrap_or_default();
        let span = tracer
            .span_builder(format!("{} {tool}", names::TOOLS_CALL))
            .with_kind(SpanKind::Server)
            .with_attributes(attributes)
            .start_with_context(tracer, &parent);
        let call = Context::new().with_span(span);
        if let Some(request) = request {
            request.first.get_or_init(|| traceparent(&call));
        }
        Self {
            tracer: tracer.clone(),
            call,
            tier: None,
            activity: None,
        }
    }

    fn start(&self, name: String, attributes: Vec<KeyValue>, kind: SpanKind) -> Context {
        let parent = self.tier.as_ref().unwrap_or(&self.call);
        let span = self
            .tracer
            .span_builder(name)
            .with_kind(kind)
            .with_attributes(attributes)
            .start_with_context(&self.tracer, parent);
        Context::new().with_span(span)
    }

    /// An event of the call: the activity before it is over.
    pub(crate) fn on_event(&mut self, event: &Event) {
        if matches!(event, Event::Still(_) | Event::Working { .. }) {
            return;
        }
        self.end_activity();
        let chat = |model: &str| {
            let attributes = vec![
                KeyValue::new(names::GEN_AI_OPERATION_NAME, names::CHAT),
                KeyValue::new(names::GEN_AI_REQUEST_MODEL, model.to_owned()),
            ];
            (
                format!("{} {model}", names::CHAT),
                attributes,
                SpanKind::Client,
            )
        };
        let (name, attributes, kind) = match event {
            Event::Asking { at } => chat(&at.model),
            Event::Judging { verifier, .. } => chat(verifier),
            // What runs is not told: it may name files and tests.
            Event::Doing { what } | Event::Checking { what, .. } => {
                let name = match what.starts_with("running") {
                    true => names::SPAN_TEST_RUN,
                    false => names::SPAN_CHECK,
                };
                (name.to_owned(), Vec::new(), SpanKind::Internal)
            }
            _ => return,
        };
        self.activity = Some(self.start(name, attributes, kind));
    }

    /// An attempt begins or has ended: it is told once at each.
    pub(crate) fn on_attempt(&mut self, attempt: &Attempt) {
        if self.tier.is_none() {
            let attributes = vec![
                KeyValue::new(names::GEN_AI_REQUEST_MODEL, attempt.model.clone()),
                KeyValue::new(names::TIER, attempt.tier.word()),
                KeyValue::new(names::ATTEMPT, i64::from(attempt.attempt)),
            ];
            self.end_activity();
            self.tier = Some(self.start(
                format!("tier {}", attempt.model),
                attributes,
                SpanKind::Internal,
            ));
        }
        let has_begun = attempt.cause == Some(Cause::Crashed) && attempt.duration_ms == 0;
        if !has_begun {
            self.end_tier(attempt);
        }
    }

    fn end_tier(&mut self, attempt: &Attempt) {
        self.end_activity();
        let Some(tier) = self.tier.take() else { return };
        let now = SystemTime::now();
        for gate in &attempt.gates {
            let attributes = vec![
                KeyValue::new(names::GATE, gate.id.clone()),
                KeyValue::new(names::GATE_PASSED, gate.pass),
            ];
            let span = self
                .tracer
                .span_builder(format!("gate {}", gate.id))
                .with_start_time(now)
                .with_attributes(attributes)
                .start_with_context(&self.tracer, &tier);
            let context = Context::new().with_span(span);
            if !gate.pass {
                context.span().set_status(SpanStatus::error(""));
            }
            context.span().end_with_timestamp(now);
        }
        let span = tier.span();
        span.set_attribute(KeyValue::new(names::VERIFIED, attempt.verified));
        if let Some(cause) = attempt.cause {
            span.set_attribute(KeyValue::new(names::CAUSE, cause.word()));
            if cause != Cause::Accepted {
                span.set_attribute(KeyValue::new(names::ERROR_TYPE, cause.word()));
                span.set_status(SpanStatus::error(""));
            }
        }
        for (name, tokens) in [
            (names::GEN_AI_USAGE_INPUT_TOKENS, attempt.tokens_in),
            (names::GEN_AI_USAGE_OUTPUT_TOKENS, attempt.tokens_out),
        ] {
            if let Some(tokens) = tokens.and_then(|tokens| i64::try_from(tokens).ok()) {
                span.set_attribute(KeyValue::new(name, tokens));
            }
        }
        if let Some(cost) = attempt.cost_usd {
            span.set_attribute(KeyValue::new(names::COST_USD, cost));
        }
        span.end_with_timestamp(now);
    }

    fn end_activity(&mut self) {
        if let Some(activity) = self.activity.take() {
            activity.span().end();
        }
    }

    /// The call has ended, with this entry if it got that far.
    pub(crate) fn end(mut self, entry: Option<&Entry>) {
        self.end_activity();
        if let Some(tier) = self.tier.take() {
            tier.span().end();
        }
        let span = self.call.span();
        if let Some(entry) = entry {
            span.set_attribute(KeyValue::new(
                names::STATUS,
                status_word(entry.final_status),
            ));
            if !entry.sandbox.is_empty() {
                span.set_attribute(KeyValue::new(names::SANDBOX, entry.sandbox.clone()));
            }
            if entry.final_status == Status::Error {
                span.set_attribute(KeyValue::new(names::ERROR_TYPE, "tool_error"));
                span.set_status(SpanStatus::error(""));
            }
        }
        span.end();
    }
}

/// The context that the client named, or that of the first call of the same request.
fn parent_of(request: &RequestTrace) -> Context {
    let parent = request.traceparent.as_ref().or(request.first.get());
    let mut carrier = HashMap::new();
    if let Some(parent) = parent {
        carrier.insert(String::from("traceparent"), parent.clone());
    }
    if let Some(state) = &request.tracestate {
        carrier.insert(String::from("tracestate"), state.clone());
    }
    TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier)
}

fn traceparent(context: &Context) -> String {
    let mut carrier = HashMap::new();
    TraceContextPropagator::new().inject_context(context, &mut carrier);
    carrier.remove("traceparent").unwrap_or_default()
}

pub(crate) fn status_word(status: Status) -> &'static str {
    match status {
        Status::Pass => "pass",
        Status::Fail => "fail",
        Status::Error => "error",
    }
}
