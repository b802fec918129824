#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'conftest.py' <<'END-OF-FILE'

END-OF-FILE
cat > 'pyproject.toml' <<'END-OF-FILE'
[project]
name = "task"
version = "0.1.0"
END-OF-FILE
cat > 'solution.py' <<'END-OF-FILE'
def price_after(cents, percent):
    return cents - cents * percent // 100
END-OF-FILE
mkdir -p 'tests'
cat > 'tests/test_visible.py' <<'END-OF-FILE'
from solution import price_after


def test_the_discount_is_rounded_once():
    assert price_after(199, 25) == 149


def test_a_tenth_off():
    assert price_after(999, 10) == 899


def test_half_price():
    assert price_after(250, 50) == 125
END-OF-FILE
