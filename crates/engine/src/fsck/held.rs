//! The content of the logs: blocks and parity rows that cannot be judged by the data in place.

use crate::drives::{PageNumbers, Zone};
use crate::integrity::block::SUMS;
use crate::layout::ZoneShape;
use crate::store::StripeRef;
use crate::store::address::ZoneAddress;
use crate::store::entry::{Intent, Item};
use crate::world::World;
use base::PhysPage;
use rustc_hash::{FxHashMap, FxHashSet};

/// What the logs hold.
#[derive(Default)]
pub(super) struct LogContents {
    /// Zone, and block of the zone.
    blocks: FxHashSet<(u32, u64)>,
    rows: FxHashSet<(StripeRef, u32)>,
    /// Sums that records have, by zone and number of the integrity block.
    records: FxHashMap<(u32, u64), FxHashSet<u16>>,
}

impl LogContents {
    /// Takes up an item of the data log, of a pool with so many blocks to a page.
    pub fn item(&mut self, item: &Item, numbers: &PageNumbers, page_blocks: u64) {
        let (at, blocks) = match item {
            Item::Data { at, blocks } | Item::Zero { at, blocks } => (*at, u64::from(*blocks)),
            Item::InPlace { at, sums } => (*at, sums.len() as u64),
            Item::Sums(record) => {
                let places = record.changes.iter().map(|(at, _)| *at);
                let of = (record.zone, u64::from(record.index));
                self.records.entry(of).or_default().extend(places);
                return;
            }
        };
        for block in at..at.saturating_add(blocks) {
            if let Some((zone, page)) = numbers.place(PhysPage(block / page_blocks)) {
                self.block(zone, page * page_blocks + block % page_blocks);
            }
        }
    }

    /// Takes up a stripe's part of an intent.
    pub fn intent(&mut self, intent: &Intent) {
        for (_, row, rows) in &intent.writes {
            let rows = *row..row.saturating_add(*rows);
            self.rows.extend(rows.map(|row| (intent.stripe, row)));
        }
        for (block, _) in &intent.sums {
            self.block(intent.stripe.zone, *block);
        }
    }

    fn block(&mut self, zone: u32, block: u64) {
        self.blocks.insert((zone, block));
    }

    /// Whether a log says what this block of a zone holds.
    pub fn has_block(&self, zone: &ZoneShape, block: u64) -> bool {
        if self.is_empty() {
            return false;
        }
        let (index, at) = zone.sums.place(block);
        let record = self.records.get(&(zone.zone, index));
        self.blocks.contains(&(zone.zone, block))
            || record.is_some_and(|places| places.contains(&(at as u16)))
    }

    fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.records.is_empty()
    }

    /// Whether a log may have changed anything in this row.
    pub fn has_row<W: World>(&self, zone: &Zone<W>, stripe: StripeRef, row: u32) -> bool {
        if self.is_empty() && self.rows.is_empty() {
            return false;
        }
        let first = zone.blocks_of(stripe).start + u64::from(row);
        let columns = 0..zone.shape.geometry.data_columns() as u64;
        let mut blocks = columns.map(|column| first + column * u64::from(zone.rows()));
        self.rows.contains(&(stripe, row)) || blocks.any(|block| self.has_block(&zone.shape, block))
    }

    /// Whether a log changes any sum of this integrity block.
    pub fn has_sums(&self, zone: &ZoneShape, index: u64) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut blocks = (0..SUMS).filter_map(|at| zone.sums.block_of(index, at));
        self.records.contains_key(&(zone.zone, index))
            || blocks.any(|block| self.blocks.contains(&(zone.zone, block)))
    }
}
