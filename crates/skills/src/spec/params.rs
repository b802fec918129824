//! The arguments of `spec`.

use crate::common::{filled, params};

params!(SpecParams {
    /// List or prose
    requirements: String,
    /// Default docs/spec.md
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_path: Option<String>,
    /// Update an existing file
    #[serde(default)]
    overwrite: bool,
});

/// Where a specification goes unless the caller says otherwise.
const OUTPUT: &str = "docs/spec.md";

impl SpecParams {
    pub(super) fn output(&self) -> String {
        filled(self.output_path.as_deref()).unwrap_or_else(|| OUTPUT.to_owned())
    }
}
