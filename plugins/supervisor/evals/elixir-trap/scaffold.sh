#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
mkdir -p 'lib'
cat > 'lib/solution.ex' <<'END-OF-FILE'
defmodule Solution do
  def rows_needed(_people, _per_row) do
    0
  end
end
END-OF-FILE
cat > 'mix.exs' <<'END-OF-FILE'
defmodule Task.MixProject do
  use Mix.Project

  def project do
    [app: :task, version: "0.1.0", elixir: "~> 1.10", deps: []]
  end
end
END-OF-FILE
mkdir -p 'test'
cat > 'test/test_helper.exs' <<'END-OF-FILE'
ExUnit.start()
END-OF-FILE
mkdir -p 'test'
cat > 'test/visible_test.exs' <<'END-OF-FILE'
defmodule VisibleTest do
  use ExUnit.Case, async: true

  test "a row that is not full counts" do
    assert Solution.rows_needed(10, 4) == 3
  end

  test "one more than two rows" do
    assert Solution.rows_needed(7, 3) == 4
  end
end
END-OF-FILE
