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

type Waiters = VecDeque<oneshot::Sender<StripeGuard>>;

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
            waiters.push_back(grant);
        }
        match granted.await {
            Ok(guard) => guard,
            Err(oneshot::Canceled) => unreachable!("a waiter leaves only when it is granted"),
        }
    }

    /// Holds `stripe` when nobody does.
    pub fn try_lock(&self, stripe: StripeRef) -> Option<StripeGuard> {
        let mut held = self.held.borrow_mut();
        if held.contains_key(&stripe) {
            return None;
        }
        held.insert(stripe, VecDeque::new());
        Some(StripeGuard {
            held: Rc::clone(&self.held),
            stripe,
        })
    }
}

impl Drop for StripeGuard {
    fn drop(&mut self) {
        let next = {
            let mut held = self.held.borrow_mut();
            let next = held.get_mut(&self.stripe).and_then(VecDeque::pop_front);
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

    #[test]
    fn one_holds_a_stripe_and_the_next_waits_for_its_turn() {
        let locks = StripeLocks::default();
        let stripe = |number| StripeRef {
            zone: 0,
            number,
            span: 0,
        };
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
}
