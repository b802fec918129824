//! The script `test` of a JavaScript package. Where it comes to commands we understand, those are run and this file
//! only finds them; else it is run as it is and judged by its exit code.

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::command::program;
use super::super::detect::{FoundSuite, SearchPlace, Strength};
use super::super::outcome::Outcome;
use super::super::report::Reporting;
use super::super::scripts::{self, Manager, Package};
use super::super::session::{Judgement, Session};
use super::super::step::{StepSurroundings, SuiteStep};
use super::Runner;
use super::generic::by_exit_code;
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

/// A runner of JavaScript tests: how its report is asked for, on a command line or in a script.
pub(super) struct Tool {
    pub(super) reporting: Reporting,
    /// Arguments that make it write the report.
    pub(super) flags: fn(&Session<'_>) -> std::io::Result<Vec<String>>,
    /// Options are taken only before the first file, as `node` does.
    pub(super) options_first: bool,
}

/// What `npm init` writes when no test command is given.
const PLACEHOLDER: &str = "no test specified";

/// Packages that bring a runner, and the words that start it, for manifests without a script.
const INSTALLED: &[(&str, &[&str])] = &[
    ("vitest", &["npx", "vitest", "run"]),
    ("jest", &["npx", "jest"]),
    ("ava", &["npx", "ava"]),
    ("mocha", &["npx", "mocha"]),
];

fn find(_: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    place.has("package.json").then_some(())?;
    let manager = Manager::of(place);
    let argv = manager.test_command();
    let as_it_is = || {
        FoundSuite::of(
            SuiteStep::new(argv.clone(), place.dir).run_by(&RUNNER),
            "package.json",
        )
    };
    let with = |mut steps: Vec<SuiteStep>| {
        scripts::assign_tasks(&mut steps);
        FoundSuite {
            steps,
            ..as_it_is()
        }
    };
    let Some(package) = Package::read(place.dir) else {
        return Some(as_it_is().with_strength(Strength::Nominal));
    };
    if package
        .script("test")
        .is_some_and(|script| !script.contains(PLACEHOLDER))
    {
        return Some(scripts::of_script(place, "test").map_or_else(as_it_is, with));
    }
    if let Some((_, words)) = INSTALLED.iter().find(|(name, _)| package.depends_on(name)) {
        let argv: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let step = SuiteStep::new(argv, place.dir).within(StepSurroundings::of_node(place.dir));
        return Some(FoundSuite::of(step, "package.json"));
    }
    if let Some(steps) = scripts::of_workspace(place) {
        return Some(with(steps));
    }
    Some(as_it_is().with_strength(Strength::Nominal))
}

/// Whatever is still a call of a package manager when its script could not be read.
fn recognises(argv: &[String]) -> bool {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    matches!(program(argv), "npm" | "pnpm" | "yarn")
        && matches!(
            words[1..],
            ["test" | "t" | "tst", ..] | ["run" | "run-script", "test", ..]
        )
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        if let Err(outcome) = script(session) {
            return Judgement::not_run(outcome);
        }
        let mut judgement = by_exit_code(step, session).await;
        explain_missing(&mut judgement.outcome, program(&step.argv));
        judgement
    }
    .boxed()
}

/// Runs a tool of JavaScript, wherever its command comes from.
pub(super) async fn run_tool(tool: &Tool, step: &SuiteStep, session: &Session<'_>) -> Judgement {
    let flags = match (tool.flags)(session) {
        Ok(flags) => flags,
        Err(error) => return Judgement::no_place(&error),
    };
    let mut env = vec![("npm_config_update_notifier", String::from("false"))];
    let argv = if !tool.options_first {
        step.with_arguments(&flags)
    } else if let Some(at) = node_at(step) {
        let mut argv = step.argv.clone();
        argv.splice(at + 1..at + 1, flags);
        argv
    } else {
        let quoted: Vec<String> = flags
            .iter()
            .map(|f| format!("\"{}\"", f.replace('"', "\\\"")))
            .collect();
        let own = session
            .variable("NODE_OPTIONS")
            .map(|o| o.to_string_lossy().into_owned());
        env.push((
            "NODE_OPTIONS",
            own.into_iter().chain(quoted).collect::<Vec<_>>().join(" "),
        ));
        step.with_arguments(&[])
    };
    let mut judgement = tool.reporting.run(session, &argv, &env).await;
    explain_missing(&mut judgement.outcome, tool.reporting.program);
    judgement
}

/// Where options for `node` can be put in: right behind it.
fn node_at(step: &SuiteStep) -> Option<usize> {
    let is_node = |word: &String| matches!(program(std::slice::from_ref(word)), "node" | "tsx");
    step.argv
        .iter()
        .position(is_node)
        .filter(|_| step.shell.is_none())
}

/// The script, if there is one that tests anything.
fn script(session: &Session<'_>) -> Result<(), Outcome> {
    let cannot = |why: &str| Outcome::CouldNotRun {
        why: why.to_owned(),
        remedy: String::from("write `scripts.test` in package.json or name a `test_cmd`"),
    };
    let text = std::fs::read_to_string(session.files().join("package.json"))
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

/// A program that is missing is usually one that an install would bring.
fn explain_missing(outcome: &mut Outcome, program: &str) {
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
    fn it_knows_its_own_commands() {
        assert!(
            recognises(&argv("npm test"))
                && recognises(&argv("npm run test -- -x"))
                && recognises(&argv("npm t"))
        );
        assert!(recognises(&argv("yarn test")) && !recognises(&argv("npm install")));
    }

    #[test]
    fn a_manifest_that_says_nothing_of_tests_is_nominal() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("there");
        let found = |text: &str| {
            std::fs::write(root.join("package.json"), text).expect("written");
            find(&RUNNER, &SearchPlace::for_tests(&root))
                .map(|f| (f.strength, f.argv.join(" "), f.steps.len()))
        };
        let placeholder = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        assert_eq!(
            found(placeholder),
            Some((Strength::Nominal, "npm test".into(), 1))
        );
        assert_eq!(found("{"), Some((Strength::Nominal, "npm test".into(), 1)));
        assert_eq!(
            found(r#"{"scripts": {"test": "grunt test"}}"#),
            Some((Strength::Stated, "npm test".into(), 1))
        );
        assert_eq!(
            found(r#"{"scripts": {"test": "xo && ava && tsd"}}"#),
            Some((Strength::Stated, "npm test".into(), 3))
        );
        assert_eq!(
            found(r#"{"devDependencies": {"vitest": "1"}}"#),
            Some((Strength::Stated, "npx vitest run".into(), 1))
        );
    }
}
