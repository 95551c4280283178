//! Zones that other lanes of the pool lend.

use super::{Claim, LaneState};
use crate::error::PoolError;
use crate::lane::Purpose;
use crate::world::World;
use base::PhysPage;
use std::rc::Rc;
use std::time::Duration;

/// How often who asks looks for an answer.
pub(crate) const WAIT: Duration = Duration::from_millis(2);

/// How many times: longer than any drive is waited for. A lane that has stopped says so.
pub(crate) const WAITS: u32 = 60_000;

impl<W: World> LaneState<W> {
    /// Takes pages of a zone that another lane lends; none when no lane can, or does in
    /// time.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub(crate) async fn take_lent(
        self: &Rc<Self>,
        max: u64,
        claim: Claim,
    ) -> Result<Option<(PhysPage, u64)>, PoolError> {
        let lane = self.drives.lane();
        if lane.registry.lanes() == 1 {
            return Ok(None);
        }
        let request = lane.registry.request_zone(lane.index, Purpose::Write);
        for _ in 0..WAITS {
            let answered = request.is_refused();
            // What came between the answer and now counts, too. A zone that was too small does not
            // end it.
            let taken = self.take_pages(max, claim).await?;
            if taken.is_some() || answered && request.is_refused() {
                return Ok(taken);
            }
            self.world.sleep(WAIT).await;
            self.check()?;
        }
        Ok(None)
    }
}
