//! Groups that have more drives than a stripe, and spare room on all of them: [`Spread`], and
//! [`homes`], where the places of each zone are on the drives.
//!
//! A zone has as many places as its geometry says. Each place stands on a drive of the group, and the
//! drives that are left over are spare in this zone. From zone to zone other drives are. So a lost
//! drive is rebuilt from all others, and to all others, at once: declustered parity, as in M. Holland
//! and G. Gibson, "Parity declustering for continuous operation in redundant disk arrays" (1992), with
//! the spare room spread as in OpenZFS's dRAID.
//!
//! Invariants:
//! - Of as many zones in a row as the group has drives, each drive has each place once, and is spare
//!   as often as any other.
//! - The homes follow from the number of the zone in its group and the number of drives alone.

/// How many drives a spread group can have.
pub const SPREAD_DRIVES_MAX: usize = 64;

/// How many of them can be spare in each zone.
pub const SPREAD_SPARES_MAX: usize = 8;

/// How a group is wider than its stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spread {
    /// Drives of a stripe with parity, the parity included. Mirrors have as many as copies.
    pub width: u8,
    /// Drives that are spare in each zone, one at least.
    pub spares: u8,
}

/// The drive of each place of a zone, and behind these the drives that are spare in it, when all
/// drives are whole. `zone` counts from the first one of the group.
pub fn homes(zone: u32, drives: usize) -> impl Iterator<Item = u8> {
    assert!(
        (1..=SPREAD_DRIVES_MAX).contains(&drives),
        "a spread group of {drives} drives"
    );
    let (round, turn) = (zone as usize / drives, zone as usize % drives);
    let shuffled = shuffle(round as u64, drives);
    shuffled
        .into_iter()
        .take(drives)
        .map(move |drive| ((usize::from(drive) + turn) % drives) as u8)
}

/// The numbers below `drives` in the order of Fisher and Yates, drawn by SplitMix64 from `seed`.
fn shuffle(seed: u64, drives: usize) -> [u8; SPREAD_DRIVES_MAX] {
    let mut order = std::array::from_fn(|index| index as u8);
    let mut state = seed;
    for last in (1..drives).rev() {
        let drawn = (u128::from(split_mix(&mut state)) * (last as u128 + 1)) >> 64;
        order.swap(last, drawn as usize);
    }
    order
}

/// The next number of SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
/// generators", 2014). It is part of the format, so it is written down here.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_numbers_are_those_of_the_paper() {
        // As the reference program of S. Vigna prints them for the seed 1234567.
        let mut state = 1_234_567;
        let drawn: Vec<u64> = (0..3).map(|_| split_mix(&mut state)).collect();
        assert_eq!(
            drawn,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn each_drive_has_each_place_once_in_a_round_of_zones() {
        for drives in [1, 2, 5, 13, 60, 64] {
            for round in [0, 7] {
                let mut seen = BTreeSet::new();
                for turn in 0..drives {
                    let zone = (round * drives + turn) as u32;
                    let all: BTreeSet<u8> = homes(zone, drives).collect();
                    assert_eq!(all.len(), drives, "zone {zone} of {drives}");
                    let placed = homes(zone, drives).enumerate();
                    seen.extend(placed);
                }
                assert_eq!(seen.len(), drives * drives);
            }
        }
    }

    /// The format depends on it.
    #[test]
    fn homes_stay_what_they_are() {
        let of = |zone| homes(zone, 7).collect::<Vec<u8>>();
        let first = of(0);
        let turned: Vec<u8> = first.iter().map(|drive| (drive + 1) % 7).collect();
        assert_eq!(of(1), turned);
        assert_ne!(of(7), first);
        assert_eq!(first, HOMES_OF_7);
    }

    const HOMES_OF_7: [u8; 7] = [1, 5, 4, 3, 0, 2, 6];

    /// Two drives share as many stripes as any other two do, but for a part: the load of a rebuild is
    /// spread over all.
    #[test]
    fn drives_meet_each_other_equally_often() {
        let (drives, width, zones) = (60_usize, 10, 1200);
        let mut meetings = vec![0_u32; drives];
        for zone in 0..zones {
            let places: Vec<u8> = homes(zone, drives).collect();
            let of_stripe = places[..50]
                .chunks(width)
                .find(|drives| drives.contains(&0));
            for other in of_stripe.into_iter().flatten().filter(|other| **other != 0) {
                meetings[usize::from(*other)] += 1;
            }
        }
        let (least, most) = (meetings[1..].iter().min(), meetings[1..].iter().max());
        // Of 1,000 zones with a stripe on the drive 9 others each: 152 in the mean.
        assert!(least.is_some_and(|least| *least > 100), "{least:?}");
        assert!(most.is_some_and(|most| *most < 210), "{most:?}");
    }
}
