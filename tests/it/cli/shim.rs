//! The shim, started by hand.

#[test]
fn shim_started_by_hand_points_to_help() {
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_supervisor"))
        .arg("shim")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("supervisor --help"));
}
