//! What all handles on an open pool share.

use super::space::Space;
use super::{PoolError, PoolErrorKind};
use crate::group_commit::GroupCommit;
use crate::label::{Label, PoolIdentity};
use crate::meta::{Record, State};
use crate::raid::{Group, Regions};
use crate::range_lock::RangeLock;
use crate::world::World;
use futures_channel::oneshot;
use futures_util::lock::Mutex;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Where the journal stands. See `docs/FORMAT.md`, "Metadata".
#[derive(Debug, Default)]
pub(crate) struct JournalCursor {
    pub generation: Cell<u64>,
    /// Bytes used of the generation's area.
    pub used: Cell<u64>,
    pub sequence: Cell<u64>,
    /// Records waiting for the next batch.
    pub pending: RefCell<Vec<Record>>,
    pub commit: GroupCommit<Result<(), PoolError>>,
    /// Ends when the checkpoint of this generation is durable.
    pub checkpoint: RefCell<Option<oneshot::Receiver<()>>>,
}

/// The labels as they are to be, and how far that has got.
#[derive(Debug)]
pub(crate) struct Labels {
    /// As last written, but for the drive's own identity.
    pub current: RefCell<Label>,
    pub writing: Mutex<()>,
    /// Changes of the member table asked for, and made durable.
    pub wanted: Cell<u64>,
    pub durable: Cell<u64>,
}

pub(crate) struct Inner<W: World> {
    pub world: W,
    pub identity: PoolIdentity,
    pub group: Group<W>,
    pub labels: Labels,
    pub journal: JournalCursor,
    pub state: RefCell<State>,
    pub space: RefCell<Space>,
    pub regions: RefCell<Regions>,
    /// Held by writes to suspect regions and by what makes copies equal again.
    pub equalising: RangeLock,
    /// Serialises creation, resizing and deletion of volumes.
    pub administration: Mutex<()>,
    /// Why the pool has stopped.
    pub failure: RefCell<Option<String>>,
    pub closed: Cell<bool>,
    pub region_idle: Cell<Duration>,
}

impl<W: World> Inner<W> {
    /// That the pool is in use and sound.
    pub fn check(&self) -> Result<(), PoolError> {
        if let Some(reason) = self.failure.borrow().as_ref() {
            let context = format!("pool '{}' has stopped: {reason}", self.identity.name);
            return Err(PoolError {
                kind: PoolErrorKind::Failed,
                context,
            });
        }
        if self.closed.get() {
            let context = format!("pool '{}' is closed", self.identity.name);
            return Err(PoolError {
                kind: PoolErrorKind::Failed,
                context,
            });
        }
        Ok(())
    }

    /// Stops the pool: nothing is acknowledged from now on. The first reason stays.
    pub fn stop(&self, reason: String) {
        self.failure.borrow_mut().get_or_insert(reason);
    }

    pub fn page_bytes(&self) -> u64 {
        u64::from(self.identity.page_bytes)
    }

    /// Whether copies can differ at all.
    pub fn has_copies(&self) -> bool {
        self.group.layout.copies > 1
    }
}

impl PoolError {
    pub(crate) fn new(kind: PoolErrorKind, context: impl Into<String>) -> Self {
        PoolError {
            kind,
            context: context.into(),
        }
    }
}
