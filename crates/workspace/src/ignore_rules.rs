//! Git's ignore rules, and the table of build directories. Does not access the project.

use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::root::as_path;

/// A directory that a tool creates and can recreate.
struct BuildDirectory {
    name: &'static str,
    /// Evidence that the name is not a coincidence, if git does not ignore it.
    evidence: BuildDirEvidence,
}

enum BuildDirEvidence {
    /// The name is enough.
    Name,
    /// One of these files is beside it.
    Beside(&'static [&'static str]),
    /// This file is inside it.
    Inside(&'static str),
    /// The name is ambiguous: only if git ignores it.
    Ignored,
}

/// Build and cache directories. They are large, written by every test run and recreated when
/// missing, so protecting them would cost more than it saves. Each one found is listed in the
/// result.
const BUILD_DIRS: &[BuildDirectory] = &[
    BuildDirectory {
        name: "target",
        evidence: BuildDirEvidence::Inside("CACHEDIR.TAG"),
    }, // written by cargo
    BuildDirectory {
        name: "target",
        evidence: BuildDirEvidence::Beside(&["pom.xml"]),
    },
    BuildDirectory {
        name: "build",
        evidence: BuildDirEvidence::Inside("CMakeCache.txt"),
    },
    BuildDirectory {
        name: "build",
        evidence: BuildDirEvidence::Beside(&["build.gradle", "build.gradle.kts"]),
    },
    BuildDirectory {
        name: ".gradle",
        evidence: BuildDirEvidence::Beside(&[
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
        ]),
    },
    BuildDirectory {
        name: "node_modules",
        evidence: BuildDirEvidence::Name,
    },
    BuildDirectory {
        name: ".venv",
        evidence: BuildDirEvidence::Inside("pyvenv.cfg"),
    },
    BuildDirectory {
        name: "venv",
        evidence: BuildDirEvidence::Inside("pyvenv.cfg"),
    },
    BuildDirectory {
        name: "__pycache__",
        evidence: BuildDirEvidence::Name,
    },
    BuildDirectory {
        name: ".pytest_cache",
        evidence: BuildDirEvidence::Name,
    },
    BuildDirectory {
        name: ".mypy_cache",
        evidence: BuildDirEvidence::Name,
    },
    BuildDirectory {
        name: ".ruff_cache",
        evidence: BuildDirEvidence::Name,
    },
    BuildDirectory {
        name: ".tox",
        evidence: BuildDirEvidence::Name,
    },
    BuildDirectory {
        name: ".nox",
        evidence: BuildDirEvidence::Name,
    },
    BuildDirectory {
        name: "_build",
        evidence: BuildDirEvidence::Beside(&["mix.exs"]),
    },
    BuildDirectory {
        name: "deps",
        evidence: BuildDirEvidence::Beside(&["mix.exs"]),
    },
    BuildDirectory {
        name: ".elixir_ls",
        evidence: BuildDirEvidence::Name,
    },
    BuildDirectory {
        name: ".bundle",
        evidence: BuildDirEvidence::Ignored,
    },
    BuildDirectory {
        name: "vendor",
        evidence: BuildDirEvidence::Ignored,
    },
    BuildDirectory {
        name: "dist",
        evidence: BuildDirEvidence::Ignored,
    },
    BuildDirectory {
        name: "build",
        evidence: BuildDirEvidence::Ignored,
    },
    BuildDirectory {
        name: "out",
        evidence: BuildDirEvidence::Ignored,
    },
    BuildDirectory {
        name: "coverage",
        evidence: BuildDirEvidence::Ignored,
    },
    BuildDirectory {
        name: ".cache",
        evidence: BuildDirEvidence::Ignored,
    },
    BuildDirectory {
        name: ".next",
        evidence: BuildDirEvidence::Ignored,
    },
    BuildDirectory {
        name: ".nuxt",
        evidence: BuildDirEvidence::Ignored,
    },
    BuildDirectory {
        name: ".turbo",
        evidence: BuildDirEvidence::Ignored,
    },
    BuildDirectory {
        name: ".parcel-cache",
        evidence: BuildDirEvidence::Ignored,
    },
    BuildDirectory {
        name: ".eggs",
        evidence: BuildDirEvidence::Ignored,
    },
];

/// Returns true for a build or cache directory. `beside` and `inside` check whether a file exists
/// there.
pub(super) fn is_built(
    name: &[u8],
    ignored: bool,
    beside: impl Fn(&str) -> bool,
    inside: impl Fn(&str) -> bool,
) -> bool {
    BUILD_DIRS
        .iter()
        .filter(|b| b.name.as_bytes() == name)
        .any(|b| {
            ignored
                || match b.evidence {
                    BuildDirEvidence::Name => true,
                    BuildDirEvidence::Beside(names) => names.iter().any(|n| beside(n)),
                    BuildDirEvidence::Inside(file) => inside(file),
                    BuildDirEvidence::Ignored => false,
                }
        })
}

/// The ignore rules of one directory: its own, then those of its parents.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    own: Gitignore,
    /// How to convert a path to the directory of these rules.
    prefix_change: PrefixChange,
    parent: Option<Arc<IgnoreRules>>,
}

#[derive(Debug)]
enum PrefixChange {
    /// The rules are in the root or below it: drop this many bytes of the path.
    Drop(usize),
    /// The rules are above the root: prepend these bytes.
    Add(Vec<u8>),
}

impl IgnoreRules {
    /// Rules for the whole tree, weakest first: the user's excludes, then the repository's.
    pub(super) fn base(info_exclude: &[u8]) -> Arc<Self> {
        let (global, _) = GitignoreBuilder::new("").build_global();
        let user = Arc::new(Self {
            own: global,
            prefix_change: PrefixChange::Drop(0),
            parent: None,
        });
        Arc::new(Self {
            own: matcher(info_exclude),
            prefix_change: PrefixChange::Drop(0),
            parent: Some(user),
        })
    }

    /// Rules of a directory above the root; `prefix` is the path from there to the root.
    pub(super) fn above_root(parent: Arc<Self>, text: &[u8], prefix: Vec<u8>) -> Arc<Self> {
        Arc::new(Self {
            own: matcher(text),
            prefix_change: PrefixChange::Add(prefix),
            parent: Some(parent),
        })
    }

    /// Rules of a directory in the tree.
    pub(super) fn in_dir(parent: Arc<Self>, text: &[u8], dir: &[u8]) -> Arc<Self> {
        let dropped = if dir.is_empty() { 0 } else { dir.len() + 1 };
        Arc::new(Self {
            own: matcher(text),
            prefix_change: PrefixChange::Drop(dropped),
            parent: Some(parent),
        })
    }

    /// Returns true if this path itself is ignored. The caller keeps track of ignored parent
    /// directories.
    pub(super) fn ignores(&self, path: &[u8], is_dir: bool) -> bool {
        let mut rules = Some(self);
        while let Some(here) = rules {
            if !here.own.is_empty() {
                let matched = match &here.prefix_change {
                    PrefixChange::Drop(n) => here
                        .own
                        .matched(as_path(path.get(*n..).unwrap_or_default()), is_dir),
                    PrefixChange::Add(prefix) => here
                        .own
                        .matched(as_path(&[prefix.as_slice(), path].concat()), is_dir),
                };
                if !matched.is_none() {
                    return matched.is_ignore();
                }
            }
            rules = here.parent.as_deref();
        }
        false
    }
}

/// Patterns in gitignore syntax, as in the setting `exclude`.
pub(super) fn patterns(lines: &[String]) -> Gitignore {
    matcher(lines.join("\n").as_bytes())
}

fn matcher(text: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(Path::new(""));
    for line in String::from_utf8_lossy(text).lines() {
        // Like git, skip invalid patterns.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearer_rules_override_parent_rules() {
        let base = IgnoreRules::base(b"*.log\n");
        let top = IgnoreRules::above_root(base, b"/pkg/gen/\n", b"pkg/".to_vec());
        let root = IgnoreRules::in_dir(top, b"*.tmp\n", b"");
        let sub = IgnoreRules::in_dir(root.clone(), b"!keep.tmp\n", b"a/b");
        assert!(
            root.ignores(b"x.log", false)
                && root.ignores(b"gen", true)
                && !root.ignores(b"a/gen", true)
        );
        assert!(sub.ignores(b"a/b/x.tmp", false) && !sub.ignores(b"a/b/keep.tmp", false));
        assert!(root.ignores(b"a/b/keep.tmp", false));
    }

    #[test]
    fn ambiguous_name_alone_is_not_a_build_directory() {
        let no = |_: &str| false;
        assert!(!is_built(b"target", false, no, no) && is_built(b"target", true, no, no));
        assert!(is_built(b"target", false, no, |f| f == "CACHEDIR.TAG"));
        assert!(
            !is_built(b"deps", false, no, no) && is_built(b"deps", false, |f| f == "mix.exs", no)
        );
        assert!(!is_built(b"src", true, no, no));
    }
}
