//! `import { a as b } from './x'`, `export * from './x'`, `const { a } = require('./x')`, `await import('./x')`.

use super::{Import, quoted_after, renamed};
use crate::skills::tdd::pack::lang::is_word;

/// A clause longer than this is not one.
const LONGEST: usize = 4_000;

pub(super) fn imports(text: &str, masked: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for keyword in ["import", "export"] {
        for at in words_at(masked, keyword) {
            statement(text, masked, at, keyword, &mut found);
        }
    }
    for call in ["require", "import"] {
        for at in words_at(masked, call).filter(|at| masked[at + call.len()..].trim_start().starts_with('(')) {
            if let Some(module) = quoted_after(text, at + call.len()) {
                required(masked, at, at + call.len(), module, text, &mut found);
            }
        }
    }
    found
}

/// Where a word stands alone in the code.
fn words_at<'m>(masked: &'m str, word: &'m str) -> impl Iterator<Item = usize> + 'm {
    let b = masked.as_bytes();
    masked.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).map(|i| b[i]);
        let after = b.get(at + word.len());
        before.is_none_or(|c| !is_word(c) && c != b'$') && after.is_none_or(|c| !is_word(*c) && *c != b'$')
    })
}

fn statement(text: &str, masked: &str, at: usize, keyword: &str, found: &mut Vec<Import>) {
    let begin = at + keyword.len();
    let mut end = (begin + LONGEST).min(masked.len());
    while !masked.is_char_boundary(end) {
        end -= 1;
    }
    let window = &masked[begin..end];
    let Some(from) = words_at(window, "from").next() else { return local(window, keyword, found) };
    let clause = &window[..from];
    // Code between the two words means that they do not belong together.
    if !clause.bytes().all(|b| is_word(b) || b"{},* \t\r\n$".contains(&b)) {
        return local(window, keyword, found);
    }
    let Some(module) = quoted_after(text, begin + from + "from".len()) else { return };
    let clause = clause.trim();
    let clause = clause.strip_prefix("type ").unwrap_or(clause);
    let (outside, names) = match clause.split_once('{') {
        Some((outside, names)) => (outside, names.split('}').next().unwrap_or_default()),
        None => (clause, ""),
    };
    for part in outside.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        found.push(match part.strip_prefix('*') {
            Some(rest) => match rest.trim().strip_prefix("as ") {
                Some(bound) => Import::whole(module, bound.trim()),
                None => Import::all(module),
            },
            None => Import::named(module, "default", part),
        });
    }
    for part in names.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (name, bound) = renamed(part.strip_prefix("type ").unwrap_or(part), " as ");
        found.push(Import::named(module, name, bound));
    }
}

/// `export { total as sum };` and `export default total;`: another name for something of this file.
fn local(window: &str, keyword: &str, found: &mut Vec<Import>) {
    let window = window.trim_start();
    if keyword != "export" {
        return;
    }
    if let Some(names) = window.strip_prefix('{').and_then(|rest| rest.split('}').next()) {
        for (name, bound) in names.split(',').map(|part| renamed(part, " as ")).filter(|(n, b)| n != b) {
            found.push(Import::named("", name, bound));
        }
    } else if let Some(name) = window.strip_prefix("default ").and_then(|rest| rest.split([';', '\n']).next())
        && !name.is_empty()
        && name.bytes().all(is_word)
    {
        found.push(Import::named("", name, "default"));
    }
}

fn required(masked: &str, at: usize, after: usize, module: &str, text: &str, found: &mut Vec<Import>) {
    let begin = masked[..at].rfind([';', '}', '\n']).map_or(0, |i| i + 1);
    let mut left = &masked[begin..at];
    // `const {` … `} = require`: the statement began further above.
    if masked[..begin].ends_with('}') {
        let open = masked[..begin].rfind('{').unwrap_or(begin);
        let line = masked[..open].rfind('\n').map_or(0, |i| i + 1);
        left = &masked[line..at];
    }
    let close = text[after..].find(')').map_or(text.len(), |i| after + i + 1);
    let member = masked.get(close..).and_then(|rest| rest.strip_prefix('.'));
    let member = member.and_then(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
    let left = left.trim().trim_end_matches("await").trim_end();
    let target = left.strip_suffix('=').map(|l| l.trim_end().trim_start_matches("export "));
    let target = target.and_then(|l| ["const ", "let ", "var "].iter().find_map(|k| l.strip_prefix(k)));
    match (target.map(str::trim), member) {
        (Some(pattern), None) if pattern.starts_with('{') => {
            for part in pattern.trim_matches(['{', '}']).split(',').map(str::trim).filter(|p| !p.is_empty()) {
                let (name, bound) = renamed(part, ":");
                found.push(Import::named(module, name, bound));
            }
        }
        (Some(bound), Some(member)) => found.push(Import::named(module, member, bound)),
        (Some(bound), None) => {
            found.push(Import::whole(module, bound));
            found.push(Import::named(module, "default", bound));
        }
        (None, Some(member)) => found.push(Import::named(module, member, member)),
        (None, None) => found.push(Import::all(module)),
    }
}

/// `module.exports = total` and the pairs of `module.exports = { sum: total }`: another name for something of this file.
pub(in crate::skills::tdd::pack) fn exported(masked: &str, name: &str) -> Option<String> {
    for (at, _) in masked.match_indices("module.exports") {
        let value = masked[at + "module.exports".len()..].trim_start().strip_prefix('=')?.trim_start();
        let own = value.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        if name == "default" && !own.is_empty() {
            return Some(own.to_owned());
        }
        for pair in value.strip_prefix('{').and_then(|v| v.split('}').next()).unwrap_or_default().split(',') {
            if let Some((_, value)) = pair.split_once(':').filter(|(key, _)| key.trim() == name) {
                return Some(value.trim().to_owned());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skills::tdd::pack::lang::{Lang, mask};

    #[test]
    fn each_form_of_import_is_read() {
        for (text, expected) in [
            (
                "import d, { a as b,\n  type c } from '../src/x';",
                vec![
                    Import::named("../src/x", "default", "d"),
                    Import::named("../src/x", "a", "b"),
                    Import::named("../src/x", "c", "c"),
                ],
            ),
            ("import * as m from \"./m\"", vec![Import::whole("./m", "m")]),
            (
                "export * from './a';\nexport { b } from './b';",
                vec![Import::all("./a"), Import::named("./b", "b", "b")],
            ),
            ("export function f() { return 1; }\nconst from = 'x';", vec![]),
            (
                "const {\n  a,\n  b: c,\n} = require('./x');",
                vec![Import::named("./x", "a", "a"), Import::named("./x", "b", "c")],
            ),
            ("const x = require('./x').y;", vec![Import::named("./x", "y", "x")]),
            ("module.exports = { ...require('./x') };", vec![Import::all("./x")]),
            ("export { a as b };", vec![Import::named("", "a", "b")]),
            ("// import a from './no'\n", vec![]),
        ] {
            assert_eq!(imports(text, &mask(Lang::Node, text)), expected, "{text}");
        }
    }
}
