//! One server, recorded models and a scripted agent, and a project that is put back between the rows of a table.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::case::{Case, Does, Edit, Kind, Tool};
use super::picture::picture;
use super::projects;
use crate::support::mcp_session::{Session, result_of};
use crate::support::user_shell::{program, toolchain};

/// A server with its state, settings and scripts. Every row has a model of its own, so that rows do not depend on
/// their order.
pub(super) struct CheatServer {
    dir: TempDir,
    session: Session,
    calls: u32,
    roots: BTreeMap<(Kind, bool), PathBuf>,
}

/// What came of one call.
pub(super) struct Came {
    pub(super) result: Value,
    /// Where the project differs from before, for a person.
    pub(super) differences: String,
}

impl CheatServer {
    /// `more` are further settings. Without a sandbox: what is shown here must hold on systems that have none.
    pub(super) fn new(more: &str) -> Self {
        Self::with(more, &[])
    }

    /// With these variables beside the usual ones.
    pub(super) fn with(more: &str, variables: &[(&str, &str)]) -> Self {
        Self::with_sandbox(more, "[sandbox]\nmode = \"off\"\n", variables)
    }

    /// With the sandbox that there is.
    pub(super) fn sandboxed(variables: &[(&str, &str)]) -> Self {
        Self::with_sandbox("", "", variables)
    }

    fn with_sandbox(more: &str, sandbox: &str, variables: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().canonicalize().unwrap();
        for name in ["acts", "state", "target"] {
            fs::create_dir(here.join(name)).unwrap();
        }
        fs::write(here.join("answers.jsonl"), "").unwrap();
        fs::write(here.join("out"), said()).unwrap();
        write_agent(&here);
        let settings = format!(
            "verifier = \"none\"\nattempts_per_tier = 1\n{more}\n{sandbox}\
             [backends.recorded]\nkind = \"replay\"\ntier = \"local\"\nfile = \"{here}/answers.jsonl\"\nmodels = [\"local-*\"]\n\
             [backends.scripted]\nkind = \"claude-cli\"\ntier = \"subagent\"\nprogram = \"{here}/agent\"\nmodels = [\"agent-*\"]\n",
            here = here.display()
        );
        fs::write(here.join("models.toml"), settings).unwrap();
        let session = start(&here, variables);
        Self {
            dir,
            session,
            calls: 0,
            roots: BTreeMap::new(),
        }
    }

    /// Where everything of this server is.
    pub(super) fn here(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    /// The project for such a call, as it is at first. The same place each time, so that a known baseline is known again.
    pub(super) fn project(&mut self, kind: Kind, tool: Tool) -> PathBuf {
        let key = (kind, tool == Tool::Green);
        let root = self
            .here()
            .join(format!("{kind:?}-{}", if key.1 { "red" } else { "green" }).to_lowercase());
        if self.roots.insert(key, root.clone()).is_none() {
            projects::write(kind, tool, &root);
        }
        root
    }

    /// Makes the call of this row and says what came of it. The project is put back if work was accepted.
    pub(super) fn run(&mut self, case: &Case) -> Came {
        let root = self.project(case.kind, case.tool);
        self.run_in(&root, case)
    }

    /// The same in a project of one's own.
    pub(super) fn run_in(&mut self, root: &Path, case: &Case) -> Came {
        let kept = root.with_extension("kept");
        copy(root, &kept);
        let model = self.script(&case.does);
        let before = picture(root);
        let result = self.call(case, root, &model);
        if let Does::Agent(_) = case.does {
            let code = fs::read_to_string(self.here().join("acts").join(format!("{model}.code")))
                .unwrap_or_default();
            let said = fs::read_to_string(self.here().join("acts").join(format!("{model}.said")))
                .unwrap_or_default();
            assert_eq!(
                code.trim(),
                "0",
                "{}: the script itself failed: {said}{result}",
                case.name
            );
        }
        // Whoever waits for it to act when all is over has had its chance.
        fs::write(self.here().join("over"), "").unwrap();
        self.no_process_is_left(case);
        fs::remove_file(self.here().join("over")).unwrap();
        let differences = before.differences(&picture(root));
        if differences.is_empty() {
            remove(&kept);
        } else {
            remove(root);
            fs::rename(&kept, root).unwrap();
            // Build tools believe file times: what is older than the last build would not be built.
            let find = [
                "-name",
                ".git",
                "-prune",
                "-o",
                "-name",
                "__pycache__",
                "-prune",
                "-o",
                "-type",
                "f",
            ];
            let touched = Command::new("find")
                .arg(root)
                .args(find)
                .args(["-exec", "touch", "{}", "+"])
                .status();
            assert!(touched.unwrap().success());
        }
        Came {
            result,
            differences,
        }
    }

    /// The next model's name; it does this when asked.
    pub(super) fn script(&mut self, does: &Does) -> String {
        self.calls += 1;
        match does {
            Does::Edits(edits) => {
                let model = format!("local-{}", self.calls);
                let edits: Vec<Value> = edits.iter().map(Edit::to_json).collect();
                let line = json!({"model": model, "answer": {"edits": edits}});
                let file = self.here().join("answers.jsonl");
                fs::write(
                    &file,
                    format!("{}{line}\n", fs::read_to_string(&file).unwrap()),
                )
                .unwrap();
                model
            }
            Does::Agent(act) => {
                let model = format!("agent-{}", self.calls);
                fs::write(self.here().join("acts").join(&model), act).unwrap();
                model
            }
        }
    }

    fn call(&mut self, case: &Case, root: &Path, model: &str) -> Value {
        let (tool, mut arguments) = match case.tool {
            Tool::Red => (
                "tdd_red",
                json!({"spec": "`quadruple` returns four times its argument."}),
            ),
            Tool::Green => ("tdd_green", json!({"test_path": case.kind.test_path()})),
            Tool::Refactor => (
                "tdd_refactor",
                json!({"test_path": case.kind.test_path(), "impl_path": case.kind.impl_path()}),
            ),
        };
        arguments["project_root"] = json!(root);
        arguments["model"] = json!(model);
        self.ask(tool, arguments)
    }

    /// Any call of any tool.
    pub(super) fn ask(&mut self, tool: &str, arguments: Value) -> Value {
        self.calls += 1;
        self.session.call(self.calls, tool, arguments);
        let reply = self.session.reply_after_tests(self.calls);
        self.session.forget();
        result_of(&reply)
    }

    /// Daemons leave their id in `pids`; they must be gone when the call is over.
    fn no_process_is_left(&self, case: &Case) {
        let pids = fs::read_to_string(self.here().join("pids")).unwrap_or_default();
        for pid in pids.lines() {
            let alive = fs::read_to_string(Path::new("/proc").join(pid).join("stat"))
                .is_ok_and(|s| !s.contains(") Z "));
            assert!(!alive, "{}: process {pid} outlived the call", case.name);
        }
        let _ = fs::remove_file(self.here().join("pids"));
    }
}

impl Came {
    pub(super) fn attempt(&self) -> &Value {
        &self.result["attempts"][0]
    }
}

fn start(here: &Path, variables: &[(&str, &str)]) -> Session {
    let mut command = program();
    command
        .args(["--config".as_ref(), here.join("models.toml").as_os_str()])
        .env("SUPERVISOR_STATE_DIR", here.join("state"))
        .env("BENCH", here)
        .envs(variables.iter().copied())
        // One warm place for all builds, and no more in it than is needed.
        .env("CARGO_TARGET_DIR", here.join("target"))
        .current_dir(here)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let (stdin, stdout) = (
        process.stdin.take().unwrap(),
        process.stdout.take().unwrap(),
    );
    let mut session = Session::with(process, Some(Box::new(stdin)), Box::new(stdout));
    session.initialize("2025-11-25");
    session
}

/// A `claude` that runs the script named after its model, in the directory where it is, and says that it is done.
fn write_agent(here: &Path) {
    let exports = toolchain()
        .map(|(name, value)| format!("export {name}='{}'\n", value.display()))
        .collect::<String>();
    let script = format!(
        "#!/bin/sh\nhere='{here}'\nexport here\n{exports}cat > /dev/null\nmodel=\n\
         while [ $# -gt 0 ]; do if [ \"$1\" = --model ]; then model=$2; fi; shift; done\n\
         sh -e \"$here/acts/$model\" > \"$here/acts/$model.said\" 2>&1 < /dev/null\n\
         echo $? > \"$here/acts/$model.code\"\ncat \"$here/out\"\n",
        here = here.display()
    );
    fs::write(here.join("script"), script).unwrap();
    // Written by a child: a descriptor of ours that is open for writing could leak into a parallel fork.
    let made = Command::new("sh")
        .args(["-c", "cat script > agent && chmod 755 agent"])
        .current_dir(here)
        .status();
    assert!(made.unwrap().success());
}

/// What the agent prints at its end.
fn said() -> String {
    let init =
        json!({"type": "system", "subtype": "init", "cwd": "/p", "tools": [], "model": "agent"});
    let result = json!({
        "type": "result", "subtype": "success", "is_error": false, "api_error_status": null, "duration_ms": 85,
        "num_turns": 2, "result": "", "stop_reason": "tool_use", "session_id": "s", "total_cost_usd": 0.01,
        "usage": {"input_tokens": 100, "output_tokens": 20}, "modelUsage": {}, "permission_denials": [],
        "structured_output": {"notes": "all tests pass"}, "terminal_reason": "completed",
    });
    format!("{init}\n{result}\n")
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp")
        .arg("-a")
        .args([from, to])
        .status()
        .unwrap();
    assert!(done.success());
}

fn remove(path: &Path) {
    fs::remove_dir_all(path).unwrap();
}
