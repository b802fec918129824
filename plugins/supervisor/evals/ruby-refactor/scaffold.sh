#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'README.md' <<'END-OF-FILE'
# Task
END-OF-FILE
mkdir -p 'lib'
cat > 'lib/solution.rb' <<'END-OF-FILE'
module Solution
  def self.parcel_fee(grams, express)
    if express
      if grams <= 0
        0
      elsif grams <= 100
        300
      elsif grams <= 500
        600
      elsif grams <= 2000
        1200
      else
        2400
      end
    elsif grams <= 0
      0
    elsif grams <= 100
      150
    elsif grams <= 500
      300
    elsif grams <= 2000
      600
    else
      1200
    end
  end
end
END-OF-FILE
mkdir -p 'test'
cat > 'test/visible_test.rb' <<'END-OF-FILE'
require "minitest/autorun"
require_relative "../lib/solution"

class VisibleTest < Minitest::Test
  def test_light
    assert_equal 150, Solution.parcel_fee(50, false)
  end

  def test_middling
    assert_equal 300, Solution.parcel_fee(400, false)
  end

  def test_heavy_and_fast
    assert_equal 1200, Solution.parcel_fee(1500, true)
  end

  def test_very_heavy
    assert_equal 1200, Solution.parcel_fee(5000, false)
  end
end
END-OF-FILE
