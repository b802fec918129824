//! Crash points for tests. In builds with debug assertions, the variable `SUPERVISOR_FAULT` names a
//! point at which the process kills itself; in release builds this does nothing.

macro_rules! points {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A crash point. The crash test visits [`FaultPoint::ALL`] and fails if one was never reached.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FaultPoint { $($(#[$doc])* $name,)* }

        impl FaultPoint {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
}

points! {
    /// Contents are in the pack; no manifest names them yet.
    PackWritten,
    /// The manifest is on disk; the journal does not know it yet.
    ManifestWritten,
    /// The journal says `armed`.
    Armed,
    /// The journal names the paths to edit; none is edited yet.
    EditsJournaled,
    /// New contents are staged beside their targets.
    EditsStaged,
    /// The first of several edits is in place.
    FirstEdit,
    /// All edits are in place.
    LastEdit,
    /// The journal says that programs may have written.
    Exposed,
    /// The journal names the by-products.
    ByProducts,
    /// The journal says `rolling_back`; nothing is undone yet.
    RollingBack,
    /// The first rejected file is saved and still in place.
    KeptAside,
    /// The first file is restored.
    FirstRestored,
    /// Everything is restored and verified; the journal does not say so yet.
    Restored,
    /// The journal says `rolled_back`.
    RolledBack,
    /// Accepted, but not yet in the journal.
    Accepting,
    /// The journal says `accepted`.
    Accepted,
}

/// Kills the process if this point was requested.
pub(super) fn point(at: FaultPoint) {
    end_at(at.name());
}

/// Kills the process if this point was requested. Also used for points outside this module.
#[cfg(debug_assertions)]
pub fn end_at(name: &str) {
    use std::sync::OnceLock;
    static REQUESTED: OnceLock<Option<String>> = OnceLock::new();
    let requested = REQUESTED.get_or_init(|| std::env::var("SUPERVISOR_FAULT").ok());
    if requested.as_deref() == Some(name) {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn end_at(_: &str) {}
