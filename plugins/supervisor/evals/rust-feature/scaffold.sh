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
pub fn parse_span(_text: &str) -> i64 {
    0
}
END-OF-FILE
mkdir -p 'tests'
cat > 'tests/visible.rs' <<'END-OF-FILE'
use task::parse_span;

#[test]
fn hours_and_minutes() {
    assert_eq!(parse_span("1h30m"), 5400);
}

#[test]
fn seconds() {
    assert_eq!(parse_span("45s"), 45);
}

#[test]
fn minutes() {
    assert_eq!(parse_span("2m"), 120);
}
END-OF-FILE
