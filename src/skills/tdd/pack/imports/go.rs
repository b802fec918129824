//! `import "example.com/m/pkg"`, alone or in a group, with or without another name.

use super::{Import, quoted_after};

pub(super) fn imports(text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    let mut group = false;
    for line in text.lines().map(str::trim) {
        let spec = match line.strip_prefix("import ") {
            Some(rest) if rest.trim_start().starts_with('(') => {
                group = true;
                continue;
            }
            Some(rest) => rest.trim(),
            None if group && line.starts_with(')') => {
                group = false;
                continue;
            }
            None if group => line,
            // Imports stand before everything else.
            None if line.starts_with("func ") || line.starts_with("type ") => break,
            None => continue,
        };
        let Some(quote) = spec.find(['"', '`']) else { continue };
        let Some(path) = quoted_after(spec, quote) else { continue };
        let bound = match spec[..quote].trim() {
            "" => package_name(path),
            "_" => continue,
            "." => {
                found.push(Import::all(path));
                continue;
            }
            name => name,
        };
        found.push(Import::whole(path, bound));
    }
    found
}

/// The last part of the path, but not its major version.
fn package_name(path: &str) -> &str {
    let is_version =
        |p: &str| p.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    path.rsplit('/').find(|p| !is_version(p)).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_import_is_read() {
        let found = imports(
            "package a\nimport \"testing\"\nimport (\n\t\"m/pkg/v2\"\n\tx \"m/y\"\n\t. \"m/z\"\n)\nfunc F() {}\n",
        );
        let expected = [
            Import::whole("testing", "testing"),
            Import::whole("m/pkg/v2", "pkg"),
            Import::whole("m/y", "x"),
            Import::all("m/z"),
        ];
        assert_eq!(found, expected);
    }
}
