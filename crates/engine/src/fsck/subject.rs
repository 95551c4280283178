//! The pool that is checked: its drives, and the findings so far.
//!
//! Invariant: members are only read. Nothing here, or above, hands a fault to the
//! drives' losses: that would write labels.

use super::Progress;
use super::report::{Counts, Findings, Report, Run, Severity};
use crate::drive::DriveError;
use crate::drives::Drives;
use crate::drives::Member;
use crate::lane::Part;
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset, Slice};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Long runs are read in pieces of this size.
const TRANSFER_BYTES: u64 = 1 << 20;

/// A pool, looked at from outside.
pub(super) struct Subject<W: World> {
    pub world: W,
    pub drives: Rc<Drives<W>>,
    /// The newest label says that the pool was closed cleanly.
    pub clean: bool,
    pub findings: RefCell<Findings>,
    counts: Cell<Counts>,
    /// Counters that whoever waits for the check can read meanwhile.
    pub progress: Rc<Progress>,
}

/// Something that the drive could not give.
pub(super) fn unreadable(error: &DriveError) -> String {
    let context = match error.context.is_empty() {
        true => String::new(),
        false => format!(": {}", error.context),
    };
    format!("it can't be read: {}{context}", error.kind)
}

impl<W: World> Subject<W> {
    pub fn new(world: W, drives: Drives<W>, clean: bool, findings: Findings) -> Self {
        Subject {
            world,
            drives: Rc::new(drives),
            clean,
            findings: RefCell::new(findings),
            counts: Cell::default(),
            progress: Rc::default(),
        }
    }

    /// This lane's part of the drives.
    pub fn part(&self) -> Part {
        self.drives.identity().part()
    }

    /// Changes what was counted.
    pub fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    /// A finding about the pool or a part of it that is nowhere in particular.
    pub fn say(&self, severity: Severity, place: impl Into<String>, text: impl Into<String>) {
        let mut findings = self.findings.borrow_mut();
        findings.push(severity, place.into(), text.into());
    }

    /// A finding about a run of bytes on a drive.
    pub fn say_at(
        &self,
        severity: Severity,
        member: &Member<W>,
        at: DriveOffset,
        len: u64,
        text: impl Into<String>,
    ) {
        let run = Run {
            subject: format!("drive '{}'", member.name),
            at: self.part().place(at, len).0,
            len,
        };
        let mut findings = self.findings.borrow_mut();
        findings.push_run(severity, run, text.into());
    }

    /// How bad it is that something is not as a clean close leaves it.
    pub fn unless_crashed(&self) -> Severity {
        match self.clean {
            true => Severity::Damage,
            false => Severity::Note,
        }
    }

    /// The name of the pool, as a place.
    pub fn pool(&self) -> String {
        format!("pool '{}'", self.drives.name())
    }

    /// The metadata, as a place.
    pub fn metadata(&self) -> String {
        format!("{}, metadata", self.pool())
    }

    /// A run of whole blocks, in one operation.
    pub async fn read(
        &self,
        member: &Member<W>,
        at: DriveOffset,
        len: usize,
    ) -> Result<Slice, DriveError> {
        self.count(|counts| counts.read_bytes += len as u64);
        self.progress.read_bytes.set(self.counts().read_bytes);
        let buf = self.world.buffers().bytes(len);
        member.read(at, buf).await.map(base::Buf::freeze)
    }

    /// A run of any length, as bytes.
    pub async fn read_run(
        &self,
        member: &Member<W>,
        at: u64,
        len: u64,
    ) -> Result<Vec<u8>, DriveError> {
        let mut run = Vec::new();
        while (run.len() as u64) < len {
            let piece = (len - run.len() as u64).min(TRANSFER_BYTES) as usize;
            let from = DriveOffset(at + run.len() as u64);
            let whole = piece.next_multiple_of(BLOCK_BYTES);
            let slice = self.read(member, from, whole).await?;
            run.extend_from_slice(&slice.bytes().unwrap_or_default()[..piece]);
        }
        Ok(run)
    }

    /// A run of whole blocks; where it can't be read as one, block by block. Blocks that
    /// can't be read are zeroes and come with the reason, by index.
    pub async fn read_blocks(
        &self,
        member: &Member<W>,
        at: DriveOffset,
        len: usize,
    ) -> (Vec<u8>, Vec<(usize, String)>) {
        if let Ok(slice) = self.read(member, at, len).await {
            return (slice.bytes().unwrap_or_default().to_vec(), Vec::new());
        }
        let (mut bytes, mut bad) = (vec![0; len], Vec::new());
        for (index, place) in bytes.chunks_mut(BLOCK_BYTES).enumerate() {
            let from = at + (index * BLOCK_BYTES) as u64;
            match self.read(member, from, BLOCK_BYTES).await {
                Ok(slice) => place.copy_from_slice(slice.bytes().unwrap_or_default()),
                Err(error) => bad.push((index, unreadable(&error))),
            }
        }
        (bytes, bad)
    }

    /// Groups that have lost more drives than they can; says so.
    pub fn groups_beyond_repair(&self) -> Vec<u16> {
        let mut beyond = Vec::new();
        for group in self.drives.groups() {
            if !self.drives.survives_without(&group, &[]) {
                let place = format!("{}, group {}", self.pool(), group.index);
                let text = format!(
                    "level {} can't do without the drives that are missing, stale or failed; its content is not checked",
                    group.level()
                );
                self.say(Severity::Loss, place, text);
                beyond.push(group.index);
            }
        }
        beyond
    }

    /// Everything that was found.
    pub fn into_report(self, deep: bool) -> Report {
        let (findings, left_out, worst) = self.findings.into_inner().finish();
        Report {
            pool: self.drives.name().to_owned(),
            uuid: self.drives.uuid(),
            clean: self.clean,
            deep,
            findings,
            left_out,
            worst,
            counts: self.counts.get(),
        }
    }
}
