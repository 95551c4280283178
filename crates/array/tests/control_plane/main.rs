//! Tests of the control plane in virtual time.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod schedules;
mod unfinished;
mod world;
