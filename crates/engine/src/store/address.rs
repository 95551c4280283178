//! The addresses of a pool, mapped to zones, stripes, rows and places on drives.
//!
//! Blocks of [`BLOCK_BYTES`] are counted here, not bytes: everything below the
//! volumes is a whole number of them.

use crate::drives::Zone;
use crate::raid::Code;
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset};
use std::ops::Range;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// One stripe unit on each drive of one span: what parity is over, and what is
/// locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StripeRef {
    /// The zone, by its number in the pool.
    pub zone: u32,
    /// Which stripe of the zone.
    pub number: u32,
    /// Which span of the group.
    pub span: u16,
}

/// Where a block lies in its stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InStripe {
    /// The stripe that the block lies in.
    pub stripe: StripeRef,
    /// Index of the block among the stripe's data blocks.
    pub index: u32,
}

/// Addresses in one zone.
pub(crate) trait ZoneAddress {
    /// Data blocks of a stripe.
    fn stripe_blocks(&self) -> u32;
    /// Blocks of a stripe unit: rows of a stripe.
    fn rows(&self) -> u32;
    /// Where block `block` of the zone lies.
    fn locate(&self, block: u64) -> InStripe;
    /// The zone's blocks that are in `stripe`.
    fn blocks_of(&self, stripe: StripeRef) -> Range<u64>;
    /// Where row `row` of `stripe` lies on each drive.
    fn on_drive(&self, stripe: StripeRef, row: u32) -> DriveOffset;
    /// Place in the group of the drive with data column `column`.
    fn data_place(&self, stripe: StripeRef, column: usize) -> usize;
    /// Whether there is parity to keep.
    fn has_parity(&self) -> bool;
}

impl<W: World> ZoneAddress for Zone<W> {
    fn stripe_blocks(&self) -> u32 {
        (self.shape.geometry.stripe_data_bytes() / BLOCK) as u32
    }

    fn rows(&self) -> u32 {
        (self.shape.geometry.unit_bytes / BLOCK) as u32
    }

    fn locate(&self, block: u64) -> InStripe {
        assert!(
            block < self.shape.blocks,
            "block {block} is past zone {}",
            self.shape.zone
        );
        let in_stripe = u64::from(self.stripe_blocks());
        let (linear, index) = (block / in_stripe, block % in_stripe);
        let spans = self.shape.geometry.spans as u64;
        InStripe {
            stripe: StripeRef {
                zone: self.shape.zone,
                number: (linear / spans) as u32,
                span: (linear % spans) as u16,
            },
            index: index as u32,
        }
    }

    fn blocks_of(&self, stripe: StripeRef) -> Range<u64> {
        let spans = self.shape.geometry.spans as u64;
        let linear = u64::from(stripe.number) * spans + u64::from(stripe.span);
        let in_stripe = u64::from(self.stripe_blocks());
        let first = linear * in_stripe;
        first..(first + in_stripe).min(self.shape.blocks)
    }

    fn on_drive(&self, stripe: StripeRef, row: u32) -> DriveOffset {
        let unit = self.shape.geometry.unit_bytes;
        self.data + (u64::from(stripe.number) * unit + u64::from(row) * BLOCK)
    }

    fn data_place(&self, stripe: StripeRef, column: usize) -> usize {
        let geometry = self.shape.geometry;
        geometry.data_place(u64::from(stripe.number), usize::from(stripe.span), column)
    }

    fn has_parity(&self) -> bool {
        self.shape.geometry.code != Code::Mirror
    }
}
