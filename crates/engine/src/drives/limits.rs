//! The limits beyond which a drive is not trusted.

use std::time::Duration;

/// From when on a drive is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The time over which operations are counted.
    pub window: Duration,
    /// Windows in a row with something wrong that make a drive suspect.
    pub bad_windows: u32,
    /// Windows in a row with nothing wrong that make it healthy again.
    pub quiet_windows: u32,
    /// Failed operations in a window, or blocks put right, that are wrong.
    pub errors: u64,
    /// Failed operations in one window that take the drive out of use, if they are `ratio`
    /// times those of the other drives (their median): where all fail, what they hang on did.
    pub errors_out: u64,
    /// An operation that takes longer counts as slow. A mean below it is never wrong.
    pub slow: Duration,
    /// A mean so many times that of the other drives (their median) is wrong, if a
    /// quarter of the operations was slow, too.
    pub ratio: u32,
    /// Operations of a kind in a window without which nothing is said of it; a quarter
    /// suffices where they took half of the window: a slow copy is asked seldom.
    pub operations: u64,
    /// An operation in flight for longer takes the drive out of use. Initiators give up
    /// after some ten seconds, and then take the whole target for dead: this is less,
    /// and more than a sound drive ever takes.
    pub hung: Duration,
    /// A read in flight for longer is answered by others, where they can; it has to take
    /// `ratio` times as long as reads take there, too.
    pub hedge: Duration,
    /// A drive that has been suspect for so long, without a break, is copied to a spare and leaves.
    pub copied_after: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            window: Duration::from_secs(5),
            bad_windows: 2,
            quiet_windows: 12,
            errors: 8,
            errors_out: 1_000,
            slow: Duration::from_millis(20),
            ratio: 8,
            operations: 16,
            hung: Duration::from_secs(6),
            hedge: Duration::from_millis(300),
            copied_after: Some(Duration::from_secs(600)),
        }
    }
}

/// The median; of two in the middle the lower.
pub(crate) fn median<T: Copy + Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied()
}
