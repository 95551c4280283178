//! The content of the logs: blocks and parity rows that cannot be judged by the data in place.

use crate::drives::{PageNumbers, Zone};
use crate::integrity::block::SUMS;
use crate::store::StripeRef;
use crate::store::address::ZoneAddress;
use crate::store::entry::{Intent, Item};
use crate::world::World;
use base::PhysPage;
use rustc_hash::FxHashSet;

/// What the logs hold.
#[derive(Default)]
pub(super) struct LogContents {
    /// Zone, and block of the zone.
    blocks: FxHashSet<(u32, u64)>,
    rows: FxHashSet<(StripeRef, u32)>,
    /// Zone, and number of the integrity block.
    sums: FxHashSet<(u32, u64)>,
}

impl LogContents {
    /// Takes up an item of the data log, of a pool with so many blocks to a page.
    pub fn item(&mut self, item: &Item, numbers: &PageNumbers, page_blocks: u64) {
        let (at, blocks) = match item {
            Item::Data { at, blocks } | Item::Zero { at, blocks } => (*at, u64::from(*blocks)),
            Item::InPlace { at, sums } => (*at, sums.len() as u64),
            Item::Sums(record) => {
                let first = u64::from(record.index) * SUMS as u64;
                let changed = record.changes.iter();
                changed.for_each(|(at, _)| self.block(record.zone, first + u64::from(*at)));
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
        self.sums.insert((zone, block / SUMS as u64));
    }

    /// Whether a log says what this block of a zone holds.
    pub fn has_block(&self, zone: u32, block: u64) -> bool {
        !self.blocks.is_empty() && self.blocks.contains(&(zone, block))
    }

    /// Whether a log may have changed anything in this row.
    pub fn has_row<W: World>(&self, zone: &Zone<W>, stripe: StripeRef, row: u32) -> bool {
        if self.blocks.is_empty() && self.rows.is_empty() {
            return false;
        }
        let first = zone.blocks_of(stripe).start + u64::from(row);
        let columns = 0..zone.shape.geometry.data_columns() as u64;
        let mut blocks = columns.map(|column| first + column * u64::from(zone.rows()));
        self.rows.contains(&(stripe, row))
            || blocks.any(|block| self.has_block(zone.shape.zone, block))
    }

    /// Whether a log changes any sum of this integrity block.
    pub fn has_sums(&self, zone: u32, index: u64) -> bool {
        self.sums.contains(&(zone, index))
    }
}
