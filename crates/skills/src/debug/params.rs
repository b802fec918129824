//! The arguments of `debug`.

use crate::common::params;

params!(DebugParams {
    /// The error as printed, with its stack trace
    error: String,
    /// Command that shows the error; run without a shell
    repro_cmd: Option<String>,
    /// Further files to look at
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    /// Command that runs the tests, if not the detected one
    test_cmd: Option<String>,
});
