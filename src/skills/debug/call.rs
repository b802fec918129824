//! One call: settings, route, the command run once, walk, result.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::answer::Wrote;
use super::brief::{Brief, Material};
use super::job::Debug;
use super::params::DebugParams;
use super::visits::{Visit, visit};
use crate::engine::event::{Event, Teller};
use crate::engine::job::Job;
use crate::engine::result::{CallResult, Status};
use crate::engine::run::{Early, run as walk};
use crate::engine::site::Site;
use crate::process::environment;
use crate::prompts::{Prompt, prompt};
use crate::server::{App, Call};
use crate::skills::common::{Begun, Common, caps, existing, failed, filled};
use crate::verify::hypotheses::Lab;
use crate::verify::{self, Bench, Repro, ReproCommand, Showed, Signature};
use crate::words;
use crate::workspace::{Mode, Scope, Workspace};

static DEBUG: Prompt = prompt!("debug");

/// Bytes of an error that are read; the log keeps as many.
const ERROR: usize = 64 * 1024;

/// Answers one call; whatever goes wrong is in the answer.
pub(super) async fn run(app: &App, asked: DebugParams, call: &Call) -> CallResult {
    match begin(app, asked, call).await {
        Ok(result) => result,
        Err(message) => failed("debug", "debug", Status::Error, message),
    }
}

async fn begin(app: &App, asked: DebugParams, call: &Call) -> Result<CallResult, String> {
    let common = asked.common();
    let begun = Begun::new(app, "debug", "debug", &common, &[("error", &asked.error)])?;
    let error = words::cut_middle(&asked.error, ERROR).into_owned();
    let start = Start { begun: &begun, common: &common, asked: &asked, error };
    if common.dry_run {
        return Ok(match start.ground() {
            Ok(ground) => start.plan(ground),
            Err(early) => begun.refused(early),
        });
    }
    Ok(walk(&begun.means, &begun.route, &begun.request, &call.progress, &call.stop, async |teller| {
        let ground = start.ground()?;
        let (site, job) = start.prepare(ground, teller, call).await?;
        Ok((site, Box::new(job) as Box<dyn Job>))
    })
    .await)
}

/// One call on its way to its question.
struct Start<'a> {
    begun: &'a Begun<'a>,
    common: &'a Common,
    asked: &'a DebugParams,
    /// As much of it as anybody reads.
    error: String,
}

/// What is known before anything is locked or run.
struct Ground {
    workspace: Workspace,
    discipline: String,
    repro: Option<ReproCommand>,
    files: Vec<PathBuf>,
    lab: Lab,
}

impl Start<'_> {
    /// Wrong arguments are told before anything is run.
    fn ground(&self) -> Result<Ground, Early> {
        let prompts = self.begun.means.prompts.as_deref();
        let discipline = DEBUG.load(prompts).and_then(|t| t.fill(&[])).map_err(Early::error)?;
        let repro = filled(self.asked.repro_cmd.as_deref());
        let repro = repro.map(|typed| ReproCommand::new(&typed)).transpose().map_err(Early::error)?;
        let state = self.begun.app.state().map_err(Early::error)?;
        let workspace = Workspace::open(Path::new(&self.common.project_root), caps(self.begun.routing()), &state)
            .map_err(Early::error)?;
        let root = workspace.root();
        let given = self.asked.files.iter().filter(|given| !given.trim().is_empty());
        let files = given.map(|given| existing(root, given, "files")).collect::<Result<Vec<_>, _>>()?;
        let test_cmd = filled(self.asked.test_cmd.as_deref());
        let suite = verify::detect(root, files.first().map(PathBuf::as_path), test_cmd.as_deref());
        // A project without tests can be looked into all the same, unless the caller says what they are.
        let lab = match suite {
            Err(error) if test_cmd.is_some() => return Err(Early::error(error)),
            suite => Lab::new(suite.map_err(|error| error.to_string())),
        };
        Ok(Ground { workspace, discipline, repro, files, lab })
    }

    /// Locks, arms, and runs the command once. Whatever it wrote is taken back before anybody is asked.
    async fn prepare(&self, ground: Ground, teller: &Teller<'_>, call: &Call) -> Result<(Site, Debug), Early> {
        let route = &self.begun.route;
        let lock = ground.workspace.lock(Mode::Exclusive, "debug", route.limits.lock_wait, &call.stop);
        let lease = lock.await.map_err(Early::error)?;
        let mut site = Site::arm(lease, self.begun.app.launcher()).await.map_err(Early::error)?;
        let (files, unprotected) = {
            let armed = site.armed().map_err(Early::error)?;
            (armed.files().count(), armed.unprotected().len())
        };
        teller.tell(Event::Armed { files, unprotected });
        let (mut repro, mut wrote) = (None, Wrote::default());
        if let Some(command) = &ground.repro {
            let typed = words::cut_end(&words::plain(&command.typed()), 120).into_owned();
            teller.tell(Event::Doing { what: format!("running `{typed}` to see the error") });
            let bench = Bench { guard: site.guard().map_err(Early::error)?, ..self.bench() };
            let error = Signature::of(&self.error);
            let run = Repro::run(command, ground.workspace.root(), &error, &bench, &call.stop).await;
            drop(bench);
            let written = site.armed().and_then(|armed| Ok(armed.mark_by_products()?)).map_err(Early::error)?;
            if *run.showed() == Showed::Cancelled {
                site.leave(Scope::Applied).await.map_err(Early::error)?;
                return Err(Early::error("the call was cancelled; the project is as it was"));
            }
            wrote.add(&site.changes().map_err(Early::error)?);
            if !written.is_empty() {
                site.reject(Scope::Applied).await.map_err(Early::error)?;
            }
            repro = Some(run);
        }
        let visit = self.visit().await?;
        Ok((site, Debug { wrote, ..self.job(ground, repro, visit) }))
    }

    fn bench(&self) -> Bench {
        let (app, routing) = (self.begun.app, self.begun.routing());
        let keys: Vec<String> = routing.backends.values().filter_map(|b| b.api_key_env.clone()).collect();
        Bench {
            launcher: app.launcher().clone(),
            env: environment::tests(app.env().vars().clone(), &keys, &routing.env_pass),
            limit: self.begun.route.limits.tests,
            guard: None,
        }
    }

    async fn visit(&self) -> Result<Visit, Early> {
        let state = self.begun.app.state().map_err(Early::error)?;
        let (session, redactor) = (self.begun.session.clone(), Arc::clone(&self.begun.means.redactor));
        let (root, error) = (self.begun.request.project_root.clone(), self.error.clone());
        let counted = tokio::task::spawn_blocking(move || visit(&state, &session, &root, &error, &redactor)).await;
        counted.map_err(|e| Early::error(format!("the session log could not be read: {e}")))
    }

    fn job(&self, ground: Ground, repro: Option<Repro>, visit: Visit) -> Debug {
        let Ground { workspace, discipline, files, lab, .. } = ground;
        let root = workspace.root().to_owned();
        let ecosystem = lab.suite().and_then(verify::Suite::ecosystem);
        let material = Material::find(&root, ecosystem, files, &self.error, repro.as_ref());
        let mut task = format!("phase: debug\nproject_root: {}\n", root.display());
        match lab.suite() {
            Some(suite) => task += &format!("test_cmd: {}\n", suite.command()),
            None => task += "test_cmd: none was found, so confirm by `search`\n",
        }
        if let Some(context) = &self.common.context {
            task += &format!("\ncontext: {}\n", words::plain(context));
        }
        if let Some(advice) = visit.advice() {
            task += &format!("\n{advice}\n");
        }
        task += "\nExplain the error below. Change nothing.\n";
        let seen = repro.as_ref().map(|repro| (repro.sentence(), repro.output().to_owned()));
        let error = self.error.clone();
        let brief = Brief { discipline, task, error: error.clone(), seen, material };
        let session = self.begun.session.as_str().to_owned();
        Debug { root, error, brief, repro, wrote: Wrote::default(), lab, bench: self.bench(), visit, session }
    }

    /// The plan, without asking any model or running anything. Nothing is logged.
    fn plan(&self, ground: Ground) -> CallResult {
        let repro = ground.repro.as_ref().map(ReproCommand::typed);
        let tests = ground.lab.suite().map(verify::Suite::command);
        let job = self.job(ground, None, Visit(1));
        let more = json!({"repro_cmd": repro, "test_cmd": tests, "not_shown": job.brief.material.not_shown});
        let message = match &repro {
            Some(command) => format!("dry run: nothing was asked or run; `{command}` would be run first"),
            None => String::from("dry run: nothing was asked or run; without `repro_cmd` nothing can be verified"),
        };
        self.begun.plan(&job, message, more)
    }
}
