//! Copies that initiators have the target make, over a pool in the simulated world.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails where what it needs is not there"
)]

mod bench;
mod lists;
#[path = "../bench/pool.rs"]
mod pool;
mod room;
mod sense;
mod streams;
mod tokens;
mod xcopy;
