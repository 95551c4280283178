//! The dispatch of commands to the parts of the crate.

use crate::cdb::{
    Command, Extent, Inform, LogSense, ModeSelect, ModeSense, ReserveOutOrder, SendDiagnostic,
    WriteSame,
};
use crate::commands::{
    alter, capacity, diagnostic, inquiry, lba_status, log, luns, management, mode, opcodes,
    reserve, sanitize, select, transfer, unmap, write_same,
};
use crate::nexus::{Nexus, Response};
use crate::offload::Order;
use crate::ports::FIRST_GROUP;
use crate::reservation::{self, Refusal};
use crate::sense::{Attention, Format, Sense};
use crate::unit::LogicalUnit;
use crate::vpd;
use base::{Payload, SECTOR_BYTES, Slice};
use engine::World;
use engine::volume::{AvailableSpace, CancelToken};
use std::rc::Rc;

impl<W: World> Nexus<W> {
    /// Runs a command that was admitted. Each command has its arm: one without does not compile.
    pub(crate) async fn run(
        &self,
        number: u16,
        unit: &Rc<LogicalUnit<W>>,
        (command, data): (Command, Slice),
        cancel: Option<CancelToken>,
    ) -> Response {
        match command {
            Command::Read(extent) => match transfer::read(unit, extent).await {
                Ok(data) => Response::good(data, extent.bytes()),
                Err(sense) => Response::check_condition(&sense, 0),
            },
            Command::Write(extent) => {
                written(extent.bytes(), transfer::write(unit, extent, data).await)
            }
            Command::Verify { extent, compare } => verify(unit, extent, compare, data).await,
            Command::WriteSame(order) => self.write_same(unit, order, &data).await,
            Command::Unmap { list_bytes } => written(
                list_bytes.into(),
                unmap::unmap(unit, list_bytes, data).await,
            ),
            Command::GetLbaStatus { lba, allocation } => {
                self.parameters(lba_status::report(unit, lba, allocation).await, allocation)
            }
            Command::Prefetch(extent) => written(0, transfer::place(unit, extent).map(drop)),
            Command::Reserve => self.reserve_old(unit, false),
            Command::Release => self.reserve_old(unit, true),
            Command::SynchronizeCache(extent) => {
                written(0, transfer::synchronize(unit, extent).await)
            }
            Command::StartStopUnit {
                start,
                load_eject,
                power_condition,
            } => written(0, start_stop(start, load_eject, power_condition)),
            Command::TestUnitReady | Command::PreventAllowMediumRemoval { .. } => {
                written(0, Ok(()))
            }
            Command::Inform { what, allocation } => {
                self.parameters(self.inform(number, unit, what), allocation)
            }
            // Rare, and their futures are large.
            Command::CompareAndWrite(extent) => {
                let done = Box::pin(alter::compare_and_write(unit, extent, data));
                written(2 * extent.bytes(), done.await)
            }
            Command::OrWrite(extent) => {
                let done = Box::pin(alter::or_write(unit, extent, data));
                written(extent.bytes(), done.await)
            }
            Command::WriteAtomic(extent) => {
                let done = Box::pin(alter::write_atomic(unit, extent, data));
                written(extent.bytes(), done.await)
            }
            Command::WriteVerify { extent, compare } => {
                let done = Box::pin(alter::write_and_verify(unit, extent, compare, data));
                written(extent.bytes(), done.await)
            }
            Command::Sanitize(order) => {
                let erased = Box::pin(sanitize::block_erase(unit, order, self.target().world()));
                written(0, erased.await)
            }
            Command::SanitizeExit => written(0, Box::pin(sanitize::exit_failure(unit)).await),
            Command::ModeSelect(order) => Box::pin(self.select(number, unit, order, data)).await,
            Command::ModeSense(order) => Box::pin(self.mode_sense(unit, order)).await,
            Command::LogSense(order) => Box::pin(self.log_sense(unit, order)).await,
            Command::SendDiagnostic(order) => send_diagnostic(order, &data),
            Command::ReserveOut(order) => {
                Box::pin(self.reserve_out(number, unit, order, data)).await
            }
            Command::Offload(order) => Box::pin(self.copy(unit, order, data, cancel)).await,
        }
    }

    /// A third-party copy, which may be nobody's to stop.
    async fn copy(
        &self,
        unit: &Rc<LogicalUnit<W>>,
        order: Order,
        data: Slice,
        cancel: Option<CancelToken>,
    ) -> Response {
        let cancel = cancel.unwrap_or_default();
        self.offload(unit, order, data, cancel).await
    }

    async fn write_same(&self, unit: &LogicalUnit<W>, order: WriteSame, data: &Slice) -> Response {
        let wanted_bytes = if order.has_data { SECTOR_BYTES } else { 0 };
        let buffers = self.target().buffers();
        let outcome = write_same::write_same(unit, order, data, buffers).await;
        written(wanted_bytes as u64, outcome)
    }

    /// RESERVE and RELEASE of SPC-2.
    fn reserve_old(&self, unit: &LogicalUnit<W>, releases: bool) -> Response {
        match reserve::old(unit, self.id(), releases) {
            true => written(0, Ok(())),
            false => Response::conflict(),
        }
    }

    async fn reserve_out(
        &self,
        number: u16,
        unit: &LogicalUnit<W>,
        order: ReserveOutOrder,
        data: Slice,
    ) -> Response {
        let list_bytes = order.list_bytes;
        let what = (order.action, order.scope_and_kind);
        let outcome = reserve::out(self, (number, unit), what, (list_bytes, data)).await;
        match outcome {
            Ok(()) => written(u64::from(list_bytes), Ok(())),
            Err(Refusal::Sense(sense)) => written(u64::from(list_bytes), Err(sense)),
            Err(Refusal::Conflict) => Response::conflict(),
        }
    }

    /// MODE SELECT; others hear of a change.
    async fn select(
        &self,
        number: u16,
        unit: &LogicalUnit<W>,
        order: ModeSelect,
        data: Slice,
    ) -> Response {
        let (ten, save) = (order.ten, order.save);
        let list = data.bytes().unwrap_or_default();
        let request = select::Request { ten, save, list };
        let outcome = self.set_mode(number, unit, &request).await;
        written(u64::from(order.list_bytes), outcome)
    }

    async fn set_mode(
        &self,
        number: u16,
        unit: &LogicalUnit<W>,
        request: &select::Request<'_>,
    ) -> Result<(), Sense> {
        let room = room(unit).await?;
        let before = unit.mode();
        let may_change = unit.may_affect_others();
        let mode = select::select(request, before, may_change, unit.blocks(), room)?;
        if mode != before {
            unit.set_mode(mode);
            self.target()
                .tell_others(number, Attention::ModeChanged, self);
        }
        Ok(())
    }

    async fn mode_sense(&self, unit: &LogicalUnit<W>, order: ModeSense) -> Response {
        let data = room(unit).await.and_then(|room| {
            let settings = mode::Settings {
                blocks: unit.blocks(),
                is_read_only: unit.is_write_protected(),
                mode: unit.mode(),
                may_change: unit.may_affect_others(),
                room,
            };
            mode::sense(order, settings)
        });
        self.parameters(data, order.allocation)
    }

    async fn log_sense(&self, unit: &LogicalUnit<W>, order: LogSense) -> Response {
        let data = room(unit).await.and_then(|room| log::sense(order, room));
        self.parameters(data, order.allocation)
    }

    /// The parameter data of commands that answer from memory.
    fn inform(&self, number: u16, unit: &LogicalUnit<W>, what: Inform) -> Result<Vec<u8>, Sense> {
        Ok(match what {
            Inform::Inquiry { page: None } => inquiry::standard(true),
            Inform::Inquiry { page: Some(code) } => {
                let page = vpd::page(code, self.facts(unit));
                page.ok_or(Sense::invalid_field(2, None))?
            }
            Inform::RequestSense { descriptor } => {
                let attention = self.take_attention(number);
                // Who has sent SANITIZE asks so how far it is (SBC-4 clause 4.11).
                let of_unit = || unit.check_sound().err().unwrap_or(Sense::NONE);
                let sense = attention.map_or_else(of_unit, Attention::sense);
                sense.encoded(asked_format(descriptor))
            }
            Inform::ReportLuns { select } => {
                self.clear(number, Attention::LunsChanged);
                luns::report(select, &self.target().luns())?
            }
            Inform::ReadCapacity10 => capacity::ten(unit.blocks()),
            Inform::ReadCapacity16 => {
                let is_thin = unit.unmap_blocks().is_some();
                capacity::sixteen(unit.blocks(), is_thin, unit.blocks_per_physical())
            }
            Inform::ReserveIn { action } => reservation::report(&unit.reservations(), action),
            Inform::ReportPortGroups { extended } => self.target().ports().report(extended),
            Inform::ReportTaskManagement { extended } => {
                management::task_functions(extended, self.target().may_be_reset())
            }
            Inform::ReceiveDiagnostic { page } => diagnostic::receive(page)?,
            Inform::ReadDefects { twelve, wanted } => diagnostic::defects(twelve, wanted),
            Inform::ReportSupportedOpcodes { report, timeouts } => {
                let has = opcodes::Has {
                    unmap: unit.unmap_blocks().is_some(),
                    sanitize: unit.may_sanitize(),
                };
                opcodes::report(report, timeouts, has)?
            }
        })
    }

    /// What VPD pages tell of.
    fn facts<'a>(&'a self, unit: &'a LogicalUnit<W>) -> vpd::Facts<'a> {
        let (port, ports) = (self.id().target_port, self.target().ports());
        vpd::Facts {
            identity: unit.identity(),
            target: self.target().name(),
            port,
            group: ports.group_of(port).unwrap_or(FIRST_GROUP),
            unmap_blocks: unit.unmap_blocks(),
            whole_blocks: unit.whole_blocks(),
            blocks_per_physical: unit.blocks_per_physical(),
        }
    }

    /// A LUN without a logical unit, which goes before anything that is wrong in the CDB
    /// (SPC-4 clause 6.6.1, SAM-5 clause 5.11).
    pub(crate) fn absent(&self, command: Option<Command>) -> Response {
        let Some(Command::Inform { what, allocation }) = command else {
            return Response::check_condition(&Sense::LUN_NOT_SUPPORTED, 0);
        };
        match what {
            Inform::Inquiry { page: None } => {
                self.parameters(Ok(inquiry::standard(false)), allocation)
            }
            Inform::ReportLuns { select } => {
                self.parameters(luns::report(select, &self.target().luns()), allocation)
            }
            Inform::RequestSense { descriptor } => {
                let data = Sense::LUN_NOT_SUPPORTED.encoded(asked_format(descriptor));
                self.parameters(Ok(data), allocation)
            }
            // Each by its name, so that a new one is decided.
            Inform::Inquiry { page: Some(_) }
            | Inform::ReadCapacity10
            | Inform::ReadCapacity16
            | Inform::ReserveIn { .. }
            | Inform::ReportPortGroups { .. }
            | Inform::ReportTaskManagement { .. }
            | Inform::ReceiveDiagnostic { .. }
            | Inform::ReadDefects { .. }
            | Inform::ReportSupportedOpcodes { .. } => {
                Response::check_condition(&Sense::LUN_NOT_SUPPORTED, 0)
            }
        }
    }

    fn parameters(&self, data: Result<Vec<u8>, Sense>, allocation: u32) -> Response {
        match data {
            Ok(mut data) => {
                data.truncate(allocation as usize);
                let bytes = data.len() as u64;
                Response::good(
                    self.target().buffers().copy_of(&data).freeze().into(),
                    bytes,
                )
            }
            Err(sense) => Response::check_condition(&sense, 0),
        }
    }
}

/// What room there is for a thin unit.
async fn room<W: World>(unit: &LogicalUnit<W>) -> Result<Option<AvailableSpace>, Sense> {
    match unit.unmap_blocks() {
        None => Ok(None),
        Some(_) => {
            let room = unit.volume().room().await;
            room.map(Some)
                .map_err(|error| transfer::failure(&error, Sense::read_error))
        }
    }
}

async fn verify<W: World>(
    unit: &LogicalUnit<W>,
    extent: Extent,
    compare: bool,
    data: Slice,
) -> Response {
    let wanted_bytes = if compare { extent.bytes() } else { 0 };
    let expected = compare.then_some(data);
    written(wanted_bytes, transfer::verify(unit, extent, expected).await)
}

fn send_diagnostic(order: SendDiagnostic, data: &Slice) -> Response {
    let list = data.bytes().unwrap_or_default();
    let outcome = diagnostic::send(order.code, order.default_test, list);
    written(u64::from(order.list_bytes), outcome)
}

fn written(wanted_bytes: u64, outcome: Result<(), Sense>) -> Response {
    match outcome {
        Ok(()) => Response::good(Payload::new(), wanted_bytes),
        Err(sense) => Response::check_condition(&sense, wanted_bytes),
    }
}

/// What DESC of REQUEST SENSE asks for, whatever the unit is set to (SPC-4 clause 6.39).
fn asked_format(descriptor: bool) -> Format {
    match descriptor {
        true => Format::Descriptors,
        false => Format::Fixed,
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
