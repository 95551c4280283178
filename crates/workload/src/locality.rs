//! The places of random operations: evenly spread, or with some places that are hot.
//!
//! [`Locality::SelfSimilar`] is a multiplicative cascade. The disk is a cell. Each
//! cell has two parts, one of which, the hot one, has `1 − h` of its space and gets
//! `h` of its accesses; the parts are cells themselves, down to the size of an
//! operation. So however closely one looks, some of what one sees is hot: the
//! hottest cell of level `n` has `(1 − h)ⁿ` of the space and gets `hⁿ` of all
//! accesses, and with 70 : 30 the hottest tenth of a large disk gets far more than
//! half. Skew of this kind depends on the grain that it is measured at, which
//! decides what a tier or a cache of that grain can win.
//!
//! Which part of a cell is hot, the left or the right, is a hash of the seed and of
//! the way from the root to the cell. So hot places lie spread over the disk, the
//! same ones for the same seed, and nothing is kept for each of them. A draw takes
//! one random number and as many steps as the cell found is deep: about 20 on
//! average and 50 at most for a terabyte of 8 KiB pages.
//!
//! **What the host keeps.** A database or a file system keeps what is hottest in memory of
//! its own and asks its disks for the rest only. How hot a place is against the mean is
//! `(h / (1 − h))` to the power of its **rank**, the hot parts on the way to it less the
//! others. With a share of the space that the host keeps, places of the highest ranks are
//! drawn anew, as many ranks as have no more of the space than that. So where a cache of the
//! array would find a few places asked for again and again, it finds what is left.
//!
//! **Drift.** Time is counted in periods of so many operations of a stream. A cell
//! draws which part of it is hot anew once in `one_in` periods, each cell at a
//! period of its own; every other such draw changes something. So in one period
//! `1 / (2 × one_in)` of the cells change sides, spread evenly over all levels:
//! most changes are small and near to where the heat was before, and a few are
//! large. A place that lies `d` levels deep keeps its heat over a period with the
//! chance `(1 − 1 / (2 × one_in))ᵈ`, and what was hot is forgotten after some
//! `one_in` periods.
//!
//! Pure: no clock, no ambient randomness.

use crate::profile::IO_GRAIN_BYTES;
use base::Prng;
use std::collections::BTreeMap;

/// Where the random operations of a stream go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    /// Every place is as likely as any other.
    Uniform,
    /// A cascade; see the module.
    SelfSimilar {
        /// `h` in per cent: what the hot part of a cell gets, and what the other
        /// part has of the space. 50 is uniform.
        hot_percent: u32,
        /// Of the space, what the host has in memory and does not ask for, in per cent.
        host_keeps_percent: u32,
        /// How the hot places move; `None`: they stay.
        drift: Option<Drift>,
    },
}

/// How hot places move; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// A period in operations of the stream.
    pub period_operations: u64,
    /// In each period one in so many cells draws anew which part of it is hot.
    pub one_in: u64,
}

impl Locality {
    /// 70 % of the accesses to 30 % of the space, at every grain, at the same
    /// places for ever.
    pub const SKEWED: Locality = Locality::SelfSimilar {
        hot_percent: 70,
        host_keeps_percent: 0,
        drift: None,
    };

    /// Refuses what [`Cascade`] cannot produce.
    pub(crate) fn check(self) -> Result<(), String> {
        let Locality::SelfSimilar {
            hot_percent,
            host_keeps_percent,
            drift,
        } = self
        else {
            return Ok(());
        };
        if host_keeps_percent > HOST_KEEPS_PERCENT_MAX {
            return Err(format!(
                "a host that keeps {host_keeps_percent} % of its disks: allowed is 0 to {HOST_KEEPS_PERCENT_MAX}"
            ));
        }
        if !(50..=99).contains(&hot_percent) {
            return Err(format!(
                "hot parts that get {hot_percent} %: allowed is 50 to 99"
            ));
        }
        match drift {
            Some(drift) if drift.period_operations == 0 || drift.one_in == 0 => Err(format!(
                "a drift of one in {} every {} operations: both must be above zero",
                drift.one_in, drift.period_operations
            )),
            _ => Ok(()),
        }
    }
}

/// With half of the space left, and at the very least a fiftieth of the accesses, one in
/// thousands of millions finds no place by so many draws.
const DRAWS_MAX: u32 = 1_024;

/// A host that keeps more than this asks for next to nothing.
const HOST_KEEPS_PERCENT_MAX: u32 = 50;

/// One disk of a stream, cut into hot and cold parts.
#[derive(Clone, Debug)]
pub struct Cascade {
    seed: u64,
    grains: u64,
    /// What hot parts get, and what they have of the space, in 2⁻⁶⁴.
    hot: u64,
    space: u64,
    /// By what a draw is stretched in the hot part and in the other.
    stretch_hot: Stretch,
    stretch_cold: Stretch,
    /// Places of higher ranks are the host's own.
    rank_max: i64,
    epoch: Option<Epoch>,
}

/// A period of a drift: what cells are mixed with in its round of `one_in` periods,
/// and how many periods into the round it is.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    one_in: u64,
    key: u64,
    periods: u64,
}

/// Division by a share, in integers: times `factor` × 2⁻⁶⁴, then times 2 to `shift`.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    factor: u64,
    shift: u32,
}

impl Stretch {
    fn of(percent: u32) -> Stretch {
        let shift = (0..7).find(|&shift| percent << shift >= 100).unwrap_or(7);
        let factor = (100u128 << (64 - shift)) / u128::from(percent);
        Stretch {
            factor: u64::try_from(factor).unwrap_or(u64::MAX),
            shift,
        }
    }

    fn apply(self, part: u64) -> u64 {
        upper_half(part, self.factor) << self.shift
    }
}

/// Of a product.
fn upper_half(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

impl Cascade {
    /// The cascade of a disk of so many bytes, or `None` where every place is as
    /// likely as any other. `root` is a stream of the disk's own; nothing is drawn
    /// from it later.
    pub fn new(locality: Locality, capacity_bytes: u64, root: &Prng) -> Option<Cascade> {
        let Locality::SelfSimilar {
            hot_percent,
            host_keeps_percent,
            drift,
        } = locality
        else {
            return None;
        };
        let grains = capacity_bytes / u64::from(IO_GRAIN_BYTES);
        let rank_max = match host_keeps_percent {
            0 => i64::MAX,
            keeps => rank_max(hot_percent, f64::from(keeps) / 100.0, grains),
        };
        let part = |percent: u32| ((u128::from(percent) << 64) / 100) as u64;
        Some(Cascade {
            seed: root.clone().next_u64(),
            grains,
            rank_max,
            hot: part(hot_percent),
            space: part(100 - hot_percent),
            stretch_hot: Stretch::of(hot_percent),
            stretch_cold: Stretch::of(100 - hot_percent),
            epoch: drift.map(|drift| Epoch {
                one_in: drift.one_in,
                key: 0,
                periods: 0,
            }),
        })
    }

    /// Goes to a period of the drift; they count from 0. Without drift this does
    /// nothing.
    pub fn set_period(&mut self, period: u64) {
        if let Some(epoch) = &mut self.epoch {
            epoch.key = (period / epoch.one_in).wrapping_mul(SIDE);
            epoch.periods = period % epoch.one_in;
        }
    }

    /// The offset, in bytes, of an operation of `bytes` for a draw over all 64 bits: a
    /// multiple of `bytes`. The disk holds at least one, and `bytes` is a multiple of
    /// [`IO_GRAIN_BYTES`].
    pub fn place(&self, draw: u64, bytes: u32) -> u64 {
        self.asked_for(draw, bytes, i64::MAX)
            .unwrap_or_else(|| unreachable!("every rank is asked for"))
    }

    /// The same of what the host does not keep: it draws until it finds such a place. On a
    /// disk of few operations there may be none; then any is asked for.
    pub fn place_of(&self, draws: &mut Prng, bytes: u32) -> u64 {
        let mut draw = draws.next_u64();
        for _ in 1..DRAWS_MAX {
            if let Some(place) = self.asked_for(draw, bytes, self.rank_max) {
                return place;
            }
            draw = draws.next_u64();
        }
        self.place(draw, bytes)
    }

    /// The offset, unless its rank is above `rank_max`.
    fn asked_for(&self, draw: u64, bytes: u32, rank_max: i64) -> Option<u64> {
        let wanted = u64::from(bytes / IO_GRAIN_BYTES);
        let (grain, rank) = self.descend(draw, wanted);
        if rank > rank_max {
            return None;
        }
        let slot = (grain / wanted).min((self.grains / wanted).saturating_sub(1));
        Some(slot * u64::from(bytes))
    }

    /// The first grain of the cell of at most `wanted` grains that a draw falls
    /// into, and its rank.
    fn descend(&self, draw: u64, wanted: u64) -> (u64, i64) {
        let (mut first, mut grains, mut rank) = (0, self.grains, 0);
        let (mut cell, mut left_over) = (self.seed, draw);
        while grains > wanted {
            let hot_grains = self.hot_grains(grains);
            // Masks instead of branches: which part it is, is a coin that no processor
            // can foresee.
            let is_cold = u64::from(left_over >= self.hot).wrapping_neg();
            // What is left of the draw decides in the part.
            let in_hot = self.stretch_hot.apply(left_over);
            let in_cold = self.stretch_cold.apply(left_over.wrapping_sub(self.hot));
            left_over = chosen(is_cold, in_cold, in_hot);
            let part = chosen(is_cold, grains - hot_grains, hot_grains);
            let is_right = is_cold ^ self.hot_on_right(cell).wrapping_neg();
            // All ones is minus one.
            rank += 1 + 2 * is_cold.cast_signed();
            first += (grains - part) & is_right;
            grains = part;
            cell = mixed(cell ^ SIDE ^ is_right);
        }
        (first, rank)
    }

    /// What share of all draws each of `parts` equal parts of the disk gets, but for what the host
    /// keeps. The last may be shorter.
    pub(crate) fn shares(&self, parts: u64) -> Vec<f64> {
        let part = self.grains.div_ceil(parts.max(1)).max(1);
        let mut shares = vec![0.0; self.grains.div_ceil(part) as usize];
        let hot = self.hot as f64 / 2.0f64.powi(64);
        let mut cells = vec![(0, self.grains, self.seed, 1.0)];
        while let Some((first, grains, cell, share)) = cells.pop() {
            let (place, last) = (first / part, (first + grains.max(1) - 1) / part);
            if place == last || grains < 2 {
                shares[place as usize] += share;
                continue;
            }
            let hot_grains = self.hot_grains(grains);
            let is_hot_right = self.hot_on_right(cell) == 1;
            let (left, of_left) = match is_hot_right {
                true => (grains - hot_grains, 1.0 - hot),
                false => (hot_grains, hot),
            };
            cells.push((first, left, mixed(cell ^ SIDE), share * of_left));
            let right = mixed(cell ^ SIDE ^ u64::MAX);
            cells.push((first + left, grains - left, right, share * (1.0 - of_left)));
        }
        shares
    }

    /// How much of a cell of two grains or more its hot part has: at least one, and
    /// not all.
    fn hot_grains(&self, grains: u64) -> u64 {
        upper_half(grains - 1, self.space) + 1
    }

    /// 1 if the hot part of a cell is the right one, else 0.
    fn hot_on_right(&self, cell: u64) -> u64 {
        let Some(epoch) = self.epoch else {
            return cell >> 63;
        };
        // The period of each round in which this cell draws.
        let own = upper_half(cell, epoch.one_in);
        let has_drawn = u64::from(epoch.periods >= own).wrapping_neg();
        let key = epoch.key.wrapping_add(SIDE & has_drawn);
        (cell ^ key).wrapping_mul(FACTOR) >> 63
    }
}

/// The highest rank that is asked for, when the ranks above have `keeps` of the space at
/// most: cells of so many hot and other parts on the way are counted, down to a grain.
fn rank_max(hot_percent: u32, keeps: f64, grains: u64) -> i64 {
    let space_hot = 1.0 - f64::from(hot_percent) / 100.0;
    let mut of_rank: BTreeMap<i64, f64> = BTreeMap::new();
    // By hot parts on the way, of one length of the way: the share of the space.
    let mut cells = vec![1.0];
    while !cells.is_empty() {
        let length = cells.len() as i32 - 1;
        let mut longer = vec![0.0; cells.len() + 1];
        for (hots, share) in (0i32..).zip(cells) {
            let left = space_hot.powi(hots) * (1.0 - space_hot).powi(length - hots);
            if left * grains as f64 <= 1.0 {
                *of_rank.entry(i64::from(2 * hots - length)).or_default() += share;
                continue;
            }
            longer[hots as usize + 1] += share * space_hot;
            longer[hots as usize] += share * (1.0 - space_hot);
        }
        let is_over = longer.iter().all(|share| *share == 0.0);
        cells = if is_over { Vec::new() } else { longer };
    }
    let mut above = 0.0;
    for (rank, share) in of_rank.into_iter().rev() {
        above += share;
        if above > keeps {
            return rank;
        }
    }
    unreachable!("all ranks together have all of the space")
}

/// Odd, and with about half of its bits set: the multiplier of a linear
/// congruential generator of good spectral figures (Steele and Vigna, 2022).
const FACTOR: u64 = 0xd134_2543_de82_ef95;

/// What a step to the left is mixed with; to the right, its complement.
const SIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// `a` where the mask is all ones, `b` where it is zero.
fn chosen(mask: u64, a: u64, b: u64) -> u64 {
    b ^ ((a ^ b) & mask)
}

/// One step of a hash: the upper half of a product depends on all of `x`, and goes
/// into the lower half for the next one. Weaker than a whole hash and twice as fast;
/// a cell is several steps away from the root, and only its upper bits are used.
fn mixed(x: u64) -> u64 {
    let product = x.wrapping_mul(FACTOR);
    product ^ (product >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAIN: u64 = IO_GRAIN_BYTES as u64;

    fn cascade(hot_percent: u32, grains: u64, seed: u64, drift: Option<Drift>) -> Cascade {
        let locality = Locality::SelfSimilar {
            hot_percent,
            host_keeps_percent: 0,
            drift,
        };
        assert_eq!(locality.check(), Ok(()));
        Cascade::new(locality, grains * GRAIN, &Prng::from_seed(seed)).unwrap()
    }

    impl Cascade {
        /// The rank of a grain.
        fn rank_of(&self, grain: u64) -> i64 {
            let (mut first, mut grains, mut cell, mut rank) = (0, self.grains, self.seed, 0);
            while grains > 1 {
                let hot = self.hot_grains(grains);
                let is_hot_right = self.hot_on_right(cell) == 1;
                let left = if is_hot_right { grains - hot } else { hot };
                let is_right = grain >= first + left;
                rank += if is_right == is_hot_right { 1 } else { -1 };
                first += if is_right { left } else { 0 };
                grains = if is_right { grains - left } else { left };
                let mask = u64::from(is_right).wrapping_neg();
                cell = mixed(cell ^ SIDE ^ mask);
            }
            rank
        }
    }

    #[test]
    fn shares_of_parts_are_those_of_draws() {
        let cascade = cascade(70, 1 << 20, 5, None);
        let shares = cascade.shares(16);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let grains = drawn(&cascade, 100_000);
        for (part, share) in (0..).zip(&shares) {
            let here = count(&grains, part << 16, (part + 1) << 16) as f64 / 1e5;
            assert!((here - share).abs() < 0.006, "{part}: {here} of {share}");
        }
        assert_eq!(shares.len(), 16);
    }

    /// Grains that were drawn, in order of place.
    fn drawn(cascade: &Cascade, count: usize) -> Vec<u64> {
        let mut draws = Prng::from_seed(99);
        let mut grains: Vec<u64> = (0..count)
            .map(|_| cascade.place(draws.next_u64(), IO_GRAIN_BYTES) / GRAIN)
            .collect();
        grains.sort_unstable();
        grains
    }

    /// How many of `sorted` lie in `from..until`.
    fn count(sorted: &[u64], from: u64, until: u64) -> usize {
        sorted.partition_point(|&grain| grain < until)
            - sorted.partition_point(|&grain| grain < from)
    }

    /// First grain and grains of the hot part of a cell and of the other, as the
    /// counts have it.
    fn parts(sorted: &[u64], (first, grains): (u64, u64), part: u64) -> [(u64, u64); 2] {
        let of_left = count(sorted, first, first + part);
        let of_right = count(sorted, first + grains - part, first + grains);
        if of_left > of_right {
            [(first, part), (first + part, grains - part)]
        } else {
            [(first + grains - part, part), (first, grains - part)]
        }
    }

    /// Every cell that has enough draws to tell, down to the smallest.
    fn check_splits(cascade: &Cascade, sorted: &[u64], cell: (u64, u64), checked: &mut usize) {
        let all = count(sorted, cell.0, cell.0 + cell.1);
        if all < 20_000 || cell.1 < 100 {
            return;
        }
        let [hotter, other] = parts(sorted, cell, cascade.hot_grains(cell.1));
        let share = count(sorted, hotter.0, hotter.0 + hotter.1) as f64 / all as f64;
        let off = (share - cascade.hot as f64 / 2f64.powi(64)).abs();
        assert!(off < 0.015, "{cell:?}: {share} of {all}");
        *checked += 1;
        check_splits(cascade, sorted, hotter, checked);
        check_splits(cascade, sorted, other, checked);
    }

    #[test]
    fn at_every_level_the_hot_part_gets_its_share() {
        for hot_percent in [70, 85] {
            let grains = 1 << 28;
            let cascade = cascade(hot_percent, grains, 3, None);
            let sorted = drawn(&cascade, 1_000_000);
            let mut checked = 0;
            check_splits(&cascade, &sorted, (0, grains), &mut checked);
            assert!(checked > 20, "{checked} cells");
        }
    }

    #[test]
    fn the_hottest_cell_of_level_n_gets_h_to_the_n_of_all() {
        let grains = 1 << 28;
        let sorted = drawn(&cascade(70, grains, 4, None), 1_000_000);
        let mut cell = (0, grains);
        for level in 1..=8 {
            let part = (cell.1 as f64 * 0.3).round() as u64;
            cell = parts(&sorted, cell, part)[0];
            let space = cell.1 as f64 / grains as f64;
            let share = count(&sorted, cell.0, cell.0 + cell.1) as f64 / 1e6;
            assert!((space / 0.3f64.powi(level) - 1.0).abs() < 0.001, "{space}");
            assert!((share / 0.7f64.powi(level) - 1.0).abs() < 0.02, "{share}");
        }
    }

    #[test]
    fn at_50_per_cent_every_place_is_as_likely_as_any_other() {
        let cascade = cascade(50, 1024, 5, None);
        let mut places: Vec<u64> = (0..1024)
            .map(|index| cascade.place((2 * index + 1) << 53, IO_GRAIN_BYTES))
            .collect();
        places.sort_unstable();
        assert!(
            places
                .iter()
                .zip(0..)
                .all(|(&place, index)| place == index * GRAIN)
        );
        assert!(Cascade::new(Locality::Uniform, 1 << 30, &Prng::from_seed(1)).is_none());
    }

    #[test]
    fn hot_places_are_the_seeds_and_lie_on_either_side() {
        let place = |seed| cascade(70, 1 << 20, seed, None).place(0, IO_GRAIN_BYTES);
        assert_eq!(place(1), place(1));
        let mut places: Vec<u64> = (0..200).map(place).collect();
        // Deeper levels are as even as the first: eighths get 25 each, were the hot
        // part half of a cell.
        let left = places
            .iter()
            .filter(|&&place| place < (1 << 19) * GRAIN)
            .count();
        assert!((75..=125).contains(&left), "{left} of 200 on the left");
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 190, "{} different places", places.len());
    }

    #[test]
    fn operations_of_any_size_lie_in_the_disk_at_multiples_of_their_size() {
        let mut draws = Prng::from_seed(6);
        for grains in [1, 2, 3, 7, 255, 256, 257, 1_000_003] {
            let cascade = cascade(70, grains, 7, None);
            for bytes in [4096, 8192, 12288, 65536, 1 << 20] {
                if u64::from(bytes) > grains * GRAIN {
                    continue;
                }
                for _ in 0..1000 {
                    let place = cascade.place(draws.next_u64(), bytes);
                    assert!(place.is_multiple_of(u64::from(bytes)));
                    assert!(place + u64::from(bytes) <= grains * GRAIN);
                }
                let last = cascade.place(u64::MAX, bytes);
                assert!(last + u64::from(bytes) <= grains * GRAIN);
            }
        }
    }

    const DRIFT: Drift = Drift {
        period_operations: 1,
        one_in: 50,
    };

    #[test]
    fn in_a_period_heat_moves_as_the_law_says() {
        // 50 % and a power of two make all places 16 levels deep.
        let (mut kept, mut kept_a_round, mut all) = (0, 0, 0);
        let mut draws = Prng::from_seed(8);
        for seed in 0..400 {
            let mut cascade = cascade(50, 1 << 16, seed, Some(DRIFT));
            let drawn: Vec<u64> = (0..100).map(|_| draws.next_u64()).collect();
            let mut places = |period| {
                cascade.set_period(period);
                let place = |&draw: &u64| cascade.place(draw, IO_GRAIN_BYTES);
                drawn.iter().map(place).collect::<Vec<u64>>()
            };
            let (before, after, a_round) = (places(120), places(121), places(170));
            let same = |later: &[u64]| before.iter().zip(later).filter(|(a, b)| a == b).count();
            kept += same(&after);
            kept_a_round += same(&a_round);
            all += before.len();
        }
        let share = kept as f64 / all as f64;
        let law = (1.0 - 1.0 / 100.0f64).powi(16);
        assert!((share - law).abs() < 0.02, "{share} for {law}");
        assert!(kept_a_round < all / 100, "{kept_a_round} of {all}");
    }

    #[test]
    fn a_cell_draws_once_in_a_round_and_changes_every_other_time() {
        let mut changed = 0;
        for seed in 0..200 {
            let mut cascade = cascade(70, 1 << 16, seed, Some(DRIFT));
            let mut side = |period| {
                cascade.set_period(period);
                cascade.place(0, IO_GRAIN_BYTES) < (1 << 15) * GRAIN
            };
            let changes = (100..150)
                .filter(|&period| side(period) != side(period + 1))
                .count();
            assert!(changes <= 1, "{changes} changes of one cell in a round");
            changed += changes;
        }
        assert!((70..=130).contains(&changed), "{changed} of 200 cells");
    }

    #[test]
    fn what_no_cascade_can_be_is_refused() {
        let refused = |hot_percent, drift| {
            let locality = Locality::SelfSimilar {
                hot_percent,
                host_keeps_percent: 0,
                drift,
            };
            locality.check().unwrap_err()
        };
        assert!(refused(49, None).contains("50 to 99"));
        assert!(refused(100, None).contains("50 to 99"));
        for drift in [
            Drift { one_in: 0, ..DRIFT },
            Drift {
                period_operations: 0,
                ..DRIFT
            },
        ] {
            assert!(refused(70, Some(drift)).contains("above zero"));
        }
        assert_eq!(Locality::SKEWED.check(), Ok(()));
        let too_much = Locality::SelfSimilar {
            hot_percent: 70,
            host_keeps_percent: 51,
            drift: None,
        };
        assert!(too_much.check().unwrap_err().contains("51 %"));
    }

    #[test]
    fn what_the_host_keeps_is_the_hottest_and_is_not_asked_for() {
        let grains = 1 << 20;
        let keeping = |host_keeps_percent| {
            let locality = Locality::SelfSimilar {
                hot_percent: 70,
                host_keeps_percent,
                drift: None,
            };
            Cascade::new(locality, grains * GRAIN, &Prng::from_seed(7)).unwrap()
        };
        // How often the hottest thousandth of the places is drawn.
        let hottest = |cascade: &Cascade| {
            let mut draws = Prng::from_seed(8);
            let mut times = std::collections::BTreeMap::new();
            for _ in 0..400_000 {
                let place = cascade.place_of(&mut draws, IO_GRAIN_BYTES) / GRAIN;
                *times.entry(place).or_insert(0u32) += 1;
            }
            let mut times: Vec<u32> = times.into_values().collect();
            times.sort_unstable();
            let top: u32 = times.iter().rev().take(grains as usize / 1000).sum();
            f64::from(top) / 400_000.0
        };
        let (all, left) = (hottest(&keeping(0)), hottest(&keeping(5)));
        assert!(all > 0.35, "{all} of all operations");
        assert!(left < 0.10, "{left} of what is asked for");
        // The places kept, drawn evenly over the space, are no more than was said.
        let cascade = keeping(5);
        let kept = (0..100_000u64)
            .filter(|&index| {
                let grain = index * (grains / 100_000);
                cascade.rank_of(grain) > cascade.rank_max
            })
            .count();
        assert!((1_000..=5_000).contains(&kept), "{kept} of 100,000");
    }
}
