//! A bus between controllers and drives: commands and data one after the other in each
//! direction.

use crate::world::RigWorld;
use base::Time;
use engine::World;
use model::link::{Link, State};
use std::cell::RefCell;
use std::time::Duration;

/// A bus at work.
pub struct BusRig {
    /// Unique over the site.
    pub name: String,
    link: Link,
    state: RefCell<State>,
}

impl BusRig {
    /// A bus at rest.
    pub fn new(name: String, link: Link) -> BusRig {
        BusRig {
            name,
            link,
            state: RefCell::default(),
        }
    }

    /// Takes data to a drive. A command without data costs nothing that shows.
    pub async fn out(&self, world: &RigWorld, len_bytes: u64) {
        if len_bytes > 0 {
            let sent = self
                .state
                .borrow_mut()
                .out
                .send(&self.link, world.now(), len_bytes);
            world.sleep_until(sent.arrived).await;
        }
    }

    /// Takes data from a drive.
    pub async fn back(&self, world: &RigWorld, len_bytes: u64) {
        if len_bytes > 0 {
            let sent = self
                .state
                .borrow_mut()
                .back
                .send(&self.link, world.now(), len_bytes);
            world.sleep_until(sent.arrived).await;
        }
    }

    /// Busy time so far, of each direction, without what is still to be sent at `now`.
    pub fn busy(&self, now: Time) -> [Duration; 2] {
        let state = self.state.borrow();
        [&state.out, &state.back].map(|lane| lane.busy().saturating_sub(lane.free_at().since(now)))
    }
}
