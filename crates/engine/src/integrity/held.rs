//! The newest record of a block of sums, in the log: nothing behind it is let go as long as it is held.

use crate::ring::Hold;
use std::rc::Rc;

/// The newest record of a block, in the log.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) stamp: u64,
    pub(super) _hold: Rc<Hold>,
}
