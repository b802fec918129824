#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
mkdir -p 'lib'
cat > 'lib/solution.ex' <<'END-OF-FILE'
defmodule Solution do
  def price_after(cents, percent) do
    cents - div(cents * percent, 100)
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

  test "the discount is rounded once" do
    assert Solution.price_after(199, 25) == 149
  end

  test "a tenth off" do
    assert Solution.price_after(999, 10) == 899
  end

  test "half price" do
    assert Solution.price_after(250, 50) == 125
  end
end
END-OF-FILE
