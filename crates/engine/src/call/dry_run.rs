//! What a call would do, without asking any model.

use serde_json::{Value, json};

use super::{CallHeader, OpenCall};
use crate::archive;
use crate::conclude::refuse;
use crate::event::Teller;
use crate::evidence::Evidence;
use crate::result::{CallResult, Status};
use crate::skill::{PreparedCall, RefusedCall, Skill};
use supervisor_models::Edits;
use supervisor_settings::Tier;
use supervisor_text::words;
use supervisor_workspace::Scope;

impl OpenCall<'_> {
    /// The plan, without asking any model. Nothing is logged, and nothing is left behind but a prompt that is too long for
    /// a reply.
    pub(super) async fn plan<S: Skill>(
        &self,
        params: &S::Params,
        teller: &Teller<'_>,
    ) -> CallResult {
        let unlogged = CallHeader {
            session_id: String::new(),
            ..self.header.clone()
        };
        let (site, call) = match self.prepare::<S>(params, teller, &mut String::new()).await {
            Ok(prepared) => prepared,
            Err(refused) => return refuse(&unlogged, refused),
        };
        let mut details = json!({
            "chain": self.route.chain.tiers().map(|tier| self.plan_tier(&call, tier)).collect::<Vec<_>>(),
            "verifier": self.route.verifier.as_ref().map(|tier| &tier.name),
            "max_attempts": self.route.max_attempts,
        });
        if let Some(prompt) = self.first_prompt(&call).filter(|_| self.show_prompt) {
            self.show(&prompt, &mut details);
        }
        if let (Some(details), Value::Object(more)) = (details.as_object_mut(), call.plan.details) {
            details.extend(more);
        }
        self.surroundings.means.redactor.redact_json(&mut details);
        let message = match site.leave(Scope::Applied).await {
            Ok(_) => Ok(call.plan.message),
            Err(error) => Err(error.to_string()),
        };
        let (status, message) = match message {
            Ok(message) => (Status::Pass, message),
            Err(message) => (Status::Error, message),
        };
        refuse(
            &unlogged,
            RefusedCall {
                status,
                message,
                runner_output: String::new(),
                details,
            },
        )
    }

    /// What the first tier that can be asked would read, so that a brief can be judged without a model.
    fn first_prompt<S: Skill>(&self, call: &PreparedCall<S>) -> Option<String> {
        let ask = |tier: &Tier| {
            let edits = self
                .surroundings
                .means
                .backends
                .of(tier)
                .map_or(Edits::AsData, |backend| backend.edits());
            let (questions, _) = call.skill.ask(tier, edits, &Evidence::default()).ok()?;
            Some(format!(
                "{}\n\n{}",
                call.discipline,
                questions.first()?.prompt
            ))
        };
        self.route.chain.tiers().find_map(ask)
    }

    /// In the plan, and whole in a file where it is too long for a reply.
    fn show(&self, prompt: &str, details: &mut Value) {
        /// More would not fit a reply.
        const MOST: usize = 45_000;
        details["prompt"] = json!(words::cut_middle(prompt, MOST));
        if prompt.len() > MOST {
            let whole = self.surroundings.means.redactor.redact(prompt);
            match archive::keep_text(&self.surroundings.state, "prompt.txt", &whole) {
                Ok(path) => details["prompt_path"] = json!(path),
                Err(error) => tracing::warn!("a prompt could not be kept: {error}"),
            }
        }
    }

    /// How much this tier would be asked, or why it cannot be.
    fn plan_tier<S: Skill>(&self, call: &PreparedCall<S>, tier: &Tier) -> Value {
        let edits = self
            .surroundings
            .means
            .backends
            .of(tier)
            .map_or(Edits::AsData, |backend| backend.edits());
        let mut size = json!({"model": tier.name, "tier": tier.backend.tier, "window_bytes": tier.model.window()});
        match call.skill.ask(tier, edits, &Evidence::default()) {
            Ok((questions, _)) => {
                // Each must fit by itself, so the largest tells.
                let largest = questions
                    .iter()
                    .map(|question| question.prompt.len())
                    .max()
                    .unwrap_or_default();
                size["prompt_bytes"] = json!(largest + call.discipline.len());
                if questions.len() > 1 {
                    size["questions"] = json!(questions.len());
                }
            }
            Err(unfit) => size["cannot"] = json!(unfit.to_string()),
        }
        size
    }
}
