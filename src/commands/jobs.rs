//! `supervisor jobs`: lists background calls, shows the result of one, or cancels one.

use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};

use super::stats::table::{add_row, name, render_table, table};
use supervisor_engine::session::jobs::{JobRecord, JobStore};
use supervisor_text::words::{cut_end, did_you_mean, plain};

/// List, show or cancel background calls
///
/// A client that offers MCP tasks need not wait for a call that edits nothing or works in a private view, and fetches
/// the result later. Results wait here for a week.
#[derive(Debug, Args)]
pub(super) struct JobsCommand {
    #[command(subcommand)]
    action: Option<JobsAction>,
}

#[derive(Debug, Subcommand)]
enum JobsAction {
    /// Print one with its result, as JSON
    Show { id: String },
    /// Ask for the end of one; its project will be as it was
    Cancel { id: String },
}

impl JobsCommand {
    pub(super) fn run(self, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let store = JobStore::new(&crate::commands::state_dir()?);
        let text = match self.action {
            None => list(&store.list()),
            Some(JobsAction::Show { id }) => {
                let job = find(&store, &id)?;
                serde_json::to_string_pretty(&job)? + "\n"
            }
            Some(JobsAction::Cancel { id }) => {
                let job = find(&store, &id)?;
                if !store.request_cancel(&job.id)? {
                    bail!("job `{}` is over: {}", job.id, job.state.word());
                }
                format!("asked for the end of {}\n", job.id)
            }
        };
        super::print(out, &text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Finds a job by its id or a unique prefix of it.
fn find(store: &JobStore, prefix: &str) -> anyhow::Result<JobRecord> {
    let jobs = store.list();
    let matches: Vec<&JobRecord> = jobs
        .iter()
        .filter(|job| !prefix.is_empty() && job.id.starts_with(prefix))
        .collect();
    match matches.as_slice() {
        [job] => Ok((*job).clone()),
        [] => {
            let near = did_you_mean(prefix, jobs.iter().map(|job| job.id.as_str()));
            let hint = near.map_or_else(
                || "`supervisor jobs` lists them".into(),
                |near| format!("did you mean `{near}`?"),
            );
            bail!("there is no job `{}`; {hint}", plain(prefix))
        }
        many => bail!(
            "{} jobs begin with `{}`; write more of the id",
            many.len(),
            plain(prefix)
        ),
    }
}

fn list(jobs: &[JobRecord]) -> String {
    if jobs.is_empty() {
        return "no jobs: no client has put a call into the background in the last week\n".into();
    }
    let width =
        terminal_size::terminal_size().map(|(terminal_size::Width(columns), _)| columns.max(60));
    let mut rows = table(width, &["job", "tool", "state", "began", "about"]);
    for job in jobs {
        let state = if job.cause.is_empty() {
            job.state.word().into()
        } else {
            format!("{}: {}", job.state.word(), job.cause)
        };
        let about = if job.message.is_empty() {
            &job.project_root
        } else {
            &job.message
        };
        let about = plain(about).replace(['\n', '\t'], " ");
        let began = job.began.get(..16).unwrap_or(&job.began).replace('T', " ");
        let id = job.id.get(..12).unwrap_or(&job.id).to_owned();
        add_row(
            &mut rows,
            vec![
                id,
                name(&job.tool),
                state,
                plain(&began).into_owned(),
                cut_end(&about, 80).into_owned(),
            ],
        );
    }
    render_table(&rows)
}
