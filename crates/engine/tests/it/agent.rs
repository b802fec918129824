//! A tier that edits in place, walked: what it leaves behind is ended before anybody looks, and whatever is not accepted
//! is undone to the byte, also if it crashed, was cancelled, or its server was killed. The agent is a script.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;
use supervisor_engine::event::{Event, Listener, ProgressLine};
use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_engine::{Cause, Status};
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{Mode, SnapshotLimits, Workspace, recover};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use supervisor_test_support::agent::{result, run, write_program};
use supervisor_test_support::chain::{Bench, Ran, SESSION};

#[tokio::test]
async fn accepted_in_place_edits_stay() {
    let agent = Agent::does("printf 42 > answer.txt; cat \"$here/out\"");
    let (bench, before) = agent.bench(&["agent"]);
    let ran = bench.run().await;
    assert_eq!(ran.trail(), "agent accepted");
    assert_eq!(
        (ran.result.status, ran.result.verified, ran.answer.as_str()),
        (Status::Pass, true, "42")
    );
    assert_eq!(ran.result.more.files_changed, ["answer.txt"]);
    assert!(
        ran.result.more.diff.contains("-41") && ran.result.more.diff.contains("+42"),
        "{}",
        ran.result.more.diff
    );
    assert_eq!(ran.entry.attempts[0].cost_usd, Some(0.0125));
    let after = tree(bench.project.path());
    assert_eq!(
        changed(&before, &after),
        ["answer.txt"],
        "nothing beside the work"
    );
    assert_unlocked(&bench).await;
}

#[tokio::test]
async fn agent_without_structured_answer_is_judged_by_its_work() {
    for (left, trail) in [("42", "agent accepted"), ("17", "agent rejected")] {
        let agent = Agent::does(&format!("printf {left} > answer.txt; cat \"$here/out\""));
        let ends_in_words = result(|r| {
            r.as_object_mut().unwrap().remove("structured_output");
            r["result"] = json!("I changed the file.");
        });
        fs::write(agent.dir.path().join("out"), run(&ends_in_words)).unwrap();
        let (bench, _) = agent.bench(&["agent"]);
        let ran = bench.run().await;
        assert_eq!(ran.trail(), trail, "{}", ran.result.message);
    }
}

#[tokio::test]
async fn refused_agent_is_undone_and_reported_on() {
    // More than was asked for, of every kind: all of it goes.
    let agent = Agent::does(
        "printf 17 > answer.txt; mkdir -p new/dir; echo x > new/dir/file; rm keep.txt; chmod 600 mode.txt
         ln -s /etc/passwd link; cat \"$here/out\"",
    );
    let (bench, before) = agent.bench(&["agent", "small"]);
    let bench = bench.writes("small", "1");
    let ran = bench.run().await;
    assert_eq!(ran.trail(), "agent tampered | small rejected");
    assert_eq!(
        changed(&before, &tree(bench.project.path())),
        Vec::<String>::new()
    );
    let told = ran.asked_of("small")[0]["prompt"].as_str().unwrap();
    assert!(
        told.contains("Prior attempt feedback: [1 · agent · tampered]") && told.contains("+17"),
        "{told}"
    );
    assert!(told.contains("only answer.txt may change"), "{told}");
    let kept = &ran.entry.attempts[0].output_summary;
    assert!(
        kept.contains("kept in "),
        "refused work is kept aside: {kept}"
    );

    let agent = Agent::does("printf 17 > answer.txt; cat \"$here/out\"");
    let (bench, before) = agent.bench(&["agent", "small"]);
    let bench = bench.writes("small", "42").judges(true, "");
    let ran = bench.run().await;
    assert_eq!(ran.trail(), "agent rejected | small accepted");
    let told = ran.asked_of("small")[0]["prompt"].as_str().unwrap();
    assert!(
        told.contains("answer_is_42 failed: left 17, right 42"),
        "the real test output: {told}"
    );
    assert_eq!(
        changed(&before, &tree(bench.project.path())),
        ["answer.txt"]
    );
    assert_unlocked(&bench).await;
}

#[tokio::test]
async fn result_names_lost_file_attributes() {
    let agent =
        Agent::does("printf 17 > answer.txt; echo x > other; mv other keep.txt; cat \"$here/out\"");
    let (bench, _) = agent.bench(&["agent"]);
    let bench = bench.settings("[workspace]\nstrategy = \"in-place\"\n");
    let elsewhere = tempfile::tempdir().unwrap();
    let (kept, other) = (
        bench.project.path().join("keep.txt"),
        elsewhere.path().join("other"),
    );
    let Ok(()) = fs::hard_link(&kept, &other) else {
        return;
    };
    let ran = bench.run().await;
    assert_eq!(
        ran.result.more.not_given_back,
        ["keep.txt: its other names"],
        "{:?}",
        ran.result
    );
    assert_eq!(fs::read(kept).unwrap(), fs::read(other).unwrap());
    assert_unlocked(&bench).await;
}

#[tokio::test]
async fn crashed_agent_is_undone() {
    for end in [
        "exit 1",
        "kill -9 $$",
        "echo '{\"type\":\"result\"'; exit 0",
    ] {
        let agent = Agent::does(&format!("printf 42 > answer.txt; echo x > left.txt; {end}"));
        let (bench, before) = agent.bench(&["agent"]);
        let ran = bench.run().await;
        assert_eq!(ran.trail(), "agent infra", "{end}");
        assert_eq!(
            (ran.result.status, ran.result.verified),
            (Status::Error, false),
            "{end}"
        );
        assert_eq!(
            changed(&before, &tree(bench.project.path())),
            Vec::<String>::new(),
            "{end}"
        );
        assert_unlocked(&bench).await;
    }
}

#[tokio::test]
async fn next_tier_after_a_crash_finds_project_restored() {
    let agent = Agent::does("printf 7 > answer.txt; echo x > left.txt; exit 1");
    let (bench, before) = agent.bench(&["agent", "small"]);
    let bench = bench.writes("small", "42").judges(true, "");
    let ran = bench.run().await;
    assert_eq!(ran.trail(), "agent infra | small accepted");
    assert!(
        !ran.entry.attempts[0].feedback.is_empty(),
        "the log says why"
    );
    assert_eq!(
        changed(&before, &tree(bench.project.path())),
        ["answer.txt"]
    );
    assert_unlocked(&bench).await;
}

#[tokio::test]
async fn processes_of_an_agent_end_before_the_tests() {
    /// Looks, when our own tests begin, whether the process is still there.
    struct WhenTestsBegin<'a>(&'a Path, Mutex<Vec<bool>>);
    impl Listener for WhenTestsBegin<'_> {
        fn on_event(&self, told: &ProgressLine) {
            if matches!(told.event, Event::Checking { .. }) {
                let pid = fs::read_to_string(self.0.join("far")).unwrap();
                self.1
                    .lock()
                    .unwrap()
                    .push(Path::new("/proc").join(pid.trim()).exists());
            }
        }
    }
    // It would write as soon as the agent is gone, in a session of its own and deaf to interrupts.
    for (number, trail, changes) in [
        ("42", "agent accepted", vec!["answer.txt"]),
        ("7", "agent rejected", vec![]),
    ] {
        let agent = Agent::does(&format!(
            "setsid sh -c 'trap \"\" INT TERM; echo $$ > \"$0/far\"
                 while [ -e /proc/$1 ]; do sleep 0.01; done; sleep 0.3; while :; do printf 41 > answer.txt; done
             ' \"$here\" $$ > /dev/null 2>&1 &
             while [ ! -s \"$here/far\" ]; do sleep 0.02; done
             printf {number} > answer.txt; cat \"$here/out\"",
        ));
        let (bench, before) = agent.bench(&["agent"]);
        let listener = WhenTestsBegin(agent.dir.path(), Mutex::default());
        let ran = bench.run_until(&CancellationToken::new(), &listener).await;
        assert_eq!(ran.trail(), trail);
        assert_eq!(
            *listener.1.lock().unwrap(),
            [false],
            "gone before the tests began"
        );
        assert_eq!(changed(&before, &tree(bench.project.path())), changes);
        assert!(
            ran.entry.attempts[0].output_summary.contains("left behind"),
            "{:?}",
            ran.entry.attempts[0]
        );
        assert_unlocked(&bench).await;
    }
}

#[tokio::test]
async fn cancelled_agent_is_ended_and_undone() {
    let agent = Agent::does(&format!(
        "printf 42 > answer.txt; echo x > new.txt; {LEAVES_SURVIVORS} sleep 1000"
    ));
    let (bench, before) = agent.bench(&["agent", "small"]);
    let bench = bench.writes("small", "42");
    let stop = CancellationToken::new();
    let (ran, ()) = tokio::join!(bench.run_until(&stop, &()), async {
        until("the agent to be at work", || {
            agent.dir.path().join("pid").exists()
        })
        .await;
        stop.cancel();
    });
    assert_eq!(ran.trail(), "agent cancelled");
    assert_eq!(ran.entry.attempts[0].cause, Some(Cause::Cancelled));
    assert!(
        ran.asked_of("small").is_empty(),
        "nothing is sent after a cancel"
    );
    assert_eq!(
        changed(&before, &tree(bench.project.path())),
        Vec::<String>::new()
    );
    agent.assert_no_processes().await;
    assert_unlocked(&bench).await;
}

/// Names the directory to work in.
const DIR: &str = "SUPERVISOR_TEST_CHAIN_DIR";
/// And how the project is worked on.
const STRATEGY: &str = "SUPERVISOR_TEST_CHAIN_STRATEGY";

/// The server that the next test starts and kills.
pub(crate) fn act_as_server() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let bench = Bench::below(&dir, &["agent"]).agent(&dir.join("claude"));
    let bench = bench.settings(&std::env::var(STRATEGY).unwrap());
    let _: Ran = runtime.block_on(bench.run());
    panic!("the server was not killed");
}

#[tokio::test]
async fn killed_server_restores_project_without_restart() {
    for strategy in ["in-place", "auto"] {
        killed_at_work(&format!("[workspace]\nstrategy = \"{strategy}\"\n")).await;
    }
}

async fn killed_at_work(strategy: &str) {
    let agent = Agent::does(&format!(
        "printf 42 > answer.txt; echo x > new.txt; {LEAVES_SURVIVORS} sleep 1000"
    ));
    let dir = agent.dir.path();
    let bench = Bench::below(dir, &["agent", "small"])
        .agent(&agent.program)
        .settings(strategy);
    add_files(bench.project.path());
    let before = tree(bench.project.path());
    let mut server = Command::new(std::env::current_exe().unwrap())
        .env(DIR, dir)
        .env(STRATEGY, strategy)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the agent to be at work", || dir.join("pid").exists()).await;
    if strategy.contains("in-place") {
        assert_ne!(tree(bench.project.path()), before);
    }
    server.kill().unwrap();
    server.wait().unwrap();

    // No server is started: the shims restore it.
    until("the project to be as it was", || {
        tree(bench.project.path()) == before
    })
    .await;
    agent.assert_no_processes().await;
    assert_unlocked(&bench).await;
    let log = SessionLog::open(&StateDir::at(bench.state.path().join("state")).unwrap()).unwrap();
    let history = log.read(&SESSION.parse::<SessionId>().unwrap());
    let lines = history.map_or(0, |history| history.records.len() + history.damage.lines());
    assert_eq!(
        lines, 0,
        "a call that never answered has written nothing, not even half"
    );

    // The next call finds everything in order.
    agent.now_does("printf 42 > answer.txt; cat \"$here/out\"");
    let ran = bench.run().await;
    assert_eq!(ran.trail(), "agent accepted");
    assert_eq!(
        changed(&before, &tree(bench.project.path())),
        ["answer.txt"]
    );
}

/// Two processes, one of them in a session of its own, with their ids in files. Both outlive a kill of the group.
const LEAVES_SURVIVORS: &str = "
    setsid sh -c 'trap \"\" INT TERM; echo $$ > \"$0/far\"; while :; do echo late > late.txt; sleep 0.05; done' \"$here\" > /dev/null 2>&1 &
    sh -c 'echo $$ > \"$0/near\"; exec sleep 1000' \"$here\" > /dev/null 2>&1 &
    while [ ! -s \"$here/far\" ] || [ ! -s \"$here/near\" ] || [ ! -s late.txt ]; do sleep 0.02; done
    echo $$ > \"$here/new.pid\"; mv \"$here/new.pid\" \"$here/pid\";";

/// A program that reads its prompt and then does this, in the project.
struct Agent {
    dir: TempDir,
    program: PathBuf,
}

impl Agent {
    fn does(body: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("out"),
            run(&result(|r| r["structured_output"] = json!({}))),
        )
        .unwrap();
        let program = write_program(dir.path(), &format!("cat > \"$here/stdin\"; {body}"));
        Self { dir, program }
    }

    fn now_does(&self, body: &str) {
        write_program(self.dir.path(), &format!("cat > \"$here/stdin\"; {body}"));
    }

    /// A project with a few things beside the answer, and what is in it.
    fn bench(&self, tiers: &[&str]) -> (Bench, Tree) {
        let bench = Bench::chain(tiers).agent(&self.program);
        add_files(bench.project.path());
        let before = tree(bench.project.path());
        (bench, before)
    }

    async fn assert_no_processes(&self) {
        for name in ["far", "near", "pid"] {
            let pid = fs::read_to_string(self.dir.path().join(name)).unwrap();
            until("the process to be gone", || {
                !Path::new("/proc").join(pid.trim()).exists()
            })
            .await;
        }
    }
}

fn add_files(project: &Path) {
    fs::write(project.join("keep.txt"), "kept\n").unwrap();
    fs::write(project.join("mode.txt"), "m\n").unwrap();
    fs::set_permissions(project.join("mode.txt"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::create_dir_all(project.join("empty")).unwrap();
}

/// Nothing is open and nobody holds the project.
pub(crate) async fn assert_unlocked(bench: &Bench) {
    assert_unlocked_in(bench.project.path(), &bench.state.path().join("state")).await;
}

/// The same for a project and a state directory.
pub(crate) async fn assert_unlocked_in(project: &Path, state: &Path) {
    let state = StateDir::at(state.to_owned()).unwrap();
    let workspace = Workspace::open(project, SnapshotLimits::default(), &state).unwrap();
    let stop = CancellationToken::new();
    let lease = workspace
        .lock(Mode::Exclusive, "a look", Duration::from_secs(60), &stop)
        .await
        .unwrap();
    drop(lease);
    assert!(
        recover(&state).unwrap().is_empty(),
        "nothing was left to put right"
    );
}

/// Mode, and what a file holds or where a link leads, by path.
type Tree = BTreeMap<String, (u32, Vec<u8>)>;

fn tree(root: &Path) -> Tree {
    let (mut found, mut dirs) = (Tree::new(), vec![root.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let Ok(meta) = path.symlink_metadata() else {
                continue;
            };
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let holds = if meta.is_symlink() {
                fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes()
            } else if meta.is_dir() {
                dirs.push(path);
                Vec::new()
            } else {
                fs::read(&path).unwrap_or_default()
            };
            found.insert(name, (meta.permissions().mode(), holds));
        }
    }
    found
}

fn changed(before: &Tree, after: &Tree) -> Vec<String> {
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .cloned()
        .collect()
}

pub(crate) async fn until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "waited for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
