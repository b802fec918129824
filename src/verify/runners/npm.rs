//! `npm test`: whatever the script says. If its last command is a runner we know, that runner is asked for a report.

use std::path::Path;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::Value;

use super::super::command::{self, program, split_at_dashes};
use super::super::outcome::Outcome;
use super::super::report::Reporting;
use super::super::session::{Judgement, Session, exit_code};
use super::super::suite::{Ecosystem, Suite};
use super::generic::by_exit_code;
use super::{Runner, jest, mocha, node_test, vitest};
use crate::process::Finished;
use crate::words;

pub(super) static RUNNER: Runner = Runner {
    name: "npm",
    ecosystem: Some(Ecosystem::Node),
    manifests: &["package.json"],
    command: &["npm", "test"],
    recognises,
    run,
    only: |_, _| None,
};

/// A runner of JavaScript tests: how its report is asked for, on a command line or in a script.
pub(super) struct Tool {
    pub(super) recognises: fn(&[String]) -> bool,
    pub(super) reporting: Reporting,
    /// Arguments that make it write the report.
    pub(super) flags: fn(&Session<'_>) -> std::io::Result<Vec<String>>,
    /// Options are taken only before the first file, as `node` does; behind it they must come by `NODE_OPTIONS`.
    pub(super) options_first: bool,
}

static TOOLS: &[&Tool] = &[&node_test::TOOL, &vitest::TOOL, &jest::TOOL, &mocha::TOOL];

/// What `npm init` writes when nobody has said how to test.
const PLACEHOLDER: &str = "no test specified";

fn recognises(argv: &[String]) -> bool {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    program(argv) == "npm" && matches!(words[1..], ["test" | "t" | "tst", ..] | ["run" | "run-script", "test", ..])
}

fn run<'a>(suite: &'a Suite, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        let script = match script(session) {
            Ok(script) => script,
            Err(outcome) => return Judgement::not_run(outcome),
        };
        let command = last_command(&script);
        let Some(tool) = command.as_deref().and_then(|c| TOOLS.iter().find(|t| (t.recognises)(c))) else {
            let mut judgement = by_exit_code(suite, session).await;
            explain_npm(&mut judgement.outcome);
            return judgement;
        };
        let flags = match (tool.flags)(session) {
            Ok(flags) => flags,
            Err(error) => return Judgement::no_place(&error),
        };
        let (before, after) = split_at_dashes(suite.argv());
        let has_files = command.is_some_and(|c| c.iter().skip(1).any(|a| !a.starts_with('-'))) || !after.is_empty();
        let mut argv = before.to_vec();
        let mut env = vec![("npm_config_update_notifier", String::from("false"))];
        let by_environment = tool.options_first && has_files;
        if by_environment {
            let quoted: Vec<String> = flags.iter().map(|f| format!("\"{}\"", f.replace('"', "\\\""))).collect();
            env.push(("NODE_OPTIONS", quoted.join(" ")));
        }
        argv.push(String::from("--"));
        argv.extend_from_slice(after);
        argv.extend(flags.into_iter().filter(|_| !by_environment));
        let finished = session.run(&argv, &env).await;
        let mut judgement = tool.reporting.judge(session, &finished);
        if matches!(judgement.outcome, Outcome::Unclear { .. }) {
            explain_exit(&finished, &mut judgement.outcome);
        }
        explain_npm(&mut judgement.outcome);
        judgement
    }
    .boxed()
}

/// Runs a tool named on the command line itself.
pub(super) async fn run_tool(tool: &Tool, suite: &Suite, session: &Session<'_>) -> Judgement {
    let flags = match (tool.flags)(session) {
        Ok(flags) => flags,
        Err(error) => return Judgement::no_place(&error),
    };
    let mut argv = suite.argv().to_vec();
    if tool.options_first {
        let at = argv.iter().position(|a| program(std::slice::from_ref(a)) == "node").map_or(argv.len(), |at| at + 1);
        argv.splice(at..at, flags);
    } else {
        argv.extend(flags);
    }
    tool.reporting.run(session, &argv, &[]).await
}

/// The files that the script `test` starts, whoever runs it.
pub(super) fn scripts(argv: &[String], root: &Path) -> Vec<String> {
    if !["npm", "pnpm", "yarn", "bun"].contains(&program(argv)) {
        return Vec::new();
    }
    let text = std::fs::read_to_string(root.join("package.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_str(&text).unwrap_or_default();
    let script = manifest.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    let commands = script.split(['&', '|', ';', '\n']).filter_map(|command| shell_words::split(command).ok());
    commands.filter_map(|command| command::script(&command).map(str::to_owned)).collect()
}

/// The script, if there is one that tests anything.
fn script(session: &Session<'_>) -> Result<String, Outcome> {
    let cannot = |why: &str| Outcome::CouldNotRun {
        why: why.to_owned(),
        remedy: String::from("write `scripts.test` in package.json or name a `test_cmd`"),
    };
    let text = std::fs::read_to_string(session.root().join("package.json"))
        .map_err(|e| cannot(&format!("`package.json` cannot be read: {e}")))?;
    let manifest: Value =
        serde_json::from_str(&text).map_err(|e| cannot(&format!("`package.json` is not valid JSON: {e}")))?;
    match manifest.pointer("/scripts/test").and_then(Value::as_str) {
        None => Err(cannot("`package.json` has no script `test`")),
        Some(script) if script.contains(PLACEHOLDER) => {
            Err(cannot("the script `test` is the placeholder that `npm init` writes"))
        }
        Some(script) => Ok(script.to_owned()),
    }
}

/// npm puts further arguments behind the script, so they reach its last command. `None` if that is not a plain one.
fn last_command(script: &str) -> Option<Vec<String>> {
    if script.contains(['|', ';', '>', '<', '`', '\n']) || script.contains("$(") {
        return None;
    }
    let last = script.rsplit("&&").next()?;
    if last.contains('&') {
        return None;
    }
    shell_words::split(last).ok().filter(|c| !c.is_empty())
}

fn explain_exit(finished: &Finished, outcome: &mut Outcome) {
    let err = finished.stderr.text();
    let line = err.lines().find(|l| l.contains("ENOENT") || l.contains("bad option") || l.contains("Missing script"));
    if let Some(line) = line.filter(|_| exit_code(finished) != Some(0)) {
        let why = words::cut_end(&words::plain(line.trim()), 300).into_owned();
        *outcome = Outcome::CouldNotRun { why, remedy: String::new() };
    }
}

/// A program that is missing is usually one that `npm install` would bring.
fn explain_npm(outcome: &mut Outcome) {
    if let Outcome::CouldNotRun { remedy, why } = outcome
        && !why.contains("`npm` was not found")
    {
        *remedy = String::from("run `npm install`, correct `scripts.test` in package.json or name a `test_cmd`");
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

    #[test]
    fn it_knows_its_own_commands() {
        assert!(recognises(&argv("npm test")) && recognises(&argv("npm run test -- -x")) && recognises(&argv("npm t")));
        assert!(!recognises(&argv("npm install")) && !recognises(&argv("yarn test")));
    }

    #[test]
    fn only_a_plain_last_command_is_looked_at() {
        assert_eq!(last_command("tsc -b && node --test"), Some(argv("node --test")));
        assert_eq!(last_command("jest"), Some(argv("jest")));
        for script in ["jest | tee log", "a; b", "a & b", "x $(y)", "'", ""] {
            assert_eq!(last_command(script), None, "{script}");
        }
    }
}
