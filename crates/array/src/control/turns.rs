//! Lets one change of the array happen at a time.
//!
//! A pool may wait for a drive that it can't do without, for as long as that hangs. A change that
//! waits for such a pool gives its turn away after a while, so that others continue meanwhile.
//!
//! Invariants:
//! - What a change has found stays so while its turn is given away: nobody else changes a pool
//!   that it waits for, or shows its volumes, and names that it found to be free stay so.
//! - It goes on after its wait only when it has the turn again.
//! - A change is known by the [`Turns`] that it was given, not by the thread that polls it.

use super::line::{Line, LinePlace};
use super::{ArrayError, ArrayErrorKind, Runtime};
use crate::pool::Waiter;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How long a change keeps its turn while it waits for a pool.
const KEPT: Duration = Duration::from_secs(10);

/// All turns, as one change sees them, or as somebody does who makes none.
#[derive(Clone)]
pub(super) struct Turns {
    all: Arc<AllTurns>,
    /// The turn of the change that asks. It holds the turn itself for as long as it runs.
    own: Weak<Turn>,
}

struct AllTurns {
    runtime: Arc<dyn Runtime>,
    line: Arc<Line>,
    next: AtomicU64,
    /// What those hold back that have given their turn away, by number.
    given: Mutex<BTreeMap<u64, HeldBack>>,
}

/// What nobody else has to do with.
#[derive(Debug, Default)]
struct HeldBack {
    pools: BTreeSet<String>,
    names: BTreeSet<String>,
}

#[derive(Debug)]
struct Turn {
    number: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Not there while the turn is given away.
    place: Option<LinePlace>,
    /// For so many pools that do not answer.
    waits: usize,
    /// That it found to be free.
    names: BTreeSet<String>,
}

impl Turn {
    // Whoever panicked with this lock held has left a whole state behind.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change has ended, or has failed an assertion: it holds nothing back any more.
struct EndedTurn<'a>(&'a AllTurns, u64);

impl Drop for EndedTurn<'_> {
    fn drop(&mut self) {
        self.0.given().remove(&self.1);
    }
}

impl AllTurns {
    // As above.
    fn given(&self) -> MutexGuard<'_, BTreeMap<u64, HeldBack>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns {
    /// Nobody has one.
    pub(super) fn new(runtime: Arc<dyn Runtime>) -> Self {
        Turns {
            all: Arc::new(AllTurns {
                runtime,
                line: Arc::default(),
                next: AtomicU64::new(0),
                given: Mutex::default(),
            }),
            own: Weak::new(),
        }
    }

    /// The turn of the change that asks; none when it has ended.
    fn own(&self) -> Option<Arc<Turn>> {
        self.own.upgrade()
    }

    /// Makes a change when it is its turn. What it does with the turns that it is given, it does in
    /// its own.
    pub(super) async fn take<T, Fut>(&self, change: impl FnOnce(Turns) -> Fut) -> T
    where
        Fut: Future<Output = T>,
    {
        let all = &self.all;
        let place = match all.runtime.planted("change does not wait for its turn") {
            true => None,
            false => Some(all.line.stand().await),
        };
        let turn = Arc::new(Turn {
            number: all.next.fetch_add(1, Relaxed),
            state: Mutex::new(State {
                place,
                ..State::default()
            }),
        });
        let _ended = EndedTurn(all, turn.number);
        let turns = Turns {
            all: Arc::clone(all),
            own: Arc::downgrade(&turn),
        };
        change(turns).await
    }

    /// Waits for `work` in a pool. In a change, others continue meanwhile when it takes long.
    pub(super) async fn wait<T>(&self, pool: &str, work: impl Future<Output = T>) -> T {
        self.wait_as_long(KEPT, pool, work).await
    }

    async fn wait_as_long<T>(
        &self,
        kept: Duration,
        pool: &str,
        work: impl Future<Output = T>,
    ) -> T {
        let Some(turn) = self.own() else {
            return work.await;
        };
        let mut work = pin!(work);
        if let Some(done) = self.all.runtime.in_time(kept, &mut work).await {
            return done;
        }
        let what = match pool {
            "" => String::new(),
            _ => format!(" for pool {pool}"),
        };
        tracing::warn!("a change waits{what}: others continue meanwhile");
        self.all.runtime.reached("change gives its turn away");
        self.give_away(&turn, pool);
        let done = work.await;
        if !self
            .all
            .runtime
            .planted("turn that was given away is not taken back")
        {
            self.take_back(&turn).await;
        }
        done
    }

    fn give_away(&self, turn: &Turn, pool: &str) {
        let mut state = turn.state();
        {
            let mut given = self.all.given();
            let held = given.entry(turn.number).or_default();
            held.pools.insert(pool.to_owned());
            held.names.extend(state.names.iter().cloned());
        }
        state.waits += 1;
        state.place = None;
    }

    /// Goes on, unless another part of the same change waits still.
    async fn take_back(&self, turn: &Turn) {
        {
            let mut state = turn.state();
            state.waits -= 1;
            if state.waits > 0 || state.place.is_some() {
                return;
            }
        }
        let place = self.all.line.stand().await;
        let mut state = turn.state();
        if state.waits == 0 {
            state.place = Some(place);
            self.all.given().remove(&turn.number);
        }
    }

    /// Whether a change waits for a pool that does not answer, but this one.
    pub(super) fn others_wait_for(&self, pool: &str) -> bool {
        self.is_held(|held| held.pools.contains(pool))
    }

    fn is_held(&self, what: impl Fn(&HeldBack) -> bool) -> bool {
        let own = self.own().map(|turn| turn.number);
        let given = self.all.given();
        let mut others = given.iter().filter(|(number, _)| Some(**number) != own);
        others.any(|(_, held)| what(held))
    }

    /// That a change may have to do with a pool.
    ///
    /// # Errors
    /// `Busy`: another one waits for it.
    pub(super) fn check_pool(&self, pool: &str) -> Result<(), ArrayError> {
        if self.own().is_none() || !self.others_wait_for(pool) {
            return Ok(());
        }
        let context = format!(
            "pool {pool} has not ended a change before this one: its drive files are being made, or \
             a drive that it can't do without hangs; try again later"
        );
        Err(ArrayError::new(ArrayErrorKind::Unavailable, context))
    }

    /// That no change which waits for its pool has found this name free; in a change it is its
    /// own then.
    ///
    /// # Errors
    /// `Exists`.
    pub(super) fn check_name(&self, name: &str) -> Result<(), ArrayError> {
        if self.is_held(|held| held.names.contains(name)) {
            let context = format!(
                "volume {name} is about to be made, in a pool that does not answer; choose \
                 another name"
            );
            return Err(ArrayError::new(ArrayErrorKind::Exists, context));
        }
        // Without a turn it is a look, and no more.
        if let Some(turn) = self.own() {
            turn.state().names.insert(name.to_owned());
        }
        Ok(())
    }
}

impl Waiter for Turns {
    fn wait<'a>(&'a self, pool: &'a str, visit: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        Turns::wait(self, pool, visit).boxed()
    }

    fn planted(&self, bug: &'static str) -> bool {
        self.all.runtime.planted(bug)
    }
}

#[cfg(test)]
mod tests;
