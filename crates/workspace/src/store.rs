//! The files stored for one root: its pack and its newest manifest.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::fault_points::{FaultPoint, point};
use super::manifest::Manifest;
use super::pack::{Pack, PackBase};
use super::shared_packs::TreeSketch;

/// A directory in the state directory, private to the user.
#[derive(Debug, Clone)]
pub(super) struct Store {
    dir: PathBuf,
}

/// A manifest with the pack that holds its contents.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub manifest: Manifest,
    pub pack: Pack,
    /// The manifest's file name in the store.
    pub name: String,
}

impl Store {
    pub(super) fn at(dir: PathBuf) -> io::Result<Self> {
        make_private(&dir)?;
        Ok(Self { dir })
    }

    pub(super) fn path(&self) -> &Path {
        &self.dir
    }

    /// Returns the newest readable snapshot.
    pub(super) fn newest(&self) -> Option<Snapshot> {
        let mut manifest_numbers = self.manifest_numbers();
        manifest_numbers.sort_unstable();
        manifest_numbers
            .into_iter()
            .rev()
            .find_map(|n| self.load(&manifest_name(n)).ok())
    }

    pub(super) fn load(&self, name: &str) -> io::Result<Snapshot> {
        let manifest = Manifest::load(&self.dir.join(name))?;
        let existing = |pack: &str| match self.dir.join(pack) {
            path if path.exists() => Ok(path),
            path => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("`{}` is missing", path.display()),
            )),
        };
        existing(&manifest.pack)?;
        let base = match &manifest.base {
            Some(base) => Some(PackBase::open(existing(&base.name)?, base.length)?),
            None => None,
        };
        let pack = Pack::open(&self.dir, &manifest.pack, base)?;
        Ok(Snapshot {
            manifest,
            pack,
            name: name.to_owned(),
        })
    }

    /// Loads the newest manifest of a store, which may belong to another project.
    pub(super) fn newest_manifest(dir: &Path) -> Option<Manifest> {
        let mut manifest_numbers = Self {
            dir: dir.to_owned(),
        }
        .manifest_numbers();
        manifest_numbers.sort_unstable();
        manifest_numbers
            .into_iter()
            .rev()
            .find_map(|n| Manifest::load(&dir.join(manifest_name(n))).ok())
    }

    /// Creates a pack, optionally based on the beginning of another one. Its name contains the
    /// sketch of the tree.
    pub(super) fn new_pack(
        &self,
        sketch: Option<TreeSketch>,
        base: Option<PackBase>,
    ) -> io::Result<(String, Pack)> {
        let mut name = format!("pack.{}", super::random_name());
        if let Some(sketch) = sketch {
            name = format!("{name}.{sketch}");
        }
        let pack = Pack::open(&self.dir, &name, base)?;
        Ok((name, pack))
    }

    /// Writes a manifest atomically and syncs it.
    pub(super) fn write(&self, manifest: &Manifest) -> io::Result<String> {
        let name = manifest_name(
            self.manifest_numbers()
                .into_iter()
                .max()
                .map_or(1, |n| n + 1),
        );
        write_synced(&self.dir, &name, &manifest.encode())?;
        point(FaultPoint::ManifestWritten);
        Ok(name)
    }

    /// Removes everything but this snapshot. Must only be called while no other snapshot is open.
    pub(super) fn keep_only(&self, snapshot: &Snapshot) -> io::Result<()> {
        let Snapshot { manifest, name, .. } = snapshot;
        let kept = [
            Some(name),
            Some(&manifest.pack),
            manifest.base.as_ref().map(|base| &base.name),
        ];
        for entry in std::fs::read_dir(&self.dir)? {
            let entry = entry?;
            if !kept
                .iter()
                .flatten()
                .any(|kept| entry.file_name() == kept.as_str())
            {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn manifest_numbers(&self) -> Vec<u64> {
        let Ok(entries) = std::fs::read_dir(&self.dir) else {
            return Vec::new();
        };
        let names = entries
            .flatten()
            .filter_map(|e| e.file_name().into_string().ok());
        names
            .filter_map(|n| n.strip_prefix("manifest.")?.parse().ok())
            .collect()
    }
}

/// Replaces a file atomically: a reader sees the old bytes or the new ones, even after a power cut.
pub(super) fn write_synced(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = dir.join(format!("{name}.new"));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    std::fs::rename(&temporary, dir.join(name))?;
    sync_dir(dir)
}

pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

fn manifest_name(number: u64) -> String {
    format!("manifest.{number}")
}
