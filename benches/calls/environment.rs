//! An engine with a real log and real limits, a skill that answers with text, and a gateway that
//! answers at once.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use supervisor_engine::Status;
use supervisor_engine::call::{
    CallArguments, CallEnvironment, CallRequest, EnvironmentProvider, run,
};
use supervisor_engine::entry::{Entry, VERSION};
use supervisor_engine::evidence::Evidence;
use supervisor_engine::services::{NoModelHistory, Services, SessionBudgets};
use supervisor_engine::session::SessionLog;
use supervisor_engine::skill::{
    Access, DryRunPlan, Preparation, PreparedCall, Question, RefusedCall, Skill, TierUnfit,
};
use supervisor_engine::work::{
    AcceptedWork, KeepPolicy, RefusedWork, SubmittedWork, Verification, VerifierMaterial,
};
use supervisor_models::breaker::Breaker;
use supervisor_models::warm::WarmCheck;
use supervisor_models::{Backends, Edits, Env, SharedResources, ToolAccess};
use supervisor_process::Launcher;
use supervisor_settings::{Sources, Tier, load};
use supervisor_verify::Flags;
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

use super::{Scenario, launcher};

pub(super) struct BenchEnvironment {
    pub(super) scenario: Scenario,
    environment: CallEnvironment,
    log: SessionLog,
    launcher: Launcher,
    _dir: tempfile::TempDir,
}

impl BenchEnvironment {
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
            .with_redactor(Arc::clone(&redactor));
        let launcher = launcher();
        let services = Services {
            execution: supervisor_verify::Execution::default(),
            backends: Backends::new(SharedResources::new(
                launcher.clone(),
                env.clone(),
                routing.max_workers,
            )),
            breaker: Breaker::new(routing.breaker),
            warmth: WarmCheck::new(None, env.clone()),
            redactor,
            prompts: supervisor_text::prompts::Prompts::new(supervisor::built_in::PROMPTS, None),
            recorder: Arc::new(log.clone()),
            // No budgets: a bench makes more calls than a session may pay for.
            note_source: None,
            budgets: SessionBudgets::new(supervisor_settings::BudgetSettings::default(), None),
            model_history: Arc::new(NoModelHistory),
        };
        let services = Arc::new(services);
        let environment = CallEnvironment {
            settings,
            services,
            state,
            launcher: launcher.clone(),
            env,
        };
        Self {
            scenario,
            environment,
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
        let result = run::<TextSkill>(self, request, &(), &(), &stop).await;
        let asks = self.scenario.posts.max(1) + usize::from(self.scenario.programs > 1);
        assert_eq!(
            (result.status, result.more.attempts.len()),
            (Status::Pass, asks),
            "{}",
            result.message
        );
    }

    /// Waits until nothing that was started is running, including shims.
    pub(super) async fn settled(&self) {
        self.launcher.wait_for_all().await;
    }

    /// Writes one log line like a call does and returns the time it took.
    pub(super) fn line(&self) -> Duration {
        let entry = Entry {
            v: VERSION,
            session_id: "bench".into(),
            cycle_id: String::new(),
            timestamp: String::new(),
            skill: "words".into(),
            tool: "words".into(),
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
            foreground_ms: None,
        };
        let began = Instant::now();
        self.log.append(&entry).unwrap();
        began.elapsed()
    }
}

impl EnvironmentProvider for BenchEnvironment {
    fn environment(&self) -> Result<CallEnvironment, String> {
        Ok(self.environment.clone())
    }
}

/// A skill that accepts every answer.
struct TextSkill;

impl Skill for TextSkill {
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
            tool_access: ToolAccess::ReadOnly,
        };
        Ok((vec![question], ()))
    }

    async fn check(&self, work: SubmittedWork<'_>, (): ()) -> Result<AcceptedWork, RefusedWork> {
        Ok(AcceptedWork {
            verification: Verification::Unproven {
                why: String::from("nothing to prove"),
            },
            keeps: KeepPolicy::Changes,
            exhibit: VerifierMaterial::Change,
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

/// Starts a gateway that answers every request at once, each time with a different text, on kept
/// connections.
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
    let (mut buffer, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let length = loop {
            if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length:"));
                let total =
                    end + 4 + length.map_or(0, |length| length.trim().parse::<usize>().unwrap());
                if buffer.len() >= total {
                    break total;
                }
            }
            match stream.read(&mut chunk) {
                Ok(0) | Err(_) => return,
                Ok(n) => buffer.extend_from_slice(&chunk[..n]),
            }
        };
        buffer.drain(..length);
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
