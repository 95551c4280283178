//! UNMAP (SBC-3): blocks that the initiator no longer needs.
//!
//! Invariant: nothing is unmapped unless the whole list is right.

use crate::cdb::Extent;
use crate::commands::transfer::failure;
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use base::{Lba, SECTOR_BYTES, Slice, VolumeOffset};
use engine::World;

/// Most blocks of one command (512 MiB): what the block limits page promises. It
/// bounds how long one command can take.
pub(crate) const MAX_BLOCKS: u32 = (512 << 20) / SECTOR_BYTES as u32;
/// Most block descriptors of one command, likewise.
pub(crate) const MAX_DESCRIPTORS: usize = 256;

const HEADER_BYTES: usize = 8;
const DESCRIPTOR_BYTES: usize = 16;

/// Unmaps what `list` says. Blocks read as zeroes afterwards; whole pages are given
/// back to the pool.
///
/// # Errors
/// 20/00 for a thick unit, 1A/00 and 26/00 for a list that is wrong, 21/00 for
/// blocks that are not there.
pub(crate) async fn unmap<W: World>(
    unit: &LogicalUnit<W>,
    list_bytes: u16,
    list: Slice,
) -> Result<(), Sense> {
    if unit.unmap_blocks().is_none() {
        return Err(Sense::INVALID_OPCODE);
    }
    let extents = match list_bytes {
        0 => Vec::new(),
        _ => parse(list.bytes().unwrap_or_default())?,
    };
    let blocks = unit.blocks();
    let ends = |extent: &Extent| extent.lba.0.checked_add(u64::from(extent.blocks));
    if extents
        .iter()
        .any(|extent| ends(extent).is_none_or(|end| end > blocks))
    {
        return Err(Sense::LBA_OUT_OF_RANGE);
    }
    for extent in extents.iter().filter(|extent| extent.blocks > 0) {
        let at = VolumeOffset(extent.lba.0 * SECTOR_BYTES as u64);
        let cleared = unit.volume().clear(at, extent.bytes()).await;
        cleared.map_err(|error| failure(&error, Sense::write_error))?;
    }
    Ok(())
}

/// The extents of a parameter list (SBC-3). A last descriptor that is
/// not whole is left out, as the clause demands; a list that says it has more than
/// came is refused, since nobody knows what is missing.
fn parse(list: &[u8]) -> Result<Vec<Extent>, Sense> {
    let &[a, b, c, d, _, _, _, _] = list.first_chunk().ok_or(Sense::LIST_LENGTH)?;
    let data_bytes = usize::from(u16::from_be_bytes([a, b]));
    let descriptors_bytes = usize::from(u16::from_be_bytes([c, d]));
    if descriptors_bytes == 0 {
        return Ok(Vec::new());
    }
    // UNMAP DATA LENGTH counts what follows it: six bytes of header, and these.
    if data_bytes < descriptors_bytes + HEADER_BYTES - 2 {
        return Err(Sense::invalid_parameter(0));
    }
    let descriptors = list.get(HEADER_BYTES..HEADER_BYTES + descriptors_bytes);
    let descriptors = descriptors.ok_or(Sense::LIST_LENGTH)?;
    if descriptors_bytes / DESCRIPTOR_BYTES > MAX_DESCRIPTORS {
        return Err(Sense::invalid_parameter(2));
    }
    let mut extents = Vec::new();
    let mut left = MAX_BLOCKS;
    for (place, descriptor) in descriptors
        .as_chunks::<DESCRIPTOR_BYTES>()
        .0
        .iter()
        .enumerate()
    {
        let number = |from: usize, len: usize| {
            let bytes = descriptor.iter().skip(from).take(len);
            bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        let blocks = number(8, 4) as u32;
        let at = (HEADER_BYTES + place * DESCRIPTOR_BYTES + 8) as u16;
        let fits = left.checked_sub(blocks);
        left = fits.ok_or(Sense::invalid_parameter(at))?;
        let lba = Lba(number(0, 8));
        extents.push(Extent { lba, blocks });
    }
    Ok(extents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(extents: &[(u64, u32)]) -> Vec<u8> {
        let bytes = (extents.len() * 16) as u16;
        let mut list = (bytes + 6).to_be_bytes().to_vec();
        list.extend(bytes.to_be_bytes());
        list.extend([0; 4]);
        for (lba, blocks) in extents {
            list.extend(lba.to_be_bytes());
            list.extend(blocks.to_be_bytes());
            list.extend([0; 4]);
        }
        list
    }

    fn parsed(list: &[u8]) -> Result<Vec<(u64, u32)>, Sense> {
        let extents = parse(list)?.into_iter();
        Ok(extents
            .map(|extent| (extent.lba.0, extent.blocks))
            .collect())
    }

    #[test]
    fn a_list_byte_by_byte() {
        let bytes = [
            0, 0x26, 0, 0x20, 0, 0, 0, 0, // header
            1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 9, 10, 0, 0, 0, 0, // first
            0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, // nothing
        ];
        let extents = vec![(0x0102_0304_0506_0708, 0x090a), (1, 0)];
        assert_eq!(parsed(&bytes), Ok(extents));
        assert_eq!(list(&[(0x0102_0304_0506_0708, 0x090a), (1, 0)]), bytes);
    }

    #[test]
    fn a_list_without_descriptors_is_right_and_one_without_a_header_wrong() {
        assert_eq!(parsed(&list(&[])), Ok(vec![]));
        assert_eq!(parsed(&[0; 8]), Ok(vec![]), "not even a length");
        for len in 0..8 {
            assert_eq!(parsed(&list(&[])[..len]), Err(Sense::LIST_LENGTH));
        }
    }

    #[test]
    fn a_list_that_is_cut_short_is_refused_whole() {
        let whole = list(&[(1, 2), (3, 4)]);
        for len in 8..whole.len() {
            assert_eq!(
                parsed(&whole[..len]),
                Err(Sense::LIST_LENGTH),
                "{len} bytes"
            );
        }
        let longer = [&whole[..], &[1; 40]].concat();
        assert_eq!(
            parsed(&longer),
            Ok(vec![(1, 2), (3, 4)]),
            "what follows is no list"
        );
    }

    #[test]
    fn the_last_descriptor_is_left_out_when_it_is_not_whole() {
        let mut bytes = list(&[(1, 2), (3, 4)]);
        (bytes[1], bytes[3]) = (6 + 31, 31);
        assert_eq!(parsed(&bytes), Ok(vec![(1, 2)]));
        (bytes[1], bytes[3]) = (6 + 15, 15);
        assert_eq!(parsed(&bytes), Ok(vec![]));
    }

    #[test]
    fn lengths_that_contradict_each_other_are_pointed_at() {
        let mut bytes = list(&[(1, 2)]);
        bytes[1] -= 1;
        assert_eq!(parsed(&bytes), Err(Sense::invalid_parameter(0)));
        bytes[1] += 2;
        assert_eq!(parsed(&bytes), Ok(vec![(1, 2)]), "more may be there");
    }

    #[test]
    fn the_limits_of_the_block_limits_page_are_kept() {
        let most = vec![(5, 1); MAX_DESCRIPTORS];
        assert_eq!(parsed(&list(&most)), Ok(most.clone()));
        let more = [&most[..], &[(5, 1)]].concat();
        assert_eq!(parsed(&list(&more)), Err(Sense::invalid_parameter(2)));

        let most = [(0, MAX_BLOCKS - 1), (9, 1)];
        assert_eq!(parsed(&list(&most)), Ok(most.to_vec()));
        let more = list(&[(0, MAX_BLOCKS), (9, 1)]);
        assert_eq!(
            parsed(&more),
            Err(Sense::invalid_parameter(32)),
            "the second"
        );
        let more = list(&[(0, u32::MAX)]);
        assert_eq!(parsed(&more), Err(Sense::invalid_parameter(16)));
    }
}
