//! A copy of the environment as data, so that tests can pass their own variables.

use std::collections::BTreeMap;
use std::ffi::OsString;

use secrecy::SecretString;

use supervisor_process::environment;
use supervisor_text::redact::Redactor;

/// A copy of the environment. Empty variables count as unset.
#[derive(Clone, Default)]
pub struct Env(BTreeMap<OsString, OsString>);

impl Env {
    /// The environment of this process.
    pub fn from_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    pub fn get(&self, name: &str) -> Option<String> {
        let value = self
            .0
            .get(&OsString::from(name))?
            .to_string_lossy()
            .trim()
            .to_owned();
        if value.is_empty() { None } else { Some(value) }
    }

    /// Like [`Env::get`], for values that must never be printed.
    pub fn secret(&self, name: &str) -> Option<SecretString> {
        self.get(name).map(SecretString::from)
    }

    /// A redactor for the values of these variables and of all variables that are named like a key.
    pub fn redactor<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Redactor {
        let key_names = self
            .0
            .keys()
            .filter_map(|name| name.to_str())
            .filter(|name| environment::is_key_name(name));
        let values = names.into_iter().filter_map(|name| self.get(name));
        Redactor::with_values(values.chain(key_names.filter_map(|name| self.get(name))))
    }

    pub fn vars(&self) -> &BTreeMap<OsString, OsString> {
        &self.0
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(vars: I) -> Self {
        Self(
            vars.into_iter()
                .map(|(k, v)| (k.into(), v.into()))
                .collect(),
        )
    }
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Print names only: values may be keys.
        f.debug_list().entries(self.0.keys()).finish()
    }
}
