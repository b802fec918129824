//! Whose figures go where, from the settings.

use std::time::Duration;

use supervisor_settings::{SharedPart, TeamSettings, WhenDown};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A checked configuration.
#[derive(Debug, Clone)]
pub struct TeamConfig {
    pub(crate) postgres: Config,
    pub(crate) team: String,
    pub(crate) person: String,
    pub(crate) share: SharedPart,
    pub(crate) when_down: WhenDown,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("`team.database` is not an address of a Postgres database: {0}")]
    Address(tokio_postgres::Error),
    #[error("`team.person` is not set and there is no $USER; set it in your models.toml")]
    NoPerson,
    #[error("${0}, which `team.password_env` names, is not set")]
    NoPassword(String),
}

impl TeamConfig {
    /// `None` without a database. `variable` reads the environment.
    pub fn new(
        settings: &TeamSettings,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(database) = &settings.database else {
            return Ok(None);
        };
        let mut postgres: Config = database.parse().map_err(ConfigError::Address)?;
        if let Some(name) = &settings.password_env {
            let password = variable(name).filter(|value| !value.is_empty());
            postgres.password(password.ok_or_else(|| ConfigError::NoPassword(name.clone()))?);
        }
        // What is sent is private, so that a connection beyond this machine is encrypted or not made.
        if !postgres.get_hosts().iter().all(is_this_machine) {
            postgres.ssl_mode(SslMode::Require);
        }
        postgres.connect_timeout(CONNECT_TIMEOUT);
        postgres.application_name("supervisor");
        let person = settings.person.clone().or_else(|| variable("USER"));
        let person = person.filter(|person| !person.is_empty());
        Ok(Some(Self {
            postgres,
            team: settings.name.clone(),
            person: person.ok_or(ConfigError::NoPerson)?,
            share: settings.share,
            when_down: settings.when_down,
        }))
    }

    /// What the outbox has sent, it has sent there.
    pub(crate) fn target(&self) -> String {
        let hosts = self.postgres.get_hosts();
        let ports = self.postgres.get_ports();
        let name = self.postgres.get_dbname().unwrap_or_default();
        let share = self.share;
        format!(
            "{hosts:?} {ports:?} {name} {} {} {share:?}",
            self.team, self.person
        )
    }
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost"
                || name
                    .parse::<std::net::IpAddr>()
                    .is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(database: &str) -> TeamSettings {
        TeamSettings {
            database: Some(database.into()),
            password_env: None,
            name: "team".into(),
            person: Some("ada".into()),
            share: SharedPart::Counts,
            when_down: WhenDown::LocalCaps,
        }
    }

    #[test]
    fn connection_beyond_this_machine_is_encrypted() {
        for (database, mode) in [
            ("postgres://me@localhost/x", SslMode::Prefer),
            ("postgres://me@127.0.0.1/x", SslMode::Prefer),
            ("postgres://me@db.example.com/x", SslMode::Require),
            (
                "postgres://me@db.example.com/x?sslmode=disable",
                SslMode::Require,
            ),
            ("postgres://me@10.0.0.1/x", SslMode::Require),
        ] {
            let config = TeamConfig::new(&settings(database), |_| None);
            let config = config.expect("valid").expect("a database");
            assert_eq!(config.postgres.get_ssl_mode(), mode, "{database}");
        }
    }

    #[test]
    fn password_comes_from_the_named_variable() {
        let mut settings = settings("postgres://me@localhost/x");
        settings.password_env = Some("DB_KEY".into());
        let missing = TeamConfig::new(&settings, |_| None).expect_err("missing");
        assert!(missing.to_string().contains("$DB_KEY"), "{missing}");
        let given = |name: &str| (name == "DB_KEY").then(|| String::from("s3cret-word"));
        let config = TeamConfig::new(&settings, given)
            .expect("valid")
            .expect("set");
        assert_eq!(config.postgres.get_password(), Some(&b"s3cret-word"[..]));
        assert!(!format!("{config:?}").contains("s3cret-word"));
    }
}
