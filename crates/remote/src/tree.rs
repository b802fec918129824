//! The input tree of an Action: directories as messages, files as digests.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use prost::Message as _;
use reapi::{Digest, Directory, DirectoryNode, FileNode, SymlinkNode};
use supervisor_workspace::{ProjectFile, ProjectFileKind};

use crate::digest::DigestFunction;
use crate::hashes::FileHashes;
use crate::storage::{Blob, Blobs};

/// A directory that is being collected. The maps keep names sorted, as the API demands.
#[derive(Debug, Default)]
struct Node {
    files: BTreeMap<String, FileNode>,
    links: BTreeMap<String, SymlinkNode>,
    dirs: BTreeMap<String, Node>,
}

/// Collects an input tree and the blobs it consists of.
#[derive(Debug)]
pub(crate) struct TreeBuilder {
    function: DigestFunction,
    root: Node,
    pub(crate) blobs: Blobs,
    /// Links to absolute paths, which engines may refuse. The runner makes them.
    pub(crate) absolute_links: Vec<(PathBuf, PathBuf)>,
}

impl TreeBuilder {
    pub(crate) fn new(function: DigestFunction) -> Self {
        Self {
            function,
            root: Node::default(),
            blobs: Blobs::default(),
            absolute_links: Vec::new(),
        }
    }

    /// Adds the files of a project that is at `root` now, below `prefix`.
    pub(crate) fn add_project(
        &mut self,
        prefix: &str,
        root: &Path,
        files: &[ProjectFile],
        hashes: &FileHashes,
    ) -> io::Result<()> {
        self.node(Path::new(prefix))?;
        for file in files {
            let path = Path::new(prefix).join(&file.path);
            match &file.kind {
                ProjectFileKind::Directory => {
                    self.node(&path)?;
                }
                ProjectFileKind::File {
                    is_executable,
                    stamp,
                    ..
                } => {
                    let digest = hashes.digest(self.function, root, &file.path, *stamp)?;
                    let blob = Blob::File(root.join(&file.path));
                    self.add_file(&path, digest, blob, *is_executable)?;
                }
                ProjectFileKind::Link { target } if target.is_absolute() => {
                    let link = (file.path.clone(), target.clone());
                    self.absolute_links.push(link);
                }
                ProjectFileKind::Link { target } => self.add_link(&path, target)?,
            }
        }
        Ok(())
    }

    pub(crate) fn add_bytes(&mut self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        let digest = self.function.of_bytes(&bytes);
        self.add_file(path, digest, Blob::Bytes(bytes), false)
    }

    fn add_file(
        &mut self,
        path: &Path,
        digest: Digest,
        blob: Blob,
        is_executable: bool,
    ) -> io::Result<()> {
        let (name, parent) = (utf8_name(path)?, path.parent().unwrap_or(Path::new("")));
        self.blobs.add(digest.clone(), blob);
        let file = FileNode {
            name: name.clone(),
            digest: Some(digest),
            is_executable,
            node_properties: None,
        };
        self.node(parent)?.files.insert(name, file);
        Ok(())
    }

    fn add_link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        let (name, parent) = (utf8_name(path)?, path.parent().unwrap_or(Path::new("")));
        let link = SymlinkNode {
            name: name.clone(),
            target: utf8(target)?.to_owned(),
            node_properties: None,
        };
        self.node(parent)?.links.insert(name, link);
        Ok(())
    }

    fn node(&mut self, path: &Path) -> io::Result<&mut Node> {
        let mut node = &mut self.root;
        for component in path.components() {
            let Component::Normal(name) = component else {
                return Err(io::Error::other("a path leads out of the tree"));
            };
            let name = utf8(Path::new(name))?.to_owned();
            node = node.dirs.entry(name).or_default();
        }
        Ok(node)
    }

    /// Returns the digest of the tree. All its blobs are in [`Self::blobs`] then.
    pub(crate) fn finish(&mut self) -> Digest {
        let root = std::mem::take(&mut self.root);
        finish_node(root, self.function, &mut self.blobs)
    }
}

fn finish_node(node: Node, function: DigestFunction, blobs: &mut Blobs) -> Digest {
    let directories = node.dirs.into_iter().map(|(name, node)| DirectoryNode {
        name,
        digest: Some(finish_node(node, function, blobs)),
    });
    let directory = Directory {
        directories: directories.collect(),
        files: node.files.into_values().collect(),
        symlinks: node.links.into_values().collect(),
        node_properties: None,
    };
    let bytes = directory.encode_to_vec();
    let digest = function.of_bytes(&bytes);
    blobs.add(digest.clone(), Blob::Bytes(bytes));
    digest
}

fn utf8_name(path: &Path) -> io::Result<String> {
    utf8(Path::new(path.file_name().unwrap_or_default())).map(str::to_owned)
}

fn utf8(path: &Path) -> io::Result<&str> {
    path.to_str()
        .ok_or_else(|| io::Error::other(format!("the name `{}` is not UTF-8", path.display())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn tree_digest_depends_on_contents_alone() {
        let digest = |order: &[(&str, &str)]| {
            let mut tree = TreeBuilder::new(DigestFunction::Sha256);
            for (path, text) in order {
                tree.add_bytes(Path::new(path), text.as_bytes().to_vec())
                    .expect("added");
            }
            tree.finish()
        };
        let one = digest(&[("b/c", "1"), ("a", "2")]);
        assert_eq!(one, digest(&[("a", "2"), ("b/c", "1")]));
        assert_ne!(one, digest(&[("a", "2"), ("b/c", "3")]));
    }

    #[test]
    fn name_that_is_not_utf8_is_refused() {
        let mut tree = TreeBuilder::new(DigestFunction::Sha256);
        let name = Path::new(std::ffi::OsStr::from_bytes(b"a\xff"));
        let error = tree.add_bytes(name, Vec::new()).expect_err("refused");
        assert!(error.to_string().contains("is not UTF-8"), "{error}");
    }
}
