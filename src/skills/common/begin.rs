//! The way into a call: session, settings, route and means, before any project is touched.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::params::Common;
use crate::backend::Edits;
use crate::engine::evidence::Evidence;
use crate::engine::job::Job;
use crate::engine::means::Means;
use crate::engine::result::{CallResult, More, Status};
use crate::engine::run::{Early, Request};
use crate::routing::{CallOverrides, Loaded, Route, Routing, Tier};
use crate::server::App;
use crate::session::SessionId;

/// What a call has in hand before the project is touched.
pub(in crate::skills) struct Begun<'a> {
    pub(in crate::skills) app: &'a App,
    settings: Loaded,
    pub(in crate::skills) route: Route,
    pub(in crate::skills) means: Arc<Means>,
    pub(in crate::skills) session: SessionId,
    pub(in crate::skills) request: Request,
}

impl<'a> Begun<'a> {
    /// `required` are the skill's own arguments that may not be empty. The error is a sentence for the caller.
    pub(in crate::skills) fn new(
        app: &'a App,
        skill: &str,
        phase: &str,
        common: &Common,
        required: &[(&str, &str)],
    ) -> Result<Self, String> {
        let root = ("project_root", common.project_root.as_str());
        if let Some((field, _)) = [root].iter().chain(required).find(|(_, value)| value.trim().is_empty()) {
            return Err(format!("{field} is required: the argument `{field}` is empty"));
        }
        let session = match &common.session_id {
            Some(written) => written.parse::<SessionId>().map_err(|e| e.to_string())?,
            None => SessionId::generate().map_err(|e| format!("no session_id could be made: {e}"))?,
        };
        let settings = app.settings().map_err(|e| format!("the settings cannot be used: {e}"))?;
        let overrides = CallOverrides {
            model: common.model.clone(),
            timeout: common.timeout_s.map(Duration::from_secs),
            max_attempts: common.max_attempts,
            budget_usd: common.budget_usd,
        };
        let route = settings.routing.route(skill, &overrides).map_err(|e| e.to_string())?;
        let means = app.means(&settings).map_err(|e| e.to_string())?;
        let root =
            Path::new(&common.project_root).canonicalize().unwrap_or_else(|_| common.project_root.clone().into());
        let request = Request {
            skill: skill.into(),
            phase: phase.into(),
            session_id: session.as_str().into(),
            project_root: root.display().to_string(),
            input: common.input.clone(),
        };
        Ok(Self { app, settings, route, means, session, request })
    }

    pub(in crate::skills) fn routing(&self) -> &Routing {
        &self.settings.routing
    }

    /// The answer to a dry run: whom would be asked, with how much, under which limits; then what the skill adds.
    pub(in crate::skills) fn plan(&self, job: &dyn Job, message: String, more: Value) -> CallResult {
        let size = |tier: &Tier| {
            let edits = self.means.backends.of(tier).map_or(Edits::AsData, |backend| backend.edits());
            let mut size = json!({
                "model": tier.name,
                "tier": tier.backend.tier,
                "window_bytes": tier.model.window(),
            });
            match job.questions(tier, edits, &Evidence::default()) {
                Ok(questions) => {
                    // Each must fit by itself, so the largest tells.
                    let largest = questions.iter().map(|question| question.prompt.len()).max().unwrap_or_default();
                    size["prompt_bytes"] = json!(largest + job.discipline().len());
                    if questions.len() > 1 {
                        size["questions"] = json!(questions.len());
                    }
                }
                Err(why) => size["cannot"] = json!(why),
            }
            size
        };
        let mut details = json!({
            "chain": self.route.chain.tiers().map(size).collect::<Vec<_>>(),
            "verifier": self.route.verifier.as_ref().map(|tier| &tier.name),
            "max_attempts": self.route.max_attempts,
        });
        if let (Some(details), Value::Object(more)) = (details.as_object_mut(), more) {
            details.extend(more);
        }
        self.means.redactor.redact_json(&mut details);
        let mut result = failed(&self.request.skill, &self.request.phase, Status::Pass, message);
        result.more.details = details;
        result
    }

    /// A refusal in a dry run, which is not logged.
    pub(in crate::skills) fn refused(&self, early: Early) -> CallResult {
        let mut result = failed(&self.request.skill, &self.request.phase, early.status, early.message);
        result.runner_output = early.runner_output;
        result
    }
}

/// A result that holds nothing but its message.
pub(in crate::skills) fn failed(skill: &str, phase: &str, status: Status, message: String) -> CallResult {
    CallResult {
        status,
        message,
        phase: phase.into(),
        skill: skill.into(),
        file_path: String::new(),
        runner_output: String::new(),
        verified: false,
        model_used: String::new(),
        more: More::default(),
    }
}
