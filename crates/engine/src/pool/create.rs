//! Creating a pool from drives without labels.

use super::{
    JOURNAL_BYTES_MIN, Lane, Level, MemberState, NamedDrive, PoolError, PoolErrorKind, PoolSpec,
};
use crate::drive::Drive;
use crate::drives::Member;
use crate::drives::hung;
use crate::drives::{Drives, SPARE_GROUP, stride_bytes, zone_capacity, zone_pages};
use crate::label::{
    GROUPS_MAX, GroupEntry, Label, MEMBERS_MAX, MemberEntry, NAME_BYTES_MAX, PoolIdentity,
};
use crate::lane::{LaneSlot, View};
use crate::meta::checkpoint;
use crate::meta::record::MAP_BYTES;
use crate::raid::Geometry;
use crate::space::LaneState;
use crate::space::State;
use crate::space::promise::kept_of;
use crate::world::World;
use base::size::{counted, human, human_pair};
use base::{BLOCK_BYTES, Prng, Uuid};
use std::rc::Rc;

/// Copies of the metadata, where there are that many drives.
pub const METADATA_COPIES: usize = 3;

/// How many times as large a pool can become by groups that are added: its metadata is
/// laid out for that.
const GROWTH: u64 = 4;

/// What each log takes of a drive that is large enough, and the least.
const LOG_BYTES: u64 = 64 << 20;
const LOG_BYTES_MIN: u64 = 256 << 10;

/// The largest zone that is chosen unasked.
const ZONE_BYTES_MAX: u64 = 256 << 20;

/// Whether `name` can name a pool, drive or volume.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), PoolError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(allowed) {
        return Err(invalid(format!(
            "{what} name '{name}': allowed are 1 to {NAME_BYTES_MAX} letters, digits, '-', '_', '.'"
        )));
    }
    Ok(())
}

fn invalid(context: String) -> PoolError {
    PoolError::new(PoolErrorKind::Invalid, context)
}

fn check_spec(spec: &PoolSpec, groups: &[(Level, usize)]) -> Result<(), PoolError> {
    check_name("pool", &spec.name)?;
    let block = BLOCK_BYTES as u32;
    let sizes = [
        ("stripe unit", spec.stripe_unit_bytes),
        ("page", spec.page_bytes),
    ];
    for (what, bytes) in sizes {
        if !bytes.is_power_of_two() || !(block..=1 << 30).contains(&bytes) {
            return Err(invalid(format!(
                "{what} of {} in pool '{}': allowed are powers of two from {} to {}",
                human(u64::from(bytes)),
                spec.name,
                human(u64::from(block)),
                human(1 << 30)
            )));
        }
    }
    let unfit = |bytes: &u32| *bytes < JOURNAL_BYTES_MIN || !bytes.is_multiple_of(block);
    if let Some(bytes) = spec.journal_bytes.filter(unfit) {
        return Err(invalid(format!(
            "journal of {} in pool '{}': allowed are multiples of {} from {}",
            human(u64::from(bytes)),
            spec.name,
            human(u64::from(block)),
            human(u64::from(JOURNAL_BYTES_MIN))
        )));
    }
    if groups.is_empty() || groups.len() > GROUPS_MAX {
        return Err(invalid(format!(
            "{} in pool '{}': allowed are 1 to {GROUPS_MAX}",
            counted(groups.len() as u64, "group"),
            spec.name
        )));
    }
    for (level, drives) in groups {
        if let Err(allowed) = Geometry::of(*level, *drives, u64::from(spec.stripe_unit_bytes)) {
            return Err(invalid(format!(
                "{} in pool '{}' at level {level}: allowed is {allowed}",
                counted(*drives as u64, "drive"),
                spec.name
            )));
        }
    }
    Ok(())
}

/// What a log takes of a drive when nobody says otherwise: a sixteenth, 64 MiB at
/// most.
fn log_bytes(asked: Option<u64>, capacity_bytes: u64, least: u64) -> u64 {
    let block = BLOCK_BYTES as u64;
    let usual = (capacity_bytes / 16).clamp(LOG_BYTES_MIN, LOG_BYTES);
    asked.unwrap_or(usual).max(least).next_multiple_of(block)
}

/// An eighth of the largest map of `pages`, within limits.
fn journal_bytes(pages: u64) -> u32 {
    let map_bytes = pages.saturating_mul(MAP_BYTES as u64);
    let bytes = (map_bytes / 8).clamp(8 << 20, 64 << 20);
    bytes.next_multiple_of(BLOCK_BYTES as u64) as u32
}

/// Power of two, about a sixty-fourth of a drive.
fn zone_bytes(spec: &PoolSpec, capacity_bytes: u64) -> Result<u64, PoolError> {
    let least = u64::from(spec.page_bytes.max(spec.stripe_unit_bytes));
    let usual = (capacity_bytes / 64).max(1);
    let usual = (1 << usual.ilog2()).clamp(least, ZONE_BYTES_MAX.max(least));
    let bytes = spec.zone_bytes.unwrap_or(usual);
    if !bytes.is_power_of_two() || bytes < least || bytes > 1 << 34 {
        return Err(invalid(format!(
            "zone of {} in pool '{}': allowed are powers of two from {} to {}",
            human(bytes),
            spec.name,
            human(least),
            human(1 << 34)
        )));
    }
    Ok(bytes)
}

/// The identity of a lane, and what is known to it alone.
fn names<W: World>(world: &W, lane: &LaneSlot, spec: &PoolSpec) -> (Uuid, u64) {
    let stream = match spec.nonce {
        0 => format!("pool {}", spec.name),
        nonce => format!("pool {} made as {nonce}", spec.name),
    };
    if lane.registry.lanes() == 1 {
        let mut prng = world.prng(&stream);
        return (prng.uuid(), prng.next_u64());
    }
    let uuid = lane.registry.pool_uuid_or(|| world.prng(&stream).uuid());
    let mut prng = world.prng(&format!("lane {} of {uuid}", lane.index));
    (uuid, prng.next_u64())
}

/// The identities of drives: in all lanes of a pool the same.
fn drive_names<W: World>(world: &W, identity: &PoolIdentity) -> Prng {
    match identity.lanes {
        1 => world.prng(&format!("drives of {}", identity.uuid)),
        _ => Prng::from_seed(identity.uuid.as_u128() as u64).stream("drives"),
    }
}

/// What volumes could map in a pool that is made so of new drives, in bytes. Each group has its
/// level, its number of drives, and the capacity of the smallest of them in bytes.
///
/// # Errors
/// `Invalid` or `TooSmall` for what can't be made.
pub fn planned_capacity_bytes(
    spec: &PoolSpec,
    lanes: u16,
    groups: &[(Level, usize, u64)],
) -> Result<u64, PoolError> {
    let shapes = groups.iter().map(|(level, drives, _)| (*level, *drives));
    check_spec(spec, &shapes.collect::<Vec<_>>())?;
    let (identity, entries) = lay_out((Uuid::nil(), 0), (lanes, 0), spec, groups)?;
    let pages: u64 = entries
        .iter()
        .map(|group| {
            let of_zone = zone_capacity(group.level, usize::from(group.drives), &identity);
            u64::from(group.zones) * of_zone
        })
        .sum();
    Ok((pages - kept_of(pages)) * u64::from(spec.page_bytes))
}

/// Lays out groups, each with its level, its drives and the capacity of the smallest, for one of
/// so many lanes.
fn lay_out(
    (uuid, salt): (Uuid, u64),
    (lanes, lane): (u16, u16),
    spec: &PoolSpec,
    groups: &[(Level, usize, u64)],
) -> Result<(PoolIdentity, Vec<GroupEntry>), PoolError> {
    let smallest = groups
        .iter()
        .map(|(_, _, capacity)| *capacity)
        .min()
        .unwrap_or(0);
    let unit = u64::from(spec.stripe_unit_bytes);
    let widest = groups
        .iter()
        .map(|(_, drives, _)| *drives as u64)
        .max()
        .unwrap_or(1);
    let zone_bytes = zone_bytes(spec, smallest)?;
    // Sized for the whole drives as data: a little too large, never too small.
    let raw: u64 = groups
        .iter()
        .map(|(_, drives, capacity)| *drives as u64 * capacity)
        .sum();
    let pages = raw / u64::from(spec.page_bytes);
    let zones: u64 = groups
        .iter()
        .map(|(_, _, capacity)| capacity / zone_bytes)
        .sum();
    let share = smallest / u64::from(lanes);
    let journal_bytes = spec.journal_bytes.unwrap_or_else(|| journal_bytes(pages));
    let mut identity = PoolIdentity {
        uuid,
        name: spec.name.clone(),
        stripe_unit_bytes: spec.stripe_unit_bytes,
        page_bytes: spec.page_bytes,
        journal_bytes,
        volumes_max: spec.volumes_max,
        checkpoint_bytes: checkpoint::slot_bytes(
            GROWTH * pages,
            GROWTH * zones,
            spec.volumes_max,
            journal_bytes,
        ) + checkpoint::words_room(spec.volumes_max, journal_bytes),
        log_bytes: log_bytes(spec.log_bytes, share, LOG_BYTES_MIN / 2),
        // A change of a whole stripe must fit a quarter of it.
        intent_bytes: log_bytes(
            spec.intent_bytes,
            share,
            8 * widest * unit + LOG_BYTES_MIN / 4,
        ),
        zone_bytes,
        data_start: 0,
        salt,
        lanes,
        lane,
        layout: spec.layout,
    };
    let end = identity.logs_offset() + identity.log_bytes + identity.intent_bytes;
    let alignment = unit.max(identity.slots().alignment());
    identity.data_start = end.next_multiple_of(alignment);
    let fronts = u64::from(lanes) * identity.data_start;
    let mut first_zone = 0;
    let mut entries = Vec::new();
    for (level, drives, capacity) in groups {
        let stride = stride_bytes(*drives, &identity);
        let zones = capacity.saturating_sub(fronts) / stride;
        if zones == 0 {
            return Err(PoolError::new(
                PoolErrorKind::TooSmall,
                format!(
                    "drives of {} are too small for pool '{}': {} go to labels, metadata and logs, and no zone of {} fits in the rest",
                    human(*capacity),
                    spec.name,
                    human(fronts),
                    human(stride)
                ),
            ));
        }
        entries.push(GroupEntry {
            level: *level,
            leaving: false,
            drives: *drives as u16,
            first_zone,
            zones: zones as u32,
        });
        first_zone += zones as u32;
    }
    if u64::from(first_zone) * zone_pages(&identity) >= u64::from(u32::MAX) {
        return Err(invalid(format!(
            "pool '{}' would have {first_zone} zones of {} page numbers, and the format ends at {}: choose a larger page",
            spec.name,
            zone_pages(&identity),
            u32::MAX
        )));
    }
    Ok((identity, entries))
}

/// Drives that carry the logs: as many as a span can lose, and one more, all of one
/// span; losing them all is losing the span. Flash first.
pub(super) fn log_places(
    groups: &[GroupEntry],
    unit_bytes: u64,
    rotational: impl Fn(usize, usize) -> bool,
) -> Vec<(usize, usize)> {
    let mut best: Option<(usize, Vec<(usize, usize)>)> = None;
    for (index, group) in groups.iter().enumerate() {
        let Ok(geometry) = Geometry::of(group.level, usize::from(group.drives), unit_bytes) else {
            continue;
        };
        for span in 0..geometry.spans {
            let mut places: Vec<(usize, usize)> = geometry
                .span_places(span)
                .map(|place| (index, place))
                .collect();
            places.sort_by_key(|(group, place)| rotational(*group, *place));
            places.truncate(geometry.redundancy() + 1);
            let slow = places
                .iter()
                .filter(|(group, place)| rotational(*group, *place))
                .count();
            if best.as_ref().is_none_or(|(least, _)| slow < *least) {
                best = Some((slow, places));
            }
        }
    }
    best.map(|(_, places)| places).unwrap_or_default()
}

impl<W: World> Lane<W> {
    /// Makes a new pool of one group out of unlabelled drives, and opens it.
    ///
    /// # Errors
    /// As [`Lane::create_groups`].
    pub async fn create(
        world: W,
        spec: PoolSpec,
        drives: Vec<NamedDrive<W>>,
    ) -> Result<Self, PoolError> {
        let level = spec.level;
        Self::create_groups(world, spec, vec![(level, drives)], Vec::new()).await
    }

    /// Makes a new pool of one lane.
    ///
    /// # Errors
    /// As [`Lane::create_lane`].
    pub async fn create_groups(
        world: W,
        spec: PoolSpec,
        groups: Vec<(Level, Vec<NamedDrive<W>>)>,
        spares: Vec<NamedDrive<W>>,
    ) -> Result<Self, PoolError> {
        Self::create_lane(world, LaneSlot::alone(), spec, groups, spares).await
    }

    /// Makes a lane of a new pool of several groups, and spares, out of unlabelled
    /// drives, and opens it. The last lane is made first, and the first last: with it
    /// there is a pool.
    ///
    /// # Errors
    /// `Invalid` or `TooSmall` for what can't be made, `Exists` when a drive has a
    /// label already; nothing has been written then. `Drive` when a write fails.
    pub async fn create_lane(
        world: W,
        lane: LaneSlot,
        spec: PoolSpec,
        groups: Vec<(Level, Vec<NamedDrive<W>>)>,
        spares: Vec<NamedDrive<W>>,
    ) -> Result<Self, PoolError> {
        let shapes: Vec<(Level, usize)> = groups
            .iter()
            .map(|(level, drives)| (*level, drives.len()))
            .collect();
        check_spec(&spec, &shapes)?;
        let all = || groups.iter().flat_map(|(_, drives)| drives).chain(&spares);
        if all().count() > MEMBERS_MAX {
            return Err(invalid(format!(
                "{} drives in pool '{}': allowed are {MEMBERS_MAX}",
                all().count(),
                spec.name
            )));
        }
        for NamedDrive { name, drive } in all() {
            check_name("drive", name)?;
            if let Some(label) = Self::probe(&world, drive).await? {
                return Err(PoolError::new(
                    PoolErrorKind::Exists,
                    format!(
                        "drive '{name}' belongs to pool '{}' already; it is not taken for pool '{}'",
                        label.pool_name, spec.name
                    ),
                ));
            }
        }
        let smallest = |drives: &[NamedDrive<W>]| {
            drives
                .iter()
                .map(|named| named.drive.geometry().capacity_bytes)
                .min()
                .unwrap_or(0)
        };
        let sizes: Vec<(Level, usize, u64)> = groups
            .iter()
            .map(|(level, drives)| (*level, drives.len(), smallest(drives)))
            .collect();
        let place = (lane.registry.lanes(), lane.index);
        let (identity, entries) = lay_out(names(&world, &lane, &spec), place, &spec, &sizes)?;
        let least = sizes
            .iter()
            .map(|(_, _, capacity)| *capacity)
            .max()
            .unwrap_or(0);
        if let Some(small) = spares
            .iter()
            .find(|spare| spare.drive.geometry().capacity_bytes < least)
        {
            let there = small.drive.geometry().capacity_bytes;
            let (there, needed) = human_pair(there, least);
            return Err(PoolError::new(
                PoolErrorKind::TooSmall,
                format!(
                    "spare '{}' of pool '{}' has {there}, and {needed} are needed to stand in for every drive",
                    small.name, spec.name
                ),
            ));
        }
        let drives = new_drives(&world, lane, identity, entries, groups, spares);
        let drives = Rc::new(drives);
        hung::guard(&drives);
        let made = label_all(Rc::clone(&drives)).await;
        made.map_err(|error| drives.because_of_silence(error))
    }
}

/// Writes what a new pool has, labels last, and starts it.
async fn label_all<W: World>(drives: Rc<Drives<W>>) -> Result<Lane<W>, PoolError> {
    // Metadata first: a drive with a label is a drive with a pool.
    let inner = LaneState::assemble(drives, State::default(), true).await?;
    inner.begin_generation(1);
    inner.write_checkpoint(inner.checkpoint_now()).await?;
    // Only with the second generation there is a pool: until then, some drives may
    // have no label yet, and could not be told from lost ones.
    inner.drives.write_labels_alone(|_| ()).await?;
    inner.drives.write_labels_alone(|_| ()).await?;
    if let Some(failed) = inner
        .drives
        .members()
        .iter()
        .find(|member| !member.is_whole())
    {
        let context = format!("drive '{}' failed while it was labelled", failed.name);
        return Err(PoolError::new(PoolErrorKind::Drive, context));
    }
    Ok(Lane::start(inner))
}

fn new_drives<W: World>(
    world: &W,
    lane: LaneSlot,
    identity: PoolIdentity,
    entries: Vec<GroupEntry>,
    groups: Vec<(Level, Vec<NamedDrive<W>>)>,
    spares: Vec<NamedDrive<W>>,
) -> Drives<W> {
    let mut prng = drive_names(world, &identity);
    let part = identity.part();
    let rotational =
        |group: usize, place: usize| groups[group].1[place].drive.geometry().rotational;
    let logs = log_places(&entries, u64::from(identity.stripe_unit_bytes), rotational);
    let mut metadata_left = METADATA_COPIES;
    let mut member = |named: NamedDrive<W>, group: u16, place: u16, state| {
        let metadata = state == MemberState::Healthy && metadata_left > 0;
        metadata_left -= usize::from(metadata);
        let drive = View::new(Rc::new(named.drive), part);
        let entry = MemberEntry {
            uuid: prng.uuid(),
            group,
            place,
            state,
            metadata,
            log: logs.contains(&(usize::from(group), usize::from(place))),
            ordered_out: false,
            reserved: false,
            capacity_bytes: drive.geometry().capacity_bytes,
            name: named.name,
        };
        Rc::new(Member::new(world, drive, &entry))
    };
    let groups: Vec<Vec<Rc<Member<W>>>> = (0..)
        .zip(groups)
        .map(|(group, (_, drives))| {
            (0..)
                .zip(drives)
                .map(|(place, named)| member(named, group, place, MemberState::Healthy))
                .collect()
        })
        .collect();
    let spares = (0..)
        .zip(spares)
        .map(|(place, named)| member(named, SPARE_GROUP, place, MemberState::Spare))
        .collect();
    let label = Label {
        generation: 0,
        epoch: 1,
        clean: false,
        drive_uuid: identity.uuid,
        pool: identity,
        groups: entries,
        members: Vec::new(),
    };
    Drives::new(world.clone(), lane, label, groups, spares)
}
