//! What misbehaves and how: a gateway that serves models, an agent program, a test command. Each table holds honest rows
//! too, so that a campaign in which nothing is ever accepted shows that it tests nothing.

use serde_json::{Value, json};

use supervisor_test_support::loopback::{Do, http};
use supervisor_test_support::upstream::completion;

/// Stands in the server's environment, in a file of the project and in the home directory; never in a log or a reply.
pub(super) const CANARY: &str = "sk-canary-5b1f0e77c2d94a6e";

/// One way in which the gateway answers.
pub(super) struct GatewayFault {
    pub(super) name: &'static str,
    pub(super) answer: fn() -> Do,
}

/// One way in which a program behaves, as a shell script. `$outside` and `$state` are directories.
pub(super) struct ScriptFault {
    pub(super) name: &'static str,
    pub(super) script: &'static str,
}

const RIGHT: &str = "answer = 42\n";

fn edit(path: &str, content: &str) -> String {
    json!({"edits": [{"path": path, "action": "replace", "content": content}]}).to_string()
}

fn said(text: &str) -> Do {
    Do::Json(200, completion(text).to_string())
}

/// The right answer in an envelope that was changed.
fn right_but(change: impl Fn(&mut Value)) -> Do {
    let mut body = completion(&edit("code.py", RIGHT));
    change(&mut body);
    Do::Json(200, body.to_string())
}

fn refused(status: u16, header: &str, message: &str) -> Do {
    let body =
        json!({"error": {"message": message, "type": "x", "code": status.to_string()}}).to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\n{header}content-type: application/json\r\nconnection: close\r\n"
    );
    Do::Raw(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

pub(super) static GATEWAY: &[GatewayFault] = &[
    GatewayFault {
        name: "right",
        answer: || said(&edit("code.py", RIGHT)),
    },
    GatewayFault {
        name: "wrong",
        answer: || said(&edit("code.py", "answer = 43\n")),
    },
    GatewayFault {
        name: "status-400",
        answer: || refused(400, "", "context too long: 9000 > 4096"),
    },
    GatewayFault {
        name: "status-401",
        answer: || refused(401, "", &format!("the key {CANARY} is not known")),
    },
    GatewayFault {
        name: "status-404",
        answer: || refused(404, "", "no such model"),
    },
    GatewayFault {
        name: "status-408",
        answer: || refused(408, "", "timeout"),
    },
    GatewayFault {
        name: "status-429",
        answer: || refused(429, "retry-after: 86400\r\n", "slow down"),
    },
    GatewayFault {
        name: "status-500",
        answer: || refused(500, "", "boom"),
    },
    GatewayFault {
        name: "status-503",
        answer: || refused(503, "retry-after: soon\r\n", "overloaded"),
    },
    GatewayFault {
        name: "redirect",
        answer: || refused(302, "location: http://127.0.0.1:1/\r\n", "elsewhere"),
    },
    GatewayFault {
        name: "page",
        answer: || Do::Raw(http(200, "text/html", "<!doctype html><title>hi</title>")),
    },
    GatewayFault {
        name: "malformed",
        answer: || Do::Json(200, r#"{"choices": [{"message": "#.into()),
    },
    GatewayFault {
        name: "not-utf8",
        answer: || Do::Raw(bytes_of(b"{\"choices\":\xff\x00\xfe}")),
    },
    GatewayFault {
        name: "deep",
        answer: || Do::Json(200, "[".repeat(200_000)),
    },
    GatewayFault {
        name: "wrong-types",
        answer: || right_but(|b| b["choices"] = json!({"0": [1, null]})),
    },
    GatewayFault {
        name: "no-choices",
        answer: || right_but(|b| b["choices"] = json!([])),
    },
    GatewayFault {
        name: "cut-short",
        answer: || right_but(|b| b["choices"][0]["finish_reason"] = json!("length")),
    },
    GatewayFault {
        name: "event-stream",
        answer: event_stream,
    },
    GatewayFault {
        name: "truncated",
        answer: || Do::Raw(truncated()),
    },
    GatewayFault {
        name: "closed",
        answer: || Do::Close,
    },
    GatewayFault {
        name: "reset",
        answer: || Do::Reset,
    },
    GatewayFault {
        name: "silent",
        answer: || Do::Stall(vec![]),
    },
    GatewayFault {
        name: "stalls-in-the-body",
        answer: || Do::Stall(truncated()),
    },
    GatewayFault {
        name: "flood",
        answer: || Do::Flood,
    },
    GatewayFault {
        name: "huge-content",
        answer: || said(&edit("code.py", &"x = 1\n".repeat(1_000_000))),
    },
    GatewayFault {
        name: "negative-usage",
        answer: || right_but(|b| b["usage"]["prompt_tokens"] = json!(-5)),
    },
    GatewayFault {
        name: "absurd-usage",
        answer: || {
            right_but(|b| b["usage"] = json!({"prompt_tokens": 1e300, "completion_tokens": "many"}))
        },
    },
    GatewayFault {
        name: "key-in-content",
        answer: || said(&edit("code.py", &format!("{RIGHT}key = '{CANARY}'\n"))),
    },
    GatewayFault {
        name: "edits-outside",
        answer: || said(&edit("../outside/victim", "written")),
    },
    GatewayFault {
        name: "edits-a-hook",
        answer: || said(&edit(".git/hooks/pre-commit", "touch /tmp/x\n")),
    },
    GatewayFault {
        name: "edits-the-test",
        answer: || said(&edit("check.sh", "exit 0\n")),
    },
    GatewayFault {
        name: "escapes",
        answer: || said("\u{1b}]0;x\u{7}\u{1b}[2J\u{0}\u{202e} no edits"),
    },
];

fn bytes_of(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn truncated() -> Vec<u8> {
    let whole = http(
        200,
        "application/json",
        &completion(&edit("code.py", RIGHT)).to_string(),
    );
    whole[..whole.len() - 60].to_vec()
}

fn event_stream() -> Do {
    let part = json!({"choices": [{"index": 0, "delta": {"content": edit("code.py", RIGHT)}}]});
    Do::Raw(http(
        200,
        "text/event-stream",
        &format!("data: {part}\n\ndata: [DONE]\n\n"),
    ))
}

const AGENT_RIGHT: &str = "echo 'answer = 42' > code.py; cat \"$here/out\"";

/// Prompt on stdin, result on stdout, edits in the current directory.
pub(super) static AGENT: &[ScriptFault] = &[
    ScriptFault { name: "right", script: AGENT_RIGHT },
    ScriptFault { name: "right-too", script: AGENT_RIGHT },
    ScriptFault { name: "wrong", script: "echo 'answer = 43' > code.py; cat \"$here/out\"" },
    ScriptFault { name: "nothing", script: "cat \"$here/out\"" },
    ScriptFault { name: "crash", script: "echo 'answer = 42' > code.py; kill -9 $$" },
    ScriptFault { name: "exit-1", script: "echo 'answer = 42' > code.py; cat \"$here/out\"; exit 1" },
    ScriptFault { name: "garbage", script: "echo 'answer = 42' > code.py; head -c 100000 /dev/urandom" },
    ScriptFault { name: "half-a-result", script: "echo x > new.txt; head -c 300 \"$here/out\"" },
    ScriptFault { name: "flood", script: "yes '{\"type\":\"user\"}' | head -c 30000000; cat \"$here/out\"" },
    ScriptFault { name: "flood-of-empty-lines", script: "yes '' | head -c 30000000; cat \"$here/out\"" },
    ScriptFault { name: "hang", script: "echo 'answer = 42' > code.py; echo x > new.txt; sleep 1000" },
    ScriptFault { name: "deaf-hang", script: "trap '' INT TERM HUP; echo x > new.txt; while :; do sleep 1000; done" },
    ScriptFault {
        name: "daemon",
        script: "setsid sh -c 'trap \"\" INT TERM; while :; do echo late > code.py; sleep 0.02; done' >/dev/null 2>&1 &
                 (setsid sleep 1000 &) ; echo 'answer = 42' > code.py; cat \"$here/out\"",
    },
    ScriptFault {
        name: "writes-outside",
        script: "echo x > \"$outside/victim\"; echo x > \"$HOME/.bashrc\"; echo x > \"$HOME/new\"
                 rm -rf \"$outside/kept\"; echo 'answer = 42' > code.py; cat \"$here/out\"",
    },
    ScriptFault {
        name: "writes-by-link",
        script: "ln -s \"$outside\" door; echo x > door/victim; echo x > door/new; ln \"$outside/victim\" hard && echo x > hard
                 echo 'answer = 42' > code.py; cat \"$here/out\"",
    },
    ScriptFault {
        name: "links-the-code",
        script: "cp code.py \"$outside/code.py\"; rm code.py; ln -s \"$outside/victim\" code.py; cat \"$here/out\"",
    },
    ScriptFault { name: "sparse", script: "truncate -s 2G big.bin; echo 'answer = 42' > code.py; cat \"$here/out\"" },
    ScriptFault { name: "sparse-code", script: "truncate -s 2G code.py; cat \"$here/out\"" },
    ScriptFault {
        name: "names-not-utf8",
        script: "echo x > \"$(printf 'n\\377me')\"; echo x > \"$(printf 'a\\nb')\"; echo 'answer = 42' > code.py; cat \"$here/out\"",
    },
    ScriptFault { name: "deletes", script: "rm -rf ./* .env .git; cat \"$here/out\"" },
    ScriptFault { name: "many-files", script: "mkdir d; seq 2000 | (cd d; xargs touch); cat \"$here/out\"" },
    ScriptFault {
        name: "special-files",
        script: "mkfifo pipe; mkdir -m 0 closed; ln -s loop loop; echo 'answer = 42' > code.py; cat \"$here/out\"",
    },
    ScriptFault {
        name: "escapes",
        script: "printf 'answer = 42 # \\033[2J\\033]0;x\\007\\000\\n' > code.py; printf '\\033[2J\\000' >&2; cat \"$here/out\"",
    },
    ScriptFault {
        name: "hooks",
        script: "mkdir -p .git/hooks .claude .vscode; echo 'touch hooked' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit
                 git config core.fsmonitor 'touch hooked'; echo '{}' > .claude/settings.json; echo '{}' > .vscode/tasks.json
                 echo 'answer = 42' > code.py; cat \"$here/out\"",
    },
    ScriptFault { name: "edits-the-test", script: "echo 'exit 0' > check.sh; cat \"$here/out\"" },
    ScriptFault {
        name: "attacks-the-state",
        script: "rm -rf \"$state\"/*; echo forged >> \"$state/sessions/x.jsonl\"; echo 'answer = 42' > code.py; cat \"$here/out\"",
    },
    ScriptFault {
        name: "tells-secrets",
        script: "env >&2; cat .env \"$HOME/.ssh/id\" >&2; cat .env > notes.txt; echo 'answer = 42' > code.py; exit 3",
    },
];

const JUDGE: &str = "grep -q 'answer = 42' code.py";

/// Run once before a model is asked, when `code.py` says 41. Those without `before` behave then, too.
pub(super) static TESTS: &[ScriptFault] = &[
    ScriptFault { name: "judges", script: JUDGE },
    ScriptFault { name: "judges-too", script: JUDGE },
    ScriptFault { name: "writes-when-judging", script: "$before; echo x > first.txt; exit 0" },
    ScriptFault { name: "fails", script: "echo '1 failed'; exit 1" },
    ScriptFault { name: "passes", script: "exit 0" },
    ScriptFault { name: "hangs", script: "$before; sleep 1000" },
    ScriptFault { name: "hangs-at-once", script: "sleep 1000" },
    ScriptFault { name: "deaf-hang", script: "$before; trap '' INT TERM HUP; while :; do sleep 1000; done" },
    ScriptFault { name: "floods", script: "yes 'a line of output' | head -c 30000000; grep -q 'answer = 42' code.py" },
    ScriptFault {
        name: "forks-away",
        script:
            "setsid sh -c 'trap \"\" INT TERM; while :; do echo late > late.txt; sleep 0.02; done' >/dev/null 2>&1 &
                 (setsid sleep 1000 &) ; grep -q 'answer = 42' code.py",
    },
    ScriptFault { name: "holds-the-pipe", script: "setsid sleep 1000 & grep -q 'answer = 42' code.py" },
    ScriptFault { name: "writes-source", script: "$before; echo 'answer = 44' > code.py; echo x > made.py; exit 0" },
    ScriptFault { name: "writes-source-at-once", script: "echo x > made.py; grep -q 'answer = 42' code.py" },
    ScriptFault {
        name: "writes-outside",
        script: "echo x > \"$outside/victim\"; echo x > \"$HOME/.bashrc\"; echo x > ../escaped; grep -q 'answer = 42' code.py",
    },
    ScriptFault { name: "not-found", script: "$before; exec no-such-program" },
    ScriptFault { name: "not-found-at-once", script: "exit 127" },
    ScriptFault { name: "killed", script: "$before; kill -9 $$" },
    ScriptFault { name: "deletes", script: "$before; rm -rf ./* .env; exit 0" },
    ScriptFault { name: "sparse", script: "$before; truncate -s 2G big.bin; exit 0" },
    ScriptFault { name: "names-not-utf8", script: "echo x > \"$(printf 'n\\377me')\"; grep -q 'answer = 42' code.py" },
    ScriptFault {
        name: "escapes",
        script: "printf '\\033[2J\\033]0;x\\007\\000\\377\\n'; grep -q 'answer = 42' code.py",
    },
    ScriptFault { name: "tells-secrets", script: "env; cat .env \"$HOME/.ssh/id\"; grep -q 'answer = 42' code.py" },
];

/// In a test script: nothing but a failure, unless the code was changed.
pub(super) const BEFORE: &str =
    "if grep -q 'answer = 41' code.py; then echo '1 failed'; exit 1; fi";
