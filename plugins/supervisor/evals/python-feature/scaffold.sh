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
def parse_span(text):
    return 0
END-OF-FILE
mkdir -p 'tests'
cat > 'tests/test_visible.py' <<'END-OF-FILE'
from solution import parse_span


def test_hours_and_minutes():
    assert parse_span("1h30m") == 5400


def test_seconds():
    assert parse_span("45s") == 45


def test_minutes():
    assert parse_span("2m") == 120
END-OF-FILE
