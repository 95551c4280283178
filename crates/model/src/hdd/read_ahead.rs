//! The data that the drive has read on into its buffer after the last read.
//!
//! While the arm has nothing else to do, the heads stay where the last read ended
//! and what passes under them goes into one segment of the buffer, until it is
//! full. "Data in contiguous logical blocks on the disk immediately beyond that
//! which was requested by a Read command are retrieved" (Cheetah 15K.7 manual,
//! 100516226, 4.5.2). Nothing is computed until someone asks.
//!
//! The model keeps one segment, that of the last read: sequential streams that
//! take turns at one drive get less from it than from a real one with several.

use super::geometry::Geometry;
use base::Time;

/// One segment: the bytes `from..`, read on from the end of a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAhead {
    from_bytes: u64,
    /// Where the read ended, and when.
    begin_bytes: u64,
    begin: Time,
    /// Never beyond this.
    limit_bytes: u64,
    /// The arm went elsewhere then.
    stopped: Option<Time>,
}

/// How a read finds the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentHit {
    /// All of it is there.
    Whole,
    /// The rest of it comes under the heads by then.
    ComingAt(Time),
    /// The medium must be asked.
    Not,
}

impl ReadAhead {
    /// After a read of `from..end` that ended at `now`.
    pub(super) fn after(from: u64, end: u64, now: Time, limit_bytes: u64) -> ReadAhead {
        ReadAhead {
            from_bytes: from,
            begin_bytes: end,
            begin: now,
            limit_bytes: limit_bytes.max(end),
            stopped: None,
        }
    }

    /// The end of what is in the segment at `now`.
    pub(super) fn end_at(&self, geometry: &Geometry, now: Time) -> u64 {
        let until = self.stopped.map_or(now, |stopped| stopped.min(now));
        let passed_ns = until.since(self.begin).as_nanos() as u64;
        let tape_ns = geometry.place(self.begin_bytes).tape_ns + passed_ns;
        // Tape positions are rounded down to a nanosecond; a byte that has just
        // been read must count as read.
        let end = geometry.offset_at(tape_ns + 1).max(self.begin_bytes);
        end.min(self.limit_bytes)
    }

    /// Whether the heads still follow it.
    pub(super) fn is_running(&self) -> bool {
        self.stopped.is_none()
    }

    /// The arm goes elsewhere.
    pub(super) fn stop(&mut self, now: Time) {
        self.stopped.get_or_insert(now);
    }

    /// The host has read on, so the segment may go on to `limit_bytes`, unless it
    /// was full by `now`: then the heads have lost it.
    pub(super) fn extend(&mut self, geometry: &Geometry, now: Time, limit_bytes: u64) {
        if self.is_running() && self.end_at(geometry, now) < self.limit_bytes {
            self.limit_bytes = self.limit_bytes.max(limit_bytes);
        }
    }

    pub(super) fn overlaps(&self, from: u64, end: u64) -> bool {
        from < self.limit_bytes && end > self.from_bytes
    }

    /// How a read of `from..end` at `now` finds it.
    pub(super) fn find(&self, geometry: &Geometry, from: u64, end: u64, now: Time) -> SegmentHit {
        let there = self.end_at(geometry, now);
        if from < self.from_bytes || from > there {
            SegmentHit::Not
        } else if end <= there {
            SegmentHit::Whole
        } else if self.is_running() && there < self.limit_bytes {
            // It may be longer than the segment: the host takes it as it comes.
            let tape = |offset| geometry.place(offset).tape_ns;
            let ns = tape(end) - tape(self.begin_bytes);
            SegmentHit::ComingAt(self.begin + std::time::Duration::from_nanos(ns))
        } else {
            SegmentHit::Not
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Hdd;
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_segment_grows_as_the_bytes_pass_and_stops_with_the_arm() {
        let geometry = Geometry::new(&Hdd::SAS_15K);
        let (begin, limit) = (1 << 20, 2 << 20);
        let mut ahead = ReadAhead::after(0, begin, Time(7), limit);
        let tape_ns = |offset| geometry.place(offset).tape_ns;
        let passed = |offset| Time(7) + Duration::from_nanos(tape_ns(offset) - tape_ns(begin));
        for offset in (begin..limit).step_by(12_345) {
            let end = ahead.end_at(&geometry, passed(offset));
            assert!(end.abs_diff(offset) <= 1, "{end} for {offset}");
        }
        assert_eq!(ahead.end_at(&geometry, Time(1 << 40)), limit);
        let half = begin + (limit - begin) / 2;
        let find = |ahead: &ReadAhead, end| ahead.find(&geometry, begin, end, passed(half));
        assert_eq!(find(&ahead, half - 1), SegmentHit::Whole);
        assert_eq!(find(&ahead, limit), SegmentHit::ComingAt(passed(limit)));
        ahead.stop(passed(half));
        assert_eq!(find(&ahead, half - 1), SegmentHit::Whole);
        assert_eq!(find(&ahead, limit), SegmentHit::Not);
        assert!(ahead.end_at(&geometry, Time(1 << 40)).abs_diff(half) <= 1);
    }
}
