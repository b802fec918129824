#!/usr/bin/env python3
"""Calls that last, in the interactive Claude Code CLI on a real pseudo-terminal: `terminal.py CLAUDE SERVER`.

Only there the client offers tasks (`--print` does not). A prompt is typed, the scripted API answers with a call of ours, a
recorded model takes its time, and it is looked at what the model of the client was shown, and when. What went over the
wire is written down by a `tee` on either side of the server. Standard library only.
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import threading
import time

from claude_code import Desk
from scripted_api import call, say, text_of, tool_results
from steps import expect, step

EXTENSION = "io.modelcontextprotocol/tasks"
REVIEW = {"findings": [], "reviewed": [{"file": "shop.py", "checks": ["security", "swallowed errors", "boundary validation", "tests"]}]}
TEST = "import unittest\n\nfrom shop import add\n\n\nclass Add(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(add(1, 2), 3)\n"
ADDED = "def add(a, b):\n    return a + b\n"
# Long enough for the client to go on meanwhile, and to be seen doing so.
THINKS_MS = 4000


class TerminalDesk(Desk):
    """A desk whose Claude Code runs on a terminal, with recorded models behind the server."""

    def __init__(self, claude, server, script, answers):
        super().__init__(claude, script)
        place = lambda name: os.path.join(self.room.name, name)
        self.project = os.path.realpath(self.project)
        self.wire, self.config = place("wire"), place("mcp.json")
        with open(place("answers.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"model": "small", "answer": answer, "wait_ms": THINKS_MS}) + "\n" for answer in answers)
        with open(place("models.toml"), "w", encoding="utf-8") as file:
            file.write('verifier = "none"\ndefault_chain = ["small"]\n[backends.near]\nkind = "replay"\ntier = "local"\n'
                       f'file = "{place("answers.jsonl")}"\nmodels = ["small"]\n')
        tapped = place("tapped")
        with open(tapped, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ntee -a {self.wire}.in | {server} | tee -a {self.wire}.out\n")
        os.chmod(tapped, 0o755)
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({"mcpServers": {"supervisor": {"command": tapped, "args": []}}}, file)
        # What a person answers at the first start.
        settled = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": {"approved": ["not-a-key"], "rejected": []},
                   "projects": {self.project: {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}}
        with open(os.path.join(self.home, ".claude", ".claude.json"), "w", encoding="utf-8") as file:
            json.dump(settled, file)

    def environment(self):
        place = os.path.join(self.room.name, "models.toml")
        return {**super().environment(), "TERM": "xterm-256color", "SUPERVISOR_MODELS_FILE": place, "PYTHONDONTWRITEBYTECODE": "1"}

    def sit_down(self, *arguments):
        argv = [self.claude, "--mcp-config", self.config, "--strict-mcp-config", "--permission-mode", "acceptEdits",
                "--allowedTools", "mcp__supervisor", *arguments]
        return Sitting(argv, self.project, self.environment())

    def write(self, path, text):
        with open(os.path.join(self.project, path), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, path):
        with open(os.path.join(self.project, path), encoding="utf-8") as file:
            return file.read()

    def sent(self, method):
        """The params of what the client sent, in order."""
        try:
            with open(self.wire + ".in", encoding="utf-8") as file:
                lines = [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []
        return [line["params"] for line in lines if line.get("method") == method]

    def asked(self):
        """The requests of the conversation; the client also makes some of its own, without tools."""
        return [body for body in self.api.conversations() if body.get("tools")]


class Sitting:
    """Claude Code on a terminal of 120 × 40, until it is left."""

    def __init__(self, argv, directory, environment):
        self.seen, self.lock = b"", threading.Lock()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execve(argv[0], argv, environment)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            try:
                read = os.read(self.terminal, 65536) if select.select([self.terminal], [], [], 0.5)[0] else b""
            except OSError:
                return
            with self.lock:
                self.seen += read

    def words(self):
        """All that was ever shown, without what moves the cursor and without blanks: a redraw writes only what differs."""
        with self.lock:
            text = self.seen.decode("utf-8", "replace")
        return re.sub(r"\s+", "", re.sub(r"\x1b(\][^\x07\x1b]*(\x07|\x1b\\)|\[[0-9;?<>=]*[A-Za-z]|[()][A-Z0-9]|.)", "", text))

    def type(self, line):
        os.write(self.terminal, line.encode())
        # The return key in the same breath would count as part of a paste.
        time.sleep(1)
        os.write(self.terminal, b"\r")

    def leave(self):
        """As a terminal that is closed."""
        for ending in (signal.SIGHUP, signal.SIGKILL):
            try:
                os.kill(self.pid, ending)
            except ProcessLookupError:
                break
            for _ in range(50):
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    os.close(self.terminal)
                    return
                time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()


def until(what, done, sitting, seconds=120):
    deadline = time.monotonic() + seconds
    while not done():
        expect(time.monotonic() < deadline, f"waited in vain for {what}; on the screen: …{sitting.words()[-600:]}")
        time.sleep(0.2)


def notices(desk):
    """What woke the model, as it was told."""
    return [text_of(body["messages"][-1]["content"]) for body in desk.asked() if "<task-notification>" in json.dumps(body["messages"][-1])]


def in_the_background(desk, prompt):
    """Types the prompt; gives what the model was told at once, and what it was told when it was woken."""
    with desk.sit_down() as sitting:
        until("the prompt", lambda: "❯" in sitting.words() and desk.sent("tools/list"), sitting)
        sitting.type(prompt)
        until("the model's second turn", lambda: len(desk.asked()) >= 2, sitting)
        at_once = tool_results(desk.asked()[1])
        expect(desk.sent("tools/call"), "the call did not reach the server")
        expect(not notices(desk), "the result came with the call")
        until("the words of the second turn", lambda: "Igoonmeanwhile." in sitting.words(), sitting)
        until("the notice that wakes the model", lambda: notices(desk), sitting)
        until("the words of the third turn", lambda: "Iheardtheresult." in sitting.words(), sitting)
    return text_of(at_once[-1]["content"]), notices(desk)[-1]


def offered(desk):
    (first, *_) = desk.sent("server/discover") or desk.sent("initialize") or [{}]
    return first.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities") or first.get("capabilities") or {}


def a_review_in_the_background(claude, server):
    script = [call("mcp__supervisor__review", {"project_root": "${cwd}", "files": ["shop.py"]}), say("I go on meanwhile."), say("I heard the result.")]
    with TerminalDesk(claude, server, script, [REVIEW]) as desk:
        desk.write("shop.py", "def one():\n    return 1\n")
        at_once, notice = in_the_background(desk, "Review shop.py.")
        print(f"    the client offers {json.dumps(offered(desk))}", flush=True)
        expect(EXTENSION in offered(desk).get("extensions", {}), f"tasks are not offered: {offered(desk)}")
        expect("moved to the background" in at_once, f"the model was told: {at_once}")
        expect("<status>completed</status>" in notice and '"verified":' in notice, f"the model was woken with: {notice}")
        asked = len(desk.sent("tasks/get"))
        expect(asked >= 2, f"tasks/get was sent {asked} times")
        print(f"    the client asked {asked} times; the model was woken with {len(notice)} characters", flush=True)


def a_cycle_in_the_background(claude, server):
    answers = [{"edits": [{"path": "test_shop.py", "operation": "create", "content": TEST}], "notes": "red"},
               {"edits": [{"path": "shop.py", "operation": "replace", "content": ADDED}], "notes": "green"}]
    arguments = {"project_root": "${cwd}", "criteria": ["add(a, b) gives the sum of two numbers"], "test_cmd": "python3 -m unittest -v"}
    script = [call("mcp__supervisor__tdd", arguments), say("I go on meanwhile."), say("I heard the result.")]
    with TerminalDesk(claude, server, script, answers) as desk:
        desk.write("shop.py", "def add(a, b):\n    return 0\n")
        _, notice = in_the_background(desk, "Build add.")
        expect("<status>completed</status>" in notice and '"status":"pass"' in notice, f"the model was woken with: {notice}")
        expect(desk.read("shop.py") == ADDED and desk.read("test_shop.py") == TEST, "the accepted work is not in the project")


def asked_again_after_resume(claude, server):
    """The terminal is closed while the job runs. The record says so, and the resumed client is told."""
    script = [call("mcp__supervisor__review", {"project_root": "${cwd}", "files": ["shop.py"]}), say("I go on meanwhile."), say("I heard the result.")]
    with TerminalDesk(claude, server, script, [REVIEW]) as desk:
        desk.write("shop.py", "def one():\n    return 1\n")
        with desk.sit_down() as sitting:
            until("the prompt", lambda: "❯" in sitting.words() and desk.sent("tools/list"), sitting)
            sitting.type("Review shop.py.")
            until("the words of the second turn", lambda: "Igoonmeanwhile." in sitting.words(), sitting)
        before = len(desk.sent("tasks/get"))
        with desk.sit_down("--continue") as sitting:
            until("the question after the resume", lambda: len(desk.sent("tasks/get")) > before, sitting)
            until("the notice after the resume", lambda: notices(desk), sitting)
        # Stopped with its server, or finished just before.
        expect(re.search("<status>(failed|completed)</status>", notices(desk)[-1]), f"the model was woken with: {notices(desk)[-1]}")


def main():
    claude, server = sys.argv[1:3]
    step("terminal: a review goes to the background and its result wakes the model", lambda: a_review_in_the_background(claude, server))
    step("terminal: a whole cycle goes to the background, and its accepted work is in the project", lambda: a_cycle_in_the_background(claude, server))
    step("terminal: after a closed terminal and --continue the client asks for its job again", lambda: asked_again_after_resume(claude, server))


if __name__ == "__main__":
    main()
