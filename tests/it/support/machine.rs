//! Somebody's machine: servers on loopback, a `claude` or none, a file, variables. Nothing of the real one is used.

use std::process::Command;
use std::time::Duration;

use supervisor_models::Env;
use supervisor_models::availability::ProbeConfig;
use supervisor_process::Launcher;
use supervisor_settings::Sources;

use supervisor_test_support::fake_claude::FakeClaude;
use supervisor_test_support::loopback::{Do, Server, http};

/// A key that must never be seen anywhere but at its own server.
pub(crate) const CANARY: &str = "sk-canary-0123456789";
const PATIENT: Duration = Duration::from_secs(60);

/// Somebody's machine: servers, a `claude` or none, a file, variables.
pub(crate) struct Machine {
    pub(crate) dir: tempfile::TempDir,
    env: Vec<(String, String)>,
    file: Option<String>,
}

impl Machine {
    pub(crate) fn new(cloud: &str, gateway: &str, swap: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = [
            ("ANTHROPIC_BASE_URL", cloud),
            ("LITELLM_BASE_URL", gateway),
            ("LLAMA_SWAP_URL", swap),
            ("LITELLM_API_KEY", CANARY),
            ("SUPERVISOR_LIMITS__PROBE_S", "60"),
            // What listens on the usual ports of this machine is none of the tests' business.
            ("SUPERVISOR_LOOK_AT", "none"),
        ];
        let env = env
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
        Self {
            dir,
            env,
            file: None,
        }
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn with(self, claude: &FakeClaude) -> Self {
        let home = claude.home().display().to_string();
        let path = format!("{}:{}", self.git(), claude.path());
        self.set("PATH", &path).set("HOME", &home)
    }

    /// A PATH with a `git` and no `claude`.
    pub(crate) fn without_claude(self) -> Self {
        let path = format!("{}:/usr/bin:/bin", self.git());
        self.set("PATH", &path)
    }

    /// The directory of a `git` that knows its version and no more. Written by a child, as `claude` is.
    fn git(&self) -> String {
        let script = "mkdir -p bin && printf '#!/bin/sh\necho git version 2.0.0\n' > bin/git && chmod 755 bin/git";
        let made = Command::new("sh")
            .args(["-c", script])
            .current_dir(self.dir.path())
            .status();
        assert!(made.unwrap().success());
        self.dir.path().join("bin").display().to_string()
    }

    pub(crate) fn file(mut self, text: &str) -> Self {
        self.file = Some(text.to_owned());
        self
    }

    /// Where its settings come from.
    pub(crate) fn sources(&self) -> Sources {
        let user_file = self.file.as_ref().map(|text| {
            let path = self.dir.path().join("models.toml");
            std::fs::write(&path, text).unwrap();
            path
        });
        let env = self.variables().vars().clone();
        Sources {
            user_file,
            env,
            ..Sources::built_in(supervisor::built_in::MODELS_TOML)
        }
    }

    /// How it is looked at: with more patience than anything needs that answers at all.
    pub(crate) fn look(&self) -> ProbeConfig {
        let mut look = ProbeConfig::new(
            self.variables(),
            Launcher::at(env!("CARGO_BIN_EXE_supervisor")),
        );
        (look.list_limit, look.agent_limit) = (PATIENT, PATIENT);
        look
    }

    pub(crate) fn variables(&self) -> Env {
        self.env.iter().map(|(k, v)| (k, v)).collect()
    }

    /// What is printed, with everything masked that differs from run to run.
    pub(crate) fn masked(&self, text: &str, claude: Option<&FakeClaude>) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.env {
            let shown = match name.as_str() {
                "ANTHROPIC_BASE_URL" => "http://CLOUD",
                "LITELLM_BASE_URL" => "http://GATEWAY",
                "LLAMA_SWAP_URL" => "http://SWAP",
                _ => continue,
            };
            text = text.replace(value.as_str(), shown);
        }
        if let Some(claude) = claude {
            text = text.replace(&claude.bin().display().to_string(), "BIN");
        }
        text = text.replace(&self.dir.path().display().to_string(), "DIR");
        let mut lines: Vec<String> = text.lines().map(masked_line).collect();
        lines.push(String::new());
        lines.join("\n")
    }
}

/// Milliseconds and the version of git are the machine's own.
fn masked_line(line: &str) -> String {
    if let Some((before, after)) = line.split_once(" answers in ") {
        let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        return format!("{before} answers in N{rest}");
    }
    if line
        .get(6..)
        .is_some_and(|rest| rest.starts_with("sandbox"))
    {
        return "      sandbox   LEVEL".into();
    }
    if line.starts_with("ok    git") {
        return "ok    git       VERSION".into();
    }
    line.to_owned()
}

/// A gateway that offers all built-in models, in front of a llama-swap that has one of them loaded.
pub(crate) fn gateway() -> Server {
    let names = [
        "qwen3.6:27b",
        "devstral-small-2",
        "glm-4.7-flash",
        "gemma4",
        "phi4",
    ];
    let list: Vec<_> = names
        .iter()
        .map(|n| serde_json::json!({"id": format!("ollama/{n}")}))
        .collect();
    let list = serde_json::json!({"data": list}).to_string();
    Server::start(move |path| match path {
        "/health/liveliness" => Do::Json(200, "\"I'm alive!\"".into()),
        "/v1/models" => Do::Json(200, list.clone()),
        _ => Do::Json(404, "{}".into()),
    })
}

pub(crate) fn swap() -> Server {
    Server::start(|path| {
        match path {
        "/running" => Do::Json(
            200,
            r#"{"running":[{"model":"ollama/phi4","state":"ready"},{"model":"gemma4","state":"starting"}]}"#.into(),
        ),
        _ => Do::Raw(http(200, "text/plain", "OK")),
    }
    })
}

pub(crate) fn cloud() -> Server {
    Server::always(Do::Json(404, "{}".into()))
}
