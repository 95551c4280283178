//! Sequential readers of a volume, found by their reads.

use base::BLOCK_BYTES;
use std::cell::RefCell;
use std::ops::Range;

/// Readers followed at a time on one volume.
const STREAMS: usize = 8;

/// Reads one after the other that make a sequential reader.
const READS_IN_ORDER: u32 = 3;

/// The first read-ahead of a reader, in bytes; each later one doubles it.
const WINDOW_FIRST: u64 = 128 << 10;

/// The most that is read ahead of a reader, in bytes.
const WINDOW_MAX: u64 = 2 << 20;

/// How far off from where it is expected a read may begin, in bytes: commands that were
/// sent in order may come in a slightly different one.
const SLACK: u64 = 128 << 10;

/// A reader.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Where its next read should begin.
    next: u64,
    /// Reads in order so far.
    reads: u32,
    /// The end of what has been read ahead.
    ahead: u64,
    window: u64,
    /// Tells which was not heard of for longest.
    used: u64,
}

/// The readers of a volume.
#[derive(Debug, Default)]
pub struct Streams {
    list: RefCell<Vec<Stream>>,
}

impl Streams {
    /// A read of `start..end` (bytes). What is to be read ahead now, with windows up to
    /// `window_max`.
    pub(crate) fn note(&self, start: u64, end: u64, window_max: u64) -> Option<Range<u64>> {
        let mut list = self.list.borrow_mut();
        let used = list.iter().map(|stream| stream.used).max().unwrap_or(0) + 1;
        let near = |stream: &&mut Stream| stream.next.abs_diff(start) <= SLACK;
        let Some(stream) = list
            .iter_mut()
            .filter(near)
            .min_by_key(|stream| stream.next.abs_diff(start))
        else {
            let new = Stream {
                next: end,
                reads: 1,
                ahead: end,
                window: WINDOW_FIRST / 2,
                used,
            };
            if list.len() < STREAMS {
                list.push(new);
            } else if let Some(oldest) = list.iter_mut().min_by_key(|stream| stream.used) {
                *oldest = new;
            }
            return None;
        };
        stream.used = used;
        if end <= stream.next {
            // Read again: no step forward.
            return None;
        }
        stream.next = end;
        stream.reads = stream.reads.saturating_add(1);
        stream.ahead = stream.ahead.max(end);
        let wanted = (stream.window * 2).max(2 * (end - start));
        let window = wanted.min(WINDOW_MAX).min(window_max);
        let is_far = stream.ahead - end > window / 2;
        if stream.reads < READS_IN_ORDER || is_far || window < BLOCK_BYTES as u64 {
            return None;
        }
        stream.window = window;
        let range = stream.ahead..end + window;
        stream.ahead = range.end;
        Some(range).filter(|range| !range.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    #[test]
    fn a_reader_in_order_has_more_and_more_read_ahead() {
        let streams = Streams::default();
        let (mut at, mut ahead, mut most) = (0, 0, 0);
        for read in 0..2_000 {
            if let Some(range) = streams.note(at, at + 16 * KIB, u64::MAX) {
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

    #[test]
    fn readers_side_by_side_are_told_apart() {
        let streams = Streams::default();
        let base = |reader: u64| reader << 30;
        for step in 0..100 {
            for reader in 0..STREAMS as u64 {
                let at = base(reader) + step * 64 * KIB;
                let range = streams.note(at, at + 64 * KIB, u64::MAX);
                assert!(
                    range.is_none_or(|range| range.start >= at && range.end < base(reader + 1))
                );
            }
        }
        let list = streams.list.borrow();
        assert_eq!(list.len(), STREAMS);
        assert!(list.iter().all(|stream| stream.window == WINDOW_MAX));
    }

    #[test]
    fn random_reads_have_nothing_read_ahead() {
        let streams = Streams::default();
        let mut prng = base::Prng::from_seed(3);
        let mut ranges = 0;
        for _ in 0..10_000 {
            let at = prng.below(1 << 28) * 4 * KIB;
            ranges += u64::from(streams.note(at, at + 4 * KIB, u64::MAX).is_some());
        }
        assert_eq!(ranges, 0);
    }

    #[test]
    fn the_order_may_be_a_little_off() {
        let streams = Streams::default();
        let mut found = None;
        for at in [0, 32, 16, 48, 80, 64] {
            found = streams.note(at * KIB, (at + 16) * KIB, u64::MAX).or(found);
        }
        assert!(found.is_some());
    }

    #[test]
    fn the_window_keeps_to_what_is_allowed() {
        let streams = Streams::default();
        for (at, allowed) in (0..100).zip([0, 4, 8, 12].into_iter().cycle()) {
            let (start, allowed) = (at * 4 * KIB, allowed * KIB);
            if let Some(range) = streams.note(start, start + 4 * KIB, allowed) {
                assert!(range.end - (start + 4 * KIB) <= allowed, "{range:?}");
            }
        }
    }
}
