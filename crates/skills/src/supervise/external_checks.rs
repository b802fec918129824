//! Decides the checks that need more than files: runs commands and asks models.

use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::commands::{CommandRunner, CommandTrust};
use super::question::{PassageQuestion, PassageQuestionParams};
use crate::App;
use crate::prove::{ProveParams, prove_project};
use supervisor_engine as engine;
use supervisor_engine::call::{CallArguments, CallRequest};
use supervisor_engine::event::Listener;
use supervisor_engine::result::Status;
use supervisor_prove::Verdict;
use supervisor_team::check::{ExternalCheck, FileCheckResults};
use supervisor_team::definition::CheckDefinition;
use supervisor_team::document::TeamDocument;
use supervisor_team::verdict::{CheckFinding, EvidenceLocation};

/// Whether models are asked at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionPolicy {
    Ask,
    Skip,
}

/// Runs the command and question checks of one checkpoint.
pub struct ExternalCheckRunner<'a> {
    pub app: &'a App,
    /// The directory that commands run in and that passage paths are relative to.
    pub root: &'a Path,
    pub trust: CommandTrust,
    pub questions: QuestionPolicy,
    pub listener: &'a dyn Listener,
    pub stop: &'a CancellationToken,
}

impl ExternalCheckRunner<'_> {
    /// Decides the open checks and returns all findings in definition order.
    pub async fn decide(&self, mut checked: FileCheckResults) -> Vec<CheckFinding> {
        for (n, outside) in std::mem::take(&mut checked.outside) {
            let finding = match outside {
                ExternalCheck::Command {
                    check,
                    run,
                    timeout_s,
                } => self.run(&check, &run, timeout_s).await,
                ExternalCheck::Proven { check, base } => self.prove(&check, base).await,
                ExternalCheck::Question {
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
        match bench.and_then(|settings| CommandRunner::new(self.app, &settings.routing)) {
            Ok(bench) => {
                bench
                    .run(self.trust, self.root, check, argv, timeout_s, self.stop)
                    .await
            }
            Err(why) => check.not_applicable(format!("no command can be run: {why}")),
        }
    }

    /// Needs no permission to run commands: it runs the detected tests and nothing that the definition names.
    async fn prove(&self, check: &CheckDefinition, base: Option<String>) -> CheckFinding {
        let params = ProveParams {
            project_root: self.root.display().to_string(),
            base,
            ..ProveParams::default()
        };
        let report = match prove_project(self.app, &params, self.stop, &|_| {}).await {
            Ok(report) => report,
            Err(why) => {
                return check.fail(format!("nothing is proven: {why}"), [said_by_prove(&why)]);
            }
        };
        let sentence = format!("{}: {}", report.verdict.word(), report.summary);
        if report.verdict == Verdict::Proven {
            return check.pass(sentence);
        }
        let gaps = report.gaps.iter().map(|gap| &gap.what);
        let evidence = report.regressions.iter().chain(gaps);
        let evidence: Vec<EvidenceLocation> = evidence.map(|text| said_by_prove(text)).collect();
        check.fail(sentence, evidence)
    }

    async fn ask<'d>(
        &self,
        check: &CheckDefinition,
        question: &str,
        material: impl Iterator<Item = &'d TeamDocument>,
    ) -> CheckFinding {
        if self.questions == QuestionPolicy::Skip {
            return check.not_applicable("a question for a model, and none was to be asked");
        }
        let params = PassageQuestionParams::new(question, material);
        if params.passages.files().next().is_none() {
            return check.not_applicable("there are no passages to ask about");
        }
        let arguments = CallArguments {
            project_root: self.root.display().to_string(),
            input: json!({"check": check.id, "ask": question}),
            ..CallArguments::default()
        };
        let request = CallRequest::new("supervise", "question", arguments, &[]);
        let answer = engine::call::run::<PassageQuestion>(
            self.app,
            request,
            &params,
            self.listener,
            self.stop,
        )
        .await;
        if answer.status != Status::Pass {
            return check
                .not_applicable("no model gave an answer that holds; code alone decides here");
        }
        let details = &answer.more.details;
        let why = details["why"].as_str().unwrap_or_default();
        let by = &answer.model_used;
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

fn said_by_prove(text: &str) -> EvidenceLocation {
    EvidenceLocation {
        file: String::from("prove"),
        line: 0,
        text: text.to_owned(),
    }
}

fn places(evidence: &Value) -> Vec<EvidenceLocation> {
    let place = |cited: &Value| EvidenceLocation {
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
