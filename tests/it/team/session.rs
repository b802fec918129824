//! A pipeline's session written for the tests, in either layout, and a client that calls the tools over stdio.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::mcp_session::{Session, Which, command};

/// Which layout the team uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Older,
    Run,
}

pub(crate) const BOTH: [Layout; 2] = [Layout::Older, Layout::Run];
pub(crate) const ID: &str = "TLV4-shop-2026-11-01";

/// A project with one team in it.
pub(crate) struct Pipeline {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) layout: Layout,
}

impl Pipeline {
    /// Brief, requirements, architecture, epics and plan that agree with each other.
    pub(crate) fn sound(layout: Layout) -> Self {
        let pipeline = Self {
            dir: tempfile::tempdir().unwrap(),
            layout,
        };
        fs::create_dir_all(pipeline.base()).unwrap();
        fs::create_dir_all(pipeline.team()).unwrap();
        for (path, text) in FILES {
            pipeline.write(path, text);
        }
        let states = [
            (
                "analyst",
                "RESEARCH-001",
                json!({"decisions": ["database: Postgres"], "key_findings": ["k"]}),
            ),
            (
                "writer",
                "DRAFT-001",
                json!({"quality_self_score": 80, "decisions": ["payment: cards only"]}),
            ),
            (
                "writer",
                "DRAFT-002",
                json!({"quality_self_score": 82, "open_questions": []}),
            ),
            (
                "writer",
                "DRAFT-003",
                json!({"quality_self_score": 84, "decisions": ["database: Postgres"]}),
            ),
            ("writer", "DRAFT-004", json!({"quality_self_score": 83})),
            (
                "planner",
                "PLAN-001",
                json!({"decisions": ["order: schema first"]}),
            ),
        ];
        for (n, (role, task, mut data)) in states.into_iter().enumerate() {
            data["task_id"] = json!(task);
            data["status"] = json!("task_complete");
            pipeline.message(n + 1, role, "state_update", &data);
        }
        pipeline
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    fn base(&self) -> PathBuf {
        match self.layout {
            Layout::Older => self.root().join(format!(".workflow/.team/{ID}")),
            Layout::Run => self
                .root()
                .join(format!(".workflow/sessions/s-1/runs/{ID}")),
        }
    }

    pub(crate) fn team(&self) -> PathBuf {
        match self.layout {
            Layout::Older => self.base(),
            Layout::Run => self.base().join("work/team"),
        }
    }

    pub(crate) fn outputs(&self) -> PathBuf {
        match self.layout {
            Layout::Older => self.base().join("artifacts"),
            Layout::Run => self.base().join("outputs"),
        }
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.team().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn replace(&self, path: &str, from: &str, to: &str) {
        let old = fs::read_to_string(self.team().join(path)).unwrap();
        assert!(old.contains(from), "{path} has no {from:?}");
        self.write(path, &old.replace(from, to));
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.team().join(path);
        if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
        .unwrap();
    }

    /// The same session with terms that drift, an epic that asks, a score that falls, a dependency cycle and a must-have
    /// without a task.
    pub(crate) fn unsound(layout: Layout) -> Self {
        let pipeline = Self::sound(layout);
        pipeline.replace(
            "spec/epics/EPIC-001-pay.md",
            "Stories for Checkout and Archive.",
            "Stories for Checkout and Archive: a customer makes a purchase.",
        );
        pipeline.replace(
            "spec/architecture/_index.md",
            "keeps each order",
            "keeps each purchase",
        );
        pipeline.write(
            "spec/epics/EPIC-002-more.md",
            "# More\n\n## Open Questions\n\n- [ ] who answers mail?\n",
        );
        let state =
            json!({"task_id": "DRAFT-004", "quality_self_score": 60, "status": "task_complete"});
        pipeline.message(7, "writer", "state_update", &state);
        pipeline.write("wisdom/conventions.md", "- database: Mongo\n");
        pipeline.replace("plan/plan.json", "\"REQ-002\"", "\"REQ-003\"");
        pipeline.replace(
            "plan/plan.json",
            "\"requirements\": [\"REQ-001\"]",
            "\"requirements\": [\"REQ-001\"], \"depends_on\": [\"TASK-002\"]",
        );
        pipeline
    }

    /// A line as a team without a lock writes it.
    pub(crate) fn message(&self, n: usize, from: &str, kind: &str, data: &Value) {
        let line = json!({
            "id": format!("MSG-{n:03}"), "ts": format!("2026-11-01T10:{:02}:00.000+00:00", n.min(59)), "from": from, "to": "coordinator",
            "type": kind, "summary": format!("[{from}] {kind}"), "dispatch_status": "delivered", "data": data,
        });
        self.append(&format!("{line}\n"));
    }

    pub(crate) fn append(&self, text: &str) {
        use std::io::Write as _;
        let path = self.log();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.team().join(".msg/messages.jsonl")
    }

    pub(crate) fn messages(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    pub(crate) fn report(&self, task: &str) -> String {
        fs::read_to_string(self.outputs().join(format!("{task}-report.md"))).unwrap()
    }

    pub(crate) fn sidecar(&self, task: &str) -> Value {
        let text = fs::read(self.outputs().join(format!("{task}-report.json"))).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    pub(crate) fn client(&self) -> TeamClient {
        TeamClient::start(self.root(), None)
    }
}

/// A server and a client that calls its team tools.
pub(crate) struct TeamClient {
    session: Session,
    root: PathBuf,
    calls: usize,
    _state: tempfile::TempDir,
}

impl TeamClient {
    /// `fault`: where the server kills itself.
    pub(crate) fn start(root: &Path, fault: Option<&str>) -> Self {
        Self::with_env(
            root,
            fault
                .map(|fault| ("SUPERVISOR_FAULT", fault.to_owned()))
                .as_slice(),
        )
    }

    pub(crate) fn with_env(root: &Path, env: &[(&str, String)]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut command = command(Which::Real);
        command
            .env("SUPERVISOR_STATE_DIR", state.path())
            .stderr(std::process::Stdio::piped());
        command.envs(env.iter().map(|(name, value)| (name, value)));
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (stdin, stdout) = (
            process.stdin.take().unwrap(),
            process.stdout.take().unwrap(),
        );
        let mut session = Session::with(process, Some(Box::new(stdin)), Box::new(stdout));
        session.initialize("2025-11-25");
        Self {
            session,
            root: root.to_owned(),
            calls: 0,
            _state: state,
        }
    }

    /// From now on calls are about this project.
    pub(crate) fn stand_in(&mut self, root: &Path) {
        root.clone_into(&mut self.root);
    }

    /// Sends a call without waiting for its reply.
    pub(crate) fn send(&mut self, tool: &str, mut arguments: Value) -> String {
        arguments["project_root"] = json!(self.root);
        if arguments.get("session_id").is_none() {
            arguments["session_id"] = json!(ID);
        }
        self.calls += 1;
        let id = format!("call-{}", self.calls);
        self.session
            .say(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}}));
        id
    }

    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send(tool, arguments);
        self.session.reply(id)["result"]["structuredContent"].clone()
    }

    pub(crate) fn bus(&mut self, operation: &str, mut arguments: Value) -> Value {
        arguments["operation"] = json!(operation);
        self.call("team_msg", arguments)
    }

    pub(crate) fn supervise(&mut self, operation: &str, mut arguments: Value) -> Value {
        arguments["operation"] = json!(operation);
        self.call("supervise", arguments)
    }

    pub(crate) fn init(&mut self) -> Value {
        self.supervise(
            "init",
            json!({"team_name": "shop", "requirement": "a shop"}),
        )
    }

    pub(crate) fn checkpoint(&mut self, task: &str) -> Value {
        self.supervise(
            "checkpoint",
            json!({"task_id": task, "pipeline_progress": "3/10 tasks completed"}),
        )
    }

    pub(crate) fn wake(&mut self, text: &str) -> Value {
        self.call("supervise", json!({"wake": text}))
    }

    /// Every byte this server has read so far, as the kernel counts them; its own count is not asked.
    pub(crate) fn bytes_read(&self) -> u64 {
        let io = fs::read_to_string(format!("/proc/{}/io", self.session.process.id())).unwrap();
        io.lines()
            .find_map(|line| line.strip_prefix("rchar: "))
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Waits until the server is gone.
    pub(crate) fn wait_for_kill(mut self) -> bool {
        use std::os::unix::process::ExitStatusExt as _;
        self.session.process.wait().unwrap().signal() == Some(9)
    }
}

/// A shop: everything agrees with everything.
const FILES: &[(&str, &str)] = &[
    (
        "spec/product-brief.md",
        "---\nstatus: draft\n---\n# Product Brief: Shop\n\n## Goals & Success Metrics\n\n| Goal ID | Goal | Target |\n|---|---|---|\n| G-001 | A user can pay | 99 % |\n| G-002 | A user can see an order | 1 s |\n\n## Scope\n\n### In Scope\n- paying by card\n\n### Out of Scope\n- paying by invoice\n- mobile application\n\n## Open Questions\n\n- [x] which provider?\n",
    ),
    (
        "spec/requirements/_index.md",
        "# Requirements\n\n| ID | Title | Priority | Traces To |\n|----|-------|----------|-----------|\n| [REQ-001](REQ-001-pay.md) | Pay | Must | G-001 |\n| [REQ-002](REQ-002-orders.md) | Orders | Must | G-002 |\n| [REQ-003](REQ-003-mail.md) | Mail | Should | G-002 |\n",
    ),
    (
        "spec/requirements/REQ-001-pay.md",
        "---\nid: REQ-001\npriority: Must\ntraces_to: [G-001]\n---\n# Pay by card\n\nA user pays an order by card.\n",
    ),
    (
        "spec/requirements/REQ-002-orders.md",
        "---\nid: REQ-002\npriority: Must\ntraces_to: [G-002]\n---\n# See an order\n\nA user sees an order within 1 s.\n",
    ),
    (
        "spec/requirements/REQ-003-mail.md",
        "---\nid: REQ-003\npriority: Should\ntraces_to: [G-002]\n---\n# Confirm by mail\n\nA user gets a mail.\n",
    ),
    (
        "spec/architecture/_index.md",
        "# Architecture\n\n### Component Descriptions\n\n| Component | Responsibility |\n|---|---|\n| Checkout | takes the money |\n| Archive | keeps each order |\n",
    ),
    (
        "spec/architecture/ADR-001-postgres.md",
        "---\nid: ADR-001\n---\n# Postgres\n\nOne database.\n",
    ),
    (
        "spec/epics/_index.md",
        "# Epics\n\n| Epic ID | Title |\n|---|---|\n| EPIC-001 | Pay |\n",
    ),
    (
        "spec/epics/EPIC-001-pay.md",
        "---\nid: EPIC-001\nrequirements: [REQ-001, REQ-002]\narchitecture: [ADR-001]\n---\n# Pay\n\nStories for Checkout and Archive.\n",
    ),
    (
        "plan/plan.json",
        "{\n  \"complexity\": \"Low\",\n  \"recommended_execution\": \"Agent\",\n  \"references\": [\"architecture/ADR-001-postgres.md\"],\n  \"tasks\": [\n    {\"id\": \"TASK-001\", \"requirements\": [\"REQ-001\"], \"files\": [\"src/pay/card.rs\"]},\n    {\"id\": \"TASK-002\", \"requirements\": [\"REQ-002\"], \"depends_on\": [\"TASK-001\"], \"files\": [\"src/orders/list.rs\"]}\n  ]\n}\n",
    ),
    (
        "wisdom/decisions.md",
        "# Decisions\n\n- database: Postgres\n",
    ),
    (
        "team-session.json",
        "{\"session_id\": \"x\", \"pipeline_mode\": \"full-lifecycle\", \"supervision\": true}\n",
    ),
];
