//! Tests of the control plane in virtual time, and of the copies that it makes for initiators.

// Clippy as the compiler looks deeper into the types of futures than the compiler alone.
#![recursion_limit = "256"]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod adoption;
mod checksum_memory;
mod consistency;
mod departures;
mod drive_health;
mod offload;
mod record;
mod renames;
mod schedules;
mod scrubs;
mod settings;
mod unfinished;
mod watching;
mod world;
