//! The engine's tests from outside, in one binary: each binary compiles the whole engine
//! over the simulated world anew.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod ahead;
mod attributes;
mod away;
mod cold_reads;
mod common;
mod copied_drives;
mod copy;
mod counts;
mod drives;
mod fsck;
mod groups;
mod health;
mod hidden;
mod hung;
mod lanes;
mod log_group;
mod log_moves;
mod map_room;
mod metadata;
mod moves;
mod openings;
mod overlays;
mod page_numbers;
mod rebuild_order;
mod ring;
mod scrub_rounds;
mod shared_reads;
mod shrink;
mod snapshots;
mod space;
mod spread;
mod stops;
mod succession;
mod sum_cuts;
mod sum_records;
mod sums;
mod twins;
mod two_hosts;
mod volumes;
mod window;
