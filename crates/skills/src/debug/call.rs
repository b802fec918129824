//! The way into a diagnosis: the arguments, the command run once, the files that matter.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::answer::{self, WrittenFiles};
use super::brief::{DebugBrief, DebugMaterial};
use super::job::Debug;
use super::params::DebugParams;
use super::visits::{Visit, visit};
use crate::common::{existing, filled};
use crate::{App, Call};
use supervisor_engine as engine;
use supervisor_engine::call::CallRequest;
use supervisor_engine::result::CallResult;
use supervisor_engine::session::SessionId;
use supervisor_engine::skill::{DryRunPlan, Preparation, PreparedCall, RefusedCall, ServerFinding};

use supervisor_text::words;
use supervisor_verify as verify;
use supervisor_verify::{Bench, Repro, ReproCommand, ReproOutcome, Signature, TestLab};
use supervisor_workspace::Scope;

const DEBUG: &str = "debug";

/// Bytes of an error that are read; the log keeps as many.
const ERROR: usize = 64 * 1024;

/// Answers one call; whatever goes wrong is in the answer.
pub(super) async fn run(app: &App, asked: DebugParams, call: &Call) -> CallResult {
    let request = CallRequest::new("debug", "debug", asked.common(), &[("error", &asked.error)]);
    engine::call::run::<Debug>(app, request, &asked, &call.progress, &call.stop).await
}

/// What is known before anything is locked or run.
pub(super) struct DebugSubject {
    error: String,
    context: Option<String>,
    repro: Option<ReproCommand>,
    files: Vec<PathBuf>,
    lab: TestLab,
}

impl DebugSubject {
    /// Wrong arguments are told before anything is run.
    pub(super) fn of(asked: &DebugParams, root: &Path) -> Result<Self, RefusedCall> {
        let repro = filled(asked.repro_cmd.as_deref());
        let repro = repro
            .map(|typed| ReproCommand::new(&typed))
            .transpose()
            .map_err(RefusedCall::error)?;
        let given = asked.files.iter().filter(|given| !given.trim().is_empty());
        let files = given
            .map(|given| existing(root, given, "files"))
            .collect::<Result<Vec<_>, _>>()?;
        let test_cmd = filled(asked.test_cmd.as_deref());
        let suite = verify::detect(
            root,
            files.first().map(PathBuf::as_path),
            test_cmd.as_deref(),
        );
        // A project without tests can be looked into all the same, unless the caller says what they are.
        let lab = match suite {
            Err(error) if test_cmd.is_some() => return Err(RefusedCall::error(error)),
            suite => TestLab::new(suite.map_err(|error| error.to_string())),
        };
        let error = words::cut_middle(&asked.error, ERROR).into_owned();
        Ok(Self {
            error,
            context: asked.common().context,
            repro,
            files,
            lab,
        })
    }

    /// Runs the command once. Whatever it wrote is taken back before any model is asked.
    pub(super) async fn prepare(
        self,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<Debug>, RefusedCall> {
        let discipline = call.discipline(DEBUG)?;
        let plan = self.plan();
        let (mut repro, mut wrote) = (None, WrittenFiles::default());
        if let Some(command) = self.repro.as_ref().filter(|_| !call.dry_run) {
            let (run, written) = self.reproduce(command, call).await?;
            (repro, wrote) = (Some(run), written);
        }
        let visit = if call.dry_run {
            Visit(1)
        } else {
            self.visit(call).await?
        };
        let finding = repro.as_ref().map(|repro| ServerFinding {
            sentence: repro.sentence(),
            details: json!({"reproduced": repro.is_reproduced(), "repro": answer::repro(repro)}),
        });
        let skill = Debug {
            wrote,
            ..self.job(call, discipline, repro, visit)
        };
        let mut plan = plan;
        plan.details["not_shown"] = json!(skill.brief.material.not_shown);
        Ok(PreparedCall {
            discipline: skill.brief.discipline.clone(),
            task: skill.brief.task.clone(),
            finding,
            plan,
            skill,
        })
    }

    async fn reproduce(
        &self,
        command: &ReproCommand,
        call: &mut Preparation<'_>,
    ) -> Result<(Repro, WrittenFiles), RefusedCall> {
        let typed = words::cut_end(&words::plain(&command.typed()), 120).into_owned();
        call.doing(format!("running `{typed}` to see the error"));
        let bench = Bench {
            guard: call.site.guard().map_err(RefusedCall::error)?,
            ..call.bench()
        };
        let root = call.root().to_owned();
        let run = Repro::run(
            command,
            &root,
            &Signature::of(&self.error),
            &bench,
            call.stop,
        )
        .await;
        drop(bench);
        let written = call
            .site
            .armed()
            .and_then(|armed| Ok(armed.mark_by_products()?))
            .map_err(RefusedCall::error)?;
        if *run.showed() == ReproOutcome::Cancelled {
            return Err(RefusedCall::error(
                "the call was cancelled; the project is as it was",
            ));
        }
        let mut wrote = WrittenFiles::default();
        wrote.add(&call.site.changes().map_err(RefusedCall::error)?);
        if !written.is_empty() {
            call.site
                .reject(Scope::Applied)
                .await
                .map_err(RefusedCall::error)?;
        }
        Ok((run, wrote))
    }

    async fn visit(&self, call: &Preparation<'_>) -> Result<Visit, RefusedCall> {
        let session: SessionId = call.session.parse().map_err(RefusedCall::error)?;
        let (state, redactor) = (
            call.surroundings.state.clone(),
            Arc::clone(&call.surroundings.means.redactor),
        );
        let (root, error) = (call.root().display().to_string(), self.error.clone());
        let counted =
            tokio::task::spawn_blocking(move || visit(&state, &session, &root, &error, &redactor))
                .await;
        counted.map_err(|e| RefusedCall::error(format!("the session log could not be read: {e}")))
    }

    fn job(
        self,
        call: &Preparation<'_>,
        discipline: String,
        repro: Option<Repro>,
        visit: Visit,
    ) -> Debug {
        let Self {
            error,
            context,
            files,
            lab,
            ..
        } = self;
        let root = call.root().to_owned();
        let ecosystem = lab.suite().and_then(verify::Suite::ecosystem);
        let material = DebugMaterial::find(&root, ecosystem, files, &error, repro.as_ref());
        let mut task = format!("phase: debug\nproject_root: {}\n", root.display());
        match lab.suite() {
            Some(suite) => task += &format!("test_cmd: {}\n", suite.command()),
            None => task += "test_cmd: none was found, so confirm by `search`\n",
        }
        if let Some(context) = &context {
            task += &format!("\ncontext: {}\n", words::plain(context));
        }
        if let Some(advice) = visit.advice() {
            task += &format!("\n{advice}\n");
        }
        task += "\nExplain the error below. Change nothing.\n";
        let seen = repro
            .as_ref()
            .map(|repro| (repro.sentence(), repro.output().to_owned()));
        let brief = DebugBrief {
            discipline,
            task,
            error: error.clone(),
            seen,
            material,
        };
        let session = call.session.to_owned();
        Debug {
            root,
            error,
            brief,
            repro,
            wrote: WrittenFiles::default(),
            lab,
            bench: call.bench(),
            visit,
            session,
        }
    }

    fn plan(&self) -> DryRunPlan {
        let repro = self.repro.as_ref().map(ReproCommand::typed);
        let tests = self.lab.suite().map(verify::Suite::command);
        let message = match &repro {
            Some(command) => {
                format!("dry run: nothing was asked or run; `{command}` would be run first")
            }
            None => String::from(
                "dry run: nothing was asked or run; without `repro_cmd` nothing can be verified",
            ),
        };
        DryRunPlan {
            message,
            details: json!({"repro_cmd": repro, "test_cmd": tests}),
        }
    }
}
