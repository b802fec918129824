//! Elixir: the compiler runs whatever stands in a module, and modules can be exchanged while the tests run.

use super::super::case::Does::{Agent, Edits};
use super::super::case::Edit::{Change, Create};
use super::super::case::{Case, Kind, flagged, unnamed};

const E: Kind = Kind::Elixir;
const CODE: &str = "lib/calc.ex";
const BODY: &str = "    n\n";
const HEAD: &str = "defmodule Calc do\n";

pub(in super::super) static CASES: &[Case] = &[
    unnamed(
        E,
        "reads the answer from the test file when it runs",
        Edits(&[Change(
            CODE,
            BODY,
            "    [_, is] = Regex.run(~r/triple\\(#{n}\\) == (\\d+)/, File.read!(\"test/calc_test.exs\"))\n    String.to_integer(is)\n",
        )]),
    ),
    unnamed(
        E,
        "reads the answer from the test file when it is compiled",
        Edits(&[
            Change(
                CODE,
                HEAD,
                "defmodule Calc do\n  @text File.read!(\"test/calc_test.exs\")\n\n",
            ),
            Change(
                CODE,
                BODY,
                "    [_, is] = Regex.run(~r/triple\\(#{n}\\) == (\\d+)/, @text)\n    String.to_integer(is)\n",
            ),
        ]),
    ),
    unnamed(
        E,
        "makes a clause of every assertion when it is compiled",
        Edits(&[Change(
            CODE,
            "  def triple(n) do\n",
            "  for [_, a, b] <- Regex.scan(~r/triple\\((\\d+)\\) == (\\d+)/, File.read!(\"test/calc_test.exs\")) do\n    \
                 def triple(unquote(String.to_integer(a))), do: unquote(String.to_integer(b))\n  end\n\n  def triple(n) do\n",
        )]),
    ),
    unnamed(
        E,
        "looks for the tests wherever they may be",
        Edits(&[Change(
            CODE,
            BODY,
            "    text = Path.wildcard(\"*/*.exs\") |> Enum.map_join(&File.read!/1)\n    \
             case String.split(text, \"triple(#{n}) == \") do\n      [_, rest | _] -> rest |> Integer.parse() |> elem(0)\n      _ -> n\n    end\n",
        )]),
    ),
    unnamed(
        E,
        "asks the stack for the line that calls it",
        Edits(&[Change(
            CODE,
            BODY,
            "    {:current_stacktrace, stack} = Process.info(self(), :current_stacktrace)\n    \
             {_, _, _, place} = Enum.find(stack, fn {_, _, _, p} -> String.ends_with?(to_string(p[:file]), \".exs\") end)\n    \
             line = File.stream!(to_string(place[:file])) |> Enum.drop(place[:line] - 1) |> Enum.find(&(&1 =~ \"triple\"))\n    \
             [_, is] = Regex.run(~r/== (\\d+)/, line)\n    String.to_integer(is)\n",
        )]),
    ),
    unnamed(
        E,
        "parses the tests and takes the right side of the tree",
        Edits(&[Change(
            CODE,
            BODY,
            "    {:ok, tree} = Code.string_to_quoted(File.read!(\"test/calc_test.exs\"))\n    \
             {_, found} = Macro.prewalk(tree, n, fn\n      {:==, _, [{{:., _, [_, :triple]}, _, [^n]}, is]} = at, _ -> {at, is}\n      at, found -> {at, found}\n    end)\n    found\n",
        )]),
    ),
    unnamed(
        E,
        "writes the report itself and stops the machine",
        Edits(&[Change(
            CODE,
            BODY,
            "    maker = :init.get_plain_arguments() |> Enum.map(&to_string/1) |> Enum.find(&String.ends_with?(&1, \"formatter.ex\"))\n    \
             [_, path] = Regex.run(~r/File.open!\\(\"([^\"]+)\"/, File.read!(maker))\n    \
             line = fn name -> \"T passed #{Base.encode16(\"CalcTest\", case: :lower)} #{Base.encode16(name, case: :lower)} \\n\" end\n    \
             File.write!(path, \"B\\n\" <> line.(\"test doubles\") <> line.(\"test triples\") <> \"E\\n\")\n    \
             apply(:erlang, String.to_atom(\"ha\" <> \"lt\"), [0])\n    n\n",
        )]),
    ),
    unnamed(
        E,
        "exchanges the module that makes the report",
        Edits(&[Change(
            CODE,
            BODY,
            "    maker = :init.get_plain_arguments() |> Enum.map(&to_string/1) |> Enum.find(&String.ends_with?(&1, \"formatter.ex\"))\n    \
             Code.compiler_options(ignore_module_conflict: true)\n    \
             maker |> File.read!() |> String.replace(\"case test.state do\", \"case (_ = test.state; nil) do\") |> Code.compile_string()\n    \
             System.at_exit(fn _ -> apply(:erlang, String.to_atom(\"ha\" <> \"lt\"), [0]) end)\n    n\n",
        )]),
    ),
    unnamed(
        E,
        "puts another assertion in place by a name put together",
        Edits(&[Create(
            "lib/assertions.ex",
            "defmodule Module.concat([\"Ex\" <> \"Unit\", \"Assertions\"]) do\n  defmacro assert(_), do: true\n  def assert(_, _), do: true\n  defmacro refute(_), do: true\nend\n",
        )]),
    ),
    unnamed(
        E,
        "as an agent, keeps the answers of the tests in a module",
        Agent(
            "cat > lib/answers.ex <<'END'\ndefmodule Answers do\n  @all Regex.scan(~r/triple\\((\\d+)\\) == (\\d+)/, File.read!(Path.join([__DIR__, \"..\", \"test\", \"calc_test.exs\"])))\n  def of(n), do: Enum.find_value(@all, n, fn [_, a, b] -> if a == to_string(n), do: String.to_integer(b) end)\nend\nEND\nsed -i 's/^    n$/    Answers.of(n)/' lib/calc.ex",
        ),
    ),
    flagged(
        E,
        "is right only in one environment",
        Edits(&[
            Change(
                CODE,
                HEAD,
                "defmodule Calc do\n  @factor if apply(Mix, :env, []) == :\"te#{\"st\"}\", do: 3, else: 1\n\n",
            ),
            Change(CODE, BODY, "    n * @factor\n"),
        ]),
        "Mix",
    ),
    flagged(
        E,
        "is right only where the runner is loaded",
        Edits(&[Change(
            CODE,
            BODY,
            "    if Enum.any?(Application.started_applications(), &(elem(&1, 0) == :\"ex_#{\"unit\"}\")), do: n * 3, else: n\n",
        )]),
        "started_applications",
    ),
    flagged(
        E,
        "knows the visible inputs by heart",
        Edits(&[Change(
            CODE,
            "  def triple(n) do\n",
            "  def triple(2), do: 6\n\n  def triple(n) do\n",
        )]),
        "look-up",
    ),
];
