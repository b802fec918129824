//! Decides which paths an edit may use. Checks names instead of files, because the file may not
//! exist yet.

use std::sync::Arc;

use super::EditError;
use crate::active_snapshot::ActiveSnapshotState;
use crate::ignore_rules::{IgnoreRules, is_built, patterns};
use crate::manifest::Area;
use crate::root::{Node, as_path, join, split};

/// Files and directories that make other programs run something or control what they may do.
/// Compared ignoring case.
const OFF_LIMITS: &[(&str, &str)] = &[
    (".git", "it belongs to git"),
    (".gitmodules", "it makes git fetch and check out"),
    (".gitconfig", "it makes git run programs"),
    (".hg", "it belongs to mercurial"),
    (".svn", "it belongs to subversion"),
    (".jj", "it belongs to jj"),
    (".claude", "it configures agents"),
    (".claude.json", "it configures agents"),
    (".mcp.json", "it makes clients start servers"),
    (".cursor", "it configures agents"),
    (".codex", "it configures agents"),
    (".gemini", "it configures agents"),
    (".vscode", "it makes editors run tasks"),
    (".idea", "it makes editors run tasks"),
    (".devcontainer", "it makes editors run commands"),
    (".envrc", "shells run it on entry"),
    (".direnv", "shells run it on entry"),
    (".husky", "git runs its hooks"),
    (".githooks", "git runs its hooks"),
    (".bashrc", "shells run it"),
    (".bash_profile", "shells run it"),
    (".bash_login", "shells run it"),
    (".bash_logout", "shells run it"),
    (".profile", "shells run it"),
    (".zshrc", "shells run it"),
    (".zshenv", "shells run it"),
    (".zprofile", "shells run it"),
    (".zlogin", "shells run it"),
    (".zlogout", "shells run it"),
    (".kshrc", "shells run it"),
    (".cshrc", "shells run it"),
    (".tcshrc", "shells run it"),
    (".login", "shells run it"),
    (".ssh", "it holds keys"),
    (".netrc", "it holds passwords"),
    (".ripgreprc", "it changes what searches see"),
];

/// Validates a path and returns its bytes without a leading `./`.
pub(super) fn validate(path: &str) -> Result<Vec<u8>, EditError> {
    let bad = |why| EditError::BadPath {
        path: path.escape_debug().to_string(),
        why,
    };
    let inside = path.strip_prefix("./").unwrap_or(path);
    if inside.is_empty() {
        return Err(bad("it is empty; name a file relative to the project"));
    }
    if inside.starts_with('/') {
        return Err(bad("it is absolute; name a file relative to the project"));
    }
    if inside.len() > 4000 {
        return Err(bad("it is too long"));
    }
    if inside.chars().any(char::is_control) {
        return Err(bad("it holds control characters"));
    }
    if inside.contains('\\') {
        return Err(bad("it holds a backslash; separate directories by `/`"));
    }
    for part in inside.split('/') {
        match part {
            "" => {
                return Err(bad(
                    "it has an empty component; name a file, not a directory",
                ));
            }
            "." | ".." => return Err(bad("it has a component `.` or `..`; write the plain path")),
            _ if part.len() > 255 => return Err(bad("a component is longer than 255 bytes")),
            _ => {}
        }
        let folded = fold_name(part);
        if folded == "git~1" || folded.starts_with(".supervisor-") {
            return Err(EditError::Protected {
                path: path.to_owned(),
                why: "the name is reserved",
            });
        }
        if let Some((_, why)) = OFF_LIMITS.iter().find(|(name, _)| *name == folded) {
            return Err(EditError::Protected {
                path: path.to_owned(),
                why,
            });
        }
    }
    Ok(inside.as_bytes().to_vec())
}

/// Folds a name like a lenient file system: ignores case, invisible characters, and trailing dots
/// and spaces.
fn fold_name(name: &str) -> String {
    let visible = |c: &char| !matches!(c, '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}');
    let folded: String = name
        .chars()
        .filter(visible)
        .flat_map(char::to_lowercase)
        .collect();
    // An NTFS alternate data stream names the same file.
    let folded = folded.split(':').next().unwrap_or_default();
    folded.trim_end_matches(['.', ' ']).to_owned()
}

/// Accepts only paths that the snapshot protects, or would protect if they existed.
pub(super) fn check_editable(
    state: &ActiveSnapshotState,
    name: &str,
    path: &[u8],
) -> Result<(), EditError> {
    let manifest = &state.snapshot.manifest;
    if manifest
        .find(Area::Tree, path)
        .is_some_and(|e| e.node == Node::File)
    {
        return Ok(());
    }
    let ignored = || {
        Err(EditError::Ignored {
            path: name.to_owned(),
        })
    };
    let inner = state.inner();
    let text = |area, file: &[u8]| {
        let entry = manifest.find(area, file).filter(|e| e.node == Node::File)?;
        state
            .snapshot
            .pack
            .read(entry.at, entry.size, &entry.hash)
            .ok()
    };
    let exclude = patterns(&inner.caps.exclude);
    let info = [Area::Git, Area::Common]
        .into_iter()
        .find_map(|area| text(area, b"info/exclude"));
    let mut rules: Arc<IgnoreRules> = inner.layout.rules_above(&info.unwrap_or_default());
    let mut from = 0;
    loop {
        let end = path[from..]
            .iter()
            .position(|b| *b == b'/')
            .map(|i| from + i);
        let (here, is_dir) = (&path[..end.unwrap_or(path.len())], end.is_some());
        let (dir, last) = split(here);
        if let Some(text) = text(Area::Tree, &join(dir, b".gitignore")) {
            rules = IgnoreRules::in_dir(rules, &text, dir);
        }
        let left_out = manifest.left_out.iter().any(|l| l.path == here);
        if left_out
            || exclude.matched(as_path(here), is_dir).is_ignore()
            || rules.ignores(here, is_dir)
        {
            return ignored();
        }
        let exists = |file: &[u8]| inner.layout.tree.meta(file).is_ok_and(|m| m.is_some());
        let beside = |file: &str| exists(&join(dir, file.as_bytes()));
        let inside = |file: &str| exists(&join(here, file.as_bytes()));
        if is_dir
            && manifest.find(Area::Tree, here).is_none()
            && is_built(last, false, beside, inside)
        {
            return ignored();
        }
        match end {
            Some(end) => from = end + 1,
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_refused_paths_is_refused() {
        let refused = [
            "",
            "./",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a/./b",
            "a//b",
            "a/",
            "a\0b",
            "a\nb",
            "a\\b",
            ".git/config",
            ".GIT/hooks/pre-commit",
            "sub/.Git/HEAD",
            ".g\u{200c}it/config",
            ".git./config",
            ".git /config",
            "git~1/x",
            ".git::$INDEX_ALLOCATION/x",
            ".claude/settings.json",
            ".CLAUDE/x",
            ".mcp.json",
            ".MCP.json",
            "a/.envrc",
            ".vscode/tasks.json",
            ".idea/x",
            ".bashrc",
            ".supervisor-x",
        ];
        for path in refused {
            assert!(validate(path).is_err(), "{path:?}");
        }
        assert!(validate(&"x".repeat(256)).is_err() && validate(&"x/".repeat(2100)).is_err());
        for fine in [
            "a",
            "./a/b.rs",
            ".github/workflows/ci.yml",
            ".gitignore",
            ".gitattributes",
            "git/x",
            "ö/ü.txt",
            "a b",
        ] {
            assert!(validate(fine).is_ok(), "{fine:?}");
        }
    }
}
