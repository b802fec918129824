//! How `claude --print` was seen to end, and what must come of it.

use serde_json::{Value, json};
use supervisor_models::{FailureBlame, FailureCause};
use supervisor_test_support::agent::{result, run};

/// One ending, named after the row it was seen in.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) code: u8,
    pub(super) stdout: String,
    pub(super) stderr: &'static str,
    pub(super) ends: Ends,
}

pub(super) enum Ends {
    /// With a note that names this, unless empty.
    Answer(&'static str),
    /// With a message that names this.
    Fails(FailureCause, FailureBlame, &'static str),
}

fn without(result: &mut Value, key: &str) {
    result.as_object_mut().unwrap().remove(key);
}

/// Its API failed: called a success, with `is_error`.
fn api_error(status: &Value, said: &str) -> String {
    run(&result(|r| {
        r["is_error"] = json!(true);
        r["api_error_status"] = status.clone();
        r["result"] = json!(said);
        r["stop_reason"] = json!("stop_sequence");
        r["total_cost_usd"] = json!(0);
        r["modelUsage"] = json!({});
        r["num_turns"] = json!(1);
        without(r, "structured_output");
    }))
}

/// It gave up by itself: a subtype of its own, and no `result`.
fn gave_up(subtype: &str, turns: u64, errors: &[&str]) -> String {
    run(&result(|r| {
        r["subtype"] = json!(subtype);
        r["is_error"] = json!(true);
        r["num_turns"] = json!(turns);
        r["errors"] = json!(errors);
        for key in [
            "result",
            "api_error_status",
            "terminal_reason",
            "structured_output",
        ] {
            without(r, key);
        }
    }))
}

/// Eighteen rows; one with several cases has a line for each, named after a colon.
pub(super) fn rows() -> Vec<Row> {
    use Ends::{Answer, Fails};
    use FailureBlame::{Endpoint, Model, Neither};
    use FailureCause::{Budget, Incapable, Infra, Quota, Refused, Setup};
    let row = |name, code, stdout, stderr, ends| Row {
        name,
        code,
        stdout,
        stderr,
        ends,
    };
    let said = |name, stdout, ends| row(name, 1, stdout, "", ends);
    let api =
        |name, status: Value, text: &str, ends| row(name, 1, api_error(&status, text), "", ends);
    let empty = |name, code, stderr, ends| row(name, code, String::new(), stderr, ends);
    let no_answer = run(&result(|r| {
        r["result"] = json!("done");
        without(r, "structured_output");
    }));
    vec![
        row(
            "Finished",
            0,
            no_answer.clone(),
            "",
            Fails(Infra, Model, "structured answer"),
        ),
        row(
            "Finished with schema",
            0,
            run(&result(|_| ())),
            "",
            Answer(""),
        ),
        row(
            "Schema given, model never calls the tool",
            0,
            no_answer.clone(),
            "",
            Fails(Infra, Model, "structured answer"),
        ),
        said(
            "Schema given, always invalid",
            gave_up(
                "error_max_structured_output_retries",
                6,
                &["Failed to provide valid structured output after 5 attempts"],
            ),
            Fails(Infra, Model, "after 5 attempts"),
        ),
        row(
            "`--json-schema` is JSON but not a valid schema",
            0,
            no_answer,
            "",
            Fails(Infra, Model, "structured answer"),
        ),
        empty(
            "`--json-schema` not JSON",
            1,
            "Error: --json-schema is not valid JSON\n",
            Fails(Setup, Neither, "--json-schema is not valid JSON"),
        ),
        api(
            "API error: 400",
            json!(400),
            "API Error: 400 messages: bad",
            Fails(Incapable, Neither, "bad"),
        ),
        api(
            "API error: 400 too long",
            json!(400),
            "Prompt is too long",
            Fails(Incapable, Neither, "context"),
        ),
        api(
            "API error: 400 credit",
            json!(400),
            "Credit balance is too low",
            Fails(Quota, Endpoint, "credit"),
        ),
        api(
            "API error: 401",
            json!(401),
            "Failed to authenticate. API Error: 401",
            Fails(Setup, Neither, "api_key_env"),
        ),
        api(
            "API error: 403",
            json!(403),
            "API Error: 403 forbidden",
            Fails(Setup, Neither, "log in"),
        ),
        api(
            "API error: 404",
            json!(404),
            "There's an issue with the selected model",
            Fails(Setup, Neither, "models.\"claude-x\".id"),
        ),
        api(
            "API error: 413",
            json!(413),
            "Request too large",
            Fails(Incapable, Neither, "context"),
        ),
        api(
            "API error: 429",
            json!(429),
            "API Error: Request rejected (429)",
            Fails(Quota, Endpoint, "another backend"),
        ),
        api(
            "API error: 500",
            json!(500),
            "API Error: 500 boom",
            Fails(Infra, Model, "500"),
        ),
        api(
            "API error: 529",
            json!(529),
            "API Error: Repeated 529 Overloaded errors",
            Fails(Infra, Model, "529"),
        ),
        api(
            "API error: refused",
            Value::Null,
            "API Error: Unable to connect to API (ConnectionRefused)",
            Fails(Infra, Endpoint, "ConnectionRefused"),
        ),
        api(
            "API error: reset",
            Value::Null,
            "API Error: Unable to connect to API (ECONNRESET)",
            Fails(Infra, Endpoint, "ECONNRESET"),
        ),
        api(
            "API error: timeout",
            Value::Null,
            "API Error: Request timed out.",
            Fails(Infra, Endpoint, "timed out"),
        ),
        api(
            "API error: too long, seen without asking",
            Value::Null,
            "Prompt is too long",
            Fails(Incapable, Neither, "context"),
        ),
        api(
            "API error: plan used up",
            Value::Null,
            "Claude AI usage limit reached|1760000000",
            Fails(Quota, Endpoint, "usage limit"),
        ),
        said(
            "Model refusal",
            run(&result(|r| {
                r["is_error"] = json!(true);
                r["stop_reason"] = json!("refusal");
                r["result"] = json!("API Error: Claude Code is unable to respond to this request");
                without(r, "structured_output");
            })),
            Fails(Refused, Neither, "unable to respond"),
        ),
        api(
            "No credentials",
            Value::Null,
            "Not logged in · Please run /login",
            Fails(Setup, Neither, "run `claude` once and log in"),
        ),
        said(
            "`--max-turns N` reached",
            gave_up(
                "error_max_turns",
                61,
                &["Reached maximum number of turns (60)"],
            ),
            Fails(Incapable, Neither, "60 turns"),
        ),
        said(
            "`--max-budget-usd` reached",
            gave_up(
                "error_max_budget_usd",
                3,
                &["Reached maximum budget ($0.01)"],
            ),
            Fails(Budget, Neither, "budget_usd"),
        ),
        empty(
            "`--max-budget-usd 0`, `-1`, `abc`",
            1,
            "file:///cli.js:1\nvar a=1;function b(){}\n\nError: --max-budget-usd must be a positive number greater than 0\n    at c (file:///cli.js:2:3)\n",
            Fails(Setup, Neither, "must be a positive number"),
        ),
        row(
            "Prompt begins with `/`",
            0,
            run(&result(|r| {
                r["num_turns"] = json!(0);
                r["result"] = json!("Unknown command: /x");
                without(r, "structured_output");
            })),
            "",
            Fails(Infra, Neither, "Unknown command: /x"),
        ),
        empty(
            "Refused to start: empty prompt",
            1,
            "Error: Input must be provided either through stdin or as a prompt argument\n",
            Fails(Setup, Neither, "Input must"),
        ),
        empty(
            "Refused to start: unknown flag",
            1,
            "error: unknown option '--json-schema'\n",
            Fails(Setup, Neither, "update"),
        ),
        empty(
            "Refused to start: bad --mcp-config",
            1,
            "Error: Invalid MCP configuration\n",
            Fails(Setup, Neither, "MCP"),
        ),
        empty(
            "Refused to start: root without IS_SANDBOX",
            1,
            "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons\n",
            Fails(Setup, Neither, "root/sudo"),
        ),
        empty("Signal: SIGTERM", 143, "", Fails(Infra, Model, "signal 15")),
        empty("Signal: SIGHUP", 129, "", Fails(Infra, Model, "signal 1")),
        said(
            "SIGINT in a Bash call",
            gave_up("error_during_execution", 2, &["aborted"]),
            Fails(Infra, Model, "error_during_execution"),
        ),
        empty(
            "SIGINT while waiting for the API or an MCP tool",
            0,
            "",
            Fails(Infra, Model, "exit code 0 and no result"),
        ),
        row(
            "Permission denied to a tool",
            0,
            run(&result(|r| {
                r["permission_denials"] =
                    json!([{"tool_name": "Bash", "tool_use_id": "t", "tool_input": {}}]);
            })),
            "",
            Answer("1 tool call of the worker denied: Bash"),
        ),
    ]
}

/// False successes and other things that no table lists.
pub(super) fn more_rows() -> Vec<Row> {
    use Ends::{Answer, Fails};
    use FailureBlame::{Model, Neither};
    use FailureCause::{Infra, Quota, Setup};
    let good = run(&result(|_| ()));
    let row = |name, code, stdout: String, ends| Row {
        name,
        code,
        stdout,
        stderr: "",
        ends,
    };
    vec![
        row(
            "two results",
            0,
            format!("{good}{good}"),
            Fails(Infra, Model, "2 results"),
        ),
        row(
            "a good result and exit code 1",
            1,
            good.clone(),
            Fails(Infra, Model, "exit code 1"),
        ),
        row(
            "an answer that is a list",
            0,
            run(&result(|r| r["structured_output"] = json!([1]))),
            Fails(Infra, Model, "not an object"),
        ),
        row(
            "a result without is_error",
            0,
            run(&result(|r| without(r, "is_error"))),
            Fails(Infra, Model, "its result reports an error"),
        ),
        row(
            "an error without a status that speaks of the rate",
            1,
            api_error(
                &Value::Null,
                "API Error: This request would exceed your account's rate limit",
            ),
            Fails(Quota, FailureBlame::Endpoint, "rate limit"),
        ),
        row(
            "an error without a status that speaks of the load",
            1,
            api_error(&Value::Null, "API Error: Overloaded"),
            Fails(Infra, Model, "529"),
        ),
        row(
            "an error that says nothing we know",
            1,
            api_error(&Value::Null, "API Error: Unexpected token < in JSON"),
            Fails(Infra, Model, "Unexpected token"),
        ),
        row(
            "half a result",
            0,
            good[..good.len() - 30].to_owned(),
            Fails(Infra, Model, "no result"),
        ),
        row(
            "noise around the lines",
            0,
            format!("warning: x\n{good}\nbye\n"),
            Answer(""),
        ),
        row(
            "another model",
            0,
            run(&result(|r| {
                r["modelUsage"] = json!({"claude-y": {"outputTokens": 3}});
            })),
            Fails(Setup, Neither, "`claude-y` answered"),
        ),
        row(
            "a helper model beside it",
            0,
            run(&result(|r| {
                r["modelUsage"]["claude-small"] = json!({"outputTokens": 900});
            })),
            Answer(""),
        ),
        row(
            "killed",
            137,
            String::new(),
            Fails(Infra, Model, "signal 9"),
        ),
    ]
}
