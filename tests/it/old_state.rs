//! A newer program can still use everything that an older one wrote: the session log, notes, undo records, jobs, settings,
//! a team's files, and above all the snapshot of a call that was killed.
//!
//! `tests/fixtures/old-state` holds these files as the older program wrote them below [`OLD_BASE`]; its README says what
//! is in it. Each test works on a copy in a directory of its own. [`OldState::unpack`] changes the copy where the files
//! name a place: paths, the device and inode of a project, file names that are the hash of a path.
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_supervisor");
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/old-state");
/// Where the older program found the projects and its own directories.
const OLD_BASE: &str = "/tmp/supervisor-old-state";
/// Left as they are: lines with checksums, files named by their contents, binary files.
const NOT_REWRITTEN: [&str; 4] = [
    "state/sessions",
    "state/exchange",
    "state/projects",
    "state/brain",
];

/// A copy of the fixture, as if the older program had worked here.
struct OldState {
    base: PathBuf,
    /// The last sign of life of the killed call. What is written later is not its work.
    killed_at: SystemTime,
    _dir: TempDir,
}

impl OldState {
    fn unpack() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        copy(Path::new(FIXTURE), &base);
        rewrite_paths(&base);
        let killed_at = SystemTime::now();
        let old = Self {
            base,
            killed_at,
            _dir: dir,
        };
        for project in children(&old.path("state/projects")) {
            old.move_project(&project);
        }
        old.rename_hashed();
        old.renew_jobs();
        old
    }

    fn path(&self, below: &str) -> PathBuf {
        self.base.join(below)
    }

    /// A project is known by the device and inode of its directory.
    fn move_project(&self, state: &Path) {
        let journal = fs::read_to_string(state.join("journal")).unwrap();
        let armed: Value = serde_json::from_str(&journal.lines().next().unwrap()[17..]).unwrap();
        let old_root = armed["root"].as_str().unwrap();
        let root = self
            .base
            .join(Path::new(old_root).strip_prefix(OLD_BASE).unwrap());
        let meta = fs::metadata(&root).unwrap();
        let key = format!("{:x}-{:x}", meta.dev(), meta.ino());
        for store in [state.to_owned(), state.join("view")] {
            let Ok(text) = fs::read_to_string(store.join("journal")) else {
                continue;
            };
            let mut lines = String::new();
            for line in text.lines() {
                let (sum, record) = line.split_once(' ').unwrap();
                assert_eq!(sum, short_hash(record.as_bytes()));
                let mut record: Value = serde_json::from_str(record).unwrap();
                if record["state"] == "armed" {
                    record["store"] = json!(format!("root-{key}"));
                }
                if record["root"] == old_root {
                    record["root"] = json!(root);
                    record["root_device"] = json!(meta.dev());
                    record["root_inode"] = json!(meta.ino());
                }
                let record = record.to_string();
                lines += &format!("{} {record}\n", short_hash(record.as_bytes()));
            }
            fs::write(store.join("journal"), lines).unwrap();
            let old_name = armed["store"].as_str().unwrap();
            fs::rename(store.join(old_name), store.join(format!("root-{key}"))).unwrap();
        }
        if let Ok(pulse) = File::options().write(true).open(state.join("pulse")) {
            pulse.set_modified(self.killed_at).unwrap();
        }
        fs::rename(state, state.with_file_name(key)).unwrap();
    }

    /// The index of notes and the baseline of a project have the hash of a path as their name.
    fn rename_hashed(&self) {
        let notes = self.path("data/supervisor/brain");
        let index = format!(
            "{}.sqlite",
            short_hash(notes.as_os_str().as_encoded_bytes())
        );
        rename_only_file(&self.path("state/brain"), &index);
        let project = self.path("tested");
        let of = [b"old-session\0", project.as_os_str().as_encoded_bytes()].concat();
        let baseline = format!("{}.json", &blake3::hash(&of).to_hex()[..32]);
        rename_only_file(&self.path("state/baselines"), &baseline);
    }

    /// Results of jobs are kept for a week.
    fn renew_jobs(&self) {
        for path in self.jobs() {
            let mut job = read_json(&path);
            job["changed"] = json!(jiff::Timestamp::now().to_string());
            fs::write(path, job.to_string()).unwrap();
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(&self.base).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", self.path("home"));
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_DATA_HOME", self.path("data"));
        command.env("SUPERVISOR_STATE_DIR", self.path("state"));
        command.stdin(Stdio::null());
        command
    }

    /// Runs the program, which must exit with 0, and returns what it prints.
    fn run(&self, arguments: &[&str]) -> String {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(arguments).output().unwrap();
        let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(
            status.success(),
            "{arguments:?}: {status}\n{stdout}\n{stderr}"
        );
        stdout
    }

    fn run_json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(arguments)).unwrap()
    }

    /// Calls a tool, which must pass.
    fn call(&self, tool: &str, arguments: &[&str]) -> Value {
        let named = arguments.iter().flat_map(|argument| ["--arg", argument]);
        let all: Vec<&str> = ["call", tool, "--output", "json"]
            .into_iter()
            .chain(named)
            .collect();
        self.run_json(&all)
    }

    /// Calls a tool for the team of the fixture, and returns its details.
    fn call_for_team(&self, tool: &str, arguments: &[&str]) -> Value {
        let root = format!("project_root={}", self.path("team").display());
        let of_team = [root.as_str(), "session_id=old-team"];
        self.call(tool, &[&of_team, arguments].concat())["details"].take()
    }

    /// The entries of a session.
    fn entries(&self, session: &str) -> Vec<Value> {
        let session = format!("session_id={session}");
        let found = self.call("session_log", &["operation=read", &session]);
        found["details"]["entries"].as_array().unwrap().clone()
    }

    fn jobs(&self) -> impl Iterator<Item = PathBuf> {
        let is_record = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        files(&self.path("state/jobs"))
            .into_iter()
            .filter(is_record)
    }

    fn is_restored(&self) -> bool {
        tree(&self.path("killed")) == tree(&self.path("restored"))
    }
}

/// Copies a directory. git keeps only the executable bit, so all other bits are set here.
fn copy(from: &Path, to: &Path) {
    for source in below(from) {
        let target = to.join(source.strip_prefix(from).unwrap());
        let meta = source.symlink_metadata().unwrap();
        if meta.is_symlink() {
            symlink(fs::read_link(&source).unwrap(), target).unwrap();
            continue;
        }
        if meta.is_dir() {
            fs::create_dir(&target).unwrap();
        } else {
            fs::write(&target, fs::read(&source).unwrap()).unwrap();
        }
        let is_executable = meta.is_dir() || meta.mode() & 0o100 != 0;
        let mode = if is_executable { 0o755 } else { 0o644 };
        let is_private = target.starts_with(to.join("state"));
        let mode = if is_private { mode & 0o700 } else { mode };
        fs::set_permissions(target, Permissions::from_mode(mode)).unwrap();
    }
}

fn rewrite_paths(base: &Path) {
    let is_kept = |path: &PathBuf| {
        NOT_REWRITTEN
            .iter()
            .any(|dir| path.starts_with(base.join(dir)))
    };
    for path in files(base).into_iter().filter(|path| !is_kept(path)) {
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(OLD_BASE, base.to_str().unwrap())).unwrap();
    }
}

fn children(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Every name below a directory, a directory before what is in it.
fn below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in children(dir) {
        let is_dir = path.is_dir() && !path.is_symlink();
        found.push(path.clone());
        if is_dir {
            found.extend(below(&path));
        }
    }
    found
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let is_file = |path: &PathBuf| path.is_file() && !path.is_symlink();
    below(dir).into_iter().filter(is_file).collect()
}

/// Every name below a directory with its mode and its contents or target. Names that go meanwhile are left out.
fn tree(dir: &Path) -> BTreeMap<PathBuf, (u32, String)> {
    let describe = |path: PathBuf| {
        let meta = path.symlink_metadata().ok()?;
        let text = match fs::read_link(&path) {
            Ok(target) => format!("-> {}", target.display()),
            Err(_) => fs::read_to_string(&path).unwrap_or_default(),
        };
        let mode = if meta.is_symlink() {
            0
        } else {
            meta.mode() & 0o7777
        };
        Some((path.strip_prefix(dir).unwrap().to_owned(), (mode, text)))
    };
    below(dir).into_iter().filter_map(describe).collect()
}

fn rename_only_file(dir: &Path, name: &str) {
    if let [file] = children(dir).as_slice() {
        fs::rename(file, dir.join(name)).unwrap();
    }
}

fn short_hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn old_killed_call_is_restored() {
    let old = OldState::unpack();
    assert!(!old.is_restored());
    old.run(&["recover"]);
    assert_eq!(tree(&old.path("killed")), tree(&old.path("restored")));
    // What the killed call had written is kept.
    let kept = files(&old.path("state/rejected"));
    for text in ["changed by a test run\n", "left by a test run\n"] {
        let holds = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|found| found == text);
        assert!(kept.iter().any(holds), "{text} is not in {kept:?}");
    }
    old.run(&["recover"]);
    assert!(old.is_restored());
}

#[test]
fn next_server_restores_old_killed_call() {
    let old = OldState::unpack();
    let mut server = old.command(&[]);
    server
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut server = server.spawn().unwrap();
    let mut stdin = server.stdin.take().unwrap();
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while !old.is_restored() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(stdin);
    server.wait().unwrap();
    assert_eq!(tree(&old.path("killed")), tree(&old.path("restored")));
}

#[test]
fn edits_after_the_kill_are_kept() {
    let old = OldState::unpack();
    let added = old.path("killed/added.txt");
    let edited = old.path("killed/kept/page.txt");
    let is_later = |path: &Path| {
        let modified = fs::metadata(path).and_then(|meta| meta.modified());
        modified.is_ok_and(|modified| modified > old.killed_at)
    };
    // File times advance in steps.
    while !is_later(&added) || !is_later(&edited) {
        fs::write(&added, "by the user\n").unwrap();
        fs::write(&edited, "edited by the user\n").unwrap();
    }
    old.run(&["recover"]);
    let mut found = tree(&old.path("killed"));
    let restored = tree(&old.path("restored"));
    assert_eq!(
        found.remove(Path::new("added.txt")).unwrap().1,
        "by the user\n"
    );
    let page = found.insert(
        "kept/page.txt".into(),
        restored[Path::new("kept/page.txt")].clone(),
    );
    assert_eq!(page.unwrap().1, "edited by the user\n");
    assert_eq!(found, restored);
}

#[test]
fn gc_keeps_an_old_open_snapshot() {
    let old = OldState::unpack();
    old.run(&["gc"]);
    old.run(&["recover"]);
    assert_eq!(tree(&old.path("killed")), tree(&old.path("restored")));
}

#[test]
fn old_killed_calls_are_logged_once() {
    let old = OldState::unpack();
    old.run(&["recover"]);
    old.run(&["recover"]);
    for (session, skill, model) in [
        ("old-killed", "tdd", "small"),
        ("old-killed-job", "review", "large"),
    ] {
        let entries = old.entries(session);
        let [entry] = entries.as_slice() else {
            panic!("{entries:#?}")
        };
        assert_eq!(entry["skill"], skill);
        assert_eq!(entry["final_status"], "error");
        assert_eq!(entry["cause"], "crashed");
        assert_eq!(entry["attempts"][0]["model"], model);
        assert_eq!(entry["attempts"][0]["cause"], "crashed");
    }
}

#[test]
fn old_accepted_call_can_be_undone() {
    let old = OldState::unpack();
    let add = old.path("accepted/add.py");
    assert!(fs::read_to_string(&add).unwrap().contains("sums.total"));
    assert!(old.path("accepted/sums.py").exists());
    old.run(&["undo", "--project", "accepted"]);
    assert_eq!(
        fs::read_to_string(&add).unwrap(),
        "def add(a, b):\n    return a - b\n"
    );
    assert!(!old.path("accepted/sums.py").exists());
}

#[test]
fn old_log_is_listed_and_counted() {
    let old = OldState::unpack();
    let listed = old.run(&["log", "list"]);
    for session in ["old-session", "old-job"] {
        assert!(listed.contains(session), "{listed}");
    }
    let counted = old.run_json(&["stats", "--json"]);
    let total = &counted["total"];
    let ends = ["calls", "pass", "fail", "error", "other"].map(|end| total[end].as_u64().unwrap());
    assert_eq!(ends, [4, 2, 1, 1, 0]);
    assert!(
        (total["cost_usd"].as_f64().unwrap() - 0.0087).abs() < 1e-9,
        "{total}"
    );
    let unread = counted["unread"].as_object().unwrap();
    assert!(
        !unread.contains_key("tampered") && !unread.contains_key("newer"),
        "{unread:?}"
    );
    assert_eq!(old.entries("old-session").len(), 3);
}

#[test]
fn old_kept_exchange_is_shown() {
    let old = OldState::unpack();
    for (session, call, kept) in [
        ("old-session", 1, 7),
        ("old-session", 2, 6),
        ("old-job", 1, 3),
    ] {
        let entry = old.entries(session)[call - 1].to_string();
        let shown = old.run(&["log", "show", session, &call.to_string(), "--prompts"]);
        let mut texts = files(&old.path("state/exchange"));
        texts.retain(|text| entry.contains(text.file_stem().unwrap().to_str().unwrap()));
        assert_eq!(texts.len(), kept);
        for text in texts {
            for line in fs::read_to_string(text).unwrap().lines() {
                assert!(shown.contains(line.trim()), "{line:?} is not in {shown}");
            }
        }
    }
}

#[test]
fn old_notes_are_found() {
    let old = OldState::unpack();
    let root = format!("project_root={}", old.path("accepted").display());
    for (query, path, title) in [
        (
            "frightened horses",
            "carousel.md",
            "The carousel turns left",
        ),
        ("who makes totals", "totals.md", "Totals are made in sums"),
    ] {
        let found = old.call("brain_query", &[&root, &format!("query={query}")]);
        let hits = found["details"]["hits"].as_array().unwrap();
        assert_eq!(
            (hits.len(), &hits[0]["path"], &hits[0]["title"]),
            (1, &json!(path), &json!(title))
        );
        assert!(hits[0].get("stale").is_none(), "{found:#}");
        assert_eq!(hits[0].get("unproven").is_some(), path == "carousel.md");
    }
}

#[test]
fn old_jobs_are_shown() {
    let old = OldState::unpack();
    let mut states = Vec::new();
    for before in old.jobs().map(|path| read_json(&path)) {
        let job = old.run_json(&["jobs", "show", before["id"].as_str().unwrap()]);
        match before["state"].as_str().unwrap() {
            "working" => assert_eq!(job["cause"], "crashed"),
            _ => assert_eq!(job["result"], before["result"]),
        }
        states.push(job["state"].as_str().unwrap().to_owned());
    }
    states.sort();
    assert_eq!(states, ["completed", "failed"]);
}

#[test]
fn old_team_bus_goes_on() {
    let old = OldState::unpack();
    let bus = |arguments: &[&str]| old.call_for_team("team_msg", arguments)["result"].take();
    assert_eq!(bus(&["operation=list"])["total"], 3);
    // The message that brought this state is gone.
    let state = bus(&["operation=get_state", "role=analyst", "task=RESEARCH-001"]);
    assert_eq!(state["state"]["sources"], 5);
    assert_eq!(bus(&["operation=read_mailbox", "role=writer"])["count"], 1);
    // The last message, MSG-005, was deleted.
    let logged = bus(&["operation=log", "from=writer", "summary=more"]);
    assert_eq!(logged["id"], "MSG-006");
}

#[test]
fn old_checkpoint_is_remembered() {
    let old = OldState::unpack();
    let status = old.call_for_team("supervise", &["operation=status"]);
    assert_eq!(status["accumulator"][0]["task"], "CHECKPOINT-100");
    assert_eq!(status["accumulator"][0]["verdict"], "pass");
    let notes = old.path("team/.workflow/.team/old-team/notes.md");
    fs::write(notes, "IDEA-1: sell more seats.\n").unwrap();
    let checkpoint = ["operation=checkpoint", "task_id=CHECKPOINT-100"];
    let again = old.call_for_team("supervise", &checkpoint);
    assert_eq!(again["verdict"], "pass");
    assert_eq!(again["revision"], 2);
}

#[test]
fn old_passports_are_shown() {
    let old = OldState::unpack();
    let explained = old.run_json(&["explain", "tdd_green", "--json"]);
    let chain = explained["skills"][0]["chain"]["value"].as_array().unwrap();
    for (tier, model, accepted) in [(0, "small", "1 of 3"), (1, "large", "3 of 3")] {
        assert_eq!(chain[tier]["model"], model);
        let passport = chain[tier]["passport"].as_str().unwrap();
        assert!(passport.contains(accepted), "{passport}");
    }
}

#[test]
fn old_gym_results_are_read() {
    let old = OldState::unpack();
    let simulated = old.run_json(&[
        "simulate", "--gym", "--json", "--calls", "10", "--seeds", "2",
    ]);
    let policies = simulated["worlds"][0]["policies"].as_array().unwrap();
    assert!(!policies.is_empty());
    for policy in policies {
        assert_eq!(policy["accepted"]["mean"], 1.0, "{policy}");
    }
}

#[test]
fn old_baseline_is_compared_with() {
    let old = OldState::unpack();
    let verify =
        "verify --project tested --session old-session --against-baseline --test-report report.xml";
    let mut verify: Vec<&str> = verify.split(' ').collect();
    verify.extend(["--test-cmd", "sh check.sh"]);
    // The test that fails was red when the baseline was made.
    old.run(&verify);
    let script = old.path("tested/check.sh");
    let text = fs::read_to_string(&script).unwrap();
    fs::write(&script, text.replace("name=\"red\"", "name=\"another\"")).unwrap();
    let newly_red = old.command(&verify).output().unwrap();
    assert_eq!(newly_red.status.code(), Some(1), "{newly_red:?}");
}

#[test]
fn old_recorded_answers_are_replayed() {
    let old = OldState::unpack();
    let root = format!("project_root={}", old.path("accepted").display());
    let review = old.call("review", &[&root, "files=sums.py"]);
    assert_eq!(
        (&review["status"], &review["model_used"]),
        (&json!("pass"), &json!("large"))
    );
}

#[test]
fn old_settings_file_is_read() {
    let old = OldState::unpack();
    let settings = &old.run_json(&["explain", "--json"])["settings"];
    assert_eq!(
        settings["default_chain"]["value"],
        json!(["small", "large"])
    );
    assert_eq!(settings["limits.tests_s"]["value"], 90);
    assert_eq!(
        settings["backends.near.file"]["value"],
        json!(old.path("answers.jsonl"))
    );
}

#[test]
fn settings_made_by_old_init_are_read() {
    let old = OldState::unpack();
    let file = old.path("config/supervisor/made-by-init.toml");
    let explained = old.run_json(&["explain", "--json", "--config", file.to_str().unwrap()]);
    assert_eq!(explained["warnings"], json!([]));
    let settings = &explained["settings"];
    assert_eq!(settings["default_chain"]["value"], json!(["qwen3.6:27b"]));
    assert_eq!(
        settings["backends.ollama.base_url"]["value"],
        "http://localhost:11434"
    );
}

#[test]
fn every_old_setting_has_its_value() {
    let old = OldState::unpack();
    let file = old.path("config/supervisor/every-setting.toml");
    let explained = old.run_json(&["explain", "--json", "--config", file.to_str().unwrap()]);
    let expected = read_json(&file.with_extension("json"));
    let expected = expected.as_object().unwrap();
    assert_eq!(expected.len(), 98);
    for (key, value) in expected {
        assert_eq!(&explained["settings"][key]["value"], value, "{key}");
    }
}
