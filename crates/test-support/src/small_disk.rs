//! A small file system that can be filled.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A small file system of its own, gone with this value.
pub struct SmallDisk {
    pub dir: tempfile::TempDir,
}

impl SmallDisk {
    /// Needs the right to mount.
    pub fn new(size: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(dir.path())
            .output();
        assert!(
            mounted.is_ok_and(|output| output.status.success()),
            "a tmpfs cannot be mounted: run this test as root"
        );
        Self { dir }
    }

    pub fn fill(&self, name: &Path) {
        let mut file = fs::File::create(self.dir.path().join(name)).unwrap();
        let block = [1; 4096];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.dir.path()).output();
    }
}
