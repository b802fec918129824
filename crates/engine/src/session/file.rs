//! The log's file: opened without following links, ours alone, appended to whole lines at a time by any number of
//! processes. Knows bytes. Does not know what is in a line.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::chain;
use supervisor_workspace::state::STATE_DIR_VAR;

/// Far longer than a neighbour's write takes: a process that holds the lock longer is stopped, not busy.
const PATIENCE: Duration = Duration::from_secs(10);

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
    #[error("the session log `{path}` has been locked by another process for {}s; is one stopped?", PATIENCE.as_secs())]
    Busy { path: PathBuf },
    #[error("no room to write the session log `{path}`: {source}; free some space on its disk")]
    NoRoom { path: PathBuf, source: io::Error },
    #[error(
        "the session log `{path}` cannot be used: {source}; make it writable, or set ${STATE_DIR_VAR}"
    )]
    Io { path: PathBuf, source: io::Error },
}

/// What was found at the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    Whole,
    /// A writer died in the middle of its line, which is now closed.
    Torn,
}

/// An existing log, to read. A missing one is `None`.
pub(super) fn open_to_read(path: &Path) -> Result<Option<File>, FileError> {
    match open(path, OpenOptions::new().read(true)) {
        Ok(file) => checked(file, path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused(path, error)),
    }
}

/// The log, to append to; made if missing. Its directory must be there.
pub(super) fn open_to_append(path: &Path) -> Result<File, FileError> {
    let file = open(
        path,
        OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600),
    );
    let file = checked(file.map_err(|error| refused(path, error))?, path)?;
    let mode = file
        .metadata()
        .map_err(|error| refused(path, error))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))
            .map_err(|error| refused(path, error))?;
    }
    Ok(file)
}

/// What was written, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AppendReport {
    pub(super) tail: Tail,
    /// Of the line as it was written, with its digest and its newline.
    pub(super) bytes: usize,
}

/// Appends `line`, which ends in a newline, and waits until it is on disk. The wait is outside the lock, so that
/// writers wait for the disk together and not for each other.
pub(super) fn append(path: &Path, line: &[u8]) -> Result<AppendReport, FileError> {
    let fail = |error| refused(path, error);
    let file = locked(path, PATIENCE)?;
    let before = file.metadata().map_err(fail)?.len();
    let written = last_digest(&file, before).and_then(|previous| {
        let line = chain::seal(previous.as_deref(), line);
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
        // The name of a new file is the directory's to keep.
        let directory = path.parent().expect("a log lies in a directory");
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(fail)?;
    }
    Ok(appended)
}

/// The digest of the last line, if that is whole and has one.
fn last_digest(file: &File, length: u64) -> io::Result<Option<String>> {
    let from = length.saturating_sub(chain::LENGTH as u64 + 1);
    let mut end = [0; chain::LENGTH + 1];
    let end = &mut end[..usize::try_from(length - from).unwrap_or(0)];
    file.read_exact_at(end, from)?;
    Ok(end
        .strip_suffix(b"\n")
        .and_then(chain::digest_of)
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
    // One buffer and as a rule one write: on most file systems not even a reader sees half a line.
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
                return Err(give_back(
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
            Err(error) => return Err(give_back(file, before, written, error)),
        }
    }
    Ok(tail)
}

/// A line that did not fit is taken back whole, unless a process without the lock has written behind it; then it
/// stays, torn, and the next writer closes it.
fn give_back(file: &File, before: u64, written: u64, error: io::Error) -> io::Error {
    if written > 0
        && file
            .metadata()
            .is_ok_and(|now| now.len() == before + written)
    {
        let _ = file.set_len(before);
    }
    error
}

/// The log with its lock held; opened again if it was removed while we waited.
fn locked(path: &Path, patience: Duration) -> Result<File, FileError> {
    let (until, mut pause) = (Instant::now() + patience, Duration::from_micros(20));
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
                Err(TryLockError::Error(error)) => return Err(refused(path, error)),
            }
            pause = (pause * 2).min(Duration::from_millis(2));
        }
        if file
            .metadata()
            .map_err(|error| refused(path, error))?
            .nlink()
            > 0
        {
            return Ok(file);
        }
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Not blocking: a pipe in the log's place must not hold us. std adds close-on-exec.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

fn checked(file: File, path: &Path) -> Result<File, FileError> {
    let meta = file.metadata().map_err(|error| refused(path, error))?;
    if !meta.is_file() {
        Err(FileError::NotAFile(path.to_owned()))
    } else if meta.uid() != rustix::process::geteuid().as_raw() {
        Err(FileError::NotOurs(path.to_owned()))
    } else {
        Ok(file)
    }
}

fn refused(path: &Path, source: io::Error) -> FileError {
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
    fn a_torn_tail_is_closed_and_the_next_line_is_whole() {
        let (_dir, path) = log();
        std::fs::write(&path, "{\"a\":1}\n{\"torn\":\"ha").expect("write");
        assert_eq!(append(&path, b"b\n").expect("appended").tail, Tail::Torn);
        assert_eq!(append(&path, b"c\n").expect("appended").tail, Tail::Whole);
        let text = std::fs::read_to_string(&path).expect("read");
        assert_eq!(text, "{\"a\":1}\n{\"torn\":\"ha\nb\nc\n");
    }

    #[test]
    fn what_is_not_a_file_of_ours_is_refused_and_left_alone() {
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
    fn a_file_that_others_could_read_is_made_private() {
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
    fn a_lock_that_is_never_let_go_ends_in_words() {
        let (_dir, path) = log();
        let holder = locked(&path, PATIENCE).expect("free");
        let error = locked(&path, Duration::from_millis(20))
            .expect_err("held")
            .to_string();
        assert!(error.contains("locked by another process"), "{error}");
        drop(holder);
        locked(&path, PATIENCE).expect("free again");
    }

    #[test]
    fn a_log_removed_while_we_waited_for_it_is_made_anew() {
        let (_dir, path) = log();
        let holder = locked(&path, PATIENCE).expect("free");
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
