//! Every target in one program, so that the crates are built once: `SUPERVISOR_FUZZ` names the target.
#![no_main]

#[path = "../targets.rs"]
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<targets::FuzzTarget> = LazyLock::new(|| {
    let name = std::env::var("SUPERVISOR_FUZZ").expect("SUPERVISOR_FUZZ names a target");
    let target = targets::TARGETS.iter().find(|(known, _)| *known == name);
    target.expect("a target of the table").1
});

fuzz_target!(|data: &[u8]| TARGET(data));
