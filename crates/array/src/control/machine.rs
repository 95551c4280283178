//! What the control plane asks of the machine that it runs on, beside time and tasks.

use engine::pool::PoolInfo;
use site::Site;

/// A machine that runs an array.
pub trait Machine: Send + Sync {
    /// Bytes of memory that it has for the array; `None` when it does not say.
    fn memory_bytes(&self) -> Option<u64>;

    /// Has settings count that are kept: those that are neither of drives nor of logins.
    fn follow(&self, settings: &Site);

    /// The drives of a pool that have failed and have no place in it any more.
    fn failed_drives(&self, info: &PoolInfo) -> Vec<FailedDrive>;
}

/// A drive that has failed, and that nobody has removed or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedDrive {
    /// Name that it had in its pool.
    pub name: String,
    /// It was a spare.
    pub is_spare: bool,
}

/// A machine that says nothing, has nothing to follow, and knows of no failed drives.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMachine;

impl Machine for NoMachine {
    fn memory_bytes(&self) -> Option<u64> {
        None
    }

    fn follow(&self, _: &Site) {}

    fn failed_drives(&self, _: &PoolInfo) -> Vec<FailedDrive> {
        Vec::new()
    }
}
