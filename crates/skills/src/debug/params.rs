//! The arguments of `debug`.

use crate::common::params;

params!(DebugParams {
    /// As printed, with its stack trace
    error: String,
    /// Command that shows the error; no shell
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repro_cmd: Option<String>,
    /// Where to look too
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    /// If not the detected one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    test_cmd: Option<String>,
});
