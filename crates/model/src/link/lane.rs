//! One direction of a link: messages leave in the order of arrival.
//!
//! Invariants: a message begins when the one before it is sent, or at once; the
//! busy time is the sum of the serialisation times, so utilisation is messages per
//! second times the time of one.

use super::Link;
use base::Time;
use std::time::Duration;

/// When a message began, was out and was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its first bit leaves.
    pub begun: Time,
    /// Its last bit has left.
    pub sent: Time,
    /// Its last bit has come in.
    pub arrived: Time,
}

/// One direction at work.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    free_at_ps: u128,
    busy_ps: u128,
    handed_over: Time,
    frames: u64,
    payload_bytes: u64,
}

impl Lane {
    /// Sends a message handed over at `now`. Every duration is rounded up to the
    /// next nanosecond once, at the end, so roundings do not add up.
    ///
    /// # Panics
    /// When `now` is before the message handed over last: the order of the queue
    /// is the order of time.
    pub fn send(&mut self, link: &Link, now: Time, payload_bytes: u64) -> Delivery {
        assert!(now >= self.handed_over, "messages come in order of time");
        let wire = link.framing.wire(payload_bytes);
        let takes_ps = link.serialisation_ps(wire.bytes);
        let begun_ps = self.free_at_ps.max(u128::from(now.as_nanos()) * 1_000);
        let sent_ps = begun_ps + takes_ps;
        let arrived_ps = sent_ps + link.latency_ps(wire.largest_frame_bytes);
        self.free_at_ps = sent_ps;
        self.busy_ps += takes_ps;
        self.handed_over = now;
        self.frames += wire.frames;
        self.payload_bytes += payload_bytes;
        Delivery {
            begun: time(begun_ps),
            sent: time(sent_ps),
            arrived: time(arrived_ps),
        }
    }

    /// When everything handed over is sent.
    pub fn free_at(&self) -> Time {
        time(self.free_at_ps)
    }

    /// Time spent sending, also of what is still being sent.
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(nanos(self.busy_ps))
    }

    /// Frames sent since the beginning.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Payload sent since the beginning, without framing.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }
}

fn nanos(ps: u128) -> u64 {
    u64::try_from(ps.div_ceil(1_000)).unwrap_or(u64::MAX)
}

fn time(ps: u128) -> Time {
    Time(nanos(ps))
}

/// Both directions of a link: they do not slow each other down.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// From the initiator to the target.
    pub out: Lane,
    /// From the target to the initiator.
    pub back: Lane,
}
