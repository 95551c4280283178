//! Waking somebody on another shard, and waiting with a bound.

use base::Time;
use engine::World;
use event_listener::Event;
use futures_util::future::{Either, LocalBoxFuture, select};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, ready};
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

/// Is set once, and stays so; wakes all who wait for that.
#[derive(Debug, Default)]
pub struct Flag {
    is_set: AtomicBool,
    event: Event,
}

impl Flag {
    /// Sets it for good, and wakes all who wait.
    pub fn set(&self) {
        self.is_set.store(true, SeqCst);
        self.event.notify(usize::MAX);
    }

    /// Whether somebody has set it.
    pub fn is_set(&self) -> bool {
        self.is_set.load(SeqCst)
    }

    /// Ends once it is set.
    pub async fn wait(&self) {
        while !self.is_set() {
            let listener = self.event.listen();
            if self.is_set() {
                return;
            }
            listener.await;
        }
    }
}

/// Whoever tells the time and wakes for it: a world, or a thread that has none.
pub trait Clock: Clone + 'static {
    /// Time since the clock began.
    fn now(&self) -> Time;

    /// Ends `duration` from now, never earlier.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static;

    /// As [`World::planted`].
    fn planted(&self, bug: &'static str) -> bool {
        let _ = bug;
        false
    }
}

impl<W: World> Clock for W {
    fn now(&self) -> Time {
        World::now(self)
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static {
        World::sleep(self, duration)
    }

    fn planted(&self, bug: &'static str) -> bool {
        World::planted(self, bug)
    }
}

/// Ticks once in each period. A tick that is late puts those after it off: whoever was held up
/// must not take the ticks that it has missed for time that passed.
pub struct Ticker<C: Clock> {
    clock: C,
    period: Duration,
    next: LocalBoxFuture<'static, ()>,
}

impl<C: Clock> Ticker<C> {
    /// Ticks first when one `period` is over.
    ///
    /// # Panics
    /// When that is no time.
    pub fn new(clock: &C, period: Duration) -> Self {
        assert!(!period.is_zero(), "a clock that ticks without a pause");
        Ticker {
            clock: clock.clone(),
            period,
            next: Box::pin(clock.sleep(period)),
        }
    }

    /// Ready once for each tick.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.next.as_mut().poll(cx));
        self.next = Box::pin(self.clock.sleep(self.period));
        Poll::Ready(())
    }
}

/// What comes of `operation`; none when it has not ended after `patience`.
pub async fn in_time<C: Clock, T>(
    clock: &C,
    patience: Duration,
    operation: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(operation), pin!(clock.sleep(patience))).await {
        Either::Left((outcome, _)) => Some(outcome),
        Either::Right(_) => None,
    }
}
