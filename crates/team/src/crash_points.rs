//! Steps of a wake at which a crash must lose nothing. Tests kill the process at each of them.

/// In the order of a wake.
pub const WAKE_STEPS: [&str; 8] = [
    "WakeClaimed",
    "WakeLoaded",
    "WakeChecked",
    "WakeSidecarWritten",
    "WakeReportWritten",
    "WakePublished",
    "WakeRisksLogged",
    "WakeAccumulated",
];
