//! Small projects, each with one thing that packing must not get wrong.

use std::path::PathBuf;

use supervisor::skills::tdd::pack::{self, PackRequest, Packed};
use supervisor::verify::Ecosystem;

struct Case<'a> {
    ecosystem: Ecosystem,
    files: &'a [(&'a str, &'a str)],
    /// The first file is the test.
    said: &'a str,
    also: &'a [&'a str],
    window: usize,
}

impl Case<'_> {
    fn pack(&self) -> Packed {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in self.files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (test_path, test_source) = self.files[0];
        let also: Vec<PathBuf> = self.also.iter().map(PathBuf::from).collect();
        let packed = pack::files(&PackRequest {
            root: root.path(),
            ecosystem: Some(self.ecosystem),
            test_path: test_path.as_ref(),
            test_source,
            failing_output: self.said,
            also: &also,
            window_bytes: self.window,
        });
        assert!(packed.text.len() <= self.window);
        packed
    }
}

fn case<'a>(ecosystem: Ecosystem, files: &'a [(&'a str, &'a str)]) -> Case<'a> {
    Case { ecosystem, files, said: "", also: &[], window: 20_000 }
}

#[test]
fn a_name_nobody_has_written_yet_leads_to_the_file_where_it_is_expected() {
    let packed = case(
        Ecosystem::Python,
        &[
            ("tests/test_cart.py", "from shop.cart import total_with_tax\n"),
            ("shop/cart.py", "RATE = 3\n\ndef total(x):\n    return x\n"),
            ("other/cart.py", "def total(x):\n    return 0\n"),
        ],
    )
    .pack();
    assert_eq!(packed.shown[..2], ["tests/test_cart.py", "shop/cart.py"].map(PathBuf::from));
    assert!(packed.text.contains("## shop/cart.py\n1| RATE = 3\n2| \n3| def total(x):\n"), "{}", packed.text);
}

#[test]
fn a_definition_larger_than_the_window_is_cut_and_the_cut_is_marked() {
    let body: String = (0..2_000).map(|i| format!("    let step_{i} = {i};\n")).collect();
    let source = format!("pub fn small() {{}}\n\npub fn giant() {{\n{body}}}\n");
    let files = [
        ("tests/t.rs", "use demo::{giant, small};\n"),
        ("src/lib.rs", source.as_str()),
        ("Cargo.toml", "[package]\nname = \"demo\"\n"),
    ];
    let mut case = case(Ecosystem::Rust, &files);
    case.window = 4_000;
    let packed = case.pack();
    assert!(packed.text.contains("## src/lib.rs (parts of 2004 lines)\n1| pub fn small() {}\n"), "{}", packed.text);
    assert!(packed.text.contains("\n3| pub fn giant() {\n4|     let step_0 = 0;\n"), "{}", packed.text);
    assert!(packed.text.contains("-2004 not shown\n"), "{}", packed.text);
}

#[test]
fn tests_inside_a_rust_file_come_with_the_code_around_them() {
    let packed = case(
        Ecosystem::Rust,
        &[
            (
                "src/price.rs",
                "use crate::money::Money;\npub fn net(m: Money) {}\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn t() { net(Money::default()) }\n}\n",
            ),
            ("src/lib.rs", "mod money;\nmod price;\n"),
            ("src/money.rs", "#[derive(Default)]\npub struct Money(u8);\n"),
            ("Cargo.toml", "[package]\nname = \"demo\"\n"),
        ],
    )
    .pack();
    assert_eq!(packed.shown[..2], ["src/price.rs", "src/money.rs"].map(PathBuf::from), "{}", packed.text);
}

#[test]
fn a_go_test_is_shown_its_package_and_the_methods_it_calls() {
    let filler: String = (0..900).map(|i| format!("func Filler{i}() int {{\n\treturn {i}\n}}\n\n")).collect();
    let source =
        format!("package calc\n\n{filler}type Sum struct{{}}\n\n{filler}func (s *Sum) Add(n int) {{\n\ts.n += n\n}}\n");
    let packed = case(
        Ecosystem::Go,
        &[
            ("calc/sum_test.go", "package calc\n\nfunc TestAdd(t *testing.T) {\n\ts := Sum{}\n\ts.Add(2)\n}\n"),
            ("calc/sum.go", &source),
            ("else/sum.go", "package other\n\ntype Sum struct{ wrong int }\n"),
            ("go.mod", "module example.com/calc\n"),
        ],
    )
    .pack();
    assert!(packed.text.contains("type Sum struct{}"), "{}", packed.text);
    assert!(packed.text.contains("| func (s *Sum) Add(n int) {\n"), "{}", packed.text);
}

#[test]
fn names_that_change_on_their_way_out_of_a_node_module_are_followed() {
    let packed = case(
        Ecosystem::Node,
        &[
            (
                "test/a.test.js",
                "const { sum } = require('../lib');\nconst Cart = require('../lib/cart');\nimport tax from '../lib/tax.mjs';\nsum(1); tax(2);\n",
            ),
            ("lib/index.js", "const { add } = require('./add');\nmodule.exports = { sum: add };\n"),
            ("lib/add.js", "function add(a) {\n  return a;\n}\nmodule.exports = { add };\n"),
            ("lib/cart.js", "class Cart {}\nmodule.exports = Cart;\n"),
            ("lib/tax.mjs", "const rate = 3;\nconst tax = (a) => a * rate;\nexport default tax;\n"),
        ],
    )
    .pack();
    for line in ["1| function add(a) {", "1| class Cart {}", "2| const tax = (a) => a * rate;"] {
        assert!(packed.text.contains(line), "{line}\n{}", packed.text);
    }
}

#[test]
fn what_the_runner_points_at_and_what_the_caller_names_is_shown() {
    let filler: String = (0..900).map(|i| format!("def filler_{i}\n  {i}\nend\n\n")).collect();
    let source = format!("{filler}def culprit\n  raise 'no'\nend\n\n{filler}");
    let line = 900 * 4 + 2;
    let said = format!("RuntimeError: no\n    /somewhere/lib/deep.rb:{line}:in `culprit'\n");
    let files =
        [("test/a_test.rb", "require 'minitest'\n"), ("lib/deep.rb", source.as_str()), ("lib/named.rb", "NAMED = 1\n")];
    let mut case = case(Ecosystem::Ruby, &files);
    case.said = &said;
    case.also = &["lib/named.rb", "lib/not_there.rb"];
    let packed = case.pack();
    assert!(packed.text.contains(&format!("{}| def culprit\n{line}|   raise 'no'\n", line - 1)), "{}", packed.text);
    assert!(packed.text.contains("1| NAMED = 1\n"), "{}", packed.text);
}

#[test]
fn whoever_writes_the_first_test_is_shown_how_tests_are_written_here() {
    let files = [
        ("test/new.test.js", ""),
        ("src/cart.js", "export function total(items) {\n  return items.length;\n}\n"),
        ("test/cart.test.js", "import { total } from '../src/cart.js';\n\ntest('adds', () => {\n  total([]);\n});\n"),
        ("test/user.test.js", "import { user } from '../src/user.js';\n\ntest('greets', () => {});\n"),
    ];
    let asked = Case { said: "spec: total takes a discount into account", ..case(Ecosystem::Node, &files) }.pack();
    assert!(asked.text.contains("## test/cart.test.js\n1| import { total } from"), "{}", asked.text);
    assert!(asked.text.contains("test/user.test.js\n") && !asked.text.contains("greets"), "{}", asked.text);

    let long =
        format!("import {{ total }} from '../src/cart.js';\n{}test('last', () => {{}});\n", "total([]);\n".repeat(900));
    let files = [files[0], files[1], ("test/cart.test.js", long.as_str())];
    let asked = Case { said: "spec: total takes a discount", window: 4_000, ..case(Ecosystem::Node, &files) }.pack();
    assert!(asked.text.contains("1| import { total }") && asked.text.contains("902| test('last'"), "{}", asked.text);
}
