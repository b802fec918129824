//! Fuzz target: arbitrary text as the user's settings.

use std::time::Duration;

use figment::Figment;

use super::error::RoutingError;
use super::file;
use super::layers::{Layers, RoutingLayer};
use super::sections::{BackendSettings, EditFormat, Model};
use super::types::{ModelName, Tier};

/// A tier with one model, for other fuzz targets.
pub fn tier_of(backend: BackendSettings, model: Model) -> Tier {
    let limit = Duration::from_secs(1);
    let name = ModelName(model.id.clone());
    let edit_format = EditFormat::Auto;
    Tier {
        name,
        backend,
        instead: None,
        outage: None,
        model,
        limit,
        limit_by: "limits.local_s".into(),
        is_shortened: false,
        attempts: 1,
        samples: super::sections::Samples::default(),
        edit_format,
    }
}

/// Accepted settings name a model for each skill; rejected ones say which key is wrong.
pub fn routing(built_in: &str, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let document = match file::parse(text) {
        Ok(document) => document,
        Err(fault) => {
            assert!(
                fault
                    .line
                    .is_none_or(|line| line >= 1 && line <= text.lines().count() + 1),
                "a line beyond the end"
            );
            assert!(!fault.fault.to_string().is_empty());
            return;
        }
    };
    assert!(
        document
            .lines
            .values()
            .all(|line| (1..=text.lines().count() + 1).contains(line)),
        "a line beyond the end"
    );
    let defaults = file::values(built_in).unwrap_or_default();
    let figment = Figment::new()
        .merge(RoutingLayer::new("built-in", None, defaults))
        .merge(RoutingLayer::new("file", None, document.values));
    match Layers::new(figment, document.lines).read() {
        Ok((routing, _)) => drop(routing.unreachable_tiers()),
        Err(RoutingError::Invalid(problems)) => {
            assert!(!problems.is_empty(), "refused without a reason");
            assert!(
                problems
                    .iter()
                    .all(|problem| !problem.to_string().trim().is_empty())
            );
        }
        Err(other) => assert!(!other.to_string().is_empty()),
    }
}
