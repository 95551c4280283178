//! A drive operation that failed, and the drive that it failed on.

use super::Member;
use crate::drive::DriveError;
use crate::world::World;
use futures_util::future::join_all;
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

/// Flushes each of `members` by `flush`, at the same time, and gives what failed.
pub async fn flush_each<W: World>(
    members: Vec<Rc<Member<W>>>,
    flush: impl AsyncFn(&Member<W>) -> Result<(), DriveError>,
) -> Vec<DriveFault<W>> {
    let flushes = members.into_iter().map(async |member| {
        let outcome = flush(&member).await;
        outcome.err().map(|error| DriveFault { member, error })
    });
    join_all(flushes).await.into_iter().flatten().collect()
}
