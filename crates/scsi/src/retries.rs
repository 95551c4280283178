//! Commands that find no room, and are tried again while the pool makes some.
//!
//! Invariants:
//! - A try begins only while somebody waits for the command: none does once its token is
//!   stopped, as the token of each is whose session has ended or whose task was aborted.
//! - Nor does one begin once another command has begun to write to the same blocks. An
//!   initiator whose way to the target is cut tells nobody: it repeats its command by another
//!   way, and then writes something newer. What came by the first way must not follow.
//! - Nor does one begin once nobody is shown the unit any more.
//! - All tries of a command begin within [`PATIENCE`], and initiators wait longer than that
//!   before they give a way up.
//! - Nothing is held while a command waits.

use crate::cdb::{Cdb, Command, Extent};
use crate::limits::admitted;
use crate::lun;
use crate::nexus::{Nexus, Response};
use crate::offload::{CancelToken, Copier};
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use base::{Slice, Uuid};
use engine::World;
use futures_util::future::{Either, select};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// No try begins so long after the command did.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How often a command is tried.
const TRIES_MAX: usize = 8;

/// A command that waits for room, or tries again.
struct Entry {
    blocks: Range<u64>,
    overtaken: Cell<bool>,
}

/// The commands of a logical unit that have found no room.
#[derive(Default)]
pub(crate) struct Queue(RefCell<Vec<Rc<Entry>>>);

/// The place of a command in a [`Queue`], until it is dropped.
struct WaitingCommand<'a> {
    queue: &'a Queue,
    entry: Rc<Entry>,
}

impl Queue {
    fn join(&self, blocks: Range<u64>) -> WaitingCommand<'_> {
        let overtaken = Cell::new(false);
        let entry = Rc::new(Entry { blocks, overtaken });
        self.0.borrow_mut().push(Rc::clone(&entry));
        WaitingCommand { queue: self, entry }
    }

    /// A command begins that writes to these blocks.
    fn overtake(&self, blocks: &Range<u64>) {
        let all = self.0.borrow();
        let meets = |one: &Entry| one.blocks.start < blocks.end && blocks.start < one.blocks.end;
        for entry in all.iter().filter(|entry| meets(entry)) {
            entry.overtaken.set(true);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
}

impl Drop for WaitingCommand<'_> {
    fn drop(&mut self) {
        let mut all = self.queue.0.borrow_mut();
        all.retain(|one| !Rc::ptr_eq(one, &self.entry));
    }
}

/// The blocks that `command` changes, at most. Copies see to their own room.
fn changed(command: &Command) -> Option<Range<u64>> {
    let extent: Extent = match command {
        Command::Write(extent)
        | Command::WriteVerify { extent, .. }
        | Command::CompareAndWrite(extent)
        | Command::OrWrite(extent)
        | Command::WriteAtomic(extent) => *extent,
        Command::WriteSame(order) if order.extent.blocks > 0 => order.extent,
        // To the end; anywhere; everywhere.
        Command::WriteSame(_) | Command::Unmap { .. } | Command::Sanitize(_) => {
            return Some(0..u64::MAX);
        }
        // Each by its name, so that a new one is decided.
        Command::TestUnitReady
        | Command::ModeSense(_)
        | Command::Read(_)
        | Command::Verify { .. }
        | Command::Prefetch(_)
        | Command::SanitizeExit
        | Command::SynchronizeCache(_)
        | Command::GetLbaStatus { .. }
        | Command::StartStopUnit { .. }
        | Command::PreventAllowMediumRemoval { .. }
        | Command::ModeSelect(_)
        | Command::LogSense(_)
        | Command::SendDiagnostic(_)
        | Command::Reserve
        | Command::Release
        | Command::ReserveOut(_)
        | Command::Inform { .. }
        | Command::Offload(_) => return None,
    };
    let end = extent.lba.0.saturating_add(u64::from(extent.blocks));
    Some(extent.lba.0..end)
}

/// Has room made for a volume that was refused a page. Whether there is some now, and
/// `cancel` goes on.
pub(crate) async fn made<W: World>(
    copier: &dyn Copier<W>,
    volume: Uuid,
    cancel: &CancelToken,
) -> bool {
    if copier
        .world()
        .planted("write of a lost session tried again")
    {
        return copier.make_room(volume, cancel).await;
    }
    if !cancel.goes_on() {
        return false;
    }
    let (made, stopped) = (copier.make_room(volume, cancel), pin!(cancel.stopped()));
    match select(made, stopped).await {
        Either::Left((made, _)) => made && cancel.goes_on(),
        Either::Right(_) => false,
    }
}

impl<W: World> Nexus<W> {
    /// As [`Nexus::execute_until`], when the limits of the volume let it go; and again, while the
    /// command finds no room and somebody makes some. Trying again does no harm: nobody knows yet
    /// what came of it. One whose `cancel` is stopped before it begins is not begun.
    pub async fn execute_making_room(
        &self,
        lun: [u8; 8],
        cdb: Cdb,
        data_out: Slice,
        cancel: CancelToken,
    ) -> Response {
        if !cancel.goes_on() {
            return Response::task_aborted();
        }
        let unit = lun::decode(lun).and_then(|number| self.target().unit(number));
        if let Some(unit) = &unit
            && let Err(response) = admitted(unit, self, &cdb, &cancel).await
        {
            return response.in_format(unit.sense_format());
        }
        let command = cdb.command().ok();
        let changed = command.and_then(|one| Some((one, changed(&one)?)));
        let (Some((command, blocks)), Some(unit)) = (changed, unit) else {
            let cancel = Some(cancel);
            return self.execute_until(lun, cdb, data_out, cancel).await;
        };
        if !unit.out_of_room().is_empty() {
            unit.out_of_room().overtake(&blocks);
        }
        let began = self.target().world().now();
        let tried = self.execute_until(lun, cdb, data_out.clone(), None);
        let response = tried.await;
        if !response.found_no_room() {
            return response;
        }
        let waiting = unit.out_of_room().join(blocks);
        let order = (lun, command, data_out);
        // Its future is rare.
        Box::pin(self.try_again(&unit, order, &cancel, (began, &waiting, response))).await
    }

    /// Tries a command again that has found no room, for as long as that may help.
    async fn try_again(
        &self,
        unit: &Rc<LogicalUnit<W>>,
        (lun, command, data_out): ([u8; 8], Command, Slice),
        cancel: &CancelToken,
        (began, waiting, mut response): (base::Time, &WaitingCommand<'_>, Response),
    ) -> Response {
        let world = self.target().world();
        let Some(copier) = self.copier() else {
            return response;
        };
        for _ in 1..TRIES_MAX {
            let is_late = world.now().since(began) >= PATIENCE;
            if is_late || !made(copier.as_ref(), unit.uuid(), cancel).await {
                return response;
            }
            if waiting.entry.overtaken.get() {
                return Response::check_condition(&Sense::OVERTAKEN, 0)
                    .in_format(unit.sense_format());
            }
            if world.now().since(began) >= PATIENCE {
                return response;
            }
            world.reached("command tried again for want of room");
            let tried = self.execute_again(lun, unit, command, data_out.clone());
            response = tried.await;
            if !response.found_no_room() {
                return response;
            }
        }
        response
    }
}
