//! Drives that could not take the logs over.
//!
//! Invariant: a drive that has failed to take a copy of the logs is left out for a while, for twice as
//! long each time. Others are tried meanwhile. A copy takes time of the drives, and writes of the lane
//! wait for its last part.

use base::{Time, Uuid};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a drive is left out at first, and at most.
const PAUSE: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// A drive that is left out.
#[derive(Debug)]
struct LeftOut {
    until: Time,
    pause: Duration,
}

/// The drives that have failed since they carried the logs last.
#[derive(Debug, Default)]
pub(crate) struct NoCarriers(RefCell<BTreeMap<Uuid, LeftOut>>);

impl NoCarriers {
    /// Whether a drive is left out now.
    pub fn has(&self, drive: Uuid, now: Time) -> bool {
        let drives = self.0.borrow();
        drives.get(&drive).is_some_and(|drive| now < drive.until)
    }

    /// A drive could not take the logs over. Whether this is the first time.
    pub fn add(&self, drive: Uuid, now: Time) -> bool {
        let mut drives = self.0.borrow_mut();
        let before = drives.get(&drive).map(|drive| drive.pause);
        let pause = before.map_or(PAUSE, |pause| (pause * 2).min(PAUSE_MAX));
        let until = now + pause;
        drives.insert(drive, LeftOut { until, pause });
        before.is_none()
    }

    /// A drive carries the logs.
    pub fn remove(&self, drive: Uuid) {
        self.0.borrow_mut().remove(&drive);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_left_out_for_longer_each_time_until_it_carries_the_logs() {
        let drives = NoCarriers::default();
        let (drive, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mut now = Time(0);
        assert!(!drives.has(drive, now));
        for (nth, pause_s) in [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
            .into_iter()
            .enumerate()
        {
            assert_eq!(drives.add(drive, now), nth == 0);
            assert!(drives.has(drive, now) && !drives.has(other, now));
            now = now + Duration::from_secs(pause_s);
            assert!(!drives.has(drive, now));
        }
        drives.remove(drive);
        assert!(drives.add(drive, now));
    }
}
