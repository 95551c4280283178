//! The position of the heads, and the cost of a command from there.
//!
//! A drive does not know to the microsecond how long a seek takes: the arm settles
//! sooner or later. What it reckons with, and what then happens, are two things:
//!
//! ```text
//! reckoned = seek + rotation + T · P(too late) - T · P(soon enough for the turn before)
//! actual   = seek + e, and the rotation from there      e: triangular in ± error
//! ```
//!
//! Both chances are of `e`, for the time that is left when the arm should be there. A
//! command that comes to be under the heads right after the arm is a bet: a lost one costs
//! a revolution, `T`. Lumb, Schindler and Ganger describe the bet ("Freeblock scheduling
//! outside of disk firmware", FAST 2002). A drive maker orders commands by a time with both
//! chances in it (Espeseth, Hall, Mosser and Smith, "Disk drive command queue ordering",
//! patent of Hitachi Global Storage Technologies).
//! Of a seek that is shorter than the error, the error is that seek at most.

use super::geometry::{Geometry, HeadPosition};
use super::queue::Job;
use super::seek::Curve;
use super::{Hdd, range};
use crate::RequestKind;
use base::{DriveOffset, Prng, Time};

/// Where the time of a command goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Positioning {
    pub seek_ns: u64,
    pub rotation_ns: u64,
    /// The arm came too late for what the drive had reckoned with.
    pub is_missed: bool,
}

/// Arm and spindle.
#[derive(Clone, Debug)]
pub(super) struct Mechanism {
    pub geometry: Geometry,
    read_seek: Curve,
    write_seek: Curve,
    switch_ns: u64,
    seek_error_ns: u64,
    /// For the errors of seeks.
    errors: Prng,
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
            seek_error_ns: drive.seek_error.as_nanos() as u64,
            errors: randomness.stream("seek errors"),
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

    /// How long the arm takes to `job`, as the drive knows it; with it the most by which that
    /// may be wrong.
    fn seek_ns(&self, job: &Job) -> (u64, u64) {
        let distance = self.heads.cylinder.abs_diff(job.place.cylinder);
        let seek_ns = match (distance, job.request.kind) {
            (0, _) if self.heads.head == job.place.head => return (0, 0),
            (0, _) => return (self.switch_ns, 0),
            (_, RequestKind::Write | RequestKind::DurableWrite) => {
                self.write_seek.time_ns(distance)
            }
            _ => self.read_seek.time_ns(distance),
        };
        (seek_ns, self.seek_error_ns.min(seek_ns))
    }

    /// The rotation from the end of a seek of `seek_ns`, begun at `now`.
    fn rotation_ns(&self, job: &Job, now: Time, seek_ns: u64) -> u64 {
        let over_ns = now.as_nanos() + self.phase_ns + seek_ns;
        self.geometry.rotation_ns(&job.place, over_ns)
    }

    /// The positioning that the drive reckons with when it chooses at `now`, with the
    /// chances that it is a revolution longer or shorter.
    pub(super) fn reckoned_ns(&self, job: &Job, now: Time) -> u64 {
        let (seek_ns, error_ns) = self.seek_ns(job);
        let rotation_ns = self.rotation_ns(job, now, seek_ns);
        let revolution_ns = self.geometry.revolution_ns();
        let beyond = |left_ns: u64| match error_ns.checked_sub(left_ns) {
            Some(over_ns) if error_ns > 0 => {
                let part = over_ns as f64 / error_ns as f64;
                (revolution_ns as f64 * part * part / 2.0) as u64
            }
            _ => 0,
        };
        let late_ns = beyond(rotation_ns);
        let early_ns = beyond(revolution_ns - rotation_ns);
        seek_ns + (rotation_ns + late_ns).saturating_sub(early_ns)
    }

    /// Seek and rotation to the first byte of `job`, begun at `now`, as they come.
    pub(super) fn position(&mut self, job: &Job, now: Time) -> Positioning {
        let (reckoned_ns, error_ns) = self.seek_ns(job);
        let mut seek_ns = reckoned_ns;
        if error_ns > 0 {
            // The sum of two equal chances is triangular.
            let drawn_ns = self.errors.below(error_ns + 1) + self.errors.below(error_ns + 1);
            seek_ns = seek_ns + drawn_ns - error_ns;
        }
        let left_ns = self.rotation_ns(job, now, reckoned_ns);
        Positioning {
            seek_ns,
            rotation_ns: self.rotation_ns(job, now, seek_ns),
            is_missed: seek_ns > reckoned_ns + left_ns,
        }
    }

    /// From the first byte to the last, switches on the way included.
    pub(super) fn transfer_ns(&self, job: &Job) -> u64 {
        let (_, end) = range(&job.request);
        self.geometry.place(end).tape_ns - job.place.tape_ns
    }
}
