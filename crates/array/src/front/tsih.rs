//! Hands out session handles: 16 bits, not zero, unique while their session lives.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hands out handles, at most so many at once.
pub(crate) struct Tsihs {
    max: usize,
    shared: Arc<Mutex<TakenHandles>>,
}

#[derive(Default)]
struct TakenHandles {
    last: u16,
    taken: BTreeSet<u16>,
}

/// A handle in use; free again when this is dropped.
pub(crate) struct TsihLease {
    tsih: u16,
    shared: Arc<Mutex<TakenHandles>>,
}

impl Tsihs {
    /// At most `max` at once, and never more than there are.
    pub(crate) fn new(max: usize) -> Self {
        Tsihs {
            max: max.min(usize::from(u16::MAX)),
            shared: Arc::default(),
        }
    }

    /// The next free handle after the last one given: one that was just freed is
    /// not reused at once. `None` when too many are taken.
    pub(crate) fn lease(&self) -> Option<TsihLease> {
        let mut state = lock(&self.shared);
        if state.taken.len() >= self.max {
            return None;
        }
        loop {
            state.last = state.last.checked_add(1).unwrap_or(1);
            let tsih = state.last;
            if state.taken.insert(tsih) {
                return Some(TsihLease {
                    tsih,
                    shared: Arc::clone(&self.shared),
                });
            }
        }
    }
}

impl TsihLease {
    /// The handle.
    pub(crate) fn tsih(&self) -> u16 {
        self.tsih
    }
}

impl Drop for TsihLease {
    fn drop(&mut self) {
        lock(&self.shared).taken.remove(&self.tsih);
    }
}

// A set of numbers is whole whatever panicked beside it.
fn lock(shared: &Mutex<TakenHandles>) -> MutexGuard<'_, TakenHandles> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_unique_bounded_and_come_back() {
        let tsihs = Tsihs::new(2);
        let first = tsihs.lease().unwrap();
        let second = tsihs.lease().unwrap();
        assert_eq!((first.tsih(), second.tsih()), (1, 2));
        assert!(tsihs.lease().is_none(), "the bound is two");
        drop(first);
        assert_eq!(tsihs.lease().unwrap().tsih(), 3);
    }

    #[test]
    fn handles_wrap_past_zero_and_past_those_taken() {
        let tsihs = Tsihs::new(usize::MAX);
        let kept = tsihs.lease().unwrap();
        for _ in 0..u16::MAX - 1 {
            tsihs.lease().unwrap();
        }
        assert_eq!((kept.tsih(), tsihs.lease().unwrap().tsih()), (1, 2));
    }
}
