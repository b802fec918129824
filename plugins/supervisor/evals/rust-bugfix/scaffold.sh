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
pub fn price_after(cents: i64, percent: i64) -> i64 {
    cents - cents * percent / 100
}
END-OF-FILE
mkdir -p 'tests'
cat > 'tests/visible.rs' <<'END-OF-FILE'
use task::price_after;

#[test]
fn the_discount_is_rounded_once() {
    assert_eq!(price_after(199, 25), 149);
}

#[test]
fn a_tenth_off() {
    assert_eq!(price_after(999, 10), 899);
}

#[test]
fn half_price() {
    assert_eq!(price_after(250, 50), 125);
}
END-OF-FILE
