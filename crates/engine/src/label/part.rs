//! A lane's part of a drive: its own part of the front, then the zones, which all lanes share.

use base::DriveOffset;

/// Lanes that a pool can have.
pub const LANES_MAX: u16 = 16;

/// Where a lane's part of a drive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The lane's number, from 0.
    pub lane: u16,
    /// How many there are.
    pub lanes: u16,
    /// Bytes that each has before the zones. Of no meaning with one lane.
    pub front_bytes: u64,
}

impl Part {
    /// All of a drive; also what finds the label of the first lane on any drive.
    pub const WHOLE: Part = Part {
        lane: 0,
        lanes: 1,
        front_bytes: 0,
    };

    /// Bytes of the other lanes' parts.
    pub fn of_others_bytes(&self) -> u64 {
        u64::from(self.lanes - 1) * self.front_bytes
    }

    /// Where on the drive the lane's `len` bytes at `at` are.
    ///
    /// # Panics
    /// When they are neither before the zones nor in them.
    pub fn place(&self, at: DriveOffset, len: u64) -> DriveOffset {
        if self.lanes == 1 {
            return at;
        }
        if at.0 >= self.front_bytes {
            return at + self.of_others_bytes();
        }
        assert!(
            at.0 + len <= self.front_bytes,
            "{len} bytes at {at} are not in one part of a drive"
        );
        at + u64::from(self.lane) * self.front_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fronts_lie_one_after_the_other_and_zones_after_all() {
        let part = |lane| Part {
            lane,
            lanes: 3,
            front_bytes: 100,
        };
        assert_eq!(part(0).place(DriveOffset(0), 100), DriveOffset(0));
        assert_eq!(part(1).place(DriveOffset(10), 90), DriveOffset(110));
        assert_eq!(part(2).place(DriveOffset(99), 1), DriveOffset(299));
        for lane in 0..3 {
            assert_eq!(part(lane).place(DriveOffset(100), 500), DriveOffset(300));
        }
        assert_eq!(Part::WHOLE.place(DriveOffset(77), 1), DriveOffset(77));
    }

    #[test]
    #[should_panic(expected = "not in one part")]
    fn nothing_goes_over_the_end_of_a_front() {
        let part = Part {
            lane: 0,
            lanes: 2,
            front_bytes: 100,
        };
        part.place(DriveOffset(90), 20);
    }
}
