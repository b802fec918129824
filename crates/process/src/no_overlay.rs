//! Overlay stub for systems without mount namespaces.

use std::path::PathBuf;

use super::Launcher;

/// The directories of an overlay.
#[derive(Debug, Clone)]
pub struct OverlayLayers {
    pub lower: PathBuf,
    pub between: Option<PathBuf>,
    pub upper: PathBuf,
    pub work: PathBuf,
}

/// Why an overlay is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no private view of the project: {0}")]
pub struct OverlayError(String);

impl OverlayError {
    /// Children join an overlay through their sandbox.
    pub fn sandbox_disabled() -> Self {
        Self(String::from("it needs the sandbox, which is switched off"))
    }

    /// The kernel cannot copy such a file up with our permissions.
    pub fn other_owner(path: &std::path::Path) -> Self {
        Self(format!(
            "`{}` belongs to another user or group",
            path.display()
        ))
    }
}

/// Cannot be constructed on this system.
#[derive(Debug)]
pub struct OverlayMount(std::convert::Infallible);

impl OverlayMount {
    pub fn mount(_: &Launcher, _: &OverlayLayers) -> Result<Self, OverlayError> {
        Err(OverlayError(String::from(
            "this system has no mount namespaces",
        )))
    }

    pub fn path(&self) -> PathBuf {
        match self.0 {}
    }

    pub fn holder(&self) -> u32 {
        match self.0 {}
    }
}
