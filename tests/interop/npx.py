#!/usr/bin/env python3
"""The npm packages, packed here and started with `npx -y` in an empty directory: `npx.py SERVER REPOSITORY`."""
import json
import os
import re
import subprocess
import sys
import tempfile

from steps import expect, step

LIST = "".join(json.dumps(message) + "\n" for message in (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "npx", "version": "1"}}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))


def platform():
    system, machine = os.uname().sysname.lower(), os.uname().machine
    return f"{system}-{ {'x86_64': 'x64', 'aarch64': 'arm64'}.get(machine, machine) }"


def run(room, argv, given="", path=None):
    env = {**os.environ, "npm_config_cache": os.path.join(room, "cache"), "npm_config_update_notifier": "false"}
    if path:
        env["PATH"] = path
    empty = os.path.join(room, "empty")
    os.makedirs(empty, exist_ok=True)
    return subprocess.run(argv, cwd=empty, input=given, capture_output=True, text=True, timeout=300, check=False, env=env)


def packed(server, repository, room):
    out = os.path.join(room, "packages")
    done = run(room, [os.path.join(repository, "npm/pack"), server, platform(), out])
    expect(done.returncode == 0, done.stderr)
    wrapper = next(name for name in os.listdir(out) if name.startswith("supervisor-mcp-0") or name.startswith("supervisor-mcp-1"))
    own = next(name for name in os.listdir(out) if platform() in name)
    return os.path.join(out, wrapper), os.path.join(out, own)


def from_tarballs(server, repository, room):
    wrapper, own = packed(server, repository, room)
    npx = ["npx", "-y", "--package", wrapper, "--package", own, "supervisor-mcp"]
    done = run(room, npx, LIST)
    expect(done.returncode == 0 and '"name":"tdd"' in done.stdout, f"{done.returncode}: {done.stderr[-600:]}")
    done = run(room, [*npx, "call", "no_such_tool"])
    expect(done.returncode == 2, f"the exit code did not come back: {done.returncode}")


def from_path(server, repository, room):
    wrapper, _ = packed(server, repository, room)
    programs = os.path.join(room, "programs")
    os.makedirs(programs, exist_ok=True)
    os.symlink(server, os.path.join(programs, "supervisor"))
    npx = ["npx", "-y", "--package", wrapper, "supervisor-mcp", "--version"]
    done = run(room, npx, path=programs + os.pathsep + os.environ["PATH"])
    expect(done.returncode == 0 and done.stdout.startswith("supervisor "), f"{done.returncode}: {done.stderr[-600:]}")
    # No name of a registry: nobody knows whose package that is.
    done = run(room, npx)
    expect(done.returncode == 127 and "cargo install --path . --locked" in done.stderr, f"{done.returncode}: {done.stderr[-600:]}")
    expect(not re.search(r"cargo install (?!--path)|npx ", done.stderr), done.stderr[-600:])


def main():
    server, repository = sys.argv[1:3]
    with tempfile.TemporaryDirectory(prefix="supervisor-npx-") as room:
        step("npx: `npx -y` from packed tarballs lists the tools and gives the exit code back", lambda: from_tarballs(server, repository, room))
        step("npx: without the platform's package the program on the PATH, else a sentence", lambda: from_path(server, repository, room))


if __name__ == "__main__":
    main()
