//! `prove`: checks a change of the project with its own tests, whoever made it. It asks no model and changes no file.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use supervisor_engine::result::{CallResult, Status};
use supervisor_process::environment;
use supervisor_prove::{Comparand, MutantMode, ProveRequest, Report, Verdict, prove};
use supervisor_settings::Routing;
use supervisor_shadow::{RecordRequest, ShadowStore, record};
use supervisor_text::words;
use supervisor_verify::{RunEnvironment, TestSandbox};
use tokio_util::sync::CancellationToken;

use crate::common::filled;
use crate::{App, Call, Parameters};
use crate::{Reply, Tools};

/// Of each list in a reply; the rest is counted.
const MAX_LISTED: usize = 3;
const MAX_ITEM_BYTES: usize = 160;

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProveParams {
    /// Absolute path of the project
    pub project_root: String,
    /// Commit to compare with; default `HEAD`
    #[serde(default)]
    pub base: Option<String>,
    /// Prove this commit, not the files
    #[serde(default)]
    pub head: Option<String>,
    /// Tests or test files that must fail without the change
    #[serde(default)]
    pub tests: Vec<String>,
    /// Also change the new lines and see whether tests notice
    #[serde(default)]
    pub mutants: bool,
    /// Skip the base if no test fails
    #[serde(default)]
    pub fast: bool,
    /// Tests that the user allowed to change
    #[serde(default)]
    pub allow_test_change: Vec<String>,
    /// Command that runs the tests, if not the detected one
    #[serde(default)]
    pub test_cmd: Option<String>,
}

#[tool_router(router = prove_tool, vis = "pub")]
impl Tools {
    /// Call before saying that work is done: checks the uncommitted change, whoever made it. Runs the tests with and without it, names
    /// deleted or weakened tests, and changes expectations to see that tests can fail. fail: broken, or see `gaps`.
    #[tool(annotations(
        title = "Prove a change",
        read_only_hint = true,
        destructive_hint = false,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    async fn prove(&self, Parameters(params): Parameters<ProveParams>, call: Call) -> Reply {
        Reply(run(self.app(), &params, &call).await)
    }
}

/// How the tests of a proof run, with the sandbox and limits of the settings.
pub fn test_environment(app: &App, routing: &Routing) -> RunEnvironment {
    let keys: Vec<String> = routing
        .backends
        .values()
        .filter_map(|backend| backend.api_key_env.clone())
        .collect();
    RunEnvironment {
        launcher: app.sandboxed_launcher(routing),
        env: environment::tests(app.env().vars().clone(), &keys, &routing.env_pass),
        limit: routing.limits.tests,
        guard: None,
        sandbox: TestSandbox::default(),
    }
}

async fn run(app: &App, params: &ProveParams, call: &Call) -> CallResult {
    let began = Instant::now();
    let on_step = |step: &str| call.progress.say(&format!("prove · {step}"));
    let mut result = match prove_project(app, params, &call.stop, &on_step).await {
        Ok(report) => {
            record_for_shadow_mode(app, params, &report, &call.stop).await;
            to_result(params, &report)
        }
        Err(message) => result(Status::Error, message, Value::Null),
    };
    let took = began.elapsed().as_millis();
    result.more.duration_ms = Some(u64::try_from(took).unwrap_or(u64::MAX));
    result
}

/// Records a proven change while shadow mode is on. Never fails the call.
async fn record_for_shadow_mode(
    app: &App,
    params: &ProveParams,
    report: &Report,
    stop: &CancellationToken,
) {
    let (Ok(settings), Ok(state)) = (app.settings(), app.state()) else {
        return;
    };
    let store = ShadowStore::of(&state);
    // What a commit changed cannot be read from the files.
    if store.settings().is_none() || filled(params.head.as_deref()).is_some() {
        return;
    }
    let Ok(root) = project_root(&params.project_root) else {
        return;
    };
    let environment = test_environment(app, &settings.routing);
    let request = RecordRequest {
        root: &root,
        base: &filled(params.base.as_deref()).unwrap_or_else(|| String::from("HEAD")),
        report,
        description: "",
        test_cmd: params.test_cmd.as_deref(),
        host: None,
        now: jiff::Timestamp::now(),
        redactor: &app.redactor(&settings.routing),
        launcher: &environment.launcher,
        env: &environment.env,
    };
    if let Err(error) = record(&store, &request, stop).await {
        tracing::debug!("not recorded for shadow mode: {error}");
    }
}

/// Proves the change of a project with the user's settings. The error is a message for the user.
pub(crate) async fn prove_project(
    app: &App,
    params: &ProveParams,
    stop: &CancellationToken,
    on_step: &(dyn Fn(&str) + Sync),
) -> Result<Report, String> {
    let settings = app.settings().map_err(|error| error.to_string())?;
    let state = app.state().map_err(|error| error.to_string())?;
    let root = project_root(&params.project_root)?;
    let base = filled(params.base.as_deref()).unwrap_or_else(|| String::from("HEAD"));
    let given = filled(params.test_cmd.as_deref());
    let routing = &settings.routing;
    let (test_cmd, test_report) = routing.test_command(&root, given, None);
    let allowed = [
        params.allow_test_change.as_slice(),
        &routing.verify.allow_test_change,
    ]
    .concat();
    let request = ProveRequest {
        base: &base,
        comparand: match filled(params.head.as_deref()) {
            Some(head) => Comparand::Commit(head),
            None => Comparand::WorkingTree,
        },
        test_cmd: test_cmd.as_deref(),
        test_report: test_report.as_deref(),
        allow_test_change: &allowed,
        tests: &params.tests,
        checks: routing.checks(&root),
        fast: params.fast,
        mutants: if params.mutants {
            MutantMode::Always(None)
        } else {
            MutantMode::IfNeeded
        },
        environment: test_environment(app, &settings.routing),
        on_step,
        ..ProveRequest::new(&root, &state)
    };
    let report = prove(&request, stop).await;
    report.map_err(|error| {
        app.redactor(&settings.routing)
            .redact(&error.to_string())
            .into_owned()
    })
}

fn project_root(named: &str) -> Result<PathBuf, String> {
    let path = Path::new(named.trim());
    if !path.is_absolute() {
        return Err(format!(
            "`project_root` must be an absolute path, such as `/home/me/shop`; it is `{}`",
            words::plain(named)
        ));
    }
    path.canonicalize()
        .map_err(|error| format!("`{}` cannot be opened: {error}", path.display()))
}

fn to_result(params: &ProveParams, report: &Report) -> CallResult {
    let proven = report.verdict == Verdict::Proven;
    let last_run = report.steps.first().map(|step| step.result.clone());
    let mut details = json!({
        "verdict": report.verdict.word(),
        "fails_without_change": report.fail_without_change.len(),
        "falsified": format!("{} of {}", report.falsified.0, report.falsified.1),
        "isolation": report.isolation,
    });
    let mut add = |name: &str, items: Vec<String>| {
        if !items.is_empty() {
            details[name] = shortened(&items);
        }
    };
    add("regressions", report.regressions.clone());
    add(
        "flaky",
        report.flaky.iter().map(|test| test.0.clone()).collect(),
    );
    add(
        "test_changes",
        report
            .test_changes
            .iter()
            .map(ToString::to_string)
            .collect(),
    );
    add(
        "gaps",
        report
            .gaps
            .iter()
            .map(|gap| format!("{} Next: {}.", gap.what, gap.next))
            .collect(),
    );
    if let Some(mutants) = &report.mutants {
        let survivors = mutants.survived.iter().map(ToString::to_string);
        add("mutants_not_noticed", survivors.collect());
        details["mutants"] = json!(mutants.sentence());
    }
    let next = if proven {
        Value::Null
    } else {
        json!({ "tool": "prove", "arguments": given(params) })
    };
    let status = if proven { Status::Pass } else { Status::Fail };
    let message = format!(
        "{}: {}",
        report.verdict.word(),
        words::plain(&report.summary)
    );
    let mut result = result(status, message, details);
    result.runner_output = words::cut_end(&last_run.unwrap_or_default(), 200).into_owned();
    result.verified = proven;
    result.more.next = next;
    result
}

/// The arguments of this call that were given.
fn given(params: &ProveParams) -> Value {
    let mut arguments = json!(params);
    if let Some(arguments) = arguments.as_object_mut() {
        arguments.retain(|_, value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(items) => !items.is_empty(),
            _ => true,
        });
    }
    arguments
}

/// The first items, each cut, and how many more there are.
fn shortened(items: &[String]) -> Value {
    let more = items.len().saturating_sub(MAX_LISTED);
    let mut short: Vec<String> = items
        .iter()
        .take(MAX_LISTED)
        .map(|item| words::cut_end(&words::plain(item), MAX_ITEM_BYTES).into_owned())
        .collect();
    if more > 0 {
        short.push(format!("and {more} more"));
    }
    json!(short)
}

fn result(status: Status, message: String, details: Value) -> CallResult {
    CallResult::new("prove", "prove", status, message, details)
}
