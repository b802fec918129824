//! Runs PHPUnit and reads its JUnit report from a private path.

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::command::program;
use super::super::detect::{Confidence, FoundSuite, SearchPlace};
use super::super::junit::{self, JunitCase, Naming};
use super::super::outcome::Outcome;
use super::super::report::{ReportAdapter, TerminalOutput};
use super::super::session::{RunnerResult, Session, output_of};
use super::super::step::SuiteStep;
use super::{Runner, escape_regex};
use supervisor_process::FinishedProcess;

pub(super) static RUNNER: Runner = Runner {
    name: "phpunit",
    ecosystem: None,
    manifests: &["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"],
    command: &["phpunit"],
    find,
    recognises: |argv| phpunit_position(argv).is_some(),
    run,
    select,
    names_are_paths: true,
};

static ADAPTER: ReportAdapter = ReportAdapter {
    program: "phpunit",
    file: "phpunit.xml",
    parse: |text, session| {
        let root = session.files_root();
        let cases = junit::parse(text)?;
        let cases: Vec<JunitCase> = cases.iter().map(|case| case.relative_to(&root)).collect();
        Some(junit::into_report(&cases, Naming::General))
    },
    explain,
    terminal: TerminalOutput::ShowsFailures,
};

/// The program that composer installs.
const INSTALLED: &str = "vendor/bin/phpunit";

fn find(runner: &'static Runner, place: &SearchPlace<'_>) -> Option<FoundSuite> {
    let manifest = runner.manifests.iter().find(|name| place.has(name))?;
    let program = if place.has(INSTALLED) {
        INSTALLED
    } else {
        "phpunit"
    };
    let step = SuiteStep::new(vec![program.to_owned()], place.dir).with_runner(runner);
    Some(FoundSuite::new(step, *manifest).with_confidence(Confidence::Explicit))
}

/// The position of `phpunit` in `phpunit --testdox` or `php -d memory_limit=1G vendor/bin/phpunit`.
fn phpunit_position(argv: &[String]) -> Option<usize> {
    let is_phpunit = |word: &String| {
        let name = program(std::slice::from_ref(word));
        matches!(name, "phpunit" | "phpunit.phar")
    };
    match program(argv) {
        "php" => argv.iter().position(is_phpunit),
        _ => is_phpunit(argv.first()?).then_some(0),
    }
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let report = session.file(ADAPTER.file).display().to_string();
        let argv = step.with_arguments(&[String::from("--log-junit"), report]);
        ADAPTER.run(session, &argv, &[]).await
    }
    .boxed()
}

fn explain(finished: &FinishedProcess, _: i32) -> Option<Outcome> {
    let output = output_of(finished);
    output
        .contains("No tests executed")
        .then_some(Outcome::NoTests)
}

/// Selects by one pattern over `Class::test` and `Class::test with data set "x"`.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let names: Option<Vec<String>> = names
        .iter()
        .map(|name| {
            let (rest, test) = name.rsplit_once(" > ")?;
            let class = rest.rsplit(['>', '.']).next()?.trim();
            Some(format!("{}::{}", escape_regex(class), escape_regex(test)))
        })
        .collect();
    let mut argv = step.argv.clone();
    argv.extend([
        String::from("--filter"),
        format!("/({})$/", names?.join("|")),
    ]);
    Some(argv)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

    #[test]
    fn php_before_the_program_is_recognised() {
        for (words, found) in [
            ("phpunit", true),
            ("vendor/bin/phpunit --testsuite unit", true),
            ("php -d memory_limit=1G vendor/bin/phpunit", true),
            ("php run-tests.php", false),
            ("composer test", false),
        ] {
            assert_eq!(phpunit_position(&argv(words)).is_some(), found, "{words}");
        }
    }

    #[test]
    fn tests_are_selected_by_class_and_name() {
        let step = SuiteStep::new(argv("vendor/bin/phpunit"), "/p");
        let name = "test/CartTest.php > Shop.CartTest > testSum with data set #0";
        assert_eq!(
            select(&step, &[name]).expect("can select")[1..],
            ["--filter", "/(CartTest::testSum with data set #0)$/"]
        );
    }
}
