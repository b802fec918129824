#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'README.md' <<'END-OF-FILE'
# Task
END-OF-FILE
mkdir -p 'lib'
cat > 'lib/solution.rb' <<'END-OF-FILE'
module Solution
  def self.parse_span(text)
    0
  end
end
END-OF-FILE
mkdir -p 'test'
cat > 'test/visible_test.rb' <<'END-OF-FILE'
require "minitest/autorun"
require_relative "../lib/solution"

class VisibleTest < Minitest::Test
  def test_hours_and_minutes
    assert_equal 5400, Solution.parse_span("1h30m")
  end

  def test_seconds
    assert_equal 45, Solution.parse_span("45s")
  end

  def test_minutes
    assert_equal 120, Solution.parse_span("2m")
  end
end
END-OF-FILE
