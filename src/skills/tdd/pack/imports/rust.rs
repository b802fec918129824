//! `use crate::a::{b, C as D}`, `pub use inner::*`, and paths written out.

use super::Import;
use crate::skills::tdd::pack::lang::is_word;

/// Groups in groups; deeper is nobody's code.
const DEEPEST: usize = 16;

pub(super) fn imports(masked: &str) -> Vec<Import> {
    let mut found = Vec::new();
    let mut from = 0;
    for line in masked.split_inclusive('\n') {
        let start = from;
        from += line.len();
        let trimmed = line.trim_start();
        let statement = trimmed.strip_prefix("pub").map_or(trimmed, |rest| {
            let rest = rest.trim_start();
            if rest.starts_with('(') { rest.split_once(')').map_or("", |(_, r)| r).trim_start() } else { rest }
        });
        let Some(tree) = statement.strip_prefix("use ") else { continue };
        let begin = start + (line.len() - tree.len());
        let end = masked[begin..].find(';').map_or(masked.len(), |i| begin + i);
        expand("", &masked[begin..end], DEEPEST, &mut found);
    }
    found
}

fn expand(prefix: &str, tree: &str, depth: usize, found: &mut Vec<Import>) {
    let tree = tree.trim();
    if depth == 0 || tree.is_empty() {
        return;
    }
    let join = |path: &str| {
        let path = path.trim().trim_matches(':');
        if prefix.is_empty() || path.is_empty() { format!("{prefix}{path}") } else { format!("{prefix}::{path}") }
    };
    if let Some((path, group)) = tree.split_once('{') {
        let group = group.rsplit_once('}').map_or(group, |(inner, _)| inner);
        for part in split_top(group) {
            expand(&join(path), part, depth - 1, found);
        }
        return;
    }
    let (path, bound) = super::renamed(tree, " as ");
    let path = join(path);
    let path = path.strip_suffix("::self").unwrap_or(&path);
    let Some((module, name)) = path.rsplit_once("::") else {
        found.push(Import::whole(path, bound));
        return;
    };
    let bound = if bound.contains(':') || bound == "self" { bound.rsplit("::").next().unwrap_or(name) } else { bound };
    match name {
        "*" => found.push(Import::all(module)),
        name => found.push(Import::named(module, name, if bound == "self" { name } else { bound })),
    }
}

/// Parts between the commas that are in no braces.
fn split_top(group: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0i64, 0);
    for (i, b) in group.bytes().enumerate() {
        match b {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&group[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[from..]);
    parts
}

/// `demo::billing::total(…)` in a body, as if it had been imported.
pub(super) fn paths(masked: &str) -> Vec<Import> {
    let mut found: Vec<Import> = Vec::new();
    for line in masked.lines().filter(|l| !l.contains("use ")) {
        for path in line.split(|c: char| c.is_ascii() && !is_word(c as u8) && c != ':') {
            let path = path.trim_matches(':');
            if let Some((module, name)) = path.rsplit_once("::").filter(|(m, n)| !m.is_empty() && !n.is_empty()) {
                let import = Import::named(module, name, name);
                if !found.contains(&import) {
                    found.push(import);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_uses_becomes_one_import_per_leaf() {
        let found = imports("use demo::a::{self, b::{C as D, e}, *};\npub(crate) use f::G;\nuse h as i;\n");
        let expected = [
            Import::named("demo", "a", "a"),
            Import::named("demo::a::b", "C", "D"),
            Import::named("demo::a::b", "e", "e"),
            Import::all("demo::a"),
            Import::named("f", "G", "G"),
            Import::whole("h", "i"),
        ];
        assert_eq!(found, expected);
        assert_eq!(paths("let x = demo::a::f(1);"), [Import::named("demo::a", "f", "f")]);
    }
}
