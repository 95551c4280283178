//! The places of drives on a machine: what is at a path, and who may use it.
//!
//! A server's are files and devices, the simulator's are media in bays. What to make of what is there
//! is for others to say: [`openings`](crate::openings), and [`control`](crate::control) of new drives.
//! [`blank`] tells an empty drive from others.

pub mod blank;

use crate::shard::ShardState;
use engine::World;
use engine::pool::PoolSpec;
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Drives that are in use are tried so many times more in all.
const IN_USE_LOOKS: u32 = 40;

/// How long there is to wait for drives that are in use. All that are opened together share one:
/// otherwise many of them take many times as long to be refused.
#[derive(Debug)]
pub struct Patience {
    looks_left: u32,
}

impl Default for Patience {
    fn default() -> Self {
        let looks_left = IN_USE_LOOKS;
        Patience { looks_left }
    }
}

impl Patience {
    /// That of somebody who does not wait.
    pub fn none() -> Self {
        Patience { looks_left: 0 }
    }

    /// Whether to look once more.
    pub fn look_again(&mut self) -> bool {
        let is_left = self.looks_left > 0;
        self.looks_left = self.looks_left.saturating_sub(1);
        is_left
    }
}

/// What callers tell apart of a path that can't be opened as a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOpenKind {
    /// There is nothing.
    NotFound,
    /// Somebody has it open.
    InUse,
    /// It does not answer.
    Silent,
    /// It is there, and can't be used yet: a disk that spins up.
    NotReady,
    /// Anything else.
    Other,
}

/// A path that can't be opened as a drive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{context}")]
pub struct NotOpen {
    pub kind: NotOpenKind,
    /// The path and what is wrong there, for people.
    pub context: String,
}

/// A drive that is open, for as long as this, or a door to it, is there. Nobody else can open it
/// meanwhile.
pub trait OpenBay<W: World>: Send + Sync {
    /// A door to it, for this shard.
    fn door(&self, state: &ShardState<W>) -> W::Drive;
}

/// The files that were made for drives, if anybody knows them, and why not all were.
pub type MadeFiles = (Option<Vec<PathBuf>>, Result<(), String>);

/// The places of drives on a machine.
pub trait DriveBays<W: World>: Send + Sync {
    /// Opens the drive at `path`; waits for one in use as long as there is `patience`.
    ///
    /// # Errors
    /// It is not there, not fit to be a drive, or still in use.
    fn open<'a>(
        &'a self,
        path: &'a Path,
        patience: &'a mut Patience,
    ) -> BoxFuture<'a, Result<Arc<dyn OpenBay<W>>, NotOpen>>;

    /// Whether something is at `path`. Where nobody can say, something is.
    fn is_taken<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, bool>;

    /// Whether this process has the drive at `path` open. Another may have been put there.
    fn is_open_here<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, bool>;

    /// Why this array may not use what is at `path`: it is another array's, or that is not known.
    fn foreign<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>>;

    /// Whether the directory that `path` really is in is one of `directories`, or below one.
    fn is_below(&self, path: &Path, directories: &[PathBuf]) -> bool;

    /// A drive of a pool was found at `path`.
    fn is_labelled(&self, path: &Path) {
        let _ = path;
    }

    /// Makes files of these sizes. Gives those that it has made, also when there is an error, unless
    /// nobody can say.
    fn make_files(&self, files: Vec<(PathBuf, u64)>) -> BoxFuture<'_, MadeFiles>;

    /// Removes a file. That there is none is no failure.
    ///
    /// # Errors
    /// Why it is still there.
    fn remove_file<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), String>>;

    /// The files in the data directory that may be drives.
    fn files(&self) -> BoxFuture<'_, Vec<PathBuf>>;

    /// A pool that is to be made, with what this machine adds: a nonce that no other pool has.
    ///
    /// # Errors
    /// Why there is none.
    fn suit(&self, spec: PoolSpec) -> Result<PoolSpec, String>;

    /// As [`World::reached`].
    fn reached(&self, mark: &'static str) {
        let _ = mark;
    }

    /// As [`World::planted`].
    fn planted(&self, bug: &'static str) -> bool {
        let _ = bug;
        false
    }
}
