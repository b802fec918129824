//! Prepares a review: parses the arguments and reads the files or the change under a shared lock.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::brief::{MAX_QUESTIONS, ReviewBrief};
use super::files;
use super::job::ReviewSkill;
use super::judgement::RequirementList;
use super::material::ReviewMaterial;
use super::params::{ChangeEnd, ReviewParams, ReviewTarget};
use super::range::Git;
use super::report;
use crate::{App, Call};
use supervisor_engine as engine;
use supervisor_engine::call::CallRequest;
use supervisor_engine::evidence::Evidence;
use supervisor_engine::result::CallResult;
use supervisor_engine::skill::{DryRunPlan, Preparation, PreparedCall, RefusedCall};
use supervisor_text::words;

const REVIEW: &str = "review";

/// Max requirements in one review.
const MAX_REQUIREMENTS: usize = 100;

/// Runs one call. Failures are reported in the result.
pub(super) async fn run(app: &App, params: &ReviewParams, call: &Call) -> CallResult {
    let request = CallRequest::new("review", "review", params.common(), &[]);
    engine::call::run::<ReviewSkill>(app, request, params, &call.progress, &call.stop).await
}

/// The parsed arguments of a review.
pub(super) struct ReviewRequest {
    target: ReviewTarget,
    requirements: RequirementList,
    context: Option<String>,
}

impl ReviewRequest {
    pub(super) fn of(params: &ReviewParams) -> Result<Self, RefusedCall> {
        let target = params.target().map_err(RefusedCall::error)?;
        let requirements = RequirementList::of(params.requirements.as_deref().unwrap_or_default());
        if requirements.len() > MAX_REQUIREMENTS {
            return Err(RefusedCall::error(format!(
                "`requirements` has {} points, one for each line, and {MAX_REQUIREMENTS} is the most; review them in groups",
                requirements.len()
            )));
        }
        Ok(Self {
            target,
            requirements,
            context: params.common().context,
        })
    }

    pub(super) async fn prepare(
        self,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<ReviewSkill>, RefusedCall> {
        let discipline = call.discipline(REVIEW)?;
        call.doing("reading what is to be reviewed");
        let material = self.read(call).await.map_err(RefusedCall::error)?;
        let brief = ReviewBrief {
            discipline,
            task: self.task(call.root(), &material),
            requirements: self.requirements.clone(),
        };
        ensure_fits_some_tier(&brief, &material, call)?;
        let files = words::count(material.shown(), "file");
        let plan = DryRunPlan {
            message: format!(
                "dry run: no model was asked; {files} with {} bytes would be shown",
                material.bytes()
            ),
            details: json!({
                "coverage": material.coverage(30),
                "server_findings": material.scanned.len(),
                "requirements": brief.requirements.iter().collect::<Vec<_>>(),
            }),
        };
        Ok(PreparedCall {
            discipline: brief.discipline.clone(),
            task: brief.task.clone(),
            finding: report::scan_finding(&material),
            plan,
            skill: ReviewSkill { brief, material },
        })
    }

    async fn read(&self, call: &mut Preparation<'_>) -> Result<ReviewMaterial, String> {
        let redactor = Arc::clone(&call.environment.services.redactor);
        match &self.target {
            ReviewTarget::Files(named) => {
                let workspace = call.site.workspace().ok_or("the project is not open")?;
                let named = named.clone();
                // Reading blocks; other calls must not wait for a slow disk.
                let read =
                    tokio::task::spawn_blocking(move || files::read(&workspace, &named, &redactor));
                read.await
                    .map_err(|e| format!("reading the files failed: {e}"))?
            }
            ReviewTarget::Change { base, until } => {
                let git = Git::find(call)?;
                let workspace = call.site.workspace().ok_or("the project is not open")?;
                git.read(base.as_deref(), until, &workspace, &redactor, call.stop)
                    .await
            }
        }
    }

    fn task(&self, root: &Path, material: &ReviewMaterial) -> String {
        let mut task = format!("project_root: {}\n", root.display());
        let range = &material.range;
        if range.is_null() {
            task += &format!(
                "\nReview the {} below.\n",
                words::count(material.shown(), "file")
            );
        } else {
            task += &format!(
                "\nReview what changed from {} to {}: {} below, {}.\n",
                range["from"].as_str().unwrap_or_default(),
                range["to"].as_str().unwrap_or_default(),
                words::count(material.shown(), "file"),
                match &self.target {
                    ReviewTarget::Change {
                        until: ChangeEnd::WorkingTree,
                        ..
                    } => "as they are on disk, not committed yet",
                    _ => "as they are there; the files on disk may differ",
                }
            );
            let unseen = material
                .covered
                .iter()
                .filter_map(|file| Some((file.file.as_str(), file.note.as_ref()?)));
            let unseen =
                unseen.filter(|(file, _)| material.scope.source(Path::new(file)).is_none());
            for (file, why) in unseen.take(20) {
                task += &format!("not shown: `{}` {why}\n", words::plain(file));
            }
            for file in material.covered.iter().take(20) {
                if let Some(old_name) = &file.was {
                    task += &format!(
                        "renamed: `{}` is now `{}`\n",
                        words::plain(old_name),
                        words::plain(&file.file)
                    );
                }
            }
        }
        if !self.requirements.is_empty() {
            task += "\n## Requirements, each to be answered by its id\n\n";
            task.extend(
                self.requirements
                    .iter()
                    .map(|r| format!("{}: {}\n", r.id, words::plain(&r.text))),
            );
        }
        if let Some(context) = &self.context {
            task += &format!("\ncontext: {}\n", words::plain(context));
        }
        task
    }
}

/// Fails early if the material fits no tier of the chain.
fn ensure_fits_some_tier(
    brief: &ReviewBrief,
    material: &ReviewMaterial,
    call: &Preparation<'_>,
) -> Result<(), RefusedCall> {
    let mut why = None;
    for tier in call.route.chain.tiers() {
        match brief.questions(material, tier, &Evidence::default()) {
            Ok(_) => return Ok(()),
            Err(unfit) => why = Some(format!("`{}`: {unfit}", tier.name)),
        }
    }
    Err(RefusedCall::error(format!(
        "{} with {} bytes to show do not fit into {MAX_QUESTIONS} questions for any model of the chain ({}); name fewer files, a \
         nearer `base`, or a `model` with a larger window",
        words::count(material.shown(), "file"),
        material.bytes(),
        why.unwrap_or_default()
    )))
}
