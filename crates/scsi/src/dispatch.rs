//! The dispatch of commands to the parts of the crate.

use crate::cdb::Command;
use crate::commands::{
    alter, capacity, diagnostic, inquiry, lba_status, log, luns, management, mode, opcodes,
    reserve, sanitize, select, transfer, unmap, write_same,
};
use crate::nexus::{Nexus, Response};
use crate::ports::FIRST_GROUP;
use crate::reservation::{self, Refusal};
use crate::sense::{Attention, Format, Sense};
use crate::unit::LogicalUnit;
use crate::vpd;
use base::{Payload, SECTOR_BYTES, Slice};
use engine::World;
use engine::volume::Room;
use std::rc::Rc;

impl<W: World> Nexus<W> {
    pub(crate) async fn run(
        &self,
        number: u16,
        unit: &Rc<LogicalUnit<W>>,
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
                let buffers = self.target().buffers();
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
            Command::Prefetch(extent) => written(0, transfer::place(unit, extent).map(drop)),
            Command::Reserve | Command::Release => {
                let releases = command == Command::Release;
                match reserve::old(unit, self.id(), releases) {
                    true => written(0, Ok(())),
                    false => Response::conflict(),
                }
            }
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
            // Rare, and their futures are large.
            command => Box::pin(self.run_rare(number, unit, command, data_out)).await,
        }
    }

    async fn run_rare(
        &self,
        number: u16,
        unit: &Rc<LogicalUnit<W>>,
        command: Command,
        data: Slice,
    ) -> Response {
        match command {
            Command::CompareAndWrite(extent) => {
                let outcome = alter::compare_and_write(unit, extent, data).await;
                written(2 * extent.bytes(), outcome)
            }
            Command::OrWrite(extent) => {
                written(extent.bytes(), alter::or_write(unit, extent, data).await)
            }
            Command::WriteAtomic(extent) => {
                let outcome = alter::write_atomic(unit, extent, data).await;
                written(extent.bytes(), outcome)
            }
            Command::WriteVerify { extent, compare } => {
                let outcome = alter::write_and_verify(unit, extent, compare, data).await;
                written(extent.bytes(), outcome)
            }
            Command::Sanitize {
                immediate,
                may_exit,
            } => {
                let order = sanitize::Order {
                    immediate,
                    may_exit,
                };
                let world = self.target().world();
                written(0, sanitize::block_erase(unit, order, world).await)
            }
            Command::SanitizeExit => written(0, sanitize::exit_failure(unit).await),
            Command::ModeSelect {
                ten,
                save,
                list_bytes,
            } => {
                let list = data.bytes().unwrap_or_default();
                let request = select::Request { ten, save, list };
                let outcome = self.select(number, unit, &request).await;
                written(u64::from(list_bytes), outcome)
            }
            Command::SendDiagnostic {
                code,
                default_test,
                list_bytes,
            } => {
                let list = data.bytes().unwrap_or_default();
                let outcome = diagnostic::send(code, default_test, list);
                written(u64::from(list_bytes), outcome)
            }
            Command::ReserveOut {
                action,
                scope_and_kind,
                list_bytes,
            } => {
                let what = (action, scope_and_kind);
                let outcome = reserve::out(self, (number, unit), what, (list_bytes, data)).await;
                match outcome {
                    Ok(()) => written(u64::from(list_bytes), Ok(())),
                    Err(Refusal::Sense(sense)) => written(u64::from(list_bytes), Err(sense)),
                    Err(Refusal::Conflict) => Response::conflict(),
                }
            }
            Command::ModeSense { .. } | Command::LogSense { .. } => {
                self.settings(unit, command).await
            }
            command => self.inform(number, unit, command),
        }
    }

    /// MODE SELECT; others hear of a change.
    async fn select(
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

    /// Commands that tell of the room that there is, among other things.
    async fn settings(&self, unit: &LogicalUnit<W>, command: Command) -> Response {
        let room = match room(unit).await {
            Ok(room) => room,
            Err(sense) => return Response::check_condition(&sense, 0),
        };
        match command {
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
                let settings = mode::Settings {
                    blocks: unit.blocks(),
                    is_read_only: unit.is_write_protected(),
                    mode: unit.mode(),
                    may_change: unit.may_affect_others(),
                    room,
                };
                self.parameters(mode::sense(request, settings), allocation)
            }
            Command::LogSense {
                page,
                subpage,
                pointer,
                allocation,
            } => {
                let request = log::Request {
                    page,
                    subpage,
                    pointer,
                };
                self.parameters(log::sense(request, room), allocation)
            }
            other => unreachable!("{other:?} tells of no settings"),
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
                let (port, ports) = (self.id().target_port, self.target().ports());
                let facts = vpd::Facts {
                    identity: unit.identity(),
                    target: self.target().name(),
                    port,
                    group: ports.group_of(port).unwrap_or(FIRST_GROUP),
                    unmap_blocks: unit.unmap_blocks(),
                    whole_blocks: unit.whole_blocks(),
                    blocks_per_physical: unit.blocks_per_physical(),
                };
                let page = vpd::page(code, facts);
                (page.ok_or(Sense::invalid_field(2, None)), allocation)
            }
            Command::RequestSense {
                descriptor,
                allocation,
            } => {
                let attention = self.take_attention(number);
                // Who has sent SANITIZE asks so how far it is (SBC-4 clause 4.11).
                let of_unit = || unit.check_sound().err().unwrap_or(Sense::NONE);
                let sense = attention.map_or_else(of_unit, Attention::sense);
                (Ok(sense.encoded(asked_format(descriptor))), allocation)
            }
            Command::ReportLuns { select, allocation } => {
                self.clear(number, Attention::LunsChanged);
                (luns::report(select, &self.target().luns()), allocation)
            }
            Command::ReadCapacity10 => (Ok(capacity::ten(unit.blocks())), 8),
            Command::ReadCapacity16 { allocation } => {
                let is_thin = unit.unmap_blocks().is_some();
                let physical = unit.blocks_per_physical();
                let data = capacity::sixteen(unit.blocks(), is_thin, physical);
                (Ok(data), allocation)
            }
            Command::ReserveIn { action, allocation } => {
                let data = reservation::report(&unit.reservations(), action);
                (Ok(data), allocation)
            }
            Command::ReportPortGroups {
                extended,
                allocation,
            } => (Ok(self.target().ports().report(extended)), allocation),
            Command::ReportTaskManagement {
                extended,
                allocation,
            } => {
                let may_reset = self.target().may_be_reset();
                let data = management::task_functions(extended, may_reset);
                (Ok(data), allocation)
            }
            Command::ReceiveDiagnostic { page, allocation } => {
                (diagnostic::receive(page), allocation)
            }
            Command::ReadDefects {
                twelve,
                wanted,
                allocation,
            } => (Ok(diagnostic::defects(twelve, wanted)), allocation),
            Command::ReportSupportedOpcodes {
                report,
                timeouts,
                allocation,
            } => {
                let has = opcodes::Has {
                    unmap: unit.unmap_blocks().is_some(),
                    sanitize: unit.may_sanitize(),
                };
                (opcodes::report(report, timeouts, has), allocation)
            }
            command => unreachable!("{command:?} has no parameter data"),
        };
        self.parameters(data, allocation)
    }

    /// A LUN without a logical unit, which goes before anything that is wrong in the CDB
    /// (SPC-4 clause 6.6.1, SAM-5 clause 5.11).
    pub(crate) fn absent(&self, command: Option<Command>) -> Response {
        match command {
            Some(Command::Inquiry {
                page: None,
                allocation,
            }) => self.parameters(Ok(inquiry::standard(false)), allocation),
            Some(Command::ReportLuns { select, allocation }) => {
                self.parameters(luns::report(select, &self.target().luns()), allocation)
            }
            Some(Command::RequestSense {
                descriptor,
                allocation,
            }) => {
                let data = Sense::LUN_NOT_SUPPORTED.encoded(asked_format(descriptor));
                self.parameters(Ok(data), allocation)
            }
            _ => Response::check_condition(&Sense::LUN_NOT_SUPPORTED, 0),
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
async fn room<W: World>(unit: &LogicalUnit<W>) -> Result<Option<Room>, Sense> {
    match unit.unmap_blocks() {
        None => Ok(None),
        Some(_) => {
            let room = unit.volume().room().await;
            room.map(Some)
                .map_err(|error| transfer::failure(&error, Sense::read_error))
        }
    }
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
