//! The array: drives become RAID groups, groups become pools, pools hold thin
//! volumes.
//!
//! One engine, two worlds: everything here runs over a [`World`] and its
//! [`Drive`]s, which are parameters. The engine touches no socket, no thread, no
//! wall clock and no ambient randomness, so one seed replays any run.
//!
//! Reading order: from the ground up, as `tests/tidy/src/floors.rs` lists the modules; each uses
//! those before it. Or from the top: [`volume`] (what the protocols use), [`pool`] (what holds
//! volumes), [`space`] (an open lane), then down.
//! On-drive format: `docs/internals/format.md`.
//!
//! Operations run to their end: a future of the engine that has been polled once
//! is polled until it is ready, or its whole world ends with it.

pub mod cache;
mod codec;
pub mod drive;
pub mod drives;
pub mod error;
pub mod fsck;
pub mod group_commit;
pub mod integrity;
pub mod label;
pub mod lane;
pub mod layout;
pub mod meta;
pub mod pages;
pub mod pool;
pub mod qos;
pub mod raid;
pub mod range_lock;
pub mod rare;
pub mod ring;
pub mod salvage;
pub mod space;
pub mod store;
pub mod volume;
pub mod volume_io;
pub mod world;

pub use drive::{Drive, DriveError, DriveErrorKind, Geometry};
pub use pool::{
    GroupInfo, GroupRole, LabelSummary, Lane, Level, MemberInfo, MemberState, NamedDrive,
    PoolError, PoolErrorKind, PoolInfo, PoolSpec,
};
pub use volume::{Disk, IoError, IoErrorKind, Provisioning, Volume, VolumeInfo, VolumeSpec};
pub use world::World;
