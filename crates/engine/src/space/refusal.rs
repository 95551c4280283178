//! Telling the other lanes how much of the space is taken, and that somebody found none.

use super::{LaneState, promise};
use crate::lane::fullness::Refusal;
use crate::world::World;

impl<W: World> LaneState<W> {
    /// Tells the other lanes how many pages are taken here, and how many there are.
    pub(crate) fn say_space(&self) {
        let (used, free) = {
            let space = self.space();
            (space.used(), space.free())
        };
        let kept = promise::kept_of(used + free + self.drives.unopened_pages());
        // Less than none, where what is kept lies in zones that are not yet in use.
        let pages = (used + free) as i64 - kept as i64;
        let lane = self.drives.lane();
        let taken = used + self.promised_pages();
        lane.registry.say_space(lane.index, taken, pages);
    }

    /// Somebody found no page.
    pub(crate) fn say_refused(&self) {
        // What was given back before counts no more.
        self.say_space();
        let at = self.world.now();
        let registry = &self.drives.lane().registry;
        let (taken, _) = registry.space();
        registry.with_judged(|judged| judged.refused = Some(Refusal { at, taken }));
    }
}
