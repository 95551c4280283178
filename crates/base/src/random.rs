//! Seeded randomness in independent streams.
//!
//! One seed; every component draws from a stream of its own, named by the
//! component, so a new draw in one does not shift the others.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A deterministic pseudo-random stream (xoshiro256++). Not for secrets.
#[derive(Clone, Debug)]
pub struct Prng {
    seed: u64,
    state: Xoshiro256PlusPlus,
}

impl Prng {
    /// The root stream of a seed.
    pub fn from_seed(seed: u64) -> Self {
        Prng {
            seed,
            state: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// The stream called `name` under this one. It depends on the seed and the
    /// name alone, never on how much was drawn before.
    pub fn stream(&self, name: &str) -> Prng {
        // FNV-1a: fixed for ever, so that a kept seed replays on any version.
        let mut hash = 0xcbf2_9ce4_8422_2325u64 ^ self.seed;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Prng::from_seed(hash)
    }

    /// A draw over all 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state.next_u64()
    }

    /// A draw from `0..bound`.
    ///
    /// # Panics
    /// When `bound` is zero: there is nothing to draw from.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a draw below zero");
        // Lemire's multiply-shift; its bias of bound/2^64 is far below what any
        // test or model could see.
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// A draw from `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "an empty range {low}..={high}");
        match (high - low).checked_add(1) {
            Some(span) => low + self.below(span),
            None => self.next_u64(),
        }
    }

    /// True in `numerator` of `denominator` cases.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// A draw from [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws from `choices`, each as likely as any other. There must be at least one.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    /// Fills `bytes` with the next bytes of the stream.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.state.fill_bytes(bytes);
    }

    /// An identity (a version-4 UUID's layout over this stream's bits).
    pub fn uuid(&mut self) -> uuid::Uuid {
        let mut bytes = [0u8; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_and_name_alone() {
        let mut drawn = Prng::from_seed(7);
        drawn.next_u64();
        let mut a = drawn.stream("drive 0");
        let mut b = Prng::from_seed(7).stream("drive 0");
        let mut c = Prng::from_seed(7).stream("drive 1");
        let first = a.next_u64();
        assert_eq!(first, b.next_u64());
        assert_ne!(first, c.next_u64());
    }

    #[test]
    fn draws_stay_in_their_bounds_and_reach_both_ends() {
        let mut prng = Prng::from_seed(1);
        let draws: Vec<u64> = (0..1000).map(|_| prng.between(3, 7)).collect();
        assert_eq!(draws.iter().min(), Some(&3));
        assert_eq!(draws.iter().max(), Some(&7));
    }
}
