//! Records a change that the prove gate or `supervisor prove` found proven. Never fails its caller.

use std::path::Path;

use jiff::Timestamp;
use supervisor_models::Env;
use supervisor_prove::Report;
use supervisor_settings::{Model, Routing};
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

/// Switches shadow mode on or off as the plugin's option says.
pub(crate) fn follow_plugin() {
    let followed = StateDir::locate()
        .map_err(anyhow::Error::from)
        .and_then(|state| Ok(ShadowStore::of(&state).follow_plugin()?));
    if let Err(error) = followed {
        tracing::debug!("shadow mode stays as it is: {error:#}");
    }
}

/// Does nothing while shadow mode is off.
pub(crate) fn record_proven(routing: &Routing, report: &Report, recording: &Recording<'_>) {
    follow_plugin();
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
    // Aliases name the newest models: `sonnet` gives the price of `claude-sonnet-5`.
    let price_of = |id: &str| {
        let named = |name: &str, model: &Model| name == id || model.id == id;
        let by_name = routing
            .models
            .iter()
            .find(|(name, one)| named(&name.0, one));
        let by_alias = || routing.models.iter().find(|(name, _)| id.contains(&name.0));
        let (_, model) = by_name.or_else(by_alias)?;
        model.price_in.zip(model.price_out)
    };
    let transcript = recording
        .transcript
        .and_then(|path| read_transcript(path, &price_of))
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
