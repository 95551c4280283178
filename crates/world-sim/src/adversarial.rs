//! A drive that is as nasty as the media assumptions allow.
//!
//! Latencies are random, so operations end in any order. A read gives what was
//! there when it began or when it ended. A write whose future is dropped may be
//! done or not.

use super::SimWorld;
use super::faults::{Faults, Stray};
use super::media::{InQueue, Media, Reach};
use base::{BLOCK_BYTES, Buf, DriveOffset, Slice};
use engine::{DriveError, DriveErrorKind, Geometry, World};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// The name of a write that is durable when it ends.
const DURABLE: &str = "durable write";

/// After how long a full queue is looked at again; twice as long each time, up to
/// the second figure.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(50));

/// What is slowed down asks so often whether it still is.
const SLOW_STEP: Duration = Duration::from_millis(100);

/// The door of one world to [`Media`].
pub(super) struct Adversarial {
    world: SimWorld,
    media: Rc<Media>,
    owner: u64,
}

/// What an operation is about, for errors and the trace.
#[derive(Clone, Copy)]
struct Operation {
    name: &'static str,
    at: DriveOffset,
    len_bytes: u64,
}

/// A write that the drive has and has not answered. Dropped, it is done or not.
struct InFlight<'a> {
    media: &'a Media,
    sequence: u64,
    open: bool,
}

impl<'a> InFlight<'a> {
    fn begin(media: &'a Media, at: DriveOffset, data: Slice) -> Self {
        let sequence = media.begin_write(at, data);
        InFlight {
            media,
            sequence,
            open: true,
        }
    }

    fn end(mut self, reach: Reach) {
        self.open = false;
        self.media.end_write(self.sequence, reach);
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.open {
            let reaches = [Reach::All, Reach::Nothing, Reach::Some, Reach::Some];
            let reach = self.media.draw(|prng| *prng.pick(&reaches));
            self.media.end_write(self.sequence, reach);
        }
    }
}

impl Adversarial {
    pub(super) fn new(world: SimWorld, media: Rc<Media>) -> Self {
        let owner = media.owner();
        Adversarial {
            world,
            media,
            owner,
        }
    }

    pub(super) fn geometry(&self) -> Geometry {
        let spec = self.media.spec();
        Geometry {
            capacity_bytes: spec.capacity_bytes,
            rotational: spec.rotational,
            discards: spec.discards,
        }
    }

    pub(super) async fn read(
        &self,
        at: DriveOffset,
        mut buf: Buf,
    ) -> (Buf, Result<(), DriveError>) {
        let operation = Operation {
            name: "read",
            at,
            len_bytes: buf.len() as u64,
        };
        if let Err(error) = self.begin(operation) {
            return (buf, Err(error));
        }
        let early = self.media.draw(|prng| prng.chance(1, 2));
        if early && let Some(bytes) = buf.bytes_mut() {
            self.media.fill(at, bytes);
        }
        self.take_time().await;
        if !early && let Some(bytes) = buf.bytes_mut() {
            self.media.fill(at, bytes);
        }
        let (unreadable, fails) = self.media.with_faults(|faults| {
            let unreadable = Faults::hits(&faults.unreadable, at, operation.len_bytes);
            let fails = faults.next_fails(false);
            (unreadable, fails.then(|| faults.kind_of_failure()))
        });
        let kind = match fails {
            Some(kind) => Some(kind),
            None => unreadable.then_some(DriveErrorKind::Media),
        };
        (buf, self.end(operation, kind))
    }

    pub(super) async fn write(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        self.put("write", at, data).await
    }

    /// Only this write becomes durable, nothing that ended before it.
    pub(super) async fn write_durable(
        &self,
        at: DriveOffset,
        data: Slice,
    ) -> Result<(), DriveError> {
        self.put(DURABLE, at, data).await
    }

    async fn put(
        &self,
        name: &'static str,
        at: DriveOffset,
        data: Slice,
    ) -> Result<(), DriveError> {
        let operation = Operation {
            name,
            at,
            len_bytes: data.len() as u64,
        };
        assert!(!data.is_length_only(), "an adversarial drive keeps bytes");
        self.begin(operation)?;
        if self.media.with_faults(|faults| faults.no_space)
            && self.media.grows(at, operation.len_bytes)
        {
            self.take_time().await;
            return self.end(operation, Some(DriveErrorKind::NoSpace));
        }
        if let Some(first) = data.bytes().and_then(|bytes| bytes.first_chunk()) {
            self.world.mark(u64::from_le_bytes(*first));
        }
        let stray = self.media.with_faults(Faults::next_write);
        let lands = match stray {
            Stray::Elsewhere => self.media.anywhere(operation.len_bytes),
            Stray::No | Stray::Lost => at,
        };
        let in_flight = InFlight::begin(&self.media, lands, data);
        self.take_time().await;
        let slow_by = self.media.with_faults(|faults| {
            Faults::hits(&faults.slow_blocks, at, operation.len_bytes).then_some(faults.slow_by)
        });
        if let Some(slow_by) = slow_by {
            self.world.sleep(slow_by).await;
            self.until_it_answers().await;
        }
        let (failed, gone) = self.media.with_faults(|faults| {
            let unwritable = Faults::hits(&faults.unwritable, at, operation.len_bytes);
            let failed = match faults.next_fails(false) {
                true => Some(faults.kind_of_failure()),
                false => unwritable.then_some(DriveErrorKind::Media),
            };
            (failed, faults.gone || faults.dead)
        });
        if failed.is_some() || gone {
            // A failed write may have reached any of its sectors.
            drop(in_flight);
        } else if stray == Stray::Lost {
            in_flight.end(Reach::Nothing);
        } else {
            in_flight.end(if name == DURABLE {
                Reach::Durably
            } else {
                Reach::All
            });
            self.media
                .with_faults(|faults| faults.heal(lands, operation.len_bytes));
        }
        self.end(operation, failed)
    }

    /// What it covers is settled here, at the call, not at the first poll.
    pub(super) fn flush(&self) -> impl Future<Output = Result<(), DriveError>> {
        let covered = self.media.ended();
        async move {
            let operation = Operation {
                name: "flush",
                at: DriveOffset(0),
                len_bytes: 0,
            };
            self.begin(operation)?;
            self.take_time().await;
            let fails = self.media.with_faults(|faults| faults.next_fails(true));
            let flushed = self.end(operation, fails.then_some(DriveErrorKind::Other));
            if flushed.is_ok() {
                self.media.settle(covered);
            }
            flushed
        }
    }

    pub(super) async fn discard(&self, at: DriveOffset, len_bytes: u64) -> Result<(), DriveError> {
        let operation = Operation {
            name: "discard",
            at,
            len_bytes,
        };
        self.begin(operation)?;
        if !self.media.spec().discards {
            self.take_time().await;
            return self.end(operation, Some(DriveErrorKind::Other));
        }
        let content = self.media.discarded(at, len_bytes);
        let in_flight = InFlight::begin(&self.media, at, content);
        self.take_time().await;
        in_flight.end(Reach::All);
        self.end(operation, None)
    }

    /// Whether the drive is still as large as it was, and the next start finds it.
    pub(super) fn check(&self) -> Result<(), DriveError> {
        let kind = self.media.with_faults(|faults| match faults {
            Faults { shrunk: true, .. } => Some(DriveErrorKind::Gone),
            Faults { mislaid: true, .. } => Some(DriveErrorKind::Other),
            _ => None,
        });
        let Some(kind) = kind else { return Ok(()) };
        let operation = Operation {
            name: "check",
            at: DriveOffset(0),
            len_bytes: self.media.spec().capacity_bytes,
        };
        Err(self.error(operation, kind))
    }

    /// Refuses what is off the drive or the grain, and everything once gone.
    fn begin(&self, operation: Operation) -> Result<(), DriveError> {
        let Operation {
            name,
            at,
            len_bytes,
        } = operation;
        self.world
            .mark(at.0 ^ len_bytes << 40 ^ (name.len() as u64) << 60);
        self.note(|| format!("{name} {at}+{len_bytes} begins"));
        if self.owner != self.media.owner() && matches!(name, "write" | DURABLE | "discard") {
            self.media.trespass();
        }
        let block = BLOCK_BYTES as u64;
        let end = at.0.checked_add(len_bytes);
        let inside = end.is_some_and(|end| end <= self.media.spec().capacity_bytes);
        if !inside || !at.0.is_multiple_of(block) || !len_bytes.is_multiple_of(block) {
            return Err(self.error(operation, DriveErrorKind::OutOfRange));
        }
        let (gone, dead) = self.media.with_faults(|faults| (faults.gone, faults.dead));
        if gone || dead {
            return Err(self.error(operation, DriveErrorKind::Gone));
        }
        Ok(())
    }

    fn end(&self, operation: Operation, failed: Option<DriveErrorKind>) -> Result<(), DriveError> {
        let Operation {
            name,
            at,
            len_bytes,
        } = operation;
        let gone = self.media.with_faults(|faults| faults.gone || faults.dead);
        let failed = if gone {
            Some(DriveErrorKind::Gone)
        } else {
            failed
        };
        self.world
            .mark(at.0 ^ self.world.now().as_nanos() << 20 ^ u64::from(failed.is_some()));
        self.note(|| match failed {
            None => format!("{name} {at}+{len_bytes} ends"),
            Some(kind) => format!("{name} {at}+{len_bytes} fails: {kind}"),
        });
        match failed {
            None => Ok(()),
            Some(kind) => Err(self.error(operation, kind)),
        }
    }

    fn error(&self, operation: Operation, kind: DriveErrorKind) -> DriveError {
        DriveError {
            kind,
            operation: if operation.name == DURABLE {
                "write"
            } else {
                operation.name
            },
            at: operation.at,
            len_bytes: operation.len_bytes,
            context: format!("simulated drive {}", self.media.spec().name),
        }
    }

    fn note(&self, line: impl FnOnce() -> String) {
        self.world
            .note(|| format!("{}: {}", self.media.spec().name, line()));
    }

    async fn enter_queue(&self) -> InQueue<'_> {
        let (mut pause, longest) = LOOK_AGAIN;
        loop {
            if let Some(place) = self.media.enter_queue() {
                return place;
            }
            self.world.sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }

    /// Mostly some microseconds, at times milliseconds: order must not matter.
    async fn take_time(&self) {
        let _place = self.enter_queue().await;
        if let Some(until) = self.media.with_faults(|faults| faults.stalled_until) {
            self.world.sleep_until(until).await;
        }
        self.until_it_answers().await;
        let nanos = self.media.draw(|prng| match prng.below(16) {
            0 => prng.between(100_000, 5_000_000),
            1..8 => prng.between(1, 2_000),
            _ => prng.between(1, 100_000),
        });
        let mut slept = Duration::ZERO;
        while let Some(left) = self.slowed(nanos).checked_sub(slept)
            && !left.is_zero()
        {
            let step = left.min(SLOW_STEP);
            self.world.sleep(step).await;
            slept += step;
        }
        // One that hangs answers nothing that it has begun, either.
        self.until_it_answers().await;
    }

    /// How long something takes that takes so long on a drive without faults.
    fn slowed(&self, nanos: u64) -> Duration {
        let slowdown = self
            .media
            .with_faults(|faults| u64::from(faults.slowdown.max(1)));
        Duration::from_nanos(nanos * slowdown)
    }

    /// Ends at once, or when somebody takes it back that the drive hangs.
    async fn until_it_answers(&self) {
        poll_fn(|context| {
            let now = self.world.now();
            match self.media.with_faults(|faults| faults.hangs(now)) {
                true => {
                    self.media.hang(context.waker());
                    Poll::Pending
                }
                false => Poll::Ready(()),
            }
        })
        .await;
    }
}
