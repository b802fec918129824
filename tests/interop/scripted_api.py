#!/usr/bin/env python3
"""A Messages API that plays a script, for driving the real Claude Code CLI without an account or a network.

As a library:

    with ScriptedApi([call("mcp__supervisor__tier", {}), say("done")]) as api:
        ...run a client with ANTHROPIC_BASE_URL=api.url...
        api.conversations()          # bodies of the /v1/messages requests, in order

As a program: `scripted_api.py SCRIPT.json [--log FILE]` prints its address and serves until it is ended.

A script is a list of steps, or a list of scenes [{"when": REGEX, "steps": [...]}, ...]. A conversation plays the first
scene whose expression is found in its first user message (a scene without `when` fits all), each from its own beginning;
concurrent clients are told apart by their session header. One request takes one step, a retry too; the last step repeats.

A step is a dictionary with one of
    blocks      content blocks of the assistant's message; see say(), call() and structured()
    error       {"status": 429, "message": "...", "headers": {"retry-after": "600"}}
    hang_up     true: the connection is closed without a word
and any of
    wait        seconds before the first byte
    stall       seconds of silence in the middle of the stream
    stop_reason, usage, model     to differ from what is usual
In texts, ${cwd} is the directory the client says it works in, and ${last} is the text of the last tool result.
"""
import argparse
import json
import re
import string
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def say(text, **more):
    """The model says something and is done."""
    return {"blocks": [{"type": "text", "text": text}], **more}


def call(tool, arguments, **more):
    """The model calls a tool."""
    return {"blocks": [{"type": "tool_use", "name": tool, "input": arguments}], **more}


def structured(value, **more):
    """The model hands in the object a JSON schema asked for."""
    return call("StructuredOutput", value, **more)


def fail(status, message="scripted failure", **more):
    """The API refuses."""
    return {"error": {"status": status, "message": message, **more}}


def text_of(content):
    """The words in a message, whatever its shape."""
    if isinstance(content, str):
        return content
    words = []
    for block in content or []:
        if block.get("type") == "text":
            words.append(block.get("text", ""))
        elif block.get("type") == "tool_result":
            words.append(text_of(block.get("content")))
    return "\n".join(words)


def tool_results(body):
    """The tool results a request shows to the model, in order."""
    return [block for message in body.get("messages", []) if isinstance(message.get("content"), list)
            for block in message["content"] if block.get("type") == "tool_result"]


class Play:
    """Which step comes next, for every conversation apart."""

    def __init__(self, script):
        scenes = script if script and "steps" in script[0] else [{"steps": script}]
        self.scenes = [(re.compile(scene.get("when", ""), re.S), scene["steps"]) for scene in scenes]
        self.at, self.lock = {}, threading.Lock()

    def next(self, session, body):
        users = [message for message in body.get("messages", []) if message.get("role") == "user"]
        opening = text_of(users[0].get("content")) if users else ""
        for number, (when, steps) in enumerate(self.scenes):
            if when.search(opening):
                break
        else:
            return say(f"no scene fits: {opening[:200]}")
        with self.lock:
            position = self.at.get((session, number), 0)
            self.at[session, number] = position + 1
        step = steps[min(position, len(steps) - 1)]
        results = tool_results(body)
        told = re.search(r"(?:[Ww]orking directory|CWD): *([^\s\"<\\]+)", text_of(body.get("system", "")) + "\n" + opening)
        return fill(step, {"cwd": told.group(1) if told else ".", "last": text_of(results[-1]["content"]) if results else ""})


def fill(value, words):
    if isinstance(value, str):
        return string.Template(value).safe_substitute(words)
    if isinstance(value, list):
        return [fill(entry, words) for entry in value]
    if isinstance(value, dict):
        return {key: fill(entry, words) for key, entry in value.items()}
    return value


def message_for(step, body):
    blocks = [dict(block) for block in step.get("blocks", [])]
    for block in blocks:
        if block["type"] == "tool_use":
            block.setdefault("id", f"toolu_{uuid.uuid4().hex[:20]}")
    calls = any(block["type"] == "tool_use" for block in blocks)
    usage = {"input_tokens": 50, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {"id": f"msg_{uuid.uuid4().hex[:20]}", "type": "message", "role": "assistant",
            "model": step.get("model", body.get("model", "scripted")), "content": blocks,
            "stop_reason": step.get("stop_reason", "tool_use" if calls else "end_turn"), "stop_sequence": None,
            "usage": {**usage, **step.get("usage", {})}}


def stream(message):
    """The message as server-sent events; None marks the place where a stream may stall."""
    yield "message_start", {"message": {**message, "content": [], "stop_reason": None}}
    yield None, None
    for index, block in enumerate(message["content"]):
        if block["type"] == "tool_use":
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        yield "content_block_start", {"index": index, "content_block": empty}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    yield "message_delta", {"delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}, "usage": message["usage"]}
    yield "message_stop", {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.api.note(self, None)
        self.answer(404, {"type": "error", "error": {"type": "not_found_error", "message": self.path}})

    def do_HEAD(self):
        self.server.api.note(self, None)
        self.answer(200, {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        api, path = self.server.api, self.path.split("?")[0]
        api.note(self, body)
        if path.endswith("/count_tokens"):
            return self.answer(200, {"input_tokens": len(json.dumps(body)) // 4})
        if not path.endswith("/v1/messages"):
            return self.answer(404, {"type": "error", "error": {"type": "not_found_error", "message": self.path}})
        session = self.headers.get("x-claude-code-session-id") or json.dumps(body.get("metadata", {}))
        step = api.play.next(session, body)
        time.sleep(float(step.get("wait", 0)))
        if step.get("hang_up"):
            self.close_connection = True
            return self.connection.close()
        if "error" in step:
            error = step["error"]
            told = {"type": "error", "error": {"type": error.get("type", "api_error"), "message": error["message"]}}
            return self.answer(error["status"], told, error.get("headers"))
        message = message_for(step, body)
        if not body.get("stream"):
            return self.answer(200, message)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, data in stream(message):
            if name is None:
                time.sleep(float(step.get("stall", 0)))
                continue
            self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode())
            self.wfile.flush()

    def answer(self, status, value, headers=None):
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # a client that hangs up is no news
            super().handle_error(request, client_address)


class ScriptedApi:
    """Serves on a free port of the loopback until it is left."""

    def __init__(self, script, log=None):
        self.play, self.requests, self.lock = Play(script), [], threading.Lock()
        self.log = open(log, "a", encoding="utf-8") if log else None
        self.server = QuietServer(("127.0.0.1", 0), Handler)
        self.server.api = self
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        if self.log:
            self.log.close()

    def note(self, handler, body):
        # Neither keys nor cookies are written down.
        headers = {name.lower(): text for name, text in handler.headers.items()
                   if name.lower() not in ("authorization", "x-api-key", "cookie")}
        entry = {"method": handler.command, "path": handler.path, "headers": headers, "body": body}
        with self.lock:
            self.requests.append(entry)
            if self.log:
                self.log.write(json.dumps(entry) + "\n")
                self.log.flush()

    def conversations(self):
        with self.lock:
            return [entry["body"] for entry in self.requests
                    if entry["method"] == "POST" and entry["path"].split("?")[0].endswith("/v1/messages")]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("script")
    arguments.add_argument("--log")
    given = arguments.parse_args()
    with open(given.script, encoding="utf-8") as file:
        api = ScriptedApi(json.load(file), given.log)
    print(api.url, flush=True)
    api.server.serve_forever()


if __name__ == "__main__":
    main()
