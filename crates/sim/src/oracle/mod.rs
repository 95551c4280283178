//! The checker: the durability rule, sector by sector.
//!
//! [`sector`] holds the rule for one sector, [`volume`] for one volume's place in
//! the pool, [`Oracle`] keeps the books of operations under way.

pub mod copies;
pub mod properties;
pub mod sector;
pub mod volume;

use crate::pattern::{self, Content, SectorPlace, WriteId};
use base::SECTOR_BYTES;
use sector::{Event, History};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use volume::{Exists, VolumeModel};

/// What was seen and is not allowed, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

/// A write that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteTicket {
    /// Number of the write, unique in the run.
    pub id: WriteId,
    /// The volume's identity in the run.
    pub volume: u64,
    /// Sectors of the volume that it changes.
    pub sectors: Range<u64>,
}

/// A read that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadTicket {
    began: Event,
    /// The volume's identity in the run.
    pub volume: u64,
    /// First sector of the range that is read.
    pub sector: u64,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteEnd {
    /// Acknowledged: the write must last.
    Acknowledged,
    /// Failed: any of its sectors may have been written.
    Failed,
}

/// The state of everything that was asked of the engine.
#[derive(Default)]
pub struct Oracle {
    clock: Event,
    last_write: WriteId,
    last_volume: u64,
    changes: u64,
    /// By identity. Deleted ones stay until the end of operations on them.
    volumes: BTreeMap<u64, VolumeModel>,
    writes: BTreeMap<WriteId, WriteTicket>,
    /// Copies under way.
    copies: Vec<copies::CopyTicket>,
    /// When more was damaged last than the redundancy covers.
    damaged: Option<Event>,
    /// Changes under way that take what they leave from elsewhere.
    derived: BTreeSet<WriteId>,
    /// Begins of reads and writes under way, with how many began then.
    under_way: BTreeMap<Event, WriteId>,
}

impl Oracle {
    fn tick(&mut self) -> Event {
        self.clock += 1;
        self.clock
    }

    /// The first event from which on something is still under way: what was out
    /// of date before can be forgotten.
    fn horizon(&self) -> Event {
        self.under_way
            .first_key_value()
            .map_or(self.clock, |(&began, _)| began)
    }

    /// What is replaced from now on is not forgotten; until [`Oracle::let_through`].
    fn hold_back(&mut self) -> Event {
        let began = self.tick();
        self.under_way.insert(began, pattern::ZEROES);
        began
    }

    fn let_through(&mut self, began: Event) -> Event {
        self.under_way.remove(&began);
        self.tick()
    }

    /// The volume with this identity.
    ///
    /// # Panics
    /// When there never was one: the simulator asks only for its own.
    pub fn volume(&self, id: u64) -> &VolumeModel {
        match self.volumes.get(&id) {
            Some(volume) => volume,
            None => panic!("volume {id} was never created"),
        }
    }

    fn volume_mut(&mut self, id: u64) -> &mut VolumeModel {
        match self.volumes.get_mut(&id) {
            Some(volume) => volume,
            None => panic!("volume {id} was never created"),
        }
    }

    /// Changes of volumes that have begun or ended so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// All volumes that are or may be in the pool.
    pub fn volumes(&self) -> impl Iterator<Item = &VolumeModel> {
        self.volumes
            .values()
            .filter(|volume| volume.exists != Exists::No)
    }

    /// More is damaged than the redundancy covers.
    pub fn damage(&mut self) {
        self.damaged = Some(self.tick());
    }

    /// Whether the block of a sector may be lost: more was damaged than the redundancy
    /// covers, and not all of the block has been written since, or what is lost elsewhere is
    /// being copied there.
    pub fn may_be_lost(&self, volume: u64, sectors: Range<u64>) -> bool {
        let Some(damaged) = self.damaged else {
            return false;
        };
        let concerns = |copy: &WriteTicket| {
            let meets = copy.sectors.start < sectors.end && sectors.start < copy.sectors.end;
            copy.volume == volume && meets
        };
        let mut copies = self.derived.iter().filter_map(|id| self.writes.get(id));
        if copies.any(concerns) {
            return true;
        }
        let volume = self.volume(volume);
        let is_old = |sector: u64| {
            let history = volume.history(sector);
            history.map_or(0, History::rewritten) < damaged
        };
        // Behind its end it is not known.
        let end = sectors.end.min(volume.sectors());
        sectors.start >= end || (sectors.start..end).any(is_old)
    }

    /// A write of `sectors` begins.
    pub fn begin_write(&mut self, volume: u64, sectors: Range<u64>) -> WriteTicket {
        let zeroes = sectors.end..sectors.end;
        self.begin_write_of(volume, sectors, zeroes)
    }

    /// A write of `sectors` begins, which writes zeroes to those in `zeroes`.
    pub fn begin_write_of(
        &mut self,
        volume: u64,
        sectors: Range<u64>,
        zeroes: Range<u64>,
    ) -> WriteTicket {
        self.begin_change(volume, sectors, |history, sector, id, (began, horizon)| {
            let shows = match zeroes.contains(&sector) {
                true => Content::ZEROES,
                false => Content::of(id, SectorPlace { volume, sector }),
            };
            history.begin_write(id, shows, began, horizon);
        })
    }

    /// A clearing of `sectors` begins: they read as zeroes after it.
    pub fn begin_clear(&mut self, volume: u64, sectors: Range<u64>) -> WriteTicket {
        self.begin_change(volume, sectors, |history, _, id, (began, horizon)| {
            history.begin_write(id, Content::ZEROES, began, horizon);
        })
    }

    /// A change of `sectors` begins: `begin` is told of each of them, the change's number,
    /// when it begins, and since when something is under way.
    fn begin_change(
        &mut self,
        volume: u64,
        sectors: Range<u64>,
        mut begin: impl FnMut(&mut History, u64, WriteId, (Event, Event)),
    ) -> WriteTicket {
        let (began, horizon) = (self.tick(), self.horizon());
        self.last_write += 1;
        let id = self.last_write;
        let histories = self.volume_mut(volume).histories(sectors.clone());
        for (sector, history) in sectors.clone().zip(histories) {
            begin(history, sector, id, (began, horizon));
        }
        self.tell_copies(volume, sectors.clone());
        let ticket = WriteTicket {
            id,
            volume,
            sectors,
        };
        self.writes.insert(id, ticket.clone());
        self.under_way.insert(began, id);
        ticket
    }

    /// The write of `ticket` ends. An acknowledged write must last; a failed write may be seen or
    /// not.
    pub fn end_write(&mut self, ticket: &WriteTicket, ended: WriteEnd) {
        let now = self.tick();
        self.writes.remove(&ticket.id);
        self.under_way.retain(|_, id| *id != ticket.id);
        let derived = self.derived.remove(&ticket.id);
        let volume = self.volume_mut(ticket.volume);
        volume.forget_outside(ticket.id, &ticket.sectors);
        for history in volume.histories(ticket.sectors.clone()) {
            match ended {
                WriteEnd::Acknowledged => history.acknowledge(ticket.id, now, !derived),
                WriteEnd::Failed => history.leave_open(ticket.id, now, !derived),
            }
        }
    }

    /// A read from `sector` on begins.
    pub fn begin_read(&mut self, volume: u64, sector: u64) -> ReadTicket {
        let began = self.tick();
        self.under_way.insert(began, pattern::ZEROES);
        ReadTicket {
            began,
            volume,
            sector,
        }
    }

    /// A read ends with `bytes`, or with an error (`None`).
    ///
    /// # Errors
    /// The first sector whose content the rule does not allow.
    pub fn end_read(&mut self, ticket: &ReadTicket, bytes: Option<&[u8]>) -> Result<(), Violation> {
        self.under_way.remove(&ticket.began);
        let Some(bytes) = bytes else { return Ok(()) };
        let volume = self.volume_mut(ticket.volume);
        let end = ticket.sector + (bytes.len() / SECTOR_BYTES) as u64;
        let sectors = ticket.sector..end;
        for (sector, content) in sectors.zip(bytes.chunks(SECTOR_BYTES)) {
            if volume.has_shrunk_since(sector, ticket.began) {
                continue;
            }
            let seen = pattern::identify(content)
                .and_then(|content| volume.saw(sector, content, ticket.began));
            seen.map_err(|wrong| {
                Violation(format!(
                    "sector {sector} of volume {:?}: {wrong}",
                    volume.name
                ))
            })?;
        }
        Ok(())
    }

    /// The power is cut, or the program killed: nothing under way ends any more.
    pub fn power_cut(&mut self) {
        self.copies.clear();
        let now = self.tick();
        let derived = std::mem::take(&mut self.derived);
        for ticket in std::mem::take(&mut self.writes).into_values() {
            let volume = self.volume_mut(ticket.volume);
            volume.forget_outside(ticket.id, &ticket.sectors);
            for history in volume.histories(ticket.sectors) {
                history.leave_open(ticket.id, now, !derived.contains(&ticket.id));
            }
        }
        self.under_way.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::volume::Change;
    use super::*;
    use base::Uuid;
    use engine::Provisioning;

    fn oracle() -> (Oracle, u64) {
        let mut oracle = Oracle::default();
        let volume = oracle.begin_create("v", 4096, (Provisioning::Thin, false));
        oracle.end_change(volume, Change::Done(Uuid::nil()));
        (oracle, volume)
    }

    fn read(oracle: &mut Oracle, volume: u64, ids: &[WriteId]) -> Result<(), Violation> {
        let ticket = oracle.begin_read(volume, 0);
        end(oracle, &ticket, ids)
    }

    fn end(oracle: &mut Oracle, ticket: &ReadTicket, ids: &[WriteId]) -> Result<(), Violation> {
        let mut bytes = vec![0; ids.len() * SECTOR_BYTES];
        for (sector, (&id, content)) in ids.iter().zip(bytes.chunks_mut(SECTOR_BYTES)).enumerate() {
            if id != pattern::ZEROES {
                let place = SectorPlace {
                    volume: ticket.volume,
                    sector: sector as u64,
                };
                pattern::fill(content, id, place);
            }
        }
        oracle.end_read(ticket, Some(&bytes))
    }

    #[test]
    fn an_acknowledged_write_must_be_there_also_after_a_cut() {
        let (mut oracle, volume) = oracle();
        read(&mut oracle, volume, &[0; 8]).unwrap();
        let write = oracle.begin_write(volume, 0..2);
        oracle.end_write(&write, WriteEnd::Acknowledged);
        read(&mut oracle, volume, &[1, 1, 0]).unwrap();
        oracle.power_cut();
        read(&mut oracle, volume, &[1, 1, 0]).unwrap();
        read(&mut oracle, volume, &[1, 0]).unwrap_err();
    }

    #[test]
    fn only_what_was_not_written_since_may_be_lost() {
        let (mut oracle, volume) = oracle();
        assert!(!oracle.may_be_lost(volume, 0..8));
        let before = oracle.begin_write(volume, 0..8);
        oracle.damage();
        oracle.end_write(&before, WriteEnd::Acknowledged);
        assert!(oracle.may_be_lost(volume, 0..8), "it began before");
        let part = oracle.begin_write(volume, 0..7);
        oracle.end_write(&part, WriteEnd::Acknowledged);
        assert!(oracle.may_be_lost(volume, 0..8));
        let rest = oracle.begin_clear(volume, 7..8);
        oracle.end_write(&rest, WriteEnd::Failed);
        assert!(oracle.may_be_lost(volume, 0..8), "it failed");
        let rest = oracle.begin_clear(volume, 7..8);
        oracle.end_write(&rest, WriteEnd::Acknowledged);
        assert!(!oracle.may_be_lost(volume, 0..8));
        for ended in [WriteEnd::Acknowledged, WriteEnd::Failed] {
            let copy = oracle.begin_copy((volume, 0), (volume, 0), 8);
            assert!(oracle.may_be_lost(volume, 0..8), "it is being copied");
            oracle.end_copy(&copy, ended);
            assert!(oracle.may_be_lost(volume, 0..8), "a copy of what is lost");
            let all = oracle.begin_write(volume, 0..8);
            oracle.end_write(&all, WriteEnd::Acknowledged);
            assert!(!oracle.may_be_lost(volume, 0..8));
        }
    }

    #[test]
    fn an_unacknowledged_write_may_be_there_by_sector_and_then_stays() {
        let (mut oracle, volume) = oracle();
        oracle.begin_write(volume, 0..2);
        oracle.power_cut();
        read(&mut oracle, volume, &[1, 0]).unwrap();
        read(&mut oracle, volume, &[1, 0]).unwrap();
        read(&mut oracle, volume, &[0]).unwrap_err();
    }

    #[test]
    fn concurrent_writes_end_in_either_order_and_then_stay() {
        for winner in [1, 2] {
            let (mut oracle, volume) = oracle();
            let first = oracle.begin_write(volume, 0..1);
            let second = oracle.begin_write(volume, 0..1);
            read(&mut oracle, volume, &[2]).unwrap();
            read(&mut oracle, volume, &[0]).unwrap();
            oracle.end_write(&second, WriteEnd::Acknowledged);
            oracle.end_write(&first, WriteEnd::Acknowledged);
            read(&mut oracle, volume, &[winner]).unwrap();
            read(&mut oracle, volume, &[winner]).unwrap();
            read(&mut oracle, volume, &[3 - winner]).unwrap_err();
        }
    }

    #[test]
    fn a_later_write_replaces_both_of_two_concurrent_ones() {
        let (mut oracle, volume) = oracle();
        let first = oracle.begin_write(volume, 0..1);
        let second = oracle.begin_write(volume, 0..1);
        oracle.end_write(&first, WriteEnd::Acknowledged);
        oracle.end_write(&second, WriteEnd::Acknowledged);
        let third = oracle.begin_write(volume, 0..1);
        oracle.end_write(&third, WriteEnd::Acknowledged);
        read(&mut oracle, volume, &[1]).unwrap_err();
        read(&mut oracle, volume, &[2]).unwrap_err();
        read(&mut oracle, volume, &[3]).unwrap();
    }

    #[test]
    fn a_read_that_began_before_a_write_ended_may_see_old_or_new() {
        for seen in [0, 1] {
            let (mut oracle, volume) = oracle();
            let write = oracle.begin_write(volume, 0..1);
            let ticket = oracle.begin_read(volume, 0);
            oracle.end_write(&write, WriteEnd::Acknowledged);
            end(&mut oracle, &ticket, &[seen]).unwrap();
            read(&mut oracle, volume, &[0]).unwrap_err();
            read(&mut oracle, volume, &[1]).unwrap();
        }
    }

    #[test]
    fn a_failed_write_may_be_there_or_not_and_then_stays() {
        let (mut oracle, volume) = oracle();
        let failed = oracle.begin_write(volume, 0..1);
        oracle.end_write(&failed, WriteEnd::Failed);
        read(&mut oracle, volume, &[1]).unwrap();
        read(&mut oracle, volume, &[0]).unwrap_err();
    }

    #[test]
    fn what_was_cleared_is_zeroes_until_it_is_written() {
        let (mut oracle, volume) = oracle();
        let write = oracle.begin_write(volume, 0..2);
        oracle.end_write(&write, WriteEnd::Acknowledged);
        oracle.begin_clear(volume, 1..3);
        read(&mut oracle, volume, &[1, 0, 0]).unwrap();
        oracle.power_cut();
        read(&mut oracle, volume, &[1, 1, 0]).unwrap();
        read(&mut oracle, volume, &[1, 0]).unwrap_err();
        let again = oracle.begin_clear(volume, 0..2);
        oracle.end_write(&again, WriteEnd::Acknowledged);
        read(&mut oracle, volume, &[1]).unwrap_err();
        read(&mut oracle, volume, &[0, 1]).unwrap_err();
        read(&mut oracle, volume, &[0, 0, 0]).unwrap();
        let write = oracle.begin_write(volume, 0..1);
        oracle.end_write(&write, WriteEnd::Acknowledged);
        read(&mut oracle, volume, &[0]).unwrap_err();
        read(&mut oracle, volume, &[4, 0, 0]).unwrap();
    }

    #[test]
    fn two_reads_of_a_quiet_sector_agree_even_when_concurrent() {
        let (mut oracle, volume) = oracle();
        oracle.begin_write(volume, 0..1);
        oracle.power_cut();
        let (first, second) = (oracle.begin_read(volume, 0), oracle.begin_read(volume, 0));
        end(&mut oracle, &first, &[1]).unwrap();
        end(&mut oracle, &second, &[0]).unwrap_err();
    }
}
