//! The rule for the existence and the size of volumes, also after a change was cut off.
//!
//! A change (create, resize, delete) that ended well is there for good. One that
//! was cut off is there whole or not at all, and which of both is settled by the
//! next look at the pool.

use super::properties::PropertiesModel;
use super::sector::{Event, History, Instant};
use super::{Oracle, Violation, WriteTicket};
use crate::pattern::{Content, WriteId};
use base::{SECTOR_BYTES, Uuid};
use engine::{Provisioning, VolumeInfo};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

/// Whether a volume is in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exists {
    /// Its creation is under way.
    Creating,
    /// It must be there, with its size.
    Yes,
    /// It is growing or shrinking to this many bytes.
    Resizing(u64),
    /// Its deletion is under way.
    Deleting,
    /// It must not be there (any more).
    No,
}

/// How a change of a volume ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Well. For a creation, with this identity.
    Done(Uuid),
    /// It was refused, and changed nothing.
    Refused,
}

/// What a volume must be.
#[derive(Clone, Debug)]
pub struct VolumeModel {
    /// Unique in the run.
    pub id: u64,
    /// Name in the pool.
    pub name: String,
    /// Size in bytes, as of the last change that is known to have ended.
    pub size_bytes: u64,
    /// How it takes space, as far as changes of that have ended.
    pub provisioning: Provisioning,
    /// Pages written as zeroes are not kept.
    pub detects_zeroes: bool,
    /// Whether it is there.
    pub exists: Exists,
    /// How it may take space, besides: a change of that is under way.
    pub converting: Option<(Provisioning, bool)>,
    /// It is a snapshot: writes to it must be refused.
    pub read_only: bool,
    /// What is said of it.
    pub properties: PropertiesModel,
    uuid: Option<Uuid>,
    histories: Vec<History>,
    /// What it is a clone of, when that began, and what came after that.
    cloned: Option<(u64, Event, Option<WriteId>)>,
    /// When it can have been taken, as far as was seen; of all that were taken with it.
    taken: Option<Rc<Cell<Instant>>>,
    /// Volumes that it is a clone of, or was restored from.
    ancestors: BTreeSet<u64>,
    /// When it shrank last.
    shrunk: Option<Event>,
    /// What was under way to sectors that are outside since then.
    outside: BTreeMap<usize, History>,
}

impl VolumeModel {
    /// Acknowledged size in sectors.
    pub fn sectors(&self) -> u64 {
        self.size_bytes / SECTOR_BYTES as u64
    }

    /// Whether it may have what was written to volume `id`.
    pub fn is_descendant_of(&self, id: u64) -> bool {
        self.ancestors.contains(&id)
    }

    /// Identity, once it is known.
    pub fn uuid(&self) -> Option<Uuid> {
        self.uuid
    }

    /// Whether that is what the pool says of it. One that is not known to be there yet is
    /// known by its name, unless what has it is another, of `known`.
    fn is(&self, info: &VolumeInfo, known: &BTreeSet<Uuid>) -> bool {
        let by_name = || self.name == info.name && !known.contains(&info.uuid);
        self.exists != Exists::No && self.uuid.map_or_else(by_name, |uuid| uuid == info.uuid)
    }

    /// Those of `sectors` that it has (still).
    pub(super) fn histories(&mut self, sectors: Range<u64>) -> &mut [History] {
        let end = self.histories.len();
        let (first, last) = (sectors.start as usize, sectors.end as usize);
        &mut self.histories[first.min(end)..last.min(end)]
    }

    pub(super) fn history(&self, sector: u64) -> Option<&History> {
        self.histories.get(sector as usize)
    }

    /// Whether a sector that is not there was there at `began`.
    pub(super) fn has_shrunk_since(&self, sector: u64, began: Event) -> bool {
        sector >= self.sectors() && self.shrunk_since(began)
    }

    pub(super) fn shrunk_since(&self, began: Event) -> bool {
        self.shrunk.is_some_and(|shrunk| shrunk > began)
    }

    /// Whether something may be outside now that was inside when it was asked for.
    pub fn shrinks(&self) -> bool {
        let shrinking = matches!(self.exists, Exists::Resizing(to) if to < self.size_bytes);
        shrinking || self.shrunk.is_some()
    }

    pub(super) fn saw(&mut self, sector: u64, id: Content, began: Event) -> Result<(), String> {
        let Some(history) = self.histories.get_mut(sector as usize) else {
            return Err("past the end of the volume".to_owned());
        };
        let (from, until) = history.saw(id, began)?;
        if let Some(taken) = &self.taken {
            let (first, last) = taken.get();
            let instant = (first.max(from), last.min(until));
            if instant.0 > instant.1 {
                return Err(format!(
                    "it was there from event {from} until {until}, and what else was taken \
                     at the same instant from {first} until {last}"
                ));
            }
            taken.set(instant);
        }
        Ok(())
    }

    pub(super) fn set_size(&mut self, size_bytes: u64, now: Event) {
        if size_bytes < self.size_bytes {
            self.shrunk = Some(now);
        }
        self.size_bytes = size_bytes;
        let sectors = (size_bytes / SECTOR_BYTES as u64) as usize;
        let gone = self.histories.drain(sectors.min(self.histories.len())..);
        for (sector, history) in (sectors..).zip(gone) {
            self.outside
                .extend(history.outside().map(|history| (sector, history)));
        }
        for sector in self.histories.len()..sectors {
            let history = self.outside.remove(&sector);
            self.histories.push(history.unwrap_or_default());
        }
    }

    /// A change has ended, and does nothing any more where it is outside.
    pub(super) fn forget_outside(&mut self, id: WriteId, sectors: &Range<u64>) {
        let sectors = sectors.start as usize..sectors.end as usize;
        for (_, history) in self.outside.range_mut(sectors) {
            history.forget(id);
        }
    }

    /// Takes what the pool says of it after a cut, when that is allowed.
    fn settle(&mut self, found: Option<&VolumeInfo>, now: Event) -> Result<(), String> {
        let Some(found) = found else {
            return match self.exists {
                Exists::Creating | Exists::Deleting | Exists::No => {
                    self.exists = Exists::No;
                    Ok(())
                }
                Exists::Yes | Exists::Resizing(_) => Err("it is gone".to_owned()),
            };
        };
        match self.exists {
            Exists::No => return Err("it is there again".to_owned()),
            Exists::Resizing(size_bytes) if found.size_bytes == size_bytes => {
                self.set_size(size_bytes, now);
            }
            _ => {}
        }
        if found.size_bytes != self.size_bytes {
            return Err(format!(
                "it has {} bytes, not {}",
                found.size_bytes, self.size_bytes
            ));
        }
        if found.read_only != self.read_only {
            return Err(format!("it is read-only: {}", found.read_only));
        }
        let behaves = (found.provisioning, found.detects_zeroes);
        let behaved = (self.provisioning, self.detects_zeroes);
        if behaves != behaved && Some(behaves) != self.converting {
            return Err(format!("it is {behaves:?}, not {behaved:?}"));
        }
        (self.provisioning, self.detects_zeroes) = behaves;
        self.converting = None;
        if *self.uuid.get_or_insert(found.uuid) != found.uuid {
            return Err("it has another identity".to_owned());
        }
        self.exists = Exists::Yes;
        Ok(())
    }
}

impl Oracle {
    /// A creation begins. Gives the identity of the new volume in the run.
    pub fn begin_create(
        &mut self,
        name: &str,
        size_bytes: u64,
        (provisioning, detects_zeroes): (Provisioning, bool),
    ) -> u64 {
        self.changes += 1;
        self.last_volume += 1;
        let id = self.last_volume;
        let mut volume = VolumeModel {
            id,
            name: name.to_owned(),
            size_bytes: 0,
            provisioning,
            detects_zeroes,
            converting: None,
            exists: Exists::Creating,
            read_only: false,
            properties: PropertiesModel::default(),
            uuid: None,
            histories: Vec::new(),
            cloned: None,
            taken: None,
            ancestors: BTreeSet::new(),
            shrunk: None,
            outside: BTreeMap::new(),
        };
        volume.set_size(size_bytes, 0);
        self.volumes.insert(id, volume);
        id
    }

    /// Clones of volumes, `(of, name)`, begin to be made at one instant.
    pub fn begin_clones(&mut self, of: &[(u64, &str)], read_only: bool) -> Vec<u64> {
        let taken = Rc::new(Cell::new((0, Event::MAX)));
        let mut begin = |(of, name): &(u64, &str)| {
            let size_bytes = self.volume(*of).size_bytes;
            let id = self.begin_create(name, size_bytes, (Provisioning::Thin, false));
            // What is replaced from now on may be in it.
            let began = self.hold_back();
            let mut ancestors = self.volume(*of).ancestors.clone();
            ancestors.insert(*of);
            let volume = self.volume_mut(id);
            volume.read_only = read_only;
            volume.cloned = Some((*of, began, None));
            volume.taken = Some(Rc::clone(&taken));
            volume.ancestors = ancestors;
            id
        };
        of.iter().map(&mut begin).collect()
    }

    /// A clone is made, as far as its sectors go.
    fn finish_clone(&mut self, id: u64) {
        let Some((of, began, after)) = self.volume_mut(id).cloned.take() else {
            return;
        };
        let now = self.let_through(began);
        let source = self.volume(of);
        let cloned = |history: &History| history.cloned(began, now, after);
        let mut histories: Vec<History> = source.histories.iter().map(cloned).collect();
        let volume = self.volume_mut(id);
        histories.truncate((volume.size_bytes / SECTOR_BYTES as u64) as usize);
        volume.histories = histories;
    }

    /// A volume begins to get what a snapshot has; what it had becomes a snapshot of the
    /// name `keep`. Ends like a write, and the snapshot like a creation.
    pub fn begin_restore(
        &mut self,
        id: u64,
        from: u64,
        keep: Option<&str>,
    ) -> (WriteTicket, Option<u64>) {
        let kept = keep.map(|name| self.begin_clones(&[(id, name)], true)[0]);
        let snapshot = self.volume(from).clone();
        let sectors = 0..self.volume(id).sectors();
        let ticket = self.begin_change(id, sectors.clone(), |history, sector, id, when| {
            let from = snapshot.histories.get(sector as usize);
            history.begin_restore(id, from, when.0, when.1);
        });
        self.derived.insert(ticket.id);
        let volume = self.volume_mut(id);
        volume.ancestors.extend(&snapshot.ancestors);
        volume.ancestors.insert(from);
        if let Some(kept) = kept {
            let cloned = &mut self.volume_mut(kept).cloned;
            *cloned = cloned.map(|(of, began, _)| (of, began, Some(ticket.id)));
        }
        (ticket, kept)
    }

    /// A change of how a volume takes space begins.
    pub fn begin_convert(&mut self, id: u64, to: (Provisioning, bool)) {
        self.changes += 1;
        self.volume_mut(id).converting = Some(to);
    }

    /// That change ends; only when it is done does the volume take space in the new way.
    pub fn end_convert(&mut self, id: u64, change: Change) {
        self.changes += 1;
        let volume = self.volume_mut(id);
        if let (Some(to), Change::Done(_)) = (volume.converting.take(), change) {
            (volume.provisioning, volume.detects_zeroes) = to;
        }
    }

    /// A resize to `size_bytes` begins; until it ends, both sizes may be found.
    pub fn begin_resize(&mut self, id: u64, size_bytes: u64) {
        self.changes += 1;
        self.volume_mut(id).exists = Exists::Resizing(size_bytes);
    }

    /// A volume begins to shrink to `size_bytes`; up to `behind`, in its last page, it may
    /// be zeroes before that. Ends like a resize, and like a write.
    pub fn begin_shrink(&mut self, id: u64, size_bytes: u64, behind: u64) -> WriteTicket {
        self.begin_resize(id, size_bytes);
        let sector = SECTOR_BYTES as u64;
        self.begin_clear(id, size_bytes / sector..behind / sector)
    }

    /// A deletion begins; until it ends, the volume may be there or not.
    pub fn begin_delete(&mut self, id: u64) {
        self.changes += 1;
        self.volume_mut(id).exists = Exists::Deleting;
    }

    /// The change under way ends.
    pub fn end_change(&mut self, id: u64, change: Change) {
        self.changes += 1;
        self.finish_clone(id);
        let now = self.tick();
        let volume = self.volume_mut(id);
        volume.exists = match (volume.exists, change) {
            (Exists::Creating, Change::Done(uuid)) => {
                volume.uuid = Some(uuid);
                Exists::Yes
            }
            (Exists::Resizing(size_bytes), Change::Done(_)) => {
                volume.set_size(size_bytes, now);
                Exists::Yes
            }
            (Exists::Deleting, Change::Done(_)) | (Exists::Creating, Change::Refused) => Exists::No,
            (_, Change::Refused) => Exists::Yes,
            (Exists::Yes | Exists::No, Change::Done(_)) => {
                unreachable!("no change of {:?} was under way", volume.name)
            }
        };
        self.tell_all_copies();
    }

    /// The pool lists these volumes, and no change is under way.
    ///
    /// # Errors
    /// The first volume that should not be, or be otherwise.
    pub fn settle_volumes(&mut self, found: &[VolumeInfo]) -> Result<(), Violation> {
        let known: BTreeSet<Uuid> = self.volumes.values().filter_map(|v| v.uuid).collect();
        for info in found {
            if !self.volumes.values().any(|volume| volume.is(info, &known)) {
                return Err(Violation(format!(
                    "the pool lists a volume nobody made: {info:?}"
                )));
            }
        }
        let cut: Vec<u64> = self.volumes.keys().copied().collect();
        cut.into_iter().for_each(|id| self.finish_clone(id));
        let now = self.tick();
        for volume in self
            .volumes
            .values_mut()
            .filter(|volume| volume.exists != Exists::No)
        {
            let info = found.iter().find(|info| volume.is(info, &known));
            if let Err(why) = volume.settle(info, now) {
                return Err(Violation(format!("volume {:?}: {why}", volume.name)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::SectorPlace;

    fn info(size_bytes: u64, uuid: u128) -> VolumeInfo {
        VolumeInfo {
            name: "v".to_owned(),
            uuid: Uuid::from_u128(uuid),
            size_bytes,
            provisioning: Provisioning::Thin,
            detects_zeroes: false,
            promised_bytes: 0,
            read_only: false,
            mapped_bytes: 0,
            page_bytes: 4096,
            whole_bytes_max: 4096,
        }
    }

    fn shown(id: u64, volume: u64) -> Content {
        Content::of(id, SectorPlace { volume, sector: 0 })
    }

    fn created() -> (Oracle, u64) {
        let mut oracle = Oracle::default();
        let id = oracle.begin_create("v", 1024, (Provisioning::Thin, false));
        oracle.end_change(id, Change::Done(Uuid::from_u128(1)));
        (oracle, id)
    }

    #[test]
    fn an_acknowledged_volume_must_be_there_as_it_was() {
        let (mut oracle, _) = created();
        oracle.settle_volumes(&[info(1024, 1)]).unwrap();
        oracle.settle_volumes(&[]).unwrap_err();
        oracle.settle_volumes(&[info(2048, 1)]).unwrap_err();
        oracle.settle_volumes(&[info(1024, 2)]).unwrap_err();
    }

    #[test]
    fn a_creation_cut_off_is_there_or_not_and_then_stays() {
        for there in [true, false] {
            let mut oracle = Oracle::default();
            oracle.begin_create("v", 1024, (Provisioning::Thin, false));
            let (first, other) = (vec![info(1024, 1)], vec![]);
            let (first, other) = if there {
                (first, other)
            } else {
                (other, first)
            };
            oracle.settle_volumes(&first).unwrap();
            oracle.settle_volumes(&first).unwrap();
            oracle.settle_volumes(&other).unwrap_err();
        }
    }

    #[test]
    fn a_resize_cut_off_has_the_old_size_or_the_new_and_no_third() {
        for (size_bytes, allowed) in [(1024, true), (4096, true), (2048, false)] {
            let (mut oracle, id) = created();
            oracle.begin_resize(id, 4096);
            assert_eq!(
                oracle.settle_volumes(&[info(size_bytes, 1)]).is_ok(),
                allowed
            );
        }
    }

    #[test]
    fn a_deleted_volume_does_not_come_back() {
        let (mut oracle, id) = created();
        oracle.begin_delete(id);
        oracle.end_change(id, Change::Done(Uuid::nil()));
        oracle.settle_volumes(&[]).unwrap();
        oracle.settle_volumes(&[info(1024, 1)]).unwrap_err();
    }

    #[test]
    fn a_refused_change_changes_nothing() {
        let (mut oracle, id) = created();
        oracle.begin_resize(id, 4096);
        oracle.end_change(id, Change::Refused);
        assert_eq!(oracle.volume(id).size_bytes, 1024);
        oracle.begin_delete(id);
        oracle.end_change(id, Change::Refused);
        oracle.settle_volumes(&[info(1024, 1)]).unwrap();
    }

    #[test]
    fn what_is_taken_together_is_of_one_instant() {
        for (first, second, allowed) in [(0, 0, true), (1, 0, true), (1, 2, true), (0, 2, false)] {
            let (mut oracle, a) = created();
            let b = oracle.begin_create("w", 1024, (Provisioning::Thin, false));
            oracle.end_change(b, Change::Done(Uuid::from_u128(2)));
            let clones = oracle.begin_clones(&[(a, "as"), (b, "bs")], true);
            // One after the other: who has the second has the first.
            for volume in [a, b] {
                let write = oracle.begin_write(volume, 0..1);
                oracle.end_write(&write, crate::oracle::WriteEnd::Acknowledged);
            }
            for clone in &clones {
                oracle.end_change(*clone, Change::Done(Uuid::nil()));
            }
            let seen = [(clones[0], shown(first, a)), (clones[1], shown(second, b))];
            let outcome = seen
                .into_iter()
                .try_for_each(|(clone, id)| oracle.volume_mut(clone).saw(0, id, 100));
            assert_eq!(
                outcome.is_ok(),
                allowed,
                "{first} and {second}: {outcome:?}"
            );
        }
    }

    #[test]
    fn what_is_restored_is_what_the_snapshot_had() {
        let (mut oracle, id) = created();
        let write = |oracle: &mut Oracle| {
            let write = oracle.begin_write(id, 0..1);
            oracle.end_write(&write, crate::oracle::WriteEnd::Acknowledged);
        };
        write(&mut oracle);
        let snapshot = oracle.begin_clones(&[(id, "s")], true)[0];
        oracle.end_change(snapshot, Change::Done(Uuid::nil()));
        write(&mut oracle);
        let (ticket, kept) = oracle.begin_restore(id, snapshot, Some("kept"));
        for write in [2, 1] {
            oracle.volume_mut(id).saw(0, shown(write, id), 50).unwrap();
        }
        let kept = kept.unwrap();
        oracle.end_change(kept, Change::Done(Uuid::nil()));
        oracle.end_write(&ticket, crate::oracle::WriteEnd::Acknowledged);
        oracle.volume_mut(kept).saw(0, shown(2, id), 100).unwrap();
        oracle
            .volume_mut(kept)
            .saw(0, shown(1, id), 100)
            .unwrap_err();
        oracle.volume_mut(id).saw(0, shown(1, id), 100).unwrap();
        oracle.volume_mut(id).saw(0, shown(2, id), 100).unwrap_err();
    }
}
