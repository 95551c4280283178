//! Waking somebody on another shard, and waiting with a bound.

use engine::World;
use event_listener::Event;
use futures_util::future::{Either, select};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Wakes the one who waits, or who waits next.
#[derive(Debug, Default)]
pub struct Wake {
    asked: AtomicBool,
    event: Event,
}

impl Wake {
    /// Wakes whoever waits; when nobody does, the next who waits does not.
    pub fn notify(&self) {
        self.asked.store(true, SeqCst);
        self.event.notify(1);
    }

    /// Ends once it has been notified since this ended last. Dropped before, it takes nothing.
    pub async fn notified(&self) {
        loop {
            let listener = self.event.listen();
            if self.asked.swap(false, SeqCst) {
                return;
            }
            listener.await;
        }
    }
}

/// What comes of `operation`; none when it has not ended after `patience`.
pub async fn in_time<W: World, T>(
    world: &W,
    patience: Duration,
    operation: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(operation), pin!(world.sleep(patience))).await {
        Either::Left((outcome, _)) => Some(outcome),
        Either::Right(_) => None,
    }
}
