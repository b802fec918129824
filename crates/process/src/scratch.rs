//! A private directory for as long as a program needs it. One whose owner was killed is removed by the next that makes
//! one: the owner holds a lock inside, and a lock ends with its process, however that ended.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Once;

use tempfile::TempDir;

const PREFIX: &str = "supervisor-";
/// Locked by the process that made the directory.
const ALIVE: &str = ".alive";

/// Removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    _alive: File,
}

impl Scratch {
    /// In the system's temporary directory, under a name that cannot be guessed.
    pub fn new(name: &str) -> io::Result<Self> {
        Self::below(&std::env::temp_dir(), name)
    }

    /// Under a path that leaves room for the name of a socket, also where the temporary directory has a long one.
    pub(super) fn short(name: &str) -> io::Result<Self> {
        /// A socket's whole path has 108 bytes, and tests add names of their own.
        const LONGEST: usize = 24;
        let usual = std::env::temp_dir();
        if usual.as_os_str().len() > LONGEST
            && let Ok(short) = Self::below(Path::new("/tmp"), name)
        {
            return Ok(short);
        }
        Self::below(&usual, name)
    }

    fn below(place: &Path, name: &str) -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| sweep(place));
        let dir = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{name}"))
            .rand_bytes(24)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(place)?;
        // Under its name only once it is locked: a sweep must not meet it in between.
        let unlocked = dir.path().join(".new");
        let alive = File::create_new(&unlocked)?;
        alive.try_lock()?;
        fs::rename(unlocked, dir.path().join(ALIVE))?;
        Ok(Self { dir, _alive: alive })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Removes one that a kernel has put unreadable directories into.
    #[cfg(target_os = "linux")]
    pub(super) fn remove(self) {
        let work = self.dir.path().join("work/work");
        let _ = fs::set_permissions(work, fs::Permissions::from_mode(0o700));
    }
}

/// Makes a directory for this user alone, with those above it.
pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

/// What cannot be looked at is left: nothing depends on it.
fn sweep(place: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
        {
            continue;
        }
        // Of the link, if it is one: in a directory that is open to all a name can lead anywhere.
        let is_ours = entry
            .metadata()
            .is_ok_and(|m| m.is_dir() && m.uid() == own && m.mode() & 0o077 == 0);
        if is_ours && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(dir: &Path) -> bool {
    File::open(dir.join(ALIVE)).is_ok_and(|alive| alive.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_program_left_is_removed_and_nothing_else() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = |name: &str, alive: Option<&str>, mode: u32| {
            let dir = place.path().join(name);
            fs::create_dir(&dir).expect("made");
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).expect("set");
            alive.map(|alive| File::create(dir.join(alive)).expect("made"))
        };
        let living = dir("supervisor-living", Some(ALIVE), 0o700).expect("a lock");
        living.try_lock().expect("free");
        for (name, alive, mode) in [
            ("supervisor-dead", Some(ALIVE), 0o700),
            ("supervisor-begun", Some(".new"), 0o700),
            ("supervisor-log", None, 0o700),
            ("supervisor-open-to-all", Some(ALIVE), 0o755),
            ("other-dead", Some(ALIVE), 0o700),
        ] {
            dir(name, alive, mode);
        }
        std::os::unix::fs::symlink("other-dead", place.path().join("supervisor-link"))
            .expect("made");
        // A program that another test is just starting has a copy of the lock until it runs.
        for _ in 0..2_000 {
            sweep(place.path());
            if !place.path().join("supervisor-dead").exists() {
                break;
            }
            std::thread::yield_now();
        }
        let mut left: Vec<_> = fs::read_dir(place.path())
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
    fn it_is_private_and_goes_with_its_owner() {
        let scratch = Scratch::new("test-").expect("made");
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o700);
        assert!(!is_abandoned(&path));
        drop(scratch);
        assert!(!path.exists());
    }
}
