//! The groups of the pool that a seed draws, and how large their drives are.
//!
//! Invariant: drives have room for a zone beside the metadata of all lanes, whatever is drawn.

use crate::kinds::Kind;
use base::{BLOCK_BYTES, Prng};
use engine::label::Spacing;
use engine::layout::{Layout, Slots};
use engine::raid::Spread;
use engine::{Level, PoolSpec};

const LABELS_BYTES: u64 = 64 << 10;

/// The level of the groups, and how many drives each has.
pub(crate) fn draw_shape(prng: &mut Prng, kind: &Kind) -> (Level, u64) {
    let drawn = *prng.pick(&[
        (Level::Simple, 1),
        (Level::Raid10 { copies: 2 }, 2),
        (Level::Raid10 { copies: 2 }, 4),
        (Level::Raid10 { copies: 2 }, 6),
        (Level::Raid10 { copies: 3 }, 3),
        (Level::Raid10 { copies: 3 }, 6),
        (Level::Raid5, 3),
        (Level::Raid5, 4),
        (Level::Raid5, 7),
        (Level::Raid50, 6),
        (Level::Raid50, 8),
        (Level::Raid6, 4),
        (Level::Raid6, 6),
        (Level::Raid6, 8),
    ]);
    kind.shape.unwrap_or(drawn)
}

/// Whether groups have distributed spares; with the theme of these a shape that can.
pub(crate) fn draw_spread(
    prng: &mut Prng,
    (level, drives): (Level, u64),
    kind: &Kind,
) -> (Level, u64, Option<Spread>) {
    let of = |(level, drives, width, spares)| (level, drives, Some(Spread { width, spares }));
    let shapes = [
        (Level::Raid10 { copies: 2 }, 4, 2, 2),
        (Level::Raid10 { copies: 2 }, 6, 2, 2),
        (Level::Raid10 { copies: 3 }, 7, 3, 1),
        (Level::Raid5, 4, 3, 1),
        (Level::Raid5, 7, 3, 1),
        (Level::Raid5, 8, 3, 2),
        (Level::Raid6, 6, 4, 2),
        (Level::Raid6, 8, 5, 3),
        (Level::Raid6, 9, 4, 1),
    ];
    if kind.spread {
        return of(*prng.pick(&shapes));
    }
    let mut fitting = shapes.to_vec();
    fitting.retain(|shape| (shape.0, shape.1) == (level, drives));
    if fitting.is_empty() || kind.shape.is_some() || !prng.chance(1, 6) {
        return (level, drives, None);
    }
    of(fitting[0])
}

/// The same pool, as groups with distributed spares need it.
pub(crate) fn suit_spread(pool: PoolSpec, spread: Option<Spread>) -> PoolSpec {
    match spread {
        None => pool,
        Some(_) => PoolSpec {
            layout: Layout::Apart,
            spacing: Spacing::Own,
            ..pool
        },
    }
}

/// One as a rule; of small pages on many drives as many as leave room for data: each lane
/// has metadata for all pages.
pub(crate) fn draw_lanes(prng: &mut Prng, pool: &PoolSpec, drives: u64) -> u64 {
    let wanted = match prng.chance(1, 4) {
        true => *prng.pick(&[2, 2, 3, 4]),
        false => 1,
    };
    let capacity = 1 << 30;
    let fits = |lanes: &u64| lanes * metadata_of(pool, drives, capacity) < capacity / 2;
    (1..=wanted).rev().find(fits).unwrap_or(1)
}

/// Drives of a few zones beside the metadata, some with room to spare.
pub(crate) fn drive_sizes(
    prng: &mut Prng,
    pool: &PoolSpec,
    (drives, spread): (u64, Option<Spread>),
    (spares, lanes): (u64, u64),
) -> Vec<u64> {
    let zone = pool.zone_bytes.unwrap_or(1 << 20);
    let unit = u64::from(pool.stripe_unit_bytes);
    // A pool that is nearly full uses freed pages again at once.
    let most = *prng.pick(&[2, 5, 12]);
    // Each lane has some, as a rule.
    let zones = lanes * prng.between(1, most).min((8 << 20) / zone).max(1);
    // Upper bounds of what the format needs, so that a zone always fits.
    let slots = Slots::of(pool.layout, zone);
    let alignment = slots.alignment().max(unit);
    let sums = 6 * 8192 + zone / 64 + slots.span_bytes() as u64 + 2 * slots.alignment();
    let stride = (zone + sums).next_multiple_of(alignment);
    let logs = pool.log_bytes.unwrap_or(0)
        + pool.intent_bytes.unwrap_or(0)
        + 8 * drives * unit
        + alignment
        + (1 << 18);
    let mut smallest = lanes * logs + zones * stride;
    let of_moves = |bytes: u64| spread.map_or(0, |_| moves_of(pool, drives, bytes));
    while lanes * (metadata_of(pool, drives, smallest) + of_moves(smallest) + logs) + zones * stride
        > smallest
    {
        smallest += unit;
    }
    let smallest = smallest.next_multiple_of(BLOCK_BYTES as u64);
    let spare = |prng: &mut Prng| match prng.below(4) {
        0 => prng.below(64) * BLOCK_BYTES as u64,
        _ => 0,
    };
    let mut sizes: Vec<u64> = (0..drives).map(|_| smallest + spare(prng)).collect();
    // A spare can stand in for every drive.
    let largest = sizes.iter().copied().max().unwrap_or(smallest);
    sizes.extend((0..spares).map(|_| largest));
    sizes
}

/// At least the bytes that checkpoints have for places that have moved.
fn moves_of(pool: &PoolSpec, drives: u64, drive_bytes: u64) -> u64 {
    let groups = if drives > 4 { 1 } else { 3 };
    let zones = groups * drive_bytes / pool.zone_bytes.unwrap_or(1 << 20);
    // Two slots, laid out to grow to four times the size.
    let payload = 4 * zones * (drives * 7 + 1);
    2 * (payload + payload / 16 + 4096)
}

/// At least the bytes before the logs on drives of `drive_bytes`.
fn metadata_of(pool: &PoolSpec, drives: u64, drive_bytes: u64) -> u64 {
    let pages = drive_bytes * drives / u64::from(pool.page_bytes);
    // Three groups at most.
    let zones = 3 * drive_bytes / pool.zone_bytes.unwrap_or(1 << 20);
    // Laid out to grow to four times the size.
    let maps = match pool.map_page_bytes {
        // And what a change has to find free.
        Some(page_bytes) => 4 * pages * (u64::from(page_bytes) + 3) + (8 << 10),
        None => 4 * pages * 20,
    };
    let payload = u64::from(pool.volumes_max) * 240 + maps + 4 * zones * 180 + 64;
    // And what segments cost.
    let payload = payload + payload / 32 + 512;
    let checkpoint = (4096 + payload).next_multiple_of(BLOCK_BYTES as u64);
    LABELS_BYTES + 2 * u64::from(pool.journal_bytes.unwrap_or(8 << 20)) + 2 * checkpoint
}
