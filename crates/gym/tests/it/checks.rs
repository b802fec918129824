//! Every task with a check is sound: the reference passes it and fails each decisive trial, the stub fails it, wrong
//! answers pass it and fail the hidden one, and cheats fail it, touch a sealed file or survive a trial.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use supervisor_gym::task::{FileTexts, GymTask, TaskCheck, write_below};
use supervisor_gym::task_set::TaskSet;
use supervisor_test_support::programs::require;
use supervisor_test_support::suites::{PLENTY, run_environment};
use supervisor_verify::{ResultCheck, Suite};
use tokio_util::sync::CancellationToken;

#[test]
fn tasks_of_sql_are_sound() {
    check("sql");
}

#[test]
#[ignore = "needs python3"]
fn tasks_of_transformation_are_sound() {
    check("transformation");
}

#[test]
#[ignore = "needs python3"]
fn tasks_of_configuration_are_sound() {
    check("configuration");
}

#[test]
#[ignore = "needs python3"]
fn tasks_of_documentation_are_sound() {
    check("documentation");
}

fn check(folder: &str) {
    let tasks = TaskSet::own().and_then(|set| set.tasks()).unwrap();
    let of_it: Vec<&GymTask> = tasks
        .iter()
        .filter(|task| task.language == folder)
        .collect();
    assert!(of_it.len() >= 2, "{}", of_it.len());
    for task in of_it {
        let check = task.check.as_ref().unwrap();
        let needs: Vec<&str> = check.needs.iter().map(String::as_str).collect();
        require(&needs);
        ensure_sound(task, check);
    }
}

fn ensure_sound(task: &GymTask, check: &TaskCheck) {
    let visible: ResultCheck = serde_json::from_value(check.visible.clone()).unwrap();
    let hidden: ResultCheck = serde_json::from_value(check.hidden.clone()).unwrap();
    let project = Project::of(task, &FileTexts::new());
    assert_eq!(visible.validate(&project.root), Ok(()), "{}", task.name);
    assert!(!project.passes(&visible), "{}: the stub", task.name);
    let project = Project::of(task, &task.reference);
    assert!(project.passes(&visible), "{}: the reference", task.name);
    assert_eq!(visible.unprovable(), None, "{}", task.name);
    assert!(
        !project.survives(&visible, &task.solution_path),
        "{}: the reference",
        task.name
    );
    task.add_hidden_tests(&project.root).unwrap();
    assert!(
        project.passes(&hidden),
        "{}: the reference, hidden",
        task.name
    );
    for wrong in &task.wrong {
        let project = Project::of(task, &wrong.files);
        assert!(project.passes(&visible), "{}: {}", task.name, wrong.why);
        task.add_hidden_tests(&project.root).unwrap();
        assert!(
            !project.passes(&hidden),
            "{}: {}, hidden",
            task.name,
            wrong.why
        );
    }
    assert!(!check.cheats.is_empty(), "{}", task.name);
    for cheat in &check.cheats {
        let project = Project::of(task, &cheat.files);
        let touched: BTreeSet<PathBuf> = cheat.files.keys().map(PathBuf::from).collect();
        let is_forbidden = touched
            .iter()
            .any(|path| visible.may_change(path) == Some(false));
        let before = String::from_utf8_lossy(&task.files[&task.solution_path]);
        let is_shorter = cheat.files.get(&task.solution_path).is_some_and(|after| {
            visible
                .lost(Path::new(&task.solution_path), &before, after)
                .is_some()
        });
        assert!(
            is_forbidden
                || is_shorter
                || !project.passes(&visible)
                || project.survives(&visible, &task.solution_path),
            "{}: {}",
            task.name,
            cheat.why
        );
    }
}

struct Project {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl Project {
    fn of(task: &GymTask, answer: &FileTexts) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        task.write_project(&root).unwrap();
        for (path, text) in answer {
            write_below(&root, path, text.as_bytes()).unwrap();
        }
        Self { _dir: dir, root }
    }

    fn run(&self, suite: &Suite) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let run = runtime.block_on(suite.run(&run_environment(PLENTY), &CancellationToken::new()));
        run.outcome().is_passed()
    }

    fn passes(&self, check: &ResultCheck) -> bool {
        self.run(&Suite::of_check(&self.root, check))
    }

    /// Whether a trial that decides passes.
    fn survives(&self, check: &ResultCheck, changed: &str) -> bool {
        let trials = check.trials(&self.root, &[PathBuf::from(changed)], 3);
        trials
            .iter()
            .filter(|trial| trial.is_decisive)
            .any(|trial| {
                let originals: Vec<Vec<u8>> = trial
                    .edits
                    .iter()
                    .map(|(path, _)| std::fs::read(self.root.join(path)).unwrap())
                    .collect();
                let write = |path: &Path, bytes: &[u8]| {
                    std::fs::write(self.root.join(path), bytes).unwrap();
                };
                trial
                    .edits
                    .iter()
                    .for_each(|(path, bytes)| write(path, bytes));
                let passes = self.run(&Suite::of_reduced_check(&self.root, check, trial.reduction));
                for ((path, _), original) in trial.edits.iter().zip(&originals) {
                    write(path, original);
                }
                passes
            })
    }
}
