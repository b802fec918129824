//! A small skill for tests: make `answer.txt` say 42. Real files, a real test command, real snapshots and a real log;
//! only the models are recorded.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use supervisor_edits::{EditProposal, read_edit_answer};
use supervisor_engine::call::{
    CallArguments, CallEnvironment, CallRequest, EnvironmentProvider, run,
};
use supervisor_engine::event::{Listener, ProgressLine};
use supervisor_engine::evidence::{Evidence, FollowUp};
use supervisor_engine::project_access::{Site, SiteError};
use supervisor_engine::services::{NoModelHistory, Services, SessionBudgets};
use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_engine::skill::{
    Access, DryRunPlan, Preparation, PreparedCall, Question, RefusedCall, Skill, TierUnfit,
};
use supervisor_engine::work::{
    AcceptedWork, KeepPolicy, RefusedWork, Screening, SeenEdits, SubmittedWork, Verification,
    VerifierMaterial,
};
use supervisor_engine::{CallResult, Cause, Entry, Gate, Status, proposal};
use supervisor_models::breaker::Breaker;
use supervisor_models::warm::WarmCheck;
use supervisor_models::{Backends, Edits, Env, SharedResources, Shell, ToolAccess};
use supervisor_process::Launcher;
use supervisor_settings::{CallOverrides, LoadedRouting, Sources, Tier, load};
use supervisor_text::prompts::Prompts;
use supervisor_text::redact::Redactor;
use supervisor_verify as verify;
use supervisor_verify::{Proof, Recheck};
use supervisor_workspace::state::StateDir;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Exits 0 only if the answer is right, and says what is wrong.
const TESTS: &str = r#"answer=$(cat answer.txt)
if [ "$answer" = 42 ]; then echo "1 passed"; exit 0; fi
echo "answer_is_42 failed: left $answer, right 42"; exit 1
"#;

pub const SESSION: &str = "chain-test";

/// A project, a state directory, recorded models.
pub struct Bench {
    pub project: Dir,
    pub state: Dir,
    answers: Vec<Value>,
    settings: String,
    pub call: CallOverrides,
    secrets: Vec<String>,
    env: BTreeMap<OsString, OsString>,
    schema: Value,
}

/// A directory that goes with its bench, unless it belongs to somebody else.
pub struct Dir {
    path: PathBuf,
    _own: Option<TempDir>,
}

impl Dir {
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn own() -> Self {
        let own = tempfile::tempdir().unwrap();
        Self {
            path: own.path().to_owned(),
            _own: Some(own),
        }
    }

    fn below(dir: &Path, name: &str) -> Self {
        let path = dir.join(name);
        fs::create_dir_all(&path).unwrap();
        Self { path, _own: None }
    }
}

/// What came of a call.
pub struct Ran {
    pub result: CallResult,
    pub entry: Entry,
    pub story: Vec<String>,
    /// Every question, in order.
    pub asked: Vec<Value>,
    pub answer: String,
}

impl Bench {
    /// Tiers `small`, `medium` (local) and `large` (an agent's tier), and a verifier `judge`; a chain of the first `n`.
    pub fn chain(tiers: &[&str]) -> Self {
        Self::with(tiers, Dir::own(), Dir::own())
    }

    /// The same in a directory that outlives it: `project` and `state`.
    pub fn below(dir: &Path, tiers: &[&str]) -> Self {
        Self::with(tiers, Dir::below(dir, "project"), Dir::below(dir, "state"))
    }

    fn with(tiers: &[&str], project: Dir, state: Dir) -> Self {
        fs::write(project.path().join("answer.txt"), "41").unwrap();
        fs::write(project.path().join("check.sh"), TESTS).unwrap();
        let file = state.path().join("answers.jsonl");
        let chain: Vec<String> = tiers.iter().map(|t| format!("\"{t}\"")).collect();
        let settings = format!(
            "default_chain = [{chain}]\nverifier = \"judge\"\nattempts_per_tier = 1\n\
             [skills.review]\nchain = [{chain}]\n\
             [backends.near]\nkind = \"replay\"\ntier = \"local\"\nfile = \"{file}\"\nmodels = [\"small\", \"medium\"]\n\
             [backends.far]\nkind = \"replay\"\ntier = \"subagent\"\nfile = \"{file}\"\nmodels = [\"large\", \"judge\"]\n",
            chain = chain.join(", "),
            file = file.display(),
        );
        let call = CallOverrides {
            max_attempts: Some(10),
            ..CallOverrides::default()
        };
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
                "properties": {"edits": proposal::schema(), "contradiction": {"type": "string"}, "need": {"type": "string"}},
            }),
        }
    }

    /// The next answer of a model: this number in the file.
    pub fn writes(self, model: &str, number: &str) -> Self {
        let edits = json!([{"path": "answer.txt", "action": "replace", "content": number}]);
        self.line(
            json!({"model": model, "answer": {"edits": edits}, "tokens_in": 100, "tokens_out": 20, "cost_usd": 0.01}),
        )
    }

    pub fn fails(self, model: &str, failure: &str) -> Self {
        self.line(json!({"model": model, "failure": failure}))
    }

    pub fn judges(self, accept: bool, feedback: &str) -> Self {
        self.line(json!({"model": "judge", "answer": {"accept": accept, "feedback": feedback}, "cost_usd": 0.002}))
    }

    pub fn line(mut self, line: Value) -> Self {
        self.answers.push(line);
        self
    }

    pub fn without_verifier(mut self) -> Self {
        self.settings = self
            .settings
            .replace("verifier = \"judge\"", "verifier = \"none\"");
        self
    }

    pub fn secret(mut self, value: &str) -> Self {
        self.secrets.push(value.into());
        self
    }

    /// As many asks of each tier as the defaults grant, where other tests want one.
    pub fn with_default_attempts(mut self) -> Self {
        self.settings = self.settings.replace("attempts_per_tier = 1\n", "");
        self
    }

    /// More of `models.toml`: another backend.
    pub fn settings(mut self, more: &str) -> Self {
        self.settings += more;
        self
    }

    /// An agent program as the tier `agent`.
    pub fn agent(self, program: &Path) -> Self {
        let more = format!(
            "[backends.agent]\nkind = \"claude-cli\"\ntier = \"subagent\"\nprogram = \"{}\"\nmodels = [\"agent\"]\n\
             [models.agent]\nid = \"claude-x\"\n[sandbox]\nmode = \"auto\"\nwrite = [\"{}\"]\n",
            program.display(),
            program.parent().unwrap().display()
        );
        self.settings(&more)
    }

    /// What an answer must look like, where the usual leaves too much room.
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = schema;
        self
    }

    /// A variable that the server was started with.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    pub fn pinned(mut self, model: &str) -> Self {
        self.call.model = Some(model.into());
        self
    }

    fn loaded(&self) -> LoadedRouting {
        let file = self.state.path().join("models.toml");
        fs::write(&file, &self.settings).unwrap();
        load(&Sources {
            user_file: Some(file),
            ..Sources::built_in(crate::MODELS_TOML)
        })
        .unwrap()
    }

    /// Inside the walls that the settings ask for, as the server's.
    fn launcher(&self, loaded: &LoadedRouting) -> Launcher {
        let state = self.state.path().join("state");
        Launcher::this_program().with_rules(loaded.routing.sandbox.rules(None, Some(&state)))
    }

    fn services(&self, loaded: &LoadedRouting, log: SessionLog) -> Services {
        let lines: String = self
            .answers
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        fs::write(self.state.path().join("answers.jsonl"), lines).unwrap();
        let env: Env = self.env.clone().into_iter().collect();
        // As the server makes it where nothing is said beside the environment.
        let redactor = if self.secrets.is_empty() {
            let named = loaded
                .routing
                .backends
                .values()
                .filter_map(|backend| backend.api_key_env.as_deref());
            env.redactor(named)
        } else {
            Redactor::with_values(&self.secrets)
        };
        let redactor = Arc::new(redactor);
        Services {
            backends: Backends::new(SharedResources::new(self.launcher(loaded), env.clone(), 2)),
            breaker: Breaker::new(loaded.routing.breaker),
            warmth: WarmCheck::new(None, env),
            redactor: Arc::clone(&redactor),
            prompts: Prompts::new(crate::prompts(), None),
            recorder: Arc::new(
                log.with_redactor(redactor)
                    .with_exchange(loaded.routing.log),
            ),
            budgets: SessionBudgets::new(loaded.routing.budgets.session, None),
            model_history: Arc::new(NoModelHistory),
            note_source: None,
            execution: supervisor_verify::Execution::default(),
        }
    }

    pub async fn run(&self) -> Ran {
        self.run_until(&CancellationToken::new(), &()).await
    }

    pub async fn run_until(&self, stop: &CancellationToken, also: &dyn Listener) -> Ran {
        let loaded = self.loaded();
        let state = StateDir::at(self.state.path().join("state")).unwrap();
        let log = SessionLog::open(&state).unwrap();
        let services = self.services(&loaded, log.clone());
        let root = self.project.path().canonicalize().unwrap();
        let arguments = CallArguments {
            project_root: root.display().to_string(),
            session_id: Some(SESSION.into()),
            model: self.call.model.clone(),
            timeout_s: self.call.timeout.map(|timeout| timeout.as_secs()),
            max_attempts: self.call.max_attempts,
            budget_usd: self.call.budget_usd,
            samples: self.call.samples,
            input: json!({"goal": "42"}),
            ..CallArguments::default()
        };
        // Any skill that the settings know.
        let request = CallRequest::new("review", "fix", arguments, &[]);
        let env = self.env.clone().into_iter().collect();
        let launcher = self.launcher(&loaded);
        let host = Host(CallEnvironment {
            settings: loaded,
            services: Arc::new(services),
            state,
            launcher,
            env,
        });
        let heard = Heard {
            lines: Mutex::default(),
            also,
        };
        let result = run::<Fix>(&host, request, &self.schema, &heard, stop).await;
        let mut history = log.read(&SESSION.parse::<SessionId>().unwrap()).unwrap();
        assert_eq!(history.damage.lines(), 0);
        let entry = history
            .records
            .pop()
            .expect("every call is written down")
            .entry;
        let asked =
            fs::read_to_string(self.state.path().join("answers.jsonl.asked")).unwrap_or_default();
        let asked = asked
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let story = heard.lines.into_inner().unwrap();
        let answer = fs::read(self.project.path().join("answer.txt")).unwrap();
        let answer = String::from_utf8_lossy(&answer[..answer.len().min(64)]).into_owned();
        Ran {
            result,
            entry,
            story,
            asked,
            answer,
        }
    }
}

impl Ran {
    /// `small rejected | large accepted`.
    pub fn trail(&self) -> String {
        let one = |a: &supervisor_engine::Attempt| {
            format!("{} {}", a.model, a.cause.map_or("?", Cause::word))
        };
        self.result
            .more
            .attempts
            .iter()
            .map(one)
            .collect::<Vec<_>>()
            .join(" | ")
    }

    /// The questions that went to one model.
    pub fn asked_of(&self, model: &str) -> Vec<&Value> {
        self.asked
            .iter()
            .filter(|question| question["model"] == model)
            .collect()
    }
}

struct Heard<'a> {
    lines: Mutex<Vec<String>>,
    also: &'a dyn Listener,
}

impl Listener for Heard<'_> {
    fn on_event(&self, told: &ProgressLine) {
        self.lines.lock().unwrap().push(told.line.clone());
        self.also.on_event(told);
    }
}

struct Host(CallEnvironment);

impl EnvironmentProvider for Host {
    fn environment(&self) -> Result<CallEnvironment, String> {
        Ok(self.0.clone())
    }
}

/// The skill: one file, one number.
struct Fix {
    bench: verify::RunEnvironment,
    schema: Value,
}

const TASK: &str = "answer.txt must say 42.";

impl Skill for Fix {
    type Params = Value;
    type Shown = ();

    fn access(_: &Value) -> Result<Access, RefusedCall> {
        Ok(Access::Edit)
    }

    async fn prepare(
        schema: &Value,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<Self>, RefusedCall> {
        Ok(PreparedCall {
            skill: Self {
                bench: call.bench(),
                schema: schema.clone(),
            },
            discipline: "Change answer.txt and nothing else.".into(),
            task: TASK.into(),
            finding: None,
            plan: DryRunPlan {
                message: "dry run".into(),
                details: json!({}),
            },
        })
    }

    fn ask(
        &self,
        _: &Tier,
        _: Edits,
        evidence: &Evidence,
    ) -> Result<(Vec<Question>, ()), TierUnfit> {
        let question = Question {
            prompt: format!("{TASK}{}", evidence.render()),
            schema: self.schema.clone(),
            tool_access: ToolAccess::Edit {
                shell: Shell::Never,
            },
        };
        Ok((vec![question], ()))
    }

    async fn screen(
        &self,
        work: SubmittedWork<'_>,
        (): (),
        seen: &mut SeenEdits,
    ) -> Result<Screening, RefusedWork> {
        // What is no edit is judged as usual.
        if work.reply().body["edits"].is_null() {
            return Ok(Screening::Passed);
        }
        Self::apply(&work.reply().body.clone(), work.site)?;
        let text = fs::read(work.site.files_root().join("answer.txt")).unwrap_or_default();
        let number = work.candidate.expect("one of several");
        let first = seen.note(number, &text);
        Ok(first.map_or(Screening::Passed, Screening::SameAs))
    }

    async fn check(&self, work: SubmittedWork<'_>, (): ()) -> Result<AcceptedWork, RefusedWork> {
        let body = &work.reply().body;
        if let Some(garbled) = body["garbled"].as_str() {
            let unreadable = RefusedWork::new(Cause::Unreadable, "there are no edits in it");
            return Err(RefusedWork {
                follow_up: Some(FollowUp::repair("there are no edits", garbled)),
                ..unreadable
            });
        }
        if let Some(file) = body["need"].as_str() {
            let said = format!(
                "You asked for `{file}`, which says: {}",
                Self::shown(&work, file)
            );
            let refused = RefusedWork::new(Cause::Rejected, "it asks for files and gives no edits");
            return Err(RefusedWork {
                follow_up: Some(FollowUp::need(said, json!([file]))),
                ..refused
            });
        }
        if let Some(reason) = work.reply().body["contradiction"].as_str() {
            return Err(RefusedWork::new(Cause::Contradiction, reason));
        }
        self.judge(work).await
    }
}

impl Fix {
    fn shown(work: &SubmittedWork<'_>, file: &str) -> String {
        fs::read_to_string(work.site.root().join(file)).unwrap_or_else(|error| error.to_string())
    }

    /// Applies the edits of an answer.
    fn apply(body: &Value, site: &mut Site) -> Result<(), RefusedWork> {
        let broken = |error: SiteError| RefusedWork::new(Cause::Rejected, error.to_string());
        let sealed = |path: &Path| {
            if path == Path::new("answer.txt") {
                Ok(())
            } else {
                Err("only answer.txt may change".to_owned())
            }
        };
        let text = body
            .as_str()
            .map_or_else(|| body.to_string(), str::to_owned);
        let redactor = Redactor::patterns_only();
        let facts = proposal::SiteFacts::of(site, &["answer.txt".to_owned()], &sealed, &redactor)
            .map_err(broken)?;
        let answer = read_edit_answer(&text, &facts)
            .map_err(|why| RefusedWork::new(Cause::Unreadable, why.to_string()))?;
        let EditProposal::Edits(edits) = answer.proposal else {
            return Err(RefusedWork::new(Cause::Rejected, "nothing would change"));
        };
        site.apply(&edits, &sealed).map_err(broken)?;
        Ok(())
    }

    async fn judge(&self, work: SubmittedWork<'_>) -> Result<AcceptedWork, RefusedWork> {
        let broken = |error: SiteError| RefusedWork::new(Cause::Rejected, error.to_string());
        if work.edits == Edits::AsData {
            Self::apply(&work.reply().body.clone(), work.site)?;
        }
        if let Some(other) = work
            .changed
            .changes
            .iter()
            .find(|change| change.path != Path::new("answer.txt"))
        {
            let why = format!(
                "`{}` was changed; only answer.txt may change",
                other.path.display()
            );
            return Err(RefusedWork::new(Cause::Tampered, why));
        }
        work.checking("running tests");
        let root = work.site.root().to_owned();
        let suite = verify::detect(&root, None, Some("sh check.sh")).unwrap();
        let bench = verify::RunEnvironment {
            guard: work.site.guard().map_err(broken)?,
            ..self.bench.clone()
        };
        let run = suite.run(&bench, work.stop).await;
        let output = run.output().to_owned();
        let gate = |pass| Gate {
            id: "tests".into(),
            pass,
            detail: run.sentence(),
        };
        let proof = Proof::of_tests(&run);
        let recheck = Recheck {
            suite,
            environment: self.bench.clone(),
            accepted: run.clone(),
            must_fail: vec![],
        };
        work.site.set_recheck(recheck);
        match proof {
            Ok(proof) => Ok(AcceptedWork {
                verification: Verification::Proven(proof),
                keeps: KeepPolicy::Changes,
                exhibit: VerifierMaterial::Change,
                status: Status::Pass,
                message: "answer.txt says 42".into(),
                file_path: root.join("answer.txt").display().to_string(),
                runner_output: output,
                gates: vec![gate(true)],
                flags: Default::default(),
                details: Value::Null,
                next: Value::Null,
            }),
            Err(refusal) => Err(RefusedWork {
                runner_output: output,
                gates: vec![gate(false)],
                ..RefusedWork::new(Cause::Rejected, refusal.to_string())
            }),
        }
    }
}
