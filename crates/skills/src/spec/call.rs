//! Prepares a specification: splits the requirements and resolves the document's path.

use serde_json::{Map, json};

use super::brief::{self, SpecBrief};
use super::job::SpecSkill;
use super::params::SpecParams;
use super::specification::RequirementItems;
use super::target::Target;
use crate::common::named;
use crate::{App, Call};
use supervisor_engine as engine;
use supervisor_engine::call::CallRequest;
use supervisor_engine::result::CallResult;
use supervisor_engine::skill::{DryRunPlan, Preparation, PreparedCall, RefusedCall};
use supervisor_text::words;

const SPEC: &str = "spec";

/// Runs one call. Failures are reported in the result.
pub(super) async fn run(app: &App, params: &SpecParams, call: &Call) -> CallResult {
    let request = CallRequest::new(
        "spec",
        "spec",
        params.common(),
        &[("requirements", &params.requirements)],
    );
    engine::call::run::<SpecSkill>(app, request, params, &call.progress, &call.stop).await
}

/// Rejects everything that can be rejected before a model is asked.
pub(super) fn prepare(
    params: &SpecParams,
    call: &mut Preparation<'_>,
) -> Result<PreparedCall<SpecSkill>, RefusedCall> {
    let discipline = call.discipline(SPEC)?;
    // The document repeats the requirements and must not contain secrets.
    let requirements = call
        .environment
        .services
        .redactor
        .redact(&params.requirements);
    let requirements = RequirementItems::split(&requirements)
        .map_err(|e| RefusedCall::error(format!("`requirements` {e}")))?;
    let root = call.root().to_owned();
    let path = Target::resolve(&root, &params.output(), params.overwrite)?;
    let target = Target::read(call.site, path)?;
    let context = params.common().context;
    let mut brief = SpecBrief {
        discipline,
        task: String::new(),
        requirements,
        context,
        target,
        project: brief::read_descriptions(call.site),
    };
    brief.task = task(&brief);
    let next = json!({"tool": "", "arguments": {
        "project_root": params.project_root,
        "session_id": call.session,
    }});
    Ok(PreparedCall {
        discipline: brief.discipline.clone(),
        task: brief.task.clone(),
        finding: None,
        plan: plan(&brief),
        skill: SpecSkill { brief, root, next },
    })
}

fn plan(brief: &SpecBrief) -> DryRunPlan {
    let shown = |text: &str| json!(words::cut_end(&words::plain(text), 160));
    let requirements: Map<_, _> = brief
        .requirements
        .iter()
        .map(|(id, text)| (id, shown(text)))
        .collect();
    let path = &brief.target.path;
    let message = format!(
        "dry run: nothing was asked and nothing changed; {} would be written to {}",
        words::count(requirements.len(), "requirement"),
        named(path)
    );
    DryRunPlan {
        message,
        details: json!({"output_path": path.display().to_string(), "requirements": requirements}),
    }
}

fn task(brief: &SpecBrief) -> String {
    let context = brief
        .context
        .as_deref()
        .map(|c| format!("\ncontext: {}\n", words::plain(c)))
        .unwrap_or_default();
    format!(
        "Specify what these requirements ask for, or ask about what is too vague.\n{}{context}",
        brief.listed(8 * 1024)
    )
}
