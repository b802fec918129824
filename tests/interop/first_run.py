#!/usr/bin/env python3
"""A newcomer's first minutes, typed and written down: `first_run.py REPOSITORY CLAUDE TRANSCRIPT`.

A fresh clone, a home with nothing in it, an environment made from nothing but the Rust toolchain. First what needs only
Rust: the README's commands, and the mistakes people make. Then Claude Code against a scripted API on loopback: the plugin is
installed from the clone, and `/tdd` goes through it to workers which are Claude Code too. Last, the npm packages.
Everything that was said is in the transcript, also what went wrong; paths, times and names made at random are masked so
that two transcripts can be compared. Standard library only.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

from scripted_api import ScriptedApi, call, say, structured, tool_results, text_of
from steps import expect, step

MANIFEST = '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n'
LIB = "/// The price in cents after a discount in percent.\npub fn discounted(cents: u32, percent: u32) -> u32 {\n    cents - percent\n}\n"
FIXED = "    cents - cents * percent / 100\n"
OLD = "#[test]\nfn nothing_off_is_the_price() {\n    assert_eq!(shop::discounted(200, 0), 200);\n}\n"
RED = OLD + "\n#[test]\nfn ten_percent_off_two_euros_is_one_eighty() {\n    assert_eq!(shop::discounted(200, 10), 180);\n}\n"
CRITERION = "discounted(200, 10) is 180: ten percent off two euros"
CORE = ("tdd", "tdd_red", "tdd_green", "tdd_refactor", "review", "debug")
# What the model of the client is shown of an ordinary result; it is paid for in every later turn.
SMALL = 1536


class Person:
    """Somebody at a prompt whose whole world is one directory."""

    def __init__(self, room, transcript):
        self.room, self.transcript = room, transcript
        self.home = os.path.join(room, "home")
        self.here = self.home
        os.makedirs(self.home)
        inherited = {name: os.environ[name] for name in ("RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_TARGET_DIR") if name in os.environ}
        inherited.setdefault("RUSTUP_HOME", os.path.expanduser("~/.rustup"))
        registry = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
        tools = os.path.dirname(shutil.which("cargo") or "/usr/bin/cargo")
        self.env = {**inherited, "HOME": self.home, "CARGO_HOME": registry, "CARGO_INSTALL_ROOT": os.path.join(self.home, ".cargo"),
                    "PATH": os.pathsep.join([os.path.join(self.home, ".cargo/bin"), tools, "/usr/local/bin:/usr/bin:/bin"]),
                    "LANG": "C.UTF-8", "TERM": "dumb", "TMPDIR": os.path.join(room, "tmp")}
        os.makedirs(self.env["TMPDIR"])

    def note(self, words):
        self.transcript.append("\n" + textwrap.fill(words, 100, initial_indent="# ", subsequent_indent="# ") + "\n")

    def type(self, line, *argv, code=0):
        """Runs what the line says and writes down what it said; gives the output."""
        done = subprocess.run(list(argv) or line.split(), cwd=self.here, env=self.env, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1500, check=False)
        said = self.masked(done.stdout)
        where = self.masked(self.here)
        ended = "" if done.returncode == 0 else f"[exit code {done.returncode}]\n"
        self.transcript.append(f"\n{where}$ {line}\n{said}{ended}")
        expect(done.returncode == code, f"`{line}` ended with {done.returncode}: {said[-800:]}")
        return done.stdout

    def write(self, path, text):
        path = os.path.join(self.here, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def masked(self, text):
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
        text = text.replace(self.home, "~").replace(os.path.realpath(self.home), "~")
        text = text.replace(self.env.get("CARGO_TARGET_DIR", "\0"), "~/supervisor/target").replace(self.room, "/tmp/…").replace(self.env["CARGO_HOME"], "~/.cargo")
        # What a build prints differs with what is in its cache.
        text = re.sub(r"(?m)^ +(Compiling|Downloading|Downloaded|Updating|Locking|Adding|Fresh|Blocking|Replacing|Replaced|Installing|Installed|Finished)\b.*\n", "", text)
        text = re.sub(r"demo-[0-9a-f]{8}\b", "demo-ID", text)
        text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
        text = re.sub(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z?", "TIME", text)
        text = re.sub(r"\b\d+(\.\d+)? ?(ms|s)\b", r"N \2", text)
        text = re.sub(r'("(?:duration|generate|verify)_ms"): *\d+', r"\1: N", text)
        text = re.sub(r"\b\d{8}T\d{6}\.\d+Z-[0-9a-f]+\b|\b[0-9a-f]{16,}\b", "ID", text)
        text = re.sub(r"\b20\d\d-\d\d-\d\d\b", "DAY", text)
        return text


def with_rust_alone(person, repository):
    person.note("A clean clone and a home with nothing in it. There is no gateway, no key and no `claude`.")
    subprocess.run(["git", "clone", "--quiet", repository, os.path.join(person.home, "supervisor")], check=True)
    person.here = os.path.join(person.home, "supervisor")
    said = person.type("cargo run --release -- demo")
    expect("scripted" in said, "the demo does not say that its models are scripted")
    person.type("cargo install --path .")
    person.note("The settings that come with it name models that are not there yet.")
    person.type("supervisor doctor", code=1)
    person.note("Mistakes.")
    for line in ("supervisor cal", "supervisor call tdd_gren", "supervisor call tdd_green",
                 "supervisor call tdd_green --arg test_pth=tests/price.rs",
                 "supervisor call tdd_green --arg test_path=tests/price.rs --arg max_attempts=many"):
        person.type(line, code=2)


def with_the_plugin(person, claude):
    person.note("The same machine with Claude Code, against a scripted API. The plugin first, from the clone.")
    os.symlink(claude, os.path.join(person.home, ".cargo/bin/claude"))
    clone = person.here
    person.here = shop(person, "shop")
    with ScriptedApi(cycle(person.here, "mcp__plugin_supervisor_supervisor__", "Build this test first: ")) as api:
        person.env.update({"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "not-a-key", "IS_SANDBOX": "1",
                           "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
                           "MCP_CONNECTION_NONBLOCKING": "0", "CLAUDE_CODE_MAX_RETRIES": "1"})
        person.type("claude plugin marketplace add ~/supervisor", "claude", "plugin", "marketplace", "add", clone)
        person.type("claude plugin install supervisor@supervisor")
        listed = person.type("claude mcp list")
        expect("plugin:supervisor" in listed and "Connected" in listed, listed)
        person.note("Settings for what is there, found and written.")
        person.type("supervisor init --yes")
        # The address of the scripted API is nothing that a new user has; workers need it too.
        with open(os.path.join(person.home, ".config/supervisor/models.toml"), "a", encoding="utf-8") as file:
            file.write(settings_for_scripted_api(file.name))
        person.type("supervisor doctor")
        person.note("A project whose tests pass.")
        person.type("cat src/lib.rs tests/price.rs")
        asked = "/supervisor:tdd " + CRITERION
        person.type(f'claude --print "{asked}"', "claude", "--print", asked, "--allowedTools", "mcp__plugin_supervisor_supervisor")
        result = accepted(api.conversations(), "mcp__plugin_supervisor_supervisor__")
        person.note("What the server answered, as the model in Claude Code saw it.")
        person.transcript.append("\n" + person.masked(json.dumps(result, indent=2, ensure_ascii=False)) + "\n")
        person.note("And what is true.")
        person.type("git diff")
        person.type("cargo test --quiet")
        person.type("supervisor stats")


def shop(person, name):
    """A project whose tests pass, in a repository; its path."""
    here = os.path.join(person.home, name)
    for path, text in (("Cargo.toml", MANIFEST), ("src/lib.rs", LIB), ("tests/price.rs", OLD), (".gitignore", "target\n")):
        person.write(os.path.join(here, path), text)
    for line in ("git init --quiet", "git add .", "git -c user.name=you -c user.email=you@example.org commit --quiet -m begun"):
        subprocess.run(line.split(), cwd=here, env=person.env, check=True)
    return here


def cycle(project, tools, opening):
    """What the API plays: the caller hands the criterion to `tdd`, the workers write the test and then the code."""
    tests, code = "${cwd}/tests/price.rs", "${cwd}/src/lib.rs"
    return [{"when": opening + re.escape(CRITERION), "steps": [
                call(tools + "tdd", {"project_root": project, "criteria": [CRITERION]}),
                say("Done: a test for ten percent off failed first and passes now. src/lib.rs took the percent off as cents; it takes a share of the price now.")]},
            {"when": "phase: red", "steps": [
                call("Read", {"file_path": tests}), call("Write", {"file_path": tests, "content": RED}),
                structured({"notes": "ten percent off"})]},
            {"when": "phase: green", "steps": [
                call("Read", {"file_path": code}),
                call("Edit", {"file_path": code, "old_string": "    cents - percent\n", "new_string": FIXED}),
                structured({"notes": "the discount is a share of the price"})]},
            {"steps": [say("ok")]}]


def accepted(requests, tools):
    """The result of `tdd` as the model saw it: accepted and small, and the core tools were there from the first request on."""
    first = next(body for body in requests if CRITERION in json.dumps(body["messages"]) and body.get("tools"))
    offered = {tool["name"]: tool for tool in first["tools"]}
    for name in CORE:
        tool = offered.get(tools + name)
        expect(tool and tool["input_schema"].get("properties"), f"the schema of `{name}` is not in the first request: {sorted(offered)}")
    shown = [results for results in map(tool_results, requests) if results and '"skill":"tdd"' in text_of(results[-1]["content"])]
    expect(shown, "no result of tdd reached the model")
    told = text_of(shown[-1][-1]["content"])
    result = json.loads(told)
    expect(result["status"] == "pass" and result["verified"], result)
    expect(len(told.encode()) < SMALL, f"{len(told.encode())} bytes")
    return result


def settings_for_scripted_api(path):
    """`init` writes which variables reach the worker; the scripted API is one more."""
    with open(path, encoding="utf-8") as file:
        written = file.read()
    if "[backends.claude]" in written:
        return ""
    return '\n[backends.claude]\nenv_pass = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]\n'


def with_npx(person, repository, claude):
    person.note("From packed npm packages, in an empty directory. The program of the clone is no longer on the PATH.")
    packages = os.path.join(person.room, "packages")
    program = os.path.join(person.home, ".cargo/bin/supervisor")
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    platform = f"{os.uname().sysname.lower()}-{machine}"
    subprocess.run([os.path.join(repository, "npm/pack"), program, platform, packages], check=True, capture_output=True)
    wrapper, own = sorted(os.listdir(packages), key=lambda name: platform in name)
    person.here = os.path.join(person.home, "empty")
    os.makedirs(person.here)
    person.env["npm_config_update_notifier"] = "false"
    programs = os.path.join(person.home, "bin")
    os.makedirs(programs)
    os.symlink(claude, os.path.join(programs, "claude"))
    toolchain = [os.path.dirname(shutil.which(name)) for name in ("npm", "cargo")]
    person.env["PATH"] = os.pathsep.join([programs, *toolchain, "/usr/bin:/bin"])
    expect(shutil.which("supervisor", path=person.env["PATH"]) is None, "a program of ours is on the PATH")
    said = person.type(f"npx -y --package {wrapper} --package {own} supervisor-mcp --version", "npx", "-y", "--package",
                       os.path.join(packages, wrapper), "--package", os.path.join(packages, own), "supervisor-mcp", "--version")
    expect("supervisor " in said, said)
    person.note("Installed from the same packages, under the plugin, in another project.")
    prefix = os.path.join(person.home, "npm")
    # The platform's package is given as a file; a registry is not asked for the others.
    person.type(f"npm install --global --prefix ~/npm --silent --omit=optional {wrapper} {own}", "npm", "install", "--global",
                "--prefix", prefix, "--silent", "--omit=optional", os.path.join(packages, wrapper), os.path.join(packages, own))
    person.env["PATH"] = os.path.join(prefix, "bin") + os.pathsep + person.env["PATH"]
    person.here = shop(person, "second-shop")
    tools = "mcp__plugin_supervisor_supervisor__"
    with ScriptedApi(cycle(person.here, tools, "Build this test first: ")) as api:
        person.env["ANTHROPIC_BASE_URL"] = api.url
        asked = "/supervisor:tdd " + CRITERION
        person.type(f'claude --print "{asked}"', "claude", "--print", asked, "--allowedTools", tools[:-2])
        accepted(api.conversations(), tools)
    person.type("git diff --stat")


def main():
    repository, claude, path = sys.argv[1:4]
    transcript = ["The first minutes with supervisor, as a new user types them. Made again by `tests/interop/first_run`.\n"
                  "Paths, times and random names are masked; what a build prints is left out.\n"]
    with tempfile.TemporaryDirectory(prefix="first-run-") as room:
        person = Person(os.path.realpath(room), transcript)
        done = step("first run: the README's commands on a clean clone with nothing but Rust", lambda: with_rust_alone(person, repository))
        if done:
            step("first run: the plugin in Claude Code, `/tdd` is an accepted cycle", lambda: with_the_plugin(person, claude))
            step("first run: from packed npm packages, and a cycle through them", lambda: with_npx(person, repository, claude))
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(transcript))


if __name__ == "__main__":
    main()
