//! Prepares a diagnosis: parses the arguments, runs the reproduction command once and collects the
//! relevant files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::brief::{DebugBrief, DebugMaterial};
use super::job::DebugSkill;
use super::params::DebugParams;
use super::report::{self, WrittenFiles};
use super::visits::{VisitNumber, count_visits};
use crate::common::{existing, filled};
use crate::{App, Call};
use supervisor_engine as engine;
use supervisor_engine::call::CallRequest;
use supervisor_engine::result::{CANCELLED, CallResult};
use supervisor_engine::session::SessionId;
use supervisor_engine::skill::{DryRunPlan, Preparation, PreparedCall, RefusedCall, ServerFinding};

use supervisor_settings::Routing;
use supervisor_text::words;
use supervisor_verify as verify;
use supervisor_verify::{
    ErrorSignature, NamedTestRunner, Repro, ReproCommand, ReproOutcome, RunEnvironment,
};
use supervisor_workspace::Scope;

const DEBUG: &str = "debug";

/// Max bytes of the error that are used. The log keeps as many.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Runs one call. Failures are reported in the result.
pub(super) async fn run(app: &App, params: DebugParams, call: &Call) -> CallResult {
    let request = CallRequest::new(
        "debug",
        "debug",
        params.common(),
        &[("error", &params.error)],
    );
    engine::call::run::<DebugSkill>(app, request, &params, &call.progress, &call.stop).await
}

/// The parsed arguments, before anything is locked or run.
pub(super) struct DebugRequest {
    error: String,
    context: Option<String>,
    repro: Option<ReproCommand>,
    files: Vec<PathBuf>,
    lab: NamedTestRunner,
}

impl DebugRequest {
    /// Validates the arguments before anything is run.
    /// `routing` has the user's settings for the project, once they are known.
    pub(super) fn of(
        params: &DebugParams,
        root: &Path,
        routing: Option<&Routing>,
    ) -> Result<Self, RefusedCall> {
        let repro = filled(params.repro_cmd.as_deref());
        let repro = repro.map(|typed| ReproCommand::new(&typed)).transpose()?;
        let given = params.files.iter().filter(|given| !given.trim().is_empty());
        let files = given
            .map(|given| existing(root, given, "files"))
            .collect::<Result<Vec<_>, _>>()?;
        let test_cmd = filled(params.test_cmd.as_deref());
        let test_cmd = match routing {
            Some(routing) => routing.test_command(root, test_cmd, None).0,
            None => test_cmd,
        };
        let suite = verify::detect(
            root,
            files.first().map(PathBuf::as_path),
            test_cmd.as_deref(),
        );
        // Debugging works without tests, unless the caller gave a test command that is not usable.
        let lab = match suite {
            Err(error) if test_cmd.is_some() => return Err(RefusedCall::error(error)),
            suite => NamedTestRunner::new(suite.map_err(|error| error.to_string())),
        };
        let error = words::cut_middle(&params.error, MAX_ERROR_BYTES).into_owned();
        Ok(Self {
            error,
            context: params.common().context,
            repro,
            files,
            lab,
        })
    }

    /// Runs the reproduction command once and reverts its writes before any model is asked.
    pub(super) async fn prepare(
        self,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<DebugSkill>, RefusedCall> {
        let discipline = call.discipline(DEBUG)?;
        let plan = self.plan();
        let (mut repro, mut wrote) = (None, WrittenFiles::default());
        if let Some(command) = self.repro.as_ref().filter(|_| !call.dry_run) {
            let (run, written) = self.reproduce(command, call).await?;
            (repro, wrote) = (Some(run), written);
        }
        let visit = if call.dry_run {
            VisitNumber(1)
        } else {
            self.visit(call).await?
        };
        let finding = repro.as_ref().map(|repro| ServerFinding {
            sentence: repro.sentence(),
            details: json!({"reproduced": repro.is_reproduced(), "repro": report::repro(repro)}),
        });
        let skill = DebugSkill {
            wrote,
            ..self.into_skill(call, discipline, repro, visit)
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
        let command_line = words::short(&command.typed(), 120);
        call.doing(format!("running `{command_line}` to see the error"));
        let bench = RunEnvironment {
            guard: call.site.guard()?,
            ..call.bench()
        };
        let root = call.root().to_owned();
        let run = Repro::run(
            command,
            &root,
            &ErrorSignature::of(&self.error),
            &bench,
            call.stop,
        )
        .await;
        drop(bench);
        let by_products = call
            .site
            .armed()
            .and_then(|armed| Ok(armed.mark_by_products()?))?;
        if *run.outcome() == ReproOutcome::Cancelled {
            return Err(RefusedCall::error(CANCELLED));
        }
        let mut wrote = WrittenFiles::default();
        wrote.add(&call.site.changes()?);
        if !by_products.is_empty() {
            call.site.reject(Scope::Applied).await?;
        }
        Ok((run, wrote))
    }

    async fn visit(&self, call: &Preparation<'_>) -> Result<VisitNumber, RefusedCall> {
        let session: SessionId = call.session.parse()?;
        let (state, redactor) = (
            call.environment.state.clone(),
            Arc::clone(&call.environment.services.redactor),
        );
        let (root, error) = (call.root().display().to_string(), self.error.clone());
        let counted = tokio::task::spawn_blocking(move || {
            count_visits(&state, &session, &root, &error, &redactor)
        })
        .await;
        counted.map_err(|e| RefusedCall::error(format!("the session log could not be read: {e}")))
    }

    fn into_skill(
        self,
        call: &Preparation<'_>,
        discipline: String,
        repro: Option<Repro>,
        visit: VisitNumber,
    ) -> DebugSkill {
        let Self {
            error,
            context,
            files,
            lab,
            ..
        } = self;
        let root = call.root().to_owned();
        let ecosystem = lab.suite().and_then(verify::Suite::ecosystem);
        let material = DebugMaterial::find(
            &root,
            ecosystem,
            files,
            &error,
            repro.as_ref(),
            Arc::clone(&call.environment.services.redactor),
        );
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
        let reproduction = repro
            .as_ref()
            .map(|repro| (repro.sentence(), repro.output().to_owned()));
        let brief = DebugBrief {
            discipline,
            task,
            error: error.clone(),
            reproduction,
            material,
        };
        let session = call.session.to_owned();
        DebugSkill {
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
