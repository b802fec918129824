//! What a client may read without calling a tool: session logs, the report, checkpoint reports, notes and the routing in
//! effect. Nothing is read before it is asked for, and whatever is read is bounded, without secrets, and data.

mod address;
mod completion;
mod contents;

use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

use super::{App, Server};
use address::ResourceAddress;
use contents::Shelf;
use supervisor_engine::session::SessionLog;
use supervisor_settings::LoadedRouting;
use supervisor_workspace::state::StateDir;

const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";
const PLAIN: &str = "text/plain";

/// Sessions that are listed one by one; the others are found by their template.
const SESSIONS_LISTED: usize = 20;

/// What commands of the terminal print, for a client that reads it as a resource. `cli` makes it, which stands above this
/// module. The error is a sentence for the reader.
#[derive(Debug, Clone, Copy)]
pub struct PrintedPages {
    /// `supervisor report`
    pub report: fn(&StateDir) -> Result<String, String>,
    /// `supervisor explain --json`, of one skill or of all
    pub routing: fn(&LoadedRouting, &StateDir, Option<&str>) -> Result<Value, String>,
}

/// Why a resource cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ResourceError {
    #[error(
        "`{0}` is no resource of this server; `resources/list` and `resources/templates/list` show them"
    )]
    Unknown(String),
    #[error("`{name}` in the URI is no name: {why}")]
    Name { name: String, why: String },
    #[error("{0}")]
    Missing(String),
    #[error("{0}")]
    Unreadable(String),
}

impl ResourceError {
    fn name(name: &str, why: impl Into<String>) -> Self {
        Self::Name {
            name: shown(name),
            why: why.into(),
        }
    }

    fn into_protocol(self, uri: &str) -> ErrorData {
        let message = self.to_string();
        let data = Some(json!({"uri": shown(uri)}));
        match self {
            Self::Unknown(_) | Self::Missing(_) => ErrorData::resource_not_found(message, data),
            Self::Name { .. } => ErrorData::invalid_params(message, data),
            Self::Unreadable(_) => ErrorData::internal_error(message, data),
        }
    }
}

/// What came from outside, short and without control characters.
fn shown(text: &str) -> String {
    let text = supervisor_text::words::plain(text).replace(['\n', '\t', '`'], " ");
    supervisor_text::words::cut_end(&text, 100).into_owned()
}

impl Server {
    /// Reads one resource.
    pub(super) async fn read_address(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        let read = match ResourceAddress::parse(uri) {
            Ok(address) => {
                let shelf = Shelf::of(self.app(), self.pages);
                let done = tokio::task::spawn_blocking(move || shelf?.read(&address)).await;
                done.unwrap_or_else(|panic| Err(ResourceError::Unreadable(panic.to_string())))
            }
            Err(error) => Err(error),
        };
        let (mime, text) = read.map_err(|error| error.into_protocol(uri))?;
        Ok(ReadResourceResult::new(vec![
            ResourceContents::text(text, uri).with_mime_type(mime),
        ]))
    }

    /// What is there whatever happened before, and the newest sessions.
    pub(super) fn listed_resources(&self) -> Vec<Resource> {
        let sessions = newest_sessions(self.app())
            .into_iter()
            .take(SESSIONS_LISTED)
            .map(|id| {
                Resource::new(
                    format!("supervisor://sessions/{id}"),
                    format!("session {id}"),
                )
                .with_mime_type(JSON)
            });
        let fixed = FIXED
            .iter()
            .filter(|fixed| !fixed.is_printed || self.pages.is_some());
        fixed
            .map(FixedResource::described)
            .chain(sessions)
            .collect()
    }

    pub(super) fn resource_templates(&self) -> Vec<ResourceTemplate> {
        let all = TEMPLATES
            .iter()
            .filter(|template| !template.is_printed || self.pages.is_some());
        all.map(TemplateLine::described).collect()
    }
}

fn newest_sessions(app: &App) -> Vec<String> {
    let Ok(state) = app.state() else {
        return Vec::new();
    };
    let log = SessionLog::to_read(&state);
    let written = |id: &_| {
        std::fs::metadata(log.path(id))
            .and_then(|meta| meta.modified())
            .ok()
    };
    let mut sessions: Vec<_> = log
        .sessions()
        .unwrap_or_default()
        .into_iter()
        .map(|id| (written(&id), id))
        .collect();
    sessions.sort_by(|a, b| b.cmp(a));
    sessions
        .into_iter()
        .map(|(_, id)| id.as_str().to_owned())
        .collect()
}

/// A resource that is always there.
struct FixedResource {
    uri: &'static str,
    name: &'static str,
    description: &'static str,
    mime: &'static str,
    is_printed: bool,
}

const FIXED: &[FixedResource] = &[
    FixedResource {
        uri: "supervisor://routing",
        name: "routing",
        description: "The routing in effect: every chain, limit and setting, and what decided each",
        mime: JSON,
        is_printed: true,
    },
    FixedResource {
        uri: "supervisor://report",
        name: "report",
        description: "What the models did and were worth, as `supervisor report` prints it",
        mime: PLAIN,
        is_printed: true,
    },
    FixedResource {
        uri: "supervisor://statistics",
        name: "statistics",
        description: "Accept rates, costs and times per skill and model, as `supervisor stats --json` prints them",
        mime: JSON,
        is_printed: false,
    },
    FixedResource {
        uri: "supervisor://sessions",
        name: "sessions",
        description: "The sessions in the log, the newest first",
        mime: JSON,
        is_printed: false,
    },
];

impl FixedResource {
    fn described(&self) -> Resource {
        Resource::new(self.uri, self.name)
            .with_description(self.description)
            .with_mime_type(self.mime)
    }
}

/// A template of resources.
struct TemplateLine {
    template: &'static str,
    name: &'static str,
    description: &'static str,
    mime: &'static str,
    is_printed: bool,
}

const TEMPLATES: &[TemplateLine] = &[
    TemplateLine {
        template: "supervisor://routing/{skill}",
        name: "routing of a skill",
        description: "The chain and the limits of one skill, and what decided each",
        mime: JSON,
        is_printed: true,
    },
    TemplateLine {
        template: "supervisor://sessions/{session}",
        name: "session log",
        description: "The entries of a session, the newest that fit",
        mime: JSON,
        is_printed: false,
    },
    TemplateLine {
        template: "supervisor://sessions/{session}/{call}",
        name: "logged call",
        description: "One call, by its number in the session or the beginning of its id, with answers and diffs as far as kept",
        mime: JSON,
        is_printed: false,
    },
    TemplateLine {
        template: "supervisor://notes/{+name}",
        name: "note",
        description: "A note that `brain_write` made, by its path below the folder of notes",
        mime: MARKDOWN,
        is_printed: false,
    },
    TemplateLine {
        template: "supervisor://checkpoints/{team}/{checkpoint}{?project_root}",
        name: "checkpoint report",
        description: "The report of a checkpoint such as CHECKPOINT-001; `project_root` is the absolute path of the project",
        mime: MARKDOWN,
        is_printed: false,
    },
];

impl TemplateLine {
    fn described(&self) -> ResourceTemplate {
        ResourceTemplate::new(self.template, self.name)
            .with_description(self.description)
            .with_mime_type(self.mime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_and_template_that_is_listed_has_an_address() {
        for fixed in FIXED {
            assert!(ResourceAddress::parse(fixed.uri).is_ok(), "{}", fixed.uri);
        }
        let filled = [
            ("{skill}", "review"),
            ("{session}", "s-1"),
            ("{call}", "1"),
            ("{+name}", "a/b.md"),
            ("{team}", "t"),
            ("{checkpoint}", "CHECKPOINT-001"),
            ("{?project_root}", "?project_root=%2Fp"),
        ];
        for line in TEMPLATES {
            let uri = filled
                .iter()
                .fold(line.template.to_owned(), |uri, (slot, value)| {
                    uri.replace(slot, value)
                });
            assert!(
                !uri.contains('{') && ResourceAddress::parse(&uri).is_ok(),
                "{uri}"
            );
        }
    }
}
