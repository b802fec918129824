//! An engine with a real log and real limits; a skill that answers in words; and a gateway that answers at once.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use supervisor_engine::Status;
use supervisor_engine::call::{CallArguments, CallHost, CallRequest, Surroundings, run};
use supervisor_engine::entry::{Entry, VERSION};
use supervisor_engine::evidence::Evidence;
use supervisor_engine::means::{Means, NoExperience, SessionBudgets};
use supervisor_engine::session::SessionLog;
use supervisor_engine::skill::{
    Access, DryRunPlan, Preparation, PreparedCall, Question, RefusedCall, Skill, TierUnfit,
};
use supervisor_engine::work::{
    AcceptedWork, Exhibit, KeepPolicy, RefusedWork, SubmittedWork, Verification,
};
use supervisor_models::breaker::Breaker;
use supervisor_models::warm::Warmth;
use supervisor_models::{Backends, Edits, Env, Power, SharedResources};
use supervisor_process::Launcher;
use supervisor_settings::{Sources, Tier, load};
use supervisor_verify::Flags;
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

use super::{Scenario, launcher};

pub(super) struct Setting {
    pub(super) scenario: Scenario,
    surroundings: Surroundings,
    log: SessionLog,
    launcher: Launcher,
    _dir: tempfile::TempDir,
}

impl Setting {
    pub(super) fn new(scenario: Scenario, gate: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("models.toml");
        let program = std::env::current_exe().unwrap();
        let settings = format!(
            "default_chain = [{chain}]\nverifier = \"{verifier}\"\nmax_workers = 64\n[skills.review]\nchain = [{chain}]\n\
             [backends.gate]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{gate}\"\napi_key_env = \"GATE_KEY\"\n\
             models = [\"gate/*\"]\n\
             [backends.agent]\nkind = \"claude-cli\"\ntier = \"subagent\"\nprogram = \"{program}\"\n\
             models = [\"cloud\", \"says-*\"]\n",
            chain = scenario.chain,
            verifier = scenario.verifier,
            program = program.display(),
        );
        std::fs::write(&file, settings).unwrap();
        let settings = load(&Sources {
            user_file: Some(file),
            ..Sources::built_in(supervisor::built_in::MODELS_TOML)
        })
        .unwrap();
        let routing = &settings.routing;
        let env: Env = [("GATE_KEY", "sk-bench-0123456789abcdef")]
            .into_iter()
            .collect();
        let redactor = Arc::new(env.redactor(["GATE_KEY"]));
        let state = StateDir::at(dir.path().join("state")).unwrap();
        let log = SessionLog::open(&state)
            .unwrap()
            .redacting(Arc::clone(&redactor));
        let launcher = launcher();
        let means = Means {
            backends: Backends::new(SharedResources::new(
                launcher.clone(),
                env.clone(),
                routing.max_workers,
            )),
            breaker: Breaker::new(routing.breaker),
            warmth: Warmth::new(None, env.clone()),
            redactor,
            prompts: supervisor_text::prompts::Prompts::new(supervisor::built_in::PROMPTS, None),
            recorder: Arc::new(log.clone()),
            // A bench makes more calls than a session may pay for.
            recollection: None,
            budgets: SessionBudgets::new(supervisor_settings::BudgetSettings {
                usd: None,
                tokens: None,
                time: None,
            }),
            experience: Arc::new(NoExperience),
        };
        let means = Arc::new(means);
        let surroundings = Surroundings {
            settings,
            means,
            state,
            launcher: launcher.clone(),
            env,
        };
        Self {
            scenario,
            surroundings,
            log,
            launcher,
            _dir: dir,
        }
    }

    pub(super) async fn call(&self, session: &str) {
        let stop = CancellationToken::new();
        let arguments = CallArguments {
            project_root: "/".into(),
            session_id: Some(session.into()),
            input: json!({"question": "why?"}),
            ..CallArguments::default()
        };
        let request = CallRequest::new("review", "words", arguments, &[]);
        let result = run::<Words>(self, request, &(), &(), &stop).await;
        let asks = self.scenario.posts.max(1) + usize::from(self.scenario.programs > 1);
        assert_eq!(
            (result.status, result.more.attempts.len()),
            (Status::Pass, asks),
            "{}",
            result.message
        );
    }

    /// Nothing of what was started is left, shims included.
    pub(super) async fn settled(&self) {
        self.launcher.settled().await;
    }

    /// One line as a call writes it.
    pub(super) fn line(&self) -> Duration {
        let entry = Entry {
            v: VERSION,
            session_id: "bench".into(),
            cycle_id: String::new(),
            timestamp: String::new(),
            skill: "words".into(),
            phase: "words".into(),
            call: String::new(),
            cause: None,
            final_status: Status::Pass,
            project_root: String::new(),
            file_path: String::new(),
            model_used: "cloud".into(),
            message: String::new(),
            input: Value::Null,
            attempts: vec![],
            top_tier: None,
            class: None,
            policy: None,
            sandbox: String::new(),
            duration_ms: 0,
        };
        let began = Instant::now();
        self.log.append(&entry).unwrap();
        began.elapsed()
    }
}

impl CallHost for Setting {
    fn surroundings(&self) -> Result<Surroundings, String> {
        Ok(self.surroundings.clone())
    }
}

/// Whatever is said, it holds if nothing sealed was touched.
struct Words;

impl Skill for Words {
    type Params = ();
    type Shown = ();

    fn access((): &()) -> Result<Access, RefusedCall> {
        Ok(Access::Nothing)
    }

    async fn prepare((): &(), _: &mut Preparation<'_>) -> Result<PreparedCall<Self>, RefusedCall> {
        Ok(PreparedCall {
            skill: Self,
            discipline: "Answer briefly.".into(),
            task: "Say why.".into(),
            finding: None,
            plan: DryRunPlan {
                message: String::new(),
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
            prompt: format!(
                "{}{}",
                "a question of ordinary length ".repeat(70),
                evidence.render()
            ),
            schema: json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
            power: Power::ReadOnly,
        };
        Ok((vec![question], ()))
    }

    async fn check(&self, work: SubmittedWork<'_>, (): ()) -> Result<AcceptedWork, RefusedWork> {
        Ok(AcceptedWork {
            verification: Verification::Unproven {
                why: String::from("nothing to prove"),
            },
            keeps: KeepPolicy::Changes,
            exhibit: Exhibit::Change,
            status: Status::Pass,
            message: work.reply().body["text"]
                .as_str()
                .unwrap_or_default()
                .into(),
            file_path: String::new(),
            runner_output: String::new(),
            gates: vec![],
            flags: Flags::default(),
            details: Value::Null,
            next: Value::Null,
        })
    }
}

/// A gateway that answers every question at once, each time in other words, on connections that it keeps.
pub(super) fn gate() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || serve(stream));
        }
    });
    url
}

fn serve(mut stream: TcpStream) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let _ = stream.set_nodelay(true);
    let (mut seen, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let length = loop {
            if let Some(end) = seen.windows(4).position(|w| w == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&seen[..end]).to_lowercase();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length:"));
                let whole =
                    end + 4 + length.map_or(0, |length| length.trim().parse::<usize>().unwrap());
                if seen.len() >= whole {
                    break whole;
                }
            }
            match stream.read(&mut chunk) {
                Ok(0) | Err(_) => return,
                Ok(n) => seen.extend_from_slice(&chunk[..n]),
            }
        };
        seen.drain(..length);
        let words = format!("answer {}", COUNT.fetch_add(1, Ordering::Relaxed));
        let body = json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0,
            "finish_reason": "stop", "message": {"role": "assistant", "content": json!({"text": words}).to_string()}}],
            "usage": {"prompt_tokens": 700, "completion_tokens": 7, "total_tokens": 707}});
        let body = format!("{body}\n");
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
