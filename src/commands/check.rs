//! `supervisor check`: runs one checkpoint of a pipeline from the shell or in CI. It only reads and
//! writes nothing.

use crate::built_in;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::signals::Signals;
use supervisor_skills::App;
use supervisor_skills::supervise::{CommandTrust, ExternalCheckRunner, QuestionPolicy};
use supervisor_team::bus::TeamBus;
use supervisor_team::check::CheckContext;
use supervisor_team::checks::health::BusDigest;
use supervisor_team::definition::CheckpointDefinition;
use supervisor_team::document::DocumentStore;
use supervisor_team::team_dirs::{TeamDirs, TeamId};
use supervisor_team::verdict::{CheckFinding, ScoredVerdict, SupervisionVerdict};
use supervisor_text::words;

const MAX_DEFINITION_BYTES: u64 = 1 << 20;

/// Run one checkpoint definition over a folder and print the verdict
///
/// Exit code 0 for pass and warn, 1 for block, 2 if it cannot be told. The commands in the definition are run: you named
/// the file.
#[derive(Debug, Args)]
pub(super) struct CheckCommand {
    /// A definition in TOML or front matter, or the name of a built-in one: CHECKPOINT-001
    #[arg(value_name = "DEFINITION")]
    definition: String,
    /// The folder whose files are checked, and in which commands run
    #[arg(long, value_name = "DIR", default_value = ".")]
    session: PathBuf,
    /// A team of that folder, by its id
    #[arg(long, value_name = "ID")]
    team: Option<String>,
    /// Exit code 1 for warn, too
    #[arg(long)]
    strict: bool,
    /// Leave the questions of the definition open instead of asking the chain of `supervise`
    #[arg(long)]
    no_models: bool,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

impl CheckCommand {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let definition = self.definition()?;
        let folder = std::path::absolute(&self.session).context("finding the folder")?;
        let place = match &self.team {
            Some(id) => TeamDirs::existing(&folder, &TeamId::new("--team", id)?, None)?,
            None => TeamDirs::of_folder(&folder)?,
        };
        let app = built_in::app(config);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let questions = if self.no_models {
            QuestionPolicy::Skip
        } else {
            QuestionPolicy::Ask
        };
        let findings = runtime.block_on(run_checks(&definition, &place, &app, questions))?;
        runtime.block_on(app.launcher().wait_for_all());
        let scored = ScoredVerdict::of(&findings);
        let text = if self.json {
            format!(
                "{:#}\n",
                json!({"id": definition.id, "verdict": scored, "checks": findings})
            )
        } else {
            render_text(&definition, &findings, &scored)
        };
        super::print(out, &text)?;
        Ok(match scored.verdict {
            SupervisionVerdict::Block => ExitCode::from(1),
            SupervisionVerdict::Warn if self.strict => ExitCode::from(1),
            SupervisionVerdict::Warn | SupervisionVerdict::Pass => ExitCode::SUCCESS,
        })
    }

    fn definition(&self) -> anyhow::Result<CheckpointDefinition> {
        if let Some(built_in) = CheckpointDefinition::built_in()
            .into_iter()
            .find(|d| d.id == self.definition)
        {
            return Ok(built_in);
        }
        let meta = std::fs::metadata(&self.definition).with_context(|| {
            format!(
                "`{}` is neither a built-in checkpoint nor a file",
                words::plain(&self.definition)
            )
        })?;
        anyhow::ensure!(
            meta.len() <= MAX_DEFINITION_BYTES,
            "`{}` has {} bytes; a definition has at most {MAX_DEFINITION_BYTES}",
            self.definition,
            meta.len()
        );
        let text = std::fs::read_to_string(&self.definition)
            .with_context(|| format!("reading `{}`", self.definition))?;
        Ok(CheckpointDefinition::parse(&self.definition, &text)?)
    }
}

async fn run_checks(
    definition: &CheckpointDefinition,
    place: &TeamDirs,
    app: &App,
    questions: QuestionPolicy,
) -> anyhow::Result<Vec<CheckFinding>> {
    let bus = TeamBus::new(place);
    let mut digest = BusDigest::default();
    digest.log = format!("{}/messages.jsonl", place.bus_dir());
    digest.add(&bus.all()?);
    let context = CheckContext {
        definition,
        documents: &DocumentStore::default().load(place, &definition.sources)?,
        meta: &bus.meta()?,
        digest: &digest,
        now_s: jiff::Timestamp::now().as_second(),
    };
    let stop = CancellationToken::new();
    let bench = ExternalCheckRunner {
        app,
        root: place.folder().path(),
        trust: CommandTrust::NamedByUser,
        questions,
        listener: &(),
        stop: &stop,
    };
    let mut signals = Signals::new()?;
    let mut deciding = std::pin::pin!(bench.decide(context.run()));
    tokio::select! {
        findings = &mut deciding => Ok(findings),
        _ = signals.next() => {
            // Wait until running commands are stopped and cleaned up before the shell gets its
            // prompt back.
            stop.cancel();
            deciding.await;
            anyhow::bail!("interrupted; nothing was written");
        }
    }
}

fn render_text(
    definition: &CheckpointDefinition,
    findings: &[CheckFinding],
    scored: &ScoredVerdict,
) -> String {
    let mut text = format!(
        "{}: {}\n\n",
        words::plain(&definition.id),
        words::plain(&definition.name)
    );
    let width = findings
        .iter()
        .map(|f| f.title.chars().count())
        .max()
        .unwrap_or(0);
    for finding in findings {
        let pad = width - finding.title.chars().count();
        text += &format!(
            "  {:<5} {}{}  {}\n",
            finding.outcome.word(),
            words::plain(&finding.title),
            " ".repeat(pad),
            finding.details
        );
        for place in &finding.evidence {
            let line = if place.line == 0 {
                String::new()
            } else {
                format!(":{}", place.line)
            };
            let excerpt = words::plain(&place.text);
            let excerpt = excerpt.lines().last().unwrap_or_default();
            text += &format!(
                "          {}{line}  {}\n",
                words::plain(&place.file),
                words::cut_end(excerpt, 120)
            );
        }
    }
    text + &format!(
        "\n{} (score: {:.2}), {} counted, {} not applicable\n",
        scored.verdict.word(),
        scored.score,
        words::count(scored.counted, "check"),
        scored.not_applicable
    )
}
