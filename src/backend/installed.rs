//! Is the agent program there, which version is it, and is somebody logged in? It is asked itself, and asks no model.
//! Knows `claude --version` and `claude auth status`. Does not know how work is given to it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::Access;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Env;
use crate::process::{End, Finished, Launcher, Spec, StartError};
use crate::routing::Backend;
use crate::words;

/// How long the program may think about itself.
pub const LIMIT: Duration = Duration::from_secs(10);

/// An agent program that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub program: PathBuf,
    pub version: String,
    pub login: Login,
}

/// What the program says about its login. Names and addresses of people are not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    In {
        /// `claude.ai`, `api_key`, `oauth_token`, `third_party`.
        method: String,
        /// `firstParty` is Anthropic's own endpoint; anything else is reached elsewhere.
        provider: String,
    },
    Out,
    /// It does not say, as older versions do not.
    Unknown,
}

impl Login {
    /// Does the work leave by Anthropic's own endpoint?
    pub fn is_first_party(&self) -> bool {
        match self {
            Self::In { provider, .. } => provider == "firstParty",
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
    Hangs { program: String, asked: &'static str, limit: Duration },
    #[error("`{program} --version` failed: {why}")]
    Broken { program: String, why: String },
    #[error("the check was cancelled")]
    Cancelled,
}

/// Asks the program of a `claude-cli` backend about itself.
pub async fn ask(
    backend: &Backend,
    env: &Env,
    launcher: &Launcher,
    limit: Duration,
    stop: &CancellationToken,
) -> Result<Installed, NotUsable> {
    let name = backend.program.as_deref().unwrap_or("claude");
    let program = find(name, env)?;
    let run = |arguments: &'static [&'static str]| {
        let argv = std::iter::once(program.as_os_str()).chain(arguments.iter().map(OsStr::new));
        // Neither the project nor a directory others can write in: settings found there would be read.
        let mut spec = Spec::new(argv, "/");
        spec.env = agent_environment(backend, env);
        spec.limit = limit;
        launcher.run(spec, stop)
    };
    let (version, status) = tokio::join!(run(&["--version"]), run(&["auth", "status"]));
    let version = read_version(&program.display().to_string(), &version, limit)?;
    let login = read_login(&program.display().to_string(), &status, limit)?;
    Ok(Installed { program, version, login })
}

fn read_version(program: &str, seen: &Finished, limit: Duration) -> Result<String, NotUsable> {
    let broken = |why: String| NotUsable::Broken { program: program.to_owned(), why };
    match &seen.end {
        End::Exited(0) => Ok(first_line(&seen.stdout.text())),
        End::Exited(code) => {
            let said = first_line(&seen.stderr.text());
            Err(broken(if said.is_empty() { format!("exit code {code}") } else { format!("exit code {code}, {said}") }))
        }
        End::Signalled(signal) => Err(broken(format!("ended by signal {signal}"))),
        End::TimedOut => Err(NotUsable::Hangs { program: program.to_owned(), asked: "--version", limit }),
        End::Cancelled => Err(NotUsable::Cancelled),
        End::CouldNotStart(StartError::NotExecutable(_)) => Err(NotUsable::NotExecutable(program.to_owned())),
        End::CouldNotStart(why) => Err(broken(why.to_string())),
    }
}

/// The exit code alone would not do: versions that do not know the question fail too.
fn read_login(program: &str, seen: &Finished, limit: Duration) -> Result<Login, NotUsable> {
    match seen.end {
        End::TimedOut => return Err(NotUsable::Hangs { program: program.to_owned(), asked: "auth status", limit }),
        End::Cancelled => return Err(NotUsable::Cancelled),
        _ => {}
    }
    let text = seen.stdout.text();
    let object = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
    let Some(status) = object.and_then(|o| serde_json::from_str::<Value>(o).ok()) else { return Ok(Login::Unknown) };
    let word = |field| status.get(field).and_then(Value::as_str).map(first_line).unwrap_or_default();
    Ok(match status.get("loggedIn").and_then(Value::as_bool) {
        Some(true) => Login::In { method: word("authMethod"), provider: word("apiProvider") },
        Some(false) => Login::Out,
        None => Login::Unknown,
    })
}

/// The first line that says anything, short and safe to show.
fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
    words::cut_end(&words::plain(line).replace('\t', " "), 120).into_owned()
}

/// Looks a program up on the PATH. Entries that are not absolute are passed over: they would mean another program
/// in every directory, the project's included.
fn find(name: &str, env: &Env) -> Result<PathBuf, NotUsable> {
    let candidates: Vec<PathBuf> = if name.contains('/') {
        vec![PathBuf::from(name)]
    } else {
        let path = env.vars().get(OsStr::new("PATH")).cloned().unwrap_or_default();
        std::env::split_paths(&path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).collect()
    };
    let mut found = Err(NotUsable::NotFound(name.to_owned()));
    for candidate in candidates.into_iter().filter(|c| c.is_absolute() && c.is_file()) {
        if rustix::fs::access(&candidate, Access::EXEC_OK).is_ok() {
            return Ok(candidate);
        }
        found = Err(NotUsable::NotExecutable(candidate.display().to_string()));
    }
    found
}

/// What an agent needs to find itself and its login, and what the backend hands on by name.
fn agent_environment(backend: &Backend, env: &Env) -> BTreeMap<OsString, OsString> {
    const PASSED: &[&str] = &[
        "HOME",
        "USER",
        "LOGNAME",
        "PATH",
        "TMPDIR",
        "LANG",
        "TZ",
        "CLAUDE_CONFIG_DIR",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
    ];
    let passed = |name: &OsStr| {
        let Some(name) = name.to_str() else { return false };
        PASSED.contains(&name) || name.starts_with("LC_") || backend.env_pass.iter().any(|p| p == name)
    };
    let chosen = env.vars().iter().filter(|(name, _)| passed(name));
    chosen.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(end: End, stdout: &str) -> Finished {
        let mut seen = crate::process::Captured::default();
        seen.push(stdout.as_bytes());
        Finished {
            end,
            stdout: seen,
            stderr: Default::default(),
            took: Duration::ZERO,
            leaked: 0,
            left: 0,
            containment: crate::process::Containment::Group,
        }
    }

    #[test]
    fn a_login_is_read_from_what_is_said_and_not_from_the_exit_code() {
        let login = |code, text: &str| read_login("claude", &ended(End::Exited(code), text), LIMIT).expect("an answer");
        let out = "{\n  \"loggedIn\": false,\n  \"authMethod\": \"none\",\n  \"apiProvider\": \"firstParty\"\n}\n";
        assert_eq!(login(1, out), Login::Out);
        assert_eq!(login(0, out), Login::Out);
        let key = r#"{"loggedIn":true,"authMethod":"api_key","apiProvider":"firstParty","email":"me@example.org"}"#;
        let key = login(0, key);
        assert!(key.is_first_party() && !format!("{key:?}").contains("example"), "{key:?}");
        let other = login(0, r#"warning: old {"loggedIn":true,"authMethod":"third_party","apiProvider":"bedrock"}"#);
        assert!(!other.is_first_party());
        for unclear in ["", "error: unknown command 'auth'", "{}", "{\"loggedIn\":\"yes\"}", "} {", "[]"] {
            assert_eq!(login(1, unclear), Login::Unknown, "{unclear}");
        }
    }

    #[test]
    fn relative_entries_of_the_path_are_passed_over() {
        let here = Env::from_iter([("PATH", ".:target:node_modules/.bin:")]);
        assert_eq!(find("sh", &here), Err(NotUsable::NotFound("sh".into())));
        assert_eq!(find("./claude", &here), Err(NotUsable::NotFound("./claude".into())));
        assert!(find("sh", &Env::from_iter([("PATH", ".:/usr/bin:/bin")])).is_ok_and(|p| p.is_absolute()));
    }
}
