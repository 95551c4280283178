//! Which zones are emptied: those of another level than their group's, and those of a group that
//! leaves. [`ZoneMoves`] empties one after the other. A zone that is empty goes out of use, and may come back at the new level.
//!
//! Which zones are to be emptied follows from the labels and the metadata, so it goes on
//! after a restart.

use super::TaskKind;
use super::emptying::{Emptied, Emptying, Use};
use super::lend::Lending;
use crate::drives::EventKind;
use crate::pool::PoolError;
use crate::space::LaneState;
use crate::world::World;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The zones that are to be emptied.
pub(super) struct ZoneMoves<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> ZoneMoves<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        ZoneMoves { lane }
    }

    /// Empties them, as far as there is room.
    pub(super) async fn empty_zones(&self) -> Result<(), PoolError> {
        let zones = self.lane.drives().zones_to_empty();
        let Some(first) = zones.first() else {
            return Ok(());
        };
        let total = Emptying::of(self.lane).bytes_to_move();
        let subject = format!("group {}", first.group.index);
        let now = self.lane.world().now();
        let task = self
            .lane
            .background()
            .begin(TaskKind::Move, &subject, now, (0, total));
        let outcome = self.empty_all(&task).await;
        self.lane.background().end(&task);
        outcome
    }

    async fn empty_all(&self, task: &super::Task) -> Result<(), PoolError> {
        let mut failed: BTreeMap<u32, PoolError> = BTreeMap::new();
        loop {
            let space = || self.lane.space();
            let mut zones = self.lane.drives().zones_to_empty();
            zones.retain(|zone| !failed.contains_key(&zone.shape.zone));
            if zones.is_empty()
                && let Some((_, error)) = failed.pop_first()
            {
                return Err(error);
            }
            let next = zones
                .into_iter()
                .min_by_key(|zone| space().used_in(zone.shape.zone));
            let Some(zone) = next else {
                self.lane.world().reached("group is of its level");
                let text = "all zones are moved: each has the level of its group".to_owned();
                self.lane.drives().event(EventKind::Group, text);
                self.lane.background().has_room();
                return Ok(());
            };
            match Emptying::of(self.lane)
                .empty_zone(&zone, task, Use::Free)
                .await
            {
                Ok(Emptied::Done) => {}
                Ok(Emptied::CalledOff | Emptied::PutOff) => return Ok(()),
                // Others may have all that they need.
                Err(error) => {
                    self.lane.go_on()?;
                    failed.insert(zone.shape.zone, error);
                }
            }
            Lending::of(self.lane).lend().await?;
        }
    }
}
