//! The steps of a wake between which a crash must cost nothing. Tests end the process at each of them.

/// In the order in which a wake reaches them.
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
