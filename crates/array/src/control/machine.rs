//! What the control plane asks of the machine that it runs on, beside time and tasks.

use site::Site;

/// A machine that runs an array.
pub trait Machine: Send + Sync {
    /// Bytes of memory that it has for the array; `None` when it does not say.
    fn memory_bytes(&self) -> Option<u64>;

    /// Has settings count that are kept: those that are neither of drives nor of logins.
    fn follow(&self, settings: &Site);
}

/// A machine that says nothing, and has nothing to follow.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMachine;

impl Machine for NoMachine {
    fn memory_bytes(&self) -> Option<u64> {
        None
    }

    fn follow(&self, _: &Site) {}
}
