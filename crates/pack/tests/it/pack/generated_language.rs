//! How each language writes files, definitions, imports and re-exports.

use supervisor_languages as languages;
use supervisor_languages::Language;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum GeneratedLanguage {
    Rust,
    Python,
    Node,
    Go,
    Ruby,
    Elixir,
}

/// How the test comes by a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Means {
    /// From the module that defines it.
    Direct,
    /// Through the module, under a name of its own.
    Module,
    /// Through one front door.
    Door,
    /// Through a front door that opens to another, and takes everything from there.
    FarDoor,
}

use Means::{Direct, Door, FarDoor, Module};

impl GeneratedLanguage {
    pub(super) fn all() -> [Self; 6] {
        [
            Self::Rust,
            Self::Python,
            Self::Node,
            Self::Go,
            Self::Ruby,
            Self::Elixir,
        ]
    }

    pub(super) fn language(self) -> &'static Language {
        match self {
            Self::Rust => &languages::RUST,
            Self::Python => &languages::PYTHON,
            Self::Node => &languages::JAVASCRIPT,
            Self::Go => &languages::GO,
            Self::Ruby => &languages::RUBY,
            Self::Elixir => &languages::ELIXIR,
        }
    }

    pub(super) fn ways(self) -> &'static [Means] {
        match self {
            // A Go package has no front door; what it has is the package around the test.
            Self::Go => &[Direct, Module, Direct, Module],
            _ => &[Direct, Module, Door, FarDoor, Direct],
        }
    }

    pub(super) fn name(self, verb: &str, noun: &str) -> String {
        match self {
            Self::Go | Self::Ruby => format!("{}{}", upper(verb), upper(noun)),
            Self::Node => format!("{verb}{}", upper(noun)),
            _ => format!("{verb}_{noun}"),
        }
    }

    pub(super) fn file(self, m: &[String]) -> String {
        let path = m.join("/");
        match self {
            Self::Rust => format!("src/{path}.rs"),
            Self::Python => format!("shop/{path}.py"),
            Self::Node => format!("src/{path}.js"),
            Self::Go => format!("{path}.go"),
            Self::Ruby => format!("lib/shop/{path}.rb"),
            Self::Elixir => format!("lib/shop/{path}.ex"),
        }
    }

    /// Every line of the body is found nowhere else.
    pub(super) fn definition(
        self,
        name: &str,
        tag: usize,
        length: usize,
        a_type: bool,
    ) -> Vec<String> {
        let body = |line: &dyn Fn(usize) -> String| (0..length).map(line).collect::<Vec<_>>();
        let (first, body, last): (String, Vec<String>, &[&str]) = match (self, a_type) {
            (Self::Rust, true) => (
                format!("pub struct {name} {{"),
                body(&|i| format!("    pub part_{tag}_{i}: u32,")),
                &["}"],
            ),
            (Self::Rust, false) => (
                format!("pub fn {name}(value: u64) -> u64 {{"),
                body(&|i| format!("    let step_{tag}_{i} = value + {i};")),
                &["    value", "}"],
            ),
            (Self::Python, true) => (
                format!("class {name}:"),
                body(&|i| format!("    def part_{tag}_{i}(self): return {i}")),
                &[],
            ),
            (Self::Python, false) => (
                format!("def {name}(value):"),
                body(&|i| format!("    step_{tag}_{i} = value + {i}")),
                &["    return value"],
            ),
            (Self::Node, true) => (
                format!("export class {name} {{"),
                body(&|i| format!("  part_{tag}_{i}() {{ return '{{'; }}")),
                &["}"],
            ),
            (Self::Node, false) => (
                format!("export function {name}(value) {{"),
                body(&|i| format!("  const step_{tag}_{i} = value + {i};")),
                &["  return value;", "}"],
            ),
            (Self::Go, true) => (
                format!("type {name} struct {{"),
                body(&|i| format!("\tPart_{tag}_{i} int")),
                &["}"],
            ),
            (Self::Go, false) => (
                format!("func {name}(value int) int {{"),
                body(&|i| format!("\tvalue += {i} // step_{tag}_{i}")),
                &["\treturn value", "}"],
            ),
            (Self::Ruby, _) => (
                format!("  class {name}"),
                body(&|i| format!("    def part_{tag}_{i} = {i}")),
                &["  end"],
            ),
            (Self::Elixir, _) => (
                format!("  def {name}(value) do"),
                body(&|i| format!("    step_{tag}_{i} = value + {i}")),
                &["    value", "  end"],
            ),
        };
        std::iter::once(first)
            .chain(body)
            .chain(last.iter().map(|l| (*l).to_owned()))
            .collect()
    }

    pub(super) fn wrap(self, m: &[String], definitions: &[Vec<String>]) -> String {
        let inner = definitions
            .iter()
            .map(|d| d.join("\n"))
            .collect::<Vec<_>>()
            .join("\n\n");
        match self {
            Self::Rust => format!("//! About {}.\n\nuse std::fmt;\n\n{inner}\n", m[2]),
            Self::Python => format!("\"\"\"About {}.\"\"\"\nimport os\n\n{inner}\n", m[2]),
            Self::Node => format!("import fs from 'node:fs';\n\n{inner}\n"),
            Self::Go => format!("package {}\n\nimport \"fmt\"\n\n{inner}\n", m[1]),
            Self::Ruby => format!("module {}\n{inner}\nend\n", upper(&m[0])),
            Self::Elixir => format!("defmodule {} do\n{inner}\nend\n", elixir(m)),
        }
    }

    /// The line of the test that imports a name, a line that uses it, and the doors it goes through.
    pub(super) fn import(
        self,
        means: Means,
        m: &[String],
        name: &str,
    ) -> ((String, String), Vec<(String, String)>) {
        let (area, sub, file) = (&m[0], &m[1], &m[2]);
        let none = Vec::new();
        match (self, means) {
            (Self::Rust, Direct) => (
                (
                    format!(
                        "use demo_shop::{area}::{{self as {area}_all, {sub}::{file}::{{{name}}}}};"
                    ),
                    format!("{name}(1)"),
                ),
                none,
            ),
            (Self::Rust, Module) => (
                (
                    format!("use demo_shop::{area}::{sub}::{file} as m_{file};"),
                    format!("m_{file}::{name}(1)"),
                ),
                none,
            ),
            (Self::Rust, Door) => (
                (
                    format!("use demo_shop::{area}::{name} as {name}_here;"),
                    format!("{name}_here(1)"),
                ),
                vec![(area_file(area), format!("pub use {sub}::{file}::{name};\n"))],
            ),
            (Self::Rust, FarDoor) => (
                (format!("use demo_shop::{name};"), format!("{name}(1)")),
                vec![
                    (
                        String::from("src/lib.rs"),
                        format!("pub use crate::{area}::{name};\n"),
                    ),
                    (area_file(area), format!("pub use self::{sub}::*;\n")),
                    (
                        format!("src/{area}/{sub}.rs"),
                        format!("pub use {file}::{{\n    {name},\n}};\n"),
                    ),
                ],
            ),
            (Self::Python, Direct) => (
                (
                    format!("from ..{area}.{sub}.{file} import (\n    {name},\n)"),
                    format!("{name}(1)"),
                ),
                none,
            ),
            (Self::Python, Module) => (
                (
                    format!("import shop.{area}.{sub}.{file} as m_{file}"),
                    format!("m_{file}.{name}(1)"),
                ),
                none,
            ),
            (Self::Python, Door) => (
                (
                    format!("from shop.{area} import {name} as here_{name}"),
                    format!("here_{name}(1)"),
                ),
                vec![(
                    format!("shop/{area}/__init__.py"),
                    format!("from .{sub}.{file} import {name}\n"),
                )],
            ),
            (Self::Python, FarDoor) => (
                (format!("from shop import {name}"), format!("{name}(1)")),
                vec![
                    (
                        String::from("shop/__init__.py"),
                        format!("from shop.{area} import {name}\n"),
                    ),
                    (
                        format!("shop/{area}/__init__.py"),
                        format!("from .{sub} import *\n"),
                    ),
                    (
                        format!("shop/{area}/{sub}/__init__.py"),
                        format!("from .{file} import {name}\n"),
                    ),
                ],
            ),
            (Self::Node, Direct) => (
                (
                    format!("import {{ {name} }} from '../src/{area}/{sub}/{file}.js';"),
                    format!("{name}(1)"),
                ),
                none,
            ),
            (Self::Node, Module) => (
                (
                    format!("const m_{file} = require('../src/{area}/{sub}/{file}');"),
                    format!("m_{file}.{name}(1)"),
                ),
                none,
            ),
            (Self::Node, Door) => (
                (
                    format!("import {{ {name} as here_{name} }} from '../src/{area}';"),
                    format!("here_{name}(1)"),
                ),
                vec![(
                    format!("src/{area}/index.js"),
                    format!("export {{ {name} }} from './{sub}/{file}';\n"),
                )],
            ),
            (Self::Node, FarDoor) => (
                (
                    format!("import {{ {name} }} from '../src/index.js';"),
                    format!("{name}(1)"),
                ),
                vec![
                    (
                        String::from("src/index.js"),
                        format!("export * from './{area}/index.js';\n"),
                    ),
                    (
                        format!("src/{area}/index.js"),
                        format!("export {{\n  {name}\n}} from './{sub}';\n"),
                    ),
                    (
                        format!("src/{area}/{sub}/index.js"),
                        format!("import {{ {name} }} from './{file}.js';\nexport {{ {name} }};\n"),
                    ),
                ],
            ),
            (Self::Go, Direct) => (
                (
                    format!("\t\"example.com/shop/{area}/{sub}\""),
                    format!("{sub}.{name}(1)"),
                ),
                none,
            ),
            (Self::Go, _) => (
                (
                    format!("\tm_{area} \"example.com/shop/{area}/{sub}\""),
                    format!("m_{area}.{name}(1)"),
                ),
                none,
            ),
            (Self::Ruby, Direct) => (
                (
                    format!("require_relative '../lib/shop/{area}/{sub}/{file}'"),
                    format!("{}::{name}.new", upper(area)),
                ),
                none,
            ),
            (Self::Ruby, Module) => (
                (
                    format!("require \"shop/{area}/{sub}/{file}\""),
                    format!("{}::{name}.new", upper(area)),
                ),
                none,
            ),
            (Self::Ruby, Door) => (
                (
                    format!("require 'shop/{area}'"),
                    format!("{}::{name}.new", upper(area)),
                ),
                vec![(
                    format!("lib/shop/{area}.rb"),
                    format!("require_relative '{area}/{sub}/{file}'\n"),
                )],
            ),
            (Self::Ruby, FarDoor) => (
                (
                    String::from("require 'shop'"),
                    format!("{}::{name}.new", upper(area)),
                ),
                vec![
                    (
                        String::from("lib/shop.rb"),
                        format!("require_relative 'shop/{area}'\n"),
                    ),
                    (
                        format!("lib/shop/{area}.rb"),
                        format!("require 'shop/{area}/{sub}/{file}'\n"),
                    ),
                ],
            ),
            (Self::Elixir, Direct) => (
                (format!("  import {}", elixir(m)), format!("{name}(1)")),
                none,
            ),
            (Self::Elixir, Module) => (
                (
                    format!("  alias {}, as: M{}", elixir(m), upper(area)),
                    format!("M{}.{name}(1)", upper(area)),
                ),
                none,
            ),
            (Self::Elixir, Door) => (
                (
                    format!("  alias Shop.{}", upper(area)),
                    format!("{}.{name}(1)", upper(area)),
                ),
                vec![(
                    format!("lib/shop/{area}.ex"),
                    format!(
                        "defmodule Shop.{} do\n  defdelegate {name}(value), to: {}\nend\n",
                        upper(area),
                        elixir(m)
                    ),
                )],
            ),
            (Self::Elixir, FarDoor) => (
                (
                    String::from("  require Logger"),
                    format!("Shop.{name}_all(1)"),
                ),
                vec![
                    (
                        String::from("lib/shop.ex"),
                        format!(
                            "defmodule Shop do\n  alias Shop.{}\n  defdelegate {name}_all(value), to: {}, as: :{name}\nend\n",
                            upper(area),
                            upper(area)
                        ),
                    ),
                    (
                        format!("lib/shop/{area}.ex"),
                        format!(
                            "defmodule Shop.{} do\n  alias {}\n  defdelegate {name}(value), to: {}\nend\n",
                            upper(area),
                            elixir(m),
                            camel(file)
                        ),
                    ),
                ],
            ),
        }
    }

    pub(super) fn test(self, imports: &[(String, String)]) -> (String, String) {
        let mut lines: Vec<&str> = Vec::new();
        for (line, _) in imports {
            if !lines.contains(&line.as_str()) {
                lines.push(line);
            }
        }
        let lines = lines.join("\n");
        let uses = |indent: &str, end: &str| {
            imports
                .iter()
                .map(|(_, u)| format!("{indent}{u}{end}\n"))
                .collect::<String>()
        };
        match self {
            Self::Rust => (
                String::from("tests/checkout.rs"),
                format!(
                    "{lines}\n\n#[test]\nfn it_adds_up() {{\n{}    assert_eq!(1, 2);\n}}\n",
                    uses("    ", ";")
                ),
            ),
            Self::Python => (
                String::from("shop/tests/test_checkout.py"),
                format!(
                    "{lines}\n\ndef test_adds_up():\n{}    assert 1 == 2\n",
                    uses("    ", "")
                ),
            ),
            Self::Node => (
                String::from("test/checkout.test.js"),
                format!(
                    "import test from 'node:test';\n{lines}\n\ntest('adds up', () => {{\n{}}});\n",
                    uses("  ", ";")
                ),
            ),
            Self::Go => (
                String::from("checks/checkout_test.go"),
                format!(
                    "package checks\n\nimport (\n\t\"testing\"\n{lines}\n)\n\nfunc TestAddsUp(t *testing.T) {{\n{}}}\n",
                    uses("\t_ = ", "")
                ),
            ),
            Self::Ruby => (
                String::from("test/checkout_test.rb"),
                format!(
                    "require 'minitest/autorun'\n{lines}\n\nclass CheckoutTest < Minitest::Test\n  def test_adds_up\n{}  end\nend\n",
                    uses("    ", "")
                ),
            ),
            Self::Elixir => (
                String::from("test/checkout_test.exs"),
                format!(
                    "defmodule CheckoutTest do\n  use ExUnit.Case\n{lines}\n\n  test \"adds up\" do\n{}  end\nend\n",
                    uses("    ", "")
                ),
            ),
        }
    }

    /// Files every project has.
    pub(super) fn always(self, areas: &[&str], subs: &[&str]) -> Vec<(String, String)> {
        let one = |path: &str, text: &str| vec![(path.to_owned(), text.to_owned())];
        match self {
            Self::Rust => {
                let mut all = one(
                    "Cargo.toml",
                    "[package]\nname = \"demo-shop\"\nversion = \"0.1.0\"\n",
                );
                let declare = |names: &[&str]| {
                    names
                        .iter()
                        .map(|n| format!("pub mod {n};\n"))
                        .collect::<String>()
                };
                all.push((String::from("src/lib.rs"), declare(areas)));
                for area in areas {
                    all.push((area_file(area), declare(subs)));
                    all.extend(
                        subs.iter()
                            .map(|sub| (format!("src/{area}/{sub}.rs"), String::new())),
                    );
                }
                all
            }
            Self::Python => [
                one("pyproject.toml", "[project]\nname = \"shop\"\n"),
                one("shop/__init__.py", "\"\"\"Shop.\"\"\"\n"),
            ]
            .concat(),
            Self::Node => one(
                "package.json",
                "{\"name\": \"shop\", \"type\": \"module\"}\n",
            ),
            Self::Go => one("go.mod", "module example.com/shop\n\ngo 1.22\n"),
            Self::Ruby => one("Gemfile", "source 'https://rubygems.org'\n"),
            Self::Elixir => one(
                "mix.exs",
                "defmodule Shop.MixProject do\n  use Mix.Project\nend\n",
            ),
        }
    }

    /// Where a module has to be declared, and how.
    pub(super) fn declared(self, m: &[String]) -> Option<(String, String)> {
        (self == Self::Rust).then(|| {
            (
                format!("src/{}/{}.rs", m[0], m[1]),
                format!("pub mod {};\n", m[2]),
            )
        })
    }

    /// Would the decoy be the very thing, since both lie in one package or namespace?
    pub(super) fn same_package(self, a: &[String], b: &[String]) -> bool {
        match self {
            Self::Go => a[..2] == b[..2],
            Self::Ruby => a[0] == b[0],
            _ => a == b,
        }
    }
}

/// Both habits of Rust: `people.rs` beside its folder, `mod.rs` inside the others.
fn area_file(area: &str) -> String {
    if area == "people" {
        String::from("src/people.rs")
    } else {
        format!("src/{area}/mod.rs")
    }
}

fn elixir(m: &[String]) -> String {
    format!("Shop.{}.{}.{}", camel(&m[0]), camel(&m[1]), camel(&m[2]))
}

fn camel(name: &str) -> String {
    name.split('_').map(upper).collect()
}

fn upper(word: &str) -> String {
    let mut chars = word.chars();
    chars
        .next()
        .map(|c| c.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}
