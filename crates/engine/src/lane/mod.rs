//! A pool in several lanes, each on a shard of its own.
//!
//! A lane is all of an engine: labels, metadata, logs, sums, cache and volumes of its
//! own, over the same drives as the pool's other lanes. It knows nothing of them but
//! what [`LaneRegistry`] tells. A volume is in one lane for life, so its commands meet no
//! other thread.
//!
//! Invariants:
//! - What lies before the zones of a drive (labels, metadata, logs) is there once for
//!   each lane, one after the other ([`View`]).
//! - A zone is in use in one lane at a time. A lane takes one into use only when all
//!   lanes have said which they have, and gives it back only when it is durably out of
//!   use.
//! - A drive stands at the same place in every lane that uses it.
//! - A change of the pool's groups is made in all lanes or in none: the first lane decides,
//!   and drives of a group are free when all lanes have left it ([`accord`]).
//! - Lanes that ask each other for zones do not exchange them without end (`requests`).
//! - Zones of all lanes differ in their incarnations, so that sums of one are never
//!   taken for another's.
//!
//! So each lane keeps what it acknowledged by itself, whatever the others do.

mod accord;
pub mod fullness;
mod owners;
mod registry;
mod requests;
pub mod steps;
mod view;

pub use crate::label::{LANES_MAX, Part};
pub use accord::Departure;
pub use registry::{LaneRegistry, ZoneRequest, ZoneTaken};
pub use requests::Purpose;
pub use view::View;

/// Which lane of a pool, and what it shares with the others.
#[derive(Clone, Debug)]
pub struct LaneSlot {
    /// The lane's number, counted from zero.
    pub index: u16,
    /// Shared by all lanes of the pool.
    pub registry: LaneRegistry,
}

impl LaneSlot {
    /// The lane of a pool that has no other.
    pub fn alone() -> Self {
        LaneSlot {
            index: 0,
            registry: LaneRegistry::new(1),
        }
    }

    /// The lanes of a pool that is about to be made or opened.
    ///
    /// # Panics
    /// For none, or more than [`LANES_MAX`].
    pub fn all(count: u16) -> Vec<LaneSlot> {
        let registry = LaneRegistry::new(count);
        (0..count)
            .map(|index| LaneSlot {
                index,
                registry: registry.clone(),
            })
            .collect()
    }

    /// The next incarnation, from `next` on, that no other lane uses.
    pub fn incarnation(&self, next: u32) -> u32 {
        let lanes = u32::from(self.registry.lanes());
        let past = (u32::from(self.index) + lanes - next % lanes) % lanes;
        next + past
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incarnations_of_lanes_differ() {
        for lanes in 1..=LANES_MAX {
            for lane in LaneSlot::all(lanes) {
                for next in 0..100 {
                    let got = lane.incarnation(next);
                    assert!((next..next + u32::from(lanes)).contains(&got));
                    assert_eq!(got % u32::from(lanes), u32::from(lane.index));
                }
            }
        }
    }
}
