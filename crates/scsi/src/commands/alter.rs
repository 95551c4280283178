//! COMPARE AND WRITE, ORWRITE, WRITE ATOMIC (SBC-3, SBC-4) and WRITE AND VERIFY.
//!
//! The first three see what is there and change it at one instant, whoever else writes:
//! the volume does it under the lock of the blocks.

use crate::cdb::Extent;
use crate::commands::transfer::{self, failure, place};
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use base::{SECTOR_BYTES, Slice, VolumeOffset};
use engine::World;
use engine::volume::{Alteration, Altered};

/// Blocks of a COMPARE AND WRITE, at most: what its field in the block limits page and in
/// the CDB can say.
pub(crate) const COMPARE_BLOCKS_MAX: u32 = 255;

/// Writes the second half of `data` where the first half is.
///
/// # Errors
/// 1D/00 with the offset of the first byte that differs; 0E/03 for data of another length
/// than two times the blocks.
pub(crate) async fn compare_and_write<W: World>(
    unit: &LogicalUnit<W>,
    extent: Extent,
    data: Slice,
) -> Result<(), Sense> {
    let at = place(unit, extent)?;
    if extent.blocks > COMPARE_BLOCKS_MAX.min(unit.whole_blocks()) {
        return Err(Sense::invalid_field(13, None));
    }
    let len = extent.bytes() as usize;
    if extent.blocks == 0 && !data.is_empty() {
        // 256 blocks look like none: the field has one byte.
        return Err(Sense::invalid_field(13, None));
    }
    if data.len() != 2 * len {
        return Err(Sense::WRONG_DATA_LENGTH);
    }
    let exchange = Alteration::Exchange {
        expected: data.slice(0, len),
        new: data.slice(len, len),
    };
    alter(unit, at, exchange).await
}

/// Sets the bits of `data`; in pieces, each at one instant.
pub(crate) async fn or_write<W: World>(
    unit: &LogicalUnit<W>,
    extent: Extent,
    data: Slice,
) -> Result<(), Sense> {
    let at = place(unit, extent)?;
    let whole = data.len() - data.len() % SECTOR_BYTES;
    let piece_bytes = (unit.whole_blocks().max(1) as usize) * SECTOR_BYTES;
    for start in (0..whole).step_by(piece_bytes) {
        let piece = data.slice(start, piece_bytes.min(whole - start));
        alter(
            unit,
            VolumeOffset(at.0 + start as u64),
            Alteration::Or(piece),
        )
        .await?;
    }
    Ok(())
}

/// Writes `data`, all of it or nothing, also when the power goes.
///
/// # Errors
/// 24/00 for more than the block limits page allows, 0E/03 when not all of the data came.
pub(crate) async fn write_atomic<W: World>(
    unit: &LogicalUnit<W>,
    extent: Extent,
    data: Slice,
) -> Result<(), Sense> {
    let at = place(unit, extent)?;
    if extent.blocks > unit.whole_blocks() {
        return Err(Sense::invalid_field(12, None));
    }
    if data.len() as u64 != extent.bytes() {
        return Err(Sense::WRONG_DATA_LENGTH);
    }
    alter(unit, at, Alteration::Whole(data)).await
}

/// Writes `data`, reads it back, and compares where that is asked for.
pub(crate) async fn write_and_verify<W: World>(
    unit: &LogicalUnit<W>,
    extent: Extent,
    compare: bool,
    data: Slice,
) -> Result<(), Sense> {
    let came = Extent {
        blocks: (data.len() / SECTOR_BYTES) as u32,
        ..extent
    };
    let expected = compare.then(|| data.clone());
    transfer::write(unit, extent, data).await?;
    transfer::verify(unit, came, expected).await
}

async fn alter<W: World>(
    unit: &LogicalUnit<W>,
    at: VolumeOffset,
    alteration: Alteration,
) -> Result<(), Sense> {
    let altered = unit.volume().alter(at, alteration).await;
    match altered.map_err(|error| failure(&error, Sense::write_error))? {
        Altered::Done => Ok(()),
        Altered::Differs { offset_bytes } => Err(Sense::miscompare(offset_bytes)),
    }
}
