//! `from pkg.mod import a, b as c`, `from . import x`, `import pkg.mod as m`.

use super::{Import, renamed};

pub(super) fn imports(masked: &str) -> Vec<Import> {
    let mut found = Vec::new();
    let mut lines = masked.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if let Some((module, names)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import")) {
            let mut names = names.trim().trim_end_matches('\\').to_owned();
            // Over several lines in brackets.
            if names.starts_with('(') {
                while !names.contains(')') {
                    let Some(next) = lines.next() else { break };
                    names.push(' ');
                    names.push_str(next);
                }
            } else if line.ends_with('\\') {
                names.push_str(lines.next().unwrap_or_default());
            }
            let module: String = module.split_whitespace().collect();
            for name in names.trim_matches(['(', ')', ' ']).split([',', ')']).map(str::trim).filter(|n| !n.is_empty()) {
                let (name, bound) = renamed(name, " as ");
                found.push(if name == "*" { Import::all(&module) } else { Import::named(&module, name, bound) });
            }
        } else if let Some(modules) = line.strip_prefix("import ") {
            for module in modules.split(',') {
                let (module, bound) = renamed(module, " as ");
                found.push(Import::whole(module, bound));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_import_is_read() {
        let found = imports(
            "from ..pkg.mod import (\n    a,\n    b as c,\n)\nfrom . import x\nimport p.q as r, s\nfrom t import *\n",
        );
        let expected = [
            Import::named("..pkg.mod", "a", "a"),
            Import::named("..pkg.mod", "b", "c"),
            Import::named(".", "x", "x"),
            Import::whole("p.q", "r"),
            Import::whole("s", "s"),
            Import::all("t"),
        ];
        assert_eq!(found, expected);
    }
}
