//! Records a change that the prove gate or `supervisor prove` found proven. Never fails its caller.

use std::path::Path;

use jiff::Timestamp;
use supervisor_models::Env;
use supervisor_prove::Report;
use supervisor_settings::Routing;
use supervisor_shadow::{RecordRequest, ShadowStore, read_transcript, record};
use supervisor_workspace::state::StateDir;
use tokio_util::sync::CancellationToken;

use crate::commands::prove::launcher_and_env;

/// What is known about the change beside its proof.
pub(crate) struct Recording<'a> {
    pub(crate) root: &'a Path,
    pub(crate) base: &'a str,
    pub(crate) test_cmd: Option<&'a str>,
    /// The transcript of the host, if one did the work.
    pub(crate) transcript: Option<&'a Path>,
}

/// Does nothing while shadow mode is off.
pub(crate) fn record_proven(routing: &Routing, report: &Report, recording: &Recording<'_>) {
    if let Err(error) = try_record(routing, report, recording) {
        tracing::debug!("not recorded for shadow mode: {error:#}");
    }
}

fn try_record(routing: &Routing, report: &Report, recording: &Recording<'_>) -> anyhow::Result<()> {
    let store = ShadowStore::of(&StateDir::locate()?);
    if store.settings().is_none() {
        return Ok(());
    }
    let (launcher, env) = launcher_and_env(routing)?;
    let keys = routing
        .backends
        .values()
        .filter_map(|backend| backend.api_key_env.as_deref());
    let redactor = Env::from_process().redactor(keys);
    let transcript = recording
        .transcript
        .and_then(read_transcript)
        .unwrap_or_default();
    let request = RecordRequest {
        root: recording.root,
        base: recording.base,
        report,
        description: &transcript.request,
        test_cmd: recording.test_cmd,
        host: transcript.usage,
        now: Timestamp::now(),
        redactor: &redactor,
        launcher: &launcher,
        env: &env,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let task = runtime.block_on(record(&store, &request, &CancellationToken::new()))?;
    tracing::info!("recorded for shadow mode: {}", task.id);
    Ok(())
}
