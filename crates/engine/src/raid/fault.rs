//! A drive operation that failed, and whose it was.

use super::Member;
use crate::drive::DriveError;
use crate::world::World;
use std::fmt;
use std::rc::Rc;

/// A member that failed an operation.
pub struct DriveFault<W: World> {
    /// The drive.
    pub member: Rc<Member<W>>,
    /// What it said.
    pub error: DriveError,
}

impl<W: World> Clone for DriveFault<W> {
    fn clone(&self) -> Self {
        DriveFault {
            member: Rc::clone(&self.member),
            error: self.error.clone(),
        }
    }
}

impl<W: World> fmt::Debug for DriveFault<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drive '{}': {}", self.member.name, self.error)
    }
}
