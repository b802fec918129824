//! Names of types: go-to-symbol lands on the right thing at the first try, and the name is a noun.
//! A type without `pub` is private to its file and may share its name with another.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

/// Participles that do not end in `-ed`, and nouns that do.
const IRREGULAR: &str = include_str!("names/irregular.txt");

#[test]
fn no_type_name_stands_twice_unless_private_to_its_file() {
    let mut homes: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    let types = types_in_sources();
    for named in types.iter().filter(|named| !named.private) {
        homes
            .entry(named.name.clone())
            .or_default()
            .insert(named.home());
    }
    assert!(homes.len() > 500, "only {} types were found", homes.len());
    homes.retain(|_, files| files.len() > 1);
    let shared: Vec<_> = homes
        .iter()
        .map(|(name, files)| format!("{name}: {files:?}"))
        .collect();
    assert!(
        shared.is_empty(),
        "{} names stand for several types:\n{}",
        shared.len(),
        shared.join("\n")
    );
}

#[test]
fn no_type_name_is_a_bare_participle() {
    let bare: Vec<_> = types_in_sources()
        .into_iter()
        .filter(|named| is_bare_participle(&named.name))
        .map(|named| format!("{}: {}", named.name, named.file.display()))
        .collect();
    assert!(
        bare.is_empty(),
        "{} types are named by a participle, not a noun:\n{}",
        bare.len(),
        bare.join("\n")
    );
}

#[test]
fn participles_are_told_from_nouns() {
    for participle in ["Held", "Answered", "Begun", "Found", "Unread", "Kept"] {
        assert!(is_bare_participle(participle), "{participle}");
    }
    for noun in ["Seed", "Feed", "AcceptedWork", "Report", "NotFound", "Red"] {
        assert!(!is_bare_participle(noun), "{noun}");
    }
}

#[test]
fn types_for_tests_and_associated_types_do_not_count() {
    let source = "pub struct A; mod inside { pub(super) enum B {} } type C = (); \
                  trait D { type Params; } impl D for A { type Params = (); } \
                  #[cfg(test)] mod tests { pub struct E; } #[cfg(test)] pub struct F; fn body() { struct G; }";
    let mut collector = TypeCollector::new(Path::new("a.rs"));
    collector.visit_file(&syn::parse_file(source).unwrap());
    let names = |private| -> Vec<&str> {
        collector
            .types
            .iter()
            .filter(|t| t.private == private)
            .map(|t| t.name.as_str())
            .collect()
    };
    assert_eq!(
        (names(false), names(true)),
        (vec!["A", "B"], vec!["C", "D", "G"])
    );
}

fn is_bare_participle(name: &str) -> bool {
    let word = name.to_ascii_lowercase();
    let single = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
    let listed = |section: &str| {
        let list = IRREGULAR
            .split("[")
            .find_map(|part| part.strip_prefix(section)?.strip_prefix(']'));
        let list = list.unwrap_or_else(|| panic!("no section {section}"));
        list.split_whitespace()
            .any(|entry| entry == word || word.strip_prefix("un") == Some(entry))
    };
    single && (listed("participles") || word.ends_with("ed") && !listed("nouns"))
}

struct NamedType {
    name: String,
    file: PathBuf,
    private: bool,
}

impl NamedType {
    /// `no_view.rs` stands in for `view.rs` on other systems: one type, compiled from one of the two.
    fn home(&self) -> PathBuf {
        let file = self.file.file_name().unwrap().to_string_lossy();
        self.file.with_file_name(file.trim_start_matches("no_"))
    }
}

struct TypeCollector<'a> {
    file: &'a Path,
    types: Vec<NamedType>,
    /// Modules for tests only whose text is in another file.
    test_modules: Vec<String>,
}

impl<'a> TypeCollector<'a> {
    fn new(file: &'a Path) -> Self {
        Self {
            file,
            types: Vec::new(),
            test_modules: Vec::new(),
        }
    }
}

impl<'ast> Visit<'ast> for TypeCollector<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, visibility, name) = match item {
            syn::Item::Struct(item) => (&item.attrs, &item.vis, &item.ident),
            syn::Item::Enum(item) => (&item.attrs, &item.vis, &item.ident),
            syn::Item::Trait(item) => (&item.attrs, &item.vis, &item.ident),
            syn::Item::Type(item) => (&item.attrs, &item.vis, &item.ident),
            syn::Item::Union(item) => (&item.attrs, &item.vis, &item.ident),
            syn::Item::Mod(module) if is_for_tests(&module.attrs) => {
                return self.test_modules.push(module.ident.to_string());
            }
            other => return visit::visit_item(self, other),
        };
        if !is_for_tests(attributes) {
            let private = matches!(visibility, syn::Visibility::Inherited);
            self.types.push(NamedType {
                name: name.to_string(),
                file: self.file.to_owned(),
                private,
            });
        }
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    })
}

fn types_in_sources() -> Vec<NamedType> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut types, mut for_tests, mut dirs) = (Vec::new(), BTreeSet::new(), vec![src.clone()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let file = path.strip_prefix(&src).unwrap();
                let mut collector = TypeCollector::new(file);
                let parsed = syn::parse_file(&fs::read_to_string(&path).unwrap());
                collector.visit_file(
                    &parsed.unwrap_or_else(|error| panic!("{}: {error}", file.display())),
                );
                types.append(&mut collector.types);
                let modules = collector.test_modules.into_iter();
                for_tests.extend(
                    modules.map(|module| file.with_extension("").join(module).with_extension("rs")),
                );
            }
        }
    }
    types.retain(|named| !for_tests.contains(&named.file));
    types.sort_by(|a, b| (&a.name, &a.file).cmp(&(&b.name, &b.file)));
    types
}
