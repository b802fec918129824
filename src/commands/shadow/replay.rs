//! Asks the models through an own server, as the gym does: own log, own state, no pauses after a failure.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;
use supervisor_engine::result::{CallResult, Status};
use supervisor_gym::passport::PassportBook;
use supervisor_gym::results::{GymMode, GymOutcome, GymTry, VERSION};
use supervisor_gym::task::TaskKind;
use supervisor_settings::{CallOverrides, Routing, RoutingError};
use supervisor_shadow::{Replay, ReplayEnd, Replayed, ShadowStore, ShadowTask};
use supervisor_text::words;
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

use crate::built_in;
use crate::commands::client::{CallReply, Client, whole_result};

const TOOL: &str = "tdd_green";

pub(super) struct EngineReplay {
    client: Client,
    /// With the settings of the projects for the copies.
    routing: Routing,
    session: String,
    /// The only model that may be outside of this machine.
    model: Option<String>,
    outcomes: Vec<GymOutcome>,
}

impl EngineReplay {
    pub(super) async fn start(
        config: Option<PathBuf>,
        store: &ShadowStore,
        model: Option<String>,
    ) -> anyhow::Result<Self> {
        let tasks = store.tasks();
        let copies = tasks
            .iter()
            .map(|task| (store.copy(task), task.project_root.clone()));
        let app = built_in::app(config)
            .with_state_dir(StateDir::at(store.calls())?)
            .with_copies(copies.collect())
            .without_cooldowns();
        Ok(Self {
            routing: app.settings()?.routing,
            // A log for each day, so that each is removed in time.
            session: format!("shadow-{}", jiff::Timestamp::now().strftime("%Y-%m-%d")),
            client: Client::start(app).await?,
            model,
            outcomes: Vec::new(),
        })
    }

    /// Adds what was seen to the passports, as outcomes of the gym.
    pub(super) async fn finish(self, book: &PassportBook) -> anyhow::Result<()> {
        self.client.finish().await;
        let mut models: Vec<&str> = self
            .outcomes
            .iter()
            .map(|outcome| outcome.model.as_str())
            .collect();
        models.sort_unstable();
        models.dedup();
        for model in models {
            let own: Vec<&GymOutcome> = self.outcomes.iter().filter(|o| o.model == model).collect();
            book.add_gym_outcomes(model, None, &own)?;
        }
        Ok(())
    }
}

impl Replay for EngineReplay {
    async fn replay(
        &mut self,
        task: &ShadowTask,
        dir: &Path,
        budget_usd: f64,
        stop: &CancellationToken,
    ) -> Result<ReplayEnd, String> {
        if !self.routing.copies.contains_key(dir) {
            return Ok(ReplayEnd::Refused(String::from(
                "it was recorded after this run began",
            )));
        }
        let overrides = |stay_local| CallOverrides {
            project_root: Some(dir.to_owned()),
            model: self.model.clone(),
            stay_local: stay_local || self.model.is_none(),
            ..CallOverrides::default()
        };
        if let Err(why @ RoutingError::StaysLocal { .. }) =
            self.routing.route(TOOL, &overrides(false))
        {
            return Ok(ReplayEnd::Refused(why.to_string()));
        }
        // What a call that is stopped has cost is known only of local models.
        let is_local = self.routing.route(TOOL, &overrides(true)).is_ok();
        let stopped = ReplayEnd::Stopped {
            cost_usd: is_local.then_some(0.0),
        };
        let mut arguments = json!({
            "project_root": dir, "test_path": task.test_path, "session_id": self.session, "budget_usd": budget_usd,
        });
        match &self.model {
            Some(model) => arguments["model"] = json!(model),
            None => arguments["stay_local"] = json!(true),
        }
        if !task.description.is_empty() {
            arguments["context"] = json!(task.description);
        }
        if let Some(command) = &task.test_cmd {
            arguments["test_cmd"] = json!(command);
        }
        let began = std::time::Instant::now();
        let reply = self.client.call(TOOL, arguments, stop, &mut |_| {}).await;
        let CallReply::Answered(reply) = reply.map_err(|error| error.to_string())? else {
            return Ok(stopped);
        };
        let result: CallResult = serde_json::from_value(whole_result(reply))
            .context("reading the result")
            .map_err(|error| format!("{error:#}"))?;
        if stop.is_cancelled() {
            return Ok(stopped);
        }
        let asked: Vec<_> = result
            .more
            .attempts
            .iter()
            .filter(|one| one.was_asked())
            .collect();
        if asked.is_empty() && result.status == Status::Error {
            return Err(words::cut_end(&result.message, 300).into_owned());
        }
        let accepted = result.status == Status::Pass && result.verified;
        self.outcomes.extend(outcomes(task, &result));
        Ok(ReplayEnd::Done(Replayed {
            model: match result.model_used.is_empty() {
                true => asked
                    .last()
                    .map(|one| one.model.clone())
                    .unwrap_or_default(),
                false => result.model_used.clone(),
            },
            accepted,
            cause: asked.last().and_then(|one| one.cause),
            said: match accepted {
                true => String::new(),
                false => words::cut_end(&result.message, 300).into_owned(),
            },
            seconds: began.elapsed().as_secs_f64(),
            cost_usd: asked
                .iter()
                .map(|one| one.cost_usd)
                .sum::<Option<f64>>()
                .or(is_local.then_some(0.0)),
        }))
    }
}

/// One outcome for each model that was asked.
fn outcomes(task: &ShadowTask, result: &CallResult) -> Vec<GymOutcome> {
    let asked: Vec<_> = result
        .more
        .attempts
        .iter()
        .filter(|one| one.was_asked())
        .collect();
    let mut models: Vec<&str> = asked.iter().map(|one| one.model.as_str()).collect();
    models.dedup();
    models
        .into_iter()
        .map(|model| {
            let own: Vec<_> = asked.iter().filter(|one| one.model == model).collect();
            let cause = own.last().and_then(|one| one.cause);
            GymOutcome {
                v: VERSION,
                at: jiff::Timestamp::now().to_string(),
                seed: 0,
                task: format!("shadow/{}", task.id),
                language: task.language.clone(),
                kind: TaskKind::Write,
                level: None,
                contradictory: false,
                model: model.to_owned(),
                digest: None,
                repeat: 1,
                answer: String::new(),
                accepted: own.iter().any(|one| one.verified),
                verified: own.iter().any(|one| one.verified),
                cause,
                said: String::new(),
                tries: own
                    .iter()
                    .filter(|one| !one.is_unsent())
                    .map(|one| GymTry::of(one))
                    .collect(),
                hidden_passed: None,
                twins: None,
                edit_format: String::new(),
                mode: GymMode::default(),
                seconds: own.iter().map(|one| one.duration_ms).sum::<u64>() as f64 / 1_000.0,
            }
        })
        .collect()
}
