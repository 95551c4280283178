//! End to end: the `ashlar` binary against programs that nobody here wrote.
//!
//! The tests are in `tests/`, one file for each family of programs; this library
//! is what they share. Invariants:
//! - Every server listens on 127.0.0.1 and a port that the OS picked, or in a network of
//!   its test's own, and ends with the value that owns it, also when a test fails.
//! - Every wait has a deadline; none is a sleep.
//! - A missing program is a failure that names `make setup`, never a skipped test.

// These run in the real world; and a panic with its reason is how a test fails.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod array;
pub mod browser;
pub mod copies;
pub mod drive_files;
pub mod guest;
pub mod image_files;
pub mod initiator;
pub mod ledger;
pub mod lines;
pub mod pattern;
pub mod program;
pub mod qemu_io;
pub mod site_text;
pub mod soak;
pub mod writer;
