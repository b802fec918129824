//! One call of one phase: settings, route, preparation, walk, result.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::baseline::{Ground, Plan, split};
use super::brief::Brief;
use super::green::{Green, TestFile};
use super::job::{Phase, Tdd};
use super::memory::Pending;
use super::params::{Asked, Goal};
use super::red::Red;
use super::refactor::Refactor;
use crate::engine::event::Teller;
use crate::engine::job::Job;
use crate::engine::result::{CallResult, Status};
use crate::engine::run::{Early, run as walk};
use crate::engine::site::Site;
use crate::prompts::{Prompt, prompt};
use crate::server::{App, Call};
use crate::skills::common::{Begun, existing, failed, inside};
use crate::verify::Outcome;
use crate::words;
use crate::workspace::Scope;

static RED: Prompt = prompt!("tdd/red");
static GREEN: Prompt = prompt!("tdd/green");
static REFACTOR: Prompt = prompt!("tdd/refactor");

/// Answers one call; whatever goes wrong is in the answer.
pub(super) async fn run(app: &App, asked: Asked, call: &Call) -> CallResult {
    match begin(app, &asked, call).await {
        Ok(result) => result,
        Err(message) => failed(asked.goal.skill(), asked.goal.phase(), Status::Error, message),
    }
}

async fn begin(app: &App, asked: &Asked, call: &Call) -> Result<CallResult, String> {
    let (skill, phase) = (asked.goal.skill(), asked.goal.phase());
    let begun = Begun::new(app, skill, phase, &asked.common, &asked.required())?;
    let start = Start { begun: &begun, asked, pending: Arc::default() };
    if asked.common.dry_run {
        return start.plan_only(call).await;
    }
    let result = walk(&begun.means, &begun.route, &begun.request, &call.progress, &call.stop, async |teller| {
        let (site, tdd) = start.prepare(teller, call).await?;
        Ok((site, Box::new(tdd) as Box<dyn Job>))
    })
    .await;
    if result.status == Status::Pass {
        start.pending.settle(app.memory());
    }
    Ok(result)
}

/// One call on its way to its phase.
struct Start<'a> {
    begun: &'a Begun<'a>,
    asked: &'a Asked,
    /// What is worth remembering, should the call end well.
    pending: Arc<Pending>,
}

impl Start<'_> {
    async fn prepare(&self, teller: &Teller<'_>, call: &Call) -> Result<(Site, Tdd), Early> {
        let common = &self.asked.common;
        let prompt = match &self.asked.goal {
            Goal::Red { .. } => &RED,
            Goal::Green { .. } => &GREEN,
            Goal::Refactor { .. } => &REFACTOR,
        };
        let discipline =
            prompt.load(self.begun.means.prompts.as_deref()).and_then(|t| t.fill(&[])).map_err(Early::error)?;
        let near = match &self.asked.goal {
            Goal::Red { test_path, .. } => test_path.as_deref(),
            Goal::Green { test_path } | Goal::Refactor { test_path, .. } => Some(test_path.as_str()),
        };
        self.paths_exist()?;
        let plan = Plan {
            app: self.begun.app,
            routing: self.begun.routing(),
            route: &self.begun.route,
            root: &common.project_root,
            near,
            test_cmd: self.asked.test_cmd.as_deref(),
            teller,
            stop: &call.stop,
        };
        let (site, ground) = plan.prepare().await?;
        match self.phase(&ground) {
            Ok((phase, test)) => {
                let brief = self.brief(&ground, &phase, test, discipline);
                Ok((site, Tdd { ground, brief, phase }))
            }
            Err(early) => {
                // What the tests wrote is taken away again; nothing else was touched.
                site.leave(Scope::Applied).await.map_err(Early::error)?;
                Err(early)
            }
        }
    }

    /// Wrong paths are told before anything is run.
    fn paths_exist(&self) -> Result<(), Early> {
        let root = Path::new(&self.asked.common.project_root).canonicalize();
        // What is wrong with the root itself is said when it is opened.
        let Some(root) = root.ok().filter(|root| root.read_dir().is_ok()) else { return Ok(()) };
        match &self.asked.goal {
            Goal::Red { test_path: None, .. } => {}
            Goal::Red { test_path: Some(path), .. } => {
                inside(&root, path).map_err(|why| Early::error(format!("test_path: {why}")))?;
            }
            Goal::Green { test_path } => drop(existing(&root, split(&root, test_path).0, "test_path")?),
            Goal::Refactor { test_path, impl_path } => {
                existing(&root, split(&root, test_path).0, "test_path")?;
                existing(&root, impl_path, "impl_path")?;
            }
        }
        Ok(())
    }

    /// The phase, and the test in question.
    fn phase(&self, ground: &Ground) -> Result<(Phase, TestFile), Early> {
        let root = &ground.root;
        let test_file = |given: &str| {
            let (path, only) = split(root, given);
            let path = existing(root, path, "test_path")?;
            let source = fs::read(root.join(&path)).map(|b| String::from_utf8_lossy(&b).into_owned());
            let source = source.map_err(|e| Early::error(format!("test_path: `{}`: {e}", path.display())))?;
            Ok::<_, Early>(TestFile { path, only: only.map(str::to_owned), source })
        };
        Ok(match &self.asked.goal {
            Goal::Red { test_path, .. } => {
                let path = test_path.as_deref().map(|given| inside(root, given)).transpose().map_err(Early::error)?;
                let path = path.unwrap_or_default();
                let source = fs::read_to_string(root.join(&path)).unwrap_or_default();
                (
                    Phase::Red(Red::of(ground, self.next(), Arc::clone(&self.pending))?),
                    TestFile { path, only: None, source },
                )
            }
            Goal::Green { test_path } => {
                let test = test_file(test_path)?;
                (Phase::Green(Green::of(ground, test.clone(), self.begun.app.memory(), self.next())?), test)
            }
            Goal::Refactor { test_path, impl_path } => {
                let test = test_file(test_path)?;
                let path = existing(root, impl_path, "impl_path")?;
                (Phase::Refactor(Refactor::of(ground, test.clone(), path)?), test)
            }
        })
    }

    fn brief(&self, ground: &Ground, phase: &Phase, test: TestFile, discipline: String) -> Brief {
        let also = match &self.asked.goal {
            Goal::Refactor { impl_path, .. } => inside(&ground.root, impl_path).into_iter().collect(),
            Goal::Red { .. } | Goal::Green { .. } => Vec::new(),
        };
        let mut task = format!(
            "phase: {}\nproject_root: {}\ntest_cmd: {}\n",
            self.asked.goal.phase(),
            ground.root.display(),
            ground.suite.command()
        );
        let mut line = |key: &str, value: &str| task += &format!("{key}: {}\n", words::plain(value.trim()));
        match (&self.asked.goal, phase) {
            (Goal::Red { spec, test_path }, _) => {
                line("spec", spec);
                if let Some(path) = test_path {
                    line("test_path", path);
                }
                task += "\nWrite one test that fails until the spec is met.\n";
            }
            (Goal::Green { test_path }, Phase::Green(green)) => {
                line("test_path", test_path);
                task += &format!("\nMake {} pass.\n", green.target());
            }
            (Goal::Green { test_path }, _) => line("test_path", test_path),
            (Goal::Refactor { test_path, impl_path }, _) => {
                line("test_path", test_path);
                line("impl_path", impl_path);
                task += "\nImprove the structure of impl_path without changing what it does.\n";
            }
        }
        if let Some(context) = &self.asked.common.context {
            task += &format!("\ncontext: {}\n", words::plain(context));
        }
        Brief {
            discipline,
            task,
            // What passes has nothing more to say.
            output: match ground.run.outcome() {
                Outcome::Passed => ground.run.sentence(),
                _ => ground.run.output().to_owned(),
            },
            root: ground.root.clone(),
            ecosystem: ground.ecosystem(),
            test_path: test.path,
            test_source: test.source,
            also,
            argv: ground.suite.argv().to_vec(),
        }
    }

    /// The call that usually follows, with what is known of its arguments.
    fn next(&self) -> Value {
        let mut arguments = json!({
            "project_root": self.asked.common.project_root,
            "session_id": self.begun.session.as_str(),
        });
        if let Some(command) = &self.asked.test_cmd {
            arguments["test_cmd"] = json!(command);
        }
        json!({"tool": "", "arguments": arguments})
    }

    /// The plan, without asking any model. Nothing is logged, and nothing is left behind.
    async fn plan_only(&self, call: &Call) -> Result<CallResult, String> {
        let teller = Teller::new(self.asked.goal.skill(), &call.progress);
        let (site, tdd) = match self.prepare(&teller, call).await {
            Ok(prepared) => prepared,
            Err(early) => return Ok(self.begun.refused(early)),
        };
        let more = json!({
            "runner": tdd.ground.suite.runner(),
            "command": tdd.ground.suite.command(),
            "because": tdd.ground.suite.because(),
            "alternatives": tdd.ground.suite.alternatives(),
            "sealed_files": tdd.ground.sealed,
            "by_products": tdd.ground.by_products,
            "baseline": tdd.ground.run.sentence(),
        });
        let message = format!("dry run: nothing was asked and nothing changed; {}", tdd.ground.run.sentence());
        let result = self.begun.plan(&tdd, message, more);
        site.leave(Scope::Applied).await.map_err(|e| e.to_string())?;
        Ok(result)
    }
}
