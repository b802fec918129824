//! Places where a crash would hurt most. In builds with debug assertions, the variable `SUPERVISOR_FAULT` names one,
//! and the process kills itself there; in release builds this is nothing at all.

macro_rules! points {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One place. The crash test visits [`Point::ALL`] and fails on one that was never reached.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Point { $($(#[$doc])* $name,)* }

        impl Point {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
}

points! {
    /// Contents are in the pack, no manifest names them yet.
    PackWritten,
    /// The manifest is on disk, the journal does not know it yet.
    ManifestWritten,
    /// The journal says `armed`.
    Armed,
    /// The journal names the paths about to be edited; none is.
    EditsJournaled,
    /// New contents lie beside their targets.
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
    /// The first rejected file is kept aside and still in place.
    KeptAside,
    /// The first file is restored.
    FirstRestored,
    /// All is restored and compared; the journal does not say so yet.
    Restored,
    /// The journal says `rolled_back`.
    RolledBack,
    /// Accepted, not yet in the journal.
    Accepting,
    /// The journal says `accepted`.
    Accepted,
}

/// Here the process ends, if it was told to.
pub(super) fn point(at: Point) {
    end_at(at.name());
}

/// Ends the process if this place was named, also one outside this module.
#[cfg(debug_assertions)]
pub fn end_at(place: &str) {
    use std::sync::OnceLock;
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| std::env::var("SUPERVISOR_FAULT").ok());
    if wanted.as_deref() == Some(place) {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn end_at(_: &str) {}
