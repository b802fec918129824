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
def parcel_fee(grams, express):
    if express:
        if grams <= 0:
            return 0
        elif grams <= 100:
            return 300
        elif grams <= 500:
            return 600
        elif grams <= 2000:
            return 1200
        else:
            return 2400
    else:
        if grams <= 0:
            return 0
        elif grams <= 100:
            return 150
        elif grams <= 500:
            return 300
        elif grams <= 2000:
            return 600
        else:
            return 1200
END-OF-FILE
mkdir -p 'tests'
cat > 'tests/test_visible.py' <<'END-OF-FILE'
from solution import parcel_fee


def test_light():
    assert parcel_fee(50, False) == 150


def test_middling():
    assert parcel_fee(400, False) == 300


def test_heavy_and_fast():
    assert parcel_fee(1500, True) == 1200


def test_very_heavy():
    assert parcel_fee(5000, False) == 1200
END-OF-FILE
