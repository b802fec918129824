//! Where test suites run by the settings: on this machine, or on the workers of an engine.

use supervisor_models::Env;
use supervisor_settings::{RemoteMode, RemoteSettings, Routing};
use supervisor_verify::Execution;
use supervisor_workspace::state::StateDir;

/// For a command that runs suites itself.
pub(crate) fn of_process(routing: &Routing) -> anyhow::Result<Execution> {
    let state = StateDir::locate().ok();
    execution(&routing.remote, &Env::from_process(), state.as_ref()).map_err(anyhow::Error::msg)
}

pub(crate) fn execution(
    settings: &RemoteSettings,
    env: &Env,
    state: Option<&StateDir>,
) -> Result<Execution, String> {
    if settings.mode == RemoteMode::Off {
        return Ok(Execution::default());
    }
    if settings.execution.is_empty() {
        return Err(String::from(
            "`remote.mode` sends test runs to an engine, and `remote.execution` names none; set it to grpc://host:port, \
             or `remote.mode` to \"off\"",
        ));
    }
    on_engine(settings, env, state)
}

#[cfg(not(feature = "remote"))]
fn on_engine(_: &RemoteSettings, _: &Env, _: Option<&StateDir>) -> Result<Execution, String> {
    Err(String::from(
        "this program was built without remote execution, which `remote.mode` asks for; build it with `cargo build \
         --release --features remote`, or set `remote.mode` to \"off\"",
    ))
}

#[cfg(feature = "remote")]
fn on_engine(
    settings: &RemoteSettings,
    env: &Env,
    state: Option<&StateDir>,
) -> Result<Execution, String> {
    use supervisor_remote::{EngineAddress, RemoteConfig, RemoteExecutor};

    let token = match &settings.token_env {
        None => None,
        Some(name) => Some(env.get(name).filter(|token| !token.is_empty()).ok_or_else(|| {
            format!("`remote.token_env` names `{name}`, and this variable is not set; set it to the engine's token")
        })?),
    };
    let config = RemoteConfig {
        engine: EngineAddress {
            execution: settings.execution.clone(),
            cas: Some(settings.cas.clone()).filter(|cas| !cas.is_empty()),
            instance: settings.instance.clone(),
            token,
        },
        mode: match settings.mode {
            RemoteMode::Auto => supervisor_remote::RemoteMode::Auto,
            RemoteMode::On | RemoteMode::Off => supervisor_remote::RemoteMode::On,
        },
        platform: settings
            .platform
            .iter()
            .map(|property| parse_property(property))
            .collect::<Result<_, _>>()?,
        hermetic: settings.hermetic,
        env: settings.env.clone(),
        queue_limit: settings.queue,
        hashes_file: state.map(|state| state.path().join("remote-hashes")),
    };
    let executor = std::sync::Arc::new(RemoteExecutor::new(config));
    Ok(Execution::with(executor))
}

/// A platform property, written `key=value`.
#[cfg(feature = "remote")]
pub(crate) fn parse_property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!(
            "`{text}` is not a property of a worker; write it as key=value"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn settings(mode: RemoteMode, execution: &str) -> RemoteSettings {
        RemoteSettings {
            mode,
            execution: execution.to_owned(),
            cas: String::new(),
            instance: String::new(),
            platform: Vec::new(),
            token_env: None,
            hermetic: false,
            env: Vec::new(),
            queue: Duration::from_secs(1),
        }
    }

    #[test]
    fn engine_without_address_is_refused() {
        let made = execution(&settings(RemoteMode::On, ""), &Env::default(), None);
        assert!(made.expect_err("refused").contains("`remote.execution`"));
        let made = execution(&settings(RemoteMode::Off, ""), &Env::default(), None);
        assert!(made.is_ok());
    }

    #[cfg(not(feature = "remote"))]
    #[test]
    fn missing_feature_names_the_build_command() {
        let made = execution(
            &settings(RemoteMode::Auto, "grpc://h:1"),
            &Env::default(),
            None,
        );
        let message = made.expect_err("refused");
        assert!(message.contains("--features remote"), "{message}");
    }
}
