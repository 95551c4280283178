//! One interface to the models of hard disks, flash drives and throttled files.

use base::{Prng, Time};
use model::flash::Flash;
use model::hdd::{Hdd, STROKE_PARTS};
use model::throttled::Throttled;
use model::{Completed, Request, Ticket, flash, hdd, throttled};
use std::time::Duration;

/// What a drive is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DriveKind {
    /// A hard disk with arm, queue and buffer.
    Hdd(Hdd),
    /// A flash drive with dies and write buffer.
    Flash(Flash),
    /// A file made slow; no plan has one, see [`crate::run::raw`].
    Throttled(Throttled),
}

/// What the parts of a drive that do the work did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Time that they were busy, added up.
    pub busy: Duration,
    /// How many parts: arms of a disk, dies of flash, slots.
    pub parts: u32,
}

impl DriveKind {
    /// Bytes that it offers, whole blocks.
    pub fn capacity_bytes(&self) -> u64 {
        let bytes = match self {
            DriveKind::Hdd(drive) => drive.capacity_bytes,
            DriveKind::Flash(drive) => drive.capacity_bytes,
            DriveKind::Throttled(drive) => drive.capacity_bytes,
        };
        bytes - bytes % base::BLOCK_BYTES as u64
    }

    /// The name of its model, for reports.
    pub fn name(&self) -> &'static str {
        match self {
            DriveKind::Hdd(drive) => drive.name,
            DriveKind::Flash(drive) => drive.name,
            DriveKind::Throttled(drive) => drive.name,
        }
    }

    /// Whether it has arms that seek: true for hard disks only.
    pub fn is_rotational(&self) -> bool {
        matches!(self, DriveKind::Hdd(_))
    }
}

/// A drive's state. Boxed, as the sizes differ.
pub(crate) enum DriveModel {
    Hdd(Box<hdd::State>),
    Flash(Box<flash::State>),
    Throttled(Box<throttled::State>, u16),
}

impl DriveModel {
    pub(crate) fn new(kind: &DriveKind, mut randomness: Prng) -> DriveModel {
        match kind {
            DriveKind::Hdd(drive) => {
                DriveModel::Hdd(Box::new(hdd::State::new(drive, &mut randomness)))
            }
            DriveKind::Flash(drive) => {
                DriveModel::Flash(Box::new(flash::State::new(drive, &mut randomness)))
            }
            DriveKind::Throttled(drive) => {
                DriveModel::Throttled(Box::new(throttled::State::new(drive)), drive.slots)
            }
        }
    }

    pub(super) fn arrive(&mut self, request: Request, now: Time) -> Ticket {
        match self {
            DriveModel::Hdd(state) => state.arrive(request, now),
            DriveModel::Flash(state) => state.arrive(request, now),
            DriveModel::Throttled(state, _) => state.arrive(request, now),
        }
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        match self {
            DriveModel::Hdd(state) => state.next_event(),
            DriveModel::Flash(state) => state.next_event(),
            DriveModel::Throttled(state, _) => state.next_event(),
        }
    }

    pub(super) fn advance(&mut self, now: Time, completed: &mut Vec<Completed>) {
        match self {
            DriveModel::Hdd(state) => state.advance(now, completed),
            DriveModel::Flash(state) => state.advance(now, completed),
            DriveModel::Throttled(state, _) => state.advance(now, completed),
        }
    }

    /// Commands by where they lie on the stroke; none of a drive without an arm.
    pub(super) fn by_stroke(&self) -> Option<[u64; STROKE_PARTS]> {
        match self {
            DriveModel::Hdd(state) => Some(*state.by_stroke()),
            DriveModel::Flash(_) | DriveModel::Throttled(..) => None,
        }
    }

    pub(super) fn busy(&self) -> Busy {
        match self {
            DriveModel::Hdd(state) => Busy {
                busy: state.counters().busy(),
                parts: 1,
            },
            DriveModel::Flash(state) => Busy {
                busy: state.counters().dies_busy,
                parts: state.dies() as u32,
            },
            DriveModel::Throttled(state, slots) => Busy {
                busy: state.busy(),
                parts: u32::from(*slots),
            },
        }
    }
}
