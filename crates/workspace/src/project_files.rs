//! Lists the files of a project that another machine needs to run its tests: what a snapshot would protect, without the
//! repository and without build output.

use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::SnapshotLimits;
use super::layout::Layout;
use super::root::{Meta, Node};
use super::snapshot::tracked;

/// One path of a project, relative to its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    pub path: PathBuf,
    pub kind: ProjectFileKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectFileKind {
    Directory,
    File {
        size: u64,
        is_executable: bool,
        /// Changes whenever the contents may have changed.
        stamp: FileStamp,
    },
    Link {
        target: PathBuf,
    },
}

/// Times and number of a file, in nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct FileStamp {
    pub size: u64,
    pub mtime: i64,
    pub ctime: i64,
    pub ino: u64,
}

/// Lists the files below `root`, sorted by path. Sockets, devices and pipes are left out.
pub fn project_files(root: &Path, limits: &SnapshotLimits) -> io::Result<Vec<ProjectFile>> {
    let layout = Layout::open(root)?;
    let tracked = tracked(&layout).unwrap_or_default();
    let walked = layout.walk_now(limits, &tracked);
    if let Some((dir, error)) = walked.unreadable.into_iter().next() {
        let dir = layout.tree.full(&dir);
        let why = format!("`{}` cannot be read: {error}", dir.display());
        return Err(io::Error::other(why));
    }
    let mut files = Vec::with_capacity(walked.found.len());
    for found in walked.found {
        let kind = match found.meta.node {
            _ if found.path.is_empty() => continue,
            Node::Dir => ProjectFileKind::Directory,
            Node::File => file_kind(&found.meta),
            Node::Link => {
                let target = layout.tree.link_target(&found.path)?;
                ProjectFileKind::Link {
                    target: PathBuf::from(std::ffi::OsString::from_vec(target)),
                }
            }
            Node::Fifo | Node::Special => continue,
        };
        let path = PathBuf::from(std::ffi::OsString::from_vec(found.path));
        files.push(ProjectFile { path, kind });
    }
    Ok(files)
}

fn file_kind(meta: &Meta) -> ProjectFileKind {
    ProjectFileKind::File {
        size: meta.size,
        is_executable: meta.mode & 0o100 != 0,
        stamp: FileStamp {
            size: meta.size,
            mtime: meta.mtime,
            ctime: meta.ctime,
            ino: meta.ino,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn build_output_and_repository_are_left_out() {
        let dir = tempfile::tempdir().expect("made");
        for (path, text) in [
            ("src/lib.rs", "x"),
            (".env", "A=1"),
            ("target/CACHEDIR.TAG", ""),
            ("target/debug/big", "x"),
            ("__pycache__/a.pyc", "x"),
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("has one")).expect("made");
            fs::write(path, text).expect("written");
        }
        std::os::unix::fs::symlink("src", dir.path().join("link")).expect("linked");
        let files = project_files(dir.path(), &SnapshotLimits::default()).expect("listed");
        let names: Vec<_> = files
            .iter()
            .map(|file| file.path.display().to_string())
            .collect();
        assert_eq!(names, [".env", "link", "src", "src/lib.rs"]);
    }
}
