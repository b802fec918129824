//! Where there is no shim no process can guard an armed project: the next start puts it right.

/// A process that would finish what is open. Here, there is none.
#[derive(Debug)]
pub struct Watch;

impl Watch {
    pub async fn dismiss(self) {}
}
