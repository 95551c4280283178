//! The network between the shards of a run: messages that take their time.
//!
//! Invariant: messages to a shard begin there in the order in which they were sent.

use array::shard::remote_volume::RemoteVolume;
use array::shard::{Link, ShardHandle, ShardState, Visit};
use base::Prng;
use engine::{Disk, Lane, Volume, World};
use futures_channel::mpsc;
use futures_util::StreamExt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::SimWorld;

/// One message in so many takes a while.
const SLOW_ONE_OF: u64 = 4;

/// The longest that a message takes, nanoseconds.
const SLOW_NS_MAX: u64 = 20_000;

/// The longest that a shard stalls, milliseconds.
const STALL_MS_MAX: u64 = 25_000;

/// Messages on their way to a shard.
struct Wire(mpsc::UnboundedSender<Visit<SimWorld>>);

impl Link<SimWorld> for Wire {
    fn send(&self, visit: Visit<SimWorld>) -> bool {
        self.0.unbounded_send(visit).is_ok()
    }
}

/// The shards of a boot, and how each is reached.
pub(crate) struct Shards {
    pub(crate) states: Vec<Rc<ShardState<SimWorld>>>,
    pub(crate) handles: Vec<ShardHandle<SimWorld>>,
}

impl Shards {
    /// So many shards, without pools and targets.
    pub(crate) fn new(world: &SimWorld, count: usize) -> Shards {
        Shards::that_stall(world, count, None)
    }

    /// As [`Shards::new`]; at one message in so many a shard stalls, for longer than a change keeps
    /// its turn.
    pub(crate) fn that_stall(world: &SimWorld, count: usize, one_of: Option<u64>) -> Shards {
        let mut shards = Shards {
            states: Vec::new(),
            handles: Vec::new(),
        };
        for index in 0..count {
            let state = ShardState::new(index, world.clone());
            let (wire, inbox) = mpsc::unbounded();
            let prng = world.prng(&format!("messages to shard {index}"));
            world.spawn(deliver(Rc::clone(&state), inbox, prng, one_of));
            shards.states.push(state);
            let link = Arc::new(Wire(wire));
            shards.handles.push(ShardHandle::new(index, link));
        }
        shards
    }

    /// A volume of `pool`, which is on shard `at`, as shard `from` reaches it.
    pub(crate) fn disk(
        &self,
        from: usize,
        (at, pool): (usize, &Lane<SimWorld>),
        volume: Volume<SimWorld>,
    ) -> Disk<SimWorld> {
        if from == at {
            return volume.into();
        }
        let place = (pool.name().to_owned(), pool.lane());
        let remote = RemoteVolume::new(self.handles[at].clone(), place, volume.info());
        Disk::There(Rc::new(remote.with_memo(volume.memo())))
    }
}

async fn deliver(
    state: Rc<ShardState<SimWorld>>,
    mut inbox: mpsc::UnboundedReceiver<Visit<SimWorld>>,
    mut prng: Prng,
    stalls_one_of: Option<u64>,
) {
    while let Some(visit) = inbox.next().await {
        if stalls_one_of.is_some_and(|one_of| prng.chance(1, one_of)) {
            let takes = Duration::from_millis(prng.below(STALL_MS_MAX));
            state.world().sleep(takes).await;
        }
        if prng.chance(1, SLOW_ONE_OF) {
            let takes = Duration::from_nanos(prng.below(SLOW_NS_MAX));
            state.world().sleep(takes).await;
        }
        state.world().spawn(visit(Rc::clone(&state)));
    }
}
