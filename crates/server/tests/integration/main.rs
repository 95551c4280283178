//! The server's tests from outside, in one binary: each binary compiles the engine over
//! the real world anew.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests of the real world"
)]

mod access;
mod carried;
mod conformance;
mod initiators;
mod limits;
mod memory;
mod served;
mod sessions;
mod statistics;
