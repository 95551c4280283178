//! The fullness of a pool, and the warnings about it: `FullnessWatch`.
//!
//! Each lane says what it uses; the first one judges for all. Invariants:
//! - Crossing a threshold, up or back down, is one event. Down counts only some percent
//!   below, so that a pool at a threshold does not tell of it over and over.
//! - What is promised to thick volumes counts as used: nobody else can have it.
//! - A pool that had no page for somebody is full for a while, or until so much is given back as
//!   counts as down. So hosts that give single pages back and ask for more make no events.
//! - A lane whose metadata is full tells of it once, until nothing was refused for ten minutes.

use crate::drives::{Drives, EventKind};
use crate::lane::fullness::{Crossed, Judged};
pub use crate::lane::fullness::{Fullness, FullnessInfo, Thresholds};
use crate::pool::Lane;
use crate::space::LaneState;
use crate::world::World;
use base::Time;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// How often to look.
const LOOK: Duration = Duration::from_millis(100);

/// Nobody hears again of refusals that come in shorter pauses.
const REFUSALS_PAUSE: Duration = Duration::from_secs(600);

/// Says and judges how full the pool is, as long as it is there.
pub(super) async fn watch<W: World>(world: W, pool: Weak<LaneState<W>>) {
    let mut refusals = MapRefusals::default();
    loop {
        {
            let Some(inner) = pool.upgrade() else { return };
            refusals.look(&inner);
            inner.occupancy().say_space();
            if inner.drives().lane().index == 0 {
                FullnessWatch::of(inner.drives()).judge();
            }
        }
        world.sleep(LOOK).await;
    }
}

/// What was refused for want of room in the metadata, as far as that was told.
#[derive(Default)]
struct MapRefusals {
    seen: u64,
    last: Option<Time>,
}

impl MapRefusals {
    /// Tells of the first one, and of the next after a pause.
    fn look<W: World>(&mut self, lane: &Rc<LaneState<W>>) {
        let (room, now) = (lane.metadata_room(), lane.world().now());
        let refused = room.map_refusals();
        if refused == self.seen {
            return;
        }
        self.seen = refused;
        let last = self.last.replace(now);
        if last.is_none_or(|last| now.since(last) > REFUSALS_PAUSE) {
            let (place, remedy) = (room.place(), room.remedy());
            let text = format!(
                "the metadata of {place} has no room for more maps, and writes, snapshots and copies that need some fail: {remedy}"
            );
            lane.drives().event(EventKind::Space, text);
        }
    }
}

/// Judges how full the drives of a pool are, and tells of it.
struct FullnessWatch<'a, W: World> {
    drives: &'a Drives<W>,
}

impl<'a, W: World> FullnessWatch<'a, W> {
    fn of(drives: &'a Drives<W>) -> Self {
        FullnessWatch { drives }
    }

    fn judge(&self) {
        let registry = &self.drives.lane().registry;
        let (taken, in_use) = registry.space();
        let capacity = self.drives.unopened_pages().saturating_add_signed(in_use);
        let now = self.drives.world().now();
        let judge = |judged: &mut Judged| {
            let crossed = judged.judge(now, taken, capacity);
            crossed.map(|crossed| (crossed, judged.info.thresholds))
        };
        let Some((crossed, thresholds)) = registry.with_judged(judge) else {
            return;
        };
        let Crossed {
            before,
            next,
            is_refused,
        } = crossed;
        let percent = taken * 100 / capacity.max(1);
        let text = text((before, next), is_refused, percent, thresholds);
        let (kind, mark) = match next > before {
            true => (EventKind::Space, "pool fuller than a threshold"),
            false => (EventKind::SpaceFreed, "pool below a threshold again"),
        };
        self.drives.event(kind, text);
        self.drives.world().reached(mark);
    }
}

fn text(
    (before, next): (Fullness, Fullness),
    is_refused: bool,
    percent: u64,
    thresholds: Thresholds,
) -> String {
    let Thresholds {
        warn_percent: warn,
        alarm_percent: alarm,
    } = thresholds;
    let what = match (next, next > before) {
        (Fullness::Full, _) if is_refused => {
            "a write found no free page; writes that need space fail until you free some".to_owned()
        }
        (Fullness::Full, _) => {
            "it is full, and writes that need space fail until you free some".to_owned()
        }
        (Fullness::Alarm, true) => format!("it is above the alarm threshold of {alarm} %"),
        (Fullness::Warn, true) => format!("it is above the warning threshold of {warn} %"),
        (Fullness::Alarm, false) => {
            format!("it is not full any more; the alarm threshold is {alarm} %")
        }
        (Fullness::Warn, false) => format!(
            "it is below the alarm threshold of {alarm} %; the warning threshold is {warn} %"
        ),
        (Fullness::Ample, _) => format!("it is below the warning threshold of {warn} %"),
    };
    format!("{percent} % of the pool is used or promised to thick volumes: {what}")
}

impl<W: World> Lane<W> {
    /// How full it is, as of the last look; the same in all lanes.
    pub fn fullness(&self) -> FullnessInfo {
        let registry = &self.inner.drives().lane().registry;
        registry.with_judged(|judged| judged.info)
    }

    /// Sets from which part of the capacity on people are told, for all lanes.
    pub fn set_thresholds(&self, thresholds: Thresholds) {
        let registry = &self.inner.drives().lane().registry;
        registry.with_judged(|judged| judged.info.thresholds = thresholds);
    }
}
