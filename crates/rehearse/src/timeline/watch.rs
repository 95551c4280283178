//! The engine's own events, told at their time: drives out of use, spares taken, rebuilds.

use super::Scene;
use super::log::{amount, rate, seconds};
use base::Time;
use engine::World;
use engine::pool::EventKind;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Between two looks at the pools: events have their own times, so it only bounds how many
/// a pool keeps, and how late a task that ends soon is seen.
const LOOK: Duration = Duration::from_secs(1);

/// What was heard of a lane of a pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    sequence: u64,
    /// Rebuilds under way by drive, those on distributed spares by group: when they began, and the drive's bytes to be gone through.
    rebuilds: BTreeMap<String, (Time, u64)>,
}

/// Listens to the engine from now on.
pub(super) fn start(scene: &Rc<Scene>) {
    let lanes = scene.pools.iter().flat_map(|pool| &pool.lanes);
    let heard = lanes.map(|lane| Heard {
        sequence: lane.events(0).last().map_or(0, |event| event.sequence),
        rebuilds: BTreeMap::new(),
    });
    let heard = heard.collect();
    scene.heard.replace(heard);
    let scene = Rc::clone(scene);
    scene.world.clone().spawn(async move {
        while !scene.is_over() {
            scene.world.sleep(LOOK).await;
            hear(&scene);
        }
    });
}

/// Tells what is new.
pub(super) fn hear(scene: &Scene) {
    let mut heard = scene.heard.borrow_mut();
    let lanes = scene.pools.iter().flat_map(|pool| {
        let lanes = pool.lanes.iter();
        lanes.map(move |lane| (pool, lane))
    });
    for ((pool, lane), heard) in lanes.zip(heard.iter_mut()) {
        // Nobody runs it.
        if pool.controller.is_lost() {
            continue;
        }
        for event in lane.events(heard.sequence) {
            heard.sequence = event.sequence;
            let of_lane = match pool.lanes.len() {
                1 => String::new(),
                _ => format!(", lane {}", lane.lane()),
            };
            let mut text = format!("pool {}{of_lane}: {}", pool.name, event.text);
            if event.kind == EventKind::Rebuild {
                text += &heard.rebuild(&event.text, event.at);
            }
            scene.log.tell_of(event.at, text);
        }
        if !heard.rebuilds.is_empty() {
            for task in lane.info().tasks {
                if let Some((_, bytes)) = heard.rebuilds.get_mut(&task.subject) {
                    *bytes = task.total_bytes;
                }
            }
        }
    }
}

/// The group that is rebuilt on its distributed spares, as its task is called. A drive more that is
/// lost meanwhile begins it again.
fn of_group(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("group ")?;
    let (number, rest) = rest.split_once(' ')?;
    rest.contains("distributed spares")
        .then(|| format!("group {number}"))
}

impl Heard {
    /// What there is to say beside an event of a rebuild.
    fn rebuild(&mut self, text: &str, at: Time) -> String {
        let (subject, begins) = match of_group(text) {
            Some(group) => (group, text.starts_with("what ")),
            None => {
                let Some(drive) = text.split('\'').nth(1) else {
                    return String::new();
                };
                (drive.to_owned(), !self.rebuilds.contains_key(drive))
            }
        };
        if begins {
            self.rebuilds.entry(subject).or_insert((at, 0));
            return String::new();
        }
        match self.rebuilds.remove(&subject) {
            None => String::new(),
            Some((began, bytes)) => {
                let took = at.since(began);
                let gone_through = match bytes {
                    0 => String::new(),
                    bytes => format!(", {}{}", amount(bytes), rate(bytes, took)),
                };
                format!(", after {}{gone_through}", seconds(took))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebuild_on_distributed_spares_is_timed_by_its_group() {
        let mut heard = Heard::default();
        let mut at =
            |text: &str, seconds: u64| heard.rebuild(text, Time(0) + Duration::from_secs(seconds));
        for seconds in [1, 3] {
            let text = "what group 0 lacks of drive 'a' is rebuilt on its distributed spares";
            assert_eq!(at(text, seconds), "");
        }
        let ended = at("rebuild of group 0 on its distributed spares has ended", 11);
        assert_eq!(ended, ", after 10.0 s");
        // The drive that was lost is another matter.
        assert_eq!(at("rebuild of 'a' has begun", 12), "");
        assert_eq!(at("rebuild of 'a' has ended", 14), ", after 2.0 s");
    }
}
