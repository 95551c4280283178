//! Rehearsals of small sites, their reports and searches, and the checks of plans.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests"
)]

mod advice;
mod captured;
mod check_model;
mod closed;
mod common;
mod drive_queue;
mod file_system;
mod fit;
mod lanes;
mod limits;
mod measured;
mod predictions;
mod readers;
mod rebuild;
mod reports;
mod runs;
mod settling;
mod shipped;
mod sizing;
mod spread;
mod thumb;
mod timeline;
