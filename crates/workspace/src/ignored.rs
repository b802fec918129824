//! What git ignores, and which directories are built rather than written.
//! Knows patterns and names. Does not touch the project.

use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::root::as_path;

/// A directory that a tool makes and can make again, by name and by what gives it away.
struct BuildDirectory {
    name: &'static str,
    /// Beside what git ignores, one of these makes sure that the name is not a coincidence.
    sign: Sign,
}

enum Sign {
    /// No directory of this name is written by hand.
    Name,
    /// A file beside it.
    Beside(&'static [&'static str]),
    /// A file in it.
    Inside(&'static str),
    /// The name alone says too little: only if git ignores it.
    Ignored,
}

/// Build and cache directories. They are large, written by every test run and made again when missing;
/// protecting them would cost more than it saves. Each is named in the result.
const BUILT: &[BuildDirectory] = &[
    BuildDirectory {
        name: "target",
        sign: Sign::Inside("CACHEDIR.TAG"),
    }, // cargo marks its own
    BuildDirectory {
        name: "target",
        sign: Sign::Beside(&["pom.xml"]),
    },
    BuildDirectory {
        name: "build",
        sign: Sign::Inside("CMakeCache.txt"),
    },
    BuildDirectory {
        name: "build",
        sign: Sign::Beside(&["build.gradle", "build.gradle.kts"]),
    },
    BuildDirectory {
        name: ".gradle",
        sign: Sign::Beside(&[
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
        ]),
    },
    BuildDirectory {
        name: "node_modules",
        sign: Sign::Name,
    },
    BuildDirectory {
        name: ".venv",
        sign: Sign::Inside("pyvenv.cfg"),
    },
    BuildDirectory {
        name: "venv",
        sign: Sign::Inside("pyvenv.cfg"),
    },
    BuildDirectory {
        name: "__pycache__",
        sign: Sign::Name,
    },
    BuildDirectory {
        name: ".pytest_cache",
        sign: Sign::Name,
    },
    BuildDirectory {
        name: ".mypy_cache",
        sign: Sign::Name,
    },
    BuildDirectory {
        name: ".ruff_cache",
        sign: Sign::Name,
    },
    BuildDirectory {
        name: ".tox",
        sign: Sign::Name,
    },
    BuildDirectory {
        name: ".nox",
        sign: Sign::Name,
    },
    BuildDirectory {
        name: "_build",
        sign: Sign::Beside(&["mix.exs"]),
    },
    BuildDirectory {
        name: "deps",
        sign: Sign::Beside(&["mix.exs"]),
    },
    BuildDirectory {
        name: ".elixir_ls",
        sign: Sign::Name,
    },
    BuildDirectory {
        name: ".bundle",
        sign: Sign::Ignored,
    },
    BuildDirectory {
        name: "vendor",
        sign: Sign::Ignored,
    },
    BuildDirectory {
        name: "dist",
        sign: Sign::Ignored,
    },
    BuildDirectory {
        name: "build",
        sign: Sign::Ignored,
    },
    BuildDirectory {
        name: "out",
        sign: Sign::Ignored,
    },
    BuildDirectory {
        name: "coverage",
        sign: Sign::Ignored,
    },
    BuildDirectory {
        name: ".cache",
        sign: Sign::Ignored,
    },
    BuildDirectory {
        name: ".next",
        sign: Sign::Ignored,
    },
    BuildDirectory {
        name: ".nuxt",
        sign: Sign::Ignored,
    },
    BuildDirectory {
        name: ".turbo",
        sign: Sign::Ignored,
    },
    BuildDirectory {
        name: ".parcel-cache",
        sign: Sign::Ignored,
    },
    BuildDirectory {
        name: ".eggs",
        sign: Sign::Ignored,
    },
];

/// True for a build or cache directory. `beside` and `inside` tell whether a file is there.
pub(super) fn is_built(
    name: &[u8],
    ignored: bool,
    beside: impl Fn(&str) -> bool,
    inside: impl Fn(&str) -> bool,
) -> bool {
    BUILT.iter().filter(|b| b.name.as_bytes() == name).any(|b| {
        ignored
            || match b.sign {
                Sign::Name => true,
                Sign::Beside(names) => names.iter().any(|n| beside(n)),
                Sign::Inside(file) => inside(file),
                Sign::Ignored => false,
            }
    })
}

/// The ignore rules in force in one directory: its own, then those above it.
#[derive(Debug)]
pub(super) struct Rules {
    own: Gitignore,
    /// How much of a path lies above the directory of these rules.
    cut: PrefixChange,
    above: Option<Arc<Rules>>,
}

#[derive(Debug)]
enum PrefixChange {
    /// The rules lie in the root or below: this many bytes of the path come before.
    Drop(usize),
    /// The rules lie above the root: these bytes come in front.
    Add(Vec<u8>),
}

impl Rules {
    /// Rules for the whole tree, weakest first: the user's own excludes, then the repository's.
    pub(super) fn base(info_exclude: &[u8]) -> Arc<Self> {
        let (global, _) = GitignoreBuilder::new("").build_global();
        let user = Arc::new(Self {
            own: global,
            cut: PrefixChange::Drop(0),
            above: None,
        });
        Arc::new(Self {
            own: matcher(info_exclude),
            cut: PrefixChange::Drop(0),
            above: Some(user),
        })
    }

    /// The rules of a directory above the root; `prefix` leads from there to the root.
    pub(super) fn from_above(above: Arc<Self>, text: &[u8], prefix: Vec<u8>) -> Arc<Self> {
        Arc::new(Self {
            own: matcher(text),
            cut: PrefixChange::Add(prefix),
            above: Some(above),
        })
    }

    /// The rules of a directory in the tree.
    pub(super) fn below(above: Arc<Self>, text: &[u8], dir: &[u8]) -> Arc<Self> {
        let cut = if dir.is_empty() { 0 } else { dir.len() + 1 };
        Arc::new(Self {
            own: matcher(text),
            cut: PrefixChange::Drop(cut),
            above: Some(above),
        })
    }

    /// What is said about this very path; what is said about the directories above it is for the caller to know.
    pub(super) fn ignores(&self, path: &[u8], is_dir: bool) -> bool {
        let mut rules = Some(self);
        while let Some(here) = rules {
            if !here.own.is_empty() {
                let said = match &here.cut {
                    PrefixChange::Drop(n) => here
                        .own
                        .matched(as_path(path.get(*n..).unwrap_or_default()), is_dir),
                    PrefixChange::Add(prefix) => here
                        .own
                        .matched(as_path(&[prefix.as_slice(), path].concat()), is_dir),
                };
                if !said.is_none() {
                    return said.is_ignore();
                }
            }
            rules = here.above.as_deref();
        }
        false
    }
}

/// Patterns in git's own notation, as the setting `exclude` takes them.
pub(super) fn patterns(lines: &[String]) -> Gitignore {
    matcher(lines.join("\n").as_bytes())
}

fn matcher(text: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(Path::new(""));
    for line in String::from_utf8_lossy(text).lines() {
        // git passes over a pattern it cannot read; so do we.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearer_rules_win_and_rules_from_above_reach_down() {
        let base = Rules::base(b"*.log\n");
        let top = Rules::from_above(base, b"/pkg/gen/\n", b"pkg/".to_vec());
        let root = Rules::below(top, b"*.tmp\n", b"");
        let sub = Rules::below(root.clone(), b"!keep.tmp\n", b"a/b");
        assert!(
            root.ignores(b"x.log", false)
                && root.ignores(b"gen", true)
                && !root.ignores(b"a/gen", true)
        );
        assert!(sub.ignores(b"a/b/x.tmp", false) && !sub.ignores(b"a/b/keep.tmp", false));
        assert!(root.ignores(b"a/b/keep.tmp", false));
    }

    #[test]
    fn a_source_directory_that_only_shares_the_name_is_not_taken_for_a_build() {
        let no = |_: &str| false;
        assert!(!is_built(b"target", false, no, no) && is_built(b"target", true, no, no));
        assert!(is_built(b"target", false, no, |f| f == "CACHEDIR.TAG"));
        assert!(
            !is_built(b"deps", false, no, no) && is_built(b"deps", false, |f| f == "mix.exs", no)
        );
        assert!(!is_built(b"src", true, no, no));
    }
}
