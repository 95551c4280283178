//! The array: drives become RAID groups, groups become pools, pools hold thin
//! volumes.
//!
//! One engine, two worlds: everything here runs over a [`World`] and its
//! [`Drive`]s, which are parameters. The engine touches no socket, no thread, no
//! wall clock and no ambient randomness, so one seed replays any run.
//!
//! Reading order: [`world`] and [`drive`] (the seams), [`volume`] (what the
//! protocols use), [`pool`] (what holds volumes), [`raid`], [`meta`], [`label`].

pub mod drive;
pub mod pool;
pub mod volume;
pub mod world;

pub use drive::{Drive, DriveError, DriveErrorKind, Geometry};
pub use pool::{Pool, PoolError, PoolErrorKind, PoolSpec};
pub use volume::{IoError, IoErrorKind, Provisioning, Volume, VolumeInfo, VolumeSpec};
pub use world::World;
