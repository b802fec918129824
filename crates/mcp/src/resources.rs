//! MCP resources: session logs, the report, checkpoint reports, notes and the routing in effect.
//! Contents are read on request, limited in size, and redacted.

mod address;
mod completion;
mod contents;

use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

use super::{App, Server};
use address::ResourceAddress;
use contents::ResourceReader;
use supervisor_engine::session::SessionLog;
use supervisor_settings::LoadedRouting;
use supervisor_workspace::state::StateDir;

const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";
const PLAIN: &str = "text/plain";

/// Number of sessions listed one by one; others are reached through their template.
const MAX_LISTED_SESSIONS: usize = 20;

/// Output of terminal commands, served as resources. Provided by `cli`, which depends on this
/// module. The error is a sentence for the reader.
#[derive(Debug, Clone, Copy)]
pub struct CommandPages {
    /// `supervisor report`
    pub report: fn(&StateDir) -> Result<String, String>,
    /// `supervisor explain --json`, of one skill or of all
    pub routing: fn(&LoadedRouting, &StateDir, Option<&str>) -> Result<Value, String>,
}

/// Why a resource cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ResourceError {
    #[error(
        "`{0}` is not a resource of this server; `resources/list` and `resources/templates/list` show them"
    )]
    Unknown(String),
    #[error("`{name}` in the URI is not a name: {why}")]
    Name { name: String, why: String },
    #[error("{0}")]
    Missing(String),
    #[error("{0}")]
    Unreadable(String),
}

impl ResourceError {
    fn name(name: &str, why: impl Into<String>) -> Self {
        Self::Name {
            name: displayable(name),
            why: why.into(),
        }
    }

    fn into_protocol(self, uri: &str) -> ErrorData {
        let message = self.to_string();
        let data = Some(json!({"uri": displayable(uri)}));
        match self {
            Self::Unknown(_) | Self::Missing(_) => ErrorData::resource_not_found(message, data),
            Self::Name { .. } => ErrorData::invalid_params(message, data),
            Self::Unreadable(_) => ErrorData::internal_error(message, data),
        }
    }
}

/// Untrusted text, shortened and without control characters.
fn displayable(text: &str) -> String {
    let text = supervisor_text::words::plain(text).replace(['\n', '\t', '`'], " ");
    supervisor_text::words::cut_end(&text, 100).into_owned()
}

impl Server {
    /// Reads one resource.
    pub(super) async fn read_address(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        let read = match ResourceAddress::parse(uri) {
            Ok(ResourceAddress::Checkpoint { project_root, .. })
                if !self.allows_project(&project_root) =>
            {
                let why = "this server does not work on that project";
                Err(ResourceError::Missing(String::from(why)))
            }
            Ok(address) => {
                let reader = ResourceReader::of(self.app(), self.pages);
                let done = tokio::task::spawn_blocking(move || reader?.read(&address)).await;
                done.unwrap_or_else(|panic| Err(ResourceError::Unreadable(panic.to_string())))
            }
            Err(error) => Err(error),
        };
        let (mime, text) = read.map_err(|error| error.into_protocol(uri))?;
        Ok(ReadResourceResult::new(vec![
            ResourceContents::text(text, uri).with_mime_type(mime),
        ]))
    }

    /// The fixed resources and the newest sessions.
    pub(super) fn listed_resources(&self) -> Vec<Resource> {
        let sessions = newest_sessions(self.app())
            .into_iter()
            .take(MAX_LISTED_SESSIONS)
            .map(|id| {
                Resource::new(
                    format!("supervisor://sessions/{id}"),
                    format!("session {id}"),
                )
                .with_mime_type(JSON)
            });
        let fixed = FIXED
            .iter()
            .filter(|fixed| !fixed.needs_pages || self.pages.is_some());
        fixed.map(FixedResource::describe).chain(sessions).collect()
    }

    pub(super) fn resource_templates(&self) -> Vec<ResourceTemplate> {
        let all = TEMPLATES
            .iter()
            .filter(|template| !template.needs_pages || self.pages.is_some());
        all.map(TemplateResource::describe).collect()
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

/// A resource that always exists.
struct FixedResource {
    uri: &'static str,
    name: &'static str,
    description: &'static str,
    mime: &'static str,
    needs_pages: bool,
}

const FIXED: &[FixedResource] = &[
    FixedResource {
        uri: "supervisor://routing",
        name: "routing",
        description: "The routing in effect: every chain, limit and setting, and what decided each",
        mime: JSON,
        needs_pages: true,
    },
    FixedResource {
        uri: "supervisor://report",
        name: "report",
        description: "What the models did and were worth, as `supervisor report` prints it",
        mime: PLAIN,
        needs_pages: true,
    },
    FixedResource {
        uri: "supervisor://statistics",
        name: "statistics",
        description: "Accept rates, costs and times per skill and model, as `supervisor stats --json` prints them",
        mime: JSON,
        needs_pages: false,
    },
    FixedResource {
        uri: "supervisor://sessions",
        name: "sessions",
        description: "The sessions in the log, the newest first",
        mime: JSON,
        needs_pages: false,
    },
];

impl FixedResource {
    fn describe(&self) -> Resource {
        Resource::new(self.uri, self.name)
            .with_description(self.description)
            .with_mime_type(self.mime)
    }
}

/// A resource template.
struct TemplateResource {
    template: &'static str,
    name: &'static str,
    description: &'static str,
    mime: &'static str,
    needs_pages: bool,
}

const TEMPLATES: &[TemplateResource] = &[
    TemplateResource {
        template: "supervisor://routing/{skill}",
        name: "routing of a skill",
        description: "The chain and the limits of one skill, and what decided each",
        mime: JSON,
        needs_pages: true,
    },
    TemplateResource {
        template: "supervisor://sessions/{session}",
        name: "session log",
        description: "The entries of a session, the newest that fit",
        mime: JSON,
        needs_pages: false,
    },
    TemplateResource {
        template: "supervisor://sessions/{session}/{call}",
        name: "logged call",
        description: "One call, by its number in the session or the beginning of its id, with answers and diffs as far as kept",
        mime: JSON,
        needs_pages: false,
    },
    TemplateResource {
        template: "supervisor://notes/{+name}",
        name: "note",
        description: "A note that `brain_write` made, by its path below the folder of notes",
        mime: MARKDOWN,
        needs_pages: false,
    },
    TemplateResource {
        template: "supervisor://checkpoints/{team}/{checkpoint}{?project_root}",
        name: "checkpoint report",
        description: "The report of a checkpoint such as CHECKPOINT-001; `project_root` is the absolute path of the project",
        mime: MARKDOWN,
        needs_pages: false,
    },
];

impl TemplateResource {
    fn describe(&self) -> ResourceTemplate {
        ResourceTemplate::new(self.template, self.name)
            .with_description(self.description)
            .with_mime_type(self.mime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_resources_and_templates_parse() {
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
