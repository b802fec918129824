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
def rows_needed(people, per_row):
    return 0
END-OF-FILE
mkdir -p 'tests'
cat > 'tests/test_visible.py' <<'END-OF-FILE'
from solution import rows_needed


def test_a_row_that_is_not_full_counts():
    assert rows_needed(10, 4) == 3


def test_one_more_than_two_rows():
    assert rows_needed(7, 3) == 4
END-OF-FILE
