//! Sequential readers of volumes, found by their reads.
//!
//! Invariants:
//! - A few random reads make no reader, and push none out.
//! - What is read ahead of a reader and was not asked for yet is never more than its window.

use crate::meta::record::VolumeId;
use base::{BLOCK_BYTES, Time};
use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

/// Reads one after the other that make a sequential reader.
const READS_IN_ORDER: u32 = 3;

/// The first read-ahead of a reader, in bytes; each later one doubles it.
const WINDOW_FIRST: u64 = 128 << 10;

/// Where each reader's share is less than a read, the arms of disks would move as often. So many
/// readers have data ahead of them then, one after the other, and the others nothing.
const READERS_AT_ONCE: u64 = 2;

/// What may be read ahead, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    /// Ahead of one reader.
    pub(crate) of_one: u64,
    /// Ahead of all.
    pub(crate) of_all: u64,
    /// Ahead of one, where shares of all are too small.
    pub(crate) of_few: u64,
    /// What is on its way.
    pub(crate) coming: u64,
}

/// How far off from where it is expected a read may begin, in bytes: commands that were
/// sent in order may come in a slightly different one.
const SLACK: u64 = 128 << 10;

/// The same, in lengths of the read. In a small volume, many random reads would be near to where a
/// reader could be.
const SLACK_READS: u64 = 4;

/// A reader that was not heard of for so long does not count any more.
const IDLE: Duration = Duration::from_secs(2);

/// Readers are looked for in sets, by where their next read should begin.
const SETS: usize = 256;
const WAYS: usize = 4;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Where a reader is, or somebody who may become one.
#[derive(Clone, Copy, Debug)]
struct Reader {
    volume: VolumeId,
    /// Where its next read should begin.
    next: u64,
    /// Reads in order so far.
    reads: u32,
    /// The end of what has been read ahead.
    ahead: u64,
    window: u64,
    heard: Time,
}

impl Reader {
    /// One that has read once, up to `end`.
    fn new(volume: VolumeId, end: u64, now: Time) -> Self {
        Reader {
            volume,
            next: end,
            reads: 1,
            ahead: end,
            window: WINDOW_FIRST / 2,
            heard: now,
        }
    }

    fn is_in_order(&self) -> bool {
        self.reads >= READS_IN_ORDER
    }

    /// What makes room for another one first: whoever read once, then who was silent for longest.
    fn rank(&self, now: Time) -> (bool, Time) {
        let counts = self.is_in_order() && now.since(self.heard) <= IDLE;
        (counts, self.heard)
    }
}

/// The readers of all volumes of a lane.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    /// `SETS` sets of `WAYS`; none before the first read.
    slots: RefCell<Vec<Option<Reader>>>,
}

/// The set in which a reader stands whose next read should begin in this stretch of `SLACK` bytes.
fn set_of(volume: VolumeId, stretch: u64) -> Range<usize> {
    let mixed = (stretch ^ (u64::from(volume.0) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let set = (mixed >> 56) as usize % SETS;
    set * WAYS..(set + 1) * WAYS
}

impl Readers {
    /// A read of a stretch of a volume (bytes). What is to be read ahead now.
    pub(crate) fn note(
        &self,
        volume: VolumeId,
        read: Range<u64>,
        now: Time,
        allowed: impl FnOnce() -> Allowed,
    ) -> Option<Range<u64>> {
        let mut slots = self.slots.borrow_mut();
        slots.resize(SETS * WAYS, None);
        let Some(at) = find(&slots, volume, &read) else {
            place(&mut slots, Reader::new(volume, read.end, now), now);
            return None;
        };
        let mut reader = slots[at].take()?;
        reader.heard = now;
        if read.end <= reader.next {
            // Read again: no step forward.
            slots[at] = Some(reader);
            return None;
        }
        reader.next = read.end;
        reader.reads = reader.reads.saturating_add(1);
        reader.ahead = reader.ahead.max(read.end);
        let wanted = (reader.window * 2).max(2 * (read.end - read.start));
        let is_far = reader.ahead - read.end > reader.window / 2;
        let range = match reader.is_in_order() && !is_far {
            true => {
                let others = slots.iter().flatten().filter(|other| other.rank(now).0);
                let readers = others.count() as u64 + 1;
                let window = allowed().window(readers, read.end - read.start);
                grown(&mut reader, read.end, wanted.min(window) / BLOCK * BLOCK)
            }
            false => None,
        };
        place(&mut slots, reader, now);
        range
    }
}

impl Allowed {
    /// The window of one of so many readers, which read so many bytes at a time.
    fn window(self, readers: u64, read_bytes: u64) -> u64 {
        let share = self.of_all / readers;
        match share >= read_bytes {
            true => share
                .min(self.of_one)
                .min(self.of_all.saturating_sub(self.coming)),
            false if self.coming < READERS_AT_ONCE * self.of_few => self.of_few.min(self.of_one),
            false => 0,
        }
    }
}

/// Has a reader that is at `end` have that window. What is to be read ahead then.
fn grown(reader: &mut Reader, end: u64, window: u64) -> Option<Range<u64>> {
    let is_far = reader.ahead - end > window / 2;
    if is_far || window == 0 {
        return None;
    }
    reader.window = window;
    let range = reader.ahead..end + window;
    reader.ahead = reader.ahead.max(range.end);
    Some(range).filter(|range| !range.is_empty())
}

/// Who should read next near the start of `read`, if anybody.
fn find(slots: &[Option<Reader>], volume: VolumeId, read: &Range<u64>) -> Option<usize> {
    let start = read.start;
    let slack = SLACK.min((read.end - start) * SLACK_READS);
    let stretches = start.saturating_sub(slack) / SLACK..=(start + slack) / SLACK;
    let near = stretches.flat_map(|stretch| set_of(volume, stretch));
    let near = near.filter_map(|at| {
        let reader = slots[at]
            .as_ref()
            .filter(|reader| reader.volume == volume)?;
        let off = reader.next.abs_diff(start);
        (off <= slack).then_some((off, at))
    });
    near.min().map(|(_, at)| at)
}

/// Puts a reader where it is looked for, in the place of whom it is least worth to keep.
fn place(slots: &mut [Option<Reader>], reader: Reader, now: Time) {
    let set = set_of(reader.volume, reader.next / SLACK);
    let rank = |at: &usize| slots[*at].map(|there| there.rank(now));
    let Some(at) = set.min_by_key(rank) else {
        return;
    };
    let is_worth_less = slots[at].is_none_or(|there| there.rank(now) <= reader.rank(now));
    if is_worth_less {
        slots[at] = Some(reader);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const WINDOW_MAX: u64 = 2 << 20;
    const VOLUME: VolumeId = VolumeId(1);

    fn allowed(of_one: u64, of_all: u64) -> Allowed {
        Allowed {
            of_one,
            of_all,
            of_few: of_all / 16,
            coming: 0,
        }
    }

    fn note(readers: &Readers, start: u64, len: u64, window_max: u64) -> Option<Range<u64>> {
        readers.note(VOLUME, start..start + len, Time(0), || {
            allowed(window_max, 1 << 40)
        })
    }

    #[test]
    fn a_reader_in_order_has_more_and_more_read_ahead() {
        let readers = Readers::default();
        let (mut at, mut ahead, mut most) = (0, 0, 0);
        for read in 0..2_000 {
            if let Some(range) = note(&readers, at, 16 * KIB, WINDOW_MAX) {
                assert!(read >= 2, "after {read} reads");
                assert_eq!(
                    range.start,
                    ahead.max(at + 16 * KIB),
                    "no gap, nothing twice"
                );
                ahead = range.end;
            }
            at += 16 * KIB;
            most = most.max(ahead.saturating_sub(at));
            assert!(
                read < 2 || ahead > at,
                "the reader is at what was read ahead"
            );
        }
        assert_eq!(most, WINDOW_MAX);
    }

    /// 128 readers of 64 volumes, with random reads between theirs, and so much for all: how much was
    /// ahead of each at most, and of all.
    fn side_by_side(of_all: u64) -> (Vec<u64>, u64) {
        let readers = Readers::default();
        let mut prng = base::Prng::from_seed(7);
        let (mut ahead, mut most, mut most_of_all) = ([0; 128], vec![0; 128], 0);
        for step in 0..600 {
            for reader in 0..128_usize {
                let volume = VolumeId(reader as u32 / 2);
                let at = ((reader as u64) << 33) + step * 64 * KIB;
                let now = Time(step * 1_000_000);
                let read = at..at + 64 * KIB;
                if let Some(range) = readers.note(volume, read, now, || allowed(8 << 20, of_all)) {
                    ahead[reader] = range.end;
                    most[reader] = most[reader].max(range.end - at - 64 * KIB);
                }
                let next = |reader: usize| ((reader as u64) << 33) + (step + 1) * 64 * KIB;
                let all = (0..128).map(|reader| ahead[reader].saturating_sub(next(reader)));
                most_of_all = most_of_all.max(all.sum());
                let at = prng.below(1 << 28) * 4 * KIB;
                readers.note(VolumeId(200), at..at + 4 * KIB, now, || allowed(0, 0));
            }
        }
        (most, most_of_all)
    }

    #[test]
    fn readers_side_by_side_are_told_apart_and_share_what_there_is() {
        let (each, all) = side_by_side(1 << 30);
        let found = each.iter().filter(|most| **most == 8 << 20).count();
        assert!(found >= 120, "{found} of 128 have all that one may have");
        assert!(all <= 1 << 30);
        let (each, all) = side_by_side(64 << 20);
        let found = each.iter().filter(|most| **most >= 448 * KIB).count();
        assert!(found >= 120, "{found} of 128 have their share: {each:?}");
        assert!(all <= 80 << 20, "{all}");
    }

    #[test]
    fn random_reads_have_nothing_read_ahead() {
        let readers = Readers::default();
        let mut prng = base::Prng::from_seed(3);
        let mut ranges = 0;
        for _ in 0..10_000 {
            let at = prng.below(1 << 28) * 4 * KIB;
            ranges += u64::from(note(&readers, at, 4 * KIB, WINDOW_MAX).is_some());
        }
        assert_eq!(ranges, 0);
    }

    /// Many readers are believed to be in a volume of 128 MiB, so most places are near to one of them.
    #[test]
    fn hardly_any_random_read_of_a_small_volume_has_something_read_ahead() {
        let readers = Readers::default();
        let mut prng = base::Prng::from_seed(3);
        let mut ranges = 0;
        for _ in 0..10_000 {
            let at = prng.below(32 << 10) * 4 * KIB;
            ranges += u64::from(note(&readers, at, 4 * KIB, WINDOW_MAX).is_some());
        }
        assert!(ranges < 500, "{ranges}");
    }

    #[test]
    fn the_order_may_be_a_little_off() {
        let readers = Readers::default();
        let mut found = None;
        for at in [0, 32, 16, 48, 80, 64] {
            found = note(&readers, at * KIB, 16 * KIB, WINDOW_MAX).or(found);
        }
        assert!(found.is_some());
    }

    #[test]
    fn what_is_on_its_way_counts() {
        let of = |of_all, coming| Allowed {
            of_one: 8 << 20,
            of_all,
            of_few: 1 << 20,
            coming,
        };
        assert_eq!(of(64 << 20, 0).window(16, 64 * KIB), 4 << 20);
        assert_eq!(of(64 << 20, 63 << 20).window(16, 64 * KIB), 1 << 20);
        assert_eq!(of(64 << 20, 65 << 20).window(16, 64 * KIB), 0);
        // A share is less than a read: two at a time.
        assert_eq!(of(512 * KIB, (2 << 20) - 1).window(16, 64 * KIB), 1 << 20);
        assert_eq!(of(512 * KIB, 2 << 20).window(16, 64 * KIB), 0);
    }

    #[test]
    fn the_window_keeps_to_what_is_allowed() {
        let readers = Readers::default();
        for (at, allowed) in (0..100).zip([0, 4, 8, 12].into_iter().cycle()) {
            let (start, allowed) = (at * 4 * KIB, allowed * KIB);
            if let Some(range) = note(&readers, start, 4 * KIB, allowed) {
                assert!(range.end - (start + 4 * KIB) <= allowed, "{range:?}");
            }
        }
    }

    #[test]
    fn who_is_silent_counts_no_more() {
        let readers = Readers::default();
        let read = |volume: u32, step: u64, now: Time| {
            let at = step * 64 * KIB;
            let range = readers.note(VolumeId(volume), at..at + 64 * KIB, now, || {
                allowed(8 << 20, 192 * KIB)
            });
            range.map_or(0, |range| range.end - at - 64 * KIB)
        };
        let reads = |volume, steps, now| {
            let windows = (0..steps).map(|step| read(volume, step, now));
            windows.max()
        };
        assert_eq!(reads(1, 3, Time(0)), Some(128 * KIB));
        assert_eq!(reads(2, 3, Time(0)), Some(96 * KIB), "its share");
        let later = Time(0) + IDLE + Duration::from_secs(1);
        assert_eq!(reads(3, 3, later), Some(128 * KIB));
    }
}
