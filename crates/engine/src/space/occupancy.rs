//! Telling the other lanes how much of the space is taken, and that somebody found none:
//! [`Occupancy`].

use super::{LaneState, promise};
use crate::lane::fullness::Refusal;
use crate::world::World;
use std::rc::Rc;

/// How much of its space a lane has taken, as the other lanes are told.
pub(crate) struct Occupancy<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Occupancy<'a, W> {
    pub(crate) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Occupancy { lane }
    }

    /// Tells the other lanes how many pages are taken here, and how many there are.
    pub(crate) fn say_space(&self) {
        let (used, free) = {
            let space = self.lane.space();
            (space.used(), space.free())
        };
        let kept = promise::kept_of(used + free + self.lane.drives.unopened_pages());
        // Less than none, where what is kept lies in zones that are not yet in use.
        let pages = (used + free) as i64 - kept as i64;
        let lane = self.lane.drives.lane();
        let taken = used + self.lane.promised_pages();
        lane.registry.say_space(lane.index, taken, pages);
    }

    /// Somebody found no page.
    pub(crate) fn say_refused(&self) {
        // What was given back before counts no more.
        self.say_space();
        let at = self.lane.world.now();
        let registry = &self.lane.drives.lane().registry;
        let (taken, _) = registry.space();
        registry.with_judged(|judged| judged.refused = Some(Refusal { at, taken }));
    }
}
