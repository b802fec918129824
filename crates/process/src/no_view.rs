//! Where there are no mount namespaces there is no private view.

use std::path::PathBuf;

use super::Launcher;

/// What an overlay would be made of.
#[derive(Debug, Clone)]
pub struct ViewLayers {
    pub lower: PathBuf,
    pub upper: PathBuf,
    pub work: PathBuf,
}

/// Why there is no private view here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no private view of the project: {0}")]
pub struct ViewError(String);

impl ViewError {
    /// Children are led into a view by their walls.
    pub fn without_walls() -> Self {
        Self(String::from("it needs the sandbox, which is switched off"))
    }

    /// The kernel cannot copy such a file for us.
    pub fn other_owner(path: &std::path::Path) -> Self {
        Self(format!(
            "`{}` belongs to another user or group",
            path.display()
        ))
    }
}

/// Never made here.
#[derive(Debug)]
pub struct View(std::convert::Infallible);

impl View {
    pub fn mount(_: &Launcher, _: &ViewLayers) -> Result<Self, ViewError> {
        Err(ViewError(String::from(
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
