//! Judges what is to become a group, and makes it of drives: [`NewGroups`].
//!
//! Invariants:
//! - The group to be added is the next one in every lane, and lies in the same zones in all.
//! - The metadata was laid out for so many zones and pages, and the logs for stripes so wide.

use super::candidates::{Candidate, Candidates};
use crate::drive::Drive;
use crate::drives::{Member, SPARE_GROUP, stride_bytes};
use crate::label::{
    GROUPS_MAX, GroupEntry, GroupNumbers, GroupRole, MEMBERS_MAX, MemberEntry, Spacing,
};
use crate::layout::SumOrder;
use crate::meta::checkpoint;
use crate::pool::create::{check_log_level, check_log_room, check_name, invalid};
use crate::pool::{LabelSummary, Level, MemberState, NamedDrive, PoolError, PoolErrorKind};
use crate::raid::{Geometry, Protection, Spread};
use crate::space::LaneState;
use crate::world::World;
use base::Uuid;
use base::size::{counted, human, human_pair};
use std::rc::Rc;
use std::time::Duration;

/// A label of the first lane is looked for so often, since that lane may be writing it.
const LOOKS: usize = 8;

/// Between two such looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Drives that are to become a group.
pub(super) struct NewGroups<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> NewGroups<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        NewGroups { lane }
    }

    /// That so many drives of these names make another group.
    pub(super) fn check_new_drives(
        &self,
        (protection, role): (Protection, GroupRole),
        drives: &[Candidate<'_, W>],
    ) -> Result<(), PoolError> {
        let name = self.lane.drives().name();
        let unit = u64::from(self.lane.identity().stripe_unit_bytes);
        if let Err(allowed) = Geometry::of_group(protection, drives.len(), unit) {
            return Err(invalid(format!(
                "{} for a group of level {protection} in pool '{name}': allowed is {allowed}",
                counted(drives.len() as u64, "drive")
            )));
        }
        if protection.spread.is_some() {
            self.check_spread(role)?;
        }
        self.check_roles(protection.level, role)?;
        let spares = self.lane.drives().spares();
        let spares = spares.iter().filter(|spare| !spare.is_reserved());
        let members = self.lane.drives().members().len() + spares.count();
        if self.lane.drives().groups().len() >= GROUPS_MAX || members + drives.len() > MEMBERS_MAX {
            return Err(invalid(format!(
                "pool '{name}' can't have another group of {}: allowed are {GROUPS_MAX} groups and {MEMBERS_MAX} drives",
                counted(drives.len() as u64, "drive")
            )));
        }
        let mut names = drives.iter().map(|drive| drive.name);
        names.try_for_each(|drive| check_name("drive", drive))
    }

    /// That a group of that role can have distributed spares in this pool.
    fn check_spread(&self, role: GroupRole) -> Result<(), PoolError> {
        let name = self.lane.drives().name();
        if role == GroupRole::Log {
            return Err(invalid(format!(
                "the log group of pool '{name}' can't have distributed spares: the logs lie on a few of its drives"
            )));
        }
        if self.lane.identity().spacing == Spacing::Widest {
            return Err(invalid(format!(
                "pool '{name}' can't have a group with distributed spares: an older version made it; make a new pool, and move the volumes"
            )));
        }
        Ok(())
    }

    /// That the log is protected as well as data is when there is such a group, too.
    fn check_roles(&self, level: Level, role: GroupRole) -> Result<(), PoolError> {
        if self.lane.drives().lane().index > 0 {
            // The first lane decides. This one may not know yet what leaves there.
            return Ok(());
        }
        let (name, log) = (self.lane.drives().name(), self.lane.drives().log_group());
        match (role, log) {
            (GroupRole::Data, None) => Ok(()),
            (GroupRole::Data, Some(log)) => check_log_level(name, log.level(), [level]),
            (GroupRole::Log, Some(log)) => Err(invalid(format!(
                "pool '{name}' has a log group already, group {}: remove that one first",
                log.index
            ))),
            (GroupRole::Log, None) => {
                let mut data = self.lane.drives().groups();
                data.retain(|group| group.drives() > 0 && !group.is_log());
                let in_use = self
                    .lane
                    .drives()
                    .zones()
                    .into_iter()
                    .map(|zone| zone.level);
                let levels = data.iter().map(|group| group.level()).chain(in_use);
                check_log_level(name, level, levels)
            }
        }
    }

    /// That the group to be added is the next one in every lane, and lies in the same
    /// zones in all.
    pub(super) fn check_lanes_agree(&self, lane: u16, entry: &GroupEntry) -> Result<(), PoolError> {
        let registry = &self.lane.drives().lane().registry;
        let index = self.lane.drives().groups().len();
        match registry.may_add_group(lane, index, entry) {
            true => Ok(()),
            false => Err(invalid(format!(
                "group {index} of pool '{}' is not the same in all lanes: add the one that is there in some first",
                self.lane.identity().name
            ))),
        }
    }

    /// A new group, with its zones and pages behind those of all others.
    pub(super) fn new_entry(
        &self,
        (protection, role): (Protection, GroupRole),
        drives: &[Candidate<'_, W>],
    ) -> Result<GroupEntry, PoolError> {
        let Protection { level, spread } = protection;
        let zones = match role {
            GroupRole::Data => self.new_zones(spread, drives)?,
            GroupRole::Log => {
                let capacities = drives.iter().map(|drive| drive.capacity_bytes);
                check_log_room(self.lane.identity(), capacities.min().unwrap_or(0))?;
                0
            }
        };
        let identity = self.lane.identity();
        let others = self.lane.drives().groups();
        let others = others.iter().map(|group| group.numbers);
        let numbers = GroupNumbers::behind(others, identity, (drives.len(), zones));
        let numbers = numbers.ok_or_else(|| {
            let context = format!(
                "pool '{}' can't grow by {}: there are not enough numbers left for pages of {}; add a smaller group, or make a second pool",
                identity.name,
                human(zones * drives.len() as u64 * identity.zone_bytes),
                human(u64::from(identity.page_bytes))
            );
            PoolError::new(PoolErrorKind::TooManyPages, context)
        })?;
        Ok(GroupEntry {
            level,
            spread,
            sum_order: SumOrder::of_new(spread),
            role,
            leaving: false,
            drives: drives.len() as u16,
            numbers,
        })
    }

    /// How many zones a new group of these drives has.
    fn new_zones(
        &self,
        spread: Option<Spread>,
        drives: &[Candidate<'_, W>],
    ) -> Result<u64, PoolError> {
        let identity = self.lane.identity();
        let name = &identity.name;
        let zones = self.zones_on(spread, drives)?;
        self.check_metadata_room(spread, zones, drives.len())?;
        let width = spread.map_or(drives.len(), |spread| usize::from(spread.width));
        let stripe = 8 * width as u64 * u64::from(identity.stripe_unit_bytes);
        if stripe > identity.intent_bytes {
            return Err(invalid(format!(
                "a group of {} drives is too wide for the logs of pool '{name}': allowed are {}",
                drives.len(),
                identity.intent_bytes / 8 / u64::from(identity.stripe_unit_bytes)
            )));
        }
        Ok(zones)
    }

    /// That the metadata has room for so many zones more, on so many drives.
    fn check_metadata_room(
        &self,
        spread: Option<Spread>,
        zones: u64,
        drives: usize,
    ) -> Result<(), PoolError> {
        let (identity, room) = (self.lane.identity(), self.lane.metadata_room());
        let all_zones = room.zones_max() + checkpoint::zones_of(spread.is_some(), zones, drives);
        // As at the creation: for whole drives of data, a little too much.
        let new_bytes = zones * drives as u64 * identity.zone_bytes;
        let pages = room.pages_max() + new_bytes / u64::from(identity.page_bytes);
        let (volumes_max, journal_bytes) = (identity.volumes_max, identity.journal_bytes);
        let worst = checkpoint::slot_bytes(pages, all_zones, volumes_max, journal_bytes);
        // As much as slots of a new pool of that size have, less what those are to grow by.
        let share = checkpoint::laid_out_bytes(pages, identity.lanes, None);
        let share = checkpoint::slot_bytes_of(share, all_zones, volumes_max, journal_bytes);
        let own = checkpoint::properties_room(volumes_max, journal_bytes);
        let needed = (worst + room.more_properties_bytes(0)).min(share + own);
        if needed <= identity.checkpoint_bytes && room.fits_zones(all_zones) {
            return Ok(());
        }
        Err(invalid(format!(
            "pool '{}' can't grow by {}: its metadata was laid out for fewer; add a smaller group, or make a second pool",
            identity.name,
            human(new_bytes)
        )))
    }

    /// How many zones the smallest of a new group's drives has room for.
    fn zones_on(
        &self,
        spread: Option<Spread>,
        drives: &[Candidate<'_, W>],
    ) -> Result<u64, PoolError> {
        let identity = self.lane.identity();
        let name = &identity.name;
        let smallest = drives.iter().min_by_key(|drive| drive.capacity_bytes);
        let (smallest, drive) =
            smallest.map_or((0, ""), |drive| (drive.capacity_bytes, drive.name));
        let smallest = smallest.saturating_sub(identity.part().of_others_bytes());
        let stride = stride_bytes(drives.len(), spread, identity);
        let zones = smallest.saturating_sub(identity.data_start) / stride;
        if zones == 0 {
            let (there, needed) = human_pair(smallest, identity.data_start + stride);
            return Err(PoolError::new(
                PoolErrorKind::TooSmall,
                format!(
                    "drive '{drive}' has {there} and is too small for pool '{name}': a drive of this group needs {needed} or more"
                ),
            ));
        }
        Ok(zones)
    }

    /// The identities of new drives: in all lanes those that the first has given them.
    pub(super) async fn new_uuids(&self, drives: &[NamedDrive<W>]) -> Result<Vec<Uuid>, PoolError> {
        let (index, pool) = (self.lane.drives().groups().len(), self.lane.drives().uuid());
        if self.lane.drives().lane().index == 0 {
            let at = self.lane.world().now().as_nanos();
            let mut prng = self
                .lane
                .world()
                .prng(&format!("group {index} of {pool} at {at}"));
            return Ok(drives.iter().map(|_| prng.uuid()).collect());
        }
        let mut uuids = Vec::new();
        for (place, named) in drives.iter().enumerate() {
            let is_there = |label: &LabelSummary| {
                label.pool_uuid == pool
                    && (usize::from(label.group), usize::from(label.place)) == (index, place)
            };
            let mut label = None;
            for _ in 0..LOOKS {
                let candidates = Candidates::of(self.lane.drives());
                let read = candidates.label_of_first_lane(&named.drive).await?;
                label = read.filter(is_there);
                if label.is_some() {
                    break;
                }
                self.lane.world().sleep(PAUSE).await;
            }
            let label = label.ok_or_else(|| {
                invalid(format!(
                    "drive '{}' is not at place {place} of group {index} in the first lane of pool '{}'",
                    named.name, self.lane.identity().name
                ))
            })?;
            uuids.push(label.drive_uuid);
        }
        Ok(uuids)
    }

    /// A spare that is to become part of a new group.
    pub(super) fn reserved_spare(
        &self,
        place: u16,
        named: NamedDrive<W>,
        uuid: Uuid,
    ) -> Rc<Member<W>> {
        let spares = self.lane.drives().spares();
        if let Some(spare) = spares.iter().find(|spare| spare.uuid == uuid) {
            // The addition was cut short here, before the group was on labels.
            spare.set_reserved(true);
            return Rc::clone(spare);
        }
        let drive = self.lane.drives().view(named.drive);
        let entry = MemberEntry {
            uuid,
            group: SPARE_GROUP,
            place,
            state: MemberState::Spare,
            metadata: false,
            log: false,
            ordered_out: false,
            reserved: true,
            succeeds: None,
            capacity_bytes: drive.geometry().capacity_bytes,
            name: named.name,
        };
        Rc::new(Member::new(self.lane.world(), drive, &entry))
    }
}
