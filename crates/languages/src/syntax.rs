//! Parses a file into a syntax tree and runs queries on it. Only this file uses the tree-sitter parser directly. Parsing
//! and queries are bounded and never panic, whatever the text is.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use streaming_iterator::StreamingIterator as _;
use tree_sitter::{Node, ParseOptions, Parser, Query, QueryCursor, QueryCursorOptions, Tree};

use super::{Dialect, QuerySet};

/// Larger files are data or generated code.
const MAX_SOURCE_BYTES: usize = 4 << 20;
/// Limit for the matches of one query.
const MAX_MATCHES: usize = 50_000;
/// Limit for unfinished matches during a walk. Only text that is meant to exhaust the parser exceeds it.
const MAX_OPEN_MATCHES: u32 = 10_000;
/// Far longer than the largest normal file takes.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A query for one dialect, compiled on first use.
pub struct SyntaxQuery {
    text: &'static str,
    compiled: OnceLock<Query>,
}

impl SyntaxQuery {
    pub(super) const fn new(text: &'static str) -> Self {
        Self {
            text,
            compiled: OnceLock::new(),
        }
    }

    fn compiled(&self, grammar: fn() -> tree_sitter::Language) -> &Query {
        self.compiled.get_or_init(|| {
            Query::new(&grammar(), self.text).expect("a query that a test of `languages` compiles")
        })
    }
}

impl fmt::Debug for SyntaxQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// A source file and its syntax tree, as far as it could be parsed.
pub struct SyntaxTree<'s> {
    source: &'s str,
    pub(super) dialect: &'static Dialect,
    tree: Tree,
}

/// One match of a query pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryMatch<'s> {
    /// The index of the pattern in the query, counted from 0.
    pub pattern: usize,
    /// In source order.
    pub captures: Vec<QueryCapture<'s>>,
    /// The properties that the pattern sets: `(#set! name "default")`.
    pub settings: Vec<(&'static str, &'static str)>,
}

/// A captured part of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryCapture<'s> {
    /// Without the `@`.
    pub name: &'static str,
    /// Byte range.
    pub range: Range<usize>,
    /// The first line, counted from 0.
    pub line: usize,
    pub text: &'s str,
}

impl<'s> QueryMatch<'s> {
    /// The first capture of this name.
    pub fn get(&self, name: &str) -> Option<&QueryCapture<'s>> {
        self.captures.iter().find(|capture| capture.name == name)
    }

    /// The range of the first capture of this name.
    pub fn range(&self, name: &str) -> Option<Range<usize>> {
        self.get(name).map(|capture| capture.range.clone())
    }

    pub fn setting(&self, key: &str) -> Option<&'static str> {
        self.settings
            .iter()
            .find(|(k, _)| *k == key)
            .map(|(_, value)| *value)
    }
}

impl<'s> SyntaxTree<'s> {
    pub(super) fn parse(dialect: &'static Dialect, source: &'s str) -> Option<Self> {
        if source.len() > MAX_SOURCE_BYTES {
            return None;
        }
        let mut parser = Parser::new();
        parser.set_language(&(dialect.grammar)()).ok()?;
        let began = Instant::now();
        let mut progress = |_: &tree_sitter::ParseState| check_timeout(began);
        let options = ParseOptions::new().progress_callback(&mut progress);
        let bytes = source.as_bytes();
        let mut read = |at: usize, _: tree_sitter::Point| bytes.get(at..).unwrap_or_default();
        let tree = parser.parse_with_options(&mut read, None, Some(options))?;
        Some(Self {
            source,
            dialect,
            tree,
        })
    }

    pub fn source(&self) -> &'s str {
        self.source
    }

    /// Whether the file has syntax errors.
    pub fn has_errors(&self) -> bool {
        self.tree.root_node().has_error()
    }

    /// Where lines end at which spaces may be added without a change of meaning: not inside a text, a comment of several
    /// lines or a syntax error, and not after a backslash.
    pub fn ends_of_lines(&self) -> Vec<usize> {
        const TEXTS: &[&str] = &[
            "string",
            "text",
            "literal",
            "heredoc",
            "template",
            "char",
            "quoted",
            "sigil",
            "regex",
            "subshell",
            "comment",
            "jsx",
            "uninterpreted",
            "ERROR",
        ];
        let mut inside: Vec<Range<usize>> = Vec::new();
        let mut cursor = self.tree.walk();
        'walk: loop {
            let node = cursor.node();
            let spans_lines = node.start_position().row != node.end_position().row;
            let is_text = TEXTS.iter().any(|text| node.kind().contains(text));
            if spans_lines && is_text {
                inside.push(node.byte_range());
            }
            if spans_lines && !is_text && cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    break 'walk;
                }
            }
        }
        let newlines = self.source.match_indices('\n').map(|(at, _)| at);
        newlines
            .filter(|at| {
                !self.source[..*at].ends_with(['\\', '\r'])
                    && !inside.iter().any(|text| text.contains(at))
            })
            .collect()
    }

    /// The ranges of the comments, in source order.
    pub fn comments(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut cursor = self.tree.walk();
        loop {
            let node = cursor.node();
            let is_comment = node.kind().contains("comment");
            if is_comment {
                found.push(node.byte_range());
            }
            if !is_comment && cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return found;
                }
            }
        }
    }

    /// The matches of a query, in source order and limited in number. Captures whose name begins with `_` are omitted.
    pub fn matches(
        &self,
        query: impl Fn(&'static QuerySet) -> &'static SyntaxQuery,
    ) -> Vec<QueryMatch<'s>> {
        let query = query(&self.dialect.queries).compiled(self.dialect.grammar);
        let mut found = Vec::new();
        self.walk_matches(query, |pattern, captures| {
            let captures = captures.iter().filter(|(name, _)| !name.starts_with('_'));
            let captures = captures.map(|(name, node)| QueryCapture {
                name,
                range: node.byte_range(),
                line: node.start_position().row,
                text: self.text(*node),
            });
            let settings = query.property_settings(pattern).iter();
            let settings = settings
                .filter_map(|p| Some((&*p.key, p.value.as_deref()?)))
                .collect();
            found.push(QueryMatch {
                pattern,
                captures: captures.collect(),
                settings,
            });
        });
        found
    }

    /// Like [`Self::matches`], but passes the nodes themselves and a lookup for the pattern's settings.
    pub(super) fn for_each_match<'t>(
        &'t self,
        query: impl Fn(&'static QuerySet) -> &'static SyntaxQuery,
        mut visit: impl FnMut(&[(&'static str, Node<'t>)], &dyn Fn(&str) -> Option<&'static str>),
    ) {
        let query = query(&self.dialect.queries).compiled(self.dialect.grammar);
        self.walk_matches(query, |pattern, captures| {
            let settings = query.property_settings(pattern);
            visit(captures, &|key| {
                settings.iter().find(|p| &*p.key == key)?.value.as_deref()
            });
        });
    }

    fn walk_matches<'t>(
        &'t self,
        query: &'static Query,
        mut visit: impl FnMut(usize, &[(&'static str, Node<'t>)]),
    ) {
        let names = query.capture_names();
        let mut cursor = QueryCursor::new();
        cursor.set_match_limit(MAX_OPEN_MATCHES);
        let began = Instant::now();
        let mut progress = |_: &tree_sitter::QueryCursorState| check_timeout(began);
        let options = QueryCursorOptions::new().progress_callback(&mut progress);
        let mut matches = cursor.matches_with_options(
            query,
            self.tree.root_node(),
            self.source.as_bytes(),
            options,
        );
        let mut remaining = MAX_MATCHES;
        while let Some(found) = matches.next() {
            let captures: Vec<_> = found
                .captures()
                .iter()
                .map(|c| (names[c.index as usize], c.node))
                .collect();
            visit(found.pattern_index, &captures);
            remaining -= 1;
            if remaining == 0 {
                break;
            }
        }
    }

    pub(super) fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    /// Whether this is a comment or a string.
    pub(super) fn is_opaque(&self, node: Node<'_>) -> bool {
        self.dialect.opaque.contains(&node.kind())
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'s str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    /// String literals without their quotes, each with its first line, counted from 1.
    pub(super) fn texts(&self) -> Vec<(usize, &'s str)> {
        let mut found = Vec::new();
        let mut cursor = self.tree.walk();
        loop {
            let node = cursor.node();
            let kind = node.kind();
            let is_text = self.dialect.opaque.contains(&kind) && !kind.contains("comment");
            if is_text {
                let text = self
                    .text(node)
                    .trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '#');
                found.push((
                    node.start_position().row + 1,
                    text.trim_end_matches('#').trim_matches(['"', '\'', '`']),
                ));
            }
            if !is_text && cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return found;
                }
            }
        }
    }

    /// The text with comments and string contents replaced by spaces; all positions and line numbers stay the same.
    /// Interpolated expressions inside strings are kept, because they are code.
    pub fn masked(&self) -> String {
        let mut out = self.source.as_bytes().to_vec();
        let mut cursor = self.tree.walk();
        // For each level above the cursor: whether it is inside an opaque node. An interpolation resets it.
        let mut is_inside_opaque = vec![false];
        loop {
            let node = cursor.node();
            let is_opaque = match is_inside_opaque.last() {
                Some(true) => !is_interpolation(node.kind()),
                _ => self.dialect.opaque.contains(&node.kind()),
            };
            if is_opaque && node.child_count() == 0 {
                blank(&mut out, node.byte_range());
            } else if is_opaque {
                // The text between the children of a string has no node of its own.
                let mut from = node.start_byte();
                for i in 0..node.child_count() {
                    let Some(child) = node.child(i) else { break };
                    blank(&mut out, from..child.start_byte());
                    from = child.end_byte();
                }
                blank(&mut out, from..node.end_byte());
            }
            if cursor.goto_first_child() {
                is_inside_opaque.push(is_opaque);
                continue;
            }
            while !cursor.goto_next_sibling() {
                is_inside_opaque.pop();
                if !cursor.goto_parent() {
                    return String::from_utf8(out).unwrap_or_else(|e| {
                        String::from_utf8_lossy(e.as_bytes()).replace('\u{fffd}', " ")
                    });
                }
            }
        }
    }
}

fn is_interpolation(kind: &str) -> bool {
    matches!(
        kind,
        "interpolation" | "template_substitution" | "string_interpolation"
    )
}

fn blank(out: &mut [u8], range: Range<usize>) {
    for byte in out.get_mut(range).unwrap_or_default() {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

impl fmt::Debug for SyntaxTree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tree.root_node().to_sexp())
    }
}

fn check_timeout(began: Instant) -> ControlFlow<()> {
    if began.elapsed() > TIMEOUT {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{LANGUAGES, Language};

    fn defined(file: &str, source: &str) -> Vec<String> {
        let path = Path::new(file);
        let tree = Language::of_path(path)
            .expect("a language")
            .parse(path, source)
            .expect("reads");
        let name = |m: &super::QueryMatch<'_>| {
            m.get("name")
                .map(|n| n.text)
                .or(m.setting("name"))
                .map(str::to_owned)
        };
        tree.matches(|q| &q.definitions)
            .iter()
            .filter_map(name)
            .collect()
    }

    #[test]
    fn definitions_are_found_in_broken_file() {
        for (file, source, expected) in [
            (
                "a.rs",
                "fn a() { \"fn b() {}\" } // fn c() {}\nimpl X<u8> { fn d(&self) {} ",
                vec!["a", "X", "d"],
            ),
            (
                "a.py",
                "@x\ndef a():\n    b = 1\nC = 'def d(): pass'\nclass E(",
                vec!["a", "a", "C"],
            ),
            (
                "a.js",
                "exports.a = () => 1;\nfunction b() { const c = 1 }\nconst d = require('d')",
                vec!["a", "b"],
            ),
            (
                "a.ts",
                "export default class A {}\nexport interface B { c(): void }",
                vec!["A", "A", "B", "B", "c"],
            ),
            (
                "a.go",
                "package p\nfunc (r *T[int]) A() {}\nvar b = `func C() {}`",
                vec!["A", "b", "b"],
            ),
            (
                "a.rb",
                "class A::B\n  def c?; end\n  D = 1\nend",
                vec!["B", "c?", "D"],
            ),
            (
                "a.ex",
                "defmodule A.B do\n  defstruct [:x]\n  def c(x) when x > 1, do: x\nend",
                vec!["A.B", "__struct__", "c"],
            ),
        ] {
            assert_eq!(defined(file, source), expected, "{file}");
        }
    }

    #[test]
    fn only_strings_and_comments_are_masked() {
        for (file, text, kept) in [
            (
                "a.rs",
                "let a = \"{\"; // }\nfn b<'a>(c: char) { '{' }",
                "let a =;fn b<'a>(c: char) { }",
            ),
            (
                "a.rs",
                "let r = r#\"a \" { \"#; /* /* { */ } */ x",
                "let r =; x",
            ),
            (
                "a.py",
                "a = '''\ndef no(): '''  # def\nb = 'it\\'s {'",
                "a =b =",
            ),
            ("a.py", "a = f'no {yes} no'", "a = {yes}"),
            (
                "a.js",
                "const a = `{${b}`; if (/[{\"]/.test(c)) {}",
                "const a =${b}; if (.test(c)) {}",
            ),
            ("a.go", "a := `{\n` + \"}\" // {", "a := +"),
            (
                "a.cpp",
                "auto a = R\"(})\"; // {\nchar b = '{';",
                "auto a =; char b =;",
            ),
            (
                "A.java",
                "/* no */ String a = \"{\"; // }\nchar b = '{';",
                "String a =; char b =;",
            ),
            ("a.rb", "=begin\ndef no\n=end\ndef yes # no", "def yes"),
            ("a.ex", "@doc \"\"\"\ndef no\n\"\"\"\ny", "@docy"),
        ] {
            let path = Path::new(file);
            let masked = Language::of_path(path)
                .expect("a language")
                .parse(path, text)
                .expect("reads")
                .masked();
            assert_eq!(masked.len(), text.len());
            assert_eq!(masked.lines().count(), text.lines().count());
            let squeeze = |s: &str| s.split_whitespace().collect::<String>();
            assert_eq!(squeeze(&masked), squeeze(kept), "{text}");
        }
    }

    #[test]
    fn hostile_text_is_handled() {
        for language in LANGUAGES {
            for ending in language.dialects.iter().flat_map(|d| d.extensions) {
                let file = format!("a.{ending}");
                let path = Path::new(&file);
                for text in [
                    "(".repeat(4_000),
                    "\u{feff}\0\u{1b}[31m\"".repeat(500),
                    "if a { ".repeat(2_000),
                ] {
                    if let Some(tree) = language.parse(path, &text) {
                        tree.matches(|q| &q.imports);
                        tree.definitions();
                        assert_eq!(tree.masked().len(), text.len());
                    }
                }
                assert!(
                    language
                        .parse(path, &" ".repeat(super::MAX_SOURCE_BYTES + 1))
                        .is_none()
                );
            }
        }
    }
}
