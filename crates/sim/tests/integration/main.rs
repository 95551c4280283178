//! Tests of the simulator from outside, in one program: what is generic is compiled once.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod lay_out;
mod seeds;
mod thin_case;
