#!/usr/bin/env python3
"""A newcomer's first minutes, typed and written down: `first_run.py REPOSITORY CLAUDE TRANSCRIPT`.

A fresh clone, a home with nothing in it, an environment made from nothing but the Rust toolchain. First what needs only
Rust: the README's commands, and the mistakes people make. Then Claude Code against a scripted API on loopback: the
registration, and a `tdd_green` call that goes through it to a worker which is Claude Code too.
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
MENDED = "    cents - cents * percent / 100\n"
TEST = ("#[test]\nfn ten_percent_off_two_euros_is_one_eighty() {\n    assert_eq!(shop::discounted(200, 10), 180);\n}\n\n"
        "#[test]\nfn nothing_off_is_the_price() {\n    assert_eq!(shop::discounted(200, 0), 200);\n}\n")
SETTINGS = '''# Claude alone, through the scripted API
[skills.tdd]
chain = ["claude-sonnet-4-6"]

[backends.claude]
env_pass = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]
'''
ASKED = "Use supervisor to make the failing test in tests/price.rs pass."


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


def with_claude_code(person, claude):
    person.note("The same machine with Claude Code, against a scripted API. Registration first.")
    os.symlink(claude, os.path.join(person.home, ".cargo/bin/claude"))
    person.here = os.path.join(person.home, "shop")
    for path, text in (("Cargo.toml", MANIFEST), ("src/lib.rs", LIB), ("tests/price.rs", TEST), (".gitignore", "target\n")):
        person.write(path, text)
    worker = [call("Read", {"file_path": "${cwd}/src/lib.rs"}),
              call("Edit", {"file_path": "${cwd}/src/lib.rs", "old_string": "    cents - percent\n", "new_string": MENDED}),
              structured({"notes": "the discount is a share of the price"})]
    script = [{"when": re.escape(ASKED), "steps": [
                  call("mcp__supervisor__tdd_green", {"project_root": person.here, "test_path": "tests/price.rs"}),
                  say("The test passes now, and the server ran it itself. src/lib.rs took the percent off as cents; it takes a share of the price now.")]},
              {"when": "phase: green", "steps": worker},
              {"steps": [say("ok")]}]
    with ScriptedApi(script) as api:
        person.env.update({"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "not-a-key", "IS_SANDBOX": "1",
                           "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
                           "MCP_CONNECTION_NONBLOCKING": "0", "CLAUDE_CODE_MAX_RETRIES": "1"})
        person.type("claude mcp add supervisor -- supervisor")
        listed = person.type("claude mcp list")
        expect("supervisor" in listed and "Connected" in listed, listed)
        person.note("A file of one's own, with just the keys to change.")
        person.write(os.path.join(person.home, ".config/supervisor/models.toml"), SETTINGS)
        person.type("cat ~/.config/supervisor/models.toml", "cat", os.path.join(person.home, ".config/supervisor/models.toml"))
        person.type("supervisor explain tdd_green")
        person.note("A project with a failing test.")
        for line in ("git init --quiet", "git add .", "git -c user.name=you -c user.email=you@example.org commit --quiet -m begun"):
            subprocess.run(line.split(), cwd=person.here, env=person.env, check=True)
        person.type("cat src/lib.rs tests/price.rs")
        person.type(f'claude --print "{ASKED}" --allowedTools mcp__supervisor', "claude", "--print", ASKED, "--allowedTools", "mcp__supervisor")
        shown = [tool_results(body) for body in api.conversations()]
        shown = next((results for results in shown if results and '"skill":"tdd_green"' in text_of(results[-1]["content"]).replace(" ", "")), None)
        expect(shown, "no result of tdd_green reached the model")
        result = json.loads(text_of(shown[-1]["content"]))
        expect(result["status"] == "pass" and result["verified"], result)
        person.note("What the server answered, as the model in Claude Code saw it.")
        person.transcript.append("\n" + person.masked(json.dumps(result, indent=2, ensure_ascii=False)) + "\n")
        person.note("And what is true.")
        person.type("git diff")
        person.type("cargo test --quiet")
        person.type("supervisor stats")


def main():
    repository, claude, path = sys.argv[1:4]
    transcript = ["The first minutes with supervisor, as a new user types them. Made again by `tests/interop/first_run`.\n"
                  "Paths, times and random names are masked; what a build prints is left out.\n"]
    with tempfile.TemporaryDirectory(prefix="first-run-") as room:
        person = Person(os.path.realpath(room), transcript)
        done = step("first run: the README's commands on a clean clone with nothing but Rust", lambda: with_rust_alone(person, repository))
        if done:
            step("first run: registered with Claude Code, `tdd_green` through it", lambda: with_claude_code(person, claude))
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(transcript))


if __name__ == "__main__":
    main()
