//! The stage of one case: a project with a repository, a home and a neighbour that are watched, fakes, and one call over
//! stdio to the real program.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::case::{FaultCase, Interruption};
use super::faults::CANARY;
use crate::support::mcp_session::Session;
use crate::support::review_project::clean;
use crate::support::scenario::Scenario;
use supervisor_test_support::agent::write_program;
use supervisor_test_support::agent::{result, run};
use supervisor_test_support::loopback::Server;
use supervisor_test_support::picture::{Picture, picture};
use supervisor_test_support::project::git;
use supervisor_workspace::state::StateDir;
use supervisor_workspace::{Mode, SnapshotLimits, Workspace, recover};
use tokio_util::sync::CancellationToken;

/// The limits of a case add up to less than ten seconds, and a stuck shim is given up after twenty; the rest is for a
/// machine that does much else.
const IN_TIME: Duration = Duration::from_secs(60);
/// With so many processes waiting for each processor a case is still done in that time; with more of them it takes longer
/// in proportion, whatever the program does.
const WAITING: f64 = 8.0;
/// The id of the call.
const CALL: u32 = 7;

pub(super) struct Stage {
    case: FaultCase,
    pub(super) scenario: Scenario,
    /// `home`, `outside` and `agent`.
    dir: TempDir,
    pub(super) gateway: Server,
    began: u64,
}

/// What was seen of one call.
pub(super) struct Observation {
    pub(super) reply: Option<Value>,
    /// How many replies came; one at most is right.
    pub(super) replies: usize,
    /// What else came on stdout, each message parsed.
    pub(super) messages: Vec<Value>,
    pub(super) code: Option<i32>,
    pub(super) stderr: String,
    /// From the call to its reply, or to the end of everything.
    pub(super) took: Duration,
    /// The server's peak of resident memory.
    pub(super) peak_kb: u64,
    pub(super) before: Scenery,
    pub(super) after: Scenery,
    /// Processes of the case that did not end.
    pub(super) left: Vec<String>,
}

/// Everything that is watched.
pub(super) struct Scenery {
    pub(super) project: Picture,
    pub(super) outside: Picture,
    /// Inode and time of every file of the project.
    pub(super) stamps: BTreeMap<PathBuf, (u64, i64, i64)>,
}

impl Stage {
    pub(super) fn set(case: FaultCase) -> Self {
        let (dir, began) = (tempfile::tempdir().unwrap(), now_in_ticks());
        let at = |name: &str| dir.path().join(name);
        for place in [
            "watched/home/.ssh",
            "watched/home/.config",
            "watched/outside/kept",
            "agent",
            "tmp",
        ] {
            fs::create_dir_all(at(place)).unwrap();
        }
        fs::write(at("watched/home/.bashrc"), "# kept\n").unwrap();
        fs::write(at("watched/home/.ssh/id"), CANARY).unwrap();
        fs::write(at("watched/outside/victim"), "kept\n").unwrap();
        fs::write(at("watched/outside/kept/file"), "kept\n").unwrap();
        let answer = case.gateway.answer;
        let gateway = Server::start(move |_| answer());
        let env_file = format!("API_TOKEN={CANARY}\n");
        let files = [
            ("code.py", "answer = 41\n"),
            ("check.sh", "exit 1\n"),
            ("keep.txt", "kept\n"),
            (".gitignore", ".env\n"),
            (".env", &env_file),
            ("src/empty.py", ""),
        ];
        let home = at("watched/home").display().to_string();
        let tmp = at("tmp").display().to_string();
        let scenario = Scenario::chain(&["gate", "agent"], &files)
            .settings(&settings(&case, &gateway.url, &at("agent/claude")))
            .env("HOME", &home)
            .env("TMPDIR", &tmp)
            .env("GATE_KEY", CANARY)
            .env("GITHUB_TOKEN", CANARY)
            .env("ANTHROPIC_API_KEY", CANARY);
        let places = format!(
            "outside='{}'\nstate='{}'\n",
            at("watched/outside").display(),
            scenario.state.path().join("state").display()
        );
        fs::write(
            scenario.project.path().join("check.sh"),
            format!("{places}{}\n", case.test_script()),
        )
        .unwrap();
        let answer = if case.tool == "review" {
            clean(&["code.py"])
        } else {
            json!({})
        };
        fs::write(
            at("agent/out"),
            run(&result(|r| r["structured_output"] = answer.clone())),
        )
        .unwrap();
        write_program(
            &at("agent"),
            &format!("{places}cat > /dev/null\n{}", case.agent.script),
        );
        let project = scenario.project.path();
        fs::set_permissions(project.join("keep.txt"), fs::Permissions::from_mode(0o751)).unwrap();
        // A name that merely stands there is in every list of files.
        fs::write(project.join(OsStr::from_bytes(b"n\xfft")), "kept\n").unwrap();
        for arguments in [
            &["init", "-q"][..],
            &["add", "-A"],
            &["commit", "-q", "-m", "one"],
        ] {
            git(project, arguments);
        }
        Self {
            case,
            scenario,
            dir,
            gateway,
            began,
        }
    }

    pub(super) fn look(&self) -> Scenery {
        let root = self.scenario.project.path();
        let project = picture(root);
        let stamp = |path: &PathBuf| {
            let meta = fs::symlink_metadata(root.join(path)).unwrap();
            (path.clone(), (meta.ino(), meta.mtime(), meta.mtime_nsec()))
        };
        let files = project.files.iter().filter(|(_, (kind, ..))| *kind == 'f');
        let stamps = files.map(|(path, _)| stamp(path)).collect();
        Scenery {
            stamps,
            project,
            outside: picture(&self.dir.path().join("watched")),
        }
    }

    /// Makes the call, interrupts it as the case says, and waits until everything is at rest.
    pub(super) fn perform(&self) -> Observation {
        let before = self.look();
        let mut session = self.scenario.fresh_session();
        let began = Instant::now();
        let arguments = match self.case.tool {
            "review" => json!({"files": ["code.py"]}),
            _ => json!({"test_path": "check.sh", "test_cmd": "sh check.sh"}),
        };
        let mut arguments = arguments;
        arguments["project_root"] = json!(self.scenario.root());
        arguments["session_id"] = json!("campaign");
        session.call(
            CALL,
            if self.case.tool == "review" {
                "review"
            } else {
                "tdd_green"
            },
            arguments,
        );
        if self.case.interruption != Interruption::None {
            session.wait_for_step(self.case.step, CALL);
            std::thread::sleep(Duration::from_millis(self.case.delay_ms));
        }
        let (mut reply, mut peak_kb) = (None, peak_kb(&session));
        match self.case.interruption {
            Interruption::None => {}
            Interruption::Cancelled => session.cancel(CALL),
            Interruption::InputClosed => session.eof(),
            Interruption::ServerKilled => session.signal(Signal::KILL),
            Interruption::AllKilled => self.kill_all(),
            Interruption::ChildrenKilled => self.send(Signal::KILL, Some(&session), |_| true),
            Interruption::ChildrenStopped => self.send(Signal::STOP, Some(&session), |_| true),
            Interruption::ShimsKilled => self.send(Signal::KILL, Some(&session), is_shim),
            Interruption::InnersKilled => {
                self.send(Signal::KILL, Some(&session), |words| !is_shim(words));
            }
        }
        if self.case.interruption.wants_reply() {
            reply = Some(session.reply_within(in_time(), CALL));
        }
        let answered = began.elapsed();
        // After the end of input the server may be gone; what was read before stands.
        peak_kb = peak_kb.max(self::peak_kb(&session));
        let end = if self.case.interruption.is_kill() {
            session.ended()
        } else {
            session.finish()
        };
        let is_reply = |message: &&Value| message.get("method").is_none() && message["id"] == CALL;
        let replies = usize::from(reply.is_some()) + end.rest.iter().filter(is_reply).count();
        reply = reply.or_else(|| end.rest.iter().find(is_reply).cloned());
        let left = self.wait_for_processes();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(assert_at_rest(
            self.scenario.project.path(),
            &self.scenario.state.path().join("state"),
        ));
        let took = if reply.is_some() {
            answered
        } else {
            began.elapsed()
        };
        let after = self.look();
        let (messages, code, stderr) = (end.rest, end.code, end.stderr);
        Observation {
            reply,
            replies,
            messages,
            code,
            stderr,
            took,
            peak_kb,
            before,
            after,
            left,
        }
    }

    /// Does the journal say that the work of the call stays?
    pub(super) fn was_accepted(&self) -> bool {
        let projects = fs::read_dir(self.scenario.state.path().join("state/projects"))
            .into_iter()
            .flatten()
            .flatten();
        let journals = projects
            .map(|project| fs::read_to_string(project.path().join("journal")).unwrap_or_default());
        journals
            .into_iter()
            .any(|text| text.contains(r#""state":"accepted","call":""#))
    }

    /// Starts the next server, as the client would, and ends it when it has looked at what an earlier one left.
    pub(super) fn start_once_more(&self) {
        let mut next = self.scenario.fresh_session();
        next.request(CALL, "tools/list", json!({}));
        next.reply(CALL);
        next.finish();
    }

    /// What is still in the directory for temporary files.
    pub(super) fn scratch(&self) -> usize {
        fs::read_dir(self.dir.path().join("tmp")).unwrap().count()
    }

    /// Until none is left: what starts while the list is made is not on it, nor what is becoming another program.
    fn kill_all(&self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while (!self.processes().is_empty() || is_any_between(self.began))
            && Instant::now() < deadline
        {
            self.send(Signal::KILL, None, |_| true);
        }
    }

    /// To every process of the case whose command line is meant, but for this server.
    fn send(&self, signal: Signal, spared: Option<&Session>, is_meant: fn(&str) -> bool) {
        let spared = spared.map(|session| Pid::from_child(&session.process));
        let processes = self.processes();
        let server = processes
            .iter()
            .find(|(pid, _)| Some(*pid) == spared)
            .map(|(_, words)| words);
        for (pid, words) in &processes {
            // One that is stopped before it has become the program that was started would stop the server as well.
            let is_not_yet = signal == Signal::STOP && Some(words) == server;
            if Some(*pid) != spared && !is_not_yet && is_meant(words) {
                let _ = kill_process(*pid, signal);
            }
        }
    }

    /// Every process below the server, and the server: all of them have a home of their own.
    fn processes(&self) -> Vec<(Pid, String)> {
        let mark = self.dir.path().join("watched/home");
        let mark = format!("HOME={}", mark.display());
        let carries = |path: &Path| {
            fs::read(path.join("environ"))
                .is_ok_and(|env| env.split(|byte| *byte == 0).any(|v| v == mark.as_bytes()))
        };
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| Pid::from_raw(name.parse().ok()?))
            else {
                continue;
            };
            if carries(&entry.path()) {
                let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push((pid, String::from_utf8_lossy(&words).replace('\0', " ")));
            }
        }
        found
    }

    /// Gives those that are still there when the time is over.
    fn wait_for_processes(&self) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() > deadline {
                return left
                    .into_iter()
                    .map(|(pid, words)| format!("{pid:?} {words}"))
                    .collect();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Is a process that started since then between two programs? It has no environment to be known by at that moment. One
/// that has ended has none either, nor has a thread of the kernel.
fn is_any_between(since: u64) -> bool {
    let stat = |path: &Path| {
        let text = fs::read_to_string(path.join("stat")).ok()?;
        let fields: Vec<String> = text
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        Some((
            fields.first()?.clone(),
            fields.get(1)?.clone(),
            fields.get(19)?.parse::<u64>().ok()?,
        ))
    };
    let is_between = |path: &Path| {
        fs::read(path.join("environ")).is_ok_and(|env| env.is_empty())
            && stat(path).is_some_and(|(state, parent, start)| {
                state != "Z" && parent != "2" && start >= since
            })
    };
    let entries = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    entries
        .filter(|path| path.join("environ").exists())
        .any(|path| is_between(&path))
}

/// In the unit of a process's start: hundredths of a second since the system's.
fn now_in_ticks() -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let (whole, parts) = uptime
        .split_whitespace()
        .next()
        .unwrap()
        .split_once('.')
        .unwrap();
    whole.parse::<u64>().unwrap() * 100 + parts.parse::<u64>().unwrap()
}

/// By the command line of a process, with spaces between its words.
fn is_shim(words: &str) -> bool {
    words.split(' ').nth(1) == Some("shim")
}

fn settings(case: &FaultCase, gateway: &str, agent: &Path) -> String {
    format!(
        "[skills.review]\nchain = [\"gate\", \"agent\"]\n\
         [limits]\nlocal_s = 1.5\nagent_s = 2\ntests_s = 2\n\
         [workspace]\nstrategy = \"{}\"\n[warm]\nkind = \"none\"\n\
         [backends.gateway]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{gateway}\"\napi_key_env = \"GATE_KEY\"\nmodels = [\"gate\"]\n\
         [backends.program]\nkind = \"claude-cli\"\ntier = \"subagent\"\nprogram = \"{}\"\nmodels = [\"agent\"]\n\
         [models.agent]\nid = \"claude-x\"\n",
        case.strategy,
        agent.display()
    )
}

/// How long a case may take on a machine that is as busy as this one is now.
pub(super) fn in_time() -> Duration {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load
        .split(' ')
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or(0.0);
    let processors = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    IN_TIME.mul_f64((load / processors / WAITING).max(1.0))
}

/// The peak of a process's resident memory; 0 if it is gone.
fn peak_kb(session: &Session) -> u64 {
    let status =
        fs::read_to_string(format!("/proc/{}/status", session.process.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

/// The project is free, and nothing in it is left to restore.
async fn assert_at_rest(project: &Path, state: &Path) {
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
