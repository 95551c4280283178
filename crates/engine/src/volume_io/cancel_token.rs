//! The cancel token of a copy: its progress, and whether it is to continue. The copying task looks at it
//! after each piece; others may be on another thread. Commands that wait for room before they are
//! tried again look at one, too.

use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::task::Poll;

/// How a copy goes. Clones are of the same copy.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<State>);

#[derive(Debug, Default)]
struct State {
    stopped: AtomicBool,
    done: AtomicU64,
    /// Of the one who waits for the stop.
    waiting: AtomicWaker,
}

impl CancelToken {
    /// It is to end after the piece that it is at.
    pub fn stop(&self) {
        self.0.stopped.store(true, SeqCst);
        self.0.waiting.wake();
    }

    /// Whether it is to go on.
    pub fn goes_on(&self) -> bool {
        !self.0.stopped.load(SeqCst)
    }

    /// Ends when it is stopped. One at a time may wait for that.
    pub async fn stopped(&self) {
        poll_fn(|cx| {
            self.0.waiting.register(cx.waker());
            match self.goes_on() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }

    /// Whether both are of the same copy.
    pub fn is(&self, other: &CancelToken) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Bytes that are done.
    pub fn done(&self) -> u64 {
        self.0.done.load(Relaxed)
    }

    /// So many bytes are done. Says whether to go on.
    pub fn reach(&self, done: u64) -> bool {
        self.0.done.store(done, Relaxed);
        self.goes_on()
    }
}
