//! Does this line begin a definition, and of what?

use super::Kind;
use crate::skills::tdd::pack::lang::{Lang, is_word};

/// What a line defines: a name, its kind, and the type it belongs to if the line says so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub name: String,
    pub kind: Kind,
    pub owner: Option<String>,
}

/// `line` is masked. `inside` is the kind of the item around it: only the members of a type are written without a keyword.
pub(super) fn start(lang: Lang, line: &str, inside: Option<Kind>) -> Option<Start> {
    let line = line.trim();
    match lang {
        Lang::Rust => rust(line),
        Lang::Python => python(line, inside),
        Lang::Node => node(line, inside),
        Lang::Go => go(line),
        Lang::Ruby => ruby(line),
        Lang::Elixir => elixir(line),
    }
}

fn named(name: &str, kind: Kind) -> Option<Start> {
    (!name.is_empty()).then(|| Start { name: name.to_owned(), kind, owner: None })
}

/// The word at the start of `text`, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text.bytes().position(|b| !is_word(b)).unwrap_or(text.len());
    text.split_at(end)
}

/// What follows a bracketed part at the start of `text`.
fn past_brackets(text: &str, open: u8, close: u8) -> &str {
    let text = text.trim_start();
    if text.as_bytes().first() != Some(&open) {
        return text;
    }
    let (mut depth, mut before) = (0usize, 0);
    for (i, b) in text.bytes().enumerate() {
        if b == open {
            depth += 1;
        } else if b == close && !(close == b'>' && before == b'-') {
            depth -= 1;
            if depth == 0 {
                return &text[i + 1..];
            }
        }
        before = b;
    }
    ""
}

fn rust(line: &str) -> Option<Start> {
    let mut rest = line;
    loop {
        let (first, after) = word(rest);
        match first {
            "pub" => rest = past_brackets(after, b'(', b')'),
            "async" | "unsafe" | "default" | "extern" | "auto" => rest = after,
            "const" if matches!(word(after).0, "fn" | "unsafe" | "async" | "extern") => rest = after,
            "fn" | "const" | "static" | "type" => {
                let (name, after) = word(after);
                return named(if name == "mut" { word(after).0 } else { name }, Kind::Plain);
            }
            "mod" if line.ends_with(';') => return None,
            "mod" if after.starts_with(' ') => return named(word(after).0, Kind::Module),
            "struct" | "enum" | "trait" | "union" if after.starts_with(' ') => {
                return named(word(after).0, Kind::Holder);
            }
            "macro_rules" => return named(word(after.trim_start_matches('!')).0, Kind::Plain),
            "impl" => {
                let target = past_brackets(after, b'<', b'>');
                let target = target.rsplit_once(" for ").map_or(target, |(_, t)| t);
                let path = target.trim_start_matches(['&', ' ']).split(['<', '{', ' ']).next().unwrap_or_default();
                return named(path.rsplit("::").next().unwrap_or_default(), Kind::More);
            }
            _ => return None,
        }
    }
}

fn python(line: &str, inside: Option<Kind>) -> Option<Start> {
    match word(line) {
        ("async", after) if word(after).0 == "def" => named(word(word(after).1).0, Kind::Plain),
        ("def", after) => named(word(after).0, Kind::Plain),
        ("class", after) => named(word(after).0, Kind::Holder),
        // A constant of the module: `NAME = …` or `name: Type = …` at its top.
        (name, after) if inside.is_none() => {
            let after = after.trim_start();
            let assigned = after.starts_with('=') && !after.starts_with("==");
            let annotated = after.starts_with(':') && after.contains('=');
            if assigned || annotated { named(name, Kind::Plain) } else { None }
        }
        _ => None,
    }
}

fn node(line: &str, inside: Option<Kind>) -> Option<Start> {
    let (mut rest, mut default) = (line, false);
    loop {
        let (first, after) = word(rest);
        match first {
            "export" | "declare" | "async" | "abstract" | "public" | "private" | "protected" | "static"
            | "readonly" | "override"
                if after.starts_with(' ') =>
            {
                rest = after;
            }
            "default" if rest.len() < line.len() => {
                default = true;
                rest = after;
            }
            "function" => {
                let name = word(after.trim_start().trim_start_matches('*')).0;
                return named(if name.is_empty() && default { "default" } else { name }, Kind::Plain);
            }
            "class" | "interface" | "enum" | "namespace" if after.starts_with([' ', '{']) => {
                let name = word(after).0;
                let unnamed = name.is_empty() || name == "extends";
                return named(if unnamed && default { "default" } else { name }, Kind::Holder);
            }
            // What is required has its home elsewhere.
            "const" | "let" | "var" | "type" if after.starts_with(' ') => {
                return named(word(after).0, Kind::Plain).filter(|_| !line.contains("require("));
            }
            "module" | "exports" => return node_exports(rest),
            "if" | "for" | "while" | "switch" | "catch" | "return" | "await" | "else" | "do" | "try" | "new" => {
                return None;
            }
            "get" | "set" if inside == Some(Kind::Holder) && after.starts_with(' ') => rest = after,
            name if inside == Some(Kind::Holder) => {
                let name = if name.is_empty() { word(rest.trim_start_matches(['#', '*', ' '])).0 } else { name };
                let method = (after.starts_with(['(', '<']) && line.ends_with('{')) || after.contains("=> {");
                return if method { named(name, Kind::Plain) } else { None };
            }
            // `export default total;` passes on what has a name already.
            _ if default && !first.is_empty() && after.trim_matches([' ', ';']).is_empty() => return None,
            _ if default => return named("default", Kind::Plain),
            _ => return None,
        }
    }
}

/// `exports.name = …` and `module.exports = …`, unless it only passes on what has a name already.
fn node_exports(text: &str) -> Option<Start> {
    let text = text.strip_prefix("module.").unwrap_or(text).strip_prefix("exports")?;
    let (name, rest) = text.strip_prefix('.').map_or(("default", text), word);
    let value = rest.trim_start().strip_prefix('=')?;
    let (first, after) = word(value);
    match first {
        "function" | "class" if name == "default" => {
            let own = word(after).0;
            named(if own.is_empty() || own == "extends" { name } else { own }, Kind::Plain)
        }
        "function" | "class" | "async" => named(name, Kind::Plain),
        _ if value.contains("=>") || (first.is_empty() && name != "default") => named(name, Kind::Plain),
        _ => None,
    }
}

fn go(line: &str) -> Option<Start> {
    match word(line) {
        ("func", after) if after.trim_start().starts_with('(') => {
            let receiver = after.trim_start()[1..].split(')').next().unwrap_or_default();
            let owner = receiver.split_whitespace().last().unwrap_or_default().trim_start_matches('*');
            let owner = owner.split('[').next().unwrap_or_default().to_owned();
            let name = word(past_brackets(after, b'(', b')')).0;
            Some(Start { owner: Some(owner), ..named(name, Kind::Plain)? })
        }
        ("func" | "const" | "var", after) => named(word(after).0, Kind::Plain),
        ("type", after) => named(word(after).0, Kind::Holder),
        _ => None,
    }
}

fn ruby(line: &str) -> Option<Start> {
    match word(line) {
        ("def", after) => {
            let after = after.trim_start();
            named(word(after.strip_prefix("self.").unwrap_or(after)).0, Kind::Plain)
        }
        (first @ ("class" | "module"), after) => {
            let kind = if first == "class" { Kind::Holder } else { Kind::Module };
            let path = after.trim_start().split([' ', '<', ';']).next().unwrap_or_default();
            let (owner, name) = match path.rsplit_once("::") {
                Some((owner, name)) => (Some(owner.rsplit("::").next().unwrap_or(owner).to_owned()), name),
                None => (None, path),
            };
            Some(Start { owner, ..named(name, kind).filter(|s| s.name.starts_with(char::is_uppercase))? })
        }
        (name, after) if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
            let after = after.trim_start();
            let assigned = after.starts_with('=') && !after.starts_with("==") && !after.starts_with("=>");
            if assigned { named(name, Kind::Plain) } else { None }
        }
        _ => None,
    }
}

fn elixir(line: &str) -> Option<Start> {
    match word(line) {
        ("def" | "defp" | "defmacro" | "defmacrop" | "defguard", after) => named(word(after).0, Kind::Plain),
        ("defmodule" | "defprotocol", after) => {
            named(after.trim_start().split([' ', ',']).next().unwrap_or_default(), Kind::Module)
        }
        ("defstruct", _) => named("__struct__", Kind::Plain),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_defines_is_told_from_one_that_uses() {
        let cases: &[(Lang, &str, Option<Kind>, Option<&str>)] = &[
            (Lang::Rust, "pub(crate) async fn go<T>(t: T) {", None, Some("go")),
            (Lang::Rust, "impl<'a, T: Fn() -> u8> fmt::Display for a::Money<T> {", None, Some("Money")),
            (Lang::Rust, "pub static mut N: u8 = 1;", None, Some("N")),
            (Lang::Rust, "mod x;", None, None),
            (Lang::Rust, "let fn_x = 1;", None, None),
            (Lang::Python, "async def go(a):", None, Some("go")),
            (Lang::Python, "RATE: int = 3", None, Some("RATE")),
            (Lang::Python, "x = 3", Some(Kind::Plain), None),
            (Lang::Python, "if x == 3:", None, None),
            (Lang::Node, "export default async function go() {", None, Some("go")),
            (Lang::Node, "export const go = (a) => {", None, Some("go")),
            (Lang::Node, "const { a } = require(", None, None),
            (Lang::Node, "total(a) {", Some(Kind::Holder), Some("total")),
            (Lang::Node, "exports.go = function (a) {", None, Some("go")),
            (Lang::Node, "module.exports = { a, b }", None, None),
            (Lang::Node, "export default {", None, Some("default")),
            (Lang::Node, "export default go;", None, None),
            (Lang::Go, "func (i *Invoice[T]) Total() int {", None, Some("Total")),
            (Lang::Go, "type Invoice struct {", None, Some("Invoice")),
            (Lang::Ruby, "class Billing::Invoice < Base", None, Some("Invoice")),
            (Lang::Ruby, "def self.build(a)", None, Some("build")),
            (Lang::Ruby, "RATE = 3", None, Some("RATE")),
            (Lang::Elixir, "defmodule Shop.Cart do", None, Some("Shop.Cart")),
            (Lang::Elixir, "def total(a) when a > 1, do: a", None, Some("total")),
            (Lang::Elixir, "defdelegate total(a), to: Other", None, None),
        ];
        for (lang, line, inside, expected) in cases {
            assert_eq!(start(*lang, line, *inside).map(|s| s.name).as_deref(), *expected, "{line}");
        }
    }
}
