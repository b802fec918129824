//! Little helpers for tests about settings: a file, some variables, what comes out.

use std::collections::BTreeMap;
use std::ffi::OsString;

use supervisor_settings::{LoadedRouting, Route, RoutingError, Sources, load};

/// Loads with this user file and no variables.
pub fn config(file: &str) -> Result<LoadedRouting, RoutingError> {
    with(file, &[])
}

/// Loads with these variables and no file.
pub fn env(variables: &[(&str, &str)]) -> Result<LoadedRouting, RoutingError> {
    load(&Sources {
        env: variables_of(variables),
        ..Sources::built_in(crate::MODELS_TOML)
    })
}

/// Loads with this user file and these variables.
pub fn with(file: &str, variables: &[(&str, &str)]) -> Result<LoadedRouting, RoutingError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("models.toml");
    std::fs::write(&path, file).unwrap();
    load(&Sources {
        user_file: Some(path),
        env: variables_of(variables),
        ..Sources::built_in(crate::MODELS_TOML)
    })
}

pub fn variables_of(variables: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
    variables
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// The names of a route's tiers, in order.
pub fn names(route: &Route) -> Vec<&str> {
    route
        .chain
        .tiers()
        .map(|tier| tier.name.0.as_str())
        .collect()
}
