//! The account of a volume: who may go now, who waits, who is refused.
//!
//! Shards share it. Its lock is held for a few sums, never while anything is waited for. A command
//! that waits has a place in the queue; the first one sleeps until it is due, and wakes the next
//! one when it goes.

use super::limits::Limits;
use super::pace::Pace;
use super::{HOLD_MAX, SLACK};
use crate::world::World;
use base::Time;
use futures_util::future::{Either, select};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// The command would have waited longer than [`HOLD_MAX`]; it has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// What the limits of a volume did to commands, since the account was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commands that wait now.
    pub waiting: u64,
    /// Commands that waited, and went.
    pub held: u64,
    /// The time that these waited, together.
    pub held_time: Duration,
    /// Commands that were refused.
    pub refused: u64,
}

/// A command that waits.
#[derive(Debug)]
struct Waiting {
    ticket: u64,
    ios: u64,
    bytes: u64,
    waker: Option<Waker>,
    /// Another limit has come, by which it would wait too long.
    is_refused: bool,
}

/// Who may go when, for one volume.
#[derive(Debug, Default)]
pub struct Account {
    /// Whether commands have to ask at all.
    asks: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    limits: Limits,
    /// Of I/Os, and of bytes.
    ios: Vec<Pace>,
    bytes: Vec<Pace>,
    queue: VecDeque<Waiting>,
    /// Of all that wait.
    queued_ios: u64,
    queued_bytes: u64,
    next_ticket: u64,
    counts: Counts,
}

/// What a command that waits is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// It goes.
    Goes,
    /// It is the first, and goes at this instant.
    Due(Time),
    /// It does not go.
    Refused,
}

/// The place of a command in the queue, until it goes or is dropped.
struct Place<'a> {
    account: &'a Account,
    ticket: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let next = {
            let mut state = self.account.state();
            state.leave(self.ticket);
            self.account.settle(&state);
            state.first_waker()
        };
        // Not with the lock held: it may run anything.
        if let Some(next) = next {
            next.wake();
        }
    }
}

impl State {
    /// When a command may go that is the first.
    fn due(&self) -> Time {
        let paces = self.ios.iter().chain(&self.bytes);
        paces.map(Pace::due).max().unwrap_or_default()
    }

    /// How long a command would wait that comes now.
    fn wait(&self, now: Time) -> Duration {
        let ios = self.ios.iter().map(|pace| pace.wait(self.queued_ios, now));
        let bytes = self.bytes.iter();
        let bytes = bytes.map(|pace| pace.wait(self.queued_bytes, now));
        ios.chain(bytes).max().unwrap_or_default()
    }

    fn take(&mut self, (ios, bytes): (u64, u64), now: Time) {
        for pace in &mut self.ios {
            pace.take(ios, now);
        }
        for pace in &mut self.bytes {
            pace.take(bytes, now);
        }
    }

    fn join(&mut self, (ios, bytes): (u64, u64)) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.queued_ios += ios;
        self.queued_bytes += bytes;
        self.queue.push_back(Waiting {
            ticket,
            ios,
            bytes,
            waker: None,
            is_refused: false,
        });
        ticket
    }

    fn leave(&mut self, ticket: u64) {
        let Some(at) = self.place_of(ticket) else {
            return;
        };
        if let Some(gone) = self.queue.remove(at) {
            self.queued_ios -= gone.ios;
            self.queued_bytes -= gone.bytes;
        }
    }

    /// Tickets are in order.
    fn place_of(&self, ticket: u64) -> Option<usize> {
        self.queue
            .binary_search_by_key(&ticket, |one| one.ticket)
            .ok()
    }

    /// The waker of the first one, who has to look anew.
    fn first_waker(&mut self) -> Option<Waker> {
        self.queue.front_mut()?.waker.take()
    }

    /// What waits counts by the new limits. Wakes those that would wait too long.
    fn count_anew(&mut self, now: Time) -> Vec<Waker> {
        let mut queue = std::mem::take(&mut self.queue);
        (self.queued_ios, self.queued_bytes) = (0, 0);
        let mut refused = Vec::new();
        for one in &mut queue {
            one.is_refused = self.wait(now) > HOLD_MAX;
            one.ios = self.limits.ios_of(one.bytes);
            self.queued_ios += one.ios;
            self.queued_bytes += one.bytes;
            refused.extend(one.waker.take_if(|_| one.is_refused));
        }
        self.queue = queue;
        refused
    }
}

impl Account {
    // Whoever panicked with this lock held has left whole sums behind.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commands have to ask while there is a limit, or others are before them.
    fn settle(&self, state: &State) {
        let asks = !state.limits.is_none() || !state.queue.is_empty();
        self.asks.store(asks, Ordering::SeqCst);
    }

    /// These are the limits from now on. What was used before does not count.
    pub fn set(&self, limits: Limits, now: Time) {
        let wakers = {
            let mut state = self.state();
            if state.limits == limits {
                return;
            }
            let paces = |rate: Option<super::Rate>| -> Vec<Pace> {
                let paces = rate.map(|rate| Pace::of(rate, limits.burst_s, SLACK, now));
                paces.into_iter().flatten().collect()
            };
            (state.ios, state.bytes) = (paces(limits.ios), paces(limits.bytes));
            state.limits = limits;
            let mut wakers = state.count_anew(now);
            self.settle(&state);
            wakers.extend(state.first_waker());
            wakers
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// What the limits did so far.
    pub fn counts(&self) -> Counts {
        let state = self.state();
        Counts {
            waiting: state.queue.len() as u64,
            ..state.counts
        }
    }

    /// Whether a command has to ask (cheap).
    pub fn asks(&self) -> bool {
        self.asks.load(Ordering::SeqCst)
    }

    /// Ends when a command that moves so many bytes may go. Who loses interest drops this, and
    /// nothing was taken.
    ///
    /// # Errors
    /// It would wait too long.
    pub async fn admit<W: World>(&self, world: &W, bytes: u64) -> Result<(), Refused> {
        if !self.asks() {
            return Ok(());
        }
        let came = world.now();
        let place = {
            let mut state = self.state();
            let units = (state.limits.ios_of(bytes), bytes);
            if state.queue.is_empty() && state.due() <= came {
                state.take(units, came);
                return Ok(());
            }
            if state.wait(came) > HOLD_MAX {
                state.counts.refused += 1;
                return Err(Refused);
            }
            let ticket = state.join(units);
            Place {
                account: self,
                ticket,
            }
        };
        let waited = self.wait(world, &place).await;
        let mut state = self.state();
        if waited.is_err() {
            state.counts.refused += 1;
            return Err(Refused);
        }
        state.counts.held += 1;
        state.counts.held_time += world.now().since(came);
        world.reached("command held by the limit of its volume");
        Ok(())
    }

    /// Ends when the command at `place` goes, which has left the queue then.
    async fn wait<W: World>(&self, world: &W, place: &Place<'_>) -> Result<(), Refused> {
        let mut due = None;
        loop {
            let seen = due;
            let mut look = pin!(poll_fn(|context| {
                let looked = self.look(place.ticket, world.now(), context.waker());
                match looked {
                    Some(Look::Due(at)) if seen == Some(at) => Poll::Pending,
                    Some(looked) => Poll::Ready(looked),
                    None => Poll::Pending,
                }
            }));
            let looked = match seen {
                None => look.await,
                Some(at) => {
                    let sleep = pin!(world.sleep(at.since(world.now())));
                    match select(look.as_mut(), sleep).await {
                        Either::Left((looked, _)) => looked,
                        Either::Right(_) => {
                            due = None;
                            continue;
                        }
                    }
                }
            };
            match looked {
                Look::Goes => return Ok(()),
                Look::Refused => return Err(Refused),
                Look::Due(at) => due = Some(at),
            }
        }
    }

    /// Looks whether a command may go; if so it takes what it costs. Where it may not, `waker` is
    /// told when that may be another.
    fn look(&self, ticket: u64, now: Time, waker: &Waker) -> Option<Look> {
        let mut state = self.state();
        let due = state.due();
        let first = state.queue.front();
        let is_first = first.is_some_and(|one| one.ticket == ticket && !one.is_refused);
        if is_first && due <= now {
            let units = state.queue.front().map(|one| (one.ios, one.bytes));
            state.take(units.unwrap_or_default(), now);
            state.leave(ticket);
            self.settle(&state);
            let next = state.first_waker();
            drop(state);
            if let Some(next) = next {
                next.wake();
            }
            return Some(Look::Goes);
        }
        let at = state.place_of(ticket)?;
        let own = state.queue.get_mut(at)?;
        if own.is_refused {
            return Some(Look::Refused);
        }
        own.waker = Some(waker.clone());
        is_first.then_some(Look::Due(due))
    }
}
