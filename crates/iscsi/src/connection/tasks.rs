//! The tasks of a connection, found by initiator task tag and by [`TaskId`].
//!
//! Invariants:
//! - A tag is in `by_tag` exactly while its task is in its slot.
//! - A task that was aborted while its command runs is in no slot, and found until that has ended.

use super::TaskId;
use super::data_out::DataOut;
use crate::pdu::Lun;
use rustc_hash::FxHashMap;

/// A task in progress.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: TaskId,
    pub(super) tag: u32,
    pub(super) lun: Lun,
    /// It holds a place in the command window.
    pub(super) occupies: bool,
    /// Bytes of data-out that it asks for, until all of it is there.
    pub(super) solicited_bytes: usize,
    /// Bytes that it holds before the owner has said what it wants.
    pub(super) early_bytes: usize,
    /// The owner has said so.
    pub(super) accepted: bool,
    /// What had come of its data at a look at the clock, and how many looks have passed since.
    pub(super) looked: (usize, u32),
    /// The owner has been told of it.
    pub(super) shown: bool,
    pub(super) work: Work,
}

#[derive(Debug)]
pub(super) enum Work {
    /// Large beside the other, but nearly all tasks are commands.
    Command(Command),
    Management,
}

#[derive(Debug)]
pub(super) struct Command {
    pub(super) cdb: [u8; 16],
    pub(super) attribute: u8,
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) expected_bytes: u32,
    /// Expected data-in length of a command that also has data-out.
    pub(super) bidirectional_read_bytes: u32,
    /// What has come of the data-out.
    pub(super) data_out: DataOut,
}

/// All tasks.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    slots: Vec<Option<Task>>,
    free: Vec<u16>,
    /// Looked up only, never walked: its order is nowhere to be seen.
    by_tag: FxHashMap<u32, u16>,
    serial: u64,
    /// Tags of tasks that were aborted, whose commands still run.
    aborted: Vec<(u32, TaskId)>,
}

/// The slot is in the low bits of an identity, the serial number above.
const SLOT_BITS: u32 = 16;

impl Tasks {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_tag.len()
    }

    /// Adds a task; the tag must be free.
    pub(super) fn add(&mut self, tag: u32, lun: Lun, work: Work) -> TaskId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            let newest = u16::try_from(self.slots.len() - 1);
            newest.unwrap_or_else(|_| panic!("{} tasks on one connection", self.slots.len()))
        });
        self.serial += 1;
        let id = TaskId(self.serial << SLOT_BITS | u64::from(slot));
        let taken = self.by_tag.insert(tag, slot);
        assert!(taken.is_none(), "task tag {tag:#010x} is in use");
        let task = Task {
            id,
            tag,
            lun,
            occupies: false,
            solicited_bytes: 0,
            early_bytes: 0,
            accepted: false,
            looked: (0, 0),
            shown: false,
            work,
        };
        self.slots[usize::from(slot)] = Some(task);
        id
    }

    pub(super) fn get(&mut self, id: TaskId) -> Option<&mut Task> {
        let slot = (id.0 & ((1 << SLOT_BITS) - 1)) as usize;
        self.slots
            .get_mut(slot)?
            .as_mut()
            .filter(|task| task.id == id)
    }

    /// The command of `id`, when that is a command.
    pub(super) fn command(&mut self, id: TaskId) -> Option<&mut Command> {
        match &mut self.get(id)?.work {
            Work::Command(command) => Some(command),
            Work::Management => None,
        }
    }

    pub(super) fn by_tag(&mut self, tag: u32) -> Option<&mut Task> {
        let slot = *self.by_tag.get(&tag)?;
        self.slots[usize::from(slot)].as_mut()
    }

    pub(super) fn remove(&mut self, id: TaskId) -> Option<Task> {
        self.get(id)?;
        let slot = (id.0 & ((1 << SLOT_BITS) - 1)) as u16;
        let task = self.slots[usize::from(slot)].take()?;
        self.by_tag.remove(&task.tag);
        self.free.push(slot);
        Some(task)
    }

    /// A task with this tag was aborted, and its command still runs.
    pub(super) fn keep_aborted(&mut self, tag: u32, id: TaskId) {
        self.aborted.push((tag, id));
    }

    /// The command of a task that was aborted has ended.
    pub(super) fn forget_aborted(&mut self, id: TaskId) {
        self.aborted.retain(|(_, aborted)| *aborted != id);
    }

    /// The last task with this tag that was aborted, and whose command still runs.
    pub(super) fn aborted(&self, tag: u32) -> Option<TaskId> {
        let mut newest_first = self.aborted.iter().rev();
        let found = newest_first.find(|(aborted, _)| *aborted == tag)?;
        Some(found.1)
    }

    /// All of them, in a fixed order.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Task> {
        self.slots.iter_mut().flatten()
    }

    /// Commands that the owner knows, in a fixed order.
    pub(super) fn shown(&self) -> impl Iterator<Item = (TaskId, Lun)> + '_ {
        let commands = self.slots.iter().flatten();
        let known = commands.filter(|t| t.shown && matches!(t.work, Work::Command(_)));
        known.map(|task| (task.id, task.lun))
    }
}
