//! An I_T nexus: the view that an initiator has through a target.
//!
//! Invariants:
//! - A unit attention is reported once per nexus and logical unit, before any
//!   command but INQUIRY, REPORT LUNS and REQUEST SENSE (SAM-5 clause 5.14).
//! - Sense data takes its format in one place, when a command has ended, from what its
//!   logical unit is set to (SPC-4 clause 4.5.1).
//! - No command panics, whatever its bytes are.

use crate::cdb::{Cdb, Command, Inform};
use crate::erasure::Erasure;
use crate::lun;
use crate::offload::{Aborted, CancelToken, Copier, Desk};
use crate::reservation::{Access, NexusId};
use crate::sense::{Attention, Format, Key, Sense, status};
use crate::target::Target;
use crate::unit::LogicalUnit;
use base::{Payload, Slice};
use engine::World;
use futures_util::FutureExt;
use futures_util::future::{self, LocalBoxFuture};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The outcome of a command.
#[derive(Debug, Default)]
pub struct Response {
    /// Status code (SAM-5 clause 5.3.1).
    pub status: u8,
    /// Sense data, in the format that the unit is set to (fixed, where there is no unit);
    /// empty for none.
    pub sense: Vec<u8>,
    /// Data-in for the initiator; empty for none.
    pub data: Payload,
    /// Bytes that the command transfers when the initiator has room for all.
    pub wanted_bytes: u64,
    /// Whether sense data of the logical unit comes as descriptors from now on (D_SENSE).
    pub descriptor_sense: bool,
    /// What the sense data says.
    said: Option<SenseSource>,
}

/// What sense data is made of, once it is known in which format.
#[derive(Debug, PartialEq, Eq)]
enum SenseSource {
    Plain(Sense),
    Aborted(Box<Aborted>),
}

impl Response {
    /// Whether the command failed for want of a page.
    pub fn found_no_room(&self) -> bool {
        self.said == Some(SenseSource::Plain(Sense::POOL_FULL))
    }

    /// Whether a unit attention was reported instead of an outcome.
    pub fn is_unit_attention(&self) -> bool {
        matches!(&self.said, Some(SenseSource::Plain(sense)) if sense.key == Key::UnitAttention)
    }

    /// Whether there is no logical unit at the LUN.
    pub fn found_no_unit(&self) -> bool {
        self.said == Some(SenseSource::Plain(Sense::LUN_NOT_SUPPORTED))
    }

    /// The same with its sense data, if there is any.
    pub(crate) fn in_format(mut self, format: Format) -> Self {
        self.descriptor_sense = format == Format::Descriptors;
        match &self.said {
            None => {}
            Some(SenseSource::Plain(sense)) => self.sense = sense.encoded(format),
            Some(SenseSource::Aborted(aborted)) => self.sense = aborted.encoded(format),
        }
        self
    }

    pub(crate) fn good(data: Payload, wanted_bytes: u64) -> Self {
        Response {
            data,
            wanted_bytes,
            ..Response::default()
        }
    }

    /// CHECK CONDITION. What was taken of data-out stays counted as transferred.
    pub(crate) fn check_condition(sense: &Sense, wanted_bytes: u64) -> Self {
        Response::failed(SenseSource::Plain(*sense), wanted_bytes)
    }

    /// CHECK CONDITION of a copy.
    pub(crate) fn aborted(aborted: Box<Aborted>, wanted_bytes: u64) -> Self {
        Response::failed(SenseSource::Aborted(aborted), wanted_bytes)
    }

    fn failed(said: SenseSource, wanted_bytes: u64) -> Self {
        Response {
            status: status::CHECK_CONDITION,
            wanted_bytes,
            said: Some(said),
            ..Response::default()
        }
    }

    /// RESERVATION CONFLICT.
    pub(crate) fn conflict() -> Self {
        Response::plain(status::RESERVATION_CONFLICT)
    }

    /// TASK ABORTED: it was not begun. Nobody hears of it who has aborted it himself.
    pub(crate) fn task_aborted() -> Self {
        Response::plain(status::TASK_ABORTED)
    }

    /// TASK SET FULL: it was not begun, and the initiator tries it again later.
    pub(crate) fn task_set_full() -> Self {
        Response::plain(status::TASK_SET_FULL)
    }

    fn plain(status: u8) -> Self {
        Response {
            status,
            ..Response::default()
        }
    }
}

/// Aborts all tasks of a nexus at a LUN, and ends with their number when none of them is
/// running.
pub type Aborter = Box<dyn Fn(u16) -> LocalBoxFuture<'static, usize>>;

/// One initiator at one target.
pub struct Nexus<W: World> {
    target: Rc<Target<W>>,
    id: NexusId,
    attentions: RefCell<BTreeMap<u16, VecDeque<Attention>>>,
    aborter: OnceCell<Aborter>,
    copier: OnceCell<Rc<dyn Copier<W>>>,
    desk: Desk,
}

impl<W: World> Nexus<W> {
    pub(crate) fn new(target: Rc<Target<W>>, id: NexusId) -> Self {
        Nexus {
            target,
            id,
            attentions: RefCell::default(),
            aborter: OnceCell::new(),
            copier: OnceCell::new(),
            desk: Desk::default(),
        }
    }

    /// Who it is, at which port.
    pub fn id(&self) -> &NexusId {
        &self.id
    }

    /// The nexus is lost: its session has ended. What was reserved in the old way is free
    /// (SPC-2 clause 5.5.1).
    pub fn lost(&self) {
        for lun in self.target.luns() {
            if let Some(unit) = self.target.unit(lun) {
                unit.with_old_reservation(|all| all.old_ends(&self.id));
            }
        }
    }

    /// Says how others abort what this nexus has running; for good.
    pub fn set_aborter(&self, aborter: Aborter) {
        // Whoever carries the nexus says it once.
        let _ = self.aborter.set(aborter);
    }

    /// Aborts all that runs at `lun`; how much it was, when it has ended.
    pub(crate) fn abort(&self, lun: u16) -> LocalBoxFuture<'static, usize> {
        match self.aborter.get() {
            Some(aborter) => aborter(lun),
            None => future::ready(0).boxed_local(),
        }
    }

    /// The target that the initiator is connected to.
    pub fn target(&self) -> &Rc<Target<W>> {
        &self.target
    }

    /// From now on copies are made by `copier`; for good. Without one there are none.
    pub fn set_copier(&self, copier: Rc<dyn Copier<W>>) {
        self.copier.get_or_init(|| copier);
    }

    pub(crate) fn copier(&self) -> Option<&Rc<dyn Copier<W>>> {
        self.copier.get()
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Runs one command on the logical unit at `lun`. `data_out` is what
    /// [`Cdb::data_out_bytes`] asked for, or less.
    ///
    /// A caller that loses interest lets it run and drops the response: a write
    /// that has begun runs to its end.
    pub async fn execute(&self, lun: [u8; 8], cdb: impl Into<Cdb>, data_out: Slice) -> Response {
        self.execute_until(lun, cdb.into(), data_out, None).await
    }

    /// As [`Nexus::execute`]; a copy ends early when `cancel` is stopped.
    pub async fn execute_until(
        &self,
        lun: [u8; 8],
        cdb: Cdb,
        data_out: Slice,
        cancel: Option<CancelToken>,
    ) -> Response {
        let number = lun::decode(lun);
        let there = number.and_then(|number| Some((number, self.target.unit(number)?)));
        let Some((number, unit)) = there else {
            // There are no mode pages that could say how.
            return self.absent(cdb.command().ok()).in_format(Format::Fixed);
        };
        let response = self.execute_at(number, &unit, cdb, data_out, cancel).await;
        response.in_format(unit.sense_format())
    }

    async fn execute_at(
        &self,
        number: u16,
        unit: &Rc<LogicalUnit<W>>,
        cdb: Cdb,
        data_out: Slice,
        cancel: Option<CancelToken>,
    ) -> Response {
        let command = cdb.command();
        // Those of a CDB that is wrong in itself go before what is wrong with it (SAM-5
        // clause 5.14).
        if !command.is_ok_and(|command| command.is_answered_anywhere())
            && let Some(attention) = self.take_attention(number)
        {
            return Response::check_condition(&attention.sense(), 0);
        }
        let command = match command {
            Ok(command) => command,
            Err(sense) => return Response::check_condition(&sense, 0),
        };
        let admitted = unit.reservations().admits(&self.id, Access::of(&command));
        if !admitted && !self.target.world().planted("reservation not looked at") {
            return Response::conflict();
        }
        self.execute_admitted(number, unit, (command, data_out), cancel)
            .await
    }

    /// Executes a command again that was admitted before. A unit attention or a reservation
    /// since then says nothing to it: an answer that says so would say, too, that nothing was
    /// written.
    pub(crate) async fn execute_again(
        &self,
        lun: [u8; 8],
        unit: &Rc<LogicalUnit<W>>,
        command: Command,
        data_out: Slice,
    ) -> Response {
        let number = lun::decode(lun).unwrap_or_default();
        let tried = self.execute_admitted(number, unit, (command, data_out), None);
        tried.await.in_format(unit.sense_format())
    }

    async fn execute_admitted(
        &self,
        number: u16,
        unit: &Rc<LogicalUnit<W>>,
        (command, data_out): (Command, Slice),
        cancel: Option<CancelToken>,
    ) -> Response {
        // One that waited may find the unit gone.
        let Some(_working) = unit.begin() else {
            return Response::check_condition(&Sense::LUN_NOT_SUPPORTED, 0);
        };
        let checked = self.target.ports().check(self.id.target_port, &command);
        match checked.and_then(|()| ready(unit, &command)) {
            Ok(()) => self.run(number, unit, (command, data_out), cancel).await,
            Err(sense) => Response::check_condition(&sense, 0),
        }
    }

    /// Another initiator has cleared commands of this one at `lun` (SAM-5 clause
    /// 7.4).
    pub fn commands_cleared(&self, lun: u16) {
        self.raise(lun, Attention::CommandsCleared);
    }

    /// Puts a unit attention behind those that wait. A reset says all of them.
    pub(crate) fn raise(&self, lun: u16, attention: Attention) {
        let mut attentions = self.attentions.borrow_mut();
        let waiting = attentions.entry(lun).or_default();
        if attention.is_reset() {
            waiting.clear();
        }
        if !waiting.contains(&attention) {
            waiting.push_back(attention);
        }
    }

    pub(crate) fn forget(&self, lun: u16) {
        self.attentions.borrow_mut().remove(&lun);
    }

    pub(crate) fn take_attention(&self, lun: u16) -> Option<Attention> {
        let mut attentions = self.attentions.borrow_mut();
        if attentions.is_empty() {
            return None;
        }
        let waiting = attentions.get_mut(&lun)?;
        let first = waiting.pop_front();
        if waiting.is_empty() {
            attentions.remove(&lun);
        }
        first
    }

    pub(crate) fn clear(&self, lun: u16, attention: Attention) {
        let mut attentions = self.attentions.borrow_mut();
        if let Some(waiting) = attentions.get_mut(&lun) {
            waiting.retain(|other| *other != attention);
            if waiting.is_empty() {
                attentions.remove(&lun);
            }
        }
    }
}

/// Whether the unit is as `command` needs it.
fn ready<W: World>(unit: &LogicalUnit<W>, command: &Command) -> Result<(), Sense> {
    if needs_sound_unit(command, unit.erasure()) {
        unit.check_sound()?;
    }
    match unit.mode().write_protected && command.writes_medium() {
        true => Err(Sense::WRITE_PROTECTED),
        false => Ok(()),
    }
}

/// Whether `command` needs what hosts wrote, or else can run on a unit of this `erasure`.
fn needs_sound_unit(command: &Command, erasure: Erasure) -> bool {
    match command {
        Command::Inform { what, .. } => inform_needs_sound_unit(what),
        // A SANITIZE that has failed is ended by another one, or by EXIT FAILURE MODE.
        Command::Sanitize(_) | Command::SanitizeExit => !matches!(erasure, Erasure::Failed { .. }),
        Command::LogSense(_)
        | Command::PreventAllowMediumRemoval { prevent: false }
        | Command::Reserve
        | Command::Release
        | Command::ReserveOut(_) => false,
        // Each by its name, so that a new one is decided.
        Command::TestUnitReady
        | Command::ModeSense(_)
        | Command::Read(_)
        | Command::Write(_)
        | Command::Verify { .. }
        | Command::WriteVerify { .. }
        | Command::CompareAndWrite(_)
        | Command::OrWrite(_)
        | Command::WriteAtomic(_)
        | Command::Prefetch(_)
        | Command::SynchronizeCache(_)
        | Command::WriteSame(_)
        | Command::Unmap { .. }
        | Command::GetLbaStatus { .. }
        | Command::StartStopUnit { .. }
        | Command::PreventAllowMediumRemoval { prevent: true }
        | Command::ModeSelect(_)
        | Command::SendDiagnostic(_)
        | Command::Offload(_) => true,
    }
}

/// As [`needs_sound_unit`].
fn inform_needs_sound_unit(what: &Inform) -> bool {
    match what {
        Inform::Inquiry { .. }
        | Inform::RequestSense { .. }
        | Inform::ReportLuns { .. }
        | Inform::ReserveIn { .. }
        | Inform::ReportPortGroups { .. } => false,
        Inform::ReadCapacity10
        | Inform::ReadCapacity16
        | Inform::ReportTaskManagement { .. }
        | Inform::ReceiveDiagnostic { .. }
        | Inform::ReadDefects { .. }
        | Inform::ReportSupportedOpcodes { .. } => true,
    }
}
