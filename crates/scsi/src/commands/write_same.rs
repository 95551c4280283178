//! WRITE SAME (SBC-3): one block, over and over.
//!
//! Invariants:
//! - Zeroes are never written out: the blocks are cleared, and a thin unit gives the
//!   pages back, asked to or not.
//! - Anything else is written whatever the UNMAP bit says: a read gives the block that
//!   was sent, and what is unmapped reads as zeroes (LBPRZ). It goes in pieces, and
//!   other commands in between.

use crate::cdb::{WRITE_SAME_PIECE_BYTES, WriteSame};
use crate::commands::transfer::{failure, place};
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use base::{BufPool, SECTOR_BYTES, Slice, VolumeOffset};
use engine::{IoError, World};

/// Writes `block` to all of the blocks, or zeroes when the order has no data.
///
/// # Errors
/// 24/00 for UNMAP of a thick unit and for no blocks at all, 0E/03 for data-out that is not one block, 21/00 for blocks that are not there.
pub(crate) async fn write_same<W: World>(
    unit: &LogicalUnit<W>,
    order: WriteSame,
    block: &Slice,
    buffers: &BufPool,
) -> Result<(), Sense> {
    if order.unmap && unit.unmap_blocks().is_none() {
        return Err(Sense::invalid_field(1, Some(3)));
    }
    let at = place(unit, order.extent)?;
    if order.extent.blocks == 0 {
        // As WSNZ says: a length that was forgotten must not cost the whole unit.
        return Err(Sense::invalid_field(order.length_byte, None));
    }
    if order.has_data && block.len() != SECTOR_BYTES {
        return Err(Sense::WRONG_DATA_LENGTH);
    }
    let len_bytes = order.extent.bytes();
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let written = match !order.has_data || block.bytes().is_some_and(is_zero) {
        true => unit.volume().clear(at, len_bytes).await,
        false => repeat(unit, at, len_bytes, block, buffers).await,
    };
    written.map_err(|error| failure(&error, Sense::write_error))
}

async fn repeat<W: World>(
    unit: &LogicalUnit<W>,
    at: VolumeOffset,
    len_bytes: u64,
    block: &Slice,
    buffers: &BufPool,
) -> Result<(), IoError> {
    let mut piece = buffers.data(len_bytes.min(WRITE_SAME_PIECE_BYTES) as usize);
    if let (Some(space), Some(block)) = (piece.bytes_mut(), block.bytes()) {
        for place in space.chunks_mut(SECTOR_BYTES) {
            place.copy_from_slice(block);
        }
    }
    let piece = piece.freeze();
    let (mut from, end) = (at.0, at.0 + len_bytes);
    while from < end {
        // Whole pages are written fastest, so pieces end where pages do.
        let next = (from / WRITE_SAME_PIECE_BYTES + 1) * WRITE_SAME_PIECE_BYTES;
        let to = next.min(end);
        let data = piece.slice(0, (to - from) as usize);
        unit.volume().write(VolumeOffset(from), data).await?;
        from = to;
    }
    Ok(())
}
