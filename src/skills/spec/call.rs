//! One call: the place of the document, the lock and the snapshot, the walk, the result.

use std::path::Path;

use serde_json::json;

use super::brief::{self, Brief};
use super::job::Spec;
use super::params::SpecParams;
use super::target::Target;
use crate::engine::event::{Event, Teller};
use crate::engine::job::Job;
use crate::engine::result::{CallResult, Status};
use crate::engine::run::{Early, run as walk};
use crate::engine::site::Site;
use crate::prompts::{Prompt, prompt};
use crate::server::{App, Call};
use crate::skills::common::{Begun, caps, failed, named};
use crate::verify::specification::Requirements;
use crate::words;
use crate::workspace::{Mode, Scope, Workspace};

static SPEC: Prompt = prompt!("spec");

/// Answers one call; whatever goes wrong is in the answer.
pub(super) async fn run(app: &App, asked: &SpecParams, call: &Call) -> CallResult {
    match begin(app, asked, call).await {
        Ok(result) => result,
        Err(message) => failed("spec", "spec", Status::Error, message),
    }
}

async fn begin(app: &App, asked: &SpecParams, call: &Call) -> Result<CallResult, String> {
    let common = asked.common();
    let begun = Begun::new(app, "spec", "spec", &common, &[("requirements", &asked.requirements)])?;
    if common.dry_run {
        return plan_only(&begun, asked, call).await;
    }
    let result = walk(&begun.means, &begun.route, &begun.request, &call.progress, &call.stop, async |teller| {
        let (site, job) = prepare(&begun, asked, teller, call).await?;
        Ok((site, Box::new(job) as Box<dyn Job>))
    });
    Ok(result.await)
}

/// The plan, without asking any model. Nothing is logged, and nothing is left behind.
async fn plan_only(begun: &Begun<'_>, asked: &SpecParams, call: &Call) -> Result<CallResult, String> {
    let teller = Teller::new("spec", &call.progress);
    let (site, job) = match prepare(begun, asked, &teller, call).await {
        Ok(prepared) => prepared,
        Err(early) => return Ok(begun.refused(early)),
    };
    let requirements: serde_json::Map<_, _> =
        job.brief.requirements.iter().map(|(id, text)| (id, json!(words::cut_end(&words::plain(text), 160)))).collect();
    let path = &job.brief.target.path;
    let message = format!(
        "dry run: nothing was asked and nothing changed; {} would be written to {}",
        words::count(requirements.len(), "requirement"),
        named(path)
    );
    let more = json!({"output_path": path.display().to_string(), "requirements": requirements});
    let result = begun.plan(&job, message, more);
    site.leave(Scope::Applied).await.map_err(|e| e.to_string())?;
    Ok(result)
}

/// Everything that can be refused is refused here, before any model is asked.
async fn prepare(
    begun: &Begun<'_>,
    asked: &SpecParams,
    teller: &Teller<'_>,
    call: &Call,
) -> Result<(Site, Spec), Early> {
    let discipline = SPEC.load(begun.means.prompts.as_deref()).and_then(|t| t.fill(&[])).map_err(Early::error)?;
    // They are repeated in the document, where no key belongs.
    let requirements = begun.means.redactor.redact(&asked.requirements);
    let requirements = Requirements::split(&requirements).map_err(|e| Early::error(format!("`requirements` {e}")))?;
    let state = begun.app.state().map_err(Early::error)?;
    let workspace =
        Workspace::open(Path::new(&asked.project_root), caps(begun.routing()), &state).map_err(Early::error)?;
    let root = workspace.root().to_owned();
    Target::named(&root, &asked.output(), asked.overwrite)?;
    let lease = workspace
        .lock(Mode::Exclusive, "spec", begun.route.limits.lock_wait, &call.stop)
        .await
        .map_err(Early::error)?;
    // Named again: while we waited for the project, somebody may have written there.
    let path = Target::named(&root, &asked.output(), asked.overwrite)?;
    let mut site = Site::arm(lease, begun.app.launcher()).await.map_err(Early::error)?;
    let armed = site.armed().map_err(Early::error)?;
    let (files, unprotected) = (armed.files().count(), armed.unprotected().len());
    teller.tell(Event::Armed { files, unprotected });
    let target = match Target::held(&mut site, path) {
        Ok(target) => target,
        Err(early) => {
            site.leave(Scope::Applied).await.map_err(Early::error)?;
            return Err(early);
        }
    };
    let context = asked.common().context;
    let mut brief =
        Brief { discipline, task: String::new(), requirements, context, target, project: brief::project(&mut site) };
    brief.task = task(&brief);
    let next = json!({"tool": "", "arguments": {
        "project_root": asked.project_root,
        "session_id": begun.session.as_str(),
    }});
    Ok((site, Spec { brief, root, next }))
}

fn task(brief: &Brief) -> String {
    let context = brief.context.as_deref().map(|c| format!("\ncontext: {}\n", words::plain(c))).unwrap_or_default();
    format!(
        "Specify what these requirements ask for, or ask about what is too vague.\n{}{context}",
        brief.listed(8 * 1024)
    )
}
