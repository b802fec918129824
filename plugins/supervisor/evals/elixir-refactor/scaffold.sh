#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
mkdir -p 'lib'
cat > 'lib/solution.ex' <<'END-OF-FILE'
defmodule Solution do
  def parcel_fee(grams, express) do
    if express do
      cond do
        grams <= 0 -> 0
        grams <= 100 -> 300
        grams <= 500 -> 600
        grams <= 2000 -> 1200
        true -> 2400
      end
    else
      cond do
        grams <= 0 -> 0
        grams <= 100 -> 150
        grams <= 500 -> 300
        grams <= 2000 -> 600
        true -> 1200
      end
    end
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

  test "light" do
    assert Solution.parcel_fee(50, false) == 150
  end

  test "middling" do
    assert Solution.parcel_fee(400, false) == 300
  end

  test "heavy and fast" do
    assert Solution.parcel_fee(1500, true) == 1200
  end

  test "very heavy" do
    assert Solution.parcel_fee(5000, false) == 1200
  end
end
END-OF-FILE
