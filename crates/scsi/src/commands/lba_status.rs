//! GET LBA STATUS (SBC-3): the blocks that have pages.

use crate::cdb::Extent;
use crate::commands::transfer::{failure, place};
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use base::{Lba, SECTOR_BYTES, VolumeOffset};
use engine::World;

const HEADER_BYTES: u32 = 8;
const DESCRIPTOR_BYTES: u32 = 16;
/// Looks at the map for one command, so that it ends soon; the report then ends
/// before the unit does, as it may.
const LOOKS_MAX: u32 = 64;

const MAPPED: u8 = 0;
const DEALLOCATED: u8 = 1;

struct Run {
    lba: u64,
    blocks: u32,
    status: u8,
}

/// Parameter data for the blocks from `lba` on, which the first run begins at: as
/// many runs as `allocation` has room for, one at least.
pub(crate) async fn report<W: World>(
    unit: &LogicalUnit<W>,
    lba: Lba,
    allocation: u32,
) -> Result<Vec<u8>, Sense> {
    place(unit, Extent { lba, blocks: 0 })?;
    let room = allocation.saturating_sub(HEADER_BYTES) / DESCRIPTOR_BYTES;
    let mut runs: Vec<Run> = Vec::new();
    let mut next = lba.0;
    for _ in 0..room.clamp(1, LOOKS_MAX) {
        if next >= unit.blocks() {
            break;
        }
        let at = VolumeOffset(next * SECTOR_BYTES as u64);
        let mapping = unit.volume().mapping(at).await;
        let mapping = mapping.map_err(|error| failure(&error, Sense::read_error))?;
        let blocks = mapping.len_bytes / SECTOR_BYTES as u64;
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        // All blocks of a thick unit are mapped, as far as initiators can know.
        let is_thick = unit.unmap_blocks().is_none();
        let status = match mapping.is_mapped || is_thick {
            true => MAPPED,
            false => DEALLOCATED,
        };
        add(&mut runs, next, blocks, status);
        next += u64::from(blocks);
    }
    Ok(encoded(&runs))
}

/// Adds a run, to the one before when they are alike: neighbours of the same status
/// are one descriptor.
fn add(runs: &mut Vec<Run>, lba: u64, blocks: u32, status: u8) {
    if let Some(last) = runs.last_mut()
        && last.status == status
        && let Some(both) = last.blocks.checked_add(blocks)
    {
        last.blocks = both;
        return;
    }
    runs.push(Run {
        lba,
        blocks,
        status,
    });
}

fn encoded(runs: &[Run]) -> Vec<u8> {
    // PARAMETER DATA LENGTH counts what follows it.
    let len = HEADER_BYTES - 4 + DESCRIPTOR_BYTES * runs.len() as u32;
    let mut data = len.to_be_bytes().to_vec();
    data.extend([0; 4]);
    for run in runs {
        data.extend(run.lba.to_be_bytes());
        data.extend(run.blocks.to_be_bytes());
        data.extend([run.status, 0, 0, 0]);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_byte_by_byte() {
        let mut runs = Vec::new();
        add(&mut runs, 0x0102_0304_0506, 0x0708, MAPPED);
        add(&mut runs, 0x0102_0304_0c0e, 0x0102, DEALLOCATED);
        let mut expected = vec![0, 0, 0, 36, 0, 0, 0, 0];
        expected.extend([0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 0, 0, 0, 0]);
        expected.extend([0, 0, 1, 2, 3, 4, 0x0c, 0x0e, 0, 0, 1, 2, 1, 0, 0, 0]);
        assert_eq!(encoded(&runs), expected);
        assert_eq!(encoded(&[]), [0, 0, 0, 4, 0, 0, 0, 0]);
    }

    #[test]
    fn neighbours_that_are_alike_are_one_as_far_as_a_descriptor_can_say() {
        let mut runs = Vec::new();
        add(&mut runs, 0, 5, MAPPED);
        add(&mut runs, 5, 3, MAPPED);
        add(&mut runs, 8, u32::MAX - 7, MAPPED);
        let shape: Vec<_> = runs.iter().map(|run| (run.lba, run.blocks)).collect();
        assert_eq!(shape, [(0, 8), (8, u32::MAX - 7)]);
    }
}
