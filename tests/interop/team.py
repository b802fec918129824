#!/usr/bin/env python3
"""The agent file of the plugin in the real Claude Code CLI, against a scripted API on loopback: `team.py CLAUDE SERVER REPOSITORY`.

The CLI runs as the agent `team-supervisor` and stays up while a coordinator writes to it: init, a checkpoint that blocks,
the user's override, a checkpoint that passes, shutdown. What the model says is scripted. What the tools answer, and what
lies on disk afterwards, is not. Standard library only.
"""
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading

from scripted_api import ScriptedApi, call, say, text_of, tool_results
from steps import expect, step

AGENT = "supervisor:team-supervisor"
TOOL = "mcp__plugin_supervisor_supervisor__"
TEAM = "TLV4-shop-2026-11-01"
FOLDER = f".workflow/.team/{TEAM}"
WAKE = "## Checkpoint Request\ntask_id: {0}\nscope: [{1}]\npipeline_progress: 3/10 tasks completed\n"
SHUTDOWN = json.dumps({"type": "shutdown_request", "request_id": "r-1"})
FILES = {
    "spec/product-brief.md": "---\nstatus: draft\n---\n# Product Brief: Shop\n\n## Goals & Success Metrics\n\n"
                             "| Goal ID | Goal | Target |\n|---|---|---|\n| G-001 | A user can pay | 99 % |\n\n"
                             "## Scope\n\n### In Scope\n- paying by card\n",
    "spec/requirements/_index.md": "# Requirements\n\n| ID | Title | Priority | Traces To |\n|---|---|---|---|\n"
                                   "| [REQ-001](REQ-001-pay.md) | Pay | Must | G-001 |\n",
    "spec/requirements/REQ-001-pay.md": "---\nid: REQ-001\npriority: Must\ntraces_to: [G-001]\n---\n# Pay by card\n\n"
                                        "A user pays an order by card.\n",
    "spec/architecture/ADR-001-postgres.md": "---\nid: ADR-001\n---\n# Postgres\n\nOne database.\n",
    # Two tasks that wait for each other.
    "plan/plan.json": json.dumps({"complexity": "Low", "recommended_execution": "Agent",
                                  "references": ["architecture/ADR-001-postgres.md"],
                                  "tasks": [{"id": "TASK-001", "requirements": ["REQ-001"], "files": ["src/pay/card.rs"],
                                             "depends_on": ["TASK-002"]},
                                            {"id": "TASK-002", "files": ["src/pay/list.rs"], "depends_on": ["TASK-001"]}]}),
    "team-session.json": json.dumps({"session_id": TEAM, "pipeline_mode": "full-lifecycle", "supervision": True}),
}


class Pipeline:
    """A project with a team in it, and a machine with nobody on it."""

    def __init__(self, server):
        self.room = tempfile.TemporaryDirectory(prefix="supervisor-team-")
        self.project, self.home, programs = (os.path.join(self.room.name, name) for name in ("project", "home", "bin"))
        for folder in (self.home, programs):
            os.makedirs(folder)
        os.symlink(server, os.path.join(programs, "supervisor"))
        for path, text in FILES.items():
            path = self.path(path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        os.makedirs(self.path(".msg"))
        with open(self.path(".msg/messages.jsonl"), "w", encoding="utf-8") as file:
            for n, (role, task) in enumerate((("writer", "DRAFT-001"), ("writer", "DRAFT-002"), ("planner", "PLAN-001")), 1):
                file.write(json.dumps({"id": f"MSG-{n:03}", "ts": f"2026-11-01T10:0{n}:00.000+00:00", "from": role,
                                       "to": "coordinator", "type": "state_update", "summary": f"[{role}] {task}",
                                       "data": {"task_id": task, "status": "task_complete"}}) + "\n")
        self.env = {"PATH": programs + os.pathsep + os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.home, "LANG": "C.UTF-8",
                    "CLAUDE_CONFIG_DIR": os.path.join(self.home, ".claude"), "ANTHROPIC_API_KEY": "not-a-key",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
                    "IS_SANDBOX": "1", "MCP_CONNECTION_NONBLOCKING": "0", "CLAUDE_CODE_MAX_RETRIES": "1",
                    "SUPERVISOR_STATE_DIR": os.path.join(self.room.name, "state")}

    def path(self, name):
        return os.path.join(self.project, FOLDER, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def sidecar(self, task):
        return json.loads(self.read(f"artifacts/{task}-report.json"))

    def messages(self):
        return [json.loads(line) for line in self.read(".msg/messages.jsonl").splitlines()]

    def artifacts(self):
        return {name: self.read(name) for name in FILES}


class Resident:
    """The CLI as one agent that stays up: each text is a turn of the same conversation, with the same server behind it."""

    def __init__(self, claude, repository, pipeline, url):
        arguments = ["--print", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json", "--agent", AGENT,
                     "--plugin-dir", os.path.join(repository, "plugins/supervisor"), "--allowedTools", TOOL[:-2]]
        self.process = subprocess.Popen([claude, *arguments], cwd=pipeline.project, env={**pipeline.env, "ANTHROPIC_BASE_URL": url},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines, self.errors = queue.Queue(), []
        threading.Thread(target=self.pump, daemon=True).start()
        threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True).start()

    def pump(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def turn(self, text):
        """Sends the coordinator's text; what the agent says at the end of its turn."""
        message = {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        while True:
            line = self.lines.get(timeout=240)
            expect(line is not None, f"the CLI ended: {''.join(self.errors)[-500:]}")
            if line.get("type") == "result":
                expect(not line.get("is_error"), line)
                return line["result"]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=120)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def life_of_a_session(claude, server, repository):
    pipeline = Pipeline(server)
    common = {"project_root": pipeline.project, "session_id": TEAM}
    asked = [{**common, "operation": "init", "team_name": "shop", "requirement": "a shop"},
             {**common, "wake": WAKE.format("CHECKPOINT-003", "PLAN-001")},
             {**common, "operation": "override", "task_id": "CHECKPOINT-003", "by": "Ada", "reason": "the second task waits for nothing"},
             {**common, "wake": WAKE.format("CHECKPOINT-001", "DRAFT-001, DRAFT-002")},
             {**common, "wake": SHUTDOWN}]
    told = [f"Start. session_id: {TEAM}, team_name: shop, requirement: a shop, project: {pipeline.project}",
            asked[1]["wake"], "The user overrides CHECKPOINT-003. By Ada: the second task waits for nothing.",
            asked[3]["wake"], SHUTDOWN]
    script = [played for arguments in asked for played in (call(TOOL + "supervise", arguments), say("told"))]
    before, results, bodies = pipeline.artifacts(), [], []
    with ScriptedApi(script) as api:
        resident = Resident(claude, repository, pipeline, api.url)
        try:
            for text in told:
                expect(resident.turn(text) == "told", "the turn ended otherwise than in the script")
                bodies = api.conversations()
                shown = tool_results(bodies[-1])[-1]
                answer = text_of(shown["content"])
                results.append(json.loads(answer) if answer.startswith("{") else {"status": "error", "message": answer})
            expect(resident.end() == 0, f"the CLI ended badly: {''.join(resident.errors)[-500:]}")
        finally:
            resident.stop()
    return pipeline, before, results, bodies


def check_agent(bodies):
    """The agent file is what the model is told, and its tools are all that it is given."""
    body = next(body for body in bodies if body.get("tools"))
    expect("You are the messenger between a coordinator and the `supervise` tool" in text_of(body["system"]),
           f"the agent file is not the system prompt: {text_of(body['system'])[:300]}")
    offered = {tool["name"] for tool in body["tools"]}
    expect(TOOL + "supervise" in offered and TOOL + "team_msg" in offered, f"offered: {sorted(offered)}")
    foreign = {"Write", "Edit", "Bash", "Agent", "Task", TOOL + "tdd", TOOL + "review"} & offered
    expect(not foreign, f"the agent may do more than its file says: {sorted(foreign)}")


def check_results(results):
    """What the tools answered, in the order of the walk."""
    ready, blocked, overridden, passed, ended = results
    expect((ready["status"], ready["message"]) == ("pass", "[supervisor] Ready, awaiting checkpoints"), ready)
    expect((blocked["status"], blocked["details"]["verdict"]) == ("fail", "block"), blocked)
    text = blocked["details"]["message_text"]
    expect(all(line.startswith("[supervisor]") for line in text.splitlines()), f"untagged: {text}")
    failed = [check for check in blocked["details"]["checks"] if check["result"] == "fail"]
    expect([check["id"] for check in failed] == ["dependency_chain"], failed)
    expect(overridden["status"] == "pass" and "Ada" in json.dumps(overridden), overridden)
    expect((passed["status"], passed["details"]["verdict"]) == ("pass", "pass"), passed)
    response = {"type": "shutdown_response", "request_id": "r-1", "approve": True}
    expect(ended["details"]["shutdown_response"] == response, ended)


def check_traces(pipeline, before):
    """The override stands in report, sidecar, state and bus; nothing that the pipeline had made was touched."""
    report, sidecar = pipeline.read("artifacts/CHECKPOINT-003-report.md"), pipeline.sidecar("CHECKPOINT-003")
    expect("BLOCK" in report and "By Ada" in report and "plan/plan.json" in report, report)
    expect(sidecar["verdict"] == "block" and sidecar["override"]["by"] == "Ada", sidecar)
    expect(pipeline.sidecar("CHECKPOINT-001")["verdict"] == "pass", pipeline.sidecar("CHECKPOINT-001"))
    ours = [message for message in pipeline.messages() if message["from"] == "supervisor"]
    said = [(m["data"]["task_id"], m["data"]["supervision_verdict"], (m["data"].get("override") or {}).get("by")) for m in ours]
    expect(said == [("CHECKPOINT-003", "block", None), ("CHECKPOINT-003", "block", "Ada"), ("CHECKPOINT-001", "pass", None)], said)
    state = json.loads(pipeline.read(".msg/meta.json"))["task_state"]["supervisor"]
    expect(state["CHECKPOINT-003"]["override"]["reason"] == "the second task waits for nothing", state)
    expect("overridden by Ada" in pipeline.read("wisdom/decisions.md"), "the wisdom does not know of the override")
    memory = json.loads(pipeline.read(".msg/supervisor.json"))
    expect(memory["phase"] == {"is": "shut_down"} and len(memory["accumulator"]) == 2, memory)
    expect(pipeline.artifacts() == before, "an artifact was changed")


def main():
    claude, server, repository = sys.argv[1:4]
    walked = []
    if not step("team: the agent walks init, block, override, pass, shutdown in one session",
                lambda: walked.extend(life_of_a_session(claude, server, repository))):
        return
    pipeline, before, results, bodies = walked
    step("team: the agent file is the system prompt, and its tools are the only ones", lambda: check_agent(bodies))
    step("team: block, override and pass are what the tools answered", lambda: check_results(results))
    step("team: report, sidecar, state and bus have the override; artifacts are untouched", lambda: check_traces(pipeline, before))
    pipeline.room.cleanup()


if __name__ == "__main__":
    main()
