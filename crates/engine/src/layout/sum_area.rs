//! The size of a zone's integrity area, in blocks of sums and in bytes.

use super::Slots;
use crate::raid::Geometry;
use base::BLOCK_BYTES;

/// Sums in one block.
pub const SUMS: usize = 1008;

/// Bytes of the integrity area of a zone on each drive.
pub fn area_bytes(geometry: Geometry, slots: Slots, zone_bytes: u64) -> u64 {
    let blocks = geometry.zone_data_bytes(zone_bytes) / BLOCK_BYTES as u64;
    let of_span = blocks.div_ceil(geometry.spans as u64 * SUMS as u64);
    let rows = of_span.div_ceil(geometry.width as u64);
    slots.area_bytes(rows * (geometry.redundancy() as u64 + 1))
}
