//! The check of the data itself: every block of every mapped page against its sum, copies and
//! parity against the data.
//!
//! A row is looked at when a mapped page has something in it. Then the blocks of free
//! pages in it count, too: the parity is over them. Rows that a log may have changed
//! are judged block by block, without their parity; what a log has anew, not at all.

use super::held::LogContents;
use super::map::Owners;
use super::report::Severity;
use super::subject::Subject;
use super::sums::Sums;
use crate::drives::Member;
use crate::drives::Zone;
use crate::raid::Code;
use crate::store::StripeRef;
use crate::store::address::ZoneAddress;
use crate::world::World;
use base::{BLOCK_BYTES, BufPool, Slice};
use futures_util::future::join_all;
use std::ops::Range;

/// Stripes read at once.
const STRIPES_AT_ONCE: usize = 8;

/// A zone, and what is needed to judge what lies in it.
pub(super) struct Scope<'a, W: World> {
    pub subject: &'a Subject<W>,
    pub zone: &'a Zone<W>,
    pub sums: &'a Sums,
    pub held: &'a LogContents,
    pub owners: &'a Owners,
}

/// What a drive holds in one row.
#[derive(Clone)]
pub(super) enum Content {
    Block(Slice),
    /// The drive is not there, or not whole in this zone.
    Absent,
    Unreadable(String),
}

/// A stripe as it lies on the drives of its span, in some of its rows.
pub(super) struct Stripe {
    pub stripe: StripeRef,
    rows: Range<u32>,
    /// By place in the span, by row from the first.
    units: Vec<Vec<Content>>,
}

impl Stripe {
    /// What the drive at a place in the group holds in a row.
    pub fn block(&self, place: usize, row: u32) -> &Content {
        let units = &self.units[place % self.units.len()];
        &units[(row - self.rows.start) as usize]
    }
}

impl<W: World> Scope<'_, W> {
    /// Looks at all stripes.
    pub async fn check(&self) {
        let spans = self.zone.shape.geometry.spans as u64;
        let count = self.zone.shape.blocks / u64::from(self.zone.stripe_blocks());
        let stripes: Vec<StripeRef> = (0..count)
            .map(|linear| StripeRef {
                zone: self.zone.shape.zone,
                number: (linear / spans) as u32,
                span: (linear % spans) as u16,
            })
            .collect();
        for some in stripes.chunks(STRIPES_AT_ONCE) {
            let read = join_all(some.iter().map(|stripe| self.read_stripe(*stripe))).await;
            // In their order, so that neighbours are found next to each other.
            for stripe in read.into_iter().flatten() {
                for row in stripe
                    .rows
                    .clone()
                    .filter(|row| self.has_something(stripe.stripe, *row))
                {
                    self.check_row(&stripe, row);
                }
            }
            let blocks = some.len() as u64 * u64::from(self.zone.stripe_blocks());
            self.subject.progress.did(blocks);
        }
    }

    fn check_row(&self, stripe: &Stripe, row: u32) {
        match self.zone.shape.geometry.code {
            Code::Mirror => self.check_copies(stripe, row),
            Code::P | Code::PQ => self.check_columns(stripe, row),
        }
    }

    /// The zone's block in a column of a row.
    pub fn block(&self, stripe: StripeRef, column: usize, row: u32) -> u64 {
        let first = self.zone.blocks_of(stripe).start;
        first + column as u64 * u64::from(self.zone.rows()) + u64::from(row)
    }

    /// Whether a block of a mapped page says what lies in place.
    pub fn counts(&self, block: u64) -> bool {
        let zone = self.zone.shape.zone;
        self.sums.of(block).is_written()
            && self.owners.is_mapped(zone, block)
            && !self.held.has_block(&self.zone.shape, block)
    }

    fn has_something(&self, stripe: StripeRef, row: u32) -> bool {
        let columns = 0..self.zone.shape.geometry.data_columns();
        let mut blocks = columns.map(|column| self.block(stripe, column, row));
        blocks.any(|block| self.counts(block))
    }

    fn count_skipped(&self, stripe: StripeRef) {
        let zone = self.zone.shape.zone;
        let skipped = self
            .zone
            .blocks_of(stripe)
            .filter(|block| {
                self.held.has_block(&self.zone.shape, *block) && self.owners.is_mapped(zone, *block)
            })
            .count();
        self.subject
            .count(|counts| counts.skipped_blocks += skipped as u64);
    }

    /// Reads the rows of a stripe that matter, from all drives of its span.
    async fn read_stripe(&self, stripe: StripeRef) -> Option<Stripe> {
        self.count_skipped(stripe);
        let rows = 0..self.zone.rows();
        let first = rows.clone().find(|row| self.has_something(stripe, *row))?;
        let last = rows.rev().find(|row| self.has_something(stripe, *row))?;
        let rows = first..last + 1;
        let places = self
            .zone
            .shape
            .geometry
            .span_places(usize::from(stripe.span));
        let units = places.map(|place| self.read_unit(stripe, place, rows.clone()));
        let units = join_all(units).await;
        Some(Stripe {
            stripe,
            rows,
            units,
        })
    }

    async fn read_unit(&self, stripe: StripeRef, place: usize, rows: Range<u32>) -> Vec<Content> {
        let member = self.zone.place(place);
        if !member.is_readable(self.zone.shape.zone) {
            return vec![Content::Absent; rows.len()];
        }
        let at = self.zone.on_drive(stripe, rows.start);
        let len = rows.len() * BLOCK_BYTES;
        let (bytes, bad) = self.subject.read_blocks(&member, at, len).await;
        let whole = self.buffers().copy_of(&bytes).freeze();
        let block = |row: usize| match bad.iter().find(|(index, _)| *index == row) {
            Some((_, why)) => Content::Unreadable(why.clone()),
            None => Content::Block(whole.slice(row * BLOCK_BYTES, BLOCK_BYTES)),
        };
        (0..rows.len()).map(block).collect()
    }

    pub fn buffers(&self) -> &BufPool {
        self.subject.world.buffers()
    }

    /// What is wrong with a block on a drive.
    pub fn damaged(&self, stripe: StripeRef, place: usize, row: u32, text: &str) {
        let member: &Member<W> = &self.zone.place(place);
        let at = self.zone.on_drive(stripe, row);
        self.subject
            .say_at(Severity::Damage, member, at, BLOCK_BYTES as u64, text);
    }

    /// A block of a volume that nobody can give.
    pub fn lost(&self, block: u64) {
        if let Some(run) = self.owners.place(self.zone.shape.zone, block) {
            let text = "it is lost: more of its stripe is damaged than its level covers";
            let mut findings = self.subject.findings.borrow_mut();
            findings.push_run(Severity::Loss, run, text.to_owned());
        }
    }
}
