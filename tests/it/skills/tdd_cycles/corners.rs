//! The same step where names, files and packages lie less plainly: tests beside the code, tests of another package,
//! nested groups, imports that cannot be resolved before there is something to import.

use super::table::Cycle;

pub(super) static RUST_IN_FILE: Cycle = Cycle {
    needs: &["cargo"],
    files: &[
        (
            "Cargo.toml",
            "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
        ),
        (
            "src/lib.rs",
            "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n}\n",
        ),
    ],
    test_path: "src/lib.rs",
    red: "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n\n    #[test]\n    fn doubles() {\n        assert_eq!(double(1200), 2400);\n    }\n}\n",
    new_test: "doubles",
    code_path: "src/lib.rs",
    wrong: "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\npub fn double(n: i32) -> i32 {\n    n + 1\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n\n    #[test]\n    fn doubles() {\n        assert_eq!(double(1200), 2400);\n    }\n}\n",
    right: "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\npub fn double(n: i32) -> i32 {\n    n + n\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n\n    #[test]\n    fn doubles() {\n        assert_eq!(double(1200), 2400);\n    }\n}\n",
    neat: "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\npub fn double(n: i32) -> i32 {\n    add(n, n)\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n\n    #[test]\n    fn doubles() {\n        assert_eq!(double(1200), 2400);\n    }\n}\n",
    new_item: "double",
    symbol: "cannot find function `double`",
};

pub(super) static GO_OUTSIDE: Cycle = Cycle {
    needs: &["go"],
    files: &[
        ("go.mod", "module example.com/demo\n\ngo 1.19\n"),
        (
            "demo.go",
            "package demo\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n",
        ),
        (
            "demo_test.go",
            "package demo\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(1, 2); got != 3 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n}\n",
        ),
        ("calc/calc.go", "package calc\n"),
    ],
    test_path: "calc/double_test.go",
    red: "package calc_test\n\nimport (\n\t\"testing\"\n\n\t\"example.com/demo/calc\"\n)\n\nfunc TestDouble(t *testing.T) {\n\tif got := calc.Double(1200); got != 2400 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n}\n",
    new_test: "TestDouble",
    code_path: "calc/calc.go",
    wrong: "package calc\n\nfunc Double(n int) int {\n\treturn n + 1\n}\n",
    right: "package calc\n\nfunc Double(n int) int {\n\treturn n + n\n}\n",
    neat: "package calc\n\nfunc Double(n int) int {\n\treturn 2 * n\n}\n",
    new_item: "Double",
    symbol: "undefined: calc.Double",
};

pub(super) static PYTHON_CLASS: Cycle = Cycle {
    needs: &["python3", "pytest"],
    files: &[
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\npythonpath = [\"src\"]\n",
        ),
        ("src/demo/__init__.py", ""),
        ("src/demo/calc.py", "def add(a, b):\n    return a + b\n"),
        (
            "tests/test_add.py",
            "from demo.calc import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n",
        ),
    ],
    test_path: "tests/test_double.py",
    red: "from demo import calc\n\n\nclass TestDouble:\n    def test_of_a_number(self):\n        assert calc.double(1200) == 2400\n",
    new_test: "tests/test_double.py::TestDouble::test_of_a_number",
    code_path: "src/demo/calc.py",
    wrong: "def add(a, b):\n    return a + b\n\n\ndef double(n):\n    return n + 1\n",
    right: "def add(a, b):\n    return a + b\n\n\ndef double(n):\n    return n + n\n",
    neat: "def add(a, b):\n    return a + b\n\n\ndef double(n):\n    return add(n, n)\n",
    new_item: "double",
    symbol: "has no attribute 'double'",
};

pub(super) static NODE_MODULES: Cycle = Cycle {
    needs: &["node", "npm"],
    files: &[
        (
            "package.json",
            "{\"name\": \"demo\", \"version\": \"1.0.0\", \"type\": \"module\", \"scripts\": {\"test\": \"node --test\"}}\n",
        ),
        (
            "src/calc.js",
            "export function add(a, b) {\n  return a + b;\n}\n",
        ),
        (
            "test/add.test.js",
            "import test from 'node:test';\nimport assert from 'node:assert';\nimport { add } from '../src/calc.js';\n\ntest('adds', () => {\n  assert.equal(add(1, 2), 3);\n});\n",
        ),
    ],
    test_path: "test/double.test.js",
    red: "import { test } from 'node:test';\nimport assert from 'node:assert';\nimport * as calc from '../src/calc.js';\n\ntest('double() of a number', () => {\n  assert.equal(calc.double(1200), 2400);\n});\n",
    new_test: "test/double.test.js > double() of a number",
    code_path: "src/calc.js",
    wrong: "export function add(a, b) {\n  return a + b;\n}\n\nexport function double(n) {\n  return n + 1;\n}\n",
    right: "export function add(a, b) {\n  return a + b;\n}\n\nexport function double(n) {\n  return n + n;\n}\n",
    neat: "export function add(a, b) {\n  return a + b;\n}\n\nexport function double(n) {\n  return add(n, n);\n}\n",
    new_item: "double",
    symbol: "double is not a function",
};

pub(super) static RUBY_GROUPS: Cycle = Cycle {
    needs: &["bundle", "rspec"],
    files: &[
        (
            "Gemfile",
            "source \"https://rubygems.org\"\ngem \"rspec\"\n",
        ),
        (".rspec", "--require spec_helper\n"),
        ("spec/spec_helper.rb", "require_relative \"../lib/calc\"\n"),
        (
            "lib/calc.rb",
            "class Calc\n  def add(a, b)\n    a + b\n  end\nend\n",
        ),
        (
            "spec/add_spec.rb",
            "RSpec.describe Calc do\n  it \"adds\" do\n    expect(subject.add(1, 2)).to eq 3\n  end\nend\n",
        ),
    ],
    test_path: "spec/calc/double_spec.rb",
    red: "RSpec.describe Calc do\n  describe \"#double\" do\n    context \"with a number\" do\n      it { expect(subject.double(1200)).to eq 2400 }\n    end\n  end\nend\n",
    new_test: "spec/calc/double_spec.rb Calc#double with a number (unnamed)",
    code_path: "lib/calc.rb",
    wrong: "class Calc\n  def add(a, b)\n    a + b\n  end\n\n  def double(n)\n    n + 1\n  end\nend\n",
    right: "class Calc\n  def add(a, b)\n    a + b\n  end\n\n  def double(n)\n    n + n\n  end\nend\n",
    neat: "class Calc\n  def add(a, b)\n    a + b\n  end\n\n  def double(n)\n    add(n, n)\n  end\nend\n",
    new_item: "double",
    symbol: "undefined method",
};

pub(super) static ELIXIR_IMPORT: Cycle = Cycle {
    needs: &["mix", "elixir"],
    files: &[
        (
            "mix.exs",
            "defmodule Demo.MixProject do\n  use Mix.Project\n  def project, do: [app: :demo, version: \"0.1.0\", deps: []]\n  def application, do: []\nend\n",
        ),
        (
            "lib/calc.ex",
            "defmodule Calc do\n  def add(a, b) do\n    a + b\n  end\nend\n",
        ),
        ("test/test_helper.exs", "ExUnit.start()\n"),
        (
            "test/add_test.exs",
            "defmodule Calc.AddTest do\n  use ExUnit.Case\n\n  test \"adds\" do\n    assert Calc.add(1, 2) == 3\n  end\nend\n",
        ),
    ],
    test_path: "test/calc/double_test.exs",
    red: "defmodule Calc.DoubleTest do\n  use ExUnit.Case, async: true\n  import Calc, only: [double: 1]\n\n  describe \"double/1\" do\n    test \"of a number\" do\n      assert double(1200) == 2400\n    end\n  end\nend\n",
    new_test: "of a number",
    code_path: "lib/calc.ex",
    wrong: "defmodule Calc do\n  def add(a, b) do\n    a + b\n  end\n\n  def double(n) do\n    n + 1\n  end\nend\n",
    right: "defmodule Calc do\n  def add(a, b) do\n    a + b\n  end\n\n  def double(n) do\n    n + n\n  end\nend\n",
    neat: "defmodule Calc do\n  def add(a, b) do\n    a + b\n  end\n\n  def double(n) do\n    add(n, n)\n  end\nend\n",
    new_item: "double",
    symbol: "double/1",
};
