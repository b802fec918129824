//! The arguments of `debug`.

use crate::common::params;

params!(DebugParams {
    /// As printed, with its stack trace
    error: String,
    /// Command that shows the error; no shell
    repro_cmd: Option<String>,
    /// Where to look too
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    /// If not the detected one
    test_cmd: Option<String>,
});
