//! `alias A.{B, C}`, `import A.B`, `defdelegate f(x), to: A.B`, and modules written out.

use super::Import;
use crate::skills::tdd::pack::lang::is_word;

pub(super) fn imports(masked: &str) -> Vec<Import> {
    let mut found = Vec::new();
    let mut lines = masked.lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim().to_owned();
        let Some((keyword, _)) = line.split_once(' ') else { continue };
        let keyword = keyword.to_owned();
        if !matches!(keyword.as_str(), "alias" | "import" | "use" | "defdelegate") {
            continue;
        }
        while (line.contains('{') && !line.contains('}')) || line.ends_with(',') {
            let Some(next) = lines.next() else { break };
            line.push(' ');
            line.push_str(next.trim());
        }
        let rest = line[keyword.len()..].trim();
        match keyword.as_str() {
            "defdelegate" => found.extend(delegated(rest, &found)),
            "import" => found.push(Import::all(&expanded(module(rest), &found))),
            _ => aliases(rest, &mut found),
        }
    }
    found
}

fn module(text: &str) -> &str {
    let end = text.bytes().position(|b| !is_word(b) && b != b'.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

fn aliases(rest: &str, found: &mut Vec<Import>) {
    let path = module(rest);
    let after = rest[path.len()..].trim_start_matches('.');
    if let Some(group) = after.strip_prefix('{') {
        for name in group.split('}').next().unwrap_or_default().split(',').map(str::trim).filter(|n| !n.is_empty()) {
            found.push(Import::whole(&format!("{path}.{name}"), name.rsplit('.').next().unwrap_or(name)));
        }
        return;
    }
    let renamed = rest.split_once("as:").map(|(_, name)| module(name.trim()));
    found.push(Import::whole(path, renamed.unwrap_or(path.rsplit('.').next().unwrap_or(path))));
}

fn delegated(rest: &str, aliases: &[Import]) -> Option<Import> {
    let name = module(rest);
    let to = module(rest.split_once("to:")?.1.trim());
    let own = rest.split_once(" as:").map(|(_, n)| module(n.trim().trim_start_matches(':')));
    Some(Import::named(&expanded(to, aliases), own.unwrap_or(name), name))
}

/// The full name of a module that is written by its alias.
fn expanded(name: &str, aliases: &[Import]) -> String {
    let (first, rest) = name.split_once('.').map_or((name, None), |(f, r)| (f, Some(r)));
    let alias = aliases.iter().find(|i| matches!(&i.what, super::What::Whole { bound } if bound == first));
    match (alias, rest) {
        (Some(import), Some(rest)) => format!("{}.{rest}", import.module),
        (Some(import), None) => import.module.clone(),
        (None, _) => name.to_owned(),
    }
}

/// `Shop.Cart.total(…)` in a body.
pub(super) fn paths(masked: &str) -> Vec<Import> {
    let mut found: Vec<Import> = Vec::new();
    for path in masked.split(|c: char| c.is_ascii() && !is_word(c as u8) && c != '.') {
        let is_module = |p: &&str| p.starts_with(|c: char| c.is_ascii_uppercase());
        let module: Vec<&str> = path.split('.').take_while(is_module).collect();
        let called = path.split('.').nth(module.len()).is_some_and(|f| !f.is_empty());
        if module.len() > 1 || (module.len() == 1 && called) {
            let module = module.join(".");
            let import = Import::whole(&module, &module);
            if !found.contains(&import) {
                found.push(import);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_alias_is_read() {
        let found = imports(
            "  alias A.B\n  alias A.{C,\n    D}\n  alias A.E, as: F\n  import A.G, only: [f: 1]\n  defdelegate f(x), to: C, as: :g\n",
        );
        let expected = [
            Import::whole("A.B", "B"),
            Import::whole("A.C", "C"),
            Import::whole("A.D", "D"),
            Import::whole("A.E", "F"),
            Import::all("A.G"),
            Import::named("A.C", "g", "f"),
        ];
        assert_eq!(found, expected);
        let full = [Import::whole("Shop.Cart", "Shop.Cart"), Import::whole("Shop", "Shop")];
        assert_eq!(paths("assert Shop.Cart.total(x) == Shop.sum(1)"), full);
    }
}
