#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'README.md' <<'END-OF-FILE'
# Task
END-OF-FILE
mkdir -p 'lib'
cat > 'lib/solution.rb' <<'END-OF-FILE'
module Solution
  def self.price_after(cents, percent)
    cents - cents * percent / 100
  end
end
END-OF-FILE
mkdir -p 'test'
cat > 'test/visible_test.rb' <<'END-OF-FILE'
require "minitest/autorun"
require_relative "../lib/solution"

class VisibleTest < Minitest::Test
  def test_the_discount_is_rounded_once
    assert_equal 149, Solution.price_after(199, 25)
  end

  def test_a_tenth_off
    assert_equal 899, Solution.price_after(999, 10)
  end

  def test_half_price
    assert_equal 125, Solution.price_after(250, 50)
  end
end
END-OF-FILE
