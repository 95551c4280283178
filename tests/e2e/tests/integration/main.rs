//! The binary against programs that nobody here wrote. All tests are one program:
//! each waits much of its time, so a second one runs beside it.

// These run in the real world; and a panic with its reason is how a test fails.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used)]

mod crash;
mod drive_life;
mod full_pool;
mod groups;
mod guest;
mod guest_snapshots;
mod image_refusals;
mod images;
mod import_export;
mod initiators;
mod lanes;
mod linux;
mod moves;
mod offload;
mod old_pools;
mod one_instant;
mod provisioning;
mod reports;
mod reservations;
mod resize;
mod snapshots;
mod soak;
mod survival;
mod unreadable;
