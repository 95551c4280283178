//! Opens, creates and closes the lanes of a pool: all of them, or none.
//!
//! The caller gives the shards of the lanes, and drives that each shard reaches by a door of its own.
//! Files, devices and records are the server's, media the simulator's. Which drives are a pool's,
//! their labels say ([`find_labels`]).
//!
//! Invariants:
//! - All lanes are opened side by side: each waits until all could be. Where one can't be opened,
//!   those that are open are closed again.
//! - A lane comes to have what the first lane has, before anybody uses the pool ([`completion`]).
//! - The first lane is created last ([`creation`]), and [`Opening::close`] closes it last. A drive
//!   shows as a pool's by the labels of the first lane, and these say whether the pool was closed.
//! - A shard that stops closes what is open there ([`ShardState::close`]), and a lane that opens there
//!   later is closed, too: none is left to be recovered.

mod completion;
mod creation;
mod labels;
#[cfg(test)]
mod tests;

pub use labels::{KnownLabels, find_labels};

use super::Paces;
use crate::error::ArrayError;
use crate::shard::{ShardGone, ShardHandle, ShardState, close_in_time};
use engine::lane::{LaneRegistry, LaneSlot};
use engine::pool::PoolInfo;
use engine::{Lane, NamedDrive, PoolError, PoolErrorKind, World};
use futures_util::future::join_all;
use std::future::Future;
use std::rc::Rc;

/// A drive of a pool that is to be opened or created. Each lane has a door of its own to it.
pub trait PoolDrive<W: World>: Clone + Send + Sync + 'static {
    /// Its name in the pool.
    fn name(&self) -> &str;

    /// A door to it, for the lanes of this shard.
    fn door(&self, state: &ShardState<W>) -> NamedDrive<W>;
}

/// Doors of a shard to drives.
pub fn doors<W: World, D: PoolDrive<W>>(state: &ShardState<W>, drives: &[D]) -> Vec<NamedDrive<W>> {
    drives.iter().map(|drive| drive.door(state)).collect()
}

/// Why a pool is not open.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotOpened {
    /// A lane could not be opened or created: what it says.
    #[error(transparent)]
    Lane(#[from] PoolError),
    /// The shard of a lane has stopped.
    #[error(transparent)]
    Shard(#[from] ShardGone),
}

impl From<NotOpened> for ArrayError {
    fn from(why: NotOpened) -> Self {
        match why {
            NotOpened::Lane(error) => error.into(),
            NotOpened::Shard(gone) => gone.into(),
        }
    }
}

impl NotOpened {
    /// Whether it says more than that another lane can't be opened.
    fn is_reason(&self) -> bool {
        !matches!(self, NotOpened::Lane(error) if error.kind == PoolErrorKind::Failed)
    }
}

/// The lanes of a pool that is to be opened, created or closed.
pub struct Opening<W: World> {
    name: String,
    /// The shard of each lane, the first lane first.
    shards: Vec<ShardHandle<W>>,
    paces: Option<Paces>,
}

impl<W: World> Opening<W> {
    /// Of the pool called `name`, whose lanes are on these shards, the first lane first.
    pub fn new(name: String, shards: Vec<ShardHandle<W>>) -> Self {
        Opening {
            name,
            shards,
            paces: None,
        }
    }

    /// As it is, and its lanes go by `paces` from the beginning.
    pub fn paced(self, paces: Paces) -> Self {
        let paces = Some(paces);
        Opening { paces, ..self }
    }

    /// Opens all lanes from the drives that have labels of the pool, and completes the lanes that
    /// lack something.
    ///
    /// # Errors
    /// What the lane says that can't be opened. No lane is open then.
    pub async fn open<D: PoolDrive<W>>(&self, drives: &[D]) -> Result<PoolInfo, NotOpened> {
        let opened = async {
            let infos = self.open_lanes(drives).await?;
            if let Some(first) = infos.first() {
                self.complete(first, drives).await?;
            }
            self.whole(infos)
        };
        let opened = opened.await;
        if opened.is_err() {
            // Half a pool is none. Why it is not open says what keeps a lane from being closed, too.
            let planted = "lanes stay open beside one that is not";
            let _ = self.close_unless(Some(planted)).await;
        }
        opened
    }

    async fn open_lanes<D: PoolDrive<W>>(&self, drives: &[D]) -> Result<Vec<PoolInfo>, NotOpened> {
        let slots = LaneSlot::all(self.shards.len() as u16);
        let opening = slots.into_iter().zip(&self.shards).map(|(slot, shard)| {
            let (drives, paces) = (drives.to_vec(), self.paces);
            let outcome = RefusedUnlessOpen::new(&slot);
            shard.call(move |state: Rc<ShardState<W>>| async move {
                let drives = doors(&state, &drives);
                let open = Lane::open_lane(state.world().clone(), slot, drives);
                let opened = bring_home(&state, paces, open).await;
                outcome.note(opened.is_ok());
                opened
            })
        });
        let (mut infos, mut failure) = (Vec::new(), None);
        for outcome in join_all(opening).await {
            let why = match outcome {
                Ok(Ok(info)) => {
                    infos.push(info);
                    continue;
                }
                Ok(Err(why)) => why,
                Err(gone) => NotOpened::from(gone),
            };
            if failure.is_none() || why.is_reason() {
                failure = Some(why);
            }
        }
        failure.map_or(Ok(infos), Err)
    }

    /// Closes all lanes that are open, and takes them off their shards. A lane that can't be closed
    /// recovers at the next opening, and the log says so.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn close(&self) -> Result<(), ShardGone> {
        self.close_unless(None).await
    }

    /// As [`Opening::close`], unless this bug is planted.
    async fn close_unless(&self, bug: Option<&'static str>) -> Result<(), ShardGone> {
        let mut outcome = Ok(());
        for lane in (0..self.shards.len()).rev() {
            let closed = self.visit(lane, move |state, lane| async move {
                if bug.is_some_and(|bug| state.world().planted(bug)) {
                    return;
                }
                state.take_pool(lane.name(), lane.lane());
                if let Err(error) = close_in_time(&lane).await {
                    tracing::warn!("lane {} of pool {}: {error}", lane.lane(), lane.name());
                }
                // Somebody may have a look at the pool just now.
                lane.release();
            });
            outcome = outcome.and(closed.await);
        }
        outcome
    }

    /// Does something to a lane, on its shard; nothing to one that is not open.
    async fn visit<F, Fut>(&self, lane: usize, visit: F) -> Result<(), ShardGone>
    where
        F: FnOnce(Rc<ShardState<W>>, Lane<W>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let name = self.name.clone();
        let visit = move |state: Rc<ShardState<W>>| async move {
            if let Some(lane) = state.lane(&name, lane as u16) {
                visit(state, lane).await;
            }
        };
        self.shards[lane].call(visit).await
    }

    /// The pool at a glance, from what its lanes say.
    fn whole(&self, infos: Vec<PoolInfo>) -> Result<PoolInfo, NotOpened> {
        let none = || PoolError {
            kind: PoolErrorKind::Invalid,
            context: format!("pool {} has no lane", self.name),
        };
        Ok(PoolInfo::of_lanes(infos).ok_or_else(none)?)
    }
}

/// Opens or creates a lane by `open`, and has it be on a shard from then on. Gives what it says of
/// itself.
async fn bring_home<W: World>(
    state: &ShardState<W>,
    paces: Option<Paces>,
    open: impl Future<Output = Result<Lane<W>, PoolError>>,
) -> Result<PoolInfo, NotOpened> {
    let Some(opening) = state.begin_opening() else {
        return Err(ShardGone(state.index()).into());
    };
    let lane = open.await?;
    if let Some(paces) = paces {
        paces.set_on(&lane);
    }
    let info = lane.info();
    opening.home(lane).await?;
    Ok(info)
}

/// Says that a lane is not open when it is dropped, unless it is. The others wait for that, and
/// whoever opens the lane may go away before it is known.
struct RefusedUnlessOpen {
    registry: LaneRegistry,
    lane: u16,
    is_open: bool,
}

impl RefusedUnlessOpen {
    fn new(slot: &LaneSlot) -> Self {
        RefusedUnlessOpen {
            registry: slot.registry.clone(),
            lane: slot.index,
            is_open: false,
        }
    }

    fn note(mut self, is_open: bool) {
        self.is_open = is_open;
    }
}

impl Drop for RefusedUnlessOpen {
    fn drop(&mut self) {
        if !self.is_open {
            self.registry.say_ready(self.lane, false);
        }
    }
}
