//! Lets one change of the array happen at a time.
//!
//! A pool may wait for a drive that it can't do without, for as long as that hangs. A change that
//! waits for such a pool gives its turn away after a while, so that others continue meanwhile.
//!
//! Invariants:
//! - What a change has found stays so while its turn is given away: nobody else changes a pool
//!   that it waits for, or shows its volumes, and names that it found to be free stay so.
//! - It goes on after its wait only when it has the turn again.

use super::{ArrayError, ArrayErrorKind};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

/// How long a change keeps its turn while it waits for a pool.
const KEPT: Duration = Duration::from_secs(10);

tokio::task_local! {
    /// The turn of the change that this task makes.
    static OWN: Arc<Turn>;
}

/// All turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    one: Arc<tokio::sync::Mutex<()>>,
    next: AtomicU64,
    /// What those hold back that have given their turn away, by number.
    given: Mutex<BTreeMap<u64, Held>>,
}

/// What nobody else has to do with.
#[derive(Debug, Default)]
struct Held {
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
    guard: Option<OwnedMutexGuard<()>>,
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

impl Turns {
    // As above.
    fn given(&self) -> MutexGuard<'_, BTreeMap<u64, Held>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change when it is its turn.
    pub(super) async fn take<T>(&self, change: impl Future<Output = T>) -> T {
        let guard = Arc::clone(&self.one).lock_owned().await;
        let turn = Arc::new(Turn {
            number: self.next.fetch_add(1, Relaxed),
            state: Mutex::new(State {
                guard: Some(guard),
                ..State::default()
            }),
        });
        let made = OWN.scope(Arc::clone(&turn), change).await;
        self.given().remove(&turn.number);
        made
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
        let Ok(turn) = OWN.try_with(Arc::clone) else {
            return work.await;
        };
        let mut work = pin!(work);
        if let Ok(done) = timeout(kept, &mut work).await {
            return done;
        }
        let what = match pool {
            "" => String::new(),
            _ => format!(" for pool {pool}"),
        };
        tracing::warn!("a change waits{what}: others continue meanwhile");
        self.give_away(&turn, pool);
        let done = work.await;
        self.take_back(&turn).await;
        done
    }

    fn give_away(&self, turn: &Turn, pool: &str) {
        let mut state = turn.state();
        {
            let mut given = self.given();
            let held = given.entry(turn.number).or_default();
            held.pools.insert(pool.to_owned());
            held.names.extend(state.names.iter().cloned());
        }
        state.waits += 1;
        state.guard = None;
    }

    /// Goes on, unless another part of the same change waits still.
    async fn take_back(&self, turn: &Turn) {
        {
            let mut state = turn.state();
            state.waits -= 1;
            if state.waits > 0 || state.guard.is_some() {
                return;
            }
        }
        let guard = Arc::clone(&self.one).lock_owned().await;
        let mut state = turn.state();
        if state.waits == 0 {
            state.guard = Some(guard);
            self.given().remove(&turn.number);
        }
    }

    /// Whether a change waits for a pool that does not answer, but this one.
    pub(super) fn others_wait_for(&self, pool: &str) -> bool {
        self.is_held(|held| held.pools.contains(pool))
    }

    fn is_held(&self, what: impl Fn(&Held) -> bool) -> bool {
        let own = OWN.try_with(|turn| turn.number).ok();
        let given = self.given();
        let mut others = given.iter().filter(|(number, _)| Some(**number) != own);
        others.any(|(_, held)| what(held))
    }

    /// That a change may have to do with a pool.
    ///
    /// # Errors
    /// `Busy`: another one waits for it.
    pub(super) fn check_pool(&self, pool: &str) -> Result<(), ArrayError> {
        let changes = OWN.try_with(|_| ()).is_ok();
        if !changes || !self.others_wait_for(pool) {
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
        let _ = OWN.try_with(|turn| turn.state().names.insert(name.to_owned()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    const SOON: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn who_waits_for_a_pool_lets_others_go_on_and_keeps_what_it_found() {
        let turns = Arc::new(Turns::default());
        let (answers, answer) = oneshot::channel();
        let (theirs, waits) = (Arc::clone(&turns), Arc::new(tokio::sync::Notify::new()));
        let began = Arc::clone(&waits);
        let change = tokio::spawn(async move {
            let made = theirs.take(async {
                theirs.check_name("v").unwrap();
                began.notify_one();
                let answered = theirs.wait_as_long(SOON, "a", answer).await;
                theirs.check_pool("a").unwrap();
                answered
            });
            made.await
        });
        waits.notified().await;
        assert!(turns.check_pool("a").is_ok(), "who only looks may");
        let other = turns.take(async {
            assert!(turns.check_pool("a").is_err());
            assert!(turns.check_name("v").is_err());
            turns.check_pool("b").and(turns.check_name("w"))
        });
        other.await.unwrap();
        assert!(turns.others_wait_for("a"));
        answers.send(7).unwrap();
        assert_eq!(change.await.unwrap(), Ok(7));
        let after = turns.take(async { turns.check_pool("a").and(turns.check_name("v")) });
        after.await.unwrap();
    }

    #[tokio::test]
    async fn of_two_waits_the_last_one_takes_the_turn_back() {
        let turns = Turns::default();
        let wait = |pool, for_ms| {
            let sleep = tokio::time::sleep(Duration::from_millis(for_ms));
            turns.wait_as_long(SOON, pool, sleep)
        };
        let change = turns.take(async {
            tokio::join!(wait("a", 50), wait("b", 150), wait("c", 0));
            assert!(OWN.with(|turn| turn.state().guard.is_some()));
            assert!(turns.given().is_empty());
        });
        let meanwhile = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            turns
                .take(async { assert!(turns.others_wait_for("b")) })
                .await;
        };
        tokio::join!(change, meanwhile);
    }
}
