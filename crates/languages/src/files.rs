//! File name patterns of a language, and the interface through which it looks up files of a project.

use std::path::Path;

/// Lower-case patterns for file names. A pattern may contain one `*`, which matches any text.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamePatterns {
    /// Match every file below a directory with this name.
    pub dirs: &'static [&'static str],
    /// Match the name without its extension.
    pub stems: &'static [&'static str],
    /// Match the whole name.
    pub names: &'static [&'static str],
}

impl NamePatterns {
    pub const NONE: Self = Self {
        dirs: &[],
        stems: &[],
        names: &[],
    };

    /// Whether the file matches. `name` and `dirs` must be lower case.
    pub fn matches(&self, name: &str, dirs: &[&str]) -> bool {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        dirs.iter().any(|dir| self.dirs.contains(dir))
            || self
                .stems
                .iter()
                .any(|pattern| matches_pattern(pattern, stem))
            || self
                .names
                .iter()
                .any(|pattern| matches_pattern(pattern, name))
    }
}

fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

/// Modules that a runner loads by name, some of them lazily. A project file that is found first would be loaded instead.
/// All names are lower case.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunnerModules {
    /// Directories that are searched for modules; `""` is the root, `**/` any directory.
    pub search_dirs: &'static [&'static str],
    /// Paths below a search directory, without extension.
    pub names: &'static [&'static str],
    /// Extensions of files that can be loaded.
    pub extensions: &'static [&'static str],
}

impl RunnerModules {
    pub const NONE: Self = Self {
        search_dirs: &[],
        names: &[],
        extensions: &[],
    };

    /// Whether this file would be loaded instead of a module of the runner. `path` must be lower case.
    pub fn are_shadowed_by(&self, path: &str) -> bool {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        let is_module = |rest: &str| {
            self.names.iter().any(|name| {
                rest.strip_prefix(name)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
            })
        };
        self.extensions.contains(&extension)
            && self
                .search_dirs
                .iter()
                .any(|dir| paths_below(path, dir).any(is_module))
    }
}

/// The rest of a path below a search directory, for every position at which that directory matches.
fn paths_below<'p>(path: &'p str, dir: &str) -> impl Iterator<Item = &'p str> {
    let (is_anywhere, dir) = dir
        .strip_prefix("**/")
        .map_or((false, dir), |dir| (true, dir));
    let starts = path
        .match_indices('/')
        .map(|(at, _)| at + 1)
        .filter(move |_| is_anywhere);
    let prefix = if dir.is_empty() {
        String::new()
    } else {
        format!("{dir}/")
    };
    std::iter::once(0)
        .chain(starts)
        .filter_map(move |at| path[at..].strip_prefix(prefix.as_str()))
}

/// A directory with compiled project code. Tools reuse it based on file times alone.
#[derive(Debug, Clone, Copy)]
pub struct CompiledDir {
    pub name: &'static str,
    /// The manifest next to it.
    pub manifest: &'static str,
    /// Paths in it that were compiled from the project itself; `*` matches one name.
    pub own_outputs: &'static [&'static str],
    /// Names that must be kept because they cannot be rebuilt.
    pub keep: &'static [&'static str],
    /// The directory next to it with the sources of dependencies; entries with their names are kept too.
    pub dependency_dir: Option<&'static str>,
}

/// A test file, to be matched with test names of a runner.
#[derive(Debug, Clone, Copy)]
pub struct TestSourceFile<'a> {
    /// Relative to the directory in which the tests run.
    pub path: &'a Path,
    pub source: &'a str,
}

impl TestSourceFile<'_> {
    /// Whether the test name starts with this file's path and the separator.
    pub(super) fn is_named_by_path(&self, name: &str, separator: &str) -> bool {
        name.strip_prefix(&*self.path.to_string_lossy())
            .is_some_and(|rest| rest.starts_with(separator))
    }
}

/// The source files of a project, identified by index. Paths are relative to its root and use `/`.
pub trait ProjectFiles {
    /// The number of files.
    fn count(&self) -> usize;
    fn path(&self, file: usize) -> &str;
    /// The file at this path.
    fn at(&self, path: &str) -> Option<usize>;
    /// Files whose path ends with these components.
    fn ending(&self, suffix: &str) -> Vec<usize>;
    /// Files directly in a directory; `""` is the root.
    fn inside(&self, dir: &str) -> Vec<usize>;
    /// Files that define this name.
    fn defining(&self, name: &str) -> Vec<usize>;
    /// The directories whose package name is `module` or a prefix of it, each with the rest of `module`.
    fn packages(&self, module: &str, separator: char) -> Vec<(&str, String)>;
}

pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// `dir/part`, with `.` and `..` resolved by name. `None` above the root.
pub fn join(dir: &str, part: &str) -> Option<String> {
    let mut parts: Vec<&str> = dir.split('/').filter(|p| !p.is_empty()).collect();
    for piece in part.split('/') {
        match piece {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            piece => parts.push(piece),
        }
    }
    Some(parts.join("/"))
}

/// Converts to snake case: `LineItem` becomes `line_item`.
pub fn to_snake_case(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 && !out.ends_with('_') {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_any_text() {
        let patterns = NamePatterns {
            dirs: &["tests"],
            stems: &["*-spec"],
            names: &["test_*.py", "conftest.py"],
        };
        for (name, dirs, expected) in [
            ("test_a.py", vec![], true),
            ("test_.py", vec![], true),
            ("test_a.pyi", vec![], false),
            ("a-spec.ts", vec![], true),
            ("conftest.py", vec!["a"], true),
            ("contest.py", vec!["a"], false),
            ("a.py", vec!["x", "tests"], true),
        ] {
            assert_eq!(patterns.matches(name, &dirs), expected, "{name}");
        }
        assert_eq!(join("a/b", "../c/./d").as_deref(), Some("a/c/d"));
        assert_eq!(join("a", "../../b"), None);
    }
}
