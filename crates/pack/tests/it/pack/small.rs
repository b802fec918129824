//! Small projects, each with one thing that packing must not get wrong.

use std::path::PathBuf;

use supervisor_languages as languages;
use supervisor_languages::Language;
use supervisor_pack as pack;
use supervisor_pack::{PackRequest, PackedFiles};
use supervisor_text::redact::Redactor;

struct Case<'a> {
    language: &'static Language,
    files: &'a [(&'a str, &'a str)],
    /// The first file is the test.
    said: &'a str,
    failing: &'a [&'a str],
    also: &'a [&'a str],
    window: usize,
}

impl Case<'_> {
    fn pack(&self) -> PackedFiles {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in self.files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (test_path, test_source) = self.files[0];
        let also: Vec<PathBuf> = self.also.iter().map(PathBuf::from).collect();
        let failing: Vec<String> = self.failing.iter().map(|name| (*name).to_owned()).collect();
        let packed = pack::files(&PackRequest {
            co_changed: &[],
            redactor: &Redactor::patterns_only(),
            project: &pack::ProjectIndex::of(root.path()),
            ecosystem: Some(self.language),
            test_path: test_path.as_ref(),
            test_source,
            failing_output: self.said,
            failing: &failing,
            caller_text: self.said,
            extra_files: &also,
            window_bytes: self.window,
        });
        assert!(packed.text.len() <= self.window);
        packed
    }
}

fn case<'a>(language: &'static Language, files: &'a [(&'a str, &'a str)]) -> Case<'a> {
    Case {
        language,
        files,
        said: "",
        failing: &[],
        also: &[],
        window: 20_000,
    }
}

#[test]
fn missing_name_leads_to_its_expected_file() {
    let packed = case(
        &languages::PYTHON,
        &[
            (
                "tests/test_cart.py",
                "from shop.cart import total_with_tax\n",
            ),
            ("shop/cart.py", "RATE = 3\n\ndef total(x):\n    return x\n"),
            ("other/cart.py", "def total(x):\n    return 0\n"),
        ],
    )
    .pack();
    assert_eq!(
        packed.shown[..2],
        ["tests/test_cart.py", "shop/cart.py"].map(PathBuf::from)
    );
    assert!(
        packed
            .text
            .contains("## shop/cart.py\n1| RATE = 3\n2| \n3| def total(x):\n"),
        "{}",
        packed.text
    );
}

#[test]
fn too_large_definition_is_cut_and_marked() {
    let body: String = (0..2_000)
        .map(|i| format!("    let step_{i} = {i};\n"))
        .collect();
    let source = format!("pub fn small() {{}}\n\npub fn giant() {{\n{body}}}\n");
    let files = [
        ("tests/t.rs", "use demo::{giant, small};\n"),
        ("src/lib.rs", source.as_str()),
        ("Cargo.toml", "[package]\nname = \"demo\"\n"),
    ];
    let mut case = case(&languages::RUST, &files);
    case.window = 4_000;
    let packed = case.pack();
    assert!(
        packed
            .text
            .contains("## src/lib.rs (parts of 2004 lines)\n1| pub fn small() {}\n"),
        "{}",
        packed.text
    );
    assert!(
        packed
            .text
            .contains("\n3| pub fn giant() {\n4|     let step_0 = 0;\n"),
        "{}",
        packed.text
    );
    assert!(packed.text.contains("-2004 not shown\n"), "{}", packed.text);
}

#[test]
fn inline_rust_tests_come_with_their_code() {
    let packed = case(
        &languages::RUST,
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
    assert_eq!(
        packed.shown[..2],
        ["src/price.rs", "src/money.rs"].map(PathBuf::from),
        "{}",
        packed.text
    );
}

#[test]
fn go_test_comes_with_its_package() {
    let filler: String = (0..900)
        .map(|i| format!("func Filler{i}() int {{\n\treturn {i}\n}}\n\n"))
        .collect();
    let source = format!(
        "package calc\n\n{filler}type Sum struct{{}}\n\n{filler}func (s *Sum) Add(n int) {{\n\ts.n += n\n}}\n"
    );
    let packed = case(
        &languages::GO,
        &[
            (
                "calc/sum_test.go",
                "package calc\n\nfunc TestAdd(t *testing.T) {\n\ts := Sum{}\n\ts.Add(2)\n}\n",
            ),
            ("calc/sum.go", &source),
            (
                "else/sum.go",
                "package other\n\ntype Sum struct{ wrong int }\n",
            ),
            ("go.mod", "module example.com/calc\n"),
        ],
    )
    .pack();
    assert!(packed.text.contains("type Sum struct{}"), "{}", packed.text);
    assert!(
        packed.text.contains("| func (s *Sum) Add(n int) {\n"),
        "{}",
        packed.text
    );
}

#[test]
fn renamed_node_exports_are_followed() {
    let packed = case(
        &languages::JAVASCRIPT,
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
    for line in [
        "1| function add(a) {",
        "1| class Cart {}",
        "2| const tax = (a) => a * rate;",
    ] {
        assert!(packed.text.contains(line), "{line}\n{}", packed.text);
    }
}

#[test]
fn files_from_output_and_caller_are_shown() {
    let filler: String = (0..900)
        .map(|i| format!("def filler_{i}\n  {i}\nend\n\n"))
        .collect();
    let source = format!("{filler}def culprit\n  raise 'no'\nend\n\n{filler}");
    let line = 900 * 4 + 2;
    let said = format!("RuntimeError: no\n    /somewhere/lib/deep.rb:{line}:in `culprit'\n");
    let files = [
        ("test/a_test.rb", "require 'minitest'\n"),
        ("lib/deep.rb", source.as_str()),
        ("lib/named.rb", "NAMED = 1\n"),
    ];
    let mut case = case(&languages::RUBY, &files);
    case.said = &said;
    case.also = &["lib/named.rb", "lib/not_there.rb"];
    let packed = case.pack();
    assert!(
        packed.text.contains(&format!(
            "{}| def culprit\n{line}|   raise 'no'\n",
            line - 1
        )),
        "{}",
        packed.text
    );
    assert!(packed.text.contains("1| NAMED = 1\n"), "{}", packed.text);
}

#[test]
fn first_test_comes_with_existing_examples() {
    let files = [
        ("test/new.test.js", ""),
        (
            "src/cart.js",
            "export function total(items) {\n  return items.length;\n}\n",
        ),
        (
            "test/cart.test.js",
            "import { total } from '../src/cart.js';\n\ntest('adds', () => {\n  total([]);\n});\n",
        ),
        (
            "test/user.test.js",
            "import { user } from '../src/user.js';\n\ntest('greets', () => {});\n",
        ),
    ];
    let asked = Case {
        said: "spec: total takes a discount into account",
        ..case(&languages::JAVASCRIPT, &files)
    }
    .pack();
    assert!(
        asked
            .text
            .contains("## test/cart.test.js\n1| import { total } from"),
        "{}",
        asked.text
    );
    assert!(
        asked.text.contains("test/user.test.js\n") && !asked.text.contains("greets"),
        "{}",
        asked.text
    );

    let long = format!(
        "import {{ total }} from '../src/cart.js';\n{}test('last', () => {{}});\n",
        "total([]);\n".repeat(900)
    );
    let files = [files[0], files[1], ("test/cart.test.js", long.as_str())];
    let asked = Case {
        said: "spec: total takes a discount",
        window: 4_000,
        ..case(&languages::JAVASCRIPT, &files)
    }
    .pack();
    assert!(
        asked.text.contains("1| import { total }") && asked.text.contains("902| test('last'"),
        "{}",
        asked.text
    );
}

#[test]
fn called_method_leads_to_its_definition() {
    let filler: String = (0..400)
        .map(|i| format!("res.other{i} = function other{i}() {{ var local{i} = {i}; }};\n"))
        .collect();
    let response = format!(
        "var res = Object.create(null);\nmodule.exports = res;\n{filler}res.status = function status(code) {{\n  this.statusCode = code;\n  return this;\n}};\n{filler}"
    );
    let packed = case(
        &languages::JAVASCRIPT,
        &[
            ("test/res.status.js", "var express = require('../');\nit('throws', function () { var app = express(); app.use(function (req, res) { res.status('x').end(); }); });\n"),
            ("index.js", "module.exports = require('./lib/express');\n"),
            ("lib/express.js", "var res = require('./response');\nexports = module.exports = createApplication;\nfunction createApplication() { return { response: res }; }\n"),
            ("lib/response.js", &response),
            ("package.json", "{\"name\": \"express\"}\n"),
        ],
    )
    .pack();
    assert!(
        packed.shown.contains(&PathBuf::from("lib/response.js")),
        "{:?}",
        packed.shown
    );
    assert!(
        packed.text.contains("res.status = function status(code) {"),
        "{}",
        packed.text
    );
    assert!(packed.text.contains("  return this;"), "{}", packed.text);
}

#[test]
fn go_test_table_in_another_file_is_shown() {
    let packed = case(
        &languages::GO,
        &[
            ("hey_test.go", "package bob\n\nimport \"testing\"\n\nfunc TestHey(t *testing.T) {\n\tfor _, c := range testCases {\n\t\tHey(c.in)\n\t}\n}\n"),
            ("cases_test.go", "package bob\n\nvar testCases = []struct{ in, want string }{\n\t{\"Hi\", \"Whatever.\"},\n}\n"),
            ("hey.go", "package bob\n\nfunc Hey(s string) string { return s }\n"),
            ("go.mod", "module bob\n"),
        ],
    )
    .pack();
    assert!(
        packed.text.contains("{\"Hi\", \"Whatever.\"}")
            && packed.text.contains("func Hey(s string)"),
        "{}",
        packed.text
    );
}

#[test]
fn too_small_window_is_reported() {
    let test = format!(
        "from calc import triple\n\n\ndef test_triples():\n    assert triple(2) == {}\n",
        "6".repeat(350)
    );
    let files = [
        ("test_calc.py", test.as_str()),
        ("calc.py", "def triple(n):\n    return n\n"),
    ];
    assert!(
        !Case {
            window: 120,
            ..case(&languages::PYTHON, &files)
        }
        .pack()
        .holds_test
    );
    assert!(case(&languages::PYTHON, &files).pack().holds_test);
}

#[test]
fn long_manifest_does_not_displace_code() {
    let manifest: String = (0..400)
        .map(|i| format!("option_{i} = \"{i}\"\n"))
        .collect();
    let code: String = (0..60)
        .map(|i| format!("def helper_{i}(n):\n    return n + {i}\n\n"))
        .collect();
    let files = [
        (
            "tests/test_calc.py",
            "from calc import helper_3\n\ndef test_it():\n    assert helper_3(1) == 5\n",
        ),
        ("pyproject.toml", manifest.as_str()),
        ("calc.py", code.as_str()),
    ];
    let packed = Case {
        window: 6_000,
        ..case(&languages::PYTHON, &files)
    }
    .pack();
    assert!(packed.text.contains("def helper_3(n):"), "{}", packed.text);
    assert!(!packed.text.contains("option_300"), "{}", packed.text);
}

#[test]
fn failing_test_of_a_large_file_is_shown() {
    let names = [
        "anchor", "basket", "candle", "dagger", "engine", "funnel", "garden", "hammer",
    ];
    let mut tests = names
        .map(|name| format!("from things.{name} import {name}_of\n"))
        .concat();
    let mut files: Vec<(String, String)> = Vec::new();
    for name in names {
        (0..12).for_each(|n| {
            tests += &format!("\ndef test_{name}_{n}():\n    assert {name}_of({n}) == {n}\n");
        });
        let filler: String = (0..150)
            .map(|n| format!("def {name}_step_{n}(x):\n    return x\n"))
            .collect();
        let code = format!(
            "{filler}\ndef {name}_of(x):\n    return {name}_rule(x)\n\n{filler}\ndef {name}_rule(x):\n    return x\n"
        );
        files.push((format!("things/{name}.py"), code));
    }
    let mut all = vec![("tests/test_things.py", tests.as_str())];
    all.extend(
        files
            .iter()
            .map(|(path, code)| (path.as_str(), code.as_str())),
    );
    let failing = ["tests/test_things.py::test_funnel_7"];
    let packed = Case {
        failing: &failing,
        window: 6_000,
        ..case(&languages::PYTHON, &all)
    }
    .pack();
    assert_eq!(
        packed.shown[..2],
        ["tests/test_things.py", "things/funnel.py"].map(PathBuf::from)
    );
    for line in [
        "def test_funnel_7():",
        "def funnel_of(x):",
        "def funnel_rule(x):",
    ] {
        assert!(packed.text.contains(line), "{line}: {}", packed.text);
    }
}

/// A red call: there is no test yet, and what the caller says is all that is known.
fn before_the_test(
    language: &'static Language,
    files: &[(&str, &str)],
    spec: &str,
    window: usize,
) -> PackedFiles {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let packed = pack::files(&PackRequest {
        co_changed: &[],
        redactor: &Redactor::patterns_only(),
        project: &pack::ProjectIndex::of(root.path()),
        ecosystem: Some(language),
        test_path: "".as_ref(),
        test_source: "",
        failing_output: "",
        failing: &[],
        caller_text: spec,
        extra_files: &[],
        window_bytes: window,
    });
    assert!(packed.text.len() <= window);
    packed
}

#[test]
fn new_test_goes_beside_related_tests() {
    let mut tests = String::from("import unittest\nfrom more import chunked, padded, sliced\n\n");
    let mut more = String::new();
    let mut declared = String::new();
    for name in ["padded", "windowed", "chunked", "sliced", "grouped"] {
        tests += &format!("\nclass {}Tests(unittest.TestCase):\n", name.to_uppercase());
        (0..40).for_each(|n| {
            tests += &format!(
                "    def test_{name}_{n}(self):\n        self.assertEqual({name}({n}), {n})\n\n"
            );
        });
        more += &format!(
            "def {name}(n):\n{}    return n\n\n\n",
            "    # one of many steps\n".repeat(60)
        );
        declared += &format!(
            "def {name}(n: int) -> int: ...\n{}",
            "# a comment\n".repeat(60)
        );
    }
    let other =
        "import unittest\n\n# a negative ValueError of other things, raised for a clear reason\n";
    let files = [
        ("more.py", more.as_str()),
        ("more.pyi", &declared),
        ("tests/test_more.py", &tests),
        ("tests/test_recipes.py", other),
    ];
    let spec = "Raise a clear ValueError for negative n in chunked()";
    let packed = before_the_test(&languages::PYTHON, &files, spec, 9_000);
    assert!(packed.text.contains("def chunked(n):"), "{}", packed.text);
    assert!(
        packed.shown.contains(&PathBuf::from("tests/test_more.py")),
        "{:?}",
        packed.shown
    );
    assert!(
        packed.text.contains("| from more import chunked"),
        "{}",
        packed.text
    );
    assert!(
        !packed.shown.contains(&PathBuf::from("more.pyi")),
        "declarations are told by what they declare"
    );
}

#[test]
fn test_file_is_found_by_its_name() {
    let response = format!(
        "res.send = function send(body) {{\n{}}};\n",
        "  // sends\n".repeat(20)
    );
    let long = format!(
        "const app = 1;\n{}",
        "it('works with a header', () => 1);\n".repeat(30)
    );
    let files = [
        ("lib/response.js", response.as_str()),
        ("test/res.send.js", "it('sends', () => 1);\n"),
        ("test/app.header.js", &long),
    ];
    let spec =
        "fix(res.send): add a Content-Length header only if no Transfer-Encoding header is present";
    let packed = before_the_test(&languages::JAVASCRIPT, &files, spec, 4_000);
    assert!(
        packed.shown.contains(&PathBuf::from("test/res.send.js")),
        "{:?}",
        packed.shown
    );
}

#[test]
fn stack_trace_beats_shared_words() {
    let config = format!(
        "package zap\n\ntype Config struct {{\n{}}}\n",
        "\tLevelKey, EncodeLevel, NewEncoder string\n".repeat(80)
    );
    let encoder = format!(
        "package zap\n\nimport \"fmt\"\n\nfunc encode(x *Config) {{\n{}\tfmt.Println(x.LevelKey)\n{}}}\n",
        "\t// before\n".repeat(200),
        "\t// after\n".repeat(200)
    );
    let files = [
        (
            "json_encoder_test.go",
            "package zap\n\nimport \"testing\"\n\nfunc TestLevel(t *testing.T) {\n\tNewEncoder(Config{LevelKey: \"a\", EncodeLevel: nil})\n}\n",
        ),
        ("encoder.go", config.as_str()),
        ("json_encoder.go", &encoder),
        ("go.mod", "module zap\n"),
    ];
    let mut case = case(&languages::GO, &files);
    case.said = "panic: nil pointer\n\t/p/json_encoder.go:206 +0x1f\n";
    case.window = 9_000;
    let packed = case.pack();
    assert!(
        packed.text.contains("206| \tfmt.Println(x.LevelKey)"),
        "{}",
        packed.text
    );
    assert!(
        packed.text.contains("3| import \"fmt\""),
        "what it imports may have to grow: {}",
        packed.text
    );
}

#[test]
fn failing_place_of_a_huge_test_is_shown() {
    let case_of = |n: usize| format!("def test_case_{n}():\n    assert total({n}) == {n}\n\n\n");
    let test = format!(
        "from shop import total\n\n\n{}",
        (0..40_000).map(case_of).collect::<String>()
    );
    assert!(test.len() > 2_000_000, "{}", test.len());
    let at = test
        .lines()
        .position(|line| line.contains("total(31000)"))
        .unwrap()
        + 1;
    let said = format!("E       assert 0 == 31000\n\ntests/test_shop.py:{at}: AssertionError\n");
    let files = [
        ("tests/test_shop.py", test.as_str()),
        ("shop.py", "def total(n):\n    return 0\n"),
    ];
    let mut case = case(&languages::PYTHON, &files);
    case.said = &said;
    case.window = 12_000;
    let packed = case.pack();
    assert!(
        packed.holds_test && packed.text.contains("assert total(31000) == 31000"),
        "{}",
        packed.text
    );
    assert!(
        packed.text.contains("## shop.py\n1| def total(n):"),
        "{}",
        packed.text
    );
}
