//! Every target in one program, so that the crate is built once: `SUPERVISOR_FUZZ` names the target.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<String> = LazyLock::new(|| std::env::var("SUPERVISOR_FUZZ").expect("SUPERVISOR_FUZZ names a target"));

fuzz_target!(|data: &[u8]| supervisor::testing::fuzz::run(&TARGET, data));
