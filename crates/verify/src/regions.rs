//! Which parts of a Rust source file are tests: items under `#[cfg(test)]` and functions marked as tests.
//! They are sealed like test files; a file that cannot be parsed is sealed as a whole.

use std::ops::Range;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Meta};

/// The test parts of one source file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Regions {
    /// In bytes, in order, not overlapping; attributes and documentation belong to their item.
    pub tests: Vec<Range<usize>>,
    /// Modules for tests only whose text is in another file: `#[cfg(test)] mod helpers;`.
    pub elsewhere: Vec<String>,
}

impl Regions {
    /// The text of each region.
    pub fn texts<'s>(&self, source: &'s str) -> Vec<&'s str> {
        self.tests
            .iter()
            .filter_map(|r| source.get(r.clone()))
            .collect()
    }

    /// Everything that is not a test.
    pub fn rest(&self, source: &str) -> String {
        let mut rest = String::with_capacity(source.len());
        let mut at = 0;
        for region in &self.tests {
            rest.push_str(source.get(at..region.start).unwrap_or_default());
            at = region.end;
        }
        rest.push_str(source.get(at..).unwrap_or_default());
        rest
    }
}

/// Did an edit leave the tests of a Rust file alone?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameTests {
    Same,
    Differ,
    /// One of the two versions cannot be parsed, so nothing in it may be changed.
    CannotTell,
}

/// Compares the test regions of two versions of a file, byte for byte and in order. Modules of new tests may be added:
/// an author of code may write tests for it beside those that are there.
pub fn same_tests(before: &str, after: &str) -> SameTests {
    if before == after {
        return SameTests::Same;
    }
    match (rust_regions(before), rust_regions(after)) {
        (Some(was), Some(is)) if are_kept(&was.texts(before), &is.texts(after)) => SameTests::Same,
        (Some(_), Some(_)) => SameTests::Differ,
        _ => SameTests::CannotTell,
    }
}

/// All of the old regions in their order, and beside them new modules alone.
fn are_kept(was: &[&str], is: &[&str]) -> bool {
    let mut old = was.iter().peekable();
    let is_known_or_module =
        |region: &&str| old.next_if_eq(&region).is_some() || is_new_module(region);
    is.iter().all(is_known_or_module) && old.next().is_none()
}

fn is_new_module(region: &str) -> bool {
    let item = region
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("#[") && !line.starts_with("//"));
    item.is_some_and(|item| item.starts_with("mod ") && item.ends_with(['{', ';']))
}

/// The test regions of a file, or `None` if it is not Rust that can be parsed.
pub fn rust_regions(source: &str) -> Option<Regions> {
    with_parsed(source, |file| {
        let mut finder = Finder {
            regions: Regions::default(),
        };
        if file.attrs.iter().any(is_test_only) {
            finder.regions.tests.push(0..source.len());
        } else {
            finder.visit_file(file);
        }
        let mut regions = finder.regions;
        regions.tests.sort_by_key(|r| (r.start, r.end));
        // Without positions there is nothing to compare.
        let sane = regions
            .tests
            .iter()
            .all(|r| r.start < r.end && source.get(r.clone()).is_some());
        sane.then_some(regions)
    })?
}

/// Parses on a stack of its own, and only what is sure to fit there: the text comes from strangers, and a parser that
/// recurses too deep would end the whole process.
pub(super) fn with_parsed<T: Send>(
    source: &str,
    look: impl FnOnce(&syn::File) -> T + Send,
) -> Option<T> {
    const STACK: usize = 128 * 1024 * 1024;
    // A byte order mark or a `#!` line is cut off by the parser and would shift every position.
    let shifts =
        source.starts_with('\u{feff}') || (source.starts_with("#!") && !source.starts_with("#!["));
    if shifts || source.len() > 1024 * 1024 {
        return None;
    }
    std::thread::scope(|scope| {
        let parse = || {
            let tokens: TokenStream = source.parse().ok()?;
            is_shallow(tokens.clone()).then_some(())?;
            Some(look(&syn::parse2(tokens).ok()?))
        };
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, parse)
            .ok()?
            .join()
            .ok()?
    })
}

/// The parser goes one step deeper per token at most, and comes back at a `;`, a `,` or the end of a block.
fn is_shallow(tokens: TokenStream) -> bool {
    const DEEPEST: usize = 5_000;
    let mut open = vec![(tokens.into_iter().peekable(), 0_usize, 0_usize)];
    while let Some((tokens, above, here)) = open.last_mut() {
        let Some(token) = tokens.next() else {
            open.pop();
            continue;
        };
        *here += 1;
        if *above + *here > DEEPEST {
            return false;
        }
        let goes_on = |next: Option<&TokenTree>| matches!(next, Some(TokenTree::Ident(word)) if word == "else");
        match token {
            TokenTree::Punct(mark) if matches!(mark.as_char(), ';' | ',') => *here = 0,
            TokenTree::Group(group) => {
                let inside = *above + *here;
                if group.delimiter() == Delimiter::Brace && !goes_on(tokens.peek()) {
                    *here = 0;
                }
                open.push((group.stream().into_iter().peekable(), inside, 0));
            }
            _ => {}
        }
    }
    true
}

struct Finder {
    regions: Regions,
}

impl Finder {
    /// Notes the node if its attributes say that it is there for tests only.
    fn takes(&mut self, attributes: &[Attribute], node: &dyn Fn() -> proc_macro2::Span) -> bool {
        if !attributes
            .iter()
            .any(|a| is_test_only(a) || is_test_marker(a))
        {
            return false;
        }
        self.regions.tests.push(node().byte_range());
        true
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !self.takes(item_attributes(item), &|| item.span()) {
            visit::visit_item(self, item);
        } else if let syn::Item::Mod(module) = item
            && module.content.is_none()
        {
            self.regions.elsewhere.push(module.ident.to_string());
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes: &[Attribute] = match item {
            syn::ImplItem::Const(i) => &i.attrs,
            syn::ImplItem::Fn(i) => &i.attrs,
            syn::ImplItem::Type(i) => &i.attrs,
            syn::ImplItem::Macro(i) => &i.attrs,
            _ => &[],
        };
        if !self.takes(attributes, &|| item.span()) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        let attributes: &[Attribute] = match item {
            syn::TraitItem::Const(i) => &i.attrs,
            syn::TraitItem::Fn(i) => &i.attrs,
            syn::TraitItem::Type(i) => &i.attrs,
            syn::TraitItem::Macro(i) => &i.attrs,
            _ => &[],
        };
        if !self.takes(attributes, &|| item.span()) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !self.takes(&local.attrs, &|| local.span()) {
            visit::visit_local(self, local);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !self.takes(&field.attrs, &|| field.span()) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, value: &'ast syn::FieldValue) {
        if !self.takes(&value.attrs, &|| value.span()) {
            visit::visit_field_value(self, value);
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if !self.takes(&variant.attrs, &|| variant.span()) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !self.takes(&arm.attrs, &|| arm.span()) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_expr_block(&mut self, block: &'ast syn::ExprBlock) {
        if !self.takes(&block.attrs, &|| block.span()) {
            visit::visit_expr_block(self, block);
        }
    }
}

fn item_attributes(item: &syn::Item) -> &[Attribute] {
    use syn::Item;
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::ExternCrate(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::ForeignMod(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::TraitAlias(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Union(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// `#[cfg(test)]`, `#[cfg(all(test, unix))]`, `#[cfg(any(test, fuzzing))]`, but not `#[cfg(not(test))]`.
fn is_test_only(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else {
        return false;
    };
    list.path.is_ident("cfg")
        && list
            .parse_args::<Meta>()
            .is_ok_and(|condition| names_test(&condition))
}

fn names_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") || list.path.is_ident("any") => {
            let parser = syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated;
            list.parse_args_with(parser)
                .is_ok_and(|conditions| conditions.iter().any(names_test))
        }
        Meta::List(_) | Meta::NameValue(_) => false,
    }
}

/// `#[test]`, `#[tokio::test]`, `#[rstest]` and their kin.
fn is_test_marker(attribute: &Attribute) -> bool {
    let last = attribute
        .path()
        .segments
        .last()
        .map(|s| s.ident.to_string());
    matches!(
        last.as_deref(),
        Some("test" | "rstest" | "test_case" | "quickcheck" | "wasm_bindgen_test" | "test_log")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r##"//! Adds.
pub fn add(a: i32, b: i32) -> i32 { a + b }
const TRAP: &str = r#"#[cfg(test)] mod fake { }"#; // #[cfg(test)] mod comment {}
#[cfg(not(test))]
fn real() {}
#[cfg(test)]
mod helpers;
impl Thing<{ 1 + 1 }> {
    #[cfg(all(test, unix))]
    fn only_here(&self) {}
    fn kept(&self) {}
}
#[cfg(test)]
impl From<[u8; { 3 }]> for Thing<2> where Self: Sized { fn from(_: [u8; 3]) -> Self { todo!() } }
/// Documentation belongs to it.
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn adds() { assert_eq!(add(1, 2), 3, "}}{{"); }
}
#[tokio::test]
async fn outside() {}
struct Thing<const N: usize>;
"##;

    #[test]
    fn tests_are_found_wherever_they_hide() {
        let regions = rust_regions(FILE).expect("parses");
        let texts = regions.texts(FILE);
        assert_eq!(texts.len(), 5, "{texts:#?}");
        assert_eq!(texts[0], "#[cfg(test)]\nmod helpers;");
        assert_eq!(
            texts[1],
            "#[cfg(all(test, unix))]\n    fn only_here(&self) {}"
        );
        assert!(
            texts[2].starts_with("#[cfg(test)]\nimpl From") && texts[2].ends_with("todo!() } }")
        );
        assert!(texts[3].starts_with("/// Documentation") && texts[3].ends_with("\"}}{{\"); }\n}"));
        assert!(texts[4].starts_with("#[tokio::test]"));
        assert_eq!(regions.elsewhere, ["helpers"]);
        let rest = regions.rest(FILE);
        assert!(rest.contains("mod fake") && rest.contains("fn kept") && !rest.contains("fn adds"));
    }

    #[test]
    fn code_may_change_and_tests_may_not() {
        let edit = |from: &str, to: &str| same_tests(FILE, &FILE.replace(from, to));
        assert_eq!(edit("{ a + b }", "{ b + a } // é"), SameTests::Same);
        assert_eq!(edit("add(1, 2), 3", "add(1, 2), 4"), SameTests::Differ);
        assert_eq!(
            edit("#[test]\n", "#[test]\n    #[ignore]\n"),
            SameTests::Differ
        );
        assert_eq!(
            edit("async fn outside() {}", "async fn outside() { }"),
            SameTests::Differ
        );
        assert_eq!(
            edit("struct Thing", "#[cfg(test)] fn more() {}\nstruct Thing"),
            SameTests::Differ
        );
        assert_eq!(
            edit("#[cfg(test)]\nmod tests", "mod tests"),
            SameTests::Differ
        );
        assert_eq!(
            edit(
                "struct Thing",
                "#[cfg(test)]\nmod more {\n    fn a() {}\n}\nstruct Thing"
            ),
            SameTests::Same
        );
        assert_eq!(edit("{ a + b }", "{ a + b"), SameTests::CannotTell);
        assert_eq!(same_tests("not rust", "not rust"), SameTests::Same);
    }

    #[test]
    fn a_file_for_tests_only_is_one_region() {
        let source = "#![cfg(test)]\nfn a() {}\n";
        assert_eq!(
            rust_regions(source).expect("parses").texts(source),
            [source]
        );
    }

    #[test]
    fn what_shifts_positions_or_exhausts_the_parser_is_not_parsed() {
        assert_eq!(rust_regions("\u{feff}fn a() {}"), None);
        assert_eq!(rust_regions("#!/usr/bin/env run\nfn a() {}"), None);
        for (one, other) in [
            ("(", ")"),
            ("!", ""),
            ("- ", ""),
            ("a = ", ""),
            ("[", "]"),
            ("{", "}"),
            ("|| ", ""),
        ] {
            let deep = format!(
                "fn a() {{ {}1{} }}",
                one.repeat(100_000),
                other.repeat(100_000)
            );
            assert_eq!(rust_regions(&deep), None, "{one}");
        }
        let chain = format!("fn a() {{ {} {{}} }}", "if x {} else ".repeat(20_000));
        assert_eq!(rust_regions(&chain), None);
    }

    #[test]
    fn what_is_long_but_not_deep_is_parsed() {
        let long =
            "pub fn f(a: i32) -> i32 { let b = a + 1; if b > 2 { b } else { a } }\n".repeat(3_000);
        assert_eq!(
            rust_regions(&format!("{long}#[test]\nfn t() {{}}\n"))
                .expect("parses")
                .tests
                .len(),
            1
        );
        // As deep as it may get: the stack must hold.
        let deep = format!("fn a() {{ {}1 }}", "!".repeat(4_900));
        assert!(rust_regions(&deep).is_some());
        let deep = format!("fn a() {{ {}1{} }}", "(".repeat(2_000), ")".repeat(2_000));
        assert!(rust_regions(&deep).is_some());
    }

    proptest::proptest! {
        #[test]
        fn no_source_is_too_odd(text in super::super::garbage::garbage(FILE)) {
            if let Some(regions) = rust_regions(&text) {
                let inside: usize = regions.texts(&text).iter().map(|t| t.len()).sum();
                proptest::prop_assert_eq!(inside + regions.rest(&text).len(), text.len());
            }
        }
    }
}
