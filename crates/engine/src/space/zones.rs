//! Taking zones into use: [`ZonesInUse`].
//!
//! A zone's sums are written before the record that it is in use is durable: what
//! was there before is never taken for anything.

use super::LaneState;
use crate::drives::{Group, Member, Zone};
use crate::error::{PoolError, PoolErrorKind};
use crate::label::MemberState;
use crate::meta::Record;
use crate::world::World;
use std::rc::Rc;
use std::time::Duration;

/// How long to wait for the other lanes of the pool to be open.
const OTHERS_OPEN: Duration = Duration::from_millis(1);

/// How often who asks another lane for a zone looks for an answer.
pub(super) const WAIT: Duration = Duration::from_millis(2);

/// How many times that is: longer than any drive is waited for. A lane that has stopped says so.
pub(super) const WAITS: u32 = 60_000;

/// The zones that a lane has in use, and those that it can take into use.
pub(crate) struct ZonesInUse<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> ZonesInUse<'a, W> {
    pub(crate) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        ZonesInUse { lane }
    }

    /// Has the zone that is being emptied give out its free pages again: whoever writes
    /// goes before it. False when there is none.
    pub(crate) fn stop_emptying(&self) -> bool {
        let called_off = self.lane.zone_changes.call_off_emptying();
        if called_off {
            self.lane
                .world
                .reached("zone is not emptied for want of pages");
        }
        called_off
    }

    /// Takes another zone of each group into use; false when there is none. The caller
    /// holds the lock.
    pub(crate) async fn open_zones(&self) -> Result<bool, PoolError> {
        let lane = self.lane.drives.lane();
        while !lane.registry.all_opened() {
            self.lane.world.sleep(OTHERS_OPEN).await;
            self.lane.go_on()?;
        }
        let mut opened = false;
        // All groups together, so that pages are spread over all of them.
        for group in self.lane.drives.groups() {
            if !self.lane.drives.takes_zones(&group) {
                continue;
            }
            let zones = group.numbers.zone_range();
            if let Some(zone) = lane.registry.take_zone(lane.index, zones) {
                self.zone_on(&group, zone).await?;
                opened = true;
            }
        }
        Ok(opened)
    }

    async fn zone_on(&self, group: &Rc<Group<W>>, number: u32) -> Result<(), PoolError> {
        let next = self.lane.state().next_incarnation;
        let (level, incarnation) = (group.level(), self.lane.drives.lane().incarnation(next));
        let invalid = |context| PoolError::new(PoolErrorKind::Invalid, context);
        let zone = self
            .lane
            .drives
            .zone_on(number, level, incarnation)
            .map_err(invalid)?;
        let moved = stand_on_whole(&zone);
        let before = written_whole(group);
        let formatted = self.lane.store.integrity.format_zone(&zone).await;
        formatted.map_err(|error| {
            let context = format!("zone {number} can't be taken into use: {error}");
            self.lane.stop(context.clone());
            PoolError::new(PoolErrorKind::Drive, context)
        })?;
        // Rebuilds under way have nothing to do here: a new zone is written whole.
        let zone_on = Record::ZoneOn {
            zone: number,
            level,
            incarnation,
        };
        let mut records: Vec<Record> = std::iter::once(zone_on).chain(moved).collect();
        // One that has changed its part meanwhile may lack some.
        for member in written_whole(group) {
            let is_same = |other: &Part<W>| (other.0.uuid, other.1) == (member.0.uuid, member.1);
            if before.iter().any(is_same) {
                let member = &member.0;
                member.rebuilt().borrow_mut().insert(number);
                records.push(Record::Rebuilt {
                    member: member.uuid,
                    zone: number,
                });
            }
        }
        self.lane.journal().commit(records).await?;
        self.lane.world.reached("zone taken into use");
        let pages = zone.pages(self.lane.page_bytes());
        self.lane.zone_changes.add(number, group.index, pages);
        Ok(())
    }
}

/// Has the places of a new zone stand on drives that are whole, as far as some are spare in it. Gives
/// the records of those that do not stand at home then.
fn stand_on_whole<W: World>(zone: &Zone<W>) -> impl Iterator<Item = Record> + use<W> {
    for place in 0..zone.shape.geometry.places() {
        if zone.place(place).is_whole() {
            continue;
        }
        let mut spare = zone.spare_drives();
        spare.retain(|drive| zone.group.place(*drive).is_whole());
        if let Some(drive) = spare.first() {
            let stands = zone.stand(place, *drive);
            assert!(stands.is_ok(), "{stands:?}");
        }
    }
    let (number, away) = (zone.shape.zone, zone.away().into_iter());
    away.map(move |(place, drive)| Record::Moved {
        zone: number,
        place: place as u8,
        drive: drive as u8,
    })
}

/// A drive that is being rebuilt, and whether another is copied to it.
type Part<W> = (Rc<Member<W>>, bool);

/// The drives of a group that are being rebuilt, or that others are copied to.
fn written_whole<W: World>(group: &Group<W>) -> Vec<Part<W>> {
    let places = group.places();
    let successors = places.iter().filter_map(|member| member.successor());
    let mut members: Vec<_> = places.iter().cloned().chain(successors).collect();
    members.retain(|member| member.state() == MemberState::Rebuilding);
    let parts = members.into_iter();
    parts
        .map(|member| (Rc::clone(&member), member.succeeds()))
        .collect()
}
