//! The network between the shards of a run: messages that take their time.
//!
//! Invariant: messages to a shard begin there in the order in which they were sent.

use array::shard::{Link, ShardHandle, ShardState, Visit};
use base::Prng;
use engine::{Lane, World};
use futures_channel::mpsc;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use send_wrapper::SendWrapper;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
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

    /// A shard for each of these pools, and which one that is.
    pub(crate) fn one_each(
        world: &SimWorld,
        pools: &[Lane<SimWorld>],
    ) -> (Shards, BTreeMap<String, Vec<usize>>) {
        let shards = Shards::new(world, pools.len());
        let mut homes = BTreeMap::new();
        for (state, pool) in shards.states.iter().zip(pools) {
            state.add_pool(pool.clone());
            homes.insert(pool.name().to_owned(), vec![state.index()]);
        }
        (shards, homes)
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

/// Visits that have begun.
type Visits = Rc<RefCell<Vec<LocalBoxFuture<'static, ()>>>>;

/// The way to a shard that a message takes no time for.
struct NoTime {
    state: SendWrapper<Rc<ShardState<SimWorld>>>,
    begun: SendWrapper<Visits>,
}

impl Link<SimWorld> for NoTime {
    fn send(&self, visit: Visit<SimWorld>) -> bool {
        let visit = visit(Rc::clone(&self.state));
        self.begun.borrow_mut().push(visit);
        true
    }
}

/// Does `work`, which waits for visits to shards and for nothing else, and those visits, in the task
/// that calls this. Messages take no time and no poll, so a cut finds the same as without shards.
pub(crate) async fn in_one_task<T, F>(
    states: &[Rc<ShardState<SimWorld>>],
    work: impl FnOnce(Vec<ShardHandle<SimWorld>>) -> F,
) -> T
where
    F: Future<Output = T>,
{
    let begun = Visits::default();
    let handle = |state: &Rc<ShardState<SimWorld>>| {
        let link = NoTime {
            state: SendWrapper::new(Rc::clone(state)),
            begun: SendWrapper::new(Rc::clone(&begun)),
        };
        ShardHandle::new(state.index(), Arc::new(link))
    };
    let mut work = pin!(work(states.iter().map(handle).collect()));
    let mut visits: Vec<LocalBoxFuture<'static, ()>> = Vec::new();
    poll_fn(|cx| {
        visits.retain_mut(|visit| visit.as_mut().poll(cx).is_pending());
        loop {
            // Only visits wake it, and it is polled after each.
            let no_one = &mut Context::from_waker(Waker::noop());
            if let Poll::Ready(done) = work.as_mut().poll(no_one) {
                return Poll::Ready(done);
            }
            let new = begun.take();
            if new.is_empty() {
                return Poll::Pending;
            }
            for mut visit in new {
                if visit.as_mut().poll(cx).is_pending() {
                    visits.push(visit);
                }
            }
        }
    })
    .await
}
