//! EXTENDED COPY(LID1): segment by segment (SPC-4 clause 6.4).
//!
//! Invariants:
//! - Segments are copied in their order, and none after one that failed.
//! - Source and destination of each are looked up when its turn comes, so that what was
//!   unmapped meanwhile is not reached.

use super::copy_sense::{
    Aborted, DEVICE_FAILURE, NO_INFORMATION, NOT_REACHABLE, Side, UNREACHABLE, WRONG_TYPE,
    pool_full,
};
use super::desk::Copied;
use super::stream::{self, Failure, Run};
use super::xcopy_list::{self, List, Segment};
use super::{Access, Copier, Course, Outcome, Refusal};
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
    Aborted(Aborted),
    PoolFull(u16),
    Conflict,
}

impl<W: World> Nexus<W> {
    pub(super) async fn extended_copy(
        &self,
        copier: &dyn Copier<W>,
        unit: &LogicalUnit<W>,
        list: &[u8],
        course: &Course,
    ) -> Outcome {
        let list = match xcopy_list::parse(list) {
            Ok(list) => list,
            Err(sense) => return sense.into(),
        };
        let list_id = list.list_id.map(u32::from);
        let begun = match self.desk().begin(list_id, course) {
            Ok(begun) => begun,
            Err(sense) => return sense.into(),
        };
        let mut copied = Copied::default();
        let mut stopped = None;
        for (nth, segment) in list.segments.iter().enumerate() {
            let nth = nth as u16;
            let (bytes, outcome) = self
                .segment(copier, unit, &list, (nth, segment), course)
                .await;
            copied.bytes += bytes;
            if let Err(stop) = outcome {
                stopped = Some(stop);
                break;
            }
            copied.segments += 1;
        }
        drop(begun);
        let outcome = match stopped {
            None => Outcome::Done,
            Some(Stop::Aborted(aborted)) => Outcome::Failed(aborted.fixed()),
            Some(Stop::PoolFull(segment)) => Outcome::Failed(pool_full(segment)),
            Some(Stop::Conflict) => Outcome::Conflict,
        };
        copied.status = outcome.status();
        if let Outcome::Failed(sense) = &outcome {
            copied.sense.clone_from(sense);
        }
        if let Some(list_id) = list.list_id {
            self.desk().keep_copied(list_id, copied);
        }
        outcome
    }

    /// Copies one segment; how many bytes, and what stood in the way of the others.
    async fn segment(
        &self,
        copier: &dyn Copier<W>,
        unit: &LogicalUnit<W>,
        list: &List,
        (nth, segment): (u16, &Segment),
        course: &Course,
    ) -> (u64, Result<(), Stop>) {
        if !course.goes_on() {
            return (0, Err(Stop::Aborted(Aborted::at(nth, NO_INFORMATION))));
        }
        let disks = async {
            let source = (segment.source, Access::Read, field::SOURCE);
            let destination = (segment.destination, Access::Write, field::DESTINATION);
            let source = self.cscd(copier, unit, list, nth, source).await?;
            let destination = self.cscd(copier, unit, list, nth, destination).await?;
            check_ends(nth, segment, (&source, &destination))?;
            Ok((source, destination))
        };
        let (source, destination) = match disks.await {
            Ok(disks) => disks,
            Err(stop) => return (0, Err(stop)),
        };
        let sector = SECTOR_BYTES as u64;
        let run = Run {
            from: segment.source_lba * sector,
            to: segment.destination_lba * sector,
            len: u64::from(segment.blocks) * sector,
        };
        if run.len == 0 {
            return (0, Ok(()));
        }
        let copied = stream::copy(copier, (&source, &destination), run, course).await;
        let (bytes, outcome) = copied;
        let outcome = match outcome {
            Err(failure) => Err(stop_of(nth, failure)),
            // Somebody stopped it.
            Ok(()) if bytes < run.len => Err(Stop::Aborted(Aborted::at(nth, NO_INFORMATION))),
            Ok(()) => Ok(()),
        };
        (bytes, outcome)
    }

    /// The disk that a CSCD descriptor ID stands for.
    async fn cscd(
        &self,
        copier: &dyn Copier<W>,
        unit: &LogicalUnit<W>,
        list: &List,
        nth: u16,
        (id, access, byte): (u16, Access, u16),
    ) -> Result<Disk<W>, Stop> {
        let wrong = |code| {
            Stop::Aborted(Aborted {
                byte: Some(byte),
                ..Aborted::at(nth, code)
            })
        };
        let refused = |refusal| match refusal {
            Refusal::Unreachable => wrong(NOT_REACHABLE),
            Refusal::Conflict => Stop::Conflict,
        };
        if id == THIS_UNIT {
            super::permits(unit, access).map_err(refused)?;
            return Ok(unit.volume());
        }
        let cscd = list.cscds.get(usize::from(id));
        let cscd = cscd.ok_or_else(|| wrong(NOT_REACHABLE))?;
        if cscd.is_null {
            return Err(wrong(UNREACHABLE));
        }
        let found = self.resolve(copier, &cscd.designator, access).await;
        let disk = found.map_err(refused)?;
        match cscd.device_type {
            // A direct-access block device.
            0 => Ok(disk),
            _ => Err(wrong(WRONG_TYPE)),
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
        Stop::Aborted(Aborted {
            byte: Some(byte),
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
        true => Err(Stop::Aborted(Aborted {
            said: Some((Side::Destination, Sense::WRITE_PROTECTED)),
            ..Aborted::at(nth, DEVICE_FAILURE)
        })),
        false => Ok(()),
    }
}

fn stop_of(nth: u16, failed: Failure) -> Stop {
    let (side, error, media): (_, _, fn(base::Lba) -> Sense) = match failed {
        Failure::Source(error) => (Side::Source, error, Sense::read_error),
        Failure::Destination(error) => (Side::Destination, error, Sense::write_error),
    };
    match error.kind {
        IoErrorKind::PoolFull => Stop::PoolFull(nth),
        // It went away meanwhile.
        IoErrorKind::Deleted => Stop::Aborted(Aborted::at(nth, NOT_REACHABLE)),
        _ => Stop::Aborted(Aborted {
            said: Some((side, failure(&error, media))),
            ..Aborted::at(nth, DEVICE_FAILURE)
        }),
    }
}
