//! The second trainer question: a model labels each example. Then the server writes the files.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::files::{AppendedFile, TrainingFolder};
use super::reader::{conclude, ids, question};
use super::training;
use super::training::{CandidateLabel, ExampleKind, TrainingCandidate};
use crate::common::Gates;
use crate::common::private_names::PrivateNames;
use supervisor_engine::Cause;
use supervisor_engine::evidence::Evidence;
use supervisor_engine::skill::{
    Access, DryRunPlan, Preparation, PreparedCall, Question, RefusedCall, Skill, TierUnfit,
};
use supervisor_engine::work::{AcceptedWork, RefusedWork, SubmittedWork, Verification};
use supervisor_models::{Edits, ToolAccess};
use supervisor_settings::Tier;
use supervisor_text::words;
use supervisor_verify::Proof;

const WRITER: &str = "trainer/writer";

/// The candidates that scored high enough.
#[derive(Debug, Clone)]
pub(super) struct SelectedCandidates {
    pub(super) candidates: Vec<TrainingCandidate>,
    pub(super) scores: BTreeMap<String, u8>,
    pub(super) names: PrivateNames,
    pub(super) folder: TrainingFolder,
    /// The details of the result so far, to which the written files are added.
    pub(super) base_details: Value,
}

/// The labelling skill. It writes the files on delivery.
pub(super) struct WriterSkill(SelectedCandidates);

impl Skill for WriterSkill {
    type Params = SelectedCandidates;
    type Shown = ();

    fn access(_: &SelectedCandidates) -> Result<Access, RefusedCall> {
        Ok(Access::Nothing)
    }

    async fn prepare(
        kept: &SelectedCandidates,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<Self>, RefusedCall> {
        let task = format!(
            "Label {} for training.",
            words::count(kept.candidates.len(), "example")
        );
        Ok(PreparedCall {
            skill: Self(kept.clone()),
            discipline: call.discipline(WRITER)?,
            plan: DryRunPlan {
                message: task.clone(),
                details: json!({}),
            },
            task,
            finding: None,
        })
    }

    fn ask(
        &self,
        tier: &Tier,
        _: Edits,
        evidence: &Evidence,
    ) -> Result<(Vec<Question>, ()), TierUnfit> {
        let prompt = question(
            "Label each of these examples.",
            &self.0.candidates,
            tier,
            evidence,
        );
        Ok((
            vec![Question {
                prompt,
                schema: training::label_schema(),
                tool_access: ToolAccess::None,
            }],
            (),
        ))
    }

    async fn check(&self, work: SubmittedWork<'_>, (): ()) -> Result<AcceptedWork, RefusedWork> {
        let (check, labels) =
            training::read_labels(&work.reply().body, &ids(&self.0.candidates), &self.0.names);
        conclude(check, &self.0.candidates, |_| {
            let labels: BTreeMap<&String, Value> = labels
                .iter()
                .map(|(id, one)| (id, json!({"label": one.label, "tags": one.tags})))
                .collect();
            (
                format!("{} labelled", words::count(labels.len(), "example")),
                json!({ "labels": labels }),
            )
        })
    }

    async fn deliver(&self, work: AcceptedWork) -> Result<AcceptedWork, RefusedWork> {
        let kept = self.0.clone();
        let labels = work.details["labels"].clone();
        let written = tokio::task::spawn_blocking(move || kept.write(&labels)).await;
        let broken = |why: String| RefusedWork::new(Cause::CannotVerify, why);
        let appended = written
            .map_err(|panic| broken(panic.to_string()))?
            .map_err(broken)?;
        let (to_write, added): (usize, usize) = appended.iter().fold((0, 0), |sum, one| {
            (sum.0 + one.expected_lines, sum.1 + one.added_lines)
        });
        let check =
            training::check_appended(to_write, added, appended.iter().all(|one| one.is_readable));
        let mut gates = Gates(work.gates.clone());
        gates.check(&check)?;
        let proof = Proof::of_checks(vec![check]).map_err(|why| broken(why.to_string()))?;
        let files: Vec<Value> = appended
            .iter()
            .map(|one| json!({"path": one.path.display().to_string(), "lines": one.added_lines}))
            .collect();
        let mut details = self.0.base_details.clone();
        (details["kept"], details["files"]) = (json!(added), json!(files));
        let pairs = self
            .0
            .candidates
            .iter()
            .filter(|one| one.kind() == ExampleKind::Dpo)
            .count();
        let message = format!(
            "{} written: {} and {}",
            words::count(added, "line"),
            words::count(pairs, "pair"),
            words::count(added - pairs, "example")
        );
        let file_path = appended
            .first()
            .map(|one| one.path.display().to_string())
            .unwrap_or_default();
        let verification = Verification::Proven(proof);
        Ok(AcceptedWork {
            verification,
            gates: gates.0,
            message,
            file_path,
            details,
            ..work
        })
    }
}

impl SelectedCandidates {
    fn write(&self, labels: &Value) -> Result<Vec<AppendedFile>, String> {
        let month = jiff::Timestamp::now().strftime("%Y-%m").to_string();
        let mut appended = Vec::new();
        for kind in [ExampleKind::Dpo, ExampleKind::Sft] {
            let of_kind = self.candidates.iter().filter(|one| one.kind() == kind);
            let rows: Vec<Value> = of_kind
                .map(|one| one.row(self.scores[&one.id], &label_of(&labels[&one.id])))
                .collect();
            if !rows.is_empty() {
                appended.push(self.folder.append(kind, &month, &rows)?);
            }
        }
        Ok(appended)
    }
}

fn label_of(value: &Value) -> CandidateLabel {
    let tags = value["tags"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tag| tag.as_str().map(str::to_owned));
    CandidateLabel {
        label: value["label"].as_str().unwrap_or_default().to_owned(),
        tags: tags.collect(),
    }
}
