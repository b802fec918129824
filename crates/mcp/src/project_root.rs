//! Finds the project of a call that does not name one: the client's root, or the project around the
//! working directory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ContentBlock, JsonObject, ProtocolVersion, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use supervisor_text::words;

pub const ARGUMENT: &str = "project_root";

/// Tools whose project may be left out. The steps of `tdd` change files, so they name theirs.
pub const OPTIONAL_FOR: [&str; 6] = ["review", "debug", "spec", "prove", "supervise", "team_msg"];

/// A client that does not tell its roots by then is asked no longer.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(2);

/// What the root of a project contains.
const MARKERS: &[&str] = &[
    ".git",
    ".hg",
    ".jj",
    ".workflow",
    "go.mod",
    "package.json",
    "pyproject.toml",
    "pytest.ini",
    "setup.py",
    "Cargo.toml",
    "Gemfile",
    "mix.exs",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "CMakeLists.txt",
];

/// The tool as listed: its project is optional where it can be found.
pub(super) fn listed(mut tool: Tool) -> Tool {
    if OPTIONAL_FOR.contains(&tool.name.as_ref()) {
        let mut schema = (*tool.input_schema).clone();
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|name| name != ARGUMENT);
            if required.is_empty() {
                schema.shift_remove("required");
            }
        }
        tool.input_schema = schema.into();
    }
    tool
}

/// Adds the project to a request that needs one and names none. Returns it if it was added. Without
/// a project the request stays as it is, and its parser complains.
pub(super) async fn complete(
    request: &mut CallToolRequestParams,
    schema: &JsonObject,
    cx: &RequestContext<RoleServer>,
) -> Result<Option<String>, ErrorData> {
    let is_needed = schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|all| all.iter().any(|name| name == ARGUMENT));
    let is_given =
        |arguments: &JsonObject| !matches!(arguments.get(ARGUMENT), None | Some(Value::Null));
    if !is_needed || request.arguments.as_ref().is_some_and(is_given) {
        return Ok(None);
    }
    let forbidden = Forbidden::of_this_process();
    let mut roots = client_roots(cx).await;
    roots.retain(|root| !forbidden.contains(root));
    let root = match roots.as_slice() {
        [] => std::env::current_dir()
            .ok()
            .and_then(|here| project_around(&here, &forbidden)),
        [root] => Some(root.clone()),
        many => {
            let named = words::list(many.iter().map(|root| root.to_string_lossy()), 10);
            let message =
                format!("{ARGUMENT} is required: this client works on several projects: {named}");
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    let root = root.and_then(|root| root.to_str().map(str::to_owned));
    if let Some(root) = &root {
        let arguments = request.arguments.get_or_insert_default();
        arguments.insert(ARGUMENT.into(), root.as_str().into());
    }
    Ok(root)
}

/// Tells in the result which project was found.
pub(super) fn name_in(response: &mut CallToolResponse, root: &str) {
    let CallToolResponse::Complete(result) = response else {
        return;
    };
    if let Some(Value::Object(fields)) = &mut result.structured_content {
        fields.insert(ARGUMENT.into(), root.into());
        let text = Value::Object(fields.clone()).to_string();
        result.content = vec![ContentBlock::text(text)];
    }
}

/// The directories that the client works on, if it is a client that may be asked. The newest
/// protocol has no requests of the server.
#[expect(deprecated, reason = "older clients have nothing else to tell it by")]
async fn client_roots(cx: &RequestContext<RoleServer>) -> Vec<PathBuf> {
    let is_new = cx
        .protocol_version()
        .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    let has_roots = cx
        .peer
        .peer_info()
        .is_some_and(|client| client.capabilities.roots.is_some());
    if is_new || !has_roots {
        return Vec::new();
    }
    let Ok(Ok(listed)) = tokio::time::timeout(ROOTS_TIMEOUT, cx.peer.list_roots()).await else {
        return Vec::new();
    };
    let path = |uri: &str| {
        let path = percent_decode_str(uri.strip_prefix("file://")?);
        let path = PathBuf::from(path.decode_utf8().ok()?.into_owned());
        path.canonicalize().ok().filter(|path| path.is_dir())
    };
    let mut roots: Vec<PathBuf> = listed.roots.iter().filter_map(|r| path(&r.uri)).collect();
    roots.sort();
    roots.dedup();
    roots
}

/// Directories that are not a project, whatever is in them: `/`, the home directory, and the
/// plugin's directory with everything in it.
struct Forbidden {
    home: Option<PathBuf>,
    plugin: Option<PathBuf>,
}

impl Forbidden {
    fn of_this_process() -> Self {
        let directory = |variable| {
            let path = std::env::var_os(variable).filter(|path| !path.is_empty())?;
            Path::new(&path).canonicalize().ok()
        };
        Self {
            home: directory("HOME"),
            plugin: directory("CLAUDE_PLUGIN_ROOT"),
        }
    }

    fn contains(&self, path: &Path) -> bool {
        let is_in_plugin = self
            .plugin
            .as_ref()
            .is_some_and(|dir| path.starts_with(dir));
        is_in_plugin || path == Path::new("/") || self.home.as_deref() == Some(path)
    }
}

/// The nearest directory with a marker, from here upwards; a repository wins over a package in it.
fn project_around(here: &Path, forbidden: &Forbidden) -> Option<PathBuf> {
    let here = here.canonicalize().ok()?;
    let candidates = || {
        here.ancestors()
            .take_while(|dir| !forbidden.contains(dir))
            .filter(|dir| MARKERS.iter().any(|marker| dir.join(marker).exists()))
    };
    let repository = candidates().find(|dir| dir.join(".git").exists());
    repository
        .or_else(|| candidates().next())
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn project_is_found_upwards_outside_of_home_and_plugin() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = dir.path().canonicalize().expect("it is there");
        let plugin = home.join(".claude/plugins/supervisor");
        let forbidden = Forbidden {
            home: Some(home.clone()),
            plugin: Some(plugin.clone()),
        };
        let package = home.join("shop/api");
        fs::create_dir_all(package.join("src")).expect("made");
        let found = |path: &Path| project_around(path, &forbidden);
        assert_eq!(found(&package), None, "no marker anywhere");
        fs::create_dir(home.join(".git")).expect("made");
        assert_eq!(found(&package), None, "the home directory is no project");
        fs::write(package.join("Cargo.toml"), "").expect("written");
        assert_eq!(found(&package.join("src")), Some(package.clone()));
        fs::create_dir(home.join("shop/.git")).expect("made");
        assert_eq!(found(&package.join("src")), Some(home.join("shop")));
        assert_eq!(found(&home), None);
        fs::create_dir_all(plugin.join("bin/.git")).expect("made");
        assert_eq!(found(&plugin.join("bin")), None, "part of the plugin");
    }
}
