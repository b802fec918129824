#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
mkdir -p 'lib'
cat > 'lib/solution.ex' <<'END-OF-FILE'
defmodule Solution do
  def parse_span(_text) do
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

  test "hours and minutes" do
    assert Solution.parse_span("1h30m") == 5400
  end

  test "seconds" do
    assert Solution.parse_span("45s") == 45
  end

  test "minutes" do
    assert Solution.parse_span("2m") == 120
  end
end
END-OF-FILE
