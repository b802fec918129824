//! Somebody works in the same repository while a call is at it: saves files, commits, branches, stashes, fetches. Whatever
//! becomes of the call, nothing of that is gone. In overlays it stays where it is; in place, where nobody can tell a
//! worker's edit from the user's, a file may be taken back with the attempt, and is kept where the result says.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::json;
use supervisor_engine::CallResult;
use supervisor_engine::event::{Event, Listener, ProgressLine};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::agent::{assert_unlocked, until};
use supervisor_test_support::agent::{result, run, write_program};
use supervisor_test_support::chain::{Bench, Ran};
use supervisor_test_support::project::git;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repository {
    Plain,
    Git,
    LinkedWorktree,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worker {
    Data,
    Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Accepted,
    Rejected,
    Cancelled,
    Killed,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    strategy: &'static str,
    repository: Repository,
    worker: Worker,
    ending: Ending,
}

/// A project with a history, and an agent that waits until the user has done something.
struct UserProject {
    case: Case,
    bench: Bench,
    dir: TempDir,
}

/// What the user saves, and where.
const SAVED: &[(&str, &str)] = &[
    ("user.txt", "saved by the user\n"),
    ("notes.txt", "new from the user\n"),
    ("log.txt", "1\n2\n"),
];
const COMMITTED: (&str, &str) = ("committed.txt", "committed by the user\n");

impl UserProject {
    fn new(case: Case) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let user_project = Self {
            case,
            bench: bench(dir.path(), case.worker, case.ending, case.strategy),
            dir,
        };
        let number = if case.ending == Ending::Rejected {
            "17"
        } else {
            "42"
        };
        fs::write(
            user_project.at("out"),
            run(&result(|r| r["structured_output"] = json!({}))),
        )
        .unwrap();
        let waits = "cat > /dev/null; touch \"$here/at-work\"; while [ ! -e \"$here/go\" ]; do sleep 0.02; done";
        write_program(
            user_project.dir.path(),
            &format!("{waits}; printf {number} > answer.txt; cat \"$here/out\""),
        );
        for (name, text) in [
            ("user.txt", "u\n"),
            ("stashed.txt", "s\n"),
            ("log.txt", "1\n"),
        ] {
            fs::write(user_project.project().join(name), text).unwrap();
        }
        user_project.make_repository();
        user_project
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn project(&self) -> PathBuf {
        self.at("project")
    }

    fn make_repository(&self) {
        let (project, main) = (self.project(), self.at("main"));
        match self.case.repository {
            Repository::Plain => return,
            Repository::Git => drop(git(&project, &["init", "-q"])),
            Repository::LinkedWorktree => {
                fs::create_dir(&main).unwrap();
                git(&main, &["init", "-q"]);
                git(&main, &["commit", "-q", "--allow-empty", "-m", "zero"]);
                let linked = self.at("linked");
                git(
                    &main,
                    &[
                        "worktree",
                        "add",
                        "-q",
                        "-b",
                        "side",
                        linked.to_str().unwrap(),
                    ],
                );
                fs::rename(linked.join(".git"), project.join(".git")).unwrap();
                git(&main, &["worktree", "repair", project.to_str().unwrap()]);
            }
        }
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-q", "-m", "one"]);
        git(
            &project,
            &[
                "clone",
                "-q",
                "--bare",
                ".",
                self.at("origin.git").to_str().unwrap(),
            ],
        );
    }

    /// What somebody does at a terminal and in an editor.
    fn user_works(&self) {
        let project = self.project();
        for (name, text) in SAVED {
            // As editors save: a new file under the old name.
            let new = project.join(format!("{name}.new"));
            fs::write(&new, text).unwrap();
            fs::rename(new, project.join(name)).unwrap();
        }
        if self.case.repository == Repository::Plain {
            return;
        }
        fs::write(project.join(COMMITTED.0), COMMITTED.1).unwrap();
        fs::write(project.join("stashed.txt"), "stashed by the user\n").unwrap();
        let origin = self.at("origin.git");
        for arguments in [
            &["stash", "push", "-q", "stashed.txt"][..],
            &["add", COMMITTED.0],
            &["commit", "-q", "-m", "by the user", COMMITTED.0],
            &["branch", "by-the-user"],
            &[
                "fetch",
                "-q",
                origin.to_str().unwrap(),
                "HEAD:refs/remotes/origin/main",
            ],
        ] {
            git(&project, arguments);
        }
    }

    /// What of it is gone. `aside` are directories in which files are kept.
    fn missing(&self, aside: &[PathBuf]) -> Vec<String> {
        let project = self.project();
        let mut missing = Vec::new();
        let has_history = self.case.repository != Repository::Plain;
        for (name, text) in SAVED.iter().chain(has_history.then_some(&COMMITTED)) {
            let is_it = |path: &Path| fs::read_to_string(path).is_ok_and(|found| found == *text);
            if !is_it(&project.join(name)) && !aside.iter().any(|dir| is_below(dir, name, &is_it)) {
                missing.push((*name).to_owned());
            }
        }
        if has_history {
            let said = |arguments: &[&str]| git(&project, arguments);
            if !said(&["log", "--format=%s"]).contains("by the user") {
                missing.push("the commit".into());
            }
            if !said(&["branch", "--format=%(refname:short)"]).contains("by-the-user") {
                missing.push("the branch".into());
            }
            if said(&["stash", "list"]).is_empty() {
                missing.push("the stash".into());
            }
            if said(&["for-each-ref", "refs/remotes/origin/main"]).is_empty() {
                missing.push("the fetched ref".into());
            }
        }
        missing
    }

    /// Runs the call beside the user.
    async fn run_call(&self) -> CallResult {
        let (bench, stop) = (&self.bench, CancellationToken::new());
        let cancel = (self.case.ending == Ending::Cancelled).then(|| stop.clone());
        let Ran { result, .. } = match self.case.worker {
            Worker::Data => {
                let user = WhenChecked(self, cancel, Mutex::new(false));
                bench.run_until(&stop, &user).await
            }
            Worker::Agent => {
                let user = async {
                    until("the agent to be at work", || self.at("at-work").exists()).await;
                    self.user_works();
                    match cancel {
                        Some(cancel) => cancel.cancel(),
                        None => fs::write(self.at("go"), "").unwrap(),
                    }
                };
                let call = bench.run_until(&stop, &());
                tokio::pin!(call, user);
                // A call that cannot begin has no agent to wait for.
                tokio::select! {
                    ran = &mut call => ran,
                    () = &mut user => call.await,
                }
            }
        };
        assert_unlocked(bench).await;
        result
    }

    /// Gives the project as it was when the user came.
    async fn kill_server(&self) -> Picture {
        let case = format!("{:?}", self.case.worker);
        let mut server = Command::new(std::env::current_exe().unwrap())
            .envs([
                (DIR, self.dir.path().as_os_str()),
                (WORKER, case.as_ref()),
                (STRATEGY, self.case.strategy.as_ref()),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the call to be at work", || self.at("at-work").exists()).await;
        let before = picture(&self.project());
        self.user_works();
        server.kill().unwrap();
        server.wait().unwrap();
        assert_unlocked(&self.bench).await;
        before
    }
}

fn bench(dir: &Path, worker: Worker, ending: Ending, strategy: &str) -> Bench {
    let tier = if worker == Worker::Agent {
        "agent"
    } else {
        "small"
    };
    let number = if ending == Ending::Rejected {
        "17"
    } else {
        "42"
    };
    Bench::below(dir, &[tier])
        .agent(&dir.join("claude"))
        .settings(&format!("[workspace]\nstrategy = \"{strategy}\"\n"))
        .without_verifier()
        .writes("small", number)
}

fn is_below(dir: &Path, name: &str, is_it: &dyn Fn(&Path) -> bool) -> bool {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                is_below(&path, name, is_it)
            } else {
                entry.file_name() == name && is_it(&path)
            }
        })
}

/// The user works when the tests of an answer are about to run.
struct WhenChecked<'a>(&'a UserProject, Option<CancellationToken>, Mutex<bool>);

impl Listener for WhenChecked<'_> {
    fn on_event(&self, told: &ProgressLine) {
        let mut done = self.2.lock().unwrap();
        if matches!(told.event, Event::Checking { .. }) && !*done {
            *done = true;
            self.0.user_works();
            if let Some(cancel) = &self.1 {
                cancel.cancel();
            }
        }
    }
}

const DIR: &str = "SUPERVISOR_TEST_USER_DIR";
const WORKER: &str = "SUPERVISOR_TEST_USER_WORKER";
const STRATEGY: &str = "SUPERVISOR_TEST_USER_STRATEGY";

/// The server that a test starts and kills.
pub(crate) fn act_as_server() {
    /// Says that it is at work, and waits to be killed.
    struct WaitWhenChecked<'a>(&'a Path);
    impl Listener for WaitWhenChecked<'_> {
        fn on_event(&self, told: &ProgressLine) {
            if matches!(told.event, Event::Checking { .. }) {
                fs::write(self.0.join("at-work"), "").unwrap();
                loop {
                    std::thread::park();
                }
            }
        }
    }
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else {
        return;
    };
    let worker = if std::env::var(WORKER).unwrap() == "Agent" {
        Worker::Agent
    } else {
        Worker::Data
    };
    let bench = bench(
        &dir,
        worker,
        Ending::Killed,
        &std::env::var(STRATEGY).unwrap(),
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let _: Ran = runtime.block_on(bench.run_until(&stop, &WaitWhenChecked(&dir)));
    panic!("the server was not killed");
}

type Picture = BTreeMap<PathBuf, (u64, i64, i64, Vec<u8>)>;

/// Inode, time and bytes of every file, the repository's aside.
fn picture(project: &Path) -> Picture {
    let files = fs::read_dir(project)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file());
    let look = |path: PathBuf| {
        let meta = path.metadata().unwrap();
        (
            path.clone(),
            (
                meta.ino(),
                meta.mtime(),
                meta.mtime_nsec(),
                fs::read(path).unwrap(),
            ),
        )
    };
    files.map(look).collect()
}

/// One case: what was wrong with it.
async fn try_case(case: Case) -> Vec<String> {
    let user_project = UserProject::new(case);
    let mut before = picture(&user_project.project());
    let in_overlay = case.strategy == "overlay";
    let mut wrong = Vec::new();
    let mut aside = vec![];
    if case.ending == Ending::Killed {
        before = user_project.kill_server().await;
        aside.push(user_project.at("state/state/rejected"));
    } else {
        let result = user_project.run_call().await;
        let status = format!("{:?}", result.status);
        let is_right = match case.ending {
            Ending::Accepted => in_overlay.then_some("Pass"),
            _ => Some("Error"),
        };
        if is_right.is_some_and(|right| right != status) {
            wrong.push(format!("{status}: {}", result.message));
        }
        let told = serde_json::to_string(&result).unwrap();
        if case.ending != Ending::Cancelled
            && !told.contains("user.txt")
            && result.more.kept_in.is_empty()
        {
            wrong.push(format!("the result does not name what it met: {told}"));
        }
        aside.extend(result.more.kept_in.iter().map(PathBuf::from));
        // A call that is cancelled has nobody to tell; what it undid is kept all the same.
        if case.ending == Ending::Cancelled {
            aside.push(user_project.at("state/state/rejected"));
        }
    }
    let aside = if in_overlay { Vec::new() } else { aside };
    wrong.extend(
        user_project
            .missing(&aside)
            .into_iter()
            .map(|gone| format!("{gone} is gone")),
    );
    let answer = fs::read_to_string(user_project.project().join("answer.txt")).unwrap();
    let accepted =
        case.ending == Ending::Accepted && wrong.is_empty() && (in_overlay || answer == "42");
    if answer != if accepted { "42" } else { "41" } {
        wrong.push(format!("answer.txt says {answer}"));
    }
    if in_overlay && !accepted {
        let after = picture(&user_project.project());
        for name in ["answer.txt", "check.sh"] {
            let path = user_project.project().join(name);
            if before.get(&path) != after.get(&path) {
                wrong.push(format!("`{name}` was touched"));
            }
        }
    }
    wrong
}

async fn try_all(strategy: &'static str) {
    let mut wrong = Vec::new();
    for (repository, worker) in [
        (Repository::Plain, Worker::Data),
        (Repository::Plain, Worker::Agent),
        (Repository::Git, Worker::Data),
        (Repository::Git, Worker::Agent),
        (Repository::LinkedWorktree, Worker::Data),
        (Repository::LinkedWorktree, Worker::Agent),
    ] {
        for ending in [
            Ending::Accepted,
            Ending::Rejected,
            Ending::Cancelled,
            Ending::Killed,
        ] {
            let case = Case {
                strategy,
                repository,
                worker,
                ending,
            };
            let found = try_case(case).await;
            wrong.extend(found.into_iter().map(|found| format!("{case:?}: {found}")));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn overlay_calls_leave_user_work_in_place() {
    try_all("overlay").await;
}

#[tokio::test]
async fn in_place_calls_lose_no_user_work() {
    try_all("in-place").await;
}

/// The user changes a file when the tests have passed and the verifier is asked.
struct UserEdits<'a>(&'a Path, &'a str, &'a str);

impl Listener for UserEdits<'_> {
    fn on_event(&self, told: &ProgressLine) {
        if matches!(told.event, Event::Judging { .. }) {
            fs::write(self.0.join(self.1), self.2).unwrap();
        }
    }
}

async fn run_beside_user(name: &str, text: &str) -> (Bench, Ran) {
    let bench = Bench::chain(&["small"])
        .writes("small", "42")
        .judges(true, "");
    let bench = bench.settings("[sandbox]\nmode = \"auto\"\n");
    let user = UserEdits(bench.project.path(), name, text);
    let ran = bench.run_until(&CancellationToken::new(), &user).await;
    (bench, ran)
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn work_is_tested_again_on_user_changes() {
    let (bench, ran) = run_beside_user("beside.txt", "the user's\n").await;
    let sandbox = &ran.result.more.sandbox;
    assert!(sandbox.contains("private view"), "{sandbox}");
    assert_eq!(
        (ran.trail().as_str(), ran.answer.as_str()),
        ("small accepted", "42")
    );
    assert_eq!(ran.result.more.meanwhile, ["beside.txt"]);
    assert_eq!(
        ran.result.more.files_changed,
        ["answer.txt"],
        "what is the user's is not counted as the work's"
    );
    assert!(
        ran.story.iter().any(|line| line.contains("on top of that")),
        "{:?}",
        ran.story
    );
    assert_eq!(
        fs::read_to_string(bench.project.path().join("beside.txt")).unwrap(),
        "the user's\n"
    );
    assert_eq!(
        ran.entry.sandbox, ran.result.more.sandbox,
        "the log names the sandbox"
    );

    let (bench, ran) =
        run_beside_user("check.sh", "echo 'the answer is another by now'; exit 1\n").await;
    assert_eq!(ran.answer, "41", "{}", ran.result.message);
    let said = &ran.result.message;
    assert!(
        said.contains("check.sh") && said.contains("does not hold") && said.contains("kept in `"),
        "{said}"
    );
    let kept = said
        .split('`')
        .find(|part| part.contains("rejected"))
        .unwrap();
    assert_eq!(
        fs::read_to_string(Path::new(kept).join("answer.txt")).unwrap(),
        "42"
    );
    assert_unlocked(&bench).await;

    let (_bench, ran) = run_beside_user("answer.txt", "another idea\n").await;
    assert_eq!(ran.answer, "another idea\n", "{}", ran.result.message);
    assert!(
        ran.result
            .message
            .contains("`answer.txt` changed during the call"),
        "{}",
        ran.result.message
    );
}

#[tokio::test]
async fn in_place_change_after_judging_is_tested_again() {
    for (text, status) in [("42\n", "Pass"), ("43", "Error")] {
        let bench = Bench::chain(&["small"])
            .writes("small", "42")
            .judges(true, "");
        let bench = bench.settings("[workspace]\nstrategy = \"in-place\"\n");
        let user = UserEdits(bench.project.path(), "answer.txt", text);
        let ran = bench.run_until(&CancellationToken::new(), &user).await;
        assert_eq!(
            format!("{:?}", ran.result.status),
            status,
            "{text:?}: {}",
            ran.result.message
        );
        if status == "Pass" {
            assert_eq!(ran.answer, text);
        } else {
            assert!(
                ran.result.message.contains("does not hold"),
                "{}",
                ran.result.message
            );
        }
    }
}
