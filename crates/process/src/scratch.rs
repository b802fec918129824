//! A private temporary directory. The owner holds a lock inside it, and the lock ends with its
//! process. If the owner was killed, the next process that creates a scratch directory removes the
//! old one.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Once;

use tempfile::TempDir;

const PREFIX: &str = "supervisor-";
/// Locked by the process that created the directory.
const LOCK_FILE: &str = ".alive";

/// A private directory, removed on drop.
#[derive(Debug)]
pub struct ScratchDir {
    dir: TempDir,
    _lock: File,
}

impl ScratchDir {
    /// Creates one in the system's temporary directory, under an unguessable name.
    pub fn new(name: &str) -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir(), name)
    }

    /// Creates one under a path short enough for the name of a socket, even if the temporary
    /// directory's path is long.
    pub fn short(name: &str) -> io::Result<Self> {
        /// A socket path is limited to 108 bytes, and tests add their own names.
        const MAX_PARENT_LEN: usize = 24;
        let default = std::env::temp_dir();
        if default.as_os_str().len() > MAX_PARENT_LEN
            && let Ok(short) = Self::create_in(Path::new("/tmp"), name)
        {
            return Ok(short);
        }
        Self::create_in(&default, name)
    }

    fn create_in(parent: &Path, name: &str) -> io::Result<Self> {
        static CLEANED: Once = Once::new();
        CLEANED.call_once(|| remove_abandoned(parent));
        let dir = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{name}"))
            .rand_bytes(24)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        // Renamed only once it is locked, so that a concurrent sweep does not remove it.
        let unlocked = dir.path().join(".new");
        let lock = File::create_new(&unlocked)?;
        lock.try_lock()?;
        fs::rename(unlocked, dir.path().join(LOCK_FILE))?;
        Ok(Self { dir, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Removes a directory that overlayfs has used: the kernel leaves an unreadable work directory.
    #[cfg(target_os = "linux")]
    pub(super) fn remove(self) {
        let work = self.dir.path().join("work/work");
        let _ = fs::set_permissions(work, fs::Permissions::from_mode(0o700));
    }
}

/// Creates a directory and its parents, accessible to this user only.
pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

/// Removes abandoned directories. Ignores those that cannot be inspected: nothing depends on them.
fn remove_abandoned(parent: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
        {
            continue;
        }
        // Does not follow links: in a world-writable directory a name can lead anywhere.
        let is_ours = entry
            .metadata()
            .is_ok_and(|m| m.is_dir() && m.uid() == own && m.mode() & 0o077 == 0);
        if is_ours && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(dir: &Path) -> bool {
    File::open(dir.join(LOCK_FILE)).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_abandoned_directories_are_removed() {
        let parent = tempfile::tempdir().expect("a directory");
        let dir = |name: &str, lock: Option<&str>, mode: u32| {
            let dir = parent.path().join(name);
            fs::create_dir(&dir).expect("made");
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).expect("set");
            lock.map(|lock| File::create(dir.join(lock)).expect("made"))
        };
        let living = dir("supervisor-living", Some(LOCK_FILE), 0o700).expect("a lock");
        living.try_lock().expect("free");
        for (name, lock, mode) in [
            ("supervisor-dead", Some(LOCK_FILE), 0o700),
            ("supervisor-begun", Some(".new"), 0o700),
            ("supervisor-log", None, 0o700),
            ("supervisor-open-to-all", Some(LOCK_FILE), 0o755),
            ("other-dead", Some(LOCK_FILE), 0o700),
        ] {
            dir(name, lock, mode);
        }
        std::os::unix::fs::symlink("other-dead", parent.path().join("supervisor-link"))
            .expect("made");
        // A program that another test is starting holds a copy of the lock until exec.
        for _ in 0..2_000 {
            remove_abandoned(parent.path());
            if !parent.path().join("supervisor-dead").exists() {
                break;
            }
            std::thread::yield_now();
        }
        let mut left: Vec<_> = fs::read_dir(parent.path())
            .expect("there")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect();
        left.sort();
        let kept = [
            "other-dead",
            "supervisor-begun",
            "supervisor-link",
            "supervisor-living",
            "supervisor-log",
        ];
        assert_eq!(left, [&kept[..], &["supervisor-open-to-all"]].concat());
    }

    #[test]
    fn scratch_directory_is_private_and_temporary() {
        let scratch = ScratchDir::new("test-").expect("made");
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o700);
        assert!(!is_abandoned(&path));
        drop(scratch);
        assert!(!path.exists());
    }
}
