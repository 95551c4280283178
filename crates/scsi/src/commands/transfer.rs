//! READ, WRITE, VERIFY, SYNCHRONIZE CACHE: data between initiator and volume.

use crate::cdb::Extent;
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use base::{Lba, Payload, SECTOR_BYTES, Slice, VolumeOffset};
use engine::{IoError, IoErrorKind, World};

/// Reads `extent`.
pub(crate) async fn read<W: World>(
    unit: &LogicalUnit<W>,
    extent: Extent,
) -> Result<Payload, Sense> {
    let at = place(unit, extent)?;
    if extent.blocks == 0 {
        return Ok(Payload::new());
    }
    let read = unit.volume().read(at, extent.bytes() as usize).await;
    read.map_err(|error| failure(&error, Sense::read_error))
}

/// Writes `data` at the start of `extent`. When the initiator sent less than
/// the CDB says (its expected length was smaller), only the whole blocks that
/// came are written; the residual count tells it.
pub(crate) async fn write<W: World>(
    unit: &LogicalUnit<W>,
    extent: Extent,
    data: Slice,
) -> Result<(), Sense> {
    let at = place(unit, extent)?;
    let whole = data.len() - data.len() % SECTOR_BYTES;
    if whole == 0 {
        return Ok(());
    }
    let written = unit.volume().write(at, data.slice(0, whole)).await;
    written.map_err(|error| failure(&error, Sense::write_error))
}

/// Reads `extent` and compares it with `expected`, if given.
pub(crate) async fn verify<W: World>(
    unit: &LogicalUnit<W>,
    extent: Extent,
    expected: Option<Slice>,
) -> Result<(), Sense> {
    let found = read(unit, extent).await?;
    let Some(expected) = expected.as_ref().and_then(Slice::bytes) else {
        return Ok(());
    };
    let mut start = 0;
    for part in &found.parts {
        let Some(bytes) = part.bytes() else {
            return Ok(());
        };
        let against = expected.get(start..).unwrap_or_default();
        if let Some(place) = bytes.iter().zip(against).position(|(a, b)| a != b) {
            return Err(Sense::miscompare((start + place) as u64));
        }
        start += bytes.len();
    }
    Ok(())
}

/// Reports a pool that has failed; everything acknowledged is durable already.
/// Zero blocks mean all from the address on.
pub(crate) async fn synchronize<W: World>(
    unit: &LogicalUnit<W>,
    extent: Extent,
) -> Result<(), Sense> {
    place(unit, extent)?;
    unit.volume()
        .flush()
        .await
        .map_err(|error| failure(&error, Sense::write_error))
}

/// Where `extent` starts, if the unit has all of it.
pub(crate) fn place<W: World>(
    unit: &LogicalUnit<W>,
    extent: Extent,
) -> Result<VolumeOffset, Sense> {
    let Extent { lba, blocks } = extent;
    let end = lba.0.checked_add(u64::from(blocks));
    if lba.0 >= unit.blocks() || end.is_none_or(|end| end > unit.blocks()) {
        return Err(Sense::LBA_OUT_OF_RANGE);
    }
    Ok(VolumeOffset(lba.0 * SECTOR_BYTES as u64))
}

/// The sense data that tells of `error`; `media` names a block that is bad.
pub(crate) fn failure(error: &IoError, media: fn(Lba) -> Sense) -> Sense {
    match error.kind {
        IoErrorKind::OutOfRange => Sense::LBA_OUT_OF_RANGE,
        IoErrorKind::Media => media(Lba(error.at.0 / SECTOR_BYTES as u64)),
        IoErrorKind::PoolFull => Sense::POOL_FULL,
        IoErrorKind::ReadOnly => Sense::WRITE_PROTECTED,
        IoErrorKind::Deleted => Sense::LUN_NOT_SUPPORTED,
        IoErrorKind::Withheld => Sense::WITHHELD,
        IoErrorKind::PoolFailed => Sense::TARGET_FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_volume_become_the_sense_that_initiators_act_on() {
        let error = |kind| IoError {
            kind,
            at: VolumeOffset(0x1234 * 512),
            context: String::new(),
        };
        let read = |kind| failure(&error(kind), Sense::read_error);
        assert_eq!(read(IoErrorKind::Media), Sense::read_error(Lba(0x1234)));
        let written = failure(&error(IoErrorKind::Media), Sense::write_error);
        assert_eq!(written, Sense::write_error(Lba(0x1234)));
        assert_eq!(read(IoErrorKind::OutOfRange), Sense::LBA_OUT_OF_RANGE);
        assert_eq!(read(IoErrorKind::PoolFull), Sense::POOL_FULL);
        assert_eq!(read(IoErrorKind::ReadOnly), Sense::WRITE_PROTECTED);
        assert_eq!(read(IoErrorKind::Deleted), Sense::LUN_NOT_SUPPORTED);
        assert_eq!(read(IoErrorKind::Withheld), Sense::WITHHELD);
        assert_eq!(read(IoErrorKind::PoolFailed), Sense::TARGET_FAILURE);
    }
}
