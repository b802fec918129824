//! Identifies a project. Clones of one repository are the same project, wherever they are and
//! whatever they are called; two repositories with the same name are not.

use std::fmt;
use std::path::Path;

/// Identifies a project by properties that survive moving and cloning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectIdentity {
    /// The first commit of the history; `None` in a shallow clone or outside of git.
    pub root_commit: Option<String>,
    /// The remote without scheme, user and `.git`; `None` if there is no remote, or only a local
    /// path.
    pub remote: Option<String>,
    /// Used only for a directory that is not a repository.
    pub path: Option<String>,
}

impl ProjectIdentity {
    /// Built from git's information. The canonical path is used only without it.
    pub fn new(
        root_commit: Option<&str>,
        is_shallow: bool,
        remote: Option<&str>,
        canonical: &Path,
    ) -> Self {
        let commit = root_commit
            .map(str::trim)
            .filter(|commit| !commit.is_empty() && !is_shallow);
        let remote = remote.and_then(normalise_remote);
        let path = (commit.is_none() && remote.is_none()).then(|| canonical.display().to_string());
        Self {
            root_commit: commit.map(str::to_owned),
            remote,
            path,
        }
    }

    /// True if both agree on everything that both know.
    pub fn is_same(&self, other: &Self) -> bool {
        match (
            &self.root_commit,
            &other.root_commit,
            &self.remote,
            &other.remote,
        ) {
            (Some(a), Some(b), Some(x), Some(y)) => a == b && x == y,
            (Some(a), Some(b), _, _) => a == b,
            (_, _, Some(x), Some(y)) => x == y,
            _ => self.path.is_some() && self.path == other.path,
        }
    }

    /// Parses the front matter form: `commit:… remote:…` or `path:…`.
    pub fn parse(text: &str) -> Self {
        if let Some(path) = text.trim().strip_prefix("path:") {
            return Self {
                path: Some(path.to_owned()),
                ..Self::default()
            };
        }
        let field = |name: &str| {
            text.split_whitespace()
                .find_map(|part| part.strip_prefix(name))
                .map(str::to_owned)
        };
        Self {
            root_commit: field("commit:"),
            remote: field("remote:"),
            path: None,
        }
    }
}

impl fmt::Display for ProjectIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commit = self
            .root_commit
            .as_ref()
            .map(|commit| format!("commit:{commit}"));
        let remote = self
            .remote
            .as_ref()
            .map(|remote| format!("remote:{remote}"));
        let path = self.path.as_ref().map(|path| format!("path:{path}"));
        let parts: Vec<String> = [commit, remote, path].into_iter().flatten().collect();
        f.write_str(&parts.join(" "))
    }
}

/// `git@github.com:Owner/Repo.git` and `https://user@github.com/owner/repo/` are `github.com/owner/repo`.
fn normalise_remote(remote: &str) -> Option<String> {
    let remote = remote.trim();
    let rest = match remote.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.to_owned(),
        // A local path names a location, not a project.
        None if remote.starts_with(['/', '.', '~']) || !remote.contains(':') => return None,
        None => remote.replacen(':', "/", 1),
    };
    let rest = rest
        .split_once('@')
        .filter(|(user, _)| !user.contains('/'))
        .map_or(rest.as_str(), |(_, host)| host);
    let (host, path) = rest.split_once('/')?;
    let host = host.split(':').next().unwrap_or(host);
    let path = path.trim_matches('/').trim_end_matches(".git");
    (!host.is_empty() && !path.is_empty())
        .then(|| format!("{host}/{path}").to_lowercase().replace(' ', "%20"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_spellings_are_normalised() {
        for spelling in [
            "git@github.com:Owner/Repo.git",
            "https://github.com/owner/repo",
            "https://token@github.com/Owner/Repo.git/",
            "ssh://git@github.com:22/owner/repo.git",
        ] {
            assert_eq!(
                normalise_remote(spelling).as_deref(),
                Some("github.com/owner/repo"),
                "{spelling}"
            );
        }
        for place in ["/srv/repo", "../repo", "file:///srv/repo", "repo"] {
            assert_eq!(normalise_remote(place), None, "{place}");
        }
    }

    #[test]
    fn clones_match_and_namesakes_do_not() {
        let at = |commit: Option<&str>, shallow, remote: Option<&str>| {
            ProjectIdentity::new(commit, shallow, remote, Path::new("/p/shop"))
        };
        let original = at(Some("c1"), false, None);
        let clone = at(Some("c1"), false, Some("/p/original"));
        let published = at(Some("c1"), false, Some("https://h/o/shop"));
        let shallow = at(Some("c9"), true, Some("git@h:o/shop.git"));
        assert!(
            original.is_same(&clone) && clone.is_same(&published) && published.is_same(&shallow)
        );
        assert!(
            !at(Some("c2"), false, None).is_same(&original),
            "another repository with the same folder name"
        );
        assert!(
            !at(Some("c1"), false, Some("https://h/other/shop")).is_same(&published),
            "a fork"
        );
        let plain = at(None, false, None);
        assert!(plain.is_same(&plain) && !plain.is_same(&original));
        for identity in [original, published, shallow, plain] {
            assert_eq!(ProjectIdentity::parse(&identity.to_string()), identity);
        }
    }
}
