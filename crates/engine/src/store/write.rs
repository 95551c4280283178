//! Writes: into the log, or around it where whole stripes are fresh.
//!
//! The caller holds the blocks of the volume against everybody (exclusive range).

use super::address::{StripeRef, ZoneAddress};
use super::change::{Change, PlaceWrite};
use super::counts::Purpose;
use super::entry::{Item, encode_items};
use super::index::{Block, Content};
use super::{BLOCK, Store};
use crate::drives::Zone;
use crate::error::PoolError;
use crate::integrity::Sum;
use crate::raid::Code;
use crate::ring::{Appended, Entry};
use crate::world::World;
use base::{BLOCK_BYTES, PhysPage, PoolOffset, Slice};
use futures_util::future::{join, join_all};
use std::rc::Rc;

/// What a run of blocks is to hold.
#[derive(Clone, Debug)]
pub enum Write {
    /// This data from that address on, whole blocks.
    Data(PoolOffset, Slice),
    /// Zeroes, that many blocks.
    Zero(PoolOffset, u64),
}

impl Write {
    fn blocks(&self) -> u64 {
        match self {
            Write::Data(_, data) => data.len() as u64 / BLOCK,
            Write::Zero(_, blocks) => *blocks,
        }
    }

    fn first(&self) -> u64 {
        match self {
            Write::Data(at, _) | Write::Zero(at, _) => at.0 / BLOCK,
        }
    }
}

impl<W: World> Store<W> {
    /// Makes `writes` durable in the log; reads see them when this ends.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now: what the blocks hold then is, sector
    /// by sector, what was there or what was to come.
    pub async fn write(&self, writes: Vec<Write>) -> Result<(), PoolError> {
        self.counts.add(|counts| &counts.commands, 1);
        let most = self.entry_bytes_max(&self.log);
        let writes = cut(writes, most);
        let appends = batches(&writes, most).into_iter().map(|batch| {
            let mut data = smallvec::SmallVec::new();
            let items: Vec<Item> = batch
                .iter()
                .map(|write| match write {
                    Write::Data(at, slice) => {
                        data.push(slice.clone());
                        Item::Data {
                            at: at.0 / BLOCK,
                            blocks: (slice.len() / BLOCK_BYTES) as u32,
                        }
                    }
                    Write::Zero(at, blocks) => Item::Zero {
                        at: at.0 / BLOCK,
                        blocks: *blocks as u32,
                    },
                })
                .collect();
            let entry = Entry {
                head: encode_items(&items),
                data,
            };
            self.log_batch(batch, entry)
        });
        if self.log_is_filling() {
            self.destager.set();
        }
        join_all(appends).await.into_iter().collect()
    }

    /// Makes one batch durable, when it is its turn, and what reads see. Each as soon as it is: a
    /// later one may need the room that an earlier one takes.
    async fn log_batch(&self, batch: &[Write], entry: Entry) -> Result<(), PoolError> {
        let blocks = batch.iter().map(|write| write.blocks() as usize).sum();
        let admitted = self.admit(blocks).await;
        let appended = self.append(entry).await?;
        self.note_logged(blocks);
        self.take_up_writes(batch, appended);
        drop(admitted);
        // What went over older entries takes no more room than they did.
        self.admit_next();
        Ok(())
    }

    /// Bytes of [`Write`]s that are durable together or not at all, at most.
    pub fn write_bytes_max(&self) -> usize {
        self.entry_bytes_max(&self.log)
    }

    /// What is durable in the log is what reads see.
    fn take_up_writes(&self, batch: &[Write], appended: Appended) {
        // The log's checksum is over all of the entry: that of a block, where it is the only one.
        let only = matches!(batch, [Write::Data(_, data)] if data.len() == BLOCK_BYTES);
        let known = appended.data_crc.filter(|_| only).map(Sum::of_crc);
        let hold = Rc::new(appended.hold);
        let now = self.world.now();
        let mut index = self.index.borrow_mut();
        for write in batch {
            let (first, blocks) = (write.first(), write.blocks());
            self.forget_lost(first..first + blocks);
            if !self.world.planted("cache not told of a write") {
                self.cache.invalidate(first..first + blocks);
            }
            for offset in 0..blocks {
                let content = match write {
                    Write::Data(_, data) => {
                        let data = data.slice(offset as usize * BLOCK_BYTES, BLOCK_BYTES);
                        Content::Data(Block::new(data, known))
                    }
                    Write::Zero(..) => Content::Zero,
                };
                let at = self.block_at(PoolOffset((first + offset) * BLOCK));
                index.insert(self.locate(&at), content, &hold, now, false);
            }
        }
    }

    async fn append(&self, entry: Entry) -> Result<Appended, PoolError> {
        // Before, for who needs the room; after, since others may wait behind it.
        self.see_to_room(&self.log);
        let appended = self.log.append(entry).await;
        self.see_to_room(&self.log);
        appended.map_err(|error| self.stop(format!("the log can't be written: {error}")))
    }

    /// Whether a run of one page has anything in it that a new owner must not see, or
    /// the log has for it from before.
    pub async fn needs_zeroing(&self, at: PoolOffset, blocks: u64) -> bool {
        let forgotten = self
            .world
            .planted("log forgotten when a page is used again");
        if !forgotten && self.was_just_freed(PhysPage(at.0 / self.drives.page_bytes())) {
            return true;
        }
        let first = self.block_at(at);
        let run = first.block..first.block + blocks;
        let pinned = self.integrity.pin(&first.zone.shape, run.clone()).await;
        let index = self.index.borrow();
        run.into_iter().any(|block| {
            let is_logged = !forgotten && index.get(first.zone.locate(block)).is_some();
            is_logged || pinned.get(block) != Sum::UNWRITTEN
        })
    }

    /// Writes pages that nobody maps yet, whole: stripes that they fill go in place
    /// at once, the rest through the log.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub async fn write_fresh(&self, at: PoolOffset, data: &Slice) -> Result<(), PoolError> {
        let start = self.block_at(at);
        let (zone, first) = (start.zone, start.block);
        let end = first + data.len() as u64 / BLOCK;
        let per_stripe = u64::from(zone.stripe_blocks());
        let mut around = Vec::new();
        let mut locks = Vec::new();
        let mut logged: Vec<(u64, u64)> = Vec::new();
        let mut block = first;
        while block < end {
            let stripe = zone.locate(block).stripe;
            let blocks = zone.blocks_of(stripe);
            let stop = blocks.end.min(end);
            let whole = block == blocks.start && stop == block + per_stripe;
            if whole {
                let lock = self.locks.lock(stripe).await;
                if self.may_bypass(stripe) {
                    locks.push(lock);
                    around.push(stripe);
                    block = stop;
                    continue;
                }
            }
            match logged.last_mut() {
                Some((_, last)) if *last == block => *last = stop,
                _ => logged.push((block, stop)),
            }
            block = stop;
        }
        let part = |from: u64, to: u64| {
            data.slice(
                (from - first) as usize * BLOCK_BYTES,
                (to - from) as usize * BLOCK_BYTES,
            )
        };
        let through = logged
            .into_iter()
            .map(|(from, to)| Write::Data(self.offset_of(&zone, from), part(from, to)));
        let through: Vec<Write> = through.collect();
        let around = around.into_iter().map(|stripe| {
            let blocks = zone.blocks_of(stripe);
            (stripe, part(blocks.start, blocks.end))
        });
        let around: Vec<(StripeRef, Slice)> = around.collect();
        let (through, around) = join(
            async {
                match through.is_empty() {
                    true => Ok(()),
                    false => self.write(through).await,
                }
            },
            self.write_around(&zone, around),
        )
        .await;
        drop(locks);
        through.and(around)
    }

    fn may_bypass(&self, stripe: StripeRef) -> bool {
        if self.world.planted("bypass over a live intent") {
            return !self.index.borrow().has(stripe);
        }
        if self.has_live_intent(stripe) {
            self.world.reached("live intent keeps a write in the log");
            return false;
        }
        !self.index.borrow().has(stripe)
    }

    /// Writes whole stripes in place, then their sums into the log. The caller holds
    /// the stripes.
    async fn write_around(
        &self,
        zone: &Rc<Zone<W>>,
        stripes: Vec<(StripeRef, Slice)>,
    ) -> Result<(), PoolError> {
        if stripes.is_empty() {
            return Ok(());
        }
        self.world.reached("whole stripes go around the log");
        let changes = stripes
            .iter()
            .map(|(stripe, data)| self.whole_stripe(zone, *stripe, data));
        let changes = join_all(changes).await;
        let bytes = stripes.iter().map(|(_, data)| data.len() as u64).sum();
        self.counts
            .add(|counts| &counts.bypasses_begun_bytes, bytes);
        self.write_in_place(&changes).await?;
        for (_, data) in &stripes {
            self.counts
                .add(|counts| &counts.bypassed_bytes, data.len() as u64);
            self.counts.add(|counts| &counts.whole_stripes, 1);
        }
        let items: Vec<Item> = changes
            .iter()
            .map(|change| Item::InPlace {
                at: self.offset_of(zone, change.sums[0].0).0 / BLOCK,
                sums: change.sums.iter().map(|(_, sum)| *sum).collect(),
            })
            .collect();
        let entry = Entry {
            head: encode_items(&items),
            data: Default::default(),
        };
        if self.world.planted("write around the log leaves no sums") {
            return Ok(());
        }
        let _begun = self.integrity.watermark.begin();
        let head_bytes = entry.head.len();
        let appended = self.append(entry).await?;
        self.note_logged_sums(head_bytes);
        for change in &changes {
            for (block, sum) in &change.sums {
                change.pinned.set(*block, *sum);
            }
            let blocks = zone.blocks_of(change.stripe);
            let first = self.pool_block(zone, blocks.start);
            let blocks = first..first + (blocks.end - blocks.start);
            self.forget_lost(blocks.clone());
            self.cache.invalidate(blocks);
        }
        self.settled.borrow_mut().push(Rc::new(appended.hold));
        self.keeper.set();
        Ok(())
    }

    async fn whole_stripe(&self, zone: &Rc<Zone<W>>, stripe: StripeRef, data: &Slice) -> Change<W> {
        let blocks = zone.blocks_of(stripe);
        let pinned = self.integrity.pin(&zone.shape, blocks.clone()).await;
        let mut change = Change::new(zone, stripe, pinned);
        change.sums = blocks
            .enumerate()
            .map(|(index, block)| {
                (
                    block,
                    Sum::of(&data.slice(index * BLOCK_BYTES, BLOCK_BYTES)),
                )
            })
            .collect();
        let geometry = zone.shape.geometry;
        let unit = geometry.unit_bytes as usize;
        let put = |place, data, purpose| PlaceWrite {
            place,
            row: 0,
            data,
            purpose,
        };
        if geometry.code == Code::Mirror {
            let places = geometry.mirror_places(usize::from(stripe.span));
            change.writes = places
                .map(|place| put(place, data.clone(), Purpose::DataWrite))
                .collect();
            return change;
        }
        let columns: Vec<Option<Slice>> = (0..geometry.data_columns())
            .map(|column| Some(data.slice(column * unit, unit)))
            .collect();
        let parity = self.parity_of(&columns, unit, geometry.code);
        let (p, q) = geometry.parity_places(u64::from(stripe.number), usize::from(stripe.span));
        for (column, data) in columns.into_iter().enumerate() {
            let place = zone.data_place(stripe, column);
            change
                .writes
                .extend(data.map(|data| put(place, data, Purpose::DataWrite)));
        }
        for (place, data) in [p, q].into_iter().zip(parity) {
            change
                .writes
                .extend(place.map(|place| put(place, data, Purpose::ParityWrite)));
        }
        change
    }
}

/// Runs cut to what one entry takes.
fn cut(writes: Vec<Write>, most: usize) -> Vec<Write> {
    let mut pieces = Vec::with_capacity(writes.len());
    for write in writes {
        match write {
            Write::Data(at, data) if data.len() > most => {
                let mut start = 0;
                while start < data.len() {
                    let len = most.min(data.len() - start);
                    pieces.push(Write::Data(at + start as u64, data.slice(start, len)));
                    start += len;
                }
            }
            other => pieces.push(other),
        }
    }
    pieces
}

/// Writes put together to entries.
fn batches(writes: &[Write], most: usize) -> Vec<&[Write]> {
    let mut batches = Vec::new();
    let mut rest = writes;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|write| {
            bytes += match write {
                Write::Data(_, data) => data.len(),
                Write::Zero(..) => 0,
            };
            bytes <= most
        });
        let (batch, later) = rest.split_at(fits.count().max(1));
        batches.push(batch);
        rest = later;
    }
    batches
}
