//! Brings up the loopback interface of a new network namespace. It is the only interface there.

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use super::SandboxError;

/// An `RTM_NEWLINK` request for interface 1 that sets `IFF_UP` and asks for an acknowledgement.
fn request() -> Vec<u8> {
    const LENGTH: u32 = 32;
    const RTM_NEWLINK: u16 = 16;
    const REQUEST_AND_ACK: u16 = 0x1 | 0x4;
    const IFF_UP: u32 = 1;
    let mut bytes = Vec::with_capacity(LENGTH as usize);
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(RTM_NEWLINK.to_ne_bytes());
    bytes.extend(REQUEST_AND_ACK.to_ne_bytes());
    bytes.extend(1_u32.to_ne_bytes()); // sequence
    bytes.extend(0_u32.to_ne_bytes()); // to the kernel
    bytes.extend([0, 0, 0, 0]); // any family, padding, no type
    bytes.extend(1_i32.to_ne_bytes()); // the loopback is always the first interface
    bytes.extend(IFF_UP.to_ne_bytes());
    bytes.extend(IFF_UP.to_ne_bytes());
    bytes
}

pub(super) fn bring_up() -> Result<(), SandboxError> {
    let step = "the loopback";
    // Protocol 0 is `NETLINK_ROUTE`.
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(SandboxError::at(step))?;
    send(&socket, &request(), SendFlags::empty()).map_err(SandboxError::at(step))?;
    let mut answer = [0; 512];
    let (length, _) =
        recv(&socket, &mut answer[..], RecvFlags::empty()).map_err(SandboxError::at(step))?;
    // A 16-byte header, then the negated error number; 0 means success.
    let code = answer
        .get(16..20)
        .filter(|_| length >= 20)
        .and_then(|code| code.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(SandboxError {
            step: step.into(),
            source: std::io::Error::from_raw_os_error(-code),
        }),
        None => Err(SandboxError::new(step, "the kernel gave no answer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_length_matches_its_header() {
        let request = request();
        assert_eq!(request.len(), 32);
        assert_eq!(request[..4], 32_u32.to_ne_bytes());
    }
}
