//! The command set's tests from outside, in one binary: each binary compiles the engine
//! over the simulated world anew.
// Clippy as the compiler looks deeper into the types of futures than the compiler alone.
#![recursion_limit = "256"]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails where what it needs is not there"
)]

mod alterations;
mod bench;
mod inventory;
mod limits;
mod offload;
mod provisioning;
mod reservations;
mod sanitize;
mod snapshots;
mod transfers;
