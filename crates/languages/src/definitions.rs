//! Finds the definitions in a file (functions, types, modules, constants) and the lines they span. Definitions inside
//! functions are ignored.

use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::Node;

use super::SyntaxTree;

/// A file with more definitions is probably generated, and its outline is not useful.
const MAX_DEFINITIONS: usize = 5_000;
/// How many nodes above a definition may belong to it.
const MAX_LEADING_NODES: usize = 40;

/// A definition. Lines count from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub name: String,
    pub kind: DefinitionKind,
    /// Includes the comments, attributes and decorators directly above it.
    pub lines: Range<usize>,
    /// The line with its name.
    pub at: usize,
    /// How many definitions enclose it.
    pub depth: usize,
    /// The enclosing definition, or the type that a method belongs to.
    pub owner: Option<String>,
    /// Belongs to a type, so it cannot be imported by its own name.
    pub member: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionKind {
    Function,
    Constant,
    /// A type; its members are definitions too.
    Type,
    /// A module inside a file.
    Module,
    /// Extends a type that is defined elsewhere: `impl`.
    Extension,
}

impl DefinitionKind {
    fn from_capture(capture: &str) -> Option<Self> {
        Some(match capture.strip_prefix("definition.")? {
            "function" => Self::Function,
            "constant" => Self::Constant,
            "type" => Self::Type,
            "module" => Self::Module,
            "extension" => Self::Extension,
            _ => return None,
        })
    }

    /// Whether it cannot have members.
    pub fn is_leaf(self) -> bool {
        matches!(self, Self::Function | Self::Constant)
    }
}

struct FoundDefinition<'s> {
    name: &'s str,
    kind: DefinitionKind,
    bytes: Range<usize>,
    lines: Range<usize>,
    at: usize,
    owner: Option<&'s str>,
}

impl SyntaxTree<'_> {
    /// The definitions of the file, in source order.
    pub fn definitions(&self) -> Vec<Definition> {
        // Several patterns may match one name: with and without `export`, a decorator or an enclosing declaration. The
        // widest match is the definition.
        let mut found: BTreeMap<(usize, &str), FoundDefinition<'_>> = BTreeMap::new();
        self.for_each_match(
            |q| &q.definitions,
            |captures, setting| {
                let named = captures
                    .iter()
                    .find(|(name, _)| *name == "name")
                    .map(|(_, node)| *node);
                let whole = captures
                    .iter()
                    .find_map(|(name, node)| Some((DefinitionKind::from_capture(name)?, *node)));
                let (Some((kind, whole)), Some(name)) =
                    (whole, named.map(|n| self.text(n)).or(setting("name")))
                else {
                    return;
                };
                let owner = captures
                    .iter()
                    .find(|(name, _)| *name == "owner")
                    .map(|(_, node)| self.text(*node));
                let at = named.unwrap_or(whole).start_position().row;
                let bytes = whole.byte_range();
                let key = (named.unwrap_or(whole).start_byte(), name);
                if found
                    .get(&key)
                    .is_none_or(|known| known.bytes.len() < bytes.len())
                    && found.len() < MAX_DEFINITIONS
                {
                    let lines = self.first_line(whole)..last_line(whole) + 1;
                    found.insert(
                        key,
                        FoundDefinition {
                            name,
                            kind,
                            bytes,
                            lines,
                            at,
                            owner,
                        },
                    );
                }
            },
        );
        let mut found: Vec<FoundDefinition<'_>> = found.into_values().collect();
        found.sort_by_key(|f| (f.bytes.start, usize::MAX - f.bytes.end));
        nest(&found)
    }

    /// The first line of a node, including the leading nodes directly above it.
    fn first_line(&self, node: Node<'_>) -> usize {
        let mut first = node.start_position().row;
        let mut above = node.prev_sibling();
        for _ in 0..MAX_LEADING_NODES {
            let Some(sibling) = above.filter(|s| self.dialect.leading.contains(&s.kind())) else {
                break;
            };
            // A comment that follows code on its line, or that has an empty line below it, belongs to something else.
            let last = last_line(sibling);
            let is_alone = sibling
                .prev_sibling()
                .is_none_or(|p| last_line(p) < sibling.start_position().row);
            if last + 1 < first || !is_alone {
                break;
            }
            first = first.min(sibling.start_position().row);
            above = sibling.prev_sibling();
        }
        first
    }
}

/// The last line of a node. Some nodes include the line break that ends them.
fn last_line(node: Node<'_>) -> usize {
    let end = node.end_position();
    if end.column == 0 && end.row > node.start_position().row {
        end.row - 1
    } else {
        end.row
    }
}

fn nest(found: &[FoundDefinition<'_>]) -> Vec<Definition> {
    let mut all: Vec<Definition> = Vec::new();
    let mut open: Vec<&FoundDefinition<'_>> = Vec::new();
    for one in found {
        while open
            .last()
            .is_some_and(|outer| outer.bytes.end <= one.bytes.start)
        {
            open.pop();
        }
        let parent = open.last().copied();
        if open.iter().any(|f| f.kind == DefinitionKind::Function) {
            continue;
        }
        let is_in_type = parent.is_some_and(|f| f.kind != DefinitionKind::Module);
        all.push(Definition {
            name: one.name.to_owned(),
            kind: one.kind,
            lines: one.lines.clone(),
            at: one.at,
            depth: open.len(),
            owner: one
                .owner
                .or(parent.map(|f| f.name))
                .map(|o| o.rsplit("::").next().unwrap_or(o).to_owned()),
            member: one.kind.is_leaf() && (one.owner.is_some() || is_in_type),
        });
        open.push(one);
    }
    all
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Language;

    fn expect(file: &str, text: &str, expected: &[(&str, usize, usize)]) {
        let path = Path::new(file);
        let tree = Language::of_path(path)
            .expect("a language")
            .parse(path, text)
            .expect("reads");
        let definitions = tree.definitions();
        let found: Vec<_> = definitions
            .iter()
            .map(|d| (d.name.as_str(), d.lines.start + 1, d.lines.end))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn definition_spans_comment_to_last_line() {
        expect(
            "a.rs",
            "use a::b;\n\n/// Doc.\n#[derive(Debug)]\npub struct A {\n    x: u8,\n}\n\nimpl A {\n    pub fn f<T>(\n        &self,\n    ) -> u8\n    where\n        T: Copy,\n    {\n        '}' as u8\n    }\n}\n\nconst N: &[u8] = &[\n    1,\n];\nfn g() {}\n",
            &[
                ("A", 3, 7),
                ("A", 9, 18),
                ("f", 10, 17),
                ("N", 20, 22),
                ("g", 23, 23),
            ],
        );
        expect(
            "a.py",
            "import a\n\nRATE = 3\n\n@dec\nclass A(B):\n    \"\"\"Doc\n    def no(self): ...\n    \"\"\"\n    def f(\n        self,\n    ):\n        x = 1\n\n        return x\n\n\ndef g():\n    pass\n",
            &[("RATE", 3, 3), ("A", 5, 15), ("f", 10, 15), ("g", 18, 19)],
        );
        expect(
            "a.js",
            "import a from 'a';\n\nexport class A {\n  constructor(x) {\n    this.x = x;\n  }\n\n  f() {\n    if (this.x) {\n      return `}`;\n    }\n  }\n}\n\nexport const g = (a) =>\n  a + 1;\n",
            &[
                ("A", 3, 13),
                ("constructor", 4, 6),
                ("f", 8, 12),
                ("g", 15, 16),
            ],
        );
        expect(
            "a.go",
            "package a\n\n// F does.\nfunc F(a int) (int, error) {\n\treturn a, nil\n}\n\nfunc (t *T) G() {}\n",
            &[("F", 3, 6), ("G", 8, 8)],
        );
        expect(
            "a.rb",
            "module A\n  class B\n    def f(x)\n      x.each do |y|\n        y\n      end\n    rescue E\n      1\n    end\n  end\nend\n",
            &[("A", 1, 11), ("B", 2, 10), ("f", 3, 9)],
        );
        expect(
            "a.ex",
            "defmodule A.B do\n  @doc \"x\"\n  def f(x) do\n    x\n  end\n\n  def g(x),\n    do: x\nend\n",
            &[("A.B", 1, 9), ("f", 2, 5), ("g", 7, 8)],
        );
    }

    #[test]
    fn only_definitions_are_found() {
        for (file, line, expected) in [
            ("a.rs", "pub async fn go<T>(t: T) {}", vec!["go"]),
            (
                "a.rs",
                "impl<'a, T: Fn() -> u8> fmt::Display for a::Money<T> {}",
                vec!["Money"],
            ),
            ("a.rs", "pub static mut N: u8 = 1;", vec!["N"]),
            ("a.rs", "mod x;", vec![]),
            ("a.rs", "fn f() { let fn_x = 1; fn inner() {} }", vec!["f"]),
            ("a.py", "async def go(a): pass", vec!["go"]),
            ("a.py", "RATE: int = 3", vec!["RATE"]),
            ("a.py", "def f():\n    x = 3", vec!["f"]),
            ("a.py", "if x == 3: pass", vec![]),
            ("a.js", "export default async function go() {}", vec!["go"]),
            ("a.js", "export const go = (a) => {};", vec!["go"]),
            ("a.js", "const { a } = require('a')", vec![]),
            ("a.js", "class A { total(a) {} }", vec!["A", "total"]),
            ("a.js", "exports.go = function (a) {}", vec!["go"]),
            ("a.js", "module.exports = { a, b }", vec![]),
            ("a.js", "export default {}", vec!["default"]),
            ("a.js", "export default go;", vec![]),
            (
                "a.js",
                "res.send = function send(body) { var chunk = body; }",
                vec!["send"],
            ),
            (
                "a.go",
                "package a\nfunc (i *Invoice[T]) Total() int {}",
                vec!["Total"],
            ),
            ("a.go", "package a\ntype Invoice struct {}", vec!["Invoice"]),
            (
                "a.rb",
                "class Billing::Invoice < Base\nend",
                vec!["Invoice"],
            ),
            ("a.rb", "def self.build(a)\nend", vec!["build"]),
            (
                "A.java",
                "class A<T> { static final int N = 3; A() {} int f() { int x = 1; return x; } }",
                vec!["A", "N", "A", "f"],
            ),
            (
                "A.java",
                "interface B { int g(); } record C(int x) {} enum D { E }",
                vec!["B", "g", "C", "D"],
            ),
            (
                "a.cpp",
                "template <typename T> class A { int f(); };\nint b::A::f() { int x = 1; return x; }",
                vec!["A", "f", "f"],
            ),
            (
                "a.cpp",
                "TEST(S, N) {}\nconst int K = 3;\nint g(int n);",
                vec!["K", "g"],
            ),
            ("a.rb", "RATE = 3", vec!["RATE"]),
            ("a.ex", "defmodule Shop.Cart do\nend", vec!["Shop.Cart"]),
            ("a.ex", "def total(a) when a > 1, do: a", vec!["total"]),
            ("a.ex", "defdelegate total(a), to: Other", vec![]),
        ] {
            let path = Path::new(file);
            let tree = Language::of_path(path)
                .expect("a language")
                .parse(path, line)
                .expect("reads");
            let names: Vec<String> = tree.definitions().into_iter().map(|d| d.name).collect();
            assert_eq!(names, expected, "{line}");
        }
    }
}
