//! Logs go to stderr because stdout carries the protocol. `SUPERVISOR_LOG` sets the levels and
//! `SUPERVISOR_LOG_FORMAT` the form: text, or one JSON object per line.

use std::fmt::Debug;
use std::io::{self, Write as _};

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::prelude::*;

use super::console;

/// Target of the line that says that the server starts. It is shown by default.
pub(super) const START: &str = "supervisor::start";
const LEVELS: &str = "SUPERVISOR_LOG";
const FORMAT: &str = "SUPERVISOR_LOG_FORMAT";

pub(super) fn start() {
    let variable = |name: &str| {
        std::env::var(name)
            .ok()
            .filter(|value| !value.trim().is_empty())
    };
    let mut invalid = Vec::new();
    let requested = variable(LEVELS).map(|directives| {
        directives.parse::<Targets>().map_err(|why| {
            invalid.push(format!(
                "${LEVELS} is `{}`: {why}; write it as `debug` or `supervisor=trace`",
                directives.escape_debug()
            ));
        })
    });
    let filter = match requested {
        Some(Ok(filter)) => filter,
        Some(Err(())) | None => Targets::new()
            .with_default(LevelFilter::WARN)
            .with_target(START, LevelFilter::INFO)
            .with_target("rmcp", LevelFilter::ERROR),
    };
    let is_json = match variable(FORMAT).as_deref().map(str::trim) {
        None | Some("text") => false,
        Some("json") => true,
        Some(other) => {
            invalid.push(format!(
                "${FORMAT} is `{}`; it can be `text` or `json`",
                other.escape_debug()
            ));
            false
        }
    };
    let lines: Box<dyn Layer<_> + Send + Sync> = if is_json {
        Box::new(JsonLines)
    } else {
        let colour = console::Paint::on(&io::stderr()) == console::Paint::Colour;
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(console::log_writer)
            .with_ansi(colour);
        Box::new(lines)
    };
    let _ = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .try_init();
    for complaint in invalid {
        tracing::warn!("{complaint}");
    }
}

/// Writes each event as a JSON object with `time`, `level`, `target`, `msg` and the event's fields.
struct JsonLines;

impl<S: Subscriber> Layer<S> for JsonLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields(Map::new());
        fields
            .0
            .insert("time".into(), jiff::Timestamp::now().to_string().into());
        let meta = event.metadata();
        fields
            .0
            .insert("level".into(), meta.level().as_str().into());
        fields.0.insert("target".into(), meta.target().into());
        event.record(&mut fields);
        // If stderr is closed, there is nobody to tell.
        let _ =
            console::log_writer().write_all(format!("{}\n", Value::Object(fields.0)).as_bytes());
    }
}

struct Fields(Map<String, Value>);

impl Fields {
    fn set(&mut self, field: &Field, value: Value) {
        let name = match field.name() {
            "message" => "msg",
            name => name,
        };
        self.0.insert(name.to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.set(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, json!(value));
    }
}
