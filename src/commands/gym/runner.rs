//! Runs gym jobs one after the other and records the outcome of each.

use crate::built_in;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::plan::{GymJob, GymPlan};
use super::twins::{self, HIDDEN_TESTS};
use super::window::measure_window;
use super::{link_packages, task_directory};
use crate::commands::client::{CallReply, Client, whole_result};
use crate::commands::console::Console;
use supervisor_engine::result::{CallResult, Status};
use supervisor_gym::passport::{DigestChoice, PassportBook};
use supervisor_gym::results::{GymMode, GymOutcome, GymTry, ResultsFile, VERSION};
use supervisor_gym::task::TaskKind;
use supervisor_models::availability::ProbeConfig;
use supervisor_models::digest::digest_of;
use supervisor_process::environment;
use supervisor_settings::{BackendKind, CallOverrides, Sources, load};
use supervisor_skills::App;
use supervisor_text::words;
use supervisor_verify::{Outcome, RunEnvironment, Suite, TestSandbox, detect};
use supervisor_workspace::state::StateDir;

/// Consecutive failures to reach a model after which it is skipped.
const GIVE_UP_AFTER: usize = 3;

/// Limits that end a run early.
pub(super) struct RunLimits {
    pub(super) usd: Option<f64>,
    pub(super) until: Option<Instant>,
    pub(super) seed: u64,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RunEnd {
    Done,
    Budget(f64),
    Minutes,
    Interrupted,
    /// These models could not be reached any more.
    Unreachable(Vec<String>),
}

impl RunEnd {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Budget(_) => "budget",
            Self::Minutes => "minutes",
            Self::Interrupted => "interrupted",
            Self::Unreachable(_) => "unreachable",
        }
    }

    /// Why the run ended early and what to do about it; `None` if it is complete.
    pub(super) fn sentence(&self) -> Option<String> {
        let on = "the same command, without `--fresh`, goes on from here";
        match self {
            Self::Done => None,
            Self::Budget(usd) => Some(format!(
                "stopped: ${usd:.2} were spent, which is the budget; {on}"
            )),
            Self::Minutes => Some(format!("stopped: the time limit is reached; {on}")),
            Self::Interrupted => Some(format!("interrupted; {on}")),
            Self::Unreachable(models) => Some(format!(
                "`{}` could not be asked {GIVE_UP_AFTER} times in a row, so no more was tried; `supervisor doctor` says \
                 why, and {on}",
                models.join("`, `")
            )),
        }
    }
}

/// Runs jobs through its own in-process server.
pub(super) struct GymRunner {
    client: Client,
    /// Runs the hidden tests, without any model.
    app: App,
    /// File with the scripted answers.
    script: Option<PathBuf>,
    /// Set if the chain has to be configured anew for each job.
    chain: Option<GeneratedChain>,
    /// Set if models are measured: the settings, and the mode that the client has now.
    modes: Option<ModeClients>,
    dir: Option<tempfile::TempDir>,
}

/// Starts a client for each mode.
struct ModeClients {
    sources: Sources,
    state: StateDir,
    current: Option<(GymMode, Option<String>)>,
}

impl ModeClients {
    async fn start(&self, mode: GymMode, worker_var: Option<&str>) -> anyhow::Result<Client> {
        let mut sources = self.sources.clone();
        for (key, value) in [
            ("SUPERVISOR_SAMPLES", mode.samples.to_string()),
            ("SUPERVISOR_REPAIR", mode.repair.word().to_owned()),
        ] {
            sources.env.insert(key.into(), value.into());
        }
        if let Some((var, worker)) = worker_var.zip(mode.worker) {
            sources.env.insert(var.into(), worker.word().into());
        }
        let app = App::of_process(sources, built_in::PROMPTS)
            .with_state_dir(self.state.clone())
            .without_cooldowns();
        Ok(Client::start(app).await?)
    }
}

/// Models configured next to a scripted answer, and the settings that define them.
struct GeneratedChain {
    sources: Sources,
    /// The verifier to measure.
    verifier: Option<String>,
    /// The model that writes hidden tests ("twins").
    author: Option<String>,
}

impl GymRunner {
    pub(super) async fn start(
        plan: &GymPlan,
        config: Option<PathBuf>,
        state: &StateDir,
    ) -> anyhow::Result<Self> {
        // A separate log and separate passports, so that measurements do not mix with daily use.
        let gym_state = StateDir::at(state.path().join("gym"))?;
        let needs_chain = plan.verifier.is_some() || plan.twins.is_some();
        if !plan.is_self && !needs_chain {
            // Tasks are independent measurements, so the circuit breaker must not pause a model.
            let app = || {
                built_in::app(config.clone())
                    .with_state_dir(gym_state.clone())
                    .without_cooldowns()
            };
            let client = Client::start(app()).await?;
            return Ok(Self {
                client,
                app: app(),
                script: None,
                chain: None,
                modes: Some(ModeClients {
                    sources: built_in::sources(config.clone()),
                    state: gym_state.clone(),
                    current: None,
                }),
                dir: None,
            });
        }
        let dir = task_directory().context("making a temporary directory")?;
        // Scripted answers need no passport and no permanent log.
        let temp_state = StateDir::at(dir.path().canonicalize()?.join("state"))?;
        let (script, settings) = (
            dir.path().join("answers.jsonl"),
            dir.path().join("models.toml"),
        );
        fs::write(&script, "")?;
        let mut sources = Sources {
            user_file: Some(settings.clone()),
            ..Sources::built_in(built_in::MODELS_TOML)
        };
        let mut text = self_settings(&script)?;
        if plan.verifier.is_some()
            || plan
                .twins
                .as_ref()
                .is_some_and(|author| author != HIDDEN_TESTS)
        {
            // The user's settings define that model; add the scripted answers to them.
            sources = built_in::sources(config);
            let own = load(&sources)?
                .file
                .map(fs::read_to_string)
                .transpose()
                .context("reading your settings")?;
            text = format!("{}\n{}", own.unwrap_or_default(), self_backend(&script)?);
            sources.user_file = Some(settings.clone());
        }
        fs::write(&settings, text)?;
        let app = || {
            let sources = sources.clone();
            let probe_config = ProbeConfig::new(
                supervisor_models::Env::from_process(),
                supervisor_process::Launcher::this_program(),
            );
            App::new(sources, built_in::PROMPTS, probe_config)
                .with_state_dir(temp_state.clone())
                .with_executions(crate::commands::remote::execution)
        };
        let (client, app) = (Client::start(app()).await?, app());
        let chain = needs_chain.then(|| GeneratedChain {
            sources,
            verifier: plan.verifier.clone(),
            author: plan.twins.clone(),
        });
        Ok(Self {
            client,
            app,
            script: Some(script),
            chain,
            modes: None,
            dir: Some(dir),
        })
    }

    /// Looks up the digest of each model's weights, if its server reports one.
    pub(super) async fn find_digests(&self, jobs: &mut [GymJob]) -> anyhow::Result<()> {
        let settings = self.app.settings()?;
        let mut known: BTreeMap<String, Option<String>> = BTreeMap::new();
        for job in jobs {
            if !known.contains_key(&job.model) {
                let overrides = CallOverrides {
                    model: Some(job.model.clone()),
                    ..CallOverrides::default()
                };
                let Ok(route) = settings.routing.route("tdd_green", &overrides) else {
                    continue;
                };
                known.insert(
                    job.model.clone(),
                    digest_of(&route.chain.first, self.app.env()).await,
                );
            }
            job.digest = known.get(&job.model).cloned().flatten();
        }
        Ok(())
    }

    /// Measures the context window of each local model that has no measurement yet.
    pub(super) async fn measure_windows(
        &self,
        jobs: &[&GymJob],
        console: &mut Console,
        book: &PassportBook,
        stop: &CancellationToken,
    ) -> anyhow::Result<()> {
        let settings = self.app.settings()?;
        let mut models: Vec<(&str, Option<&str>)> = jobs
            .iter()
            .map(|job| (job.model.as_str(), job.digest.as_deref()))
            .collect();
        models.sort_unstable();
        models.dedup();
        for (model, digest) in models {
            let overrides = CallOverrides {
                model: Some(model.to_owned()),
                ..CallOverrides::default()
            };
            let Ok(route) = settings.routing.route("tdd_green", &overrides) else {
                continue;
            };
            let tier = &route.chain.first;
            let known = book
                .of_digest(model, digest)?
                .is_some_and(|passport| passport.window_tokens.is_some());
            if tier.backend.kind == BackendKind::Openai && !known {
                console.begin(&format!("{model}: measuring its window"));
                let services = self.app.services(&settings)?;
                if let Some(tokens) = measure_window(&services.backends, tier, 1, stop).await {
                    book.update(model, DigestChoice::This(digest), |passport| {
                        passport.window_tokens = Some(tokens);
                    })?;
                    console.print_line(&format!(
                        "{}: takes in {tokens} tokens",
                        words::plain(model)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Runs the jobs until they are done or a limit is reached. Each outcome is on disk before the
    /// next job starts.
    pub(super) async fn run_all(
        &mut self,
        jobs: &[&GymJob],
        limits: &RunLimits,
        results: &mut ResultsFile,
        console: &mut Console,
        stop: &CancellationToken,
        measured: &mut Vec<GymOutcome>,
    ) -> anyhow::Result<RunEnd> {
        let (mut spent, mut failures) = (0.0, BTreeMap::<&str, usize>::new());
        let unreachable = |failures: &BTreeMap<&str, usize>| {
            let models = failures.iter().filter(|(_, n)| **n >= GIVE_UP_AFTER);
            models
                .map(|(model, _)| (*model).to_owned())
                .collect::<Vec<String>>()
        };
        for (n, job) in jobs.iter().enumerate() {
            if stop.is_cancelled() {
                return Ok(RunEnd::Interrupted);
            }
            if limits.until.is_some_and(|until| Instant::now() >= until) {
                return Ok(RunEnd::Minutes);
            }
            if limits.usd.is_some_and(|usd| spent >= usd) {
                return Ok(RunEnd::Budget(spent));
            }
            if failures
                .get(job.model.as_str())
                .is_some_and(|n| *n >= GIVE_UP_AFTER)
            {
                continue;
            }
            let mut label = format!("{}/{} {} · {}", n + 1, jobs.len(), job.task.name, job.model);
            if jobs.iter().any(|other| other.mode != job.mode) {
                label += &format!(" · {}", job.mode);
            }
            console.begin(&label);
            let left = limits.usd.map(|usd| usd - spent);
            let Some(outcome) = self
                .run_one(n, job, limits.seed, left, console, stop)
                .await?
            else {
                return Ok(RunEnd::Interrupted);
            };
            spent += outcome.tries.iter().filter_map(|one| one.usd).sum::<f64>();
            let count = failures.entry(job.model.as_str()).or_default();
            *count = if outcome.is_not_reached() {
                *count + 1
            } else {
                0
            };
            results.append(&outcome)?;
            console.print_line(&words::plain(&format!(
                "{label}: {}",
                describe_outcome(&outcome)
            )));
            measured.push(outcome);
        }
        let unreachable = unreachable(&failures);
        Ok(if unreachable.is_empty() {
            RunEnd::Done
        } else {
            RunEnd::Unreachable(unreachable)
        })
    }

    /// `None` if it was stopped.
    async fn run_one(
        &mut self,
        number: usize,
        job: &GymJob,
        seed: u64,
        budget_usd: Option<f64>,
        console: &mut Console,
        stop: &CancellationToken,
    ) -> anyhow::Result<Option<GymOutcome>> {
        let dir = task_directory().context("making a temporary project")?;
        let root = dir.path().canonicalize()?;
        job.task
            .write_project(&root)
            .with_context(|| format!("writing {}", job.task.name))?;
        link_packages(job.track.as_deref(), &root)?;
        let mut arguments = json!({"project_root": root, "session_id": "gym"});
        match &job.task.check {
            Some(check) => arguments["check"] = check.visible.clone(),
            None => arguments["test_path"] = json!(job.task.test_path),
        }
        let name = self.register_answer(number, job)?;
        self.enter(job).await?;
        if self.chain.is_some() {
            // A model named in the call would be asked without verifier and twins, so name it in
            // the chain instead.
            self.restart_with_chain(&name, number).await?;
            arguments["max_attempts"] = json!(1);
        } else {
            arguments["model"] = json!(name);
        }
        if !job.task.spec.is_empty() {
            arguments["context"] = json!(job.task.spec);
        }
        if job.task.tool() == "tdd_refactor" {
            arguments["impl_path"] = json!(job.task.solution_path);
        }
        if job.task.allow_dependencies {
            arguments["allow_dependencies"] = json!(true);
        }
        if let Some(usd) = budget_usd {
            arguments["budget_usd"] = json!(usd);
        }
        let began = Instant::now();
        let Some(mut result) = self
            .call_tool(job.task.tool(), &arguments, console, stop)
            .await?
        else {
            return Ok(None);
        };
        let mut kind = job.task.kind;
        // A track does not mark its refactoring exercises; their tests pass from the start.
        if kind == TaskKind::Write
            && job.track.is_some()
            && result.more.attempts.is_empty()
            && self.passes(&root, None, stop).await? == Some(true)
        {
            kind = TaskKind::Refactor;
            arguments["impl_path"] = json!(job.task.solution_path);
            let Some(refactored) = self
                .call_tool(kind.tool(), &arguments, console, stop)
                .await?
            else {
                return Ok(None);
            };
            result = refactored;
        }
        let seconds = began.elapsed().as_secs_f64();
        let accepted = result.status == Status::Pass;
        let hidden_passed = if accepted && !job.task.hidden.is_empty() && !job.contradictory {
            job.task
                .add_hidden_tests(&root)
                .with_context(|| format!("writing {}", job.task.name))?;
            console.set_status("running the hidden tests");
            let check = job.task.check.as_ref().map(|check| &check.hidden);
            self.passes(&root, check, stop).await?
        } else {
            None
        };
        let attempts = &result.more.attempts;
        Ok(Some(GymOutcome {
            v: VERSION,
            at: jiff::Timestamp::now().to_string(),
            seed,
            task: job.task.name.clone(),
            language: job.task.language.clone(),
            kind,
            level: job.task.level,
            contradictory: job.contradictory,
            model: job.model.clone(),
            digest: job.digest.clone(),
            repeat: job.repeat,
            answer: job
                .answer
                .as_ref()
                .map(|(name, _)| name.clone())
                .unwrap_or_default(),
            accepted,
            verified: result.verified,
            cause: attempts.last().and_then(|attempt| attempt.cause),
            said: if accepted {
                String::new()
            } else {
                words::cut_end(&result.message, 300).into_owned()
            },
            tries: attempts
                .iter()
                .filter(|one| one.was_asked() && !one.is_unsent())
                .map(GymTry::of)
                .collect(),
            hidden_passed,
            twins: twins::twin_counts(&result),
            edit_format: job.edit_format.clone(),
            mode: job.mode,
            seconds,
        }))
    }

    /// Restarts the server if this mode differs from that of the job before.
    async fn enter(&mut self, job: &GymJob) -> anyhow::Result<()> {
        let wanted = Some((job.mode, job.worker_var.clone()));
        let Some(modes) = self.modes.as_mut().filter(|m| m.current != wanted) else {
            return Ok(());
        };
        let client = modes.start(job.mode, job.worker_var.as_deref()).await?;
        modes.current = wanted;
        std::mem::replace(&mut self.client, client).finish().await;
        Ok(())
    }

    /// `None` if it was stopped.
    async fn call_tool(
        &mut self,
        tool: &str,
        arguments: &Value,
        console: &mut Console,
        stop: &CancellationToken,
    ) -> anyhow::Result<Option<CallResult>> {
        let called = self
            .client
            .call(tool, arguments.clone(), stop, &mut |line| {
                console.set_status(line);
            })
            .await?;
        let CallReply::Answered(reply) = called else {
            return Ok(None);
        };
        Ok(Some(
            serde_json::from_value(whole_result(reply)).context("reading the result")?,
        ))
    }

    /// Writes the scripted answer of a job and returns the model name it is registered under. Each
    /// job gets its own name, so that no answer is left over for the next one. For jobs without a
    /// scripted answer it returns the model itself.
    fn register_answer(&self, number: usize, job: &GymJob) -> anyhow::Result<String> {
        let (Some(script), Some((_, files))) = (&self.script, &job.answer) else {
            return Ok(job.model.clone());
        };
        let name = format!("self/{}/{number}", job.model);
        let edit = |(path, text): (&String, &String)| {
            let action = if job.task.files.contains_key(path) {
                "replace"
            } else {
                "create"
            };
            json!({"path": path, "action": action, "content": text})
        };
        let line = json!({"model": name, "answer": {"edits": files.iter().map(edit).collect::<Vec<Value>>()}});
        let mut file = fs::OpenOptions::new().append(true).open(script)?;
        writeln!(file, "{line}")?;
        if self
            .chain
            .as_ref()
            .is_some_and(|chain| chain.author.as_deref() == Some(HIDDEN_TESTS))
            && let Some(hidden) = job.task.hidden.values().next()
        {
            writeln!(
                file,
                "{}",
                json!({"model": hidden_author(number), "answer": {"tests": hidden}})
            )?;
        }
        Ok(name)
    }

    /// Restarts the server with a chain of this model, the verifier to measure and the author of
    /// twins.
    async fn restart_with_chain(&mut self, name: &str, number: usize) -> anyhow::Result<()> {
        let (Some(chain), Some(dir)) = (&self.chain, &self.dir) else {
            return Ok(());
        };
        let mut sources = chain.sources.clone();
        let author = match chain.author.as_deref() {
            Some(HIDDEN_TESTS) => Some(hidden_author(number)),
            other => other.map(str::to_owned),
        };
        let models: Vec<String> = std::iter::once(name.to_owned())
            .chain(author.clone())
            .collect();
        let twins = author.map_or(0, |_| twins::TWINS_REQUESTED);
        let mut set = |levels: &[&str], value: String| {
            sources.env.insert(
                format!("SUPERVISOR_{}", levels.join("__")).into(),
                value.into(),
            );
        };
        for skill in ["TDD_GREEN", "TDD_REFACTOR"] {
            set(&["SKILLS", skill, "CHAIN"], models.join(","));
            set(&["SKILLS", skill, "ATTEMPTS_PER_TIER"], "1".into());
            set(
                &["SKILLS", skill, "VERIFIER"],
                chain.verifier.clone().unwrap_or_else(|| "none".into()),
            );
            set(&["SKILLS", skill, "TWINS"], twins.to_string());
        }
        // A learned policy could put the author before the scripted answer.
        set(&["POLICY", "MODE"], "static".into());
        let state = StateDir::at(dir.path().canonicalize()?.join("state"))?;
        let probe_config = ProbeConfig::new(
            supervisor_models::Env::from_process(),
            supervisor_process::Launcher::this_program(),
        );
        let client = Client::start(
            App::new(sources, built_in::PROMPTS, probe_config)
                .with_state_dir(state)
                .with_executions(crate::commands::remote::execution),
        )
        .await?;
        std::mem::replace(&mut self.client, client).finish().await;
        Ok(())
    }

    /// Whether the check passes, or without one all tests of the project; `None` if they could not be run.
    async fn passes(
        &self,
        root: &std::path::Path,
        check: Option<&Value>,
        stop: &CancellationToken,
    ) -> anyhow::Result<Option<bool>> {
        let routing = self.app.settings()?.routing;
        let bench = RunEnvironment {
            launcher: self.app.sandboxed_launcher(&routing),
            env: environment::tests(self.app.env().vars().clone(), &[], &routing.env_pass),
            limit: routing.limits.tests.min(Duration::from_secs(600)),
            guard: None,
            sandbox: TestSandbox::default(),
            execution: self.app.execution(&routing).map_err(anyhow::Error::msg)?,
        };
        let suite = match check {
            Some(check) => Suite::of_check(root, &serde_json::from_value(check.clone())?),
            None => detect(root, None, None)?,
        };
        let run = suite.run(&bench, stop).await;
        Ok(match run.outcome() {
            Outcome::Passed => Some(true),
            // Code that does not build with the hidden tests or hangs in them is wrong too.
            Outcome::Failed
            | Outcome::DidNotBuild { .. }
            | Outcome::TimedOut { .. }
            | Outcome::Killed { .. } => Some(false),
            Outcome::NoTests
            | Outcome::CouldNotRun { .. }
            | Outcome::Unclear { .. }
            | Outcome::Cancelled => None,
        })
    }
}

/// A separate name for each job, as for the scripted answers.
fn hidden_author(number: usize) -> String {
    format!("self/twins/{number}")
}

/// Settings with one local tier of scripted answers and no verifier.
fn self_settings(script: &std::path::Path) -> anyhow::Result<String> {
    let general = "default_chain = [\"self/none\"]\nverifier = \"none\"\nattempts_per_tier = 1\n";
    // Tests of a task take seconds; some mutants never terminate.
    Ok(format!(
        "{general}[limits]\ntests_s = 120\n{}",
        self_backend(script)?
    ))
}

fn self_backend(script: &std::path::Path) -> anyhow::Result<String> {
    let script = serde_json::to_string(&script.display().to_string())?;
    Ok(format!(
        "[backends.gym-self]\nkind = \"replay\"\ntier = \"local\"\nfile = {script}\nmodels = [\"self/*\"]\n"
    ))
}

/// Describes an outcome, for example `accepted at try 2, hidden tests pass, 12 s`.
fn describe_outcome(outcome: &GymOutcome) -> String {
    let how = match (outcome.accepted, outcome.cause) {
        (true, _) if outcome.tries.len() > 1 => format!("accepted at try {}", outcome.tries.len()),
        (true, _) => String::from("accepted"),
        (false, Some(cause)) => outcome
            .tries
            .last()
            .and_then(GymTry::word)
            .unwrap_or(cause.word())
            .to_owned(),
        (false, None) => format!("not given: {}", outcome.said),
    };
    let hidden = match outcome.hidden_passed {
        Some(true) => ", hidden tests pass",
        Some(false) => ", HIDDEN TESTS FAIL",
        None => "",
    };
    format!("{how}{hidden}, {:.1} s", outcome.seconds)
}
