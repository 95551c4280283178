//! The sums of one integrity block in RAM.
//!
//! Where buffers have no bytes nearly all of them are alike, and terabytes of them have
//! to fit: so they are kept in short there. What drives with bytes hold comes as an
//! array and stays one.

use super::Sum;
use super::block::SUMS;
use std::borrow::Cow;
use std::mem;
use std::ops::Range;

const WORDS: usize = SUMS.div_ceil(64);

/// Sums by their place in the block.
#[derive(Clone, Debug)]
pub(super) enum Sums {
    /// All alike.
    Uniform(Sum),
    /// Written without bytes where the bit is set, else never written.
    Marked(Box<[u64; WORDS]>),
    /// Any.
    Each(Box<[Sum; SUMS]>),
}

/// Whether a sum is one of the two that a bit stands for, and which.
fn bit_of(sum: Sum) -> Option<bool> {
    match sum {
        Sum::UNWRITTEN => Some(false),
        Sum::BYTELESS => Some(true),
        _ => None,
    }
}

fn sum_of(bit: bool) -> Sum {
    match bit {
        false => Sum::UNWRITTEN,
        true => Sum::BYTELESS,
    }
}

/// The bits of the word `number` that stand for sums.
fn bits_of_word(number: usize) -> u64 {
    match SUMS - number * 64 {
        64.. => u64::MAX,
        left => (1 << left) - 1,
    }
}

impl Sums {
    /// The sum at `at`.
    pub(super) fn get(&self, at: usize) -> Sum {
        match self {
            Sums::Each(each) => each[at],
            Sums::Uniform(sum) => *sum,
            Sums::Marked(words) => sum_of(words[at / 64] >> (at % 64) & 1 == 1),
        }
    }

    /// Sets the sum at `at`; what it was.
    pub(super) fn set(&mut self, at: usize, sum: Sum) -> Sum {
        if let Sums::Each(each) = self {
            return mem::replace(&mut each[at], sum);
        }
        let before = self.get(at);
        if before != sum {
            match bit_of(sum) {
                Some(bit) if self.become_marked() => self.mark(at / 64, 1 << (at % 64), bit),
                _ => {
                    let mut each = self.each().into_owned();
                    each[at] = sum;
                    *self = Sums::Each(Box::new(each));
                }
            }
        }
        before
    }

    /// Marks a run as written without bytes.
    pub(super) fn write_bytelessly(&mut self, run: Range<usize>) {
        if run == (0..SUMS) {
            *self = Sums::Uniform(Sum::BYTELESS);
            return;
        }
        if run.is_empty() || matches!(self, Sums::Uniform(Sum::BYTELESS)) {
            return;
        }
        if !self.become_marked() {
            run.for_each(|at| {
                self.set(at, Sum::BYTELESS);
            });
            return;
        }
        for number in run.start / 64..run.end.div_ceil(64) {
            let first = number * 64;
            let inside = |at: usize| at.clamp(first, first + 64) - first;
            let (from, to) = (inside(run.start), inside(run.end));
            self.mark(number, u64::MAX >> (64 - (to - from)) << from, true);
        }
    }

    /// All of them.
    pub(super) fn each(&self) -> Cow<'_, [Sum; SUMS]> {
        match self {
            Sums::Each(each) => Cow::Borrowed(each),
            Sums::Uniform(sum) => Cow::Owned([*sum; SUMS]),
            Sums::Marked(_) => Cow::Owned(std::array::from_fn(|at| self.get(at))),
        }
    }

    /// Has bits instead of one sum, where that can be said by bits.
    fn become_marked(&mut self) -> bool {
        if let Sums::Uniform(sum) = self
            && let Some(bit) = bit_of(*sum)
        {
            let word = |number| if bit { bits_of_word(number) } else { 0 };
            *self = Sums::Marked(Box::new(std::array::from_fn(word)));
        }
        matches!(self, Sums::Marked(_))
    }

    /// Sets the bits of `mask` in a word to `bit`.
    fn mark(&mut self, number: usize, mask: u64, bit: bool) {
        let Sums::Marked(words) = self else { return };
        match bit {
            true => words[number] |= mask,
            false => words[number] &= !mask,
        }
        // Only a word that has become like that can be the last one.
        let alike = |number: usize, word: u64| match bit {
            true => word == bits_of_word(number),
            false => word == 0,
        };
        let all = || words.iter().enumerate().all(|(n, word)| alike(n, *word));
        if alike(number, words[number]) && all() {
            *self = Sums::Uniform(sum_of(bit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    #[test]
    fn short_and_long_forms_say_the_same() {
        let mut prng = Prng::from_seed(11);
        for round in 0..40 {
            let mut short = Sums::Uniform(Sum::UNWRITTEN);
            let mut long = Sums::Each(Box::new([Sum::UNWRITTEN; SUMS]));
            for _ in 0..300 {
                let sum = match prng.below(200) {
                    0 if round % 2 == 1 => Sum::LOST,
                    0..100 => Sum::UNWRITTEN,
                    _ => Sum::BYTELESS,
                };
                let at = prng.below(SUMS as u64) as usize;
                assert_eq!(short.set(at, sum), long.set(at, sum));
                assert_eq!(short.get(at), sum);
            }
            assert_eq!(short.each(), long.each());
            if round % 2 == 0 {
                assert!(!matches!(short, Sums::Each(_)));
            }
            let from = prng.below(SUMS as u64) as usize;
            let run = from..from + prng.below((SUMS - from) as u64 + 1) as usize;
            short.write_bytelessly(run.clone());
            run.for_each(|at| {
                long.set(at, Sum::BYTELESS);
            });
            assert_eq!(short.each(), long.each());
        }
    }

    #[test]
    fn what_becomes_alike_again_is_kept_in_one_value() {
        let mut sums = Sums::Uniform(Sum::UNWRITTEN);
        sums.write_bytelessly(0..1000);
        assert!(matches!(sums, Sums::Marked(_)));
        sums.write_bytelessly(1000..SUMS);
        assert!(matches!(sums, Sums::Uniform(Sum::BYTELESS)));
        for at in 0..SUMS {
            assert_eq!(sums.set(at, Sum::UNWRITTEN), Sum::BYTELESS);
        }
        assert!(matches!(sums, Sums::Uniform(Sum::UNWRITTEN)));
    }
}
