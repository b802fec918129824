//! Checks whether the agent program is installed, its version, and whether a user is logged in,
//! with `claude --version` and `claude auth status`. No model is asked.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::remote_text::sanitize;
use super::{Env, claude_cli};
use supervisor_process::{CommandSpec, End, FinishedProcess, Launcher, StartError, which};
use supervisor_settings::BackendSettings;
use supervisor_text::redact::Redactor;
use supervisor_text::words;

/// Time limit for each of these commands.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// An installed agent program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledAgent {
    pub program: PathBuf,
    pub version: String,
    pub login: Login,
}

/// Login state reported by the program. Names and addresses of people are not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    In {
        /// `claude.ai`, `api_key`, `oauth_token`, `third_party`.
        method: String,
        /// `firstParty` is Anthropic's own endpoint; other providers are reached elsewhere.
        provider: String,
    },
    Out,
    /// It uses a server other than Anthropic's, which must not see a login.
    NotNeeded,
    /// Not reported, for example by older versions.
    Unknown,
}

impl Login {
    /// Whether requests go to Anthropic's own endpoint.
    pub fn is_first_party(&self) -> bool {
        match self {
            Self::In { provider, .. } => provider == "firstParty",
            Self::NotNeeded => false,
            Self::Out | Self::Unknown => true,
        }
    }
}

/// Why the program cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotUsable {
    #[error("`{0}` is not on the PATH")]
    NotFound(String),
    #[error("`{0}` may not be executed")]
    NotExecutable(String),
    #[error("`{program} {asked}` gave no answer within {} s", .limit.as_secs())]
    Hangs {
        program: String,
        asked: &'static str,
        limit: Duration,
    },
    #[error("`{program} --version` failed: {why}")]
    Broken { program: String, why: String },
    #[error("the check was cancelled")]
    Cancelled,
}

/// Finds the program of a `claude-cli` backend.
pub(crate) fn locate(backend: &BackendSettings, env: &Env) -> Result<PathBuf, NotUsable> {
    let name = backend.program.as_deref().unwrap_or("claude");
    // The server is started in the project directory, and the project must not decide which program
    // runs. The user's home, where `claude` is often installed, is not a project.
    let home = env.get("HOME").unwrap_or_default();
    let project = std::env::current_dir()
        .ok()
        .filter(|dir| !Path::new(&home).starts_with(dir));
    let path = env.vars().get(OsStr::new("PATH"));
    which(name, path.map(OsString::as_os_str), project.as_deref()).map_err(|why| match why {
        StartError::NotExecutable(path) => NotUsable::NotExecutable(path),
        _ => NotUsable::NotFound(name.to_owned()),
    })
}

/// Asks the program of a `claude-cli` backend for its version and login.
pub async fn query(
    backend: &BackendSettings,
    env: &Env,
    launcher: &Launcher,
    limit: Duration,
    stop: &CancellationToken,
) -> Result<InstalledAgent, NotUsable> {
    let program = locate(backend, env)?;
    let run = |arguments: &'static [&'static str]| {
        let argv = std::iter::once(program.as_os_str()).chain(arguments.iter().map(OsStr::new));
        // Run neither in the project nor in a directory that others can write to: settings found
        // there would be read.
        let mut spec = CommandSpec::new(argv, "/");
        spec.env = claude_cli::environment(backend, env);
        spec.limit = limit;
        spec.grace = Duration::from_millis(500);
        launcher.run(spec, stop)
    };
    let status = async {
        match backend.is_foreign() {
            true => None,
            false => Some(run(&["auth", "status"]).await),
        }
    };
    let (version, status) = tokio::join!(run(&["--version"]), status);
    let name = program.display().to_string();
    let version = read_version(&name, &version, limit)?;
    let login = match status {
        Some(status) => read_login(&name, &status.end, &status.stdout.text(), limit)?,
        None => Login::NotNeeded,
    };
    Ok(InstalledAgent {
        program,
        version,
        login,
    })
}

fn read_version(
    program: &str,
    finished: &FinishedProcess,
    limit: Duration,
) -> Result<String, NotUsable> {
    let broken = |why: String| NotUsable::Broken {
        program: program.to_owned(),
        why,
    };
    match &finished.end {
        End::Exited(0) => Ok(first_line(&finished.stdout.text())),
        End::Exited(code) => {
            let detail = first_line(&finished.stderr.text());
            Err(broken(if detail.is_empty() {
                format!("exit code {code}")
            } else {
                format!("exit code {code}, {detail}")
            }))
        }
        End::Signalled(signal) => Err(broken(format!("ended by signal {signal}"))),
        End::TimedOut => Err(NotUsable::Hangs {
            program: program.to_owned(),
            asked: "--version",
            limit,
        }),
        End::Cancelled => Err(NotUsable::Cancelled),
        End::CouldNotStart(StartError::NotExecutable(_)) => {
            Err(NotUsable::NotExecutable(program.to_owned()))
        }
        End::CouldNotStart(why) => Err(broken(why.to_string())),
    }
}

/// The exit code is not enough: versions without this command fail too.
fn read_login(program: &str, end: &End, text: &str, limit: Duration) -> Result<Login, NotUsable> {
    match end {
        End::TimedOut => {
            return Err(NotUsable::Hangs {
                program: program.to_owned(),
                asked: "auth status",
                limit,
            });
        }
        End::Cancelled => return Err(NotUsable::Cancelled),
        _ => {}
    }
    let object = text
        .find('{')
        .zip(text.rfind('}'))
        .and_then(|(from, to)| text.get(from..=to));
    let Some(status) = object.and_then(|o| serde_json::from_str::<Value>(o).ok()) else {
        return Ok(Login::Unknown);
    };
    let field_text = |field| {
        status
            .get(field)
            .and_then(Value::as_str)
            .map(first_line)
            .unwrap_or_default()
    };
    Ok(match status.get("loggedIn").and_then(Value::as_bool) {
        Some(true) => Login::In {
            method: field_text("authMethod"),
            provider: field_text("apiProvider"),
        },
        Some(false) => Login::Out,
        None => Login::Unknown,
    })
}

/// The first non-empty line, short and safe to show.
fn first_line(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|l| !l.is_empty())
        .unwrap_or_default();
    words::cut_end(&sanitize(line, &Redactor::patterns_only()), 120).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_is_read_from_output_not_exit_code() {
        let login = |code, text: &str| {
            read_login("claude", &End::Exited(code), text, TIMEOUT).expect("an answer")
        };
        let out = "{\n  \"loggedIn\": false,\n  \"authMethod\": \"none\",\n  \"apiProvider\": \"firstParty\"\n}\n";
        assert_eq!(login(1, out), Login::Out);
        assert_eq!(login(0, out), Login::Out);
        let key = r#"{"loggedIn":true,"authMethod":"api_key","apiProvider":"firstParty","email":"me@example.org"}"#;
        let key = login(0, key);
        assert!(
            key.is_first_party() && !format!("{key:?}").contains("example"),
            "{key:?}"
        );
        let other = login(
            0,
            r#"warning: old {"loggedIn":true,"authMethod":"third_party","apiProvider":"bedrock"}"#,
        );
        assert!(!other.is_first_party());
        for unclear in [
            "",
            "error: unknown command 'auth'",
            "{}",
            "{\"loggedIn\":\"yes\"}",
            "} {",
            "[]",
        ] {
            assert_eq!(login(1, unclear), Login::Unknown, "{unclear}");
        }
    }
}
