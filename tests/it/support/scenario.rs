//! A project, recorded models, and a real server at the other end of a pipe.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::mcp_session::{Session, Which, command, result_of};
use supervisor_engine::result::phases_of;

/// A project with a chain of recorded tiers.
pub(crate) struct Scenario {
    pub(crate) project: TempDir,
    pub(crate) state: TempDir,
    answers: Vec<Value>,
    env: Vec<(String, String)>,
    session: Option<Session>,
    calls: u32,
}

impl Scenario {
    /// Tiers `small` and `medium` (local), `large` (an agent's tier); nobody judges.
    pub(crate) fn chain(tiers: &[&str], files: &[(&str, &str)]) -> Self {
        let (project, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (path, text) in files {
            let whole = project.path().join(path);
            fs::create_dir_all(whole.parent().unwrap()).unwrap();
            fs::write(whole, text).unwrap();
        }
        let chain: Vec<String> = tiers.iter().map(|t| format!("\"{t}\"")).collect();
        let file = state.path().join("answers.jsonl");
        let settings = format!(
            "default_chain = [{chain}]\nverifier = \"none\"\nattempts_per_tier = 1\n[skills.tdd]\nchain = [{chain}]\n\
             [backends.near]\nkind = \"replay\"\ntier = \"local\"\nfile = \"{file}\"\nmodels = [\"small\", \"medium\"]\n\
             [backends.far]\nkind = \"replay\"\ntier = \"subagent\"\nfile = \"{file}\"\nmodels = [\"large\"]\n",
            chain = chain.join(", "),
            file = file.display(),
        );
        fs::write(state.path().join("models.toml"), settings).unwrap();
        Self {
            project,
            state,
            answers: vec![],
            env: vec![],
            session: None,
            calls: 0,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.project.path().canonicalize().unwrap()
    }

    /// Further settings: backends that are not recorded, and their models.
    pub(crate) fn settings(self, more: &str) -> Self {
        let file = self.state.path().join("models.toml");
        let before = fs::read_to_string(&file).unwrap();
        fs::write(file, format!("{before}{more}")).unwrap();
        self
    }

    /// One more variable of the server's environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The next answer of a model.
    pub(crate) fn answers(mut self, model: &str, answer: &Value) -> Self {
        self.say(model, answer);
        self
    }

    pub(crate) fn say(&mut self, model: &str, answer: &Value) {
        self.line(&json!({"model": model, "answer": answer}));
    }

    pub(crate) fn line(&mut self, line: &Value) {
        self.answers.push(line.clone());
        let text: String = self
            .answers
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        fs::write(self.state.path().join("answers.jsonl"), text).unwrap();
    }

    /// The program with this project's settings, and nothing of the build that runs this test.
    pub(crate) fn command(&self) -> Command {
        let mut command = command(Which::Real);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if (name.starts_with("CARGO_") && name != "CARGO_HOME") || name.starts_with("NEXTEST") {
                command.env_remove(name);
            }
        }
        let home = std::env::var_os("HOME").unwrap_or_else(|| "/nonexistent".into());
        command
            .env("HOME", home)
            // A task at once, so that no test depends on how fast it is.
            .env("SUPERVISOR_FOREGROUND_S", "0")
            .envs(self.env.clone())
            .env("SUPERVISOR_STATE_DIR", self.state.path().join("state"))
            .env(
                "SUPERVISOR_MODELS_FILE",
                self.state.path().join("models.toml"),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn session(&mut self) -> &mut Session {
        if self.session.is_none() {
            self.session = Some(self.fresh_session());
        }
        self.session.as_mut().unwrap()
    }

    /// Another server with the same settings and state.
    pub(crate) fn fresh_session(&self) -> Session {
        let mut process = self.command().spawn().unwrap();
        let (stdin, stdout) = (
            process.stdin.take().unwrap(),
            process.stdout.take().unwrap(),
        );
        let mut session = Session::with(process, Some(Box::new(stdin)), Box::new(stdout));
        session.initialize("2025-11-25");
        session
    }

    /// The server of this scenario, to be ended; the next call starts another.
    pub(crate) fn end_session(&mut self) -> Session {
        self.session.take().unwrap()
    }

    /// Calls a tool on this project, and waits for what it says: all of it.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = result_of(&self.reply(tool, arguments));
        let phase = result["phase"].as_str().unwrap();
        assert!(phases_of(tool).contains(&phase), "{tool} has no {phase}");
        result
    }

    /// The same, as it came.
    pub(crate) fn reply(&mut self, tool: &str, mut arguments: Value) -> Value {
        if arguments.get("project_root").is_none() {
            arguments["project_root"] = json!(self.root());
        }
        self.calls += 1;
        let id = self.calls;
        let session = self.session();
        session.call(id, tool, arguments);
        session.reply_after_tests(id)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.project.path().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// Every file of the project with its bytes, but for what builds leave.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn walk(root: &Path, dir: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                if [
                    "target",
                    "_build",
                    "build",
                    "__pycache__",
                    ".pytest_cache",
                    "node_modules",
                ]
                .iter()
                .any(|skip| path.ends_with(skip))
                {
                    continue;
                }
                if path.is_dir() {
                    walk(root, &path, into);
                } else {
                    into.insert(
                        path.strip_prefix(root).unwrap().to_owned(),
                        fs::read(&path).unwrap_or_default(),
                    );
                }
            }
        }
        let mut tree = BTreeMap::new();
        walk(self.project.path(), self.project.path(), &mut tree);
        tree
    }

    /// The prompts that went to a model.
    pub(crate) fn asked_of(&self, model: &str) -> Vec<String> {
        let text =
            fs::read_to_string(self.state.path().join("answers.jsonl.asked")).unwrap_or_default();
        let questions = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        questions
            .filter(|q| q["model"] == model)
            .map(|q| q["prompt"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// `small rejected | large accepted`.
pub(crate) fn trail(result: &Value) -> String {
    let attempts = result["attempts"].as_array().cloned().unwrap_or_default();
    let one = |a: &Value| {
        format!(
            "{} {}",
            a["model"].as_str().unwrap(),
            a["cause"].as_str().unwrap()
        )
    };
    attempts.iter().map(one).collect::<Vec<_>>().join(" | ")
}

/// The gate of that name.
pub(crate) fn gate<'a>(result: &'a Value, id: &str) -> &'a Value {
    let gates = result["gates"]
        .as_array()
        .unwrap_or_else(|| panic!("no gates in {result}"));
    gates
        .iter()
        .find(|g| g["id"] == id)
        .unwrap_or_else(|| panic!("no gate `{id}` in {gates:?}"))
}

/// One new file with this text.
pub(crate) fn creates(path: &str, text: &str) -> Value {
    json!({"edits": [{"path": path, "action": "create", "content": text}]})
}

/// One file with this text instead.
pub(crate) fn replaces(path: &str, text: &str) -> Value {
    json!({"edits": [{"path": path, "action": "replace", "content": text}]})
}
