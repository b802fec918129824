//! A source file: its text, its code without strings and comments, its definitions and its
//! imports.

use std::cell::OnceCell;
use std::path::Path;

use supervisor_languages::{Definition, DefinitionKind, Import, Language};

/// Parsed lazily, because most files are only searched for words.
#[derive(Debug)]
pub(super) struct SourceFile {
    pub text: String,
    language: &'static Language,
    path: String,
    parsed: OnceCell<ParsedSource>,
}

#[derive(Debug)]
struct ParsedSource {
    masked: String,
    items: Vec<Definition>,
    imports: Vec<Import>,
}

impl SourceFile {
    pub(super) fn new(language: &'static Language, path: &str, text: String) -> Self {
        Self {
            text,
            language,
            path: path.to_owned(),
            parsed: OnceCell::new(),
        }
    }

    /// The text without comments and strings.
    pub(super) fn masked(&self) -> &str {
        &self.parsed().masked
    }

    pub(super) fn items(&self) -> &[Definition] {
        &self.parsed().items
    }

    pub(super) fn imports(&self) -> &[Import] {
        &self.parsed().imports
    }

    /// A file that cannot be parsed has no definitions.
    fn parsed(&self) -> &ParsedSource {
        self.parsed.get_or_init(
            || match self.language.parse(Path::new(&self.path), &self.text) {
                Some(tree) => ParsedSource {
                    masked: tree.masked(),
                    items: tree.definitions(),
                    imports: self.language.imports(&tree),
                },
                None => ParsedSource {
                    masked: self.text.clone(),
                    items: Vec::new(),
                    imports: Vec::new(),
                },
            },
        )
    }

    /// Cheap test whether the file could define this name.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.text.contains(name)
    }

    /// The outermost importable definitions of a name.
    pub(super) fn importable(&self, name: &str) -> Vec<&Definition> {
        let matches =
            |i: &&Definition| i.name == name && i.kind != DefinitionKind::Extension && !i.member;
        if !self.mentions(name) && name != "default" && name != "__struct__" {
            return Vec::new();
        }
        let mut found: Vec<&Definition> = self.items().iter().filter(matches).collect();
        let outermost = found.iter().map(|i| i.depth).min().unwrap_or(0);
        found.retain(|i| i.depth == outermost);
        found
    }

    /// The innermost definition that contains a line.
    pub(super) fn innermost_at(&self, line: usize) -> Option<&Definition> {
        self.items()
            .iter()
            .filter(|i| i.lines.contains(&line))
            .min_by_key(|i| i.lines.len())
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The words of a text that could be identifiers.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_ascii() && !is_word(c as u8))
        .filter(|w| w.starts_with(|c: char| !c.is_ascii_digit()) && w.len() > 1)
}
