//! Loading blocks of sums into RAM, and evicting them.

use super::areas::{Areas, BothSlots};
use super::block::{self, BlockId, SUMS, Version};
use super::held::Held;
use super::kept::Kept;
use super::record::Found;
use super::sums::Sums;
use super::{Cached, Integrity, Slot, Sum, key};
use crate::drive::{DriveError, DriveErrorKind};
use crate::drives::{Doubt, DriveFault, Member, Verdict};
use crate::drives::{EventKind, Mended, Zone};
use crate::world::World;
use base::{BLOCK_BYTES, Slice};
use futures_channel::oneshot;
use futures_util::future::join_all;
use rustc_hash::FxHashSet;
use std::rc::Rc;
use std::time::Duration;

/// How often, and how far apart, sums are asked for that only a silent drive has.
const TRIES: u32 = 8;
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// Blocks that may go out of RAM for one that comes, looked at: where all were used lately, RAM
/// holds a few more than the budget until the clock has come by.
const EVICTION_STEPS_OF_LOAD: usize = 64;

/// What the copies of a block say.
struct FoundSums {
    version: Version,
    sums: Sums,
    /// Copies that do not have that version, or not both slots: place, pair in the area.
    stale: Vec<(usize, u64)>,
    /// No copy is whole.
    doubtful: bool,
    /// Of a copy with that version both slots could be read: what is not there was torn, or
    /// never written.
    is_read: bool,
}

/// What a flush has to do for a block that has just been loaded.
enum Todo {
    /// These places get what a whole copy has.
    Behind(Vec<usize>),
    /// No copy is whole: all are written anew.
    Anew,
}

/// What a copy says: the newest of its slots, and whether both are there.
struct Pair {
    version: Version,
    sums: Sums,
    whole: bool,
    /// Both slots could be read.
    is_read: bool,
}

impl<W: World> Integrity<W> {
    /// Reads both slots of a copy: at once, as they are near, and each by itself where
    /// something between them, or one of them, can't be read.
    async fn read_slots(
        &self,
        zone: &Zone<W>,
        member: &Member<W>,
        pair: u64,
    ) -> Result<BothSlots, DriveError> {
        let (buffers, slots) = (self.world.buffers(), zone.shape.slots);
        let even = zone.shape.slot_at(pair, 0);
        let error = match member.read(even, buffers.data(slots.span_bytes())).await {
            Ok(buf) => {
                let span = buf.freeze();
                let slot = |at: u64| Some(span.slice(at as usize, BLOCK_BYTES));
                return Ok([slot(0), slot(slots.apart())]);
            }
            Err(error) => error,
        };
        if error.kind != DriveErrorKind::Media {
            return Err(error);
        }
        let mut found = [None, None];
        for (slot, found) in (0..).zip(&mut found) {
            let at = zone.shape.slot_at(pair, slot);
            let read = member.read(at, buffers.data(BLOCK_BYTES)).await;
            *found = read.ok().map(|buf| buf.freeze());
        }
        if found.iter().any(Option::is_some) {
            self.world.reached("slots of sums read one by one");
        }
        Ok(found)
    }

    /// Both slots of a copy: out of `areas`, or read.
    async fn slots_of(
        &self,
        zone: &Zone<W>,
        member: &Member<W>,
        (place, pair): (usize, u64),
        areas: &Areas,
    ) -> Result<BothSlots, DriveError> {
        match areas.slots(&zone.shape, place, pair) {
            Some(slots) => Ok(slots),
            None => self.read_slots(zone, member, pair).await,
        }
    }

    /// Both slots of a copy that is whole and of that version, none of those at `behind`. `areas` may
    /// have the copies as the drives have them.
    pub(super) async fn whole_pair(
        &self,
        zone: &Zone<W>,
        (index, version): (u64, u64),
        behind: &[usize],
        areas: &Areas,
    ) -> Option<[Slice; 2]> {
        let id = self.block_id(zone, index);
        for (place, pair) in zone.shape.copies(index) {
            let member = zone.place(place);
            if behind.contains(&place) || !member.is_readable(zone.shape.zone) {
                continue;
            }
            let read = self.slots_of(zone, &member, (place, pair), areas);
            let Ok(slots) = read.await else {
                continue;
            };
            let is_right = self.is_byteless()
                || newest_of_pair(id, &slots)
                    .is_some_and(|pair| pair.whole && pair.version.number == version);
            if let ([Some(even), Some(odd)], true) = (slots, is_right) {
                return Some([even, odd]);
            }
        }
        None
    }

    pub(super) fn block_id(&self, zone: &Zone<W>, index: u64) -> BlockId {
        BlockId {
            pool: self.drives.identity().lane_uuid(),
            zone: zone.shape.zone,
            incarnation: zone.shape.incarnation,
            index: index as u32,
        }
    }

    /// The block in RAM; read when it is not there. Callers at the same time share
    /// the read.
    pub(super) async fn cached(&self, zone: u32, index: u64) -> Rc<Cached> {
        let key = key(zone, index);
        loop {
            let wait = {
                let mut slots = self.slots.borrow_mut();
                match slots.get_mut(&key) {
                    Some(Slot::Loaded(cached)) => {
                        cached.used.set(true);
                        return Rc::clone(cached);
                    }
                    Some(Slot::Loading(waiting)) => {
                        let (done, wait) = oneshot::channel();
                        waiting.push(done);
                        Some(wait)
                    }
                    None => {
                        slots.insert(key, Slot::Loading(Vec::new()));
                        None
                    }
                }
            };
            match wait {
                // Whoever reads it has ended, and it is there now.
                Some(wait) => drop(wait.await),
                None => return self.load(zone, index, &Areas::default()).await,
            }
        }
    }

    /// Loads a block that is marked so. `areas` may have its copies as the drives have them.
    pub(super) async fn load(&self, number: u32, index: u64, areas: &Areas) -> Rc<Cached> {
        let Some(zone) = self.drives.zone(number) else {
            panic!("zone {number} is not in use, and its checksums were asked for")
        };
        let mut found = self.read_with_patience(&zone, index, areas).await;
        if let Some(found) = found.as_mut().filter(|_| self.is_byteless()) {
            // More may have been laid out there meanwhile.
            found.sums = self.kept_pair(&zone, index).sums;
        }
        let (record, old) = self.found_of(key(number, index), found.as_ref());
        let base = record.as_ref().map(|found| found.record.base);
        let block = match found {
            Some(found) => self.judge(&zone, index, found, base),
            None => {
                self.note_lost(&zone, index);
                // Above anything that may come back.
                let number = (self.drives.epoch() << 32) | 1 << 31;
                let version = Version { number, up_to: 0 };
                (version, lost(), Todo::Anew)
            }
        };
        let cached = self.insert(number, index, block, record);
        if let Some(old) = old.filter(|_| cached.dirty.get()) {
            // Some copy may have only what the record is on top of, until it is put right.
            cached.set_record(old);
        }
        cached
    }

    /// The record that a replay has found of a block, and, where the drives have all of it, what
    /// holds it in the log.
    fn found_of(&self, key: u64, on_drives: Option<&FoundSums>) -> (Option<Found>, Option<Held>) {
        let Some(found) = self.records.take_found(key) else {
            return (None, None);
        };
        let newest = found.record.newest;
        if on_drives.is_none_or(|block| block.version.number <= newest) {
            return (Some(found), None);
        }
        self.world.reached("record of sums older than its block");
        match self.world.planted("old record of sums taken") {
            true => (Some(found), None),
            false => (None, Some(found.held)),
        }
    }

    /// What counts of what the drives have of a block, beside a record on top of version `base`.
    fn judge(
        &self,
        zone: &Zone<W>,
        index: u64,
        mut found: FoundSums,
        base: Option<u64>,
    ) -> (Version, Sums, Todo) {
        self.note_stale(zone, &found);
        // A crash tears a slot, and does not make it unreadable: that one may have been
        // whole, and newer than what the logs have.
        let key = key(zone.shape.zone, index);
        let torn = self.may_be_torn.borrow().contains(&key)
            && (found.is_read || self.world.planted("unreadable sums taken for torn"));
        // The record says which version was the last one that is durable.
        let is_base = base == Some(found.version.number);
        let is_behind = base.is_some_and(|base| base > found.version.number);
        let is_doubted = found.doubtful && !torn && !is_base;
        if (is_doubted && !self.world.planted("one slot of sums believed")) || is_behind {
            self.world.reached("integrity block doubted");
            // The newer slot may have cleared what this one still has: data of an
            // owner before, whole and with its sum.
            self.note_lost(zone, index);
            found.sums = lost();
        }
        let todo = match found.doubtful || is_behind {
            true => Todo::Anew,
            false => Todo::Behind(found.stale.iter().map(|(place, _)| *place).collect()),
        };
        (found.version, found.sums, todo)
    }

    /// The best that the copies say. A drive that does not answer may have a whole one:
    /// without sums nothing goes on, and nothing is given up. It is asked again for a while,
    /// and then the pool stops.
    async fn read_with_patience(
        &self,
        zone: &Zone<W>,
        index: u64,
        mut areas: &Areas,
    ) -> Option<FoundSums> {
        let mut tries = 0;
        let (mut doubt, nothing) = (Doubt::default(), Areas::default());
        loop {
            let began = self.world.now();
            let found = self.read_copies(zone, index, areas).await;
            let is_certain = found.as_ref().is_some_and(|found| !found.doubtful);
            if is_certain || self.drives.check_failure().is_err() {
                return found;
            }
            if !areas.is_empty() {
                // From here on the drives are asked.
                areas = &nothing;
                continue;
            }
            let places = zone.group.places();
            let member = match doubt.judge(&self.world, &places, began).await {
                Verdict::Away(member) => member,
                Verdict::LookAgain => continue,
                Verdict::Damaged => return found,
            };
            tries += 1;
            if tries == TRIES {
                self.drives.stop_without(&member);
                return found;
            }
            self.world.reached("sums of a silent drive asked for again");
            self.world.sleep(TRY_AGAIN).await;
        }
    }

    fn insert(
        &self,
        zone: u32,
        index: u64,
        (version, sums, todo): (Version, Sums, Todo),
        record: Option<Found>,
    ) -> Rc<Cached> {
        let up_to = record.as_ref().map_or(0, |found| found.record.up_to);
        let up_to = version.up_to.max(up_to);
        let cached = Rc::new(Cached::new((zone, index), version.number, up_to, sums));
        match todo {
            Todo::Behind(places) if !places.is_empty() => cached.set_behind(places, &self.dirty),
            Todo::Behind(_) => {}
            Todo::Anew => cached.set_anew(&self.dirty),
        }
        if let Some(found) = record {
            self.world.reached("record of sums taken up");
            cached.take_up(found, &self.dirty);
        }
        let key = key(zone, index);
        let before = self
            .slots
            .borrow_mut()
            .insert(key, Slot::Loaded(Rc::clone(&cached)));
        self.clock.borrow_mut().push_back(key);
        if let Some(Slot::Loading(waiting)) = before {
            for done in waiting {
                let _ = done.send(());
            }
        }
        self.evict(EVICTION_STEPS_OF_LOAD);
        cached
    }

    /// Reads all copies; none when none of them is whole.
    async fn read_copies(&self, zone: &Zone<W>, index: u64, areas: &Areas) -> Option<FoundSums> {
        self.count(|stats| stats.loads += 1);
        let id = self.block_id(zone, index);
        let copies: Vec<(usize, u64)> = zone.shape.copies(index).collect();
        let reads = copies.iter().map(async |(place, pair)| {
            let member = zone.place(*place);
            if !member.is_readable(zone.shape.zone) {
                return None;
            }
            let slots = self.slots_of(zone, &member, (*place, *pair), areas);
            let newest = match slots.await {
                Ok(_) if self.is_byteless() => Some(self.kept_pair(zone, index)),
                Ok(slots) => newest_of_pair(id, &slots),
                Err(error) => {
                    if error.kind == DriveErrorKind::Gone {
                        let fault = DriveFault { member, error };
                        self.drives.absorb_read(fault).await;
                        return None;
                    }
                    None
                }
            };
            Some((*place, *pair, newest))
        });
        let found: Vec<_> = join_all(reads).await.into_iter().flatten().collect();
        let versions = found
            .iter()
            .filter_map(|(_, _, pair)| pair.as_ref().map(|pair| pair.version));
        let version = match self.world.planted("integrity read from one copy") {
            true => versions.take(1).next()?,
            false => versions.max()?,
        };
        let is_newest =
            |pair: &Option<Pair>| pair.as_ref().is_some_and(|pair| pair.version == version);
        let is_whole = |pair: &Option<Pair>| pair.as_ref().is_some_and(|pair| pair.whole);
        let stale = found
            .iter()
            .filter(|(_, _, pair)| !is_newest(pair) || !is_whole(pair))
            .map(|(place, pair, _)| (*place, *pair))
            .collect();
        let doubtful = !found.iter().any(|(_, _, pair)| is_whole(pair));
        let is_both = |pair: &Option<Pair>| pair.as_ref().is_some_and(|pair| pair.is_read);
        let mut pairs = found.iter().map(|(_, _, pair)| pair);
        let is_read = pairs.any(|pair| is_newest(pair) && is_both(pair));
        let sums = found
            .into_iter()
            .find(|(_, _, pair)| is_newest(pair))?
            .2?
            .sums;
        Some(FoundSums {
            version,
            sums,
            stale,
            doubtful,
            is_read,
        })
    }

    fn note_stale(&self, zone: &Zone<W>, found: &FoundSums) {
        for (place, pair) in &found.stale {
            self.world.reached("integrity copy mended");
            self.count(|stats| stats.mended += 1);
            let member = zone.place(*place);
            self.drives
                .mended(&member.name, Mended::Sums, zone.shape.slot_at(*pair, 0));
        }
    }

    fn note_lost(&self, zone: &Zone<W>, index: u64) {
        if self.drives.check_failure().is_err() {
            // Nothing can be read of a pool that has stopped: that is no loss.
            return;
        }
        self.world.reached("integrity block lost");
        self.count(|stats| stats.lost += 1);
        let (first, last) = zone.shape.sums.extent(index);
        let text = format!(
            "no copy of the checksums of blocks {} to {} of zone {} can be read: these blocks count as lost; \
             `ashlar fsck --deep` names the volume",
            first, last, zone.shape.zone
        );
        self.drives
            .event_of_loss(EventKind::BlockLost, text, SUMS as u64);
    }

    /// What a copy would say, where drives keep no bytes.
    fn kept_pair(&self, zone: &Zone<W>, index: u64) -> Pair {
        let mut kept = self.kept.borrow_mut();
        let number = zone.shape.zone;
        let block = kept.block(
            (number, index),
            zone.shape.sums.count(),
            self.first_version(),
        );
        let version = Version {
            number: block.version,
            up_to: 0,
        };
        Pair {
            version,
            sums: block.sums.clone(),
            whole: true,
            is_read: true,
        }
    }

    /// Has as many blocks in RAM as the budget lets, of those that speak for data, evenly over the
    /// zones. Only where buffers have no bytes.
    ///
    /// # Panics
    /// Where they have.
    pub(crate) fn warm(&self) {
        assert!(self.is_byteless(), "checksums with bytes come from drives");
        let cold = self.kept.borrow().in_use();
        let cold: Vec<_> = cold
            .into_iter()
            .filter(|(zone, index)| !self.slots.borrow().contains_key(&key(*zone, *index)))
            .collect();
        let there_are = cold.len() as u128;
        let room = self
            .budget_blocks
            .get()
            .saturating_sub(self.slots.borrow().len()) as u128;
        let room = room.min(there_are);
        for (at, (number, index)) in (0..).zip(cold) {
            // One of each so many: in the end as many as there is room for.
            if (at + 1) * room / there_are == at * room / there_are {
                continue;
            }
            if let Some(zone) = self.drives.zone(number) {
                let Pair { version, sums, .. } = self.kept_pair(&zone, index);
                let todo = Todo::Behind(Vec::new());
                self.insert(number, index, (version, sums, todo), None);
            }
        }
    }

    /// A block goes out of RAM: what the drives would have of it is kept.
    fn keep(&self, cached: &Cached) {
        if self.is_byteless() {
            let Some(zone) = self.drives.zone(cached.zone) else {
                return;
            };
            let place = (cached.zone, u64::from(cached.index));
            let (version, sums) = (cached.version.get(), cached.sums.borrow().clone());
            let mut kept = self.kept.borrow_mut();
            *kept.block(place, zone.shape.sums.count(), version) = Kept { version, sums };
        }
    }

    /// Sends blocks out of RAM that are clean, not in use, and were not looked at
    /// since the clock came by last. Looks at `most` blocks.
    pub(super) fn evict(&self, most: usize) {
        let mut clock = self.clock.borrow_mut();
        let mut slots = self.slots.borrow_mut();
        let mut steps = most.min(2 * clock.len());
        while slots.len() > self.budget_blocks.get() && steps > 0 {
            steps -= 1;
            let Some(key) = clock.pop_front() else { return };
            let Some(Slot::Loaded(cached)) = slots.get(&key) else {
                continue;
            };
            if is_idle(cached) && !cached.used.replace(false) {
                self.keep(cached);
                slots.remove(&key);
                self.world.reached("integrity block evicted");
            } else {
                clock.push_back(key);
            }
        }
    }

    /// Reads all copies of a zone's sums again and puts stale ones right, but for
    /// blocks that are being changed now: a flush writes those to all copies.
    pub async fn scrub_zone(&self, zone: u32) {
        let Some(of_zone) = self.drives.zone(zone) else {
            return;
        };
        let shape = of_zone.shape;
        let blocks = shape.sums.count();
        self.drop_idle(zone, blocks);
        for index in 0..blocks {
            // One that is there is being changed, or somebody has just read all its copies.
            let is_there = || self.slots.borrow().contains_key(&key(zone, index));
            if !is_there() {
                self.load_ahead(&of_zone, index..blocks).await;
            }
            if !is_there() {
                drop(self.cached(zone, index).await);
            }
        }
    }

    /// Sends the blocks of a zone, so many, out of RAM, but for those that are dirty or in use.
    fn drop_idle(&self, zone: u32, blocks: u64) {
        let mut slots = self.slots.borrow_mut();
        let mut dropped = FxHashSet::default();
        for key in (0..blocks).map(|index| key(zone, index)) {
            let Some(Slot::Loaded(cached)) = slots.get(&key) else {
                continue;
            };
            if is_idle(cached) {
                self.keep(cached);
                slots.remove(&key);
                dropped.insert(key);
            }
        }
        if !dropped.is_empty() {
            let mut clock = self.clock.borrow_mut();
            clock.retain(|key| !dropped.contains(key));
        }
    }
}

/// Whether a block is clean, and only RAM has it.
fn is_idle(cached: &Rc<Cached>) -> bool {
    !cached.dirty.get() && Rc::strong_count(cached) == 1
}

fn newest_of_pair(id: BlockId, slots: &BothSlots) -> Option<Pair> {
    let is_read = slots.iter().all(Option::is_some);
    let slots: Vec<_> = slots
        .iter()
        .filter_map(|slot| block::decode(id, slot.as_ref()?.bytes()?))
        .collect();
    let whole = match &slots[..] {
        [(first, _), (second, _)] => first.number.abs_diff(second.number) == 1,
        _ => false,
    };
    let newest = slots.into_iter().max_by_key(|(version, _)| *version);
    newest.map(|(version, sums)| Pair {
        version,
        sums: Sums::Each(sums),
        whole,
        is_read,
    })
}

fn lost() -> Sums {
    Sums::Each(Box::new([Sum::LOST; SUMS]))
}
