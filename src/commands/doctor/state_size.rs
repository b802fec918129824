//! Can our own files be written, how much do they take, and could some of it go?

use std::path::Path;

use super::{Case, Finding};
use supervisor_engine::call::bounds_of;
use supervisor_workspace::find_garbage;
use supervisor_workspace::state::allocated_bytes;

pub(super) async fn state(case: &Case) -> Vec<Finding> {
    vec![match case.state.as_ref().map(|state| state.writable()) {
        Ok(Ok(path)) => state_size(case, path),
        Ok(Err(error)) => Finding::fail(error.to_string(), ""),
        Err(error) => Finding::fail(error.to_string(), ""),
    }]
}

/// Something to free is worth a word from here on.
const MUCH_GARBAGE: u64 = 100_000_000;

/// What our own files take, and whether some of it could go.
fn state_size(case: &Case, path: &Path) -> Finding {
    let found = format!(
        "{} can be written, holds {} MB",
        path.display(),
        allocated_bytes(path) / 1_000_000
    );
    let bounds = case
        .settings
        .as_ref()
        .ok()
        .map(|settings| bounds_of(settings.routing.state));
    let garbage = case
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
    if garbage < MUCH_GARBAGE {
        return Finding::ok(found);
    }
    Finding::warn(
        found,
        format!("`supervisor gc` frees {} MB of it", garbage / 1_000_000),
    )
}
