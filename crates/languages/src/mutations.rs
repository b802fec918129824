//! Small syntactic mutations of code: one operator, constant, condition, statement or call changed. Grammars name these
//! nodes alike, so one walk over the tree serves all languages.

use std::ops::Range;
use std::path::Path;

use tree_sitter::Node;

use super::{Language, SyntaxTree};

/// A file with more mutations than this is not a small change.
const MAX_MUTATIONS: usize = 2_000;

/// Operators and their replacements.
const OPERATORS: &[(&str, &str)] = &[
    ("<=", "<"),
    (">=", ">"),
    ("<", "<="),
    (">", ">="),
    ("==", "!="),
    ("!=", "=="),
    ("===", "!=="),
    ("!==", "==="),
    ("&&", "||"),
    ("||", "&&"),
    ("and", "or"),
    ("or", "and"),
    ("+", "-"),
    ("-", "+"),
    ("*", "+"),
    ("/", "*"),
    ("//", "*"),
    ("%", "+"),
    ("<>", "++"),
];

/// What a mutation changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MutationKind {
    Operator,
    Constant,
    Condition,
    Statement,
    Arguments,
    ReturnValue,
}

/// A replacement in a source file that changes what the code does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation {
    pub kind: MutationKind,
    /// From 1.
    pub line: usize,
    /// Byte range.
    pub range: Range<usize>,
    pub replacement: String,
}

impl Mutation {
    /// The source with this mutation.
    pub fn apply(&self, source: &str) -> String {
        format!(
            "{}{}{}",
            &source[..self.range.start],
            self.replacement,
            &source[self.range.end..]
        )
    }

    /// The first mutated line before and after.
    pub fn line_diff(&self, source: &str) -> (String, String) {
        let line = |text: &str| {
            let line = text.lines().nth(self.line - 1).unwrap_or_default();
            line.trim().to_owned()
        };
        (line(source), line(&self.apply(source)))
    }
}

/// All mutations of a file, in source order. Empty if the language is unknown or the file cannot be parsed.
pub fn mutations(path: &Path, source: &str) -> Vec<Mutation> {
    let parsed = Language::of_path(path)
        .and_then(|language| Some((language, language.parse(path, source)?)));
    let Some((language, tree)) = parsed else {
        return Vec::new();
    };
    let finder = MutationFinder {
        tree: &tree,
        words: LanguageWords::of(language),
    };
    let mut found = Vec::new();
    let mut cursor = tree.root().walk();
    loop {
        if found.len() >= MAX_MUTATIONS {
            break;
        }
        let node = cursor.node();
        if let Some((kind, range, replacement)) = finder.mutate(node) {
            found.push(Mutation {
                kind,
                line: source[..range.start].matches('\n').count() + 1,
                range,
                replacement,
            });
        }
        if !tree.is_opaque(node) && !is_import(node) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                found.sort_by_key(|mutation| mutation.range.start);
                return found;
            }
        }
    }
    found
}

/// The words in which languages differ.
struct LanguageWords {
    not: &'static str,
    /// A statement that does nothing, where a block must not be empty.
    empty_statement: &'static str,
    /// A value that can be returned everywhere; `None` where the compiler checks its type.
    nothing: Option<&'static str>,
}

impl LanguageWords {
    fn of(language: &Language) -> Self {
        let (not, empty_statement, nothing) = match language.name {
            "python" => ("not ", "pass", Some("None")),
            "elixir" => ("not ", "", None),
            "javascript" => ("!", "", Some("undefined")),
            "ruby" => ("!", "nil", Some("nil")),
            _ => ("!", "", None),
        };
        Self {
            not,
            empty_statement,
            nothing,
        }
    }
}

struct MutationFinder<'t> {
    tree: &'t SyntaxTree<'t>,
    words: LanguageWords,
}

impl MutationFinder<'_> {
    fn mutate(&self, node: Node<'_>) -> Option<(MutationKind, Range<usize>, String)> {
        let text = self.tree.text(node);
        let range = node.byte_range();
        let parent = node.parent()?;
        if is_condition(node, parent) {
            let not = self.words.not;
            let negated = if text.starts_with('(') && text.ends_with(')') {
                format!("({not}{text})")
            } else {
                format!("{not}({text})")
            };
            return Some((MutationKind::Condition, range, negated));
        }
        let kind = node.kind();
        if !node.is_named() && is_binary(parent) {
            let (_, other) = OPERATORS.iter().find(|(from, _)| *from == text)?;
            return Some((MutationKind::Operator, range, (*other).to_owned()));
        }
        if let Some(other) = other_constant(node, text) {
            return Some((MutationKind::Constant, range, other));
        }
        if kind == "return_statement" || (kind == "return" && node.is_named()) {
            let value = node.named_child(0)?;
            let nothing = self.words.nothing?;
            let is_nothing = self.tree.text(value) == nothing;
            return (!is_nothing).then(|| {
                (
                    MutationKind::ReturnValue,
                    value.byte_range(),
                    nothing.to_owned(),
                )
            });
        }
        if matches!(kind, "arguments" | "argument_list") {
            let (first, second) = (node.named_child(0)?, node.named_child(1)?);
            let (a, b) = (self.tree.text(first), self.tree.text(second));
            let is_plain =
                |n: Node<'_>| !n.kind().contains("keyword") && !n.kind().contains("pair");
            let swaps = node.named_child_count() == 2
                && a != b
                && is_plain(first)
                && is_plain(second)
                && first.end_byte() <= second.start_byte();
            return swaps.then(|| {
                let between = &self.tree.source()[first.end_byte()..second.start_byte()];
                let range = first.start_byte()..second.end_byte();
                (MutationKind::Arguments, range, format!("{b}{between}{a}"))
            });
        }
        // A statement whose value is not used: a call or an assignment. A literal alone is a docstring.
        let is_statement = kind == "expression_statement"
            && parent.kind() != "source_file"
            && node.named_child(0).is_some_and(|child| {
                let kind = child.kind();
                kind.contains("call") || kind.contains("assignment") || kind.contains("macro")
            });
        is_statement.then(|| {
            (
                MutationKind::Statement,
                range,
                self.words.empty_statement.to_owned(),
            )
        })
    }
}

fn is_binary(parent: Node<'_>) -> bool {
    let kind = parent.kind();
    kind.contains("binary") || kind == "comparison_operator" || kind == "boolean_operator"
}

/// The condition of a branch or loop that can be negated; `if let` cannot.
fn is_condition(node: Node<'_>, parent: Node<'_>) -> bool {
    node.is_named()
        && parent.child_by_field_name("condition") == Some(node)
        && !node.kind().contains("let")
        && !node.kind().contains("declaration")
}

fn other_constant(node: Node<'_>, text: &str) -> Option<String> {
    if node.named_child_count() > 0 {
        return None;
    }
    match text {
        "true" => return Some(String::from("false")),
        "false" => return Some(String::from("true")),
        "True" => return Some(String::from("False")),
        "False" => return Some(String::from("True")),
        _ => {}
    }
    let kind = node.kind();
    let is_number = node.is_named()
        && (kind.contains("integer") || kind.contains("int_literal") || kind.contains("number"));
    if !is_number {
        return None;
    }
    let digits = text.replace('_', "");
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    // Hexadecimal numbers and fractions are left alone.
    if number.is_empty() || suffix.starts_with(['x', 'b', 'o', '.', 'e']) {
        return None;
    }
    Some(format!(
        "{}{suffix}",
        number.parse::<u64>().ok()?.checked_add(1)?
    ))
}

fn is_import(node: Node<'_>) -> bool {
    let kind = node.kind();
    kind.contains("import") || kind == "use_declaration" || kind == "attribute_item"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, source: &str) -> Vec<String> {
        mutations(Path::new(path), source)
            .iter()
            .map(|mutation| {
                let (before, after) = mutation.line_diff(source);
                format!("{before} => {after}")
            })
            .collect()
    }

    #[test]
    fn each_kind_is_found_in_python() {
        let source = "def f(a, b):\n    \"\"\"a + b\"\"\"\n    if a <= 3 and b:\n        log(a, b)\n    return a + b\n";
        assert_eq!(
            texts("f.py", source),
            [
                "if a <= 3 and b: => if not (a <= 3 and b):",
                "if a <= 3 and b: => if a < 3 and b:",
                "if a <= 3 and b: => if a <= 4 and b:",
                "if a <= 3 and b: => if a <= 3 or b:",
                "log(a, b) => pass",
                "log(a, b) => log(b, a)",
                "return a + b => return None",
                "return a + b => return a - b",
            ]
        );
    }

    #[test]
    fn every_language_has_operators_and_constants() {
        for (path, source) in [
            ("a.rs", "fn f(a: i32) -> bool { a + 1 > 2 }"),
            ("a.js", "function f(a) { return a + 1 > 2 }"),
            ("a.ts", "function f(a: number) { return a + 1 > 2 }"),
            ("a.go", "package a\nfunc f(a int) bool { return a+1 > 2 }"),
            ("a.rb", "def f(a)\n  a + 1 > 2\nend"),
            ("a.ex", "defmodule A do\n  def f(a), do: a + 1 > 2\nend"),
            (
                "A.java",
                "class A { boolean f(int a) { return a + 1 > 2; } }",
            ),
            ("a.cpp", "bool f(int a) { return a + 1 > 2; }"),
        ] {
            let found = mutations(Path::new(path), source);
            let count = |kind| found.iter().filter(|m| m.kind == kind).count();
            assert_eq!(count(MutationKind::Operator), 2, "{path}: {found:#?}");
            assert_eq!(count(MutationKind::Constant), 2, "{path}: {found:#?}");
        }
    }

    #[test]
    fn types_imports_and_texts_stay() {
        let source = "use a::b;\nfn f(v: Vec<u8>, w: [u8; N]) -> &'static str { \"a + 1\" }";
        assert_eq!(texts("a.rs", source), <[String; 0]>::default());
        assert!(texts("a.txt", "1 + 1").is_empty());
    }

    #[test]
    fn conditions_in_parentheses_stay_in_them() {
        assert_eq!(
            texts("a.js", "if (a) { b() }")[0],
            "if (a) { b() } => if (!(a)) { b() }"
        );
        assert_eq!(
            texts("a.rs", "fn f() { if a { b() } }")[0],
            "fn f() { if a { b() } } => fn f() { if !(a) { b() } }"
        );
        assert!(texts("a.rs", "fn f() { if let Some(x) = y { x } }").is_empty());
    }
}
