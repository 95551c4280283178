//! Where the zones of a pool lie on a drive that is used all over.
//!
//! The engine takes zones from the outside inwards. An array that writes anywhere has come round its
//! drives, and one that gives out slices in turns has its first terabyte all over the stroke.
//! Here zone `i` of `n` lies at `i · s mod n`, with `s` near `n` over the golden ratio: the
//! first ones, however few, lie all over the drive (Knuth, The Art of Computer Programming 3, 6.4, "Fibonacci
//! hashing").
//!
//! Invariant: no two zones lie at the same place, and what lies before the first or behind the last
//! stays where it is.

use base::DriveOffset;

/// The zones of a drive, spread over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    start: u64,
    stride_bytes: u64,
    zones: u64,
    step: u64,
}

impl Spread {
    /// Zones of `stride_bytes` each, from `start` on, on a drive of so many bytes.
    pub fn over(start: DriveOffset, stride_bytes: u64, capacity_bytes: u64) -> Spread {
        let zones = capacity_bytes.saturating_sub(start.0) / stride_bytes;
        Spread {
            start: start.0,
            stride_bytes,
            zones,
            step: step_of(zones),
        }
    }

    /// Where so many bytes lie. What is across two zones, as after a drive has come to a group of
    /// another width, stays where it is.
    pub fn place(&self, at: DriveOffset, len_bytes: u64) -> DriveOffset {
        let Some(within) = at.0.checked_sub(self.start) else {
            return at;
        };
        let (zone, inside) = (within / self.stride_bytes, within % self.stride_bytes);
        if zone >= self.zones || inside + len_bytes > self.stride_bytes {
            return at;
        }
        let place = (u128::from(zone) * u128::from(self.step) % u128::from(self.zones)) as u64;
        DriveOffset(self.start + place * self.stride_bytes + inside)
    }
}

/// The number next to `zones` over the golden ratio that has no divisor in common with it.
fn step_of(zones: u64) -> u64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_8;
    let near = (zones as f64 * GOLDEN).round() as u64;
    let is_good = |step: &u64| *step > 0 && greatest_divisor(*step, zones) == 1;
    let around = (0..=zones).flat_map(|away| [near.checked_sub(away), Some(near + away)]);
    around.flatten().find(is_good).unwrap_or(1)
}

fn greatest_divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => greatest_divisor(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_zone_has_a_place_of_its_own_and_the_rest_stays() {
        for zones in [0, 1, 2, 3, 8, 55, 56, 1000, 2234] {
            let spread = Spread::over(DriveOffset(700), 100, 700 + zones * 100 + 99);
            let places: BTreeSet<u64> = (0..zones)
                .map(|zone| spread.place(DriveOffset(700 + zone * 100 + 7), 93).0)
                .collect();
            assert_eq!(places.len() as u64, zones);
            assert!(
                places
                    .iter()
                    .all(|at| (at - 700) % 100 == 7 && at - 700 < zones * 100)
            );
            for at in [0, 699, 700 + zones * 100] {
                assert_eq!(spread.place(DriveOffset(at), 1), DriveOffset(at));
            }
            let across = DriveOffset(700 + 7);
            assert_eq!(spread.place(across, 94), across);
        }
    }

    #[test]
    fn any_number_of_first_zones_leaves_no_large_hole() {
        let zones = 2234;
        let spread = Spread::over(DriveOffset(0), 1, zones);
        for used in [10, 50, 200] {
            let mut places: Vec<u64> = (0..used)
                .map(|zone| spread.place(DriveOffset(zone), 1).0)
                .collect();
            places.sort_unstable();
            let widest = places.windows(2).map(|pair| pair[1] - pair[0]).max();
            assert!(
                widest.is_some_and(|gap| gap <= 4 * zones / used),
                "{used}: {widest:?}"
            );
        }
    }
}
