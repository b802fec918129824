//! Parses resource URIs. Every segment is a name, never a path; segments that could lead elsewhere
//! are rejected.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use super::{ResourceError, displayable};
use supervisor_engine::session::SessionId;
use supervisor_engine::session::detail::CallChoice;
use supervisor_team::request::CheckpointId;
use supervisor_team::team_dirs::TeamId;

const SCHEME: &str = "supervisor://";
/// Longer URIs are rejected.
const MAX_URI_LEN: usize = 4_096;

/// A parsed resource URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResourceAddress {
    /// For one skill, or for all.
    Routing(Option<String>),
    Report,
    Statistics,
    Sessions,
    Session(SessionId),
    Call(SessionId, CallChoice),
    /// Path relative to the notes folder.
    Note(String),
    Checkpoint {
        project_root: PathBuf,
        team: TeamId,
        checkpoint: CheckpointId,
    },
}

impl ResourceAddress {
    pub(super) fn parse(uri: &str) -> Result<Self, ResourceError> {
        let unknown = || ResourceError::Unknown(displayable(uri));
        let rest = uri
            .strip_prefix(SCHEME)
            .filter(|_| uri.len() <= MAX_URI_LEN)
            .ok_or_else(unknown)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let segments = path
            .trim_end_matches('/')
            .split('/')
            .map(segment)
            .collect::<Result<Vec<_>, _>>()?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["routing"] => Ok(Self::Routing(None)),
            ["routing", skill] => Ok(Self::Routing(Some((*skill).to_owned()))),
            ["report"] => Ok(Self::Report),
            ["statistics"] => Ok(Self::Statistics),
            ["sessions"] => Ok(Self::Sessions),
            ["sessions", id] => Ok(Self::Session(session(id)?)),
            ["sessions", id, call] => Ok(Self::Call(session(id)?, CallChoice::parse(call))),
            ["notes", name @ ..] if !name.is_empty() => note(name).map(Self::Note),
            ["checkpoints", team, checkpoint] => Ok(Self::Checkpoint {
                project_root: project_root(query)?,
                team: TeamId::new("team", team)
                    .map_err(|error| ResourceError::name(team, error.to_string()))?,
                checkpoint: CheckpointId::new(checkpoint)
                    .map_err(|error| ResourceError::name(checkpoint, error.to_string()))?,
            }),
            _ => Err(unknown()),
        }
    }
}

/// Decodes one segment.
fn segment(written: &str) -> Result<String, ResourceError> {
    let refused = |why: &str| Err(ResourceError::name(written, why));
    let Ok(name) = percent_decode_str(written).decode_utf8() else {
        return refused("it is not UTF-8");
    };
    match &*name {
        "" => refused("it is empty"),
        "." | ".." => refused("it leads to another place"),
        name if name.contains(['/', '\\', '\0']) => refused("it holds a separator"),
        name => Ok(name.to_owned()),
    }
}

fn session(written: &str) -> Result<SessionId, ResourceError> {
    written
        .parse()
        .map_err(|error: supervisor_engine::session::InvalidSessionId| {
            ResourceError::name(written, error.to_string())
        })
}

/// Names beginning with a dot are internal: the trash and the lock.
fn note(segments: &[&str]) -> Result<String, ResourceError> {
    match segments.iter().find(|segment| segment.starts_with('.')) {
        Some(hidden) => Err(ResourceError::name(
            hidden,
            "a note's path has no hidden folder",
        )),
        None => Ok(segments.join("/")),
    }
}

fn project_root(query: &str) -> Result<PathBuf, ResourceError> {
    let written = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("project_root="))
        .unwrap_or_default();
    let decoded = percent_decode_str(written)
        .decode_utf8()
        .unwrap_or_default();
    let root = Path::new(&*decoded);
    if root.is_absolute() && !decoded.contains('\0') {
        return Ok(root.to_owned());
    }
    Err(ResourceError::name(
        written,
        "`project_root` is the absolute path of the project, as in `?project_root=/home/me/app`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_traversal_is_refused() {
        for (uri, name) in [
            ("supervisor://sessions/..", ".."),
            ("supervisor://sessions/%2e%2e/x", "%2e%2e"),
            ("supervisor://sessions/a%2fb", "a%2fb"),
            ("supervisor://sessions/a%00b", "a%00b"),
            ("supervisor://sessions/-x", "-x"),
            ("supervisor://sessions//x", ""),
            ("supervisor://notes/../secret.md", ".."),
            ("supervisor://notes/.trash/a.md", ".trash"),
            ("supervisor://notes/a/..%2f..%2fetc/passwd", "..%2f..%2fetc"),
            (
                "supervisor://checkpoints/../CHECKPOINT-001?project_root=/p",
                "..",
            ),
            (
                "supervisor://checkpoints/t/CHECKPOINT-1?project_root=/p",
                "CHECKPOINT-1",
            ),
            ("supervisor://checkpoints/t/CHECKPOINT-001", ""),
            (
                "supervisor://checkpoints/t/CHECKPOINT-001?project_root=p",
                "p",
            ),
        ] {
            match ResourceAddress::parse(uri) {
                Err(ResourceError::Name { name: refused, .. }) => {
                    assert_eq!(refused, name, "{uri}");
                }
                other => panic!("{uri}: {other:?}"),
            }
        }
    }

    #[test]
    fn foreign_uri_is_unknown() {
        for uri in [
            "",
            "file:///etc/passwd",
            "supervisor://other",
            "supervisor://notes",
            "supervisor://report/x",
        ] {
            assert!(
                matches!(ResourceAddress::parse(uri), Err(ResourceError::Unknown(_))),
                "{uri}"
            );
        }
        let long = format!("supervisor://sessions/{}", "x".repeat(10_000));
        let error = ResourceAddress::parse(&long)
            .expect_err("too long")
            .to_string();
        assert!(error.len() < 300, "{error}");
    }
}
