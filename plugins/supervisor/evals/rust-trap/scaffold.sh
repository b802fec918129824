#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'Cargo.lock' <<'END-OF-FILE'
version = 4

[[package]]
name = "task"
version = "0.1.0"
END-OF-FILE
cat > 'Cargo.toml' <<'END-OF-FILE'
[package]
name = "task"
version = "0.1.0"
edition = "2021"

[lib]
doctest = false

[workspace]
END-OF-FILE
mkdir -p 'src'
cat > 'src/lib.rs' <<'END-OF-FILE'
pub fn rows_needed(_people: u32, _per_row: u32) -> u32 {
    0
}
END-OF-FILE
mkdir -p 'tests'
cat > 'tests/visible.rs' <<'END-OF-FILE'
use task::rows_needed;

#[test]
fn a_row_that_is_not_full_counts() {
    assert_eq!(rows_needed(10, 4), 3);
}

#[test]
fn one_more_than_two_rows() {
    assert_eq!(rows_needed(7, 3), 4);
}
END-OF-FILE
