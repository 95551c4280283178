//! Locks on stripes: a task that changes a stripe in place, or reconstructs the data of a drive,
//! does so alone.
//!
//! Invariants: one holder a stripe; waiters are served in order of arrival. Whoever
//! holds one stripe waits for another only in rising order, or does not wait
//! ([`StripeLocks::try_lock`]); so nobody waits in a circle.

use super::address::StripeRef;
use futures_channel::oneshot;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Of a stripe that is held.
#[derive(Debug, Default)]
struct Waiters {
    queue: VecDeque<oneshot::Sender<StripeGuard>>,
    /// Whether somebody wants it, in the queue or not.
    is_wanted: bool,
    /// The holder's: told that somebody does.
    alarms: Vec<oneshot::Sender<()>>,
}

impl Waiters {
    fn want(&mut self) {
        self.is_wanted = true;
        for alarm in self.alarms.drain(..) {
            let _ = alarm.send(());
        }
    }
}

/// The stripes that are held.
#[derive(Debug, Default)]
pub struct StripeLocks {
    held: Rc<RefCell<FxHashMap<StripeRef, Waiters>>>,
}

/// A held stripe; dropping it lets the next in.
#[derive(Debug)]
pub struct StripeGuard {
    held: Rc<RefCell<FxHashMap<StripeRef, Waiters>>>,
    stripe: StripeRef,
}

impl StripeLocks {
    /// Holds `stripe`, after all who came before.
    pub async fn lock(&self, stripe: StripeRef) -> StripeGuard {
        if let Some(guard) = self.try_lock(stripe) {
            return guard;
        }
        let (grant, granted) = oneshot::channel();
        if let Some(waiters) = self.held.borrow_mut().get_mut(&stripe) {
            waiters.queue.push_back(grant);
            waiters.want();
        }
        match granted.await {
            Ok(guard) => guard,
            Err(oneshot::Canceled) => unreachable!("a waiter leaves only when it is granted"),
        }
    }

    /// Has the holder of `stripe` make haste, without waiting for it.
    pub fn want(&self, stripe: StripeRef) {
        if let Some(waiters) = self.held.borrow_mut().get_mut(&stripe) {
            waiters.want();
        }
    }

    /// Holds `stripe` when nobody does.
    pub fn try_lock(&self, stripe: StripeRef) -> Option<StripeGuard> {
        let mut held = self.held.borrow_mut();
        if held.contains_key(&stripe) {
            return None;
        }
        held.insert(stripe, Waiters::default());
        Some(StripeGuard {
            held: Rc::clone(&self.held),
            stripe,
        })
    }
}

impl StripeGuard {
    /// Ends when somebody else wants the stripe.
    pub async fn wanted(&self) {
        let (alarm, wanted) = oneshot::channel();
        {
            let mut held = self.held.borrow_mut();
            let Some(waiters) = held.get_mut(&self.stripe) else {
                unreachable!("a stripe that has a guard is held")
            };
            if waiters.is_wanted {
                return;
            }
            waiters.alarms.push(alarm);
        }
        let _ = wanted.await;
    }
}

impl Drop for StripeGuard {
    fn drop(&mut self) {
        let next = {
            let mut held = self.held.borrow_mut();
            let next = held.get_mut(&self.stripe).and_then(|waiters| {
                waiters.alarms.clear();
                let next = waiters.queue.pop_front();
                waiters.is_wanted = !waiters.queue.is_empty();
                next
            });
            if next.is_none() {
                held.remove(&self.stripe);
            }
            next
        };
        if let Some(next) = next {
            // A waiter that is gone drops its guard here, which lets the next in.
            drop(next.send(StripeGuard {
                held: Rc::clone(&self.held),
                stripe: self.stripe,
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn stripe(number: u32) -> StripeRef {
        StripeRef {
            zone: 0,
            number,
            span: 0,
        }
    }

    #[test]
    fn one_holds_a_stripe_and_the_next_waits_for_its_turn() {
        let locks = StripeLocks::default();
        let first = locks.lock(stripe(1)).now_or_never().unwrap();
        assert!(locks.try_lock(stripe(1)).is_none());
        assert!(locks.try_lock(stripe(2)).is_some());
        let mut second = Box::pin(locks.lock(stripe(1)));
        let mut gone = Box::pin(locks.lock(stripe(1)));
        let mut third = Box::pin(locks.lock(stripe(1)));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(gone.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        drop(gone);
        drop(first);
        assert!(third.as_mut().now_or_never().is_none());
        drop(second.now_or_never().unwrap());
        drop(third.now_or_never().unwrap());
        assert!(locks.try_lock(stripe(1)).is_some());
        assert!(locks.held.borrow().is_empty());
    }

    #[test]
    fn the_holder_is_told_that_somebody_wants_the_stripe() {
        let locks = StripeLocks::default();
        let first = locks.lock(stripe(1)).now_or_never().unwrap();
        {
            let mut wanted = Box::pin(first.wanted());
            assert!(wanted.as_mut().now_or_never().is_none());
            assert!(locks.try_lock(stripe(1)).is_none());
            assert!(wanted.as_mut().now_or_never().is_none(), "that one left");
            let mut second = Box::pin(locks.lock(stripe(1)));
            assert!(second.as_mut().now_or_never().is_none());
            assert!(wanted.now_or_never().is_some());
            assert!(first.wanted().now_or_never().is_some(), "it still does");
            drop(first);
            let second = second.now_or_never().unwrap();
            let mut wanted = Box::pin(second.wanted());
            assert!(wanted.as_mut().now_or_never().is_none());
            locks.want(stripe(2));
            assert!(wanted.as_mut().now_or_never().is_none());
            locks.want(stripe(1));
            assert!(wanted.now_or_never().is_some(), "nobody waits for it");
        }
    }
}
