//! The arguments of the tool.

use crate::skills::common::params;

params!(DebugParams {
    /// The error as it was printed, with its stack trace
    error: String,
    /// Command that shows the error (words, no shell)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repro_cmd: Option<String>,
    /// Files to look at
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    /// Test command, if not the detected one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    test_cmd: Option<String>,
});
