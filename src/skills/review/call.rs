//! One review: settings, route, reading under a shared lock, walk, result.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::brief::{Brief, PARTS};
use super::files;
use super::job::Review;
use super::material::Material;
use super::params::{ReviewParams, What};
use super::range::Git;
use crate::engine::event::{Event, Teller};
use crate::engine::evidence::Evidence;
use crate::engine::job::Job;
use crate::engine::result::{CallResult, Status};
use crate::engine::run::{Early, run as walk};
use crate::engine::site::Site;
use crate::prompts::{Prompt, prompt};
use crate::server::{App, Call};
use crate::skills::common::{Begun, Common, caps, failed};
use crate::verify::findings::Requirements;
use crate::words;
use crate::workspace::{Lease, Mode, Scope, Workspace};

static REVIEW: Prompt = prompt!("review");

/// More points than this are no list that anybody checks.
const REQUIREMENTS: usize = 100;

/// Answers one call; whatever goes wrong is in the answer.
pub(super) async fn run(app: &App, asked: &ReviewParams, call: &Call) -> CallResult {
    match begin(app, asked, call).await {
        Ok(result) => result,
        Err(message) => failed("review", "review", Status::Error, message),
    }
}

async fn begin(app: &App, asked: &ReviewParams, call: &Call) -> Result<CallResult, String> {
    let common = asked.common();
    let begun = Begun::new(app, "review", "review", &common, &[])?;
    let what = asked.what()?;
    let requirements = Requirements::of(asked.requirements.as_deref().unwrap_or_default());
    if requirements.len() > REQUIREMENTS {
        return Err(format!(
            "`requirements` has {} points, one for each line, and {REQUIREMENTS} is the most; review them in groups",
            requirements.len()
        ));
    }
    let start = Start { begun: &begun, common: &common, what, requirements };
    if common.dry_run {
        return start.plan_only(call).await;
    }
    let result = walk(&begun.means, &begun.route, &begun.request, &call.progress, &call.stop, async |teller| {
        let (site, review) = start.prepare(teller, call).await?;
        Ok((site, Box::new(review) as Box<dyn Job>))
    });
    Ok(result.await)
}

/// One call on its way to its first question.
struct Start<'a> {
    begun: &'a Begun<'a>,
    common: &'a Common,
    what: What,
    requirements: Requirements,
}

impl Start<'_> {
    async fn prepare(&self, teller: &Teller<'_>, call: &Call) -> Result<(Site, Review), Early> {
        let discipline =
            REVIEW.load(self.begun.means.prompts.as_deref()).and_then(|t| t.fill(&[])).map_err(Early::error)?;
        let state = self.begun.app.state().map_err(Early::error)?;
        let root = Path::new(&self.common.project_root);
        let workspace = Workspace::open_to_read(root, caps(self.begun.routing()), &state).map_err(Early::error)?;
        let wait = self.begun.route.limits.lock_wait;
        let lease = workspace.lock(Mode::Shared, "review", wait, &call.stop).await.map_err(Early::error)?;
        teller.tell(Event::Doing { what: String::from("reading what is to be reviewed") });
        let material = self.read(&workspace, &lease, call).await.map_err(Early::error)?;
        let brief =
            Brief { discipline, task: self.task(&workspace, &material), requirements: self.requirements.clone() };
        self.somebody_can(&brief, &material)?;
        let site = Site::watching(lease).await.map_err(Early::error)?;
        Ok((site, Review { brief, material, asked: Mutex::default() }))
    }

    async fn read(&self, workspace: &Workspace, lease: &Lease, call: &Call) -> Result<Material, String> {
        let redactor = Arc::clone(&self.begun.means.redactor);
        match &self.what {
            What::Files(named) => {
                let (workspace, named) = (workspace.clone(), named.clone());
                // A disk may be slow, and other calls must not wait for it.
                let read = tokio::task::spawn_blocking(move || files::read(&workspace, &named, &redactor));
                read.await.map_err(|e| format!("reading the files failed: {e}"))?
            }
            What::Range { base, head } => {
                let git = Git::find(self.begun.app, lease)?;
                git.read(base, head, &redactor, &call.stop).await
            }
        }
    }

    /// Nobody is asked where nobody could answer.
    fn somebody_can(&self, brief: &Brief, material: &Material) -> Result<(), Early> {
        let mut why = None;
        for tier in self.begun.route.chain.tiers() {
            match brief.questions(material, tier, &Evidence::default()) {
                Ok(_) => return Ok(()),
                Err(cannot) => why = Some(format!("`{}`: {cannot}", tier.name)),
            }
        }
        Err(Early::error(format!(
            "{} with {} bytes to show do not fit into {PARTS} questions for any model of the chain ({}); name fewer files, a \
             nearer `base`, or a `model` with a larger window",
            words::count(material.shown(), "file"),
            material.bytes(),
            why.unwrap_or_default()
        )))
    }

    fn task(&self, workspace: &Workspace, material: &Material) -> String {
        let mut task = format!("project_root: {}\n", workspace.root().display());
        let range = &material.range;
        if range.is_null() {
            task += &format!("\nReview the {} below.\n", words::count(material.shown(), "file"));
        } else {
            task += &format!(
                "\nReview what changed from {} to {}: {} below, as they are in that commit; the files on disk may differ.\n",
                range["from"].as_str().unwrap_or_default(),
                range["to"].as_str().unwrap_or_default(),
                words::count(material.shown(), "file")
            );
            let unseen = material.covered.iter().filter_map(|file| Some((file.file.as_str(), file.note.as_ref()?)));
            let unseen = unseen.filter(|(file, _)| material.scope.source(Path::new(file)).is_none());
            for (file, why) in unseen.take(20) {
                task += &format!("not shown: `{}` {why}\n", words::plain(file));
            }
            for file in material.covered.iter().take(20) {
                if let Some(was) = &file.was {
                    task += &format!("renamed: `{}` is now `{}`\n", words::plain(was), words::plain(&file.file));
                }
            }
        }
        if !self.requirements.is_empty() {
            task += "\n## Requirements, each to be answered by its id\n\n";
            task.extend(self.requirements.iter().map(|r| format!("{}: {}\n", r.id, words::plain(&r.text))));
        }
        if let Some(context) = &self.common.context {
            task += &format!("\ncontext: {}\n", words::plain(context));
        }
        task
    }

    /// The plan, without asking any model. Nothing is logged.
    async fn plan_only(&self, call: &Call) -> Result<CallResult, String> {
        let teller = Teller::new("review", &call.progress);
        let (site, review) = match self.prepare(&teller, call).await {
            Ok(prepared) => prepared,
            Err(early) => return Ok(self.begun.refused(early)),
        };
        let more = json!({
            "coverage": review.material.coverage(30),
            "server_findings": review.material.scanned.len(),
            "requirements": review.brief.requirements.iter().collect::<Vec<_>>(),
        });
        let files = words::count(review.material.shown(), "file");
        let message =
            format!("dry run: nobody was asked; {files} with {} bytes would be shown", review.material.bytes());
        let result = self.begun.plan(&review, message, more);
        site.leave(Scope::Applied).await.map_err(|e| e.to_string())?;
        Ok(result)
    }
}
