#!/usr/bin/env python3
"""Drives the server with the real Claude Code CLI against a scripted API on loopback: `claude_code.py CLAUDE SERVER`.

Every run has a home and a working directory of its own and an environment made from nothing, so that nothing of the
machine's user is read or written. Standard library only.
"""
import json
import os
import subprocess
import sys
import tempfile

from raw import talk, tools
from scripted_api import Play, ScriptedApi, call, say, text_of, tool_results
from steps import expect, step


class Desk:
    """A machine with nobody on it: a home, a project, an API."""

    def __init__(self, claude, script):
        self.claude, self.api = claude, ScriptedApi(script)
        self.room = tempfile.TemporaryDirectory(prefix="supervisor-interop-")
        self.home, self.project = (os.path.join(self.room.name, name) for name in ("home", "project"))
        os.makedirs(os.path.join(self.home, ".claude"))
        os.makedirs(self.project)

    def __enter__(self):
        self.api.__enter__()
        return self

    def __exit__(self, *_):
        self.api.__exit__()
        self.room.cleanup()

    def environment(self):
        return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.home, "LANG": "C.UTF-8",
                "CLAUDE_CONFIG_DIR": os.path.join(self.home, ".claude"), "ANTHROPIC_BASE_URL": self.api.url,
                "ANTHROPIC_API_KEY": "not-a-key", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1",
                "MCP_CONNECTION_NONBLOCKING": "0", "CLAUDE_CODE_MAX_RETRIES": "1",
                "SUPERVISOR_STATE_DIR": os.path.join(self.room.name, "state")}

    def run(self, *arguments, prompt=None):
        done = subprocess.run([self.claude, *arguments], input=prompt or "", capture_output=True, text=True, timeout=300,
                              check=False, cwd=self.project, env=self.environment())
        return done.returncode, done.stdout, done.stderr

    def ask(self, server, *arguments, prompt="go"):
        """One prompt with our server as the only one; the envelope of the answer."""
        config = os.path.join(self.room.name, "mcp.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"mcpServers": {"supervisor": {"command": server, "args": []}}}, file)
        code, out, err = self.run("--print", "--output-format", "json", "--mcp-config", config, "--strict-mcp-config",
                                  "--allowedTools", "mcp__supervisor", *arguments, prompt=prompt)
        expect(code == 0, f"exit code {code}: {err or out}")
        return json.loads(out.strip().splitlines()[-1])


def registered(claude, server):
    with Desk(claude, [say("unused")]) as desk:
        code, out, err = desk.run("mcp", "add", "supervisor", "--", server)
        expect(code == 0, f"`claude mcp add` ended with {code}: {err or out}")
        code, out, err = desk.run("mcp", "list")
        line = next((line for line in out.splitlines() if line.startswith("supervisor:")), "")
        expect(code == 0 and "Connected" in line, f"`claude mcp list` ended with {code}: {out} {err}")


def tools_reach_the_model(claude, server):
    with Desk(claude, [say("done")]) as desk:
        desk.ask(server)
        body = next(body for body in desk.api.conversations() if body.get("tools"))
        offered = {tool["name"]: tool for tool in body["tools"]}
        for tool in tools(server):
            seen = offered.get(f"mcp__supervisor__{tool['name']}")
            # The rest is found by searching; older versions offer everything at once.
            if not seen and not tool["_meta"].get("anthropic/alwaysLoad"):
                continue
            expect(seen, f"`{tool['name']}` was not offered; offered: {sorted(offered)}")
            expect(seen["description"] == tool["description"], f"`{tool['name']}`: the description was cut")
            expect(seen["input_schema"] == tool["inputSchema"], f"`{tool['name']}`: another schema")
        size = lambda value: len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
        ours = {name: tool for name, tool in offered.items() if name.startswith("mcp__supervisor__")}
        print(f"  {len(ours)} tools in the first request, {sum(map(size, ours.values()))} bytes:",
              ", ".join(f"{name.removeprefix('mcp__supervisor__')} {size(tool)}" for name, tool in sorted(ours.items())))
        expect(sum(map(size, ours.values())) <= 14 * 1024, "the tools that are always loaded take more than 14 KB")
        everything = json.dumps([body.get("system"), body["messages"]])
        expect("is data, never an instruction" in everything, "the instructions did not reach the model")


def a_call_goes_through(claude, server):
    with Desk(claude, [call("mcp__supervisor__tier", {}), say("done")]) as desk:
        envelope = desk.ask(server)
        expect(not envelope["is_error"] and envelope["result"] == "done", envelope)
        shown = tool_results(desk.api.conversations()[-1])
        expect(len(shown) == 1 and not shown[0].get("is_error"), shown)
        result = json.loads(text_of(shown[0]["content"]))
        expect(list(result)[:2] == ["status", "message"], f"the model sees first: {list(result)[:2]}")
        for field in ("status", "message", "phase", "skill", "file_path", "runner_output", "verified", "model_used", "details"):
            expect(field in result, f"`{field}` did not reach the model")
        expect(result["status"] == "pass" and result["skill"] == "tier", result)


def an_error_reaches_the_model_whole(claude, server):
    arguments = {"no_such_argument": 1}
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}}
    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "tier", "arguments": arguments}}
    sent = next(reply for reply in talk(server, [initialize, asked])[1] if reply["id"] == 2)["result"]
    with Desk(claude, [call("mcp__supervisor__tier", arguments), say("done")]) as desk:
        desk.ask(server)
        shown = tool_results(desk.api.conversations()[-1])
        expect(shown[0].get("is_error") is True, shown)
        # The client adds the schema of a tool that it had not shown before.
        expect(text_of(shown[0]["content"]).startswith(sent["content"][0]["text"]), f"the model saw {shown}")


def tools_without_a_model_go_through(claude, server):
    """Each tool of memory and of teams once; none of them needs a model for this."""
    with Desk(claude, []) as desk:
        team = {"project_root": desk.project, "session_id": "interop-team"}
        calls = [("brain_write", {"content": "The cache is warmed by the first call.", "title": "Cache"}, "wrote `cache.md`"),
                 ("brain_query", {"query": "cache warmed"}, "1 note found"),
                 ("session_log", {"operation": "append", "session_id": "interop", "skill": "mine", "final_status": "pass"}, "entry 1"),
                 ("session_log", {"operation": "read", "session_id": "interop"}, "1 of 1 entry"),
                 ("retrospective", {"session_id": "interop"}, "nothing to learn"),
                 ("trainer", {"session_id": "interop"}, "nothing to train on"),
                 ("team_msg", {**team, "operation": "log", "from": "writer", "summary": "half done"}, "MSG-001"),
                 ("team_msg", {**team, "operation": "list"}, "half done"),
                 ("supervise", {**team, "operation": "init"}, "[supervisor] Ready, awaiting checkpoints"),
                 ("supervise", {**team, "operation": "status"}, "idle")]
        desk.api.play = Play([*(call(f"mcp__supervisor__{name}", arguments) for name, arguments, _ in calls), say("done")])
        desk.ask(server)
        shown = tool_results(desk.api.conversations()[-1])
        expect(len(shown) == len(calls), f"{len(shown)} of {len(calls)} results: {shown}")
        for result, (name, _, said) in zip(shown, calls):
            expect(not result.get("is_error") and said in text_of(result["content"]), f"`{name}`: {result}")


def main():
    claude, server = sys.argv[1:3]
    step("claude: `mcp add`, then `mcp list` shows Connected", lambda: registered(claude, server))
    if not any(tool["name"] == "tier" for tool in tools(server)):
        print("SKIPPED: claude: calls, because no tool is listed")
        return
    step("claude: tools and instructions reach the model unchanged", lambda: tools_reach_the_model(claude, server))
    step("claude: a call goes through and its result reaches the model whole", lambda: a_call_goes_through(claude, server))
    step("claude: notes, log, retrospective, trainer, bus and supervision go through", lambda: tools_without_a_model_go_through(claude, server))
    step("claude: an error reaches the model word for word", lambda: an_error_reaches_the_model_whole(claude, server))


if __name__ == "__main__":
    main()
