//! Denies the keys that the kernel keeps for a user: they outlive every process, so a test run could leave something there
//! for the next one.

use seccompiler::sock_filter;

use super::SandboxError;

/// `AUDIT_ARCH_…` and the numbers of `add_key`, `request_key` and `keyctl`, for each kind of program that may run here.
const CALLS: &[(u32, [u32; 3])] = &[
    // x86-64, also with the bit of x32
    (0xC000_003E, [248, 249, 250]),
    (0xC000_003E, [0x4000_00F8, 0x4000_00F9, 0x4000_00FA]),
    // i386
    (0x4000_0003, [286, 287, 288]),
    // arm64, arm, riscv64
    (0xC000_00B7, [217, 218, 219]),
    (0x4000_0028, [309, 310, 311]),
    (0xC000_00F3, [217, 218, 219]),
];

/// Offsets in `struct seccomp_data`.
const CALL_NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

// Instructions of classic BPF.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7FFF_0000;
/// Fails with `ENOSYS`, as on a kernel without keys, so that programs do without.
const DENY: u32 = 0x0005_0000 | 38;

/// Applies to this process and everything that it starts.
pub(super) fn deny() -> Result<(), SandboxError> {
    seccompiler::apply_filter(&filter())
        .map_err(|error| SandboxError::new("denying the kernel's keys", error))
}

fn filter() -> Vec<sock_filter> {
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let mut filter = Vec::new();
    for (architecture, calls) in CALLS {
        filter.push(instruction(LOAD, 0, 0, ARCHITECTURE));
        // Past the load and the two instructions of each call.
        filter.push(instruction(JUMP_IF_EQUAL, 0, 7, *architecture));
        filter.push(instruction(LOAD, 0, 0, CALL_NUMBER));
        for call in calls {
            filter.push(instruction(JUMP_IF_EQUAL, 0, 1, *call));
            filter.push(instruction(RETURN, 0, 0, DENY));
        }
    }
    filter.push(instruction(RETURN, 0, 0, ALLOW));
    filter
}
