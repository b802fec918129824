//! The environment as data, so that what is looked up can be told apart from what happens to be set.

use std::collections::BTreeMap;
use std::ffi::OsString;

use secrecy::SecretString;

use supervisor_process::environment;
use supervisor_text::redact::Redactor;

/// A copy of the environment. An empty variable counts as unset.
#[derive(Clone, Default)]
pub struct Env(BTreeMap<OsString, OsString>);

impl Env {
    /// What this program was started with.
    pub fn of_this_program() -> Self {
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

    /// The same, for what must never be printed.
    pub fn secret(&self, name: &str) -> Option<SecretString> {
        self.get(name).map(SecretString::from)
    }

    /// Takes the values of these variables out of any text, and of all that are named like a key.
    pub fn redactor<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Redactor {
        let named_so = self
            .0
            .keys()
            .filter_map(|name| name.to_str())
            .filter(|name| environment::names_a_key(name));
        let values = names.into_iter().filter_map(|name| self.get(name));
        Redactor::knowing(values.chain(named_so.filter_map(|name| self.get(name))))
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
        // Values hold keys.
        f.debug_list().entries(self.0.keys()).finish()
    }
}
