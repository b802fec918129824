//! `supervisor explain`: the chain and limits in effect, and where each value comes from.
//! Asks no model and no server. One report, shown as text or as JSON.

mod report;
mod text;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::routing::{CallOverrides, Routing, Sources, load};

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The skill to explain in full; without it, all of them in short
    skill: Option<String>,

    /// As if the call had named this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let loaded = load(&Sources::of_process(config))?;
        let call = CallOverrides { model: self.model, ..CallOverrides::default() };
        let mut skills = Vec::new();
        match &self.skill {
            Some(skill) => skills.push(loaded.routing.choices(skill, &call)?),
            None => {
                for skill in Routing::known_skills() {
                    skills.push(loaded.routing.choices(skill, &call)?);
                }
            }
        }
        let report = report::Report::new(&loaded, &skills, self.skill.is_none());
        let mut text = Vec::new();
        if self.json {
            serde_json::to_writer_pretty(&mut text, &report)?;
            writeln!(text)?;
        } else {
            for warning in &report.warnings {
                writeln!(err, "warning: {warning}")?;
            }
            text::write(&report, &mut text)?;
        }
        super::print(out, &String::from_utf8_lossy(&text))?;
        Ok(ExitCode::SUCCESS)
    }
}
