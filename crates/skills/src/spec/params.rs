//! The arguments of `spec`.

use crate::common::{filled, params};

params!(SpecParams {
    /// What is wanted, as a list or prose
    requirements: String,
    /// File to write; default docs/spec.md
    output_path: Option<String>,
    /// Update an existing file
    #[serde(default)]
    overwrite: bool,
});

/// The default output path.
const DEFAULT_OUTPUT: &str = "docs/spec.md";

impl SpecParams {
    pub(super) fn output(&self) -> String {
        filled(self.output_path.as_deref()).unwrap_or_else(|| DEFAULT_OUTPUT.to_owned())
    }
}
