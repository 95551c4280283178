//! The metadata in memory.

mod apply;

use super::page_map::Tree;
use super::properties::{LiveProperties, Name, Stage};
use super::{Backings, InFlight, PageMap, Promise, Promises, Record, Refs, VolumeId};
use crate::raid::Level;
use base::{PageIndex, PhysPage, Uuid};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// How a volume takes space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provisioning {
    /// Pages are allocated on first write.
    Thin,
    /// Pages are allocated on first write, out of as many as were promised at creation: no
    /// write finds the pool full.
    Thick,
}

/// A volume: what is durable about it, and beside that what is only in memory.
#[derive(Debug)]
pub struct VolumeCore<L = ()> {
    pub id: VolumeId,
    pub uuid: Uuid,
    pub name: Name,
    /// What else is said of it.
    pub properties: LiveProperties,
    pub provisioning: Cell<Provisioning>,
    /// All its pages are promised to it: it is thick, or about to be.
    pub is_promised: Cell<bool>,
    /// Pages that are written as zeroes are not kept.
    pub detects_zeroes: Cell<bool>,
    /// Whether writes to it are refused: it is a snapshot.
    pub read_only: bool,
    pub size_bytes: Cell<u64>,
    /// Whether its creation is complete.
    pub ready: Cell<bool>,
    pub map: RefCell<PageMap>,
    /// I/O in progress; not part of the metadata.
    pub live: L,
}

impl<L: InFlight> VolumeCore<L> {
    /// Whether it is called by its name: it is not in the trash, nor going away, nor
    /// another pool's, nor hidden.
    pub fn is_seen(&self) -> bool {
        !self.properties.is_trashed() && !self.is_out_of_sight() && !self.live.is_deleted()
    }

    /// Whether it is in no list: it is another pool's, or hidden.
    pub fn is_out_of_sight(&self) -> bool {
        self.is_elsewhere() || self.properties.is_hidden()
    }

    /// Whether the volume is another pool's: this is a copy in the making, or what is left
    /// of a volume that has moved.
    pub fn is_elsewhere(&self) -> bool {
        self.properties.stage() == Some(Stage::Incoming) || self.live.has_moved()
    }

    /// What it may map beyond what it has, without anybody's leave: nothing, or all.
    pub fn promise(&self, page_bytes: u64) -> Promise {
        match self.is_promised.get() {
            false => Promise::default(),
            true => self.promise_of_all(page_bytes),
        }
    }

    /// What it may take if all is promised to it.
    pub fn promise_of_all(&self, page_bytes: u64) -> Promise {
        let mapped = self.map.borrow().mapped();
        self.promise_beside(mapped, page_bytes)
    }

    /// What it may take if it had so many pages mapped.
    pub fn promise_beside(&self, mapped: u64, page_bytes: u64) -> Promise {
        let pages = self.pages(page_bytes);
        Promise::of(pages.saturating_sub(mapped), pages)
    }

    /// Pages of it that are not mapped.
    pub fn unmapped_pages(&self, page_bytes: u64) -> u64 {
        let pages = self.pages(page_bytes);
        pages.saturating_sub(self.map.borrow().mapped())
    }

    /// Pages that its size takes; none before the pool is known.
    fn pages(&self, page_bytes: u64) -> u64 {
        match page_bytes {
            0 => 0,
            page_bytes => self.size_bytes.get().div_ceil(page_bytes),
        }
    }

    /// How it behaves now, as a record.
    pub fn behaviour(&self) -> Record {
        Record::Behave {
            id: self.id,
            provisioning: self.provisioning.get(),
            detects_zeroes: self.detects_zeroes.get(),
        }
    }
}

/// A zone in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneState {
    /// How it protects data.
    pub level: Level,
    /// Which use of it this is.
    pub incarnation: u32,
}

/// Everything that the metadata says.
#[derive(Debug, Default)]
pub struct State<L = ()> {
    /// All volumes, complete or not.
    pub volumes: BTreeMap<VolumeId, Rc<VolumeCore<L>>>,
    /// Zones in use, by their number in the pool.
    pub zones: BTreeMap<u32, ZoneState>,
    /// Of zones in spread groups, the places that stand elsewhere than at home: on which drive of their
    /// group.
    pub moved: BTreeMap<u32, BTreeMap<u8, u8>>,
    /// The incarnation that the next zone gets; none is given out twice.
    pub next_incarnation: u32,
    /// Of each drive that is being rebuilt, the zones that are whole.
    pub rebuilt: BTreeMap<Uuid, BTreeSet<u32>>,
    /// Bytes of what is said of volumes.
    pub properties_bytes: u64,
    /// The id that the next volume gets.
    pub next_id: u32,
    /// Who else has the pages of the maps.
    pub refs: Refs,
    /// Pages that have part of their content in another.
    pub backings: Backings,
    /// Holders are counted: the pool is open, and nothing is replayed any more. Until then
    /// nobody knows who is the last to let go of a page.
    counted: bool,
    /// Maps that are no volume's any more and have not given up all of their pages.
    gone: Vec<PageMap>,
    /// Pages that nobody has any more, until somebody takes them.
    pub(super) freed: Vec<PhysPage>,
    /// What is promised to thick volumes.
    pub promises: Promises,
}

/// A part of a [`State::snapshot`].
#[derive(Clone, Debug)]
pub enum Part {
    /// A record, as it would stand in the journal.
    Record(Record),
    /// What a volume, created before, has mapped.
    Map(VolumeId, Tree),
    /// What backs which page.
    Backings(Backings),
}

impl<L: InFlight> State<L> {
    /// Promises a volume all of its pages, or does so no more: of one that is about to
    /// change how it takes space. Nothing durable.
    pub fn promise(&mut self, core: &VolumeCore<L>, is_promised: bool) {
        let page_bytes = self.promises.page_bytes();
        let before = core.promise(page_bytes);
        core.is_promised.set(is_promised);
        let after = core.promise(page_bytes);
        self.promises.change(before, after, false);
    }

    /// Makes one durable change.
    ///
    /// # Errors
    /// What is wrong with the record: metadata that contradicts itself. Nothing
    /// has changed then.
    pub fn apply(&mut self, record: &Record) -> Result<(), String> {
        let id = record.volume();
        let page_bytes = self.promises.page_bytes();
        let wanted = |state: &Self| {
            let core = id.and_then(|id| state.volumes.get(&id));
            core.map_or(Promise::default(), |core| core.promise(page_bytes))
        };
        let before = wanted(self);
        let freed = self.freed.len();
        self.make(record)?;
        self.let_go_of_backings(freed);
        let after = wanted(self);
        self.promises.change(before, after, record.promises());
        Ok(())
    }

    /// A map that is no volume's any more is to give up its pages.
    pub fn give_up(&mut self, map: PageMap) {
        self.gone.push(map);
    }

    /// Has such maps give up some of their pages; false when none is left that has any.
    pub fn give_up_some(&mut self) -> bool {
        let freed = self.freed.len();
        while let Some(map) = self.gone.last_mut() {
            if map.give_up_some(&mut self.refs, &mut self.freed) {
                self.let_go_of_backings(freed);
                return true;
            }
            self.gone.pop();
        }
        false
    }

    /// Pages that are given out anew have no backing. Where nothing is counted, one may
    /// still stand there that they had when they were given back.
    fn begin_anew(&mut self, first: PhysPage, count: u64) {
        let pages = first.0..first.0 + count;
        if self.counted {
            let had = |page| self.backings.get(PhysPage(page)).is_some();
            assert!(
                self.backings.is_empty() || !pages.clone().any(had),
                "a page of {pages:?} is given out and has a backing"
            );
        }
        self.backings.forget(pages);
    }

    /// Pages that were freed, of which `from` were before, let go of what backs them.
    fn let_go_of_backings(&mut self, from: usize) {
        if self.backings.is_empty() || !self.counted {
            return;
        }
        // What backs has no backing itself: one round is enough.
        for at in from..self.freed.len() {
            if let Some(backing) = self.backings.remove(self.freed[at])
                && self.refs.take(backing)
            {
                self.freed.push(backing);
            }
        }
    }

    /// Holders are counted, in `refs`; and what backs pages that nobody has was left over.
    ///
    /// # Errors
    /// A backing for which `claim` finds no page.
    pub fn count_backings(
        &mut self,
        mut refs: Refs,
        is_used: impl Fn(PhysPage) -> bool,
        mut claim: impl FnMut(PhysPage, &mut Refs) -> bool,
    ) -> Result<(), PhysPage> {
        self.backings.retain(|page, _| is_used(page));
        for (_, backing) in self.backings.iter() {
            if !claim(backing, &mut refs) {
                return Err(backing);
            }
        }
        self.refs = refs;
        self.counted = true;
        Ok(())
    }

    /// Pages that no map has any more and that only back others.
    pub fn backing_pages(&self) -> u64 {
        let mut backs: Vec<PhysPage> = self.backings.iter().map(|(_, backing)| backing).collect();
        backs.sort_unstable();
        let runs = backs.chunk_by(|page, next| page == next);
        // Holders beyond the first: with a map that has it, as many as it backs.
        let alone = runs.filter(|run| (self.refs.beyond_first(run[0]) as usize) < run.len());
        alone.count() as u64
    }

    /// Pages that changes since the last call have freed.
    pub fn take_freed(&mut self) -> Vec<PhysPage> {
        std::mem::take(&mut self.freed)
    }

    /// Maps pages of a volume from `first` on, as [`PageMap::insert_table`] does.
    ///
    /// # Errors
    /// As [`State::apply`].
    pub fn apply_table(
        &mut self,
        id: VolumeId,
        first: PageIndex,
        places: impl ExactSizeIterator<Item = u32> + Clone,
    ) -> Result<(), String> {
        let core = Rc::clone(self.known(id)?);
        let mut map = core.map.borrow_mut();
        let mapped = map.insert_table(first, places, &mut self.refs);
        mapped.map_err(|page| mapped_twice(id, page))
    }

    /// Has a volume share chunks of its map with another, as
    /// [`PageMap::share_chunks`] does.
    ///
    /// # Errors
    /// As [`State::apply`].
    pub fn apply_shared(
        &mut self,
        id: VolumeId,
        from: VolumeId,
        (first, end): (usize, usize),
    ) -> Result<(), String> {
        let (core, from) = (Rc::clone(self.known(id)?), Rc::clone(self.known(from)?));
        let twice = || {
            format!(
                "volume id {} shares what it has of its own, or with itself",
                id.0
            )
        };
        if core.id == from.id {
            return Err(twice());
        }
        let mut map = core.map.borrow_mut();
        let shared = map.share_chunks(&from.map.borrow(), first, end, &mut self.refs);
        shared.then_some(()).ok_or_else(twice)
    }

    /// What makes an empty state into this one, in order. The maps are shared with the
    /// state, and stay as they are now when it changes: this is quick, and goes on
    /// being true.
    pub fn snapshot(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for core in self.volumes.values() {
            let id = core.id;
            parts.push(Part::Record(Record::Create {
                id,
                uuid: core.uuid,
                name: core.name.to_string(),
                size_bytes: core.size_bytes.get(),
                provisioning: core.provisioning.get(),
                read_only: core.read_only,
            }));
            let said = core.properties.as_records().into_iter();
            parts.extend(said.map(|property| Part::Record(Record::Property(id, property))));
            if core.detects_zeroes.get() {
                parts.push(Part::Record(core.behaviour()));
            }
            parts.push(Part::Map(id, core.map.borrow().view()));
            if core.ready.get() {
                parts.push(Part::Record(Record::Ready { id }));
            }
        }
        if !self.backings.is_empty() {
            parts.push(Part::Backings(self.backings.clone()));
        }
        self.add_zones(&mut parts);
        let incarnation = self.next_incarnation;
        parts.push(Part::Record(Record::NextIncarnation { incarnation }));
        let id = VolumeId(self.next_id);
        parts.push(Part::Record(Record::NextId { id }));
        parts
    }

    /// Adds what a snapshot has of zones.
    fn add_zones(&self, parts: &mut Vec<Part>) {
        parts.extend(self.zones.iter().map(|(zone, state)| {
            Part::Record(Record::ZoneOn {
                zone: *zone,
                level: state.level,
                incarnation: state.incarnation,
            })
        }));
        for (&zone, places) in &self.moved {
            let moved = |(&place, &drive)| Part::Record(Record::Moved { zone, place, drive });
            parts.extend(places.iter().map(moved));
        }
        for (&member, zones) in &self.rebuilt {
            let rebuilt = |&zone| Part::Record(Record::Rebuilt { member, zone });
            parts.extend(zones.iter().map(rebuilt));
        }
    }

    pub(super) fn known(&self, id: VolumeId) -> Result<&Rc<VolumeCore<L>>, String> {
        self.volumes
            .get(&id)
            .ok_or_else(|| format!("there is no volume id {}", id.0))
    }
}

fn mapped_twice(id: VolumeId, page: PageIndex) -> String {
    format!(
        "page {page} of volume id {} is mapped twice, or to no place of the format",
        id.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::record::HOME;

    /// The records that make an empty state into `state`.
    fn records_of(state: &State) -> Vec<Record> {
        let of = |part| match part {
            Part::Record(record) => vec![record],
            Part::Backings(backings) => {
                let backed = |(phys, backing)| Record::Backed { phys, backing };
                backings.iter().map(backed).collect()
            }
            Part::Map(id, map) => map
                .runs()
                .map(|run| Record::Map {
                    id,
                    page: run.page,
                    phys: run.phys,
                    count: run.count as u32,
                })
                .collect(),
        };
        state.snapshot().into_iter().flat_map(of).collect()
    }

    #[test]
    fn its_records_make_the_same_state_again() {
        let id = VolumeId(4);
        let mut state = State::default();
        let records = [
            Record::Create {
                id,
                uuid: Uuid::from_u128(1),
                name: "v".into(),
                size_bytes: 512,
                provisioning: Provisioning::Thin,
                read_only: false,
            },
            Record::Map {
                id,
                page: PageIndex(0),
                phys: PhysPage(5),
                count: 3,
            },
            Record::Ready { id },
            Record::Resize {
                id,
                size_bytes: 1024,
            },
            Record::Remap {
                id,
                page: PageIndex(1),
                phys: PhysPage(9),
            },
            Record::Unmap {
                id,
                page: PageIndex(2),
                count: 7,
            },
            Record::ZoneOn {
                zone: 3,
                level: Level::Raid5,
                incarnation: 4,
            },
            Record::ZoneOn {
                zone: 4,
                level: Level::Raid5,
                incarnation: 5,
            },
            Record::Rebuilt {
                member: Uuid::from_u128(2),
                zone: 3,
            },
            Record::Rebuilt {
                member: Uuid::from_u128(2),
                zone: 4,
            },
            Record::Moved {
                zone: 3,
                place: 0,
                drive: 5,
            },
            Record::Moved {
                zone: 4,
                place: 1,
                drive: 6,
            },
            Record::Moved {
                zone: 3,
                place: 0,
                drive: 7,
            },
            Record::Moved {
                zone: 3,
                place: 2,
                drive: 1,
            },
            Record::Moved {
                zone: 3,
                place: 2,
                drive: HOME,
            },
            Record::ZoneOff { zone: 4 },
        ];
        for record in &records {
            state.apply(record).unwrap();
        }
        let mut again = State::default();
        for record in records_of(&state) {
            again.apply(&record).unwrap();
        }
        assert_eq!(records_of(&again), records_of(&state));
        assert_eq!(again.zones[&3].incarnation, 4);
        assert_eq!(again.moved, BTreeMap::from([(3, BTreeMap::from([(0, 7)]))]));
        assert_eq!(again.rebuilt[&Uuid::from_u128(2)], BTreeSet::from([3]));
        assert_eq!(
            again.volumes[&id].map.borrow().get(PageIndex(1)),
            Some(PhysPage(9))
        );
        assert_eq!(again.volumes[&id].map.borrow().mapped(), 2);
        assert_eq!(state.take_freed(), [PhysPage(6), PhysPage(7)]);
        assert_eq!(state.take_freed(), []);
        assert_eq!(again.volumes[&id].size_bytes.get(), 1024);
        assert_eq!(again.next_id, 5);
    }

    #[test]
    fn contradictions_are_refused_and_change_nothing() {
        let id = VolumeId(0);
        let mut state = State::<()>::default();
        let create = Record::Create {
            id,
            uuid: Uuid::nil(),
            name: "v".into(),
            size_bytes: 512,
            provisioning: Provisioning::Thin,
            read_only: false,
        };
        assert!(state.apply(&Record::Ready { id }).is_err());
        state.apply(&create).unwrap();
        assert!(state.apply(&create).is_err());
        let map = |page, count| Record::Map {
            id,
            page: PageIndex(page),
            phys: PhysPage(9),
            count,
        };
        state.apply(&map(5, 1)).unwrap();
        assert!(state.apply(&map(3, 3)).is_err());
        let table = state.apply_table(id, PageIndex(3), [7, 7, 7].into_iter());
        assert!(table.is_err());
        assert_eq!(state.volumes[&id].map.borrow().mapped(), 1);
        state.apply(&Record::Delete { id }).unwrap();
        assert!(state.apply(&create).is_err(), "an id is never used again");
    }

    /// A state with a volume of pages at 5 and 6, a clone of it, and holders counted.
    fn cloned() -> State {
        let mut state = State::default();
        let create = |id: u32| Record::Create {
            id: VolumeId(id),
            uuid: Uuid::nil(),
            name: format!("v{id}"),
            size_bytes: 512,
            provisioning: Provisioning::Thin,
            read_only: false,
        };
        let (id, from) = (VolumeId(1), VolumeId(0));
        let (page, phys, count) = (PageIndex(0), PhysPage(5), 2);
        let map = Record::Map {
            id: from,
            page,
            phys,
            count,
        };
        for record in [create(0), create(1), map, Record::Share { id, from }] {
            state.apply(&record).unwrap();
        }
        let counted = state.count_backings(state.refs.clone(), |_| true, |_, _| true);
        counted.unwrap();
        state
    }

    fn overlay(id: u32, phys: u64, backing: u64) -> Record {
        Record::Overlay {
            id: VolumeId(id),
            page: PageIndex(0),
            phys: PhysPage(phys),
            backing: PhysPage(backing),
        }
    }

    #[test]
    fn what_backs_a_page_is_held_until_that_is_whole_or_gone() {
        let mut state = cloned();
        state.apply(&overlay(0, 9, 5)).unwrap();
        assert!(
            state.apply(&overlay(1, 10, 9)).is_err(),
            "over one that lies over another"
        );
        assert!(state.apply(&overlay(1, 9, 9)).is_err());
        // The clone goes over it, too, and no map has it any more.
        state.apply(&overlay(1, 10, 5)).unwrap();
        assert_eq!((state.take_freed(), state.backing_pages()), (vec![], 1));
        state.apply(&Record::Whole { phys: PhysPage(9) }).unwrap();
        assert_eq!(state.take_freed(), []);
        let (page, count) = (PageIndex(0), 1);
        let unmap = Record::Unmap {
            id: VolumeId(1),
            page,
            count,
        };
        state.apply(&unmap).unwrap();
        assert_eq!(state.take_freed(), [PhysPage(10), PhysPage(5)]);
        assert!(state.backings.is_empty());
    }

    #[test]
    fn what_is_replayed_over_a_page_given_out_anew_has_no_backing() {
        let mut state = cloned();
        state.counted = false;
        state.apply(&overlay(0, 9, 5)).unwrap();
        let (page, count) = (PageIndex(0), 1);
        let unmap = Record::Unmap {
            id: VolumeId(0),
            page,
            count,
        };
        state.apply(&unmap).unwrap();
        assert_eq!(state.backings.len(), 1, "nobody knows who else has it");
        let (id, phys) = (VolumeId(0), PhysPage(9));
        state
            .apply(&Record::Map {
                id,
                page,
                phys,
                count,
            })
            .unwrap();
        assert!(state.backings.is_empty());
    }
}
