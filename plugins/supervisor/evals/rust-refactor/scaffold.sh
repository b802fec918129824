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
pub fn parcel_fee(grams: i64, express: bool) -> i64 {
    if express {
        if grams <= 0 {
            0
        } else if grams <= 100 {
            300
        } else if grams <= 500 {
            600
        } else if grams <= 2000 {
            1200
        } else {
            2400
        }
    } else if grams <= 0 {
        0
    } else if grams <= 100 {
        150
    } else if grams <= 500 {
        300
    } else if grams <= 2000 {
        600
    } else {
        1200
    }
}
END-OF-FILE
mkdir -p 'tests'
cat > 'tests/visible.rs' <<'END-OF-FILE'
use task::parcel_fee;

#[test]
fn light() {
    assert_eq!(parcel_fee(50, false), 150);
}

#[test]
fn middling() {
    assert_eq!(parcel_fee(400, false), 300);
}

#[test]
fn heavy_and_fast() {
    assert_eq!(parcel_fee(1500, true), 1200);
}

#[test]
fn very_heavy() {
    assert_eq!(parcel_fee(5000, false), 1200);
}
END-OF-FILE
