//! How Claude Code knows this server, read from its configuration files: as an MCP server of the
//! user or of a project, or through the plugin.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use supervisor_models::Env;
use supervisor_process::{CommandSpec, End, Launcher};

/// The name under which `init` registers the server, and that of the plugin.
const NAME: &str = "supervisor";
/// Time limit for a command of Claude Code.
const LIMIT: Duration = Duration::from_secs(60);
/// The files hold the user's history too; larger ones are not read.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// What Claude Code knows of this server.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ClaudeCode {
    /// Whether Claude Code was ever used here.
    pub(super) is_used: bool,
    pub(super) registrations: Vec<Registration>,
    pub(super) plugin: Option<Plugin>,
    /// Whether the marketplace of the plugin was added.
    pub(super) has_marketplace: bool,
}

/// An entry in `mcpServers`.
#[derive(Debug, PartialEq)]
pub(super) struct Registration {
    /// The project it holds for; `None` for all projects of the user.
    pub(super) project: Option<PathBuf>,
    /// The program it starts.
    pub(super) program: PathBuf,
}

/// The installed plugin.
#[derive(Debug, PartialEq)]
pub(super) struct Plugin {
    /// `supervisor@marketplace`.
    pub(super) id: String,
    pub(super) version: String,
}

impl ClaudeCode {
    pub(super) fn read(env: &Env) -> Self {
        let home = env.get("HOME").map(PathBuf::from);
        let dir = env.get("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        let Some(folder) = dir
            .clone()
            .or_else(|| home.as_ref().map(|home| home.join(".claude")))
        else {
            return Self::default();
        };
        let Some(settings) = dir.or(home).map(|place| place.join(".claude.json")) else {
            return Self::default();
        };
        let known = read_json(&settings);
        let mut registrations: Vec<Registration> = registration(&known, None).into_iter().collect();
        for (project, entry) in known["projects"].as_object().into_iter().flatten() {
            registrations.extend(registration(entry, Some(project.into())));
        }
        Self {
            is_used: settings.exists() || folder.exists(),
            registrations,
            plugin: plugin(&read_json(&folder.join("plugins/installed_plugins.json"))),
            has_marketplace: read_json(&folder.join("plugins/known_marketplaces.json"))
                .get(NAME)
                .is_some(),
        }
    }

    /// The registration that holds in `project`.
    pub(super) fn registered_in(&self, project: &Path) -> Option<&Registration> {
        self.registrations
            .iter()
            .find(|one| one.project.as_deref().is_none_or(|of| of == project))
    }
}

/// Runs a command of Claude Code. The error says what to run by hand.
pub(super) async fn run(argv: &[String], dir: &Path, env: &Env) -> Result<(), String> {
    let mut spec = CommandSpec::new(argv.to_vec(), dir);
    spec.env = env.vars().clone();
    spec.limit = LIMIT;
    let finished = Launcher::this_program()
        .run(spec, &CancellationToken::new())
        .await;
    match finished.end {
        End::Exited(0) => Ok(()),
        _ => Err(format!("run it by hand: {}", argv.join(" "))),
    }
}

fn registration(settings: &Value, project: Option<PathBuf>) -> Option<Registration> {
    let program = settings["mcpServers"][NAME]["command"].as_str()?;
    Some(Registration {
        project,
        program: program.into(),
    })
}

/// The first installation; the entries of one plugin are an object or, for several scopes, a list.
fn plugin(installed: &Value) -> Option<Plugin> {
    let all = installed["plugins"].as_object()?;
    let (id, entry) = all
        .iter()
        .find(|(id, _)| id.split('@').next() == Some(NAME))?;
    let entry = entry.get(0).unwrap_or(entry);
    Some(Plugin {
        id: id.clone(),
        version: entry["version"].as_str().unwrap_or_default().to_owned(),
    })
}

/// The file as JSON; null if it cannot be read.
fn read_json(path: &Path) -> Value {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| {
        file.take(MAX_FILE_BYTES)
            .read_to_string(&mut text)
            .map(drop)
    });
    match read {
        Ok(()) => serde_json::from_str(&text).unwrap_or_default(),
        Err(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn registrations_and_plugin_are_read() {
        let home = tempfile::tempdir().expect("a directory");
        let env: Env = [("HOME", home.path().to_str().expect("UTF-8"))]
            .into_iter()
            .collect();
        assert_eq!(ClaudeCode::read(&env), ClaudeCode::default());

        let server = json!({"supervisor": {"command": "/bin/supervisor", "args": ["serve"]}});
        let settings = json!({
            "mcpServers": server, "projects": {"/p": {"mcpServers": server}, "/q": {"mcpServers": {}}},
        });
        fs::write(home.path().join(".claude.json"), settings.to_string()).expect("written");
        let plugins = home.path().join(".claude/plugins");
        fs::create_dir_all(&plugins).expect("made");
        let list = json!({"version": 2, "plugins": {"other@x": [], "supervisor@here": [{"version": "0.0.9"}]}});
        fs::write(plugins.join("installed_plugins.json"), list.to_string()).expect("written");
        let marketplaces = json!({"supervisor": {"source": {"source": "directory"}}});
        fs::write(
            plugins.join("known_marketplaces.json"),
            marketplaces.to_string(),
        )
        .expect("written");
        let found = ClaudeCode::read(&env);
        assert!(found.has_marketplace);
        let projects: Vec<_> = found
            .registrations
            .iter()
            .map(|one| one.project.as_deref())
            .collect();
        assert_eq!(projects, [None, Some(Path::new("/p"))]);
        assert_eq!(
            found.plugin,
            Some(Plugin {
                id: "supervisor@here".into(),
                version: "0.0.9".into()
            })
        );
        assert!(found.is_used && found.registered_in(Path::new("/anywhere")).is_some());
    }
}
