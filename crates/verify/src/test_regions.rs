//! Finds the test code in a Rust source file: items under `#[cfg(test)]` and functions marked as tests.
//! These regions are protected like test files. A file that cannot be parsed is protected as a whole.

use std::ops::Range;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Meta};

/// The test code of one source file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestRegions {
    /// Byte ranges in order, not overlapping. They include the attributes and documentation of the item.
    pub tests: Vec<Range<usize>>,
    /// Test-only modules in other files: `#[cfg(test)] mod helpers;`.
    pub external_modules: Vec<String>,
}

impl TestRegions {
    /// The text of each region.
    pub fn texts<'s>(&self, source: &'s str) -> Vec<&'s str> {
        self.tests
            .iter()
            .filter_map(|r| source.get(r.clone()))
            .collect()
    }

    /// The source without its test regions.
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

/// Whether an edit left the tests of a Rust file unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestRegionComparison {
    Same,
    Differ,
    /// One of the two versions cannot be parsed, so the edit must be rejected.
    Unparsable,
}

/// Compares the test regions of two versions of a file, byte for byte and in order. New test modules are allowed, because
/// the author of code may add tests for it.
pub fn same_tests(before: &str, after: &str) -> TestRegionComparison {
    if before == after {
        return TestRegionComparison::Same;
    }
    match (rust_regions(before), rust_regions(after)) {
        (Some(old), Some(new)) if are_kept(&old.texts(before), &new.texts(after)) => {
            TestRegionComparison::Same
        }
        (Some(_), Some(_)) => TestRegionComparison::Differ,
        _ => TestRegionComparison::Unparsable,
    }
}

/// Whether all old regions are kept in order and every other region is a new module.
fn are_kept(before: &[&str], after: &[&str]) -> bool {
    let mut old = before.iter().peekable();
    let is_known_or_module =
        |region: &&str| old.next_if_eq(&region).is_some() || is_new_module(region);
    after.iter().all(is_known_or_module) && old.next().is_none()
}

fn is_new_module(region: &str) -> bool {
    let item = region
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("#[") && !line.starts_with("//"));
    item.is_some_and(|item| item.starts_with("mod ") && item.ends_with(['{', ';']))
}

/// The test regions of a file, or `None` if it cannot be parsed as Rust.
pub fn rust_regions(source: &str) -> Option<TestRegions> {
    with_parsed(source, |file| {
        let mut finder = Finder {
            regions: TestRegions::default(),
        };
        if file.attrs.iter().any(is_test_only) {
            finder.regions.tests.push(0..source.len());
        } else {
            finder.visit_file(file);
        }
        let mut regions = finder.regions;
        regions.tests.sort_by_key(|r| (r.start, r.end));
        // Without valid positions there is nothing to compare.
        let is_valid = regions
            .tests
            .iter()
            .all(|r| r.start < r.end && source.get(r.clone()).is_some());
        is_valid.then_some(regions)
    })?
}

/// Parses in a thread with a large stack and refuses input that could overflow it. The text is untrusted, and a stack
/// overflow would abort the whole process.
pub(super) fn with_parsed<T: Send>(
    source: &str,
    visit: impl FnOnce(&syn::File) -> T + Send,
) -> Option<T> {
    const STACK_BYTES: usize = 128 * 1024 * 1024;
    // The parser strips a byte order mark or a `#!` line, which would shift every position.
    let shifts_positions =
        source.starts_with('\u{feff}') || (source.starts_with("#!") && !source.starts_with("#!["));
    if shifts_positions || source.len() > 1024 * 1024 {
        return None;
    }
    std::thread::scope(|scope| {
        let parse = || {
            let tokens: TokenStream = source.parse().ok()?;
            is_shallow(tokens.clone()).then_some(())?;
            Some(visit(&syn::parse2(tokens).ok()?))
        };
        std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, parse)
            .ok()?
            .join()
            .ok()?
    })
}

/// Bounds the parser's recursion: it goes at most one level deeper per token, and returns at a `;`, a `,` or the end of a
/// block.
fn is_shallow(tokens: TokenStream) -> bool {
    const MAX_DEPTH: usize = 5_000;
    let mut open = vec![(tokens.into_iter().peekable(), 0_usize, 0_usize)];
    while let Some((tokens, above, here)) = open.last_mut() {
        let Some(token) = tokens.next() else {
            open.pop();
            continue;
        };
        *here += 1;
        if *above + *here > MAX_DEPTH {
            return false;
        }
        let is_else = |next: Option<&TokenTree>| matches!(next, Some(TokenTree::Ident(word)) if word == "else");
        match token {
            TokenTree::Punct(mark) if matches!(mark.as_char(), ';' | ',') => *here = 0,
            TokenTree::Group(group) => {
                let depth = *above + *here;
                if group.delimiter() == Delimiter::Brace && !is_else(tokens.peek()) {
                    *here = 0;
                }
                open.push((group.stream().into_iter().peekable(), depth, 0));
            }
            _ => {}
        }
    }
    true
}

struct Finder {
    regions: TestRegions,
}

impl Finder {
    /// Records the node if its attributes mark it as test code.
    fn record_if_test(
        &mut self,
        attributes: &[Attribute],
        node: &dyn Fn() -> proc_macro2::Span,
    ) -> bool {
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
        if !self.record_if_test(item_attributes(item), &|| item.span()) {
            visit::visit_item(self, item);
        } else if let syn::Item::Mod(module) = item
            && module.content.is_none()
        {
            self.regions.external_modules.push(module.ident.to_string());
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
        if !self.record_if_test(attributes, &|| item.span()) {
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
        if !self.record_if_test(attributes, &|| item.span()) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !self.record_if_test(&local.attrs, &|| local.span()) {
            visit::visit_local(self, local);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !self.record_if_test(&field.attrs, &|| field.span()) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, value: &'ast syn::FieldValue) {
        if !self.record_if_test(&value.attrs, &|| value.span()) {
            visit::visit_field_value(self, value);
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if !self.record_if_test(&variant.attrs, &|| variant.span()) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !self.record_if_test(&arm.attrs, &|| arm.span()) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_expr_block(&mut self, block: &'ast syn::ExprBlock) {
        if !self.record_if_test(&block.attrs, &|| block.span()) {
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

/// `#[test]`, `#[tokio::test]`, `#[rstest]` and similar.
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
    fn test_regions_are_found() {
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
        assert_eq!(regions.external_modules, ["helpers"]);
        let rest = regions.rest(FILE);
        assert!(rest.contains("mod fake") && rest.contains("fn kept") && !rest.contains("fn adds"));
    }

    #[test]
    fn only_code_outside_tests_may_change() {
        let edit = |from: &str, to: &str| same_tests(FILE, &FILE.replace(from, to));
        assert_eq!(
            edit("{ a + b }", "{ b + a } // é"),
            TestRegionComparison::Same
        );
        assert_eq!(
            edit("add(1, 2), 3", "add(1, 2), 4"),
            TestRegionComparison::Differ
        );
        assert_eq!(
            edit("#[test]\n", "#[test]\n    #[ignore]\n"),
            TestRegionComparison::Differ
        );
        assert_eq!(
            edit("async fn outside() {}", "async fn outside() { }"),
            TestRegionComparison::Differ
        );
        assert_eq!(
            edit("struct Thing", "#[cfg(test)] fn more() {}\nstruct Thing"),
            TestRegionComparison::Differ
        );
        assert_eq!(
            edit("#[cfg(test)]\nmod tests", "mod tests"),
            TestRegionComparison::Differ
        );
        assert_eq!(
            edit(
                "struct Thing",
                "#[cfg(test)]\nmod more {\n    fn a() {}\n}\nstruct Thing"
            ),
            TestRegionComparison::Same
        );
        assert_eq!(
            edit("{ a + b }", "{ a + b"),
            TestRegionComparison::Unparsable
        );
        assert_eq!(
            same_tests("not rust", "not rust"),
            TestRegionComparison::Same
        );
    }

    #[test]
    fn test_only_file_is_one_region() {
        let source = "#![cfg(test)]\nfn a() {}\n";
        assert_eq!(
            rust_regions(source).expect("parses").texts(source),
            [source]
        );
    }

    #[test]
    fn unsafe_input_is_not_parsed() {
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
    fn long_shallow_file_is_parsed() {
        let long =
            "pub fn f(a: i32) -> i32 { let b = a + 1; if b > 2 { b } else { a } }\n".repeat(3_000);
        assert_eq!(
            rust_regions(&format!("{long}#[test]\nfn t() {{}}\n"))
                .expect("parses")
                .tests
                .len(),
            1
        );
        // Close to the depth limit: the stack must be large enough.
        let deep = format!("fn a() {{ {}1 }}", "!".repeat(4_900));
        assert!(rust_regions(&deep).is_some());
        let deep = format!("fn a() {{ {}1{} }}", "(".repeat(2_000), ")".repeat(2_000));
        assert!(rust_regions(&deep).is_some());
    }

    proptest::proptest! {
        #[test]
        fn regions_and_rest_cover_the_source(text in super::super::garbage::garbage(FILE)) {
            if let Some(regions) = rust_regions(&text) {
                let inside: usize = regions.texts(&text).iter().map(|t| t.len()).sum();
                proptest::prop_assert_eq!(inside + regions.rest(&text).len(), text.len());
            }
        }
    }
}
