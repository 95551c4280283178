//! Copies that initiators have the target make: EXTENDED COPY(LID1) (VAAI XCOPY) and the
//! commands of ROD tokens (POPULATE TOKEN, WRITE USING TOKEN, RECEIVE ROD TOKEN
//! INFORMATION; Microsoft ODX). SPC-4 clauses 5.17, 6.4 and 6.22 to 6.29, SBC-3 clauses
//! 4.28, 5.7 and 5.53.
//!
//! - `cdb`: what the CDBs ask for; `xcopy_list`, `ranges`: their parameter lists.
//! - `xcopy`, `populate`, `write_token`: the copies; `stream`: from disk to disk.
//! - `token`, [`Tokens`]: what a token looks like, and which there are; [`Holder`]: where
//!   what they stand for is kept.
//! - `desk`: what a nexus is told about its copies afterwards; `report`: in which form.
//!
//! Invariants:
//! - Source and destination are logical units that this initiator could read and write
//!   itself: of its own target, or of another that would admit it ([`Copier::resolve`]).
//!   Of anything else nothing can be learnt, not even whether it exists
//!   (CVE-2020-28374 was a target that forgot this).
//! - A copy is synchronous, in bounded pieces and bounded memory, and ends after the piece
//!   that it is at when nobody wants it any more.
//! - What is remembered of copies is bounded, for each nexus and for each initiator.

mod cdb;
mod copy_sense;
mod designator;
mod desk;
mod fields;
mod holder;
mod populate;
mod ranges;
mod report;
mod stream;
mod token;
mod tokens;
mod vpd;
mod write_token;
mod xcopy;
mod xcopy_list;

pub use cdb::Order;
pub(crate) use cdb::decode;
pub(crate) use copy_sense::Aborted;
pub use designator::Designator;
pub(crate) use desk::Desk;
pub use engine::volume::CancelToken;
pub use holder::{HeldData, Holder};
pub use token::{TOKEN_BYTES, TokenError};
pub use tokens::{Limits, Representation, Tokens};
pub(crate) use vpd::third_party_copy;

use crate::cdb::Extent;
use crate::nexus::{Nexus, Response};
use crate::reservation::{self, NexusId};
use crate::sense::{Format, Sense, status};
use crate::target::Target;
use crate::unit::LogicalUnit;
use base::{Payload, SECTOR_BYTES, Slice, Time, Uuid};
use desk::Transferred;
use engine::{Disk, IoError, World};
use futures_util::future::LocalBoxFuture;
use std::any::Any;
use std::rc::Rc;
use std::time::Duration;

/// CSCD descriptors of one EXTENDED COPY, at most.
pub const CSCDS_MAX: usize = 16;
/// Segment descriptors of one EXTENDED COPY, at most.
pub const SEGMENTS_MAX: usize = 64;
/// Blocks of a segment, at most: what its field can say.
pub const SEGMENT_BLOCKS_MAX: u32 = u16::MAX as u32;
/// Ranges of one POPULATE TOKEN or WRITE USING TOKEN, at most.
pub const RANGES_MAX: usize = 64;
/// Blocks that a token stands for, at most (256 MiB).
pub const TOKEN_BLOCKS_MAX: u64 = (256 << 20) / SECTOR_BYTES as u64;
/// Blocks of a token that suit best (64 MiB).
pub const TOKEN_BLOCKS_OPTIMAL: u64 = (64 << 20) / SECTOR_BYTES as u64;
/// A token that nobody uses for so long is no more, unless its maker asks for another time.
pub const INACTIVITY_S: u32 = 30;
/// The longest inactivity timeout that an initiator can ask for.
pub const INACTIVITY_S_MAX: u32 = 300;
/// Copies of a nexus at the same time, at most.
pub const COPIES_MAX: usize = 32;
/// Longest parameter list that is looked at.
pub const LIST_BYTES_MAX: u32 = 16 << 10;

/// Commands of tokens end after so long: with less than all, and say so. Hosts wait for
/// four seconds.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// What a copy does to a logical unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is a source.
    Read,
    /// It is a destination.
    Write,
}

/// A disk that a copy reaches.
struct Reached<W: World> {
    disk: Disk<W>,
    _kept: Box<dyn Any>,
}

/// Why a logical unit can't be a source or a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is none that this initiator may use, or none at all.
    Unreachable,
    /// Another nexus has reserved it.
    Conflict,
    /// It says so itself.
    Said(Sense),
}

/// What the target that copies has around it.
pub trait Copier<W: World> {
    /// The world of this nexus: its buffers and its clock.
    fn world(&self) -> &W;

    /// The time that tokens go by, the same for all that share them.
    fn now(&self) -> Time;

    /// Who copies, as tokens are counted by.
    fn initiator(&self) -> String;

    /// The logical unit with this designator, of another target that would admit the
    /// session of this nexus; those of its own target were looked through.
    fn resolve(
        &self,
        wanted: Designator,
        access: Access,
        nexus: NexusId,
    ) -> LocalBoxFuture<'_, Result<Disk<W>, Refusal>>;

    /// Keeps what `source` has in the ranges (offset and length in bytes) as it is now, in
    /// the lane where that is, as far as it comes before `cancel` is stopped.
    fn hold(
        &self,
        source: Disk<W>,
        ranges: Vec<(u64, u64)>,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'_, Result<HeldData, IoError>>;

    /// What keeps the data of tokens, by its identity.
    fn holder(&self, uuid: Uuid) -> LocalBoxFuture<'_, Option<Disk<W>>>;

    /// Kept while a copy reaches this volume by another logical unit than the one that the
    /// command was sent to. Whoever takes the volume's unit away stops `cancel`, and waits until
    /// this is dropped.
    fn reach(&self, volume: Uuid, cancel: &CancelToken) -> Box<dyn Any>;

    /// Nobody needs these any more.
    fn release(&self, held: Vec<HeldData>);

    /// Has room made for a volume that was refused a page, by the command with this token.
    /// Whether there is some now. May be dropped before that.
    fn make_room(&self, volume: Uuid, cancel: &CancelToken) -> LocalBoxFuture<'_, bool>;

    /// Has `with` look at the tokens that there are, or says that there can't be any.
    fn tokens(&self, with: &mut dyn FnMut(&mut Tokens)) -> bool;
}

/// The logical unit of `target` with this designator, for who may use it so; `None` when
/// there is none.
///
/// # Errors
/// As `permits` says of it.
pub fn unit_at<W: World>(
    target: &Target<W>,
    wanted: &Designator,
    access: Access,
    nexus: &NexusId,
) -> Result<Option<Rc<LogicalUnit<W>>>, Refusal> {
    let mut units = target.luns().into_iter().filter_map(|lun| target.unit(lun));
    let found = units.find(|unit| wanted.is_of(unit.identity()));
    if let Some(unit) = &found {
        permits(unit, access, nexus)?;
    }
    Ok(found)
}

/// Whether the state of `unit` lets `nexus` do this to it: what others have reserved, what is
/// being erased, and what is write-protected for a time.
///
/// # Errors
/// `Conflict` or `Said`.
fn permits<W: World>(
    unit: &LogicalUnit<W>,
    access: Access,
    nexus: &NexusId,
) -> Result<(), Refusal> {
    let as_command = match access {
        Access::Read => reservation::Access::Read,
        Access::Write => reservation::Access::Write,
    };
    if !unit.reservations().admits(nexus, as_command) {
        return Err(Refusal::Conflict);
    }
    unit.check_sound().map_err(Refusal::Said)?;
    match access == Access::Write && unit.mode().write_protected {
        true => Err(Refusal::Said(Sense::WRITE_PROTECTED)),
        false => Ok(()),
    }
}

/// The outcome of a command of this room.
pub(crate) enum Outcome {
    /// GOOD, with data-in for the initiator.
    Data(Vec<u8>),
    /// GOOD.
    Done,
    /// CHECK CONDITION.
    Said(Sense),
    /// CHECK CONDITION at a segment of a copy.
    Aborted(Box<Aborted>),
    /// RESERVATION CONFLICT.
    Conflict,
}

impl From<Sense> for Outcome {
    fn from(sense: Sense) -> Self {
        Outcome::Said(sense)
    }
}

impl Outcome {
    /// Sense data as it is remembered: what the initiator gets now; none when it went well.
    fn sense(&self, format: Format) -> Vec<u8> {
        match self {
            Outcome::Said(sense) => sense.encoded(format),
            Outcome::Aborted(aborted) => aborted.encoded(format),
            _ => Vec::new(),
        }
    }

    /// The status code that it ends with.
    fn status(&self) -> u8 {
        match self {
            Outcome::Data(_) | Outcome::Done => status::GOOD,
            Outcome::Said(_) | Outcome::Aborted(_) => status::CHECK_CONDITION,
            Outcome::Conflict => status::RESERVATION_CONFLICT,
        }
    }
}

impl<W: World> Nexus<W> {
    /// Runs a command of this room on the logical unit at `lun`, until `cancel` is stopped.
    pub(crate) async fn offload(
        &self,
        unit: &LogicalUnit<W>,
        order: Order,
        data_out: Slice,
        cancel: CancelToken,
    ) -> Response {
        let wanted_bytes = u64::from(order.list_bytes());
        let list = data_out.bytes().unwrap_or_default();
        let Some(copier) = self.copier() else {
            return Response::check_condition(&Sense::INVALID_OPCODE, wanted_bytes);
        };
        let copier = copier.as_ref();
        let outcome = match order {
            Order::ExtendedCopy { list_bytes: 0 }
            | Order::PopulateToken { list_bytes: 0, .. }
            | Order::WriteUsingToken { list_bytes: 0, .. } => Outcome::Done,
            Order::ExtendedCopy { .. } => self.extended_copy(copier, unit, list, &cancel).await,
            Order::PopulateToken { list_id, .. } => {
                self.populate_token(copier, unit, (list_id, list), &cancel)
                    .await
            }
            Order::WriteUsingToken { list_id, .. } => {
                self.write_using_token(copier, unit, (list_id, list), &cancel)
                    .await
            }
            Order::CopyOperationAbort { list_id } => self.desk().abort(list_id),
            Order::CopyStatus { list_id, .. } => self.desk().copy_status(list_id),
            Order::OperatingParameters { .. } => Outcome::Data(report::operating_parameters()),
            Order::FailedSegmentDetails { list_id, .. } => self.desk().failed_segment(list_id),
            Order::TokenInformation {
                list_id,
                allocation,
            } => self.desk().token_information(list_id, allocation),
        };
        match outcome {
            Outcome::Data(data) => self.answer(data, order.allocation()),
            Outcome::Done => Response::good(Payload::new(), wanted_bytes),
            Outcome::Said(sense) => Response::check_condition(&sense, wanted_bytes),
            Outcome::Aborted(aborted) => Response::aborted(aborted, wanted_bytes),
            Outcome::Conflict => Response::conflict(),
        }
    }

    /// Runs what a command of tokens with this service action does to `ranges`, as the only
    /// copy with its list identifier, and remembers what came of it.
    async fn transfer(
        &self,
        unit: &LogicalUnit<W>,
        (action, list_id): (u8, u32),
        ranges: &[Extent],
        cancel: &CancelToken,
        run: impl AsyncFnOnce(&mut Transferred) -> Result<(), Sense>,
    ) -> Outcome {
        let begun = match self.desk().begin(Some(list_id), cancel) {
            Ok(begun) => begun,
            Err(sense) => return sense.into(),
        };
        let blocks = ranges.iter().map(|range| u64::from(range.blocks));
        let mut transferred = Transferred::of(action, blocks.sum());
        let outcome = match run(&mut transferred).await {
            Ok(()) => Outcome::Done,
            Err(sense) => Outcome::Said(sense),
        };
        drop(begun);
        transferred.status = outcome.status();
        transferred.sense = outcome.sense(unit.sense_format());
        self.desk().keep_transferred(list_id, transferred);
        outcome
    }

    /// The logical unit with this designator that this initiator may use so. It is there for the
    /// copy as long as what comes with it is kept.
    async fn reach(
        &self,
        copier: &dyn Copier<W>,
        (wanted, access): (&Designator, Access),
        cancel: &CancelToken,
    ) -> Result<Reached<W>, Refusal> {
        let found = self.resolve(copier, wanted, access).await?;
        let kept = copier.reach(found.info().uuid, cancel);
        // Nobody waits for what was taken away before.
        let disk = self.resolve(copier, wanted, access).await?;
        Ok(Reached { disk, _kept: kept })
    }

    async fn resolve(
        &self,
        copier: &dyn Copier<W>,
        wanted: &Designator,
        access: Access,
    ) -> Result<Disk<W>, Refusal> {
        if let Some(unit) = unit_at(self.target(), wanted, access, self.id())? {
            return Ok(unit.volume());
        }
        copier
            .resolve(wanted.clone(), access, self.id().clone())
            .await
    }

    fn answer(&self, mut data: Vec<u8>, allocation: u32) -> Response {
        data.truncate(allocation as usize);
        let wanted_bytes = data.len() as u64;
        let data: Payload = self.target().buffers().copy_of(&data).freeze().into();
        Response::good(data, wanted_bytes)
    }
}
