//! Dry runs: shows what a call would do, without asking a model.

use serde_json::{Value, json};

use super::{CallHeader, OpenCall};
use crate::archive;
use crate::conclude::refused_result;
use crate::event::EventReporter;
use crate::evidence::Evidence;
use crate::result::{CallResult, Status};
use crate::skill::{PreparedCall, RefusedCall, Skill};
use supervisor_models::Edits;
use supervisor_settings::Tier;
use supervisor_text::words;
use supervisor_workspace::Scope;

impl OpenCall<'_> {
    /// Returns the plan without asking a model. Nothing is logged, and nothing is written except a
    /// prompt that is too long for a reply.
    pub(super) async fn plan<S: Skill>(
        &self,
        params: &S::Params,
        reporter: &EventReporter<'_>,
    ) -> CallResult {
        let unlogged = CallHeader {
            session_id: String::new(),
            ..self.header.clone()
        };
        let (site, call) = match self
            .prepare::<S>(params, reporter, &mut String::new())
            .await
        {
            Ok(prepared) => prepared,
            Err(refused) => return refused_result(&unlogged, refused),
        };
        let mut details = json!({
            "chain": self.route.chain.tiers().map(|tier| self.describe_tier(&call, tier)).collect::<Vec<_>>(),
            "verifier": self.route.verifier.as_ref().map(|tier| &tier.name),
            "max_attempts": self.route.max_attempts,
        });
        if let (Some(details), Value::Object(more)) = (details.as_object_mut(), &call.plan.details)
        {
            details.extend(more.clone());
        }
        self.environment.services.redactor.redact_json(&mut details);
        if let Some(prompt) = self.first_prompt(&call).filter(|_| self.show_prompt) {
            // What a model would see, with a placeholder for each secret.
            let prompt = self.environment.services.redactor.hide(&prompt);
            self.add_prompt(&prompt, &mut details);
        }
        let message = match site.discard(Scope::Applied).await {
            Ok(_) => Ok(call.plan.message),
            Err(error) => Err(error.to_string()),
        };
        let (status, message) = match message {
            Ok(message) => (Status::Pass, message),
            Err(message) => (Status::Error, message),
        };
        refused_result(
            &unlogged,
            RefusedCall {
                status,
                message,
                runner_output: String::new(),
                details,
            },
        )
    }

    /// The prompt of the first tier that can be asked, so that users can review it without a model.
    fn first_prompt<S: Skill>(&self, call: &PreparedCall<S>) -> Option<String> {
        let ask = |tier: &Tier| {
            let edits = self
                .environment
                .services
                .backends
                .of(tier)
                .map_or(Edits::AsData, |backend| backend.edits(tier));
            let (questions, _) = call.skill.ask(tier, edits, &Evidence::default()).ok()?;
            Some(format!(
                "{}\n\n{}",
                call.discipline,
                questions.first()?.prompt
            ))
        };
        self.route.chain.tiers().find_map(ask)
    }

    /// Adds the prompt to the plan. A prompt that is too long for a reply is also written to a
    /// file.
    fn add_prompt(&self, prompt: &str, details: &mut Value) {
        /// A longer prompt would not fit into a reply.
        const MAX_PROMPT_BYTES: usize = 45_000;
        /// A longer prompt may not fit beside the rest of the plan, and escaped.
        const MAX_UNSAVED_BYTES: usize = MAX_PROMPT_BYTES / 3;
        details["prompt"] = json!(words::cut_middle(prompt, MAX_PROMPT_BYTES));
        if prompt.len() > MAX_UNSAVED_BYTES {
            match archive::write_text(&self.environment.state, "prompt.txt", prompt) {
                Ok(path) => details["prompt_path"] = json!(path),
                Err(error) => tracing::warn!("a prompt could not be kept: {error}"),
            }
        }
    }

    /// Size of the prompt for this tier, or why the tier cannot be asked.
    fn describe_tier<S: Skill>(&self, call: &PreparedCall<S>, tier: &Tier) -> Value {
        let edits = self
            .environment
            .services
            .backends
            .of(tier)
            .map_or(Edits::AsData, |backend| backend.edits(tier));
        let mut plan = json!({"model": tier.name, "tier": tier.backend.tier, "window_bytes": tier.model.window()});
        match call.skill.ask(tier, edits, &Evidence::default()) {
            Ok((questions, _)) => {
                // Each question must fit by itself, so report the largest.
                let largest = questions
                    .iter()
                    .map(|question| question.prompt.len())
                    .max()
                    .unwrap_or_default();
                plan["prompt_bytes"] = json!(largest + call.discipline.len());
                if questions.len() > 1 {
                    plan["questions"] = json!(questions.len());
                }
            }
            Err(unfit) => plan["cannot"] = json!(unfit.to_string()),
        }
        plan
    }
}
