#!/usr/bin/env python3
"""Piped JSON-RPC, as a shell script would do it: what the other clients are compared with. Standard library only."""
import json
import subprocess
import sys

from steps import expect, step


def talk(program, messages):
    text = "".join(json.dumps(message) + "\n" for message in messages)
    done = subprocess.run([program], input=text, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def tools(program):
    """What the server lists."""
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}}
    code, replies = talk(program, [initialize, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}])
    expect(code == 0, f"exit code {code}")
    return next(reply for reply in replies if reply["id"] == 2)["result"]["tools"]


def main():
    program = sys.argv[1]
    step("raw: initialize and tools/list by pipe, exit code 0", lambda: tools(program))


if __name__ == "__main__":
    main()
