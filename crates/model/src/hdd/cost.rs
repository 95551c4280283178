//! The position of the heads, and the cost of a command from there.

use super::geometry::{Geometry, HeadPosition};
use super::queue::{Job, Positioning};
use super::seek::Curve;
use super::{Hdd, range};
use crate::RequestKind;
use base::{DriveOffset, Prng, Time};

/// Arm and spindle.
#[derive(Clone, Debug)]
pub(super) struct Mechanism {
    pub geometry: Geometry,
    read_seek: Curve,
    write_seek: Curve,
    switch_ns: u64,
    /// The spindle's position at time zero, as a time less than a revolution.
    phase_ns: u64,
    heads: HeadPosition,
}

impl Mechanism {
    pub(super) fn new(drive: &Hdd, randomness: &mut Prng) -> Mechanism {
        let geometry = Geometry::new(drive);
        let cylinders = geometry.cylinders();
        Mechanism {
            read_seek: Curve::new(&drive.read_seek, cylinders),
            write_seek: Curve::new(&drive.write_seek, cylinders),
            switch_ns: drive.switch.as_nanos() as u64,
            phase_ns: randomness.below(geometry.revolution_ns()),
            heads: geometry.place(0),
            geometry,
        }
    }

    #[cfg(test)]
    pub(super) fn phase_ns(&self) -> u64 {
        self.phase_ns
    }

    pub(super) fn place(&self, at: DriveOffset) -> HeadPosition {
        self.geometry.place(at.0)
    }

    /// The heads are over this byte now.
    pub(super) fn stand_at(&mut self, offset_bytes: u64) {
        self.heads = self.geometry.place(offset_bytes);
    }

    /// Seek and rotation to the first byte of `job`, begun at `now`.
    pub(super) fn positioning(&self, job: &Job, now: Time) -> Positioning {
        let distance = self.heads.cylinder.abs_diff(job.place.cylinder);
        let seek_ns = match (distance, job.request.kind) {
            (0, _) if self.heads.head == job.place.head => 0,
            (0, _) => self.switch_ns,
            (_, RequestKind::Write) => self.write_seek.time_ns(distance),
            _ => self.read_seek.time_ns(distance),
        };
        let over_ns = now.as_nanos() + self.phase_ns + seek_ns;
        Positioning {
            seek_ns,
            rotation_ns: self.geometry.rotation_ns(&job.place, over_ns),
        }
    }

    /// From the first byte to the last, switches on the way included.
    pub(super) fn transfer_ns(&self, job: &Job) -> u64 {
        let (_, end) = range(&job.request);
        self.geometry.place(end).tape_ns - job.place.tape_ns
    }
}
