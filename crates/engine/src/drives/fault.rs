//! A drive operation that failed, and the drive that it failed on.

use super::Member;
use crate::drive::DriveError;
use crate::world::World;
use std::fmt;
use std::rc::Rc;

/// A member that failed an operation.
pub struct DriveFault<W: World> {
    /// The drive that failed the operation.
    pub member: Rc<Member<W>>,
    /// The error that the drive returned.
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
