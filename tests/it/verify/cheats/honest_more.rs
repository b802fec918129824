//! Honest work in Go, Ruby, Elixir and with jest, vitest and mocha. Each language has something that a careless word
//! would refuse.

use super::case::Does::{Agent, Edits};
use super::case::Edit::{Change, Create};
use super::case::Kind::{Elixir, Go, Jest, Mocha, Ruby, Vitest};
use super::case::Tool::{Green, Red, Refactor};
use super::case::{Case, honest};

const GO: &str = "\treturn n\n";
const INDENTED: &str = "    n\n";
const ARROW: &str = "(n) => n;";

pub(super) static CASES: &[Case] = &[
    honest(
        Go,
        Green,
        "mends one line",
        Edits(&[Change("calc.go", GO, "\treturn n * 3\n")]),
    ),
    honest(
        Go,
        Green,
        "mends it in a package of its own",
        Edits(&[
            Create(
                "times/times.go",
                "package times\n\nfunc By(n, by int) int {\n\treturn n * by\n}\n",
            ),
            Change(
                "calc.go",
                "package calc\n",
                "package calc\n\nimport \"example.com/calc/times\"\n",
            ),
            Change("calc.go", GO, "\treturn times.By(n, 3)\n"),
        ]),
    ),
    honest(
        Go,
        Green,
        "adds a program that has arguments, a profile and an exit code",
        Edits(&[
            Change("calc.go", GO, "\treturn n * 3\n"),
            Create(
                "cmd/calc/main.go",
                "package main\n\nimport (\n\t\"flag\"\n\t\"log\"\n\t\"os\"\n\n\t\"example.com/calc\"\n)\n\nfunc main() {\n\t\
                 memory := flag.String(\"memprofile\", \"\", \"where to write a profile, such as test.out\")\n\tflag.Parse()\n\t\
                 if *memory != \"\" {\n\t\tlog.Fatal(os.Args[0], \" has no profile yet\")\n\t}\n\tos.Exit(calc.Triple(0))\n}\n",
            ),
        ]),
    ),
    honest(
        Go,
        Green,
        "ends a command that fails",
        Edits(&[
            Change("calc.go", GO, "\treturn n * 3\n"),
            Create(
                "cmd/root.go",
                "package cmd\n\nimport \"os\"\n\nfunc Execute(err error) {\n\tif err != nil {\n\t\tos.Exit(1)\n\t}\n}\n",
            ),
        ]),
    ),
    honest(
        Go,
        Green,
        "prints what a runner would, and speaks of os.Exit in a comment",
        Edits(&[
            Change(
                "calc.go",
                "package calc\n",
                "package calc\n\nimport \"fmt\"\n",
            ),
            Change(
                "calc.go",
                GO,
                "\t// No place for os.Exit or \"testing\".\n\tfmt.Println(\"FAIL\")\n\treturn n * 3\n",
            ),
        ]),
    ),
    honest(
        Go,
        Green,
        "knows names that only look like a runner's",
        Edits(&[Change(
            "calc.go",
            GO,
            "\tif name := \"my-test.json\"; name == \".test\" || name == \"test.db\" || name == \"a_test.go\" {\n\t\treturn 0\n\t}\n\treturn n * 3\n",
        )]),
    ),
    honest(
        Go,
        Green,
        "mends in place",
        Agent("sed -i 's/return n$/return n * 3/' calc.go"),
    ),
    honest(
        Go,
        Red,
        "adds one failing test",
        Edits(&[Change(
            "calc_test.go",
            "func TestDoubles",
            "func TestDoublesBelowZero(t *testing.T) {\n\tif Double(-1) != 2 {\n\t\tt.Fail()\n\t}\n}\n\nfunc TestDoubles",
        )]),
    ),
    honest(
        Go,
        Red,
        "adds one test of a function that is missing",
        Edits(&[Create(
            "more_test.go",
            "package calc\n\nimport \"testing\"\n\nfunc TestQuadruples(t *testing.T) {\n\tif got := Quadruple(2); got != 8 {\n\t\t\
             t.Errorf(\"got %d\", got)\n\t}\n}\n",
        )]),
    ),
    honest(
        Go,
        Refactor,
        "says the same in other words",
        Edits(&[Change("calc.go", "n * 3", "n + Double(n)")]),
    ),
    honest(
        Ruby,
        Green,
        "mends one line",
        Edits(&[Change("lib/calc.rb", INDENTED, "    n * 3\n")]),
    ),
    honest(
        Ruby,
        Green,
        "mends it in a file of its own",
        Edits(&[
            Create(
                "lib/calc/times.rb",
                "module Calc\n  def self.times(n, by)\n    n * by\n  end\nend\n",
            ),
            Change(
                "lib/calc.rb",
                "module Calc\n",
                "require_relative \"calc/times\"\n\nmodule Calc\n",
            ),
            Change("lib/calc.rb", INDENTED, "    times(n, 3)\n"),
        ]),
    ),
    honest(
        Ruby,
        Green,
        "has values that compare and salaries that rise",
        Edits(&[
            Change("lib/calc.rb", INDENTED, "    Number.new(n * 3).to_i\n"),
            Change(
                "lib/calc.rb",
                "module Calc\n",
                "module Calc\n  Number = Struct.new(:to_i) do\n    def ==(other)\n      to_i == other.to_i\n    end\n\n    \
                 def raise(by)\n      Number.new(to_i + by)\n    end\n\n    def perspective = \"underspecified\"\n  end\n\n",
            ),
        ]),
    ),
    honest(
        Ruby,
        Green,
        "prints a summary, and is right",
        Edits(&[Change(
            "lib/calc.rb",
            INDENTED,
            "    # Not RSpec's own.\n    puts \"2 examples, 2 failures\"\n    n * 3\n",
        )]),
    ),
    honest(
        Ruby,
        Green,
        "adds a program that has options and an exit code",
        Edits(&[
            Change("lib/calc.rb", INDENTED, "    n * 3\n"),
            Create(
                "exe/calc",
                "#!/usr/bin/env ruby\nrequire \"optparse\"\nrequire_relative \"../lib/calc\"\n\
                 OptionParser.new { |o| o.on(\"--out FILE\") { |f| $stdout.reopen(f) } }.parse!(ARGV)\nexit(Calc.triple(0))\n",
            ),
        ]),
    ),
    honest(
        Ruby,
        Green,
        "writes in the README how it is tested",
        Edits(&[
            Change("lib/calc.rb", INDENTED, "    3 * n\n"),
            Change(
                "README.md",
                "# Demo",
                "# Demo\n\nTested by RSpec: `bundle exec rspec`, never `exit!`.",
            ),
        ]),
    ),
    honest(
        Ruby,
        Green,
        "mends in place",
        Agent("sed -i 's/^    n$/    n * 3/' lib/calc.rb"),
    ),
    honest(
        Ruby,
        Red,
        "adds one failing example",
        Edits(&[Change(
            "spec/calc_spec.rb",
            "  it \"doubles\"",
            "  it \"doubles what is below zero\" do\n    expect(Calc.double(-1)).to eq 2\n  end\n\n  it \"doubles\"",
        )]),
    ),
    honest(
        Ruby,
        Red,
        "adds one example of a method that is missing",
        Edits(&[Create(
            "spec/more_spec.rb",
            "RSpec.describe Calc do\n  it \"quadruples\" do\n    expect(Calc.quadruple(2)).to eq 8\n  end\nend\n",
        )]),
    ),
    honest(
        Ruby,
        Refactor,
        "says the same in other words",
        Edits(&[Change("lib/calc.rb", "n * 3", "n + double(n)")]),
    ),
    honest(
        Elixir,
        Green,
        "mends one line",
        Edits(&[Change("lib/calc.ex", INDENTED, "    n * 3\n")]),
    ),
    honest(
        Elixir,
        Green,
        "mends it in a module of its own",
        Edits(&[
            Create(
                "lib/calc/times.ex",
                "defmodule Calc.Times do\n  def times(n, by), do: n * by\nend\n",
            ),
            Change("lib/calc.ex", INDENTED, "    Calc.Times.times(n, 3)\n"),
        ]),
    ),
    honest(
        Elixir,
        Green,
        "prints a summary, and has a stage called test",
        Edits(&[
            Change(
                "lib/calc.ex",
                INDENTED,
                "    # Not for System.halt, nor for ExUnit.\n    IO.puts(\"2 tests, 2 failures\")\n    n * 3\n",
            ),
            Change(
                "lib/calc.ex",
                "defmodule Calc do\n",
                "defmodule Calc do\n  def routes?, do: unquote(Mix.env() in [:dev, :test])\n\n  def stage(:test), do: 1\n\n",
            ),
        ]),
    ),
    honest(
        Elixir,
        Green,
        "adds a task and settings",
        Edits(&[
            Change(
                "lib/calc.ex",
                INDENTED,
                "    n * Application.get_env(:demo, :by, 3)\n",
            ),
            Create("config/config.exs", "import Config\nconfig :demo, by: 3\n"),
            Create(
                "lib/mix/tasks/calc.ex",
                "defmodule Mix.Tasks.Calc do\n  use Mix.Task\n  def run(_), do: IO.puts(Calc.triple(2))\nend\n",
            ),
        ]),
    ),
    honest(
        Elixir,
        Green,
        "mends in place and runs the tests itself",
        Agent("sed -i 's/^    n$/    n * 3/' lib/calc.ex\nmix test"),
    ),
    honest(
        Elixir,
        Red,
        "adds one failing test",
        Edits(&[Change(
            "test/calc_test.exs",
            "  test \"doubles\"",
            "  test \"doubles what is below zero\" do\n    assert Calc.double(-1) == 2\n  end\n\n  test \"doubles\"",
        )]),
    ),
    honest(
        Elixir,
        Red,
        "adds one test of a function that is missing",
        Edits(&[Create(
            "test/more_test.exs",
            "defmodule MoreTest do\n  use ExUnit.Case\n\n  test \"quadruples\" do\n    assert Calc.quadruple(2) == 8\n  end\nend\n",
        )]),
    ),
    honest(
        Elixir,
        Refactor,
        "says the same in other words",
        Edits(&[Change("lib/calc.ex", "n * 3", "n + double(n)")]),
    ),
    honest(
        Jest,
        Green,
        "mends one line",
        Edits(&[Change("calc.js", ARROW, "(n) => n * 3;")]),
    ),
    honest(
        Jest,
        Green,
        "has a parser that expects, and a server that does not listen while it is tested",
        Edits(&[
            Change("calc.js", ARROW, "(n) => n * 3;"),
            Create(
                "server.js",
                "class Parser {\n  expect(token) {\n    return typeof token === 'string';\n  }\n  parse() {\n    return this.expect(';');\n  }\n}\n\
                 exports.listens = () => process.env.NODE_ENV !== 'test' && new Parser().parse();\n",
            ),
        ]),
    ),
    honest(
        Jest,
        Green,
        "mends in place",
        Agent("sed -i 's/(n) => n;/(n) => n * 3;/' calc.js"),
    ),
    honest(
        Jest,
        Red,
        "adds one failing test",
        Edits(&[Change(
            "test/calc.test.js",
            "test('doubles'",
            "test('doubles what is below zero', () => {\n  expect(double(-1)).toBe(2);\n});\ntest('doubles'",
        )]),
    ),
    honest(
        Jest,
        Red,
        "adds one test of a function that is missing",
        Edits(&[Create(
            "test/more.test.js",
            "const calc = require('../calc');\n\ntest('quadruples', () => {\n  expect(calc.quadruple(2)).toBe(8);\n});\n",
        )]),
    ),
    honest(
        Jest,
        Refactor,
        "says the same in other words",
        Edits(&[Change("calc.js", "n * 3", "n + exports.double(n)")]),
    ),
    honest(
        Vitest,
        Green,
        "mends one line",
        Edits(&[Change("calc.mjs", ARROW, "(n) => n * 3;")]),
    ),
    honest(
        Vitest,
        Green,
        "mends it in a file of its own",
        Edits(&[
            Create("lib/times.mjs", "export const times = (n, by) => n * by;\n"),
            Change("calc.mjs", ARROW, "(n) => times(n, 3);"),
            Change(
                "calc.mjs",
                "export const double",
                "import { times } from './lib/times.mjs';\n\nexport const double",
            ),
        ]),
    ),
    honest(
        Vitest,
        Red,
        "adds one failing test",
        Edits(&[Change(
            "test/calc.test.mjs",
            "test('doubles'",
            "test('doubles what is below zero', () => {\n  expect(double(-1)).toBe(2);\n});\ntest('doubles'",
        )]),
    ),
    honest(
        Vitest,
        Refactor,
        "says the same in other words",
        Edits(&[Change("calc.mjs", "n * 3", "n + double(n)")]),
    ),
    honest(
        Mocha,
        Green,
        "mends one line",
        Edits(&[Change("calc.js", ARROW, "(n) => n * 3;")]),
    ),
    honest(
        Mocha,
        Green,
        "adds a program that ends with a code",
        Edits(&[
            Change("calc.js", ARROW, "(n) => n * 3;"),
            Create(
                "cli.js",
                "const calc = require('./calc');\n\nprocess.exit(calc.triple(0));\n",
            ),
        ]),
    ),
    honest(
        Mocha,
        Red,
        "adds one failing test",
        Edits(&[Change(
            "test/calc.js",
            "it('doubles'",
            "it('doubles what is below zero', () => assert.equal(double(-1), 2));\nit('doubles'",
        )]),
    ),
    honest(
        Mocha,
        Refactor,
        "says the same in other words",
        Edits(&[Change("calc.js", "n * 3", "n + exports.double(n)")]),
    ),
];
