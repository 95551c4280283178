//! A wake-up for one task.
//!
//! Invariant: a [`Signal::set`] after the last [`Signal::wait`] ended ends the next
//! one at once; none is lost.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Something may be to do.
#[derive(Debug, Default)]
pub struct Signal {
    set: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Signal {
    /// Wakes who waits, now or next.
    pub fn set(&self) {
        self.set.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Ends when it has been set.
    pub fn wait(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| match self.set.replace(false) {
            true => Poll::Ready(()),
            false => {
                self.waker.replace(Some(context.waker().clone()));
                Poll::Pending
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn no_set_is_lost_and_none_counts_twice() {
        let signal = Signal::default();
        assert!(signal.wait().now_or_never().is_none());
        signal.set();
        signal.set();
        assert!(signal.wait().now_or_never().is_some());
        assert!(signal.wait().now_or_never().is_none());
    }
}
