//! Keeps a thread awake for a moment after work, when that pays.
//!
//! A thread that sleeps is woken by the kernel in some ten microseconds, and on a
//! virtual machine whose processor has halted in several times that: more than a
//! command that is found in memory takes. So a shard goes on looking for work for a
//! while before it sleeps, as hypervisors do for a virtual processor that halts (the
//! "halt polling" of KVM, Documentation/virt/kvm/halt-polling.rst, whose rule for the
//! length of the while this is).
//!
//! Invariants:
//! - A shard without work sleeps: after one polling at the longest, and without any when the last
//!   ones were in vain.
//! - Whoever else wants the processor meanwhile gets it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// The longest polling: what a closed loop with one command needs for its way to the
/// initiator and back on a fast network.
const LONGEST: Duration = Duration::from_micros(200);

/// The first polling after one would have paid.
const FIRST: Duration = Duration::from_micros(25);

/// How long a shard looks for work before it sleeps.
#[derive(Debug, Default)]
pub(super) struct AdaptivePolling {
    /// Counts what there was to do.
    work: Cell<u64>,
    sleeper: RefCell<Option<Waker>>,
}

impl AdaptivePolling {
    /// Keeps it on the caller's local executor, until nobody else has it.
    pub(super) fn start() -> Rc<AdaptivePolling> {
        let adaptive_polling = Rc::new(AdaptivePolling::default());
        tokio::task::spawn_local(keep(Rc::downgrade(&adaptive_polling)));
        adaptive_polling
    }

    /// There was work.
    pub(super) fn work(&self) {
        self.work.set(self.work.get().wrapping_add(1));
        if let Some(sleeper) = self.sleeper.take() {
            sleeper.wake();
        }
    }
}

impl Drop for AdaptivePolling {
    fn drop(&mut self) {
        self.work();
    }
}

async fn keep(adaptive_polling: Weak<AdaptivePolling>) {
    let (mut length, mut seen, mut last) = (Duration::ZERO, 0, Instant::now());
    while let Some(count) = sleep(&adaptive_polling, seen).await {
        length = fitting(length, last.elapsed());
        (seen, last) = (count, Instant::now());
        while last.elapsed() < length {
            // Tasks that are ready run, and the event loop is asked for what has come.
            tokio::task::yield_now().await;
            let Some(count) = adaptive_polling
                .upgrade()
                .map(|adaptive_polling| adaptive_polling.work.get())
            else {
                return;
            };
            if count == seen {
                std::thread::yield_now();
            } else {
                (seen, last) = (count, Instant::now());
            }
        }
    }
}

/// Waits until more work has come than had `seen`: how much; `None` when nobody
/// needs the polling any more.
async fn sleep(adaptive_polling: &Weak<AdaptivePolling>, seen: u64) -> Option<u64> {
    poll_fn(|cx| {
        let Some(adaptive_polling) = adaptive_polling.upgrade() else {
            return Poll::Ready(None);
        };
        let count = adaptive_polling.work.get();
        if count != seen {
            return Poll::Ready(Some(count));
        }
        adaptive_polling.sleeper.replace(Some(cx.waker().clone()));
        Poll::Pending
    })
    .await
}

/// The next polling after one of this length was in vain, and work came `idle` after the
/// last.
fn fitting(length: Duration, idle: Duration) -> Duration {
    if idle <= LONGEST {
        (length * 2).clamp(FIRST, LONGEST)
    } else if length > FIRST {
        length / 2
    } else {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;
    use engine::world::World;

    /// Looks now and then until the task that polls sleeps.
    async fn falls_asleep(world: &impl World, adaptive_polling: &AdaptivePolling) -> bool {
        for _ in 0..10_000 {
            if adaptive_polling.sleeper.borrow().is_some() {
                return true;
            }
            world.sleep(Duration::from_millis(1)).await;
        }
        false
    }

    #[test]
    fn without_work_a_shard_sleeps_and_work_wakes_it() {
        run(|world| async move {
            let adaptive_polling = AdaptivePolling::start();
            for _ in 0..20 {
                assert!(falls_asleep(&world, &adaptive_polling).await);
                adaptive_polling.work();
                assert!(adaptive_polling.sleeper.borrow().is_none());
            }
            let task = Rc::downgrade(&adaptive_polling);
            assert!(falls_asleep(&world, &adaptive_polling).await);
            drop(adaptive_polling);
            assert!(task.upgrade().is_none());
        })
        .unwrap();
    }

    #[test]
    fn while_work_comes_it_stays_awake() {
        run(|_| async move {
            let adaptive_polling = AdaptivePolling::start();
            tokio::task::yield_now().await;
            let mut awake = 0;
            for _ in 0..1000 {
                adaptive_polling.work();
                // The task that keeps it has a turn, and work is there again.
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
                awake += u32::from(adaptive_polling.sleeper.borrow().is_none());
            }
            // Not always: the machine may be busy with something else for longer.
            assert!(awake > 0);
        })
        .unwrap();
    }

    #[test]
    fn pollings_grow_while_they_would_pay_and_end_when_they_do_not() {
        let (short, long) = (Duration::from_micros(60), Duration::from_millis(1));
        let mut length = Duration::ZERO;
        let grown: Vec<u128> = std::iter::repeat_with(|| {
            length = fitting(length, short);
            length.as_micros()
        })
        .take(5)
        .collect();
        assert_eq!(grown, [25, 50, 100, 200, 200]);
        let shrunk: Vec<u128> = std::iter::repeat_with(|| {
            length = fitting(length, long);
            length.as_micros()
        })
        .take(5)
        .collect();
        assert_eq!(shrunk, [100, 50, 25, 0, 0]);
    }
}
