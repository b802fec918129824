//! Different names of one project. A full clone knows its first commit and its remote, a shallow
//! clone only the remote, and a clone of a local clone only the commit. A caller that knows both
//! records the link, so that all of them find the same notes.

use super::identity::ProjectIdentity;
use super::notes::{NoteError, NoteFolder};

/// Stored beside the notes, so that it moves with them.
const FILE: &str = ".projects";
/// Enough for far more projects than one person has.
const MAX_BYTES: u64 = 1 << 20;

/// All known names of this project, its own first. A new link between two names is recorded.
pub fn known_names(
    notes: &NoteFolder,
    project: &ProjectIdentity,
) -> Result<Vec<ProjectIdentity>, NoteError> {
    let text = notes.read_hidden(FILE, MAX_BYTES)?.unwrap_or_default();
    let links: Vec<ProjectIdentity> = text.lines().map(ProjectIdentity::parse).collect();
    if project.root_commit.is_some() && project.remote.is_some() && !links.contains(project) {
        // Two servers may both write it; a duplicate line is harmless.
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
    fn linked_names_share_notes() {
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
        let finds = |one: &ProjectIdentity, other: &ProjectIdentity| {
            known_names(&notes, one)
                .expect("read")
                .iter()
                .any(|name| name.is_same(other))
        };
        assert!(!finds(&shallow, &local));
        assert!(finds(&full, &local));
        assert!(finds(&shallow, &local) && finds(&local, &shallow));
        assert!(!finds(
            &at(Some("c2"), false, Some("https://h/o/other")),
            &local
        ));
        assert_eq!(notes.list().expect("listed").len(), 0, "it is no note");
    }
}
