//! The relative links of a Markdown file: the files exist, and so do the headings.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

static LINK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\]\(\s*<?([^)\s>]+)>?(?:\s+[^)]*)?\)").expect("the pattern is well-formed")
});

/// Fails with the first link that leads nowhere. Links to other sites are not followed.
pub(super) fn check(root: &Path, document: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(root.join(document))
        .map_err(|e| format!("`{}` cannot be read: {e}", document.display()))?;
    if text.trim().is_empty() {
        return Err(format!("`{}` is empty", document.display()));
    }
    let prose = without_code(&text);
    for found in LINK.captures_iter(&prose) {
        let target = &found[1];
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let base = document.parent().unwrap_or(Path::new(""));
        let file = match path {
            "" => document.to_owned(),
            path => normal(&base.join(path))
                .ok_or_else(|| format!("the link `{target}` leads out of the project"))?,
        };
        let full = root.join(&file);
        if !full.exists() {
            return Err(format!("the link `{target}` leads to no file"));
        }
        if !anchor.is_empty() && full.extension().is_some_and(|e| e == "md") {
            let other = std::fs::read_to_string(&full).unwrap_or_default();
            if !headings(&other).any(|heading| heading == anchor) {
                return Err(format!("the link `{target}` leads to no heading"));
            }
        }
    }
    Ok(())
}

/// What the document had and no longer has.
pub(super) fn lost(before: &str, after: &str) -> Option<String> {
    let left: Vec<String> = headings(after).collect();
    if let Some(gone) = headings(before).find(|heading| !left.contains(heading)) {
        return Some(format!("the heading `{gone}` is gone"));
    }
    let fences = |text: &str| {
        text.lines()
            .filter(|line| line.trim_start().starts_with("```"))
            .count()
            / 2
    };
    let links = |text: &str| LINK.find_iter(&without_code(text)).count();
    for (what, count) in [
        ("examples", &fences as &dyn Fn(&str) -> usize),
        ("links", &links),
    ] {
        let (had, has) = (count(before), count(after));
        if has < had {
            return Some(format!("there were {had} {what}, and {has} are left"));
        }
    }
    None
}

/// The text without fenced blocks and code in lines.
fn without_code(text: &str) -> String {
    let mut is_fenced = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            let parts = line.split('`').enumerate();
            kept.extend(parts.filter(|(at, _)| at % 2 == 0).map(|(_, part)| part));
            kept.push('\n');
        }
    }
    kept
}

/// The anchors of the headings, as code hosts derive them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    })
}

fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir => normal.pop().then_some(())?,
            _ => return None,
        }
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_parts_are_named() {
        let full = "# A\n## B\n[x](y.md)\n```\nz\n```\n";
        assert_eq!(lost(full, full), None);
        assert_eq!(lost(full, &full.replace("y.md", "w.md")), None);
        for shorter in [
            "# A\n[x](y.md)\n```\nz\n```\n",
            "# A\n## B\n```\nz\n```\n",
            "# A\n## B\n[x](y.md)\n",
        ] {
            assert!(lost(full, shorter).is_some(), "{shorter}");
        }
    }

    #[test]
    fn dead_links_are_found() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("docs")).expect("made");
        std::fs::write(dir.path().join("README.md"), "# A b, c\n").expect("written");
        let check = |text: &str| {
            std::fs::write(dir.path().join("docs/a.md"), text).expect("written");
            super::check(dir.path(), Path::new("docs/a.md"))
        };
        assert_eq!(
            check("# X y\n[r](../README.md#a-b-c) [me](#x-y) [web](https://x.y/z)"),
            Ok(())
        );
        assert_eq!(check("`[no](link)`\n```\n[no](link)\n```\n"), Ok(()));
        assert_eq!(
            check("[r](b.md)"),
            Err("the link `b.md` leads to no file".into())
        );
        assert_eq!(
            check("[r](../README.md#zz)"),
            Err("the link `../README.md#zz` leads to no heading".into())
        );
        assert!(check("[r](../../etc)").is_err());
        assert!(check(" \n").is_err());
    }
}
