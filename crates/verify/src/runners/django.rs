//! Runs Django's tests, `manage.py test` or a `runtests.py`, through a program that records what unittest reports. A script
//! that turns out not to use unittest is judged by its exit code.

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::report_lines;
use super::super::session::{RunnerResult, Session};
use super::super::step::SuiteStep;
use super::{Runner, generic, never_detected, unittest};
use supervisor_languages::PYTHON;

pub(super) static RUNNER: Runner = Runner {
    name: "django",
    ecosystem: Some(&PYTHON),
    manifests: &[],
    command: &["python3", "manage.py", "test"],
    find: never_detected,
    recognises: |argv| script_position(argv).is_some(),
    run,
    select,
    names_are_paths: true,
};

const PROGRAM: &str = concat!(
    include_str!("unittest/record.py"),
    include_str!("unittest/script.py")
);

/// Where the script is in a command such as `python manage.py test` or `coverage run runtests.py`.
fn script_position(argv: &[String]) -> Option<usize> {
    argv.iter().enumerate().position(|(at, word)| {
        let is_first_file = argv[..at].iter().all(|before| !before.ends_with(".py"));
        let is_script = match word.rsplit('/').next() {
            Some("runtests.py") => true,
            Some("manage.py") => argv.get(at + 1).is_some_and(|next| next == "test"),
            _ => false,
        };
        is_script && is_first_file
    })
}

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let program = match session.write_program("run_script.py", PROGRAM) {
            Ok(path) => path,
            Err(error) => return RunnerResult::no_report_dir(&error),
        };
        let mut argv = step.argv.clone();
        let at = script_position(&argv).unwrap_or_default();
        argv.insert(at, program);
        if at == 0 {
            argv.insert(0, String::from("python3"));
        }
        let finished = session.run(&argv, &[]).await;
        match session.report(report_lines::FILE) {
            Some(_) => unittest::ADAPTER.judge(session, &finished),
            None => generic::judge(step, session, &finished),
        }
    }
    .boxed()
}

/// `shop/tests.py::CartTest::test_x` becomes `shop.tests.CartTest.test_x`. What the arguments of a `runtests.py` mean is not
/// known.
fn select(step: &SuiteStep, names: &[&str]) -> Option<Vec<String>> {
    let at = script_position(&step.argv)?;
    let options = step.argv.get(at + 2..).unwrap_or_default();
    if !step.argv[at].ends_with("manage.py") || !options.iter().all(|word| word.starts_with('-')) {
        return None;
    }
    let mut argv = step.argv.clone();
    for name in names {
        let (file, inside) = name.split_once("::")?;
        let module = file.strip_suffix(".py")?.replace('/', ".");
        argv.push(format!("{module}.{}", inside.replace("::", ".")));
    }
    Some(argv)
}

#[cfg(test)]
mod tests {
    use super::super::super::command::argv;
    use super::*;

    #[test]
    fn scripts_of_django_are_recognised() {
        for (command, position) in [
            ("python3 manage.py test --parallel", Some(1)),
            ("coverage run --source=x ./runtests.py", Some(3)),
            ("tests/runtests.py", Some(0)),
            ("python3 manage.py migrate", None),
            ("python3 check.py runtests.py", None),
        ] {
            assert_eq!(script_position(&argv(command)), position, "{command}");
        }
    }

    #[test]
    fn tests_are_selected_by_label() {
        let select = |command: &str| {
            let step = SuiteStep::new(argv(command), "/p");
            select(&step, &["shop/tests.py::CartTest::test_x"])
        };
        assert_eq!(
            select("python3 manage.py test --keepdb"),
            Some(argv(
                "python3 manage.py test --keepdb shop.tests.CartTest.test_x"
            ))
        );
        assert_eq!(select("python3 manage.py test shop"), None);
        assert_eq!(select("python3 runtests.py"), None);
    }
}
