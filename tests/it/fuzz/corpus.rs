//! The corpus of the fuzzers, replayed: seeds of each shape that is read, and whatever a fuzzer found. Each file is also
//! changed in a few hundred ways, by dice that fall the same each time. `just fuzz TARGET SECONDS` looks for more.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::targets::{FuzzTarget, TARGETS};

/// All that one target may hold, so that the repository stays small.
const MOST_BYTES: u64 = 96 * 1024;
/// For one input, on a machine that does much else.
const LONGEST: Duration = Duration::from_secs(5);

fn corpus_of(target: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let entries = fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn run(target: FuzzTarget, data: &[u8], what: &str) {
    let began = Instant::now();
    let ran = catch_unwind(AssertUnwindSafe(|| target(data)));
    assert!(
        ran.is_ok(),
        "{what}: see the panic above, of {:?}",
        String::from_utf8_lossy(data)
    );
    assert!(
        began.elapsed() < LONGEST,
        "{what} took {:?}",
        began.elapsed()
    );
}

#[test]
fn every_corpus_file_is_read_by_its_target() {
    for (name, target) in TARGETS {
        let files = corpus_of(name);
        assert!(files.len() >= 5, "{name}: a corpus of {}", files.len());
        let bytes: u64 = files
            .iter()
            .map(|path| path.metadata().unwrap().len())
            .sum();
        assert!(bytes <= MOST_BYTES, "{name}: {bytes} bytes");
        for path in files {
            run(
                *target,
                &fs::read(&path).unwrap(),
                &path.display().to_string(),
            );
        }
    }
}

#[test]
fn mutated_corpus_files_break_no_rule() {
    let rounds = std::env::var("SUPERVISOR_FUZZ_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(40);
    let only = std::env::var("SUPERVISOR_FUZZ").ok();
    for (name, target) in TARGETS
        .iter()
        .filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name))
    {
        let files: Vec<Vec<u8>> = corpus_of(name)
            .iter()
            .map(|path| fs::read(path).unwrap())
            .collect();
        for (n, file) in files.iter().enumerate() {
            let mut dice = fastrand::Rng::with_seed(n as u64);
            for round in 0..rounds {
                let other = &files[dice.usize(..files.len())];
                run(
                    *target,
                    &changed(file, other, &mut dice),
                    &format!("{name}, file {n}, round {round}"),
                );
            }
        }
    }
}

/// Too long for the corpus. Each number was looked for from the first one on.
#[test]
fn report_with_repeated_tests_is_read_in_time() {
    let cases = "<testcase name=\"x\"/>".repeat(40_000);
    let (_, target) = TARGETS
        .iter()
        .find(|(name, _)| *name == "test_report")
        .unwrap();
    run(
        *target,
        format!("\0<testsuite>{cases}</testsuite>").as_bytes(),
        "one name",
    );
}

#[test]
fn every_corpus_folder_has_a_target() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for entry in fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(TARGETS.iter().any(|(known, _)| *known == name), "{name}");
    }
}

/// The bytes with one to four changes: other bytes, parts left out, doubled, or taken from another file.
fn changed(bytes: &[u8], other: &[u8], dice: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..dice.usize(1..5) {
        let at = dice.usize(..=bytes.len());
        let end = (at + dice.usize(..64)).min(bytes.len());
        match dice.u8(..5) {
            0 if at < bytes.len() => bytes[at] = dice.u8(..),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let part = bytes[at..end].repeat(dice.usize(1..20));
                drop(bytes.splice(at..at, part));
            }
            3 if !other.is_empty() => {
                let from = dice.usize(..other.len());
                let part = other[from..(from + 64).min(other.len())].to_vec();
                drop(bytes.splice(at..end, part));
            }
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes
}
