//! EXTENDED COPY(LID1): segment by segment (SPC-4 clause 6.4).
//!
//! Invariants:
//! - Segments are copied in their order, and none after one that failed. Those that go on
//!   where others end are copied with them, where that makes no difference.
//! - Source and destination of each are looked up when its turn comes, so that what was
//!   unmapped meanwhile is not reached.

use super::copy_sense::{
    Aborted, DEVICE_FAILURE, NO_INFORMATION, NOT_REACHABLE, Pointer, Side, UNREACHABLE, WRONG_TYPE,
};
use super::desk::Copied;
use super::stream::{self, Failure, Run};
use super::xcopy_list::{self, List, Segment};
use super::{Access, CancelToken, Copier, Outcome, Reached, Refusal};
use crate::commands::transfer::failure;
use crate::nexus::Nexus;
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use base::SECTOR_BYTES;
use engine::{Disk, IoErrorKind, World};

/// CSCD descriptor ID of the logical unit that the command was sent to.
pub(super) const THIS_UNIT: u16 = 0xffff;

/// Bytes of a segment descriptor that a pointer can point at.
mod field {
    pub(super) const SOURCE_LBA: u16 = 12;
    pub(super) const DESTINATION_LBA: u16 = 20;
    pub(super) const SOURCE: u16 = 4;
    pub(super) const DESTINATION: u16 = 6;
}

/// How a segment ended that did not end well.
enum Stop {
    Aborted(Box<Aborted>),
    Conflict,
}

impl From<Aborted> for Stop {
    fn from(aborted: Aborted) -> Self {
        Stop::Aborted(Box::new(aborted))
    }
}

impl Segment {
    /// Whether `next` begins, on both sides, where this one ends.
    fn goes_on_with(&self, next: &Segment) -> bool {
        let end = |lba: u64| lba.checked_add(u64::from(self.blocks));
        (self.source, self.destination) == (next.source, next.destination)
            && end(self.source_lba) == Some(next.source_lba)
            && end(self.destination_lba) == Some(next.destination_lba)
    }
}

impl<W: World> Nexus<W> {
    pub(super) async fn extended_copy(
        &self,
        copier: &dyn Copier<W>,
        unit: &LogicalUnit<W>,
        list: &[u8],
        cancel: &CancelToken,
    ) -> Outcome {
        let list = match xcopy_list::parse(list) {
            Ok(list) => list,
            Err(sense) => return sense.into(),
        };
        let list_id = list.list_id.map(u32::from);
        let begun = match self.desk().begin(list_id, cancel) {
            Ok(begun) => begun,
            Err(sense) => return sense.into(),
        };
        let mut copied = Copied::default();
        let mut stopped = None;
        while usize::from(copied.segments) < list.segments.len() && stopped.is_none() {
            let nth = copied.segments;
            let (segments, bytes, outcome) = self.segments(copier, unit, &list, nth, cancel).await;
            copied.segments += segments;
            copied.bytes += bytes;
            stopped = outcome.err();
        }
        drop(begun);
        let outcome = match stopped {
            None => Outcome::Done,
            Some(Stop::Aborted(aborted)) => Outcome::Aborted(aborted),
            Some(Stop::Conflict) => Outcome::Conflict,
        };
        copied.status = outcome.status();
        copied.sense = outcome.sense(unit.sense_format());
        if let Some(list_id) = list.list_id {
            self.desk().keep_copied(list_id, copied);
        }
        outcome
    }

    /// Copies a segment, and those that go on where it ends; how many of them whole, how many
    /// bytes, and what stood in the way of the others.
    async fn segments(
        &self,
        copier: &dyn Copier<W>,
        unit: &LogicalUnit<W>,
        list: &List,
        nth: u16,
        cancel: &CancelToken,
    ) -> (u16, u64, Result<(), Stop>) {
        let Some((first, rest)) = list.segments[usize::from(nth)..].split_first() else {
            return (0, 0, Ok(()));
        };
        let disks = async {
            if !cancel.goes_on() {
                return Err(Aborted::at(nth, NO_INFORMATION).into());
            }
            let source = (first.source, Access::Read, field::SOURCE);
            let destination = (first.destination, Access::Write, field::DESTINATION);
            let source = self.cscd(copier, unit, (list, nth), source, cancel).await?;
            let destination = self
                .cscd(copier, unit, (list, nth), destination, cancel)
                .await?;
            check_ends(nth, first, (&source.disk, &destination.disk))?;
            Ok((source, destination))
        };
        let (source, destination) = match disks.await {
            Ok(disks) => disks,
            Err(stop) => return (0, 0, Err(stop)),
        };
        let disks = (&source.disk, &destination.disk);
        let mut all = vec![first];
        // One after the other they would read what those before have written.
        if disks.0.info().uuid != disks.1.info().uuid {
            let fits = |segment: &Segment| check_ends(nth, segment, disks).is_ok();
            let goes_on = rest.iter().take_while(|next| {
                let goes_on = all.last().is_some_and(|last| last.goes_on_with(next));
                goes_on && fits(next) && {
                    all.push(next);
                    true
                }
            });
            goes_on.for_each(drop);
        }
        let bytes_of = |segment: &&Segment| u64::from(segment.blocks) * SECTOR_BYTES as u64;
        let run = Run {
            from: first.source_lba * SECTOR_BYTES as u64,
            to: first.destination_lba * SECTOR_BYTES as u64,
            len: all.iter().map(bytes_of).sum(),
        };
        let (bytes, outcome) = stream::copy(copier, disks, run, cancel).await;
        let mut left = bytes;
        let whole = all.iter().take_while(|segment| {
            let fits = left.checked_sub(bytes_of(segment));
            fits.inspect(|less| left = *less).is_some()
        });
        let whole = whole.count() as u16;
        let aborted = match outcome {
            Err(failure) => aborted(nth + whole, first, failure),
            // Somebody stopped it.
            Ok(()) if bytes < run.len => Aborted::at(nth + whole, NO_INFORMATION),
            Ok(()) => return (whole, bytes, Ok(())),
        };
        let of = all.get(usize::from(whole)).map_or(0, bytes_of);
        (whole, bytes, Err(aborted.with_written(left, of).into()))
    }

    /// The disk that a CSCD descriptor ID stands for.
    async fn cscd(
        &self,
        copier: &dyn Copier<W>,
        unit: &LogicalUnit<W>,
        (list, nth): (&List, u16),
        (id, access, byte): (u16, Access, u16),
        cancel: &CancelToken,
    ) -> Result<Reached<W>, Stop> {
        let wrong = |code, pointer| {
            Stop::from(Aborted {
                pointer,
                ..Aborted::at(nth, code)
            })
        };
        let unfit = |code| wrong(code, Pointer::to_cscd(id));
        let refused = |refusal| match refusal {
            Refusal::Unreachable => unfit(NOT_REACHABLE),
            Refusal::Conflict => Stop::Conflict,
            Refusal::Said(sense) => Stop::from(Aborted {
                pointer: Pointer::to_cscd(id),
                said: Some(match access {
                    Access::Read => (Side::Source, sense),
                    Access::Write => (Side::Destination, sense),
                }),
                ..Aborted::at(nth, DEVICE_FAILURE)
            }),
        };
        if id == THIS_UNIT {
            super::permits(unit, access, self.id()).map_err(refused)?;
            // Whoever takes this unit away waits for the command.
            return Ok(Reached {
                disk: unit.volume(),
                _kept: Box::new(()),
            });
        }
        let cscd = list.cscds.get(usize::from(id));
        let none = || wrong(NOT_REACHABLE, Some(Pointer::Segment(byte)));
        let cscd = cscd.ok_or_else(none)?;
        if cscd.is_null {
            return Err(unfit(UNREACHABLE));
        }
        let wanted = (&cscd.designator, access);
        let found = self.reach(copier, wanted, cancel).await;
        let reached = found.map_err(refused)?;
        match cscd.device_type {
            // A direct-access block device.
            0 => Ok(reached),
            _ => Err(unfit(WRONG_TYPE)),
        }
    }
}

/// That both ranges are in their disks, and that the destination may be written.
fn check_ends<W: World>(
    nth: u16,
    segment: &Segment,
    (source, destination): (&Disk<W>, &Disk<W>),
) -> Result<(), Stop> {
    let fits = |lba: u64, disk: &Disk<W>| {
        let end = lba.checked_add(u64::from(segment.blocks));
        end.is_some_and(|end| end <= disk.size_bytes() / SECTOR_BYTES as u64)
    };
    let outside = |byte| {
        Stop::from(Aborted {
            pointer: Some(Pointer::Segment(byte)),
            ..Aborted::at(nth, NO_INFORMATION)
        })
    };
    if !fits(segment.source_lba, source) {
        return Err(outside(field::SOURCE_LBA));
    }
    if !fits(segment.destination_lba, destination) {
        return Err(outside(field::DESTINATION_LBA));
    }
    match destination.info().read_only {
        true => Err(Stop::from(Aborted {
            pointer: Pointer::to_cscd(segment.destination),
            said: Some((Side::Destination, Sense::WRITE_PROTECTED)),
            ..Aborted::at(nth, DEVICE_FAILURE)
        })),
        false => Ok(()),
    }
}

/// Source and destination are those of `segment`.
fn aborted(nth: u16, segment: &Segment, failed: Failure) -> Aborted {
    let (side, id, error, media): (_, _, _, fn(base::Lba) -> Sense) = match failed {
        Failure::Source(error) => (Side::Source, segment.source, error, Sense::read_error),
        Failure::Destination(error) => {
            let id = segment.destination;
            (Side::Destination, id, error, Sense::write_error)
        }
    };
    match error.kind {
        IoErrorKind::PoolFull => Aborted::pool_full(nth),
        // It went away meanwhile.
        IoErrorKind::Deleted => Aborted {
            pointer: Pointer::to_cscd(id),
            ..Aborted::at(nth, NOT_REACHABLE)
        },
        _ => Aborted {
            pointer: Pointer::to_cscd(id),
            said: Some((side, failure(&error, media))),
            ..Aborted::at(nth, DEVICE_FAILURE)
        },
    }
}
