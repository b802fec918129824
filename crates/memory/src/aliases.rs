//! Names that turned out to mean one project. A full clone knows its first commit and its remote; a shallow one knows
//! only the remote, and a clone of a clone only the commit. A caller that knows both writes it down, so that all of
//! them find the same notes.

use super::identity::ProjectIdentity;
use super::notes::{NoteError, NoteFolder};

/// Beside the notes, so that it travels with them.
const FILE: &str = ".projects";
/// Far more projects than one person has.
const LARGEST: u64 = 1 << 20;

/// This project under every name that is known for it, its own first. A new link between two names is written down.
pub fn known_names(
    notes: &NoteFolder,
    project: &ProjectIdentity,
) -> Result<Vec<ProjectIdentity>, NoteError> {
    let text = notes.read_hidden(FILE, LARGEST)?.unwrap_or_default();
    let links: Vec<ProjectIdentity> = text.lines().map(ProjectIdentity::parse).collect();
    if project.root_commit.is_some() && project.remote.is_some() && !links.contains(project) {
        // Two servers may both write it: the same line twice means the same.
        notes.append_hidden(FILE, &format!("{project}\n"))?;
    }
    let mut names = vec![project.clone()];
    names.extend(
        links
            .into_iter()
            .filter(|link| link != project && link.is_same(project)),
    );
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_shallow_clone_finds_what_a_clone_without_a_remote_wrote_once_somebody_knew_both() {
        let dir = tempfile::tempdir().expect("temp dir");
        let notes = NoteFolder::open(&dir.path().join("notes")).expect("opened");
        let at = |commit, shallow, remote| {
            ProjectIdentity::new(commit, shallow, remote, Path::new("/p"))
        };
        let (local, shallow) = (
            at(Some("c1"), false, None),
            at(Some("c9"), true, Some("https://h/o/r")),
        );
        let full = at(Some("c1"), false, Some("git@h:o/r.git"));
        let knows = |one: &ProjectIdentity, other: &ProjectIdentity| {
            known_names(&notes, one)
                .expect("read")
                .iter()
                .any(|name| name.is_same(other))
        };
        assert!(!knows(&shallow, &local));
        assert!(knows(&full, &local));
        assert!(knows(&shallow, &local) && knows(&local, &shallow));
        assert!(!knows(
            &at(Some("c2"), false, Some("https://h/o/other")),
            &local
        ));
        assert_eq!(notes.list().expect("listed").len(), 0, "it is no note");
    }
}
