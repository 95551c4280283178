//! Drives that a pool is to have, as far as a pool has to know of them.
//!
//! Files, devices and records are the server's, media the simulator's. A pool says when what they
//! have to do is done.

use crate::error::ArrayError;
use crate::shard::ShardState;
use engine::{Lane, NamedDrive, World};
use std::future::Future;

/// A drive to be added. Every lane opens it on its own shard.
pub trait NewDrive<W: World>: Clone + Send + Sync + 'static {
    /// The name that it is to have.
    fn name(&self) -> &str;

    /// The drive of the pool that has, or had, the place where the new one is.
    fn holder(&self) -> Option<Holder<'_>>;

    /// Whether the drive that is replaced is this one itself: it can't be opened again before that
    /// one has failed and is closed. Asked when all lanes have had a look.
    fn is_its_own_successor(&self) -> bool;

    /// The drive, if it can be opened before anything changes, and its size in bytes.
    ///
    /// # Errors
    /// It is none that may be added.
    fn look_at(
        &self,
        state: &ShardState<W>,
        lane: &Lane<W>,
    ) -> impl Future<Output = Result<(Option<NamedDrive<W>>, u64), ArrayError>>;

    /// Opens it.
    ///
    /// # Errors
    /// As [`NewDrive::look_at`]. `Busy` while its holder has it open.
    fn open(
        &self,
        state: &ShardState<W>,
        lane: &Lane<W>,
    ) -> impl Future<Output = Result<NamedDrive<W>, ArrayError>>;
}

/// A drive that a pool has, in the place of a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder<'a> {
    /// Its name in the pool.
    pub name: &'a str,
    /// The new one replaces it, so it is in use until the new one is judged. Another one is out of
    /// use already.
    pub is_replaced: bool,
}

/// Drives to be added together, and what is made for them.
pub trait NewDrives<W: World>: Sync {
    /// One of them.
    type Drive: NewDrive<W>;

    /// All of them, by place.
    fn drives(&self) -> &[Self::Drive];

    /// All lanes could take the drives: makes those that are not there, and puts them on record.
    ///
    /// # Errors
    /// It can't, and has left nothing behind.
    fn make(&self) -> impl Future<Output = Result<(), ArrayError>> + Send;

    /// No lane has taken any of them: leaves nothing of what was made.
    fn unmake(&self) -> impl Future<Output = ()> + Send;
}
