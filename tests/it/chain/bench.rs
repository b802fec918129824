//! A small skill for tests: make `answer.txt` say 42. Real files, a real test command, real snapshots and a real log;
//! only the models are recorded.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use supervisor::backend::breaker::Breaker;
use supervisor::backend::warm::Warmth;
use supervisor::backend::{Backends, Edits, Env, Power, Shared, Shell};
use supervisor::engine::event::{Listener, Told};
use supervisor::engine::evidence::Evidence;
use supervisor::engine::job::{Checked, Exhibit, Failed, Held, Job, Keeps, Question, Shown, Work};
use supervisor::engine::means::{Means, SessionBudgets};
use supervisor::engine::run::{Early, Request, run};
use supervisor::engine::site::{Site, SiteError};
use supervisor::engine::{CallResult, Cause, Entry, Gate, Status, proposal};
use supervisor::process::Launcher;
use supervisor::process::environment::{self, Environment};
use supervisor::redact::Redactor;
use supervisor::routing::{CallOverrides, Loaded, Sources, Tier, load};
use supervisor::session::{SessionId, SessionLog};
use supervisor::state::StateDir;
use supervisor::verify::{self, Proof};
use supervisor::workspace::{Caps, Mode, Workspace};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Exits 0 only if the answer is right, and says what is wrong.
const TESTS: &str = r#"answer=$(cat answer.txt)
if [ "$answer" = 42 ]; then echo "1 passed"; exit 0; fi
echo "answer_is_42 failed: left $answer, right 42"; exit 1
"#;

pub(crate) const SESSION: &str = "chain-test";

/// A project, a state directory, recorded models.
pub(crate) struct Bench {
    pub(crate) project: Dir,
    pub(crate) state: Dir,
    answers: Vec<Value>,
    settings: String,
    pub(crate) call: CallOverrides,
    secrets: Vec<String>,
    env: BTreeMap<OsString, OsString>,
    schema: Value,
}

/// A directory that goes with its bench, unless it belongs to somebody else.
pub(crate) struct Dir {
    path: PathBuf,
    _own: Option<TempDir>,
}

impl Dir {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn own() -> Self {
        let own = tempfile::tempdir().unwrap();
        Self { path: own.path().to_owned(), _own: Some(own) }
    }

    fn below(dir: &Path, name: &str) -> Self {
        let path = dir.join(name);
        fs::create_dir_all(&path).unwrap();
        Self { path, _own: None }
    }
}

/// What came of a call.
pub(crate) struct Ran {
    pub(crate) result: CallResult,
    pub(crate) entry: Entry,
    pub(crate) story: Vec<String>,
    /// Every question, in order.
    pub(crate) asked: Vec<Value>,
    pub(crate) answer: String,
}

impl Bench {
    /// Tiers `small`, `medium` (local) and `large` (an agent's tier), and a verifier `judge`; a chain of the first `n`.
    pub(crate) fn chain(tiers: &[&str]) -> Self {
        Self::with(tiers, Dir::own(), Dir::own())
    }

    /// The same in a directory that outlives it: `project` and `state`.
    pub(crate) fn below(dir: &Path, tiers: &[&str]) -> Self {
        Self::with(tiers, Dir::below(dir, "project"), Dir::below(dir, "state"))
    }

    fn with(tiers: &[&str], project: Dir, state: Dir) -> Self {
        fs::write(project.path().join("answer.txt"), "41").unwrap();
        fs::write(project.path().join("check.sh"), TESTS).unwrap();
        let file = state.path().join("answers.jsonl");
        let chain: Vec<String> = tiers.iter().map(|t| format!("\"{t}\"")).collect();
        let settings = format!(
            "default_chain = [{chain}]\nverifier = \"judge\"\n\
             [skills.review]\nchain = [{chain}]\n\
             [backends.near]\nkind = \"replay\"\ntier = \"local\"\nfile = \"{file}\"\nmodels = [\"small\", \"medium\"]\n\
             [backends.far]\nkind = \"replay\"\ntier = \"subagent\"\nfile = \"{file}\"\nmodels = [\"large\", \"judge\"]\n",
            chain = chain.join(", "),
            file = file.display(),
        );
        let call = CallOverrides { max_attempts: Some(10), ..CallOverrides::default() };
        Self {
            project,
            state,
            answers: vec![],
            settings,
            call,
            secrets: vec![],
            env: BTreeMap::from([("PATH".into(), std::env::var_os("PATH").unwrap())]),
            schema: json!({
                "type": "object",
                "properties": {"edits": proposal::schema(), "contradiction": {"type": "string"}},
            }),
        }
    }

    /// The next answer of a model: this number in the file.
    pub(crate) fn writes(self, model: &str, number: &str) -> Self {
        let edits = json!([{"path": "answer.txt", "action": "replace", "content": number}]);
        self.line(
            json!({"model": model, "answer": {"edits": edits}, "tokens_in": 100, "tokens_out": 20, "cost_usd": 0.01}),
        )
    }

    pub(crate) fn fails(self, model: &str, failure: &str) -> Self {
        self.line(json!({"model": model, "failure": failure}))
    }

    pub(crate) fn judges(self, accept: bool, feedback: &str) -> Self {
        self.line(json!({"model": "judge", "answer": {"accept": accept, "feedback": feedback}, "cost_usd": 0.002}))
    }

    pub(crate) fn line(mut self, line: Value) -> Self {
        self.answers.push(line);
        self
    }

    pub(crate) fn without_verifier(mut self) -> Self {
        self.settings = self.settings.replace("verifier = \"judge\"", "verifier = \"none\"");
        self
    }

    pub(crate) fn secret(mut self, value: &str) -> Self {
        self.secrets.push(value.into());
        self
    }

    /// More of `models.toml`: another backend.
    pub(crate) fn settings(mut self, more: &str) -> Self {
        self.settings += more;
        self
    }

    /// An agent program as the tier `agent`.
    pub(crate) fn agent(self, program: &Path) -> Self {
        let more = format!(
            "[backends.agent]\nkind = \"claude-cli\"\ntier = \"subagent\"\nprogram = \"{}\"\nmodels = [\"agent\"]\n\
             [models.agent]\nid = \"claude-x\"\n",
            program.display()
        );
        self.settings(&more)
    }

    /// What an answer must look like, where the usual leaves too much room.
    pub(crate) fn schema(mut self, schema: Value) -> Self {
        self.schema = schema;
        self
    }

    /// A variable that the server was started with.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    pub(crate) fn pinned(mut self, model: &str) -> Self {
        self.call.model = Some(model.into());
        self
    }

    fn loaded(&self) -> Loaded {
        let file = self.state.path().join("models.toml");
        fs::write(&file, &self.settings).unwrap();
        load(&Sources { user_file: Some(file), ..Sources::default() }).unwrap()
    }

    fn means(&self, loaded: &Loaded, log: SessionLog) -> Means {
        let lines: String = self.answers.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.state.path().join("answers.jsonl"), lines).unwrap();
        let env: Env = self.env.clone().into_iter().collect();
        // As the server makes it where nothing is said beside the environment.
        let redactor = if self.secrets.is_empty() {
            let named = loaded.routing.backends.values().filter_map(|backend| backend.api_key_env.as_deref());
            env.redactor(named)
        } else {
            Redactor::knowing(&self.secrets)
        };
        let redactor = Arc::new(redactor);
        Means {
            backends: Backends::new(Shared::new(launcher(), env.clone(), 2)),
            breaker: Breaker::new(loaded.routing.breaker),
            warmth: Warmth::new(None, env),
            redactor: Arc::clone(&redactor),
            prompts: None,
            recorder: Arc::new(log.redacting(redactor)),
            budgets: SessionBudgets::new(loaded.routing.budgets.session),
        }
    }

    pub(crate) async fn run(&self) -> Ran {
        self.run_until(&CancellationToken::new(), &()).await
    }

    pub(crate) async fn run_until(&self, stop: &CancellationToken, also: &dyn Listener) -> Ran {
        let loaded = self.loaded();
        let state = StateDir::at(self.state.path().join("state")).unwrap();
        let log = SessionLog::open(&state).unwrap();
        let means = self.means(&loaded, log.clone());
        let route = loaded.routing.route("review", &self.call).unwrap();
        let root = self.project.path().canonicalize().unwrap();
        let request = Request {
            skill: "mend".into(),
            phase: "mend".into(),
            session_id: SESSION.into(),
            project_root: root.display().to_string(),
            input: json!({"goal": "42"}),
        };
        let heard = Heard { lines: Mutex::default(), also };
        let result = run(&means, &route, &request, &heard, stop, async |_| {
            let workspace = Workspace::open(&root, Caps::default(), &state).map_err(Early::error)?;
            let lease =
                workspace.lock(Mode::Exclusive, "mend", Duration::from_secs(10), stop).await.map_err(Early::error)?;
            let site = Site::arm(lease, &launcher()).await.map_err(Early::error)?;
            let keys: Vec<String> = loaded.routing.backends.values().filter_map(|b| b.api_key_env.clone()).collect();
            let env = environment::tests(self.env.clone(), &keys, &[]);
            Ok((site, Box::new(Mend { env, schema: self.schema.clone() }) as Box<dyn Job>))
        })
        .await;
        let mut history = log.read(&SESSION.parse::<SessionId>().unwrap()).unwrap();
        assert_eq!(history.damage.lines(), 0);
        let entry = history.records.pop().expect("every call is written down").entry;
        let asked = fs::read_to_string(self.state.path().join("answers.jsonl.asked")).unwrap_or_default();
        let asked = asked.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let story = heard.lines.into_inner().unwrap();
        let answer = fs::read(self.project.path().join("answer.txt")).unwrap();
        let answer = String::from_utf8_lossy(&answer[..answer.len().min(64)]).into_owned();
        Ran { result, entry, story, asked, answer }
    }
}

impl Ran {
    /// `small rejected | large accepted`.
    pub(crate) fn trail(&self) -> String {
        let one = |a: &supervisor::engine::Attempt| format!("{} {}", a.model, a.cause.map_or("?", Cause::word));
        self.result.more.attempts.iter().map(one).collect::<Vec<_>>().join(" | ")
    }

    /// The questions that went to one model.
    pub(crate) fn asked_of(&self, model: &str) -> Vec<&Value> {
        self.asked.iter().filter(|question| question["model"] == model).collect()
    }
}

struct Heard<'a> {
    lines: Mutex<Vec<String>>,
    also: &'a dyn Listener,
}

impl Listener for Heard<'_> {
    fn hear(&self, told: &Told) {
        self.lines.lock().unwrap().push(told.line.clone());
        self.also.hear(told);
    }
}

/// The skill: one file, one number.
struct Mend {
    /// For the tests.
    env: Environment,
    schema: Value,
}

impl Job for Mend {
    fn discipline(&self) -> &str {
        "Change answer.txt and nothing else."
    }

    fn task(&self) -> &str {
        "answer.txt must say 42."
    }

    fn question(&self, _: &Tier, _: Edits, evidence: &Evidence) -> Question {
        Question {
            prompt: format!("{}{}", self.task(), evidence.render()),
            schema: self.schema.clone(),
            power: Power::Edit { shell: Shell::Never },
        }
    }

    fn check<'a>(&'a self, work: Work<'a>) -> BoxFuture<'a, Checked> {
        Box::pin(async move {
            if let Some(reason) = work.reply.body["contradiction"].as_str() {
                return Checked::Fails(Failed::new(Cause::Contradiction, reason));
            }
            match check(work, &self.env).await {
                Ok(checked) => checked,
                Err(error) => Checked::Fails(Failed::new(Cause::Rejected, error.to_string())),
            }
        })
    }
}

async fn check(work: Work<'_>, env: &Environment) -> Result<Checked, SiteError> {
    if work.edits == Edits::AsData {
        let edits = match proposal::edits(&work.reply.body) {
            Ok(edits) => edits,
            Err(why) => return Ok(Checked::Fails(Failed::new(Cause::Rejected, why.to_string()))),
        };
        let sealed = |path: &Path| {
            if path == Path::new("answer.txt") { Ok(()) } else { Err("only answer.txt may change".to_owned()) }
        };
        work.site.apply(&edits, &sealed)?;
    }
    if let Some(other) = work.changed.changes.iter().find(|change| change.path != Path::new("answer.txt")) {
        let why = format!("`{}` was changed; only answer.txt may change", other.path.display());
        return Ok(Checked::Fails(Failed::new(Cause::Tampered, why)));
    }
    work.checking("running tests");
    let root = work.site.root().to_owned();
    let suite = verify::detect(&root, None, Some("sh check.sh")).unwrap();
    let bench = verify::Bench {
        launcher: launcher(),
        env: env.clone(),
        limit: Duration::from_secs(60),
        guard: work.site.guard()?,
    };
    let run = suite.run(&bench, work.stop).await;
    let output = run.output().to_owned();
    let gate = |pass| Gate { id: "tests".into(), pass, detail: run.sentence() };
    Ok(match Proof::of_tests(&run) {
        Ok(proof) => Checked::Holds(Held {
            shown: Shown::Proven(proof),
            keeps: Keeps::Changes,
            exhibit: Exhibit::Change,
            status: Status::Pass,
            message: "answer.txt says 42".into(),
            file_path: root.join("answer.txt").display().to_string(),
            runner_output: output,
            gates: vec![gate(true)],
            details: Value::Null,
            next: Value::Null,
        }),
        Err(refusal) => Checked::Fails(Failed {
            runner_output: output,
            gates: vec![gate(false)],
            ..Failed::new(Cause::Rejected, refusal.to_string())
        }),
    })
}

fn launcher() -> Launcher {
    Launcher::at(env!("CARGO_BIN_EXE_supervisor"))
}
