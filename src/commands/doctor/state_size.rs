//! Checks that the state directory is writable, how large it is, and how much of it can be freed.

use std::path::Path;

use super::{DoctorContext, Finding, Fix};
use supervisor_engine::call::bounds_of;
use supervisor_workspace::find_garbage;
use supervisor_workspace::state::allocated_bytes;

pub(super) async fn state(context: &DoctorContext) -> Vec<Finding> {
    vec![match context.state.as_ref().map(|state| state.writable()) {
        Ok(Ok(path)) => state_size(context, path),
        Ok(Err(error)) => Finding::fail(error.to_string(), ""),
        Err(error) => Finding::fail(error.to_string(), ""),
    }]
}

/// Warn if at least this much can be freed.
const GARBAGE_WARN_BYTES: u64 = 100_000_000;

/// Reports the size of the state directory and how much of it can be freed.
fn state_size(context: &DoctorContext, path: &Path) -> Finding {
    let found = format!(
        "{} can be written, holds {} MB",
        path.display(),
        allocated_bytes(path) / 1_000_000
    );
    let bounds = context
        .settings
        .as_ref()
        .ok()
        .map(|settings| bounds_of(settings.routing.state));
    let garbage = context
        .state
        .as_ref()
        .ok()
        .zip(bounds)
        .map(|(state, bounds)| find_garbage(state, bounds));
    let garbage: u64 = garbage
        .unwrap_or_default()
        .iter()
        .map(|garbage| garbage.bytes)
        .sum();
    if garbage < GARBAGE_WARN_BYTES {
        return Finding::ok(found);
    }
    Finding::warn(
        found,
        format!("`supervisor gc` frees {} MB of it", garbage / 1_000_000),
    )
    .fixed_by(Fix::Gc)
}
