//! `supervisor report`: summarises what the models did and cost, as a few lines or as one HTML
//! page. Reads the session logs and the results that still exist. The page needs no network and no
//! other file.

mod charts;
mod flow;
mod gather;
mod page;
mod reasons;
mod rows;
mod text;
mod timeline;

use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;

use super::stats::worth::{self, HostContext};
use crate::built_in;
use gather::ReportData;
use page::WorthPage;
use supervisor_engine::session::since::Since;
use supervisor_engine::session::{Filter, SessionId, SessionLog};
use supervisor_settings::load;
use supervisor_text::words::count;
use supervisor_workspace::state::StateDir;

/// Show what the models did and were worth: a few lines, or one page for a browser
///
/// The page has calls over time, accept rate, cost and latency of each model, the flow between tiers, what was saved
/// against always asking the top tier, why answers were refused, flaky tests, and every call with its attempts, diff,
/// gates and output. It is one file and loads nothing.
#[derive(Debug, Args)]
pub(super) struct ReportCommand {
    /// Write the page to this file; `-` is stdout
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Count only calls since a date (2026-01-31, UTC), a time, or so long ago (7d, 36h, 2w)
    #[arg(long, value_name = "WHEN")]
    since: Option<Since>,

    /// Count only this skill; `tdd` stands for its three tools
    #[arg(long, value_name = "NAME")]
    skill: Option<String>,

    /// Count only this session
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,

    /// Count only calls in this project
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

impl ReportCommand {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let state = crate::commands::state_dir()?;
        let log = SessionLog::to_read(&state);
        let filter = Filter {
            since: self.since.map(Since::time),
            skill: self.skill,
            session: self.session,
            project: self
                .project
                .as_deref()
                .map(super::stats::project_root)
                .transpose()?,
        };
        let data = ReportData::gather(&log, &filter, self.html.is_some())?;
        // `doctor` reports broken settings.
        let loaded = load(&built_in::sources(config)).ok();
        let worth = || WorthPage {
            worth: worth::judge(&data.worth, loaded.as_ref()),
            context: HostContext::measure(&state),
        };
        match &self.html {
            None => super::print(out, &text::render(&data, log.directory()))?,
            Some(file) if file == Path::new("-") => {
                super::print(out, &page::render(&data, &worth()))?;
            }
            Some(file) => {
                let page = page::render(&data, &worth());
                write_page(file, &page)?;
                let size = page.len() as f64 / 1e6;
                let summary = format!(
                    "{} in {} ({size:.1} MB)\n",
                    count(data.rows.len(), "call"),
                    file.display()
                );
                super::print(out, &summary)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The text report over all sessions, as served to MCP clients.
pub(super) fn render_text(state: &StateDir) -> Result<String, String> {
    let log = SessionLog::to_read(state);
    let data = ReportData::gather(&log, &Filter::default(), false)
        .map_err(|error| format!("{error:#}"))?;
    Ok(text::render(&data, log.directory()))
}

/// Writes the page atomically and readable only by the user, because it contains code of their
/// projects.
fn write_page(file: &Path, page: &str) -> anyhow::Result<()> {
    if file.is_dir() {
        bail!(
            "--html `{}` is a directory; name a file in it, such as `report.html`",
            file.display()
        );
    }
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let context = || {
        format!(
            "--html `{}` cannot be written; name a file in a directory that you may write",
            file.display()
        )
    };
    let mut temp_file = tempfile::NamedTempFile::new_in(folder).with_context(context)?;
    temp_file
        .as_file()
        .set_permissions(std::fs::Permissions::from_mode(0o600))
        .with_context(context)?;
    temp_file.write_all(page.as_bytes()).with_context(context)?;
    temp_file.persist(file).with_context(context)?;
    Ok(())
}
