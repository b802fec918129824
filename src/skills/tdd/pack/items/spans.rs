//! How far a definition reaches: to its closing brace, or as long as the lines below are further in.

use super::starts::start;
use super::{Item, Kind};
use crate::skills::tdd::pack::lang::Lang;

/// More in one file is generated, and an outline of it helps nobody.
const MOST: usize = 5_000;

pub(super) fn items(lang: Lang, text: &str, masked: &str) -> Vec<Item> {
    let code: Vec<&str> = masked.lines().collect();
    let text: Vec<&str> = text.lines().collect();
    let mut items: Vec<Item> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for at in 0..code.len() {
        while open.last().is_some_and(|i| items[*i].lines.end <= at) {
            open.pop();
        }
        let inside = open.last().map(|i| items[*i].kind);
        // Members of `impl` and of a type are alike; what a function defines inside is its own affair.
        let inside = inside.map(|kind| if kind == Kind::More { Kind::Holder } else { kind });
        if inside == Some(Kind::Plain) || code[at].trim().is_empty() {
            continue;
        }
        let Some(begun) = start(lang, code[at], inside) else { continue };
        let end = if lang.has_braces() { by_braces(&code, at) } else { by_indent(&code, at) };
        let member = begun.kind == Kind::Plain && (begun.owner.is_some() || inside == Some(Kind::Holder));
        let owner = begun.owner.or_else(|| open.last().map(|i| items[*i].name.clone()));
        let lines = above(lang, &code, &text, at)..end.max(at + 1);
        items.push(Item { name: begun.name, kind: begun.kind, lines, at, depth: open.len(), owner, member });
        open.push(items.len() - 1);
        if items.len() == MOST {
            break;
        }
    }
    items
}

/// The first line of what is written directly above: documentation, attributes, decorators.
fn above(lang: Lang, code: &[&str], text: &[&str], at: usize) -> usize {
    let marks: &[&str] = match lang {
        Lang::Rust => &["#["],
        Lang::Python | Lang::Node => &["@"],
        Lang::Elixir => &["@spec", "@doc", "@impl"],
        Lang::Go | Lang::Ruby => &[],
    };
    let belongs = |line: usize| {
        let (code, text) = (code[line].trim(), text.get(line).map_or("", |t| t.trim()));
        let comment = code.is_empty() && !text.is_empty() && (lang != Lang::Python || text.starts_with('#'));
        comment || marks.iter().any(|m| code.starts_with(m))
    };
    (at.saturating_sub(20)..at).rev().take_while(|line| belongs(*line)).last().unwrap_or(at)
}

/// Brackets are counted from the first line on; the item ends where all are closed and the statement is.
fn by_braces(code: &[&str], at: usize) -> usize {
    let (mut depth, mut braces) = (0i64, false);
    for (line, text) in code.iter().enumerate().skip(at) {
        for byte in text.bytes() {
            match byte {
                b'{' | b'(' | b'[' => depth += 1,
                b'}' | b')' | b']' => depth -= 1,
                _ => {}
            }
            braces |= byte == b'{';
            if depth < 0 {
                return line + usize::from(line == at);
            }
        }
        let text = text.trim();
        let next = code.get(line + 1).map_or("", |l| l.trim_start());
        let goes_on = text.ends_with(['=', ',', '|', '&', '>', '+', '?', ':', '('])
            || next.starts_with(['.', '{', '|', '&', '?', ':', '='])
            || next.starts_with("where")
            || (text.starts_with("where") && !braces);
        if depth == 0 && (text.ends_with([';', '}']) || (!goes_on && !text.is_empty())) {
            return line + 1;
        }
    }
    code.len()
}

/// Further in, or closing what was opened.
fn by_indent(code: &[&str], at: usize) -> usize {
    let own = indent(code[at]);
    let mut end = at + 1;
    for (line, text) in code.iter().enumerate().skip(at + 1) {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            continue;
        }
        let depth = indent(text);
        let closes = depth == own && (trimmed.starts_with([')', ']', '}']) || is_end(trimmed));
        if depth < own || (depth == own && !closes && !is_middle(trimmed)) {
            break;
        }
        end = line + 1;
        if closes && is_end(trimmed) {
            break;
        }
    }
    end
}

fn is_end(line: &str) -> bool {
    line.strip_prefix("end").is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

fn is_middle(line: &str) -> bool {
    ["rescue", "ensure", "else", "catch", "after", "when"].iter().any(|w| line.split([' ', ':']).next() == Some(w))
}

fn indent(line: &str) -> usize {
    line.bytes().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

#[cfg(test)]
mod tests {
    use crate::skills::tdd::pack::items::Source;
    use crate::skills::tdd::pack::lang::Lang;

    fn expect(lang: Lang, text: &str, expected: &[(&str, usize, usize)]) {
        let source = Source::new(lang, text.to_owned());
        let found: Vec<_> = source.items.iter().map(|i| (i.name.as_str(), i.lines.start + 1, i.lines.end)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn definitions_reach_from_their_comment_to_their_last_line() {
        expect(
            Lang::Rust,
            "use a::b;\n\n/// Doc.\n#[derive(Debug)]\npub struct A {\n    x: u8,\n}\n\nimpl A {\n    pub fn f<T>(\n        &self,\n    ) -> u8\n    where\n        T: Copy,\n    {\n        '}' as u8\n    }\n}\n\nconst N: &[u8] = &[\n    1,\n];\nfn g() {}\n",
            &[("A", 3, 7), ("A", 9, 18), ("f", 10, 17), ("N", 20, 22), ("g", 23, 23)],
        );
        expect(
            Lang::Python,
            "import a\n\nRATE = 3\n\n@dec\nclass A(B):\n    \"\"\"Doc\n    def no(self): ...\n    \"\"\"\n    def f(\n        self,\n    ):\n        x = 1\n\n        return x\n\n\ndef g():\n    pass\n",
            &[("RATE", 3, 3), ("A", 5, 15), ("f", 10, 15), ("g", 18, 19)],
        );
        expect(
            Lang::Node,
            "import a from 'a';\n\nexport class A {\n  constructor(x) {\n    this.x = x;\n  }\n\n  f() {\n    if (this.x) {\n      return `}`;\n    }\n  }\n}\n\nexport const g = (a) =>\n  a + 1;\n",
            &[("A", 3, 13), ("constructor", 4, 6), ("f", 8, 12), ("g", 15, 16)],
        );
        expect(
            Lang::Go,
            "package a\n\n// F does.\nfunc F(a int) (int, error) {\n\treturn a, nil\n}\n\nfunc (t *T) G() {}\n",
            &[("F", 3, 6), ("G", 8, 8)],
        );
        expect(
            Lang::Ruby,
            "module A\n  class B\n    def f(x)\n      x.each do |y|\n        y\n      end\n    rescue E\n      1\n    end\n  end\nend\n",
            &[("A", 1, 11), ("B", 2, 10), ("f", 3, 9)],
        );
        expect(
            Lang::Elixir,
            "defmodule A.B do\n  @doc \"x\"\n  def f(x) do\n    x\n  end\n\n  def g(x),\n    do: x\nend\n",
            &[("A.B", 1, 9), ("f", 2, 5), ("g", 7, 8)],
        );
    }
}
