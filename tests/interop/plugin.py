#!/usr/bin/env python3
"""The plugin in the real Claude Code CLI, against a scripted API on loopback: `plugin.py CLAUDE SERVER REPOSITORY`.

Validated, installed from the directory, used (`/tdd`), its hooks chosen and not chosen, removed again. Models behind the
server are recorded answers. Standard library only.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from scripted_api import ScriptedApi, call, say, text_of, tool_results
from steps import expect, step

TOOL = "mcp__plugin_supervisor_supervisor__"
CORE = ("tdd", "tdd_red", "tdd_green", "tdd_refactor", "review", "debug")
CODE = "def one():\n    return 1\n"
TEST = "import unittest\n\nfrom shop import one\n\n\nclass Old(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(one(), 1)\n"
ADD_TEST = "import unittest\n\nimport shop\n\n\nclass Add(unittest.TestCase):\n    def test_adds_two_numbers(self):\n        self.assertEqual(shop.add(1, 2), 3)\n"
ADD = CODE + "\n\ndef add(a, b):\n    return a + b\n"


class Machine:
    """A home with the plugin in it, a small Python project, recorded models."""

    def __init__(self, claude, server, repository):
        self.claude, self.repository = claude, repository
        self.room = tempfile.TemporaryDirectory(prefix="supervisor-plugin-")
        place = lambda *parts: os.path.join(self.room.name, *parts)
        self.home, self.state, self.answers = place("home"), place("state"), place("answers.jsonl")
        programs = place("bin")
        for folder in (self.home, programs):
            os.makedirs(folder)
        os.symlink(server, os.path.join(programs, "supervisor"))
        settings = place("models.toml")
        with open(settings, "w", encoding="utf-8") as file:
            file.write(f'verifier = "none"\ndefault_chain = ["small"]\n[backends.near]\nkind = "replay"\ntier = "local"\n'
                       f'file = "{self.answers}"\nmodels = ["small"]\n')
        self.env = {"PATH": programs + os.pathsep + os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.home, "LANG": "C.UTF-8",
                    "CLAUDE_CONFIG_DIR": os.path.join(self.home, ".claude"), "ANTHROPIC_API_KEY": "not-a-key",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
                    "IS_SANDBOX": "1", "MCP_CONNECTION_NONBLOCKING": "0", "CLAUDE_CODE_MAX_RETRIES": "1",
                    "PYTHONDONTWRITEBYTECODE": "1", "SUPERVISOR_STATE_DIR": self.state, "SUPERVISOR_MODELS_FILE": settings}

    def project(self, name):
        folder = os.path.join(self.room.name, name)
        os.makedirs(os.path.join(folder, "tests"))
        for path, text in (("shop.py", CODE), ("tests/__init__.py", ""), ("tests/test_old.py", TEST)):
            with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                file.write(text)
        return folder

    def record(self, *answers):
        with open(self.answers, "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"model": "small", "answer": answer}) + "\n" for answer in answers)

    def type(self, *arguments, cwd=None, env=None, prompt=""):
        done = subprocess.run([self.claude, *arguments], input=prompt, capture_output=True, text=True, timeout=300, check=False,
                              cwd=cwd or self.home, env={**self.env, **(env or {})})
        expect(done.returncode == 0, f"`claude {' '.join(arguments[:3])}` ended with {done.returncode}: {done.stderr or done.stdout}")
        return done.stdout

    def ask(self, prompt, script, project, env=None):
        """One prompt; the requests the API saw."""
        with ScriptedApi(script) as api:
            self.type("--print", "--permission-mode", "acceptEdits", "--allowedTools", TOOL[:-2], cwd=project, prompt=prompt,
                      env={"ANTHROPIC_BASE_URL": api.url, **(env or {})})
            return api.conversations()


def installed(machine):
    for folder in (machine.repository, os.path.join(machine.repository, "plugins/supervisor")):
        machine.type("plugin", "validate", "--strict", folder)
    machine.type("plugin", "marketplace", "add", machine.repository)
    machine.type("plugin", "install", "supervisor@supervisor")
    listed = machine.type("mcp", "list")
    line = next((line for line in listed.splitlines() if line.startswith("plugin:supervisor:supervisor")), "")
    expect("Connected" in line, listed)


def before_the_program(claude, server, repository):
    """Installed first, the plugin stays connected and says how to install; with the program the next session works."""
    machine = Machine(claude, server, repository)
    program = os.path.join(machine.env["PATH"].split(os.pathsep)[0], "supervisor")
    os.unlink(program)
    machine.type("plugin", "marketplace", "add", machine.repository)
    machine.type("plugin", "install", "supervisor@supervisor")
    project = machine.project("before")
    requests = machine.ask("Install it.", [call(TOOL + "install_supervisor", {}), say("done")], project)
    shown = text_of(tool_results(requests[-1])[-1]["content"])
    expect("cargo install --path . --locked" in shown, shown)
    os.symlink(server, program)
    listed = machine.type("mcp", "list")
    expect("Connected" in listed, listed)
    requests = machine.ask("What can you do?", [say("this")], project)
    offered = [tool["name"] for body in requests for tool in body.get("tools", [])]
    expect(TOOL + "tdd" in offered, f"the next session does not have the tools: {sorted(offered)}")
    machine.room.cleanup()


def a_cycle_by_slash_command(machine):
    project = machine.project("cycle")
    machine.record({"edits": [{"path": "tests/test_add.py", "operation": "create", "content": ADD_TEST}], "notes": "red"},
                   {"edits": [{"path": "shop.py", "operation": "replace", "content": ADD}], "notes": "green"})
    script = [call(TOOL + "tdd", {"project_root": project, "criteria": ["add(a, b) gives the sum of two numbers"]}), say("done")]
    requests = machine.ask("/supervisor:tdd add(a, b) gives the sum of two numbers", script, project)
    first = next(body for body in requests if body.get("tools"))
    offered = {tool["name"]: tool for tool in first["tools"]}
    for name in CORE:
        tool = offered.get(TOOL + name)
        expect(tool and tool["input_schema"]["properties"], f"`{name}` is not in the first request: {sorted(offered)}")
    expect("Split it into criteria" in json.dumps(first["messages"]), "the skill's text did not reach the model")
    shown = text_of(tool_results(requests[-1])[-1]["content"])
    result = json.loads(shown)
    expect(result["status"] == "pass" and result["verified"] and result["skill"] == "tdd", result)
    expect(len(shown) < 1536, f"{len(shown)} bytes: {shown}")
    with open(os.path.join(project, "shop.py"), encoding="utf-8") as file:
        expect(file.read() == ADD, "the code is not there")


def done_on(machine, name, wrong, right, env):
    """An agent that writes `wrong` and says it is done; if it is held, it writes `right`. What stands then, and how often it was asked."""
    project = machine.project(name)
    path = os.path.join(project, "shop.py")
    steps = [call("Read", {"file_path": path}), call("Write", {"file_path": path, "content": wrong}), say("I am done."),
             call("Write", {"file_path": path, "content": right}), say("Now I am done.")]
    requests = machine.ask("Change shop.py.", steps, project, env)
    with open(path, encoding="utf-8") as file:
        return file.read(), requests


def the_stop_gate_holds_on_red(machine):
    chosen = {"SUPERVISOR_STOP_GATE": "1"}
    text, requests = done_on(machine, "gate", CODE.replace("1", "2"), CODE + "\n", chosen)
    expect(text == CODE + "\n", f"the agent was let go on red: {text}")
    told = json.dumps(requests[-1]["messages"])
    expect("Not done" in told and "test_one" in told, "the failing test was not named")
    text, requests = done_on(machine, "gate-green", CODE + "\n# green\n", "never", chosen)
    expect("green" in text, f"an agent on green was held: {text}")


def committed(project):
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "First"]):
        subprocess.run([*git, *arguments], cwd=project, check=True)


def the_prove_gate(machine):
    chosen = {"SUPERVISOR_STOP_GATE": "prove"}
    # Bad: a test is weakened, and the code is wrong. Held with the reason, then put right.
    project = machine.project("prove")
    committed(project)
    code, test = (os.path.join(project, *parts) for parts in (("shop.py",), ("tests", "test_old.py")))
    steps = [call("Read", {"file_path": code}), call("Write", {"file_path": code, "content": CODE.replace("1", "2")}),
             call("Read", {"file_path": test}), call("Write", {"file_path": test, "content": TEST.replace("one(), 1", "one(), 2")}),
             say("I am done."), call("Write", {"file_path": code, "content": CODE}),
             call("Write", {"file_path": test, "content": TEST}), say("Now I am done.")]
    requests = machine.ask("Change shop.py.", steps, project, chosen)
    told = json.dumps(requests[-1]["messages"])
    with open(test, encoding="utf-8") as file:
        expect(file.read() == TEST, "an agent that weakened a test was let go")
    expect("test_one" in told and "Not done" in told, f"the weakened test was not named: {told[-1500:]}")
    # Good: code and a test that fails without it. Allowed at once.
    project = machine.project("prove-good")
    committed(project)
    code, test = (os.path.join(project, *parts) for parts in (("shop.py",), ("tests", "test_add.py")))
    steps = [call("Read", {"file_path": code}), call("Write", {"file_path": code, "content": ADD}),
             call("Write", {"file_path": test, "content": ADD_TEST}), say("I am done."),
             call("Write", {"file_path": code, "content": "never"}), say("Now I am done.")]
    machine.ask("Add `add`.", steps, project, chosen)
    with open(code, encoding="utf-8") as file:
        expect(file.read() == ADD, "an agent with proven work was held")
    # The gate itself fails, because there is no repository, or runs out of time: allowed, with a message.
    for name, reason in (("prove-no-git", "git"), ("prove-late", "test")):
        project = machine.project(name)
        code = os.path.join(project, "shop.py")
        if name == "prove-late":
            with open(os.path.join(project, "tests", "test_old.py"), "a", encoding="utf-8") as file:
                file.write("\n    def test_slow(self):\n        import time\n        time.sleep(600)\n")
            committed(project)
        wrong = CODE.replace("1", "2")
        steps = [call("Read", {"file_path": code}), call("Write", {"file_path": code, "content": wrong}), say("I am done."),
                 call("Write", {"file_path": code, "content": "never"}), say("Now I am done.")]
        machine.ask("Change shop.py.", steps, project, {**chosen, "SUPERVISOR_LIMITS__TESTS_S": "2"})
        with open(code, encoding="utf-8") as file:
            expect(file.read() == wrong, f"{name}: a gate that failed held the agent")
        event = json.dumps({"session_id": name, "cwd": project})
        done = subprocess.run([os.path.join(machine.env["PATH"].split(os.pathsep)[0], "supervisor"), "hook", "--prove", "stop"],
                              input=event, capture_output=True, text=True, timeout=120, check=False,
                              env={**machine.env, **chosen, "SUPERVISOR_LIMITS__TESTS_S": "2"})
        expect(done.returncode not in (0, 2) and reason in done.stderr, f"{name}: {done.returncode} {done.stderr}")


def ten_tasks(machine):
    """Half of the agents break a test and say they are done."""
    green = {}
    for chosen in ("", "1"):
        green[chosen] = 0
        for n in range(10):
            wrong = CODE.replace("1", str(n)) if n % 2 == 0 else CODE + f"\n# task {n}\n"
            text, _ = done_on(machine, f"task-{n}-{chosen or 0}", wrong, CODE + f"\n# task {n}\n", {"SUPERVISOR_STOP_GATE": chosen})
            green[chosen] += "return 1\n" in text
    print(f"    ten tasks end green: {green['']} without the gate, {green['1']} with it")
    expect(green["1"] == 10 and green[""] == 5, green)


def the_guard_by_option(machine):
    machine.type("plugin", "configure", "supervisor@supervisor", "--values-stdin", prompt=json.dumps({"tdd_guard": "true"}))
    text, requests = done_on(machine, "guard", CODE.replace("1", "2"), CODE, {})
    expect(text == CODE, f"production code was changed without a red test: {text}")
    expect("tdd_red" in json.dumps(requests[-1]["messages"]), "the call that makes a red test was not named")


def removed(machine):
    sessions = os.path.join(machine.state, "sessions")
    logs = sorted(os.listdir(sessions))
    machine.type("plugin", "uninstall", "supervisor@supervisor")
    machine.type("plugin", "marketplace", "remove", "supervisor")
    expect("supervisor" not in machine.type("mcp", "list"), "the server is still there")
    expect(sorted(os.listdir(sessions)) == logs and logs, "the logs are not what they were")


def main():
    claude, server, repository = sys.argv[1:4]
    step("plugin: before the program it says how to install it", lambda: before_the_program(claude, server, repository))
    machine = Machine(claude, server, repository)
    if not step("plugin: validated and installed from the directory, its server is connected", lambda: installed(machine)):
        return
    step("plugin: `/tdd` is an accepted cycle; core tools in the first request; a small result", lambda: a_cycle_by_slash_command(machine))
    step("plugin: the prove gate refuses weakened tests, lets proven work go, and never holds because it fails itself",
         lambda: the_prove_gate(machine))
    step("plugin: the stop gate refuses done on red and lets go on green", lambda: the_stop_gate_holds_on_red(machine))
    step("plugin: ten tasks, with and without the gate", lambda: ten_tasks(machine))
    step("plugin: the TDD guard, chosen among the plugin's options", lambda: the_guard_by_option(machine))
    step("plugin: removed, and the logs stay", lambda: removed(machine))
    shutil.rmtree(machine.room.name, ignore_errors=True)


if __name__ == "__main__":
    main()
