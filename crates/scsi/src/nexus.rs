//! An I_T nexus: what one initiator sees through one target.
//!
//! Invariants:
//! - A unit attention is reported once per nexus and logical unit, before any
//!   command but INQUIRY, REPORT LUNS and REQUEST SENSE (SAM-5 clause 5.14).
//! - No command panics, whatever its bytes are.

use crate::cdb::{self, Command};
use crate::commands::{
    capacity, inquiry, lba_status, luns, mode, opcodes, transfer, unmap, write_same,
};
use crate::lun;
use crate::sense::{Attention, Sense, status};
use crate::target::Target;
use crate::unit::LogicalUnit;
use crate::vpd;
use base::{Payload, SECTOR_BYTES, Slice};
use engine::World;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The outcome of a command.
#[derive(Debug, Default)]
pub struct Response {
    /// Status code (SAM-5 clause 5.3.1).
    pub status: u8,
    /// Sense data, fixed format; empty for none.
    pub sense: Vec<u8>,
    /// Data-in.
    pub data: Payload,
    /// Bytes that the command transfers when the initiator has room for all.
    pub wanted_bytes: u64,
}

impl Response {
    /// Whether the command failed for want of a page.
    pub fn found_no_room(&self) -> bool {
        self.status == status::CHECK_CONDITION && self.sense == Sense::POOL_FULL.fixed()
    }

    fn good(data: Payload, wanted_bytes: u64) -> Self {
        Response {
            status: status::GOOD,
            sense: Vec::new(),
            data,
            wanted_bytes,
        }
    }

    /// CHECK CONDITION. What was taken of data-out stays counted as transferred.
    fn check_condition(sense: &Sense, wanted_bytes: u64) -> Self {
        let sense = sense.fixed();
        Response {
            status: status::CHECK_CONDITION,
            sense,
            data: Payload::new(),
            wanted_bytes,
        }
    }
}

/// One initiator at one target.
pub struct Nexus<W: World> {
    target: Rc<Target<W>>,
    attentions: RefCell<BTreeMap<u16, VecDeque<Attention>>>,
}

impl<W: World> Nexus<W> {
    pub(crate) fn new(target: Rc<Target<W>>) -> Self {
        Nexus {
            target,
            attentions: RefCell::default(),
        }
    }

    /// The target.
    pub fn target(&self) -> &Rc<Target<W>> {
        &self.target
    }

    /// Runs one command on the logical unit at `lun`. `data_out` is what
    /// [`cdb::data_out_bytes`] asked for, or less.
    ///
    /// A caller that loses interest lets it run and drops the response: a write
    /// that has begun runs to its end.
    pub async fn execute(&self, lun: [u8; 8], cdb: [u8; 16], data_out: Slice) -> Response {
        let number = lun::decode(lun);
        let unit = number.and_then(|number| self.target.unit(number));
        let command = match cdb::decode(&cdb) {
            Ok(command) => command,
            Err(sense) => return self.refuse(number, unit.is_some(), sense),
        };
        let (Some(unit), Some(number)) = (unit, number) else {
            return self.absent(command);
        };
        if !reports_attentions_otherwise(command)
            && let Some(attention) = self.take_attention(number)
        {
            return Response::check_condition(&attention.sense(), 0);
        }
        self.run(number, &unit, command, data_out).await
    }

    async fn run(
        &self,
        number: u16,
        unit: &LogicalUnit<W>,
        command: Command,
        data_out: Slice,
    ) -> Response {
        match command {
            Command::Read(extent) => match transfer::read(unit, extent).await {
                Ok(data) => Response::good(data, extent.bytes()),
                Err(sense) => Response::check_condition(&sense, 0),
            },
            Command::Write(extent) => written(
                extent.bytes(),
                transfer::write(unit, extent, data_out).await,
            ),
            Command::Verify { extent, compare } => {
                let wanted_bytes = if compare { extent.bytes() } else { 0 };
                let expected = compare.then_some(data_out);
                written(wanted_bytes, transfer::verify(unit, extent, expected).await)
            }
            Command::WriteSame(order) => {
                let wanted_bytes = if order.has_data { SECTOR_BYTES } else { 0 };
                let buffers = self.target.buffers();
                let outcome = write_same::write_same(unit, order, &data_out, buffers).await;
                written(wanted_bytes as u64, outcome)
            }
            Command::Unmap { list_bytes } => {
                let outcome = unmap::unmap(unit, list_bytes, data_out).await;
                written(u64::from(list_bytes), outcome)
            }
            Command::GetLbaStatus { lba, allocation } => {
                let data = lba_status::report(unit, lba, allocation).await;
                self.parameters(data, allocation)
            }
            Command::SynchronizeCache(extent) => {
                written(0, transfer::synchronize(unit, extent).await)
            }
            Command::StartStopUnit {
                start,
                load_eject,
                power_condition,
            } => written(0, start_stop(start, load_eject, power_condition)),
            Command::TestUnitReady | Command::PreventAllowMediumRemoval => written(0, Ok(())),
            command => self.inform(number, unit, command),
        }
    }

    /// Commands that answer with parameter data from memory.
    fn inform(&self, number: u16, unit: &LogicalUnit<W>, command: Command) -> Response {
        let (data, allocation) = match command {
            Command::Inquiry {
                page: None,
                allocation,
            } => (Ok(inquiry::standard(true)), allocation),
            Command::Inquiry {
                page: Some(code),
                allocation,
            } => {
                let (name, blocks) = (self.target.name(), unit.unmap_blocks());
                let page = vpd::page(code, unit.identity(), name, blocks);
                (page.ok_or(Sense::invalid_field(2, None)), allocation)
            }
            Command::RequestSense {
                descriptor,
                allocation,
            } => {
                let attention = self.take_attention(number);
                let sense = attention.map_or(Sense::NONE, Attention::sense);
                (Ok(sense_data(&sense, descriptor)), allocation)
            }
            Command::ReportLuns { select, allocation } => {
                self.clear(number, Attention::LunsChanged);
                (luns::report(select, &self.target.luns()), allocation)
            }
            Command::ReadCapacity10 => (Ok(capacity::ten(unit.blocks())), 8),
            Command::ReadCapacity16 { allocation } => {
                let is_thin = unit.unmap_blocks().is_some();
                (Ok(capacity::sixteen(unit.blocks(), is_thin)), allocation)
            }
            Command::ModeSense {
                form,
                disable_block_descriptors,
                control,
                page,
                subpage,
                allocation,
            } => {
                let request = mode::Request {
                    form,
                    disable_block_descriptors,
                    control,
                    page,
                    subpage,
                };
                let protected = unit.is_write_protected();
                let data = mode::sense(request, unit.blocks(), protected);
                (data, allocation)
            }
            Command::ReportSupportedOpcodes {
                report,
                timeouts,
                allocation,
            } => {
                let is_thin = unit.unmap_blocks().is_some();
                (opcodes::report(report, timeouts, is_thin), allocation)
            }
            Command::Read(_)
            | Command::Write(_)
            | Command::Verify { .. }
            | Command::WriteSame(_)
            | Command::Unmap { .. }
            | Command::GetLbaStatus { .. }
            | Command::SynchronizeCache(_)
            | Command::StartStopUnit { .. }
            | Command::TestUnitReady
            | Command::PreventAllowMediumRemoval => {
                unreachable!("{command:?} has no parameter data")
            }
        };
        self.parameters(data, allocation)
    }

    /// A LUN without a logical unit (SPC-4 clause 6.6.1, SAM-5 clause 5.11).
    fn absent(&self, command: Command) -> Response {
        match command {
            Command::Inquiry {
                page: None,
                allocation,
            } => self.parameters(Ok(inquiry::standard(false)), allocation),
            Command::ReportLuns { select, allocation } => {
                self.parameters(luns::report(select, &self.target.luns()), allocation)
            }
            Command::RequestSense {
                descriptor,
                allocation,
            } => {
                let data = sense_data(&Sense::LUN_NOT_SUPPORTED, descriptor);
                self.parameters(Ok(data), allocation)
            }
            _ => Response::check_condition(&Sense::LUN_NOT_SUPPORTED, 0),
        }
    }

    /// A CDB that is wrong in itself. An absent logical unit and a waiting unit
    /// attention go before it (SAM-5 clauses 5.11 and 5.14).
    fn refuse(&self, number: Option<u16>, present: bool, sense: Sense) -> Response {
        let sense = match number {
            Some(number) if present => self.take_attention(number).map_or(sense, Attention::sense),
            _ => Sense::LUN_NOT_SUPPORTED,
        };
        Response::check_condition(&sense, 0)
    }

    fn parameters(&self, data: Result<Vec<u8>, Sense>, allocation: u32) -> Response {
        match data {
            Ok(mut data) => {
                data.truncate(allocation as usize);
                let bytes = data.len() as u64;
                Response::good(self.target.buffers().copy_of(&data).freeze().into(), bytes)
            }
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

    fn take_attention(&self, lun: u16) -> Option<Attention> {
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

    fn clear(&self, lun: u16, attention: Attention) {
        let mut attentions = self.attentions.borrow_mut();
        if let Some(waiting) = attentions.get_mut(&lun) {
            waiting.retain(|other| *other != attention);
            if waiting.is_empty() {
                attentions.remove(&lun);
            }
        }
    }
}

fn reports_attentions_otherwise(command: Command) -> bool {
    matches!(
        command,
        Command::Inquiry { .. } | Command::ReportLuns { .. } | Command::RequestSense { .. }
    )
}

fn written(wanted_bytes: u64, outcome: Result<(), Sense>) -> Response {
    match outcome {
        Ok(()) => Response::good(Payload::new(), wanted_bytes),
        Err(sense) => Response::check_condition(&sense, wanted_bytes),
    }
}

fn sense_data(sense: &Sense, descriptor: bool) -> Vec<u8> {
    if descriptor {
        sense.descriptor()
    } else {
        sense.fixed()
    }
}

/// A virtual disk is never ejected. Starting and stopping it change nothing.
fn start_stop(start: bool, load_eject: bool, power_condition: u8) -> Result<(), Sense> {
    if power_condition != 0 {
        return Err(Sense::invalid_field(4, Some(7)));
    }
    if load_eject && !start {
        return Err(Sense::invalid_field(4, Some(1)));
    }
    Ok(())
}
