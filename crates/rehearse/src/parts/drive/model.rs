//! One interface to the models of hard disks, flash drives, throttled files and measured drives.

use base::{Prng, Time};
use model::flash::Flash;
use model::hdd::{Hdd, STROKE_PARTS};
use model::measured::Measured;
use model::throttled::Throttled;
use model::{Completed, Request, Ticket, flash, hdd, measured, throttled};
use std::sync::Arc;
use std::time::Duration;

/// What a drive is.
#[derive(Clone, Debug, PartialEq)]
pub enum DriveKind {
    /// A hard disk with arm, queue and buffer.
    Hdd(Hdd),
    /// A flash drive with dies and write buffer.
    Flash(Flash),
    /// A file made slow on purpose.
    Throttled(Throttled),
    /// A drive as it was measured.
    Measured(Arc<Measured>),
}

/// What the parts of a drive that do the work did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Time that they were busy, added up.
    pub busy: Duration,
    /// How many parts: arms of a disk, dies of flash, slots.
    pub parts: u32,
    /// Commands that ended, of all drives that share the parts.
    pub served: u64,
}

impl DriveKind {
    /// Bytes that it offers, whole blocks.
    pub fn capacity_bytes(&self) -> u64 {
        let bytes = match self {
            DriveKind::Hdd(drive) => drive.capacity_bytes,
            DriveKind::Flash(drive) => drive.capacity_bytes,
            DriveKind::Throttled(drive) => drive.capacity_bytes,
            DriveKind::Measured(drive) => drive.capacity_bytes,
        };
        bytes - bytes % base::BLOCK_BYTES as u64
    }

    /// The name of its model, for reports.
    pub fn name(&self) -> &str {
        match self {
            DriveKind::Hdd(drive) => drive.name,
            DriveKind::Flash(drive) => drive.name,
            DriveKind::Throttled(drive) => drive.name,
            DriveKind::Measured(drive) => &drive.name,
        }
    }

    /// Whether it has arms that seek: hard disks, and measured drives of which the kernel says it.
    pub fn is_rotational(&self) -> bool {
        match self {
            DriveKind::Hdd(_) => true,
            DriveKind::Flash(_) | DriveKind::Throttled(_) => false,
            DriveKind::Measured(drive) => drive.rotational,
        }
    }

    /// Whether all drives of the model are parts of one device.
    pub fn is_shared(&self) -> bool {
        matches!(self, DriveKind::Measured(drive) if drive.shared)
    }

    /// Whether a flush takes time. Nothing that other drives say is volatile: no cache of theirs is on.
    pub(super) fn has_flushes(&self) -> bool {
        matches!(self, DriveKind::Measured(_))
    }
}

/// A drive's state. Boxed, as the sizes differ.
pub(crate) enum DriveModel {
    Hdd(Box<hdd::State>),
    Flash(Box<flash::State>),
    Throttled(Box<throttled::State>, u16),
    Measured(Box<measured::State>),
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
            DriveKind::Measured(drive) => {
                DriveModel::Measured(Box::new(measured::State::new(drive, randomness)))
            }
        }
    }

    pub(super) fn arrive(&mut self, request: Request, now: Time) -> Ticket {
        match self {
            DriveModel::Hdd(state) => state.arrive(request, now),
            DriveModel::Flash(state) => state.arrive(request, now),
            DriveModel::Throttled(state, _) => state.arrive(request, now),
            DriveModel::Measured(state) => state.arrive(request, now),
        }
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        match self {
            DriveModel::Hdd(state) => state.next_event(),
            DriveModel::Flash(state) => state.next_event(),
            DriveModel::Throttled(state, _) => state.next_event(),
            DriveModel::Measured(state) => state.next_event(),
        }
    }

    pub(super) fn advance(&mut self, now: Time, completed: &mut Vec<Completed>) {
        match self {
            DriveModel::Hdd(state) => state.advance(now, completed),
            DriveModel::Flash(state) => state.advance(now, completed),
            DriveModel::Throttled(state, _) => state.advance(now, completed),
            DriveModel::Measured(state) => state.advance(now, completed),
        }
    }

    /// Commands by where they lie on the stroke; none of a drive without an arm.
    pub(super) fn by_stroke(&self) -> Option<[u64; STROKE_PARTS]> {
        match self {
            DriveModel::Hdd(state) => Some(*state.by_stroke()),
            DriveModel::Flash(_) | DriveModel::Throttled(..) | DriveModel::Measured(_) => None,
        }
    }

    /// What it did, with `served` commands.
    pub(super) fn busy(&self, served: u64) -> Busy {
        match self {
            DriveModel::Hdd(state) => Busy {
                busy: state.counters().busy(),
                parts: 1,
                served,
            },
            DriveModel::Flash(state) => Busy {
                busy: state.counters().dies_busy,
                parts: state.dies() as u32,
                served,
            },
            DriveModel::Throttled(state, slots) => Busy {
                busy: state.busy(),
                parts: u32::from(*slots),
                served,
            },
            DriveModel::Measured(state) => Busy {
                busy: state.busy(),
                parts: 1,
                served,
            },
        }
    }
}
