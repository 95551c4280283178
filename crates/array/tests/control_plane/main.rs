//! Tests of the control plane in virtual time.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod consistency;
mod departures;
mod record;
mod schedules;
mod settings;
mod unfinished;
mod world;
