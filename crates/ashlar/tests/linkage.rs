//! The libraries that the program needs to start.

#![allow(clippy::disallowed_methods)] // runs a program
#![allow(clippy::unwrap_used)] // a panic with its reason is how a test fails

use std::process::Command;

/// An array and a rehearsal run without libiscsi: `ashlar load` loads it, and only for an iSCSI
/// target.
#[test]
fn the_program_starts_without_libiscsi() {
    let mut ldd = Command::new("ldd");
    let listed = ldd.arg(env!("CARGO_BIN_EXE_ashlar")).output().unwrap();
    let libraries = String::from_utf8(listed.stdout).unwrap();
    assert!(libraries.contains("libc.so"), "{libraries}");
    assert!(!libraries.contains("iscsi"), "{libraries}");
}
