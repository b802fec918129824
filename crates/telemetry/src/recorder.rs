//! A recorder around the session log, which makes spans and metrics of what it is told.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use supervisor_engine::event::{Listener, ProgressLine};
use supervisor_engine::exchange::{ExchangeRecord, ExchangeTexts, TextId};
use supervisor_engine::services::{LiveHeader, LiveRecord, OpenRecord, Recorder};
use supervisor_engine::{Attempt, Entry};

use super::Telemetry;
use super::spans::CallSpans;

/// Shared by the record and the watcher of a call.
type Shared = Arc<Mutex<Option<CallSpans>>>;

pub(crate) struct TracedRecorder {
    telemetry: Telemetry,
    inner: Arc<dyn Recorder>,
    /// The running calls, for their watchers.
    running: Arc<Mutex<HashMap<String, Shared>>>,
}

impl TracedRecorder {
    pub(crate) fn new(telemetry: Telemetry, inner: Arc<dyn Recorder>) -> Self {
        Self {
            telemetry,
            inner,
            running: Arc::default(),
        }
    }
}

impl Recorder for TracedRecorder {
    fn session(&self, requested: Option<&str>) -> Result<String, String> {
        self.inner.session(requested)
    }

    fn ready(&self, session: &str) -> Result<(), String> {
        self.inner.ready(session)
    }

    fn show_live(&self, call: &LiveHeader) -> Box<dyn LiveRecord> {
        Box::new(TracedLive {
            inner: self.inner.show_live(call),
            spans: self.running.lock().get(&call.call).cloned(),
        })
    }

    fn begin(&self, entry: &Entry) -> Result<Box<dyn OpenRecord>, String> {
        let inner = self.inner.begin(entry)?;
        let spans = CallSpans::begin(&self.telemetry.0.tracer, entry);
        let spans: Shared = Arc::new(Mutex::new(Some(spans)));
        let call = entry.call.clone();
        self.running.lock().insert(call.clone(), Arc::clone(&spans));
        Ok(Box::new(TracedRecord {
            inner: Some(inner),
            open: OpenSpans {
                call,
                spans,
                running: Arc::clone(&self.running),
            },
            telemetry: self.telemetry.clone(),
        }))
    }

    fn keep_exchange(&self, texts: &ExchangeTexts) -> ExchangeRecord {
        self.inner.keep_exchange(texts)
    }

    fn keep_diff(&self, diff: &str) -> Option<TextId> {
        self.inner.keep_diff(diff)
    }

    fn locate(&self, text: &TextId) -> Option<PathBuf> {
        self.inner.locate(text)
    }
}

struct TracedRecord {
    inner: Option<Box<dyn OpenRecord>>,
    open: OpenSpans,
    telemetry: Telemetry,
}

/// Ends the spans of a call that ends without an entry, too.
struct OpenSpans {
    call: String,
    spans: Shared,
    running: Arc<Mutex<HashMap<String, Shared>>>,
}

impl OpenSpans {
    fn end(&self, entry: Option<&Entry>) {
        self.running.lock().remove(&self.call);
        if let Some(spans) = self.spans.lock().take() {
            spans.end(entry);
        }
    }
}

impl Drop for OpenSpans {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl OpenRecord for TracedRecord {
    fn note(&self, attempt: &Attempt) {
        if let Some(inner) = &self.inner {
            inner.note(attempt);
        }
        if let Some(spans) = self.open.spans.lock().as_mut() {
            spans.on_attempt(attempt);
        }
    }

    fn close(mut self: Box<Self>, entry: &Entry) -> Result<(), String> {
        self.open.end(Some(entry));
        self.telemetry.0.metrics.count(entry);
        self.inner.take().map_or(Ok(()), |inner| inner.close(entry))
    }
}

struct TracedLive {
    inner: Box<dyn LiveRecord>,
    spans: Option<Shared>,
}

impl Listener for TracedLive {
    fn on_event(&self, line: &ProgressLine) {
        self.inner.on_event(line);
        if let Some(spans) = &self.spans
            && let Some(spans) = spans.lock().as_mut()
        {
            spans.on_event(&line.event);
        }
    }
}

impl LiveRecord for TracedLive {
    fn is_stop_requested(&self) -> bool {
        self.inner.is_stop_requested()
    }
}
