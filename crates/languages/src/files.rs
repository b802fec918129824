//! What a language knows about files by their names, and what it may ask about the files of a project.

use std::path::Path;

/// Names of files, in small letters. In a pattern `*` stands for any text, once.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamePatterns {
    /// Every file below a directory of this name.
    pub dirs: &'static [&'static str],
    /// The name without its ending.
    pub stems: &'static [&'static str],
    /// The whole name.
    pub names: &'static [&'static str],
}

impl NamePatterns {
    pub const NONE: Self = Self {
        dirs: &[],
        stems: &[],
        names: &[],
    };

    /// Does the file belong to these? All in small letters.
    pub fn fit(&self, name: &str, dirs: &[&str]) -> bool {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        dirs.iter().any(|dir| self.dirs.contains(dir))
            || self.stems.iter().any(|pattern| fits(pattern, stem))
            || self.names.iter().any(|pattern| fits(pattern, name))
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

/// What a runner loads by name, some of it only when it is needed. A file of the project that is found first would be
/// loaded in its place. All in small letters.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunnerModules {
    /// Where modules are looked for; `""` is the root, `**/` any directory.
    pub places: &'static [&'static str],
    /// Paths below a place; what follows is `/`, an ending or nothing.
    pub names: &'static [&'static str],
    /// Only files that end so are loaded.
    pub endings: &'static [&'static str],
}

impl RunnerModules {
    pub const NONE: Self = Self {
        places: &[],
        names: &[],
        endings: &[],
    };

    /// Would this file be loaded instead of a part of the runner? In small letters.
    pub fn are_shadowed_by(&self, path: &str) -> bool {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        let is_module = |rest: &str| {
            self.names.iter().any(|name| {
                rest.strip_prefix(name)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
            })
        };
        self.endings.contains(&ending)
            && self
                .places
                .iter()
                .any(|place| below(path, place).any(is_module))
    }
}

/// What of a path lies below a place, for every way to read it.
fn below<'p>(path: &'p str, place: &str) -> impl Iterator<Item = &'p str> {
    let (anywhere, place) = place
        .strip_prefix("**/")
        .map_or((false, place), |place| (true, place));
    let starts = path
        .match_indices('/')
        .map(|(at, _)| at + 1)
        .filter(move |_| anywhere);
    let place = if place.is_empty() {
        String::new()
    } else {
        format!("{place}/")
    };
    std::iter::once(0)
        .chain(starts)
        .filter_map(move |at| path[at..].strip_prefix(place.as_str()))
}

/// A directory of what was compiled from the project's sources, which tools believe for the times of files alone.
#[derive(Debug, Clone, Copy)]
pub struct CompiledDir {
    pub name: &'static str,
    /// The manifest that lies beside it.
    pub beside: &'static str,
    /// What in it was made of the project itself; `*` is any one name.
    pub own: &'static [&'static str],
    /// Names that stay: they cannot be made again.
    pub kept: &'static [&'static str],
    /// Beside it lie the sources of packages, whose names stay too.
    pub fetched: Option<&'static str>,
}

/// A test file, as the names of a runner refer to it.
#[derive(Debug, Clone, Copy)]
pub struct TestPlace<'a> {
    /// Relative to where the tests run.
    pub path: &'a Path,
    pub source: &'a str,
}

impl TestPlace<'_> {
    /// Runners that name a test by its file: the path, this mark, and the rest.
    pub(super) fn is_named_by_path(&self, name: &str, mark: &str) -> bool {
        name.strip_prefix(&*self.path.to_string_lossy())
            .is_some_and(|rest| rest.starts_with(mark))
    }
}

/// The source files of a project, by number. Paths are relative to its root, with `/` between their parts.
pub trait ProjectFiles {
    /// How many there are.
    fn count(&self) -> usize;
    fn path(&self, file: usize) -> &str;
    /// The file at this path.
    fn at(&self, path: &str) -> Option<usize>;
    /// Files whose path ends so, at a directory's border.
    fn ending(&self, suffix: &str) -> Vec<usize>;
    /// Files directly in a directory; `""` is the root.
    fn inside(&self, dir: &str) -> Vec<usize>;
    /// Files that define this name.
    fn defining(&self, name: &str) -> Vec<usize>;
    /// The directories that manifests give this name or one that it begins with, and the rest of it.
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

/// `LineItem` as files are named: `line_item`.
pub fn underscored(name: &str) -> String {
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
    fn a_star_stands_for_any_text_and_for_none() {
        let patterns = NamePatterns {
            dirs: &["tests"],
            stems: &["*-spec"],
            names: &["test_*.py", "conftest.py"],
        };
        for (name, dirs, fits) in [
            ("test_a.py", vec![], true),
            ("test_.py", vec![], true),
            ("test_a.pyi", vec![], false),
            ("a-spec.ts", vec![], true),
            ("conftest.py", vec!["a"], true),
            ("contest.py", vec!["a"], false),
            ("a.py", vec!["x", "tests"], true),
        ] {
            assert_eq!(patterns.fit(name, &dirs), fits, "{name}");
        }
        assert_eq!(join("a/b", "../c/./d").as_deref(), Some("a/c/d"));
        assert_eq!(join("a", "../../b"), None);
    }
}
