//! The network between hosts and portals: streams of bytes that take their time, and end.
//!
//! Invariants:
//! - Bytes of one direction arrive in the order in which they were sent, in runs of any length.
//! - A wire that is cut breaks for both ends at once, and what was on its way is lost.
//! - A wire whose host has vanished says nothing to the array: no byte, and no end.

use array::stream::Stream;
use base::Prng;
use engine::World;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use world_sim::SimWorld;

/// The end of the host, and the end of the array.
const HOST: usize = 0;
const ARRAY: usize = 1;

/// A wire is slow in one of so many directions.
const SLOW_ONE_OF: u64 = 8;

/// A wire that holds less is slow for long transfers.
const SMALL_BYTES: usize = 8 << 10;

/// One direction.
#[derive(Default)]
struct Pipe {
    /// Written, and not on its way.
    sent: VecDeque<u8>,
    arrived: VecDeque<u8>,
    /// The writer has closed its end, behind what it has sent.
    is_ended: bool,
    /// The reader knows, once it has read what came before.
    end_arrived: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    courier: Option<Waker>,
}

impl Pipe {
    fn wake_all(&mut self) {
        let all = [self.reader.take(), self.writer.take(), self.courier.take()];
        all.into_iter().flatten().for_each(Waker::wake);
    }
}

/// Both directions; each is named for the end that writes it.
#[derive(Default)]
struct State {
    pipes: [Pipe; 2],
    is_cut: bool,
    /// The host is gone, and nobody has told the array.
    is_vanished: bool,
    /// The next bytes in either direction arrive with one bit turned.
    garbles: bool,
    gone: [bool; 2],
    capacity: usize,
    /// Much takes long on it: an end may be taken for silent.
    is_slow: bool,
    /// There is no courier: what is written has arrived.
    is_at_once: bool,
}

/// How long bytes take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// No time, whatever their number: a PDU costs few polls.
    AtOnce,
    /// A while, in runs of any length, and much on some wires.
    Drawn,
}

impl State {
    /// This end writes nothing more.
    fn end(&mut self, own: usize) {
        self.pipes[own].is_ended = true;
        self.pipes[own].end_arrived |= self.is_at_once;
    }
}

/// A connection, as whoever disturbs it knows it.
#[derive(Clone)]
pub(crate) struct Wire(Arc<Mutex<State>>);

/// One end of a connection.
pub(crate) struct End {
    wire: Wire,
    own: usize,
}

impl Wire {
    /// Draws how it is, and has couriers carry what is written.
    fn begin_couriers(&self, world: &SimWorld, prng: &mut Prng) {
        let capacity = 1 << prng.between(9, 18);
        let slow = [HOST, ARRAY].map(|_| prng.chance(1, SLOW_ONE_OF));
        {
            let mut state = self.state();
            state.capacity = capacity;
            state.is_slow = slow.contains(&true) || capacity < SMALL_BYTES;
        }
        for from in [HOST, ARRAY] {
            let courier = Courier {
                world: world.clone(),
                wire: self.clone(),
                from,
                is_slow: slow[from],
                // Another for each wire.
                prng: Prng::from_seed(prng.next_u64()),
            };
            world.spawn(courier.carry());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Breaks it for both ends.
    pub(crate) fn cut(&self) {
        let mut state = self.state();
        state.is_cut = true;
        state.pipes.iter_mut().for_each(Pipe::wake_all);
    }

    /// The host vanishes without a word.
    pub(crate) fn vanish(&self) {
        self.state().is_vanished = true;
    }

    pub(crate) fn is_slow(&self) -> bool {
        self.state().is_slow
    }

    /// Turns a bit of what arrives next.
    pub(crate) fn garble(&self) {
        self.state().garbles = true;
    }
}

/// A connection between a host and the array: the host's end, and the array's.
pub(crate) fn connect(world: &SimWorld, prng: &mut Prng, pace: Pace) -> (End, End) {
    let state = match pace {
        Pace::AtOnce => State {
            is_at_once: true,
            ..State::default()
        },
        Pace::Drawn => State::default(),
    };
    let wire = Wire(Arc::new(Mutex::new(state)));
    if pace == Pace::Drawn {
        wire.begin_couriers(world, prng);
    }
    let end = |own| End {
        wire: wire.clone(),
        own,
    };
    (end(HOST), end(ARRAY))
}

/// Carries one direction.
struct Courier {
    world: SimWorld,
    wire: Wire,
    from: usize,
    is_slow: bool,
    prng: Prng,
}

impl Courier {
    async fn carry(mut self) {
        let longest_ns = if self.is_slow { 3_000_000 } else { 30_000 };
        while poll_fn(|cx| self.poll_something(cx)).await {
            let takes = Duration::from_nanos(self.prng.below(longest_ns));
            self.world.sleep(takes).await;
            self.deliver();
        }
    }

    /// Waits for something to carry; `false` when there will be nothing any more.
    fn poll_something(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.wire.state();
        if state.is_cut || state.pipes[self.from].end_arrived {
            return Poll::Ready(false);
        }
        let pipe = &mut state.pipes[self.from];
        if !pipe.sent.is_empty() || pipe.is_ended {
            return Poll::Ready(true);
        }
        pipe.courier = Some(cx.waker().clone());
        Poll::Pending
    }

    fn deliver(&mut self) {
        let mut state = self.wire.state();
        let lost = state.is_vanished;
        let pipe = &mut state.pipes[self.from];
        let all = pipe.sent.len() as u64;
        let bytes = match self.prng.below(3) {
            0 => self.prng.below(all + 1),
            _ => all,
        };
        let mut run: Vec<u8> = pipe.sent.drain(..bytes as usize).collect();
        let ends = pipe.is_ended && pipe.sent.is_empty();
        if lost {
            // What the array says piles up: nobody acknowledges it.
            if self.from == ARRAY {
                pipe.sent.extend(run);
            }
            // Nothing more is to be carried; the courier waits for the wire to be cut.
            pipe.end_arrived = true;
            return;
        }
        let garbled = state.garbles && !run.is_empty();
        if garbled {
            state.garbles = false;
            let at = self.prng.below(run.len() as u64) as usize;
            run[at] ^= 1 << self.prng.below(8);
        }
        let pipe = &mut state.pipes[self.from];
        pipe.arrived.extend(run);
        pipe.end_arrived |= ends;
        let wakers = [pipe.reader.take(), pipe.writer.take()];
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl End {
    /// How to disturb it.
    pub(crate) fn wire(&self) -> Wire {
        self.wire.clone()
    }

    /// What is written has arrived, all of it.
    fn arrive(&self, mut state: MutexGuard<'_, State>, runs: &[IoSlice<'_>]) -> usize {
        let pipe = &mut state.pipes[self.own];
        for run in runs {
            pipe.arrived.extend(run.iter());
        }
        if let Some(reader) = pipe.reader.take() {
            drop(state);
            reader.wake();
        }
        runs.iter().map(|run| run.len()).sum()
    }

    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        spaces: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.wire.state();
        if state.is_cut {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let lost = state.is_vanished;
        let pipe = &mut state.pipes[1 - self.own];
        if pipe.arrived.is_empty() {
            if pipe.end_arrived && !lost {
                return Poll::Ready(Ok(0));
            }
            pipe.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let mut taken = 0;
        for space in spaces {
            let bytes = space.len().min(pipe.arrived.len());
            for (to, from) in space.iter_mut().zip(pipe.arrived.drain(..bytes)) {
                *to = from;
            }
            taken += bytes;
        }
        if let Some(writer) = pipe.writer.take() {
            drop(state);
            writer.wake();
        }
        Poll::Ready(Ok(taken))
    }
}

impl Stream for End {
    type Parked = End;

    fn park(self) -> io::Result<End> {
        Ok(self)
    }

    fn unpark(parked: End) -> io::Result<End> {
        Ok(parked)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        self.poll_take(cx, &mut [IoSliceMut::new(space)])
    }

    fn poll_read_vectored(
        &mut self,
        cx: &mut Context<'_>,
        spaces: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_take(cx, spaces)
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        runs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.wire.state();
        if state.is_cut || state.gone[1 - self.own] && !state.is_vanished {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if state.is_at_once {
            return Poll::Ready(Ok(self.arrive(state, runs)));
        }
        let capacity = state.capacity;
        let pipe = &mut state.pipes[self.own];
        let held = pipe.sent.len() + pipe.arrived.len();
        let mut room = capacity.saturating_sub(held);
        if room == 0 {
            pipe.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let mut sent = 0;
        for run in runs {
            let bytes = run.len().min(room);
            pipe.sent.extend(&run[..bytes]);
            (sent, room) = (sent + bytes, room - bytes);
        }
        if let Some(courier) = pipe.courier.take() {
            drop(state);
            courier.wake();
        }
        Poll::Ready(Ok(sent))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.wire.state();
        state.end(self.own);
        let is_at_once = state.is_at_once;
        let pipe = &mut state.pipes[self.own];
        let next = match is_at_once {
            true => pipe.reader.take(),
            false => pipe.courier.take(),
        };
        drop(state);
        next.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }

    fn is_closed(&self) -> bool {
        let state = self.wire.state();
        state.is_cut || state.pipes[1 - self.own].end_arrived && !state.is_vanished
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut state = self.wire.state();
        state.gone[self.own] = true;
        state.end(self.own);
        state.pipes.iter_mut().for_each(Pipe::wake_all);
    }
}
