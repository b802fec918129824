//! The file of a log. It is opened without following links, private to the user, and any number of
//! processes can append whole lines to it.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::hash_chain;
use supervisor_workspace::state::STATE_DIR_VAR;

/// Much longer than another process's write takes: a process that holds the lock longer is stopped,
/// not busy.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("the session log `{0}` is a symbolic link; it is not followed: remove it")]
    Link(PathBuf),
    #[error("the session log `{0}` is not a regular file; remove it")]
    NotAFile(PathBuf),
    #[error(
        "the session log `{0}` belongs to another user; remove it, or choose another session_id"
    )]
    NotOurs(PathBuf),
    #[error("the session log `{path}` has been locked by another process for {}s; is one stopped?", LOCK_TIMEOUT.as_secs())]
    Busy { path: PathBuf },
    #[error("no room to write the session log `{path}`: {source}; free some space on its disk")]
    NoRoom { path: PathBuf, source: io::Error },
    #[error(
        "the session log `{path}` cannot be used: {source}; make it writable, or set ${STATE_DIR_VAR}"
    )]
    Io { path: PathBuf, source: io::Error },
}

/// The state of the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    Whole,
    /// A writer died in the middle of its line. The line has been terminated.
    Torn,
}

/// Opens an existing log for reading; `None` if it does not exist.
pub(super) fn open_to_read(path: &Path) -> Result<Option<File>, FileError> {
    match open(path, OpenOptions::new().read(true)) {
        Ok(file) => check_owned_file(file, path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error(path, error)),
    }
}

/// Opens the log for appending and creates it if missing. Its directory must exist.
pub(super) fn open_to_append(path: &Path) -> Result<File, FileError> {
    let file = open(
        path,
        OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600),
    );
    let file = check_owned_file(file.map_err(|error| file_error(path, error))?, path)?;
    let mode = file
        .metadata()
        .map_err(|error| file_error(path, error))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))
            .map_err(|error| file_error(path, error))?;
    }
    Ok(file)
}

/// Result of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AppendReport {
    pub(super) tail: Tail,
    /// Length of the line as written, including its digest and newline.
    pub(super) bytes: usize,
}

/// Appends `line`, which ends in a newline, and syncs it to disk. The sync happens outside the
/// lock, so that concurrent writers wait for the disk together and not for each other.
pub(super) fn append(path: &Path, line: &[u8]) -> Result<AppendReport, FileError> {
    let fail = |error| file_error(path, error);
    let file = open_locked(path, LOCK_TIMEOUT)?;
    let before = file.metadata().map_err(fail)?.len();
    let written = last_digest(&file, before).and_then(|previous| {
        let line = hash_chain::add_digest(previous.as_deref(), line);
        Ok(AppendReport {
            tail: write_line(&file, before, &line)?,
            bytes: line.len(),
        })
    });
    let unlocked = file.unlock();
    let appended = written.map_err(fail)?;
    unlocked.map_err(fail)?;
    file.sync_data().map_err(fail)?;
    if before == 0 {
        // The directory entry of a new file must be synced separately.
        let directory = path.parent().expect("a log lies in a directory");
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(fail)?;
    }
    Ok(appended)
}

/// The digest of the last line, if it is complete and has one.
fn last_digest(file: &File, length: u64) -> io::Result<Option<String>> {
    let from = length.saturating_sub(hash_chain::DIGEST_FIELD_LEN as u64 + 1);
    let mut end = [0; hash_chain::DIGEST_FIELD_LEN + 1];
    let end = &mut end[..usize::try_from(length - from).unwrap_or(0)];
    file.read_exact_at(end, from)?;
    Ok(end
        .strip_suffix(b"\n")
        .and_then(hash_chain::digest_of)
        .map(str::to_owned))
}

fn write_line(mut file: &File, before: u64, line: &[u8]) -> io::Result<Tail> {
    let tail = match before {
        0 => Tail::Whole,
        _ => {
            let mut last = [0];
            file.read_exact_at(&mut last, before - 1)?;
            if last == *b"\n" {
                Tail::Whole
            } else {
                Tail::Torn
            }
        }
    };
    // One buffer and normally one write: on most file systems readers never see a partial line.
    let mut rest = Vec::new();
    let mut rest: &[u8] = match tail {
        Tail::Whole => line,
        Tail::Torn => {
            rest.reserve_exact(line.len() + 1);
            rest.push(b'\n');
            rest.extend_from_slice(line);
            &rest
        }
    };
    let mut written = 0;
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(0) => {
                return Err(remove_partial_line(
                    file,
                    before,
                    written,
                    io::ErrorKind::WriteZero.into(),
                ));
            }
            Ok(n) => {
                written += n as u64;
                rest = &rest[n..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(remove_partial_line(file, before, written, error)),
        }
    }
    Ok(tail)
}

/// Removes a line that could not be written completely, unless a process without the lock has
/// written after it. Then it remains, and the next writer terminates it.
fn remove_partial_line(file: &File, before: u64, written: u64, error: io::Error) -> io::Error {
    if written > 0
        && file
            .metadata()
            .is_ok_and(|now| now.len() == before + written)
    {
        let _ = file.set_len(before);
    }
    error
}

/// Opens and locks the log. Reopens it if it was removed while we waited.
fn open_locked(path: &Path, timeout: Duration) -> Result<File, FileError> {
    let (until, mut pause) = (Instant::now() + timeout, Duration::from_micros(20));
    loop {
        let file = open_to_append(path)?;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() > until => {
                    return Err(FileError::Busy {
                        path: path.to_owned(),
                    });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(pause),
                Err(TryLockError::Error(error)) => return Err(file_error(path, error)),
            }
            pause = (pause * 2).min(Duration::from_millis(2));
        }
        if file
            .metadata()
            .map_err(|error| file_error(path, error))?
            .nlink()
            > 0
        {
            return Ok(file);
        }
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Nonblocking: a pipe in place of the log must not block us. std adds close-on-exec.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

fn check_owned_file(file: File, path: &Path) -> Result<File, FileError> {
    let meta = file.metadata().map_err(|error| file_error(path, error))?;
    if !meta.is_file() {
        Err(FileError::NotAFile(path.to_owned()))
    } else if meta.uid() != rustix::process::geteuid().as_raw() {
        Err(FileError::NotOurs(path.to_owned()))
    } else {
        Ok(file)
    }
}

fn file_error(path: &Path, source: io::Error) -> FileError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            FileError::NoRoom { path, source }
        }
        _ if rustix::io::Errno::from_io_error(&source) == Some(rustix::io::Errno::LOOP) => {
            FileError::Link(path)
        }
        io::ErrorKind::IsADirectory => FileError::NotAFile(path),
        io::ErrorKind::PermissionDenied => match std::fs::symlink_metadata(&path) {
            Ok(meta) if meta.uid() != rustix::process::geteuid().as_raw() => {
                FileError::NotOurs(path)
            }
            _ => FileError::Io { path, source },
        },
        _ => FileError::Io { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("temp dir");
        let path = dir.path().join("s.jsonl");
        (dir, path)
    }

    #[test]
    fn torn_line_is_terminated_before_append() {
        let (_dir, path) = log();
        std::fs::write(&path, "{\"a\":1}\n{\"torn\":\"ha").expect("write");
        assert_eq!(append(&path, b"b\n").expect("appended").tail, Tail::Torn);
        assert_eq!(append(&path, b"c\n").expect("appended").tail, Tail::Whole);
        let text = std::fs::read_to_string(&path).expect("read");
        assert_eq!(text, "{\"a\":1}\n{\"torn\":\"ha\nb\nc\n");
    }

    #[test]
    fn foreign_files_are_refused() {
        let (dir, path) = log();
        let target = dir.path().join("target");
        std::fs::write(&target, "mine").expect("write");
        std::os::unix::fs::symlink(&target, &path).expect("symlink");
        assert!(matches!(append(&path, b"x\n"), Err(FileError::Link(_))));
        assert!(matches!(open_to_read(&path), Err(FileError::Link(_))));
        assert_eq!(std::fs::read_to_string(&target).expect("read"), "mine");

        std::fs::remove_file(&path).expect("remove");
        std::fs::create_dir(&path).expect("mkdir");
        assert!(matches!(append(&path, b"x\n"), Err(FileError::NotAFile(_))));

        std::fs::remove_dir(&path).expect("rmdir");
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            &path,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )
        .expect("mkfifo");
        assert!(matches!(append(&path, b"x\n"), Err(FileError::NotAFile(_))));
        assert!(matches!(open_to_read(&path), Err(FileError::NotAFile(_))));
    }

    #[test]
    fn log_file_is_made_private() {
        let (_dir, path) = log();
        std::fs::write(&path, "").expect("write");
        std::fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("chmod");
        append(&path, b"x\n").expect("appended");
        assert_eq!(
            std::fs::metadata(&path).expect("stat").permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn held_lock_times_out_with_message() {
        let (_dir, path) = log();
        let holder = open_locked(&path, LOCK_TIMEOUT).expect("free");
        let error = open_locked(&path, Duration::from_millis(20))
            .expect_err("held")
            .to_string();
        assert!(error.contains("locked by another process"), "{error}");
        drop(holder);
        open_locked(&path, LOCK_TIMEOUT).expect("free again");
    }

    #[test]
    fn log_removed_during_wait_is_recreated() {
        let (_dir, path) = log();
        let holder = open_locked(&path, LOCK_TIMEOUT).expect("free");
        let waiter = std::thread::spawn({
            let path = path.clone();
            move || append(&path, b"x\n")
        });
        std::fs::remove_file(&path).expect("remove");
        drop(holder);
        waiter.join().expect("no panic").expect("appended");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "x\n");
    }
}
