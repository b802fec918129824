//! The checks that files alone do not decide: commands are run, questions are put to the chain of models.

use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::commands::{CommandBench, CommandTrust};
use super::question::{PassageQuestion, PassageQuestionParams};
use crate::App;
use supervisor_engine as engine;
use supervisor_engine::call::{CallArguments, CallRequest};
use supervisor_engine::event::Listener;
use supervisor_engine::result::Status;
use supervisor_team::check::{CheckedFiles, OutsideCheck};
use supervisor_team::definition::CheckDefinition;
use supervisor_team::document::TeamDocument;
use supervisor_team::verdict::{CheckFinding, EvidencePlace};

/// Whether questions are put to models at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionPolicy {
    Ask,
    LeaveOpen,
}

/// What the outside checks of one checkpoint are decided with.
pub struct OutsideBench<'a> {
    pub app: &'a App,
    /// The folder that the commands run in and the passages are named after.
    pub root: &'a Path,
    pub trust: CommandTrust,
    pub questions: QuestionPolicy,
    pub listener: &'a dyn Listener,
    pub stop: &'a CancellationToken,
}

impl OutsideBench<'_> {
    /// Every finding in the order of the definition.
    pub async fn decide(&self, mut checked: CheckedFiles) -> Vec<CheckFinding> {
        for (n, outside) in std::mem::take(&mut checked.outside) {
            let finding = match outside {
                OutsideCheck::Command {
                    check,
                    run,
                    timeout_s,
                } => self.run(&check, &run, timeout_s).await,
                OutsideCheck::Question {
                    check,
                    ask,
                    material,
                } => {
                    self.ask(&check, &ask, material.iter().map(AsRef::as_ref))
                        .await
                }
            };
            checked.findings[n] = Some(finding);
        }
        checked.findings.into_iter().flatten().collect()
    }

    async fn run(
        &self,
        check: &CheckDefinition,
        argv: &[String],
        timeout_s: Option<u64>,
    ) -> CheckFinding {
        let bench = self.app.settings().map_err(|e| e.to_string());
        match bench.and_then(|settings| CommandBench::new(self.app, &settings.routing)) {
            Ok(bench) => {
                bench
                    .run(self.trust, self.root, check, argv, timeout_s, self.stop)
                    .await
            }
            Err(why) => check.not_applicable(format!("no command can be run: {why}")),
        }
    }

    async fn ask<'d>(
        &self,
        check: &CheckDefinition,
        ask: &str,
        material: impl Iterator<Item = &'d TeamDocument>,
    ) -> CheckFinding {
        if self.questions == QuestionPolicy::LeaveOpen {
            return check.not_applicable("a question for a model, and none was to be asked");
        }
        let params = PassageQuestionParams::new(ask, material);
        if params.passages.files().next().is_none() {
            return check.not_applicable("there are no passages to ask about");
        }
        let arguments = CallArguments {
            project_root: self.root.display().to_string(),
            input: json!({"check": check.id, "ask": ask}),
            ..CallArguments::default()
        };
        let request = CallRequest::new("supervise", "question", arguments, &[]);
        let told = engine::call::run::<PassageQuestion>(
            self.app,
            request,
            &params,
            self.listener,
            self.stop,
        )
        .await;
        if told.status != Status::Pass {
            return check
                .not_applicable("no model gave an answer that holds; code alone decides here");
        }
        let details = &told.more.details;
        let why = details["why"].as_str().unwrap_or_default();
        let by = &told.model_used;
        match details["verdict"].as_str() {
            Some("holds") => check.pass(format!(
                "{by}: {}",
                if why.is_empty() { "it holds" } else { why }
            )),
            Some("violated") => check.fail(format!("{by}: {why}"), places(&details["evidence"])),
            _ => check.not_applicable(format!("{by} cannot tell: {why}")),
        }
    }
}

fn places(evidence: &Value) -> Vec<EvidencePlace> {
    let place = |cited: &Value| EvidencePlace {
        file: cited["file"].as_str().unwrap_or_default().to_owned(),
        line: cited["line"]
            .as_u64()
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or_default(),
        text: cited["text"].as_str().unwrap_or_default().to_owned(),
    };
    evidence
        .as_array()
        .into_iter()
        .flatten()
        .map(place)
        .collect()
}
