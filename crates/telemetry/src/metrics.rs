//! Counts and times of calls, by tool and model.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};
use supervisor_engine::{Attempt, Cause, Entry};

use super::names;
use super::spans::status_word;

pub(crate) struct Metrics {
    calls: Counter<u64>,
    attempts: Counter<u64>,
    cost: Counter<f64>,
    call_seconds: Histogram<f64>,
    attempt_seconds: Histogram<f64>,
    tokens: Histogram<u64>,
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            calls: meter
                .u64_counter(names::METRIC_CALLS)
                .with_description("Calls of tools, by how they ended")
                .build(),
            attempts: meter
                .u64_counter(names::METRIC_ATTEMPTS)
                .with_description("Attempts of models, by cause; `accepted` is acceptance")
                .build(),
            cost: meter
                .f64_counter(names::METRIC_COST)
                .with_unit("{USD}")
                .build(),
            call_seconds: meter
                .f64_histogram(names::METRIC_CALL_SECONDS)
                .with_unit("s")
                .build(),
            attempt_seconds: meter
                .f64_histogram(names::METRIC_ATTEMPT_SECONDS)
                .with_unit("s")
                .build(),
            tokens: meter
                .u64_histogram(names::METRIC_TOKENS)
                .with_unit("{token}")
                .build(),
        }
    }

    /// Counts a call that has ended.
    pub(crate) fn count(&self, entry: &Entry) {
        let of_call = [
            KeyValue::new(names::GEN_AI_TOOL_NAME, entry.tool.clone()),
            KeyValue::new(names::STATUS, status_word(entry.final_status)),
        ];
        self.calls.add(1, &of_call);
        self.call_seconds
            .record(seconds(entry.duration_ms), &of_call);
        for attempt in &entry.attempts {
            self.count_attempt(attempt);
        }
    }

    fn count_attempt(&self, attempt: &Attempt) {
        let model = KeyValue::new(names::GEN_AI_REQUEST_MODEL, attempt.model.clone());
        let chat = KeyValue::new(names::GEN_AI_OPERATION_NAME, names::CHAT);
        let cause = attempt.cause.map_or("", Cause::word);
        let ended = [model.clone(), KeyValue::new(names::CAUSE, cause)];
        self.attempts.add(1, &ended);
        if !attempt.was_asked() {
            return;
        }
        self.cost.add(
            attempt.cost_usd.unwrap_or(0.0).max(0.0),
            std::slice::from_ref(&model),
        );
        let of_model = [model.clone(), chat.clone()];
        self.attempt_seconds
            .record(seconds(attempt.generate_ms), &of_model);
        for (kind, tokens) in [("input", attempt.tokens_in), ("output", attempt.tokens_out)] {
            if let Some(tokens) = tokens {
                let kind = KeyValue::new(names::GEN_AI_TOKEN_TYPE, kind);
                self.tokens
                    .record(tokens, &[model.clone(), chat.clone(), kind]);
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "no call takes 2^53 ms")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
