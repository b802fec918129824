#!/usr/bin/env python3
"""Drives the server with the MCP Inspector's command line: `inspector.py INSPECTOR SERVER`."""
import json
import subprocess
import sys

from raw import tools
from steps import expect, step

inspector, server = sys.argv[1:3]


def run(*arguments):
    done = subprocess.run([inspector, "--cli", server, *arguments, "--format", "json"],
                          capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def answer(*arguments):
    code, out, err = run(*arguments)
    expect(code == 0, f"exit code {code}: {err or out}")
    return json.loads(out)["result"]


def lists(*era):
    names = [tool["name"] for tool in answer("--method", "tools/list", *era)["tools"]]
    expect(names == [tool["name"] for tool in tools(server)], f"listed {names}")


def call_tier():
    result = answer("--method", "tools/call", "--tool-name", "tier", "--tool-args-json", "{}")
    expect(result["structuredContent"]["status"] == "pass", result)
    expect(json.loads(result["content"][0]["text"]) == result["structuredContent"], "text and structure differ")


def wrong_argument():
    code, out, err = run("--method", "tools/call", "--tool-name", "tier", "--tool-args-json", '{"no_such_argument": 1}')
    expect(code == 5, f"exit code {code}")
    expect("no_such_argument" in out + err, "the argument is not named")


step("inspector: tools/list", lists)
step("inspector: tools/list, modern era", lambda: lists("--protocol-era", "modern"))
step("inspector: schemas are portable (--strict)", lambda: lists("--strict"))
if any(tool["name"] == "tier" for tool in tools(server)):
    step("inspector: tools/call tier", call_tier)
    step("inspector: a wrong argument is an error result that names it", wrong_argument)
else:
    print("SKIPPED: inspector: tools/call, because no tool is listed")
