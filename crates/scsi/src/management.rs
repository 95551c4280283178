//! Task management functions (SAM-5 clause 7) and their effect on the tasks of a logical unit.
//!
//! Invariant: a function ends when the tasks meant have ended, so that an initiator which is
//! told that a write was aborted never sees it land later.

use crate::nexus::Nexus;
use engine::World;
use futures_util::FutureExt;
use futures_util::future::{join_all, ready};

/// A function on a logical unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// ABORT TASK SET: tasks of this nexus (SAM-5 clause 7.3).
    AbortTaskSet,
    /// CLEAR TASK SET: tasks of all, who are told (clause 7.4).
    ClearTaskSet,
    /// LOGICAL UNIT RESET (clause 7.5).
    UnitReset,
}

impl<W: World> Nexus<W> {
    /// Does `function` at `lun`. False, and nothing is done, when there is no logical unit.
    pub async fn manage(&self, function: Function, lun: u16) -> bool {
        let target = self.target();
        if target.unit(lun).is_none() {
            return false;
        }
        if function == Function::AbortTaskSet {
            self.abort(lun).await;
            return true;
        }
        let all = target.connected();
        let aborting = all.iter().map(|nexus| {
            let aborting = nexus.abort(lun);
            let world = target.world();
            match world.planted("abort answered before the write ended") {
                true => {
                    world.spawn(aborting.map(drop));
                    ready(0).boxed_local()
                }
                false => aborting,
            }
        });
        let aborted = join_all(aborting).await;
        if function == Function::UnitReset {
            target.unit_reset(lun);
            return true;
        }
        for (nexus, aborted) in all.iter().zip(aborted) {
            if aborted > 0 && nexus.id() != self.id() {
                nexus.commands_cleared(lun);
            }
        }
        true
    }
}
