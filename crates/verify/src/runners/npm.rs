//! The `test` script of a JavaScript package. If it consists of known commands, detection replaces it with those.
//! Otherwise it runs unchanged and only its exit code counts.

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::command::program;
use super::super::detect::{Confidence, FoundSuite, SearchPlace};
use super::super::outcome::Outcome;
use super::super::report::ReportAdapter;
use super::super::scripts::{self, Package, PackageManager};
use super::super::session::{RunnerResult, Session};
use super::super::step::{StepEnvironment, SuiteStep};
use super::Runner;
use super::generic::run_by_exit_code;
use supervisor_languages::JAVASCRIPT;

pub(super) static RUNNER: Runner = Runner {
    name: "npm",
    ecosystem: Some(&JAVASCRIPT),
    manifests: &["package.json"],
    command: &["npm", "test"],
    find,
    recognises,
    run,
    select: |_, _| None,
    names_are_paths: true,
};

/// A JavaScript test runner and the flags that make it write a report.
pub(super) struct Tool {
    pub(super) adapter: ReportAdapter,
    /// The arguments that make it write the report.
    pub(super) flags: fn(&Session<'_>) -> std::io::Result<Vec<String>>,
    /// Whether options must come before the first file, as for `node`.
    pub(super) options_first: bool,
}

/// The text of the default script that `npm init` writes.
const PLACEHOLDER: &str = "no test specified";

/// Packages that provide a runner, and its command, for manifests without a `test` script.
const RUNNER_PACKAGES: &[(&str, &[&str])] = &[
    ("vitest", &["npx", "vitest", "run"]),
    ("jest", &["npx", "jest"]),
    ("ava", &["npx", "ava"]),
    ("mocha", &["npx", "mocha"]),
];

fn find(_: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    place.has("package.json").then_some(())?;
    let manager = PackageManager::detect(place);
    let argv = manager.test_command();
    let unchanged = || {
        FoundSuite::new(
            SuiteStep::new(argv.clone(), place.dir).with_runner(&RUNNER),
            "package.json",
        )
    };
    let with_steps = |mut steps: Vec<SuiteStep>| {
        scripts::assign_tasks(&mut steps);
        FoundSuite {
            steps,
            ..unchanged()
        }
    };
    let Some(package) = Package::read(place.dir) else {
        return Some(unchanged().with_confidence(Confidence::ManifestOnly));
    };
    if package
        .script("test")
        .is_some_and(|script| !script.contains(PLACEHOLDER))
    {
        return Some(scripts::script_steps(place, "test").map_or_else(unchanged, with_steps));
    }
    if let Some((_, words)) = RUNNER_PACKAGES
        .iter()
        .find(|(name, _)| package.depends_on(name))
    {
        let argv: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let step =
            SuiteStep::new(argv, place.dir).with_environment(StepEnvironment::for_node(place.dir));
        return Some(FoundSuite::new(step, "package.json"));
    }
    if let Some(steps) = scripts::workspace_steps(place) {
        return Some(with_steps(steps));
    }
    Some(unchanged().with_confidence(Confidence::ManifestOnly))
}

/// Recognises package manager calls whose script could not be expanded.
fn recognises(argv: &[String]) -> bool {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    matches!(program(argv), "npm" | "pnpm" | "yarn")
        && matches!(
            words[1..],
            ["test" | "t" | "tst", ..] | ["run" | "run-script", "test", ..]
        )
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        if let Err(outcome) = check_script(session) {
            return RunnerResult::not_run(outcome);
        }
        let mut judgement = run_by_exit_code(step, session).await;
        suggest_install(&mut judgement.outcome, program(&step.argv));
        judgement
    }
    .boxed()
}

/// Runs a JavaScript test runner with the flags that make it write its report.
pub(super) async fn run_tool(tool: &Tool, step: &SuiteStep, session: &Session<'_>) -> RunnerResult {
    let flags = match (tool.flags)(session) {
        Ok(flags) => flags,
        Err(error) => return RunnerResult::no_report_dir(&error),
    };
    let mut env = vec![("npm_config_update_notifier", String::from("false"))];
    let argv = if !tool.options_first {
        step.with_arguments(&flags)
    } else if let Some(at) = node_position(step) {
        let mut argv = step.argv.clone();
        argv.splice(at + 1..at + 1, flags);
        argv
    } else {
        let quoted: Vec<String> = flags
            .iter()
            .map(|f| format!("\"{}\"", f.replace('"', "\\\"")))
            .collect();
        let existing = session
            .variable("NODE_OPTIONS")
            .map(|o| o.to_string_lossy().into_owned());
        env.push((
            "NODE_OPTIONS",
            existing
                .into_iter()
                .chain(quoted)
                .collect::<Vec<_>>()
                .join(" "),
        ));
        step.with_arguments(&[])
    };
    let mut judgement = tool.adapter.run(session, &argv, &env).await;
    suggest_install(&mut judgement.outcome, tool.adapter.program);
    judgement
}

/// The position of `node` in the command, after which its options can be inserted.
fn node_position(step: &SuiteStep) -> Option<usize> {
    let is_node = |word: &String| matches!(program(std::slice::from_ref(word)), "node" | "tsx");
    step.argv
        .iter()
        .position(is_node)
        .filter(|_| step.shell.is_none())
}

/// Checks that there is a `test` script other than the placeholder.
fn check_script(session: &Session<'_>) -> Result<(), Outcome> {
    let cannot = |why: &str| Outcome::CouldNotRun {
        why: why.to_owned(),
        remedy: String::from("write `scripts.test` in package.json or name a `test_cmd`"),
    };
    let text = std::fs::read_to_string(session.files_root().join("package.json"))
        .map_err(|e| cannot(&format!("`package.json` cannot be read: {e}")))?;
    let manifest: serde_json::Value = serde_json::from_str(&text)
        .map_err(|e| cannot(&format!("`package.json` is not valid JSON: {e}")))?;
    match manifest
        .pointer("/scripts/test")
        .and_then(serde_json::Value::as_str)
    {
        None => Err(cannot("`package.json` has no script `test`")),
        Some(script) if script.contains(PLACEHOLDER) => Err(cannot(
            "the script `test` is the placeholder that `npm init` writes",
        )),
        Some(_) => Ok(()),
    }
}

/// Replaces the remedy: a missing program can usually be installed with the project's packages.
fn suggest_install(outcome: &mut Outcome, program: &str) {
    if let Outcome::CouldNotRun { remedy, why } = outcome
        && !why.contains(&format!("`{program}` may not"))
        && !why.contains("bad option")
        && !["npm", "pnpm", "yarn", "bun", "node"]
            .iter()
            .any(|own| why.contains(&format!("`{own}` was not found")))
    {
        *remedy = String::from(
            "install the packages (`npm install`, or what the project uses), correct `scripts.test` in package.json or name a \
             `test_cmd`",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

    #[test]
    fn test_commands_are_recognised() {
        assert!(
            recognises(&argv("npm test"))
                && recognises(&argv("npm run test -- -x"))
                && recognises(&argv("npm t"))
        );
        assert!(recognises(&argv("yarn test")) && !recognises(&argv("npm install")));
    }

    #[test]
    fn manifest_without_test_script_has_low_confidence() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = dir.path().canonicalize().expect("the path exists");
        let found = |text: &str| {
            std::fs::write(root.join("package.json"), text).expect("the file is written");
            find(&RUNNER, &SearchPlace::for_tests(&root))
                .map(|f| (f.confidence, f.argv.join(" "), f.steps.len()))
        };
        let placeholder = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        assert_eq!(
            found(placeholder),
            Some((Confidence::ManifestOnly, "npm test".into(), 1))
        );
        assert_eq!(
            found("{"),
            Some((Confidence::ManifestOnly, "npm test".into(), 1))
        );
        assert_eq!(
            found(r#"{"scripts": {"test": "grunt test"}}"#),
            Some((Confidence::Explicit, "npm test".into(), 1))
        );
        assert_eq!(
            found(r#"{"scripts": {"test": "xo && ava && tsd"}}"#),
            Some((Confidence::Explicit, "npm test".into(), 3))
        );
        assert_eq!(
            found(r#"{"devDependencies": {"vitest": "1"}}"#),
            Some((Confidence::Explicit, "npx vitest run".into(), 1))
        );
    }
}
