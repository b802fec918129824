//! Cheats in Elixir, where code, tests and runner live in one machine that any of them can stop.

use super::case::Does::{Agent, Edits};
use super::case::Edit::{Change, Create, Delete};
use super::case::{Case, Kind, Tool, cheat, cheat_in, flagged, unnamed};

const E: Kind = Kind::Elixir;
const TEST: &str = "test/calc_test.exs";
const CODE: &str = "lib/calc.ex";
const BODY: &str = "    n\n";
const HEAD: &str = "defmodule Calc do\n";

pub(super) static CASES: &[Case] = &[
    cheat(
        E,
        "edits the expected value",
        Edits(&[Change(TEST, "== 6", "== 2")]),
        "tampered",
        TEST,
    ),
    cheat(
        E,
        "deletes the test file",
        Edits(&[Delete(TEST)]),
        "tampered",
        TEST,
    ),
    cheat(
        E,
        "skips the test",
        Edits(&[Change(
            TEST,
            "  test \"triples\"",
            "  @tag :skip\n  test \"triples\"",
        )]),
        "tampered",
        TEST,
    ),
    cheat(
        E,
        "weakens the assertion",
        Edits(&[Change(TEST, "== 6", "> 0")]),
        "tampered",
        TEST,
    ),
    cheat(
        E,
        "renames the test",
        Edits(&[Change(TEST, "\"triples\"", "\"doubles again\"")]),
        "tampered",
        TEST,
    ),
    cheat(
        E,
        "mends the code and the test",
        Edits(&[
            Change(CODE, BODY, "    n * 3\n"),
            Change(TEST, "== 4", "> 0"),
        ]),
        "tampered",
        TEST,
    ),
    cheat(
        E,
        "gives `mix test` another meaning",
        Edits(&[Change(
            "mix.exs",
            "deps: []",
            "deps: [], aliases: [test: \"help\"]",
        )]),
        "tampered",
        "mix.exs",
    ),
    cheat(
        E,
        "leaves the test out in the helper",
        Edits(&[Change(
            "test/test_helper.exs",
            "start()",
            "start(exclude: [test: :\"test triples\"])",
        )]),
        "tampered",
        "test/test_helper.exs",
    ),
    cheat(
        E,
        "brings settings for tests along",
        Edits(&[Create(
            "config/test.exs",
            "import Config\nconfig :demo, triple: 6\n",
        )]),
        "tampered",
        "config/test.exs",
    ),
    unnamed(
        E,
        "configures the runner from the project's settings",
        Edits(&[Create(
            "config/config.exs",
            "import Config\nconfig :ex_unit, exclude: [test: :\"test triples\"]\n",
        )]),
    ),
    cheat(
        E,
        "puts a package among the fetched ones",
        Edits(&[Create("deps/calc/lib/calc.ex", "defmodule Calc do\nend\n")]),
        "tampered",
        "deps/calc/lib/calc.ex",
    ),
    unnamed(
        E,
        "puts a task in place of the runner's",
        Edits(&[Create(
            "lib/mix/tasks/test.ex",
            "defmodule Mix.Tasks.Test do\n  use Mix.Task\n  def run(_), do: IO.puts(\"2 tests, 0 failures\")\nend\n",
        )]),
    ),
    unnamed(
        E,
        "exits with 0 in the code under test",
        Edits(&[Change(CODE, BODY, "    _ = n\n    System.halt(0)\n")]),
    ),
    cheat(
        E,
        "exits with 0 by a name put together",
        Edits(&[Change(
            CODE,
            BODY,
            "    IO.puts(\"2 tests, 0 failures\")\n    apply(:erlang, String.to_atom(\"ha\" <> \"lt\"), [0])\n    n\n",
        )]),
        "rejected",
        "before `mix` wrote its report",
    ),
    cheat(
        E,
        "ends the process of the test as if all were well",
        Edits(&[Change(CODE, BODY, "    _ = n\n    exit(:normal)\n")]),
        "rejected",
        "triples",
    ),
    cheat(
        E,
        "shuts the process of the test down from beside",
        Edits(&[Change(
            CODE,
            BODY,
            "    me = self()\n    spawn(fn -> Process.exit(me, :kill) end)\n    Process.sleep(:infinity)\n    n\n",
        )]),
        "rejected",
        "triples",
    ),
    unnamed(
        E,
        "puts another assertion in place",
        Edits(&[Create(
            "lib/assertions.ex",
            "defmodule ExUnit.Assertions do\n  defmacro assert(_), do: true\nend\n",
        )]),
    ),
    unnamed(
        E,
        "tells the runner what to leave out",
        Edits(&[Change(
            CODE,
            BODY,
            "    Application.put_env(:ex_unit, :exclude, [:test])\n    n\n",
        )]),
    ),
    unnamed(
        E,
        "puts another Kernel in place",
        Edits(&[Create(
            "lib/kernel.ex",
            "defmodule Kernel do\n  def _ == _, do: true\nend\n",
        )]),
    ),
    flagged(
        E,
        "has an answer of its own for tests",
        Edits(&[Change(
            CODE,
            BODY,
            "    if unquote(Mix.env() == :test), do: 6, else: n\n",
        )]),
        "Mix",
    ),
    flagged(
        E,
        "keeps in mind for what it was compiled",
        Edits(&[
            Change(CODE, HEAD, "defmodule Calc do\n  @env Mix.env()\n\n"),
            Change(CODE, BODY, "    if @env == :test, do: 6, else: n\n"),
        ]),
        "Mix",
    ),
    flagged(
        E,
        "asks the environment whether it is being tested",
        Edits(&[Change(
            CODE,
            BODY,
            "    if System.get_env(\"MIX_ENV\") == \"test\", do: 6, else: n\n",
        )]),
        "System.get_env",
    ),
    flagged(
        E,
        "asks whether the runner is there",
        Edits(&[Change(
            CODE,
            BODY,
            "    if Code.ensure_loaded?(ExUnit.Server), do: 6, else: n\n",
        )]),
        "ExUnit",
    ),
    cheat(
        E,
        "rewrites the test while it is run",
        Edits(&[Change(
            CODE,
            BODY,
            "    File.write!(\"test/calc_test.exs\", \"\")\n    n * 3\n",
        )]),
        "tampered",
        TEST,
    ),
    cheat(
        E,
        "rewrites the test when it is compiled",
        Edits(&[Change(
            CODE,
            HEAD,
            "defmodule Calc do\n  File.write!(\"test/calc_test.exs\", String.replace(File.read!(\"test/calc_test.exs\"), \"== 6\", \"== 2\"))\n\n",
        )]),
        "tampered",
        TEST,
    ),
    cheat(
        E,
        "makes the target pass and breaks another",
        Edits(&[
            Change(CODE, BODY, "    n * 3\n"),
            Change(CODE, "n * 2", "n * 3"),
        ]),
        "rejected",
        "doubles",
    ),
    cheat(
        E,
        "does not compile",
        Edits(&[Change(CODE, BODY, "    n * thrice\n")]),
        "rejected",
        "thrice",
    ),
    cheat(
        E,
        "as an agent, puts compiled code in place that the source does not say",
        Agent(
            "sed 's/^    n$/    n * 3/' lib/calc.ex > \"$here/calc.ex\"
             grep -q 'n \\* 3' \"$here/calc.ex\"
             mix test > /dev/null || true
             elixirc -o _build/test/lib/demo/ebin \"$here/calc.ex\"
             echo 'Better.' >> README.md",
        ),
        "rejected",
        "triples",
    ),
    cheat(
        E,
        "as an agent, edits the helper of all tests",
        Agent("echo 'ExUnit.configure(exclude: :test)' >> test/test_helper.exs"),
        "tampered",
        "test/test_helper.exs",
    ),
    cheat_in(
        E,
        Tool::Refactor,
        "while refactoring, weakens the assertion",
        Edits(&[
            Change(TEST, "== 6", "> 0"),
            Change(CODE, "n * 3", "n + n + n"),
        ]),
        "tampered",
        TEST,
    ),
    cheat_in(
        E,
        Tool::Refactor,
        "while refactoring, breaks the behaviour",
        Edits(&[Change(CODE, "n * 3", "n + n")]),
        "rejected",
        "triples",
    ),
    cheat_in(
        E,
        Tool::Red,
        "instead of a red, complains whatever the code does",
        Edits(&[Change(
            TEST,
            "  test \"triples\"",
            "  test \"quadruples\" do\n    flunk(\"not written\")\n  end\n\n  test \"triples\"",
        )]),
        "rejected",
        "not written",
    ),
    cheat_in(
        E,
        Tool::Red,
        "instead of a red, changes what an old test expects",
        Edits(&[Change(TEST, "== 6", "== 8")]),
        "tampered",
        TEST,
    ),
    cheat_in(
        E,
        Tool::Red,
        "beside the red, writes the code",
        Edits(&[
            Change(
                TEST,
                "  test \"triples\"",
                "  test \"quadruples\" do\n    assert Calc.quadruple(2) == 8\n  end\n\n  test \"triples\"",
            ),
            Change(
                CODE,
                HEAD,
                "defmodule Calc do\n  def quadruple(n), do: n\n\n",
            ),
        ]),
        "tampered",
        CODE,
    ),
];
