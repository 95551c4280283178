//! Creating a pool from drives without labels.

use super::carriers::{self, Carriers, Place, Spans, spans_of};
use super::{
    JOURNAL_BYTES_MIN, Lane, Level, MemberState, NamedDrive, PoolError, PoolErrorKind, PoolSpec,
};
use crate::drive::Drive;
use crate::drives::Member;
use crate::drives::hung;
use crate::drives::{Drives, SPARE_GROUP, stride_bytes, zone_capacity};
use crate::label::{
    GROUPS_MAX, GroupEntry, GroupNumbers, GroupRole, Label, MEMBERS_MAX, MemberEntry,
    NAME_BYTES_MAX, NUMBERS_END, Part, PoolIdentity, Spacing,
};
use crate::lane::{LaneSlot, View};
use crate::layout::SumOrder;
use crate::meta::checkpoint;
use crate::meta::page_map::whole_map_bytes;
use crate::meta::record::MAP_BYTES;
use crate::raid::{Geometry, Protection, Spread};
use crate::space::LaneState;
use crate::space::State;
use crate::space::promise::kept_of;
use crate::world::World;
use base::size::{counted, human, human_pair};
use base::{BLOCK_BYTES, Prng, Uuid};
use std::rc::Rc;

/// Copies of the metadata, where there are that many drives.
pub const METADATA_COPIES: usize = 3;

/// How many times as large a pool can become by groups that are added, as far as there are page
/// numbers: its metadata is laid out for that.
const GROWTH: u64 = 4;

/// What each log takes of a drive that is large enough, and the least.
const LOG_BYTES: u64 = 64 << 20;
const LOG_BYTES_MIN: u64 = 256 << 10;

/// What the data log takes at most when nobody says otherwise and a log group carries it that has
/// the room.
const LOG_BYTES_OF_GROUP: u64 = 256 << 20;

/// The largest page, and stripe unit.
const PAGE_BYTES_MAX: u32 = 1 << 30;

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

pub(super) fn invalid(context: String) -> PoolError {
    PoolError::new(PoolErrorKind::Invalid, context)
}

fn check_spec(spec: &PoolSpec, groups: &[(Protection, usize)]) -> Result<(), PoolError> {
    check_name("pool", &spec.name)?;
    check_sizes(spec)?;
    if groups.is_empty() || groups.len() > GROUPS_MAX {
        return Err(invalid(format!(
            "{} in pool '{}': allowed are 1 to {GROUPS_MAX}",
            counted(groups.len() as u64, "group"),
            spec.name
        )));
    }
    for (protection, drives) in groups {
        let unit = u64::from(spec.stripe_unit_bytes);
        if let Err(allowed) = Geometry::of_group(*protection, *drives, unit) {
            return Err(invalid(format!(
                "{} in pool '{}' at level {protection}: allowed is {allowed}",
                counted(*drives as u64, "drive"),
                spec.name
            )));
        }
        if protection.spread.is_some() && spec.spacing == Spacing::Widest {
            return Err(invalid(format!(
                "pool '{}' of an older version has a group with distributed spares: it knows none",
                spec.name
            )));
        }
    }
    check_log_group(spec, groups)
}

/// That the log group, where there is one, can be one.
fn check_log_group(spec: &PoolSpec, groups: &[(Protection, usize)]) -> Result<(), PoolError> {
    let Some(index) = spec.log_group else {
        return Ok(());
    };
    let data = groups.iter().enumerate().filter(|(at, _)| *at != index);
    let data: Vec<Level> = data.map(|(_, (of, _))| of.level).collect();
    let Some((protection, _)) = groups.get(index).filter(|_| !data.is_empty()) else {
        return Err(invalid(format!(
            "pool '{}' has no group for data: a log group holds none",
            spec.name
        )));
    };
    if protection.spread.is_some() {
        return Err(invalid(format!(
            "the log group of pool '{}' can't have distributed spares: the logs lie on a few of its drives",
            spec.name
        )));
    }
    check_log_level(&spec.name, protection.level, data)
}

/// That a log group of this level protects the logs as well as these groups protect data.
pub(super) fn check_log_level(
    pool: &str,
    level: Level,
    data: impl IntoIterator<Item = Level>,
) -> Result<(), PoolError> {
    let strongest = data.into_iter().max_by_key(|level| level.redundancy());
    let strongest = strongest.unwrap_or(Level::Simple);
    if level.carries_logs_beside(strongest) {
        return Ok(());
    }
    let fitting: Vec<String> = Level::ALL
        .into_iter()
        .filter(|fits| fits.carries_logs_beside(strongest))
        .map(|fits| format!("\"{fits}\""))
        .collect();
    Err(invalid(format!(
        "log group of level {level} in pool '{pool}', beside a group of level {strongest}, which survives {}: allowed is {}, for all acknowledged writes would be lost with the log",
        counted(strongest.redundancy() as u64, "lost drive"),
        fitting.join(" or ")
    )))
}

fn check_sizes(spec: &PoolSpec) -> Result<(), PoolError> {
    let block = BLOCK_BYTES as u32;
    let sizes = [
        ("stripe unit", spec.stripe_unit_bytes),
        ("page", spec.page_bytes),
    ];
    for (what, bytes) in sizes {
        if !bytes.is_power_of_two() || !(block..=PAGE_BYTES_MAX).contains(&bytes) {
            return Err(invalid(format!(
                "{what} of {} in pool '{}': allowed are powers of two from {} to {}",
                human(u64::from(bytes)),
                spec.name,
                human(u64::from(block)),
                human(u64::from(PAGE_BYTES_MAX))
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
    Ok(())
}

/// What a log takes of a drive when nobody says otherwise: a sixteenth, `most` at most.
fn log_bytes(asked: Option<u64>, capacity_bytes: u64, (least, most): (u64, u64)) -> u64 {
    let block = BLOCK_BYTES as u64;
    let usual = (capacity_bytes / 16).clamp(LOG_BYTES_MIN, most);
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

/// Where the identity of a pool comes from.
fn identity_stream<W: World>(world: &W, spec: &PoolSpec) -> Prng {
    world.prng(&match spec.nonce {
        0 => format!("pool {}", spec.name),
        nonce => format!("pool {} made as {nonce}", spec.name),
    })
}

/// Draws the identity of a pool that is to be made so.
pub fn draw_uuid<W: World>(world: &W, spec: &PoolSpec) -> Uuid {
    identity_stream(world, spec).uuid()
}

/// The identity of a lane, and what is known to it alone.
fn names<W: World>(world: &W, lane: &LaneSlot, spec: &PoolSpec) -> (Uuid, u64) {
    if lane.registry.lanes() == 1 {
        let mut prng = identity_stream(world, spec);
        let drawn = prng.uuid();
        return (spec.uuid.unwrap_or(drawn), prng.next_u64());
    }
    let known = || spec.uuid.unwrap_or_else(|| draw_uuid(world, spec));
    let uuid = lane.registry.pool_uuid_or(known);
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
/// `Invalid`, `TooSmall` or `TooManyPages` for what can't be made.
pub fn planned_capacity_bytes(
    spec: &PoolSpec,
    lanes: u16,
    groups: &[(impl Into<Protection> + Copy, usize, u64)],
) -> Result<u64, PoolError> {
    let groups = groups
        .iter()
        .map(|(of, drives, bytes)| ((*of).into(), *drives, *bytes));
    let groups = &groups.collect::<Vec<Planned>>()[..];
    let shapes = groups.iter().map(|(of, drives, _)| (*of, *drives));
    check_spec(spec, &shapes.collect::<Vec<_>>())?;
    let (identity, entries) = lay_out((Uuid::nil(), 0), (lanes, 0), spec, groups)?;
    let data = entries.iter().filter(|group| !group.is_log());
    let pages: u64 = data
        .map(|group| {
            let of_zone = zone_capacity(group.protection(), usize::from(group.drives), &identity);
            u64::from(group.numbers.zones) * of_zone
        })
        .sum();
    Ok((pages - kept_of(pages)) * u64::from(spec.page_bytes))
}

/// A group that is to be: how its drives protect each other, how many there are, and the capacity of
/// the smallest in bytes.
type Planned = (Protection, usize, u64);

/// What the labels of a pool that is to be say of it.
type LaidOut = (PoolIdentity, Vec<GroupEntry>);

/// Lays out groups for one of so many lanes.
fn lay_out(
    names: (Uuid, u64),
    lane: (u16, u16),
    spec: &PoolSpec,
    groups: &[Planned],
) -> Result<LaidOut, PoolError> {
    let laid_out = lay_out_if_numbered(names, lane, spec, groups)?;
    laid_out.ok_or_else(|| too_many_pages(names, lane, spec, groups))
}

/// Why there are not enough page numbers for a pool, and what can be done.
fn too_many_pages(
    names: (Uuid, u64),
    lane: (u16, u16),
    spec: &PoolSpec,
    groups: &[Planned],
) -> PoolError {
    let larger = |page_bytes: &u32| {
        page_bytes
            .checked_mul(2)
            .filter(|page| *page <= PAGE_BYTES_MAX)
    };
    let larger = std::iter::successors(larger(&spec.page_bytes), larger);
    let mut pools = larger.map(|page_bytes| PoolSpec {
        page_bytes,
        ..spec.clone()
    });
    let fits = |spec: &PoolSpec| {
        let laid_out = lay_out_if_numbered(names, lane, spec, groups);
        matches!(laid_out, Ok(Some(_)))
    };
    let advice = match pools.find(fits) {
        Some(fitting) => format!(
            "choose a page of {} or more",
            human(u64::from(fitting.page_bytes))
        ),
        None => "make several pools of these drives".to_owned(),
    };
    let context = format!(
        "pool '{}' would have more pages of {} than there are page numbers ({NUMBERS_END}): {advice}",
        spec.name,
        human(u64::from(spec.page_bytes))
    );
    PoolError::new(PoolErrorKind::TooManyPages, context)
}

/// Lays out groups; `None` when there are not enough page numbers for them.
fn lay_out_if_numbered(
    names: (Uuid, u64),
    lane: (u16, u16),
    spec: &PoolSpec,
    groups: &[Planned],
) -> Result<Option<LaidOut>, PoolError> {
    let of_data = |at: usize| Some(at) != spec.log_group;
    let data = groups.iter().enumerate().filter(|(at, _)| of_data(*at));
    let data: Vec<Planned> = data.map(|(_, group)| *group).collect();
    let with_log_of = |most| identity_of(names, lane, spec, &data, most);
    let log = spec.log_group.and_then(|at| groups.get(at));
    let identity = match log {
        None => with_log_of(LOG_BYTES)?,
        Some((_, _, capacity)) => {
            let large = with_log_of(LOG_BYTES_OF_GROUP)?;
            // What nobody asked for is no reason to refuse drives that could be added later.
            match check_log_room(&large, *capacity) {
                Ok(()) => large,
                Err(_) => with_log_of(LOG_BYTES)?,
            }
        }
    };
    let entries = entries_of(&identity, spec.log_group, groups)?;
    Ok(entries.map(|entries| (identity, entries)))
}

/// What the labels say of such a pool: the sizes of everything in front of the data. They count
/// for all drives, so that logs can go to any. The data log has `log_most` bytes at most if nobody says
/// how much.
fn identity_of(
    (uuid, salt): (Uuid, u64),
    (lanes, lane): (u16, u16),
    spec: &PoolSpec,
    groups: &[Planned],
    log_most: u64,
) -> Result<PoolIdentity, PoolError> {
    let smallest = groups.iter().map(|group| group.2).min().unwrap_or(0);
    let widths = groups
        .iter()
        .map(|(of, drives, _)| of.stripe_drives(*drives));
    let stripe_bytes = widths.max().unwrap_or(1) * u64::from(spec.stripe_unit_bytes);
    let zone_bytes = zone_bytes(spec, smallest)?;
    let (pages, zones) = (pages_most(spec, groups), zones_most(zone_bytes, groups));
    let share = smallest / u64::from(lanes);
    let journal_bytes = spec.journal_bytes.unwrap_or_else(|| journal_bytes(pages));
    let mut identity = PoolIdentity {
        uuid,
        name: spec.name.clone(),
        stripe_unit_bytes: spec.stripe_unit_bytes,
        page_bytes: spec.page_bytes,
        journal_bytes,
        volumes_max: spec.volumes_max,
        checkpoint_bytes: checkpoint_bytes(spec, lanes, journal_bytes, (pages, zones)),
        log_bytes: log_bytes(spec.log_bytes, share, (LOG_BYTES_MIN / 2, log_most)),
        // A change of a whole stripe must fit a quarter of it.
        intent_bytes: log_bytes(
            spec.intent_bytes,
            share,
            (8 * stripe_bytes + LOG_BYTES_MIN / 4, LOG_BYTES),
        ),
        zone_bytes,
        data_start: 0,
        salt,
        lanes,
        lane,
        layout: spec.layout,
        spacing: spec.spacing,
    };
    identity.data_start = data_start(&identity);
    Ok(identity)
}

/// Pages of whole drives, as if all were data: a little too many, never too few.
fn pages_most(spec: &PoolSpec, groups: &[Planned]) -> u64 {
    let raw = groups
        .iter()
        .map(|(_, drives, capacity)| *drives as u64 * capacity);
    raw.sum::<u64>() / u64::from(spec.page_bytes)
}

/// Zones of whole drives; of spread groups as many as their places take.
fn zones_most(zone_bytes: u64, groups: &[Planned]) -> u64 {
    let zones = groups.iter().map(|(of, drives, capacity)| {
        checkpoint::zones_of(of.spread.is_some(), capacity / zone_bytes, *drives)
    });
    zones.sum()
}

/// Bytes of a checkpoint slot, for a pool that grows, with properties. Every drive has two for each lane.
/// A pool cannot grow beyond the numbers of pages; maps of snapshots have what the pages leave.
fn checkpoint_bytes(
    spec: &PoolSpec,
    lanes: u16,
    journal_bytes: u32,
    (pages, zones): (u64, u64),
) -> u64 {
    let grown = (GROWTH * pages).min(NUMBERS_END);
    let laid_out = checkpoint::laid_out_bytes(grown, lanes, spec.map_page_bytes);
    // A lane can have a volume that takes all pages, however many there are.
    let maps_bytes = match spec.map_page_bytes {
        Some(_) => laid_out,
        None => laid_out.max(whole_map_bytes(pages)),
    };
    let zones = GROWTH * zones;
    checkpoint::slot_bytes_of(maps_bytes, zones, spec.volumes_max, journal_bytes)
        + checkpoint::properties_room(spec.volumes_max, journal_bytes)
}

/// Where the data begins in a lane's part of a drive: behind the logs.
fn data_start(identity: &PoolIdentity) -> u64 {
    let end = identity.logs_offset() + identity.log_bytes + identity.intent_bytes;
    let unit = u64::from(identity.stripe_unit_bytes);
    end.next_multiple_of(unit.max(identity.slots().alignment()))
}

/// The groups of such a pool, with their zones behind the fronts of all lanes. `None` when there
/// are not enough numbers for them.
fn entries_of(
    identity: &PoolIdentity,
    log_group: Option<usize>,
    groups: &[Planned],
) -> Result<Option<Vec<GroupEntry>>, PoolError> {
    let mut entries: Vec<GroupEntry> = Vec::new();
    for (index, (protection, drives, capacity)) in groups.iter().enumerate() {
        let Protection { level, spread } = *protection;
        let role = match log_group == Some(index) {
            true => GroupRole::Log,
            false => GroupRole::Data,
        };
        let zones = match role {
            GroupRole::Log => {
                check_log_room(identity, *capacity)?;
                0
            }
            GroupRole::Data => zones_of(identity, (*drives, spread), *capacity)?,
        };
        let others = entries.iter().map(|entry| entry.numbers);
        let Some(numbers) = GroupNumbers::behind(others, identity, (*drives, zones)) else {
            return Ok(None);
        };
        entries.push(GroupEntry {
            level,
            spread,
            sum_order: SumOrder::of_new(spread),
            role,
            leaving: false,
            drives: *drives as u16,
            numbers,
        });
    }
    Ok(Some(entries))
}

/// How many zones drives of this capacity have room for, in a group of so many.
fn zones_of(
    identity: &PoolIdentity,
    (drives, spread): (usize, Option<Spread>),
    capacity: u64,
) -> Result<u64, PoolError> {
    let fronts = u64::from(identity.lanes) * identity.data_start;
    let logs = u64::from(identity.lanes) * (identity.log_bytes + identity.intent_bytes);
    let stride = stride_bytes(drives, spread, identity);
    let zones = capacity.saturating_sub(fronts) / stride;
    if zones > 0 {
        return Ok(zones);
    }
    Err(PoolError::new(
        PoolErrorKind::TooSmall,
        format!(
            "drives of {} are too small for pool '{}': {} go to labels, metadata and logs ({} of them to logs), and no zone of {} fits in the rest",
            human(capacity),
            identity.name,
            human(fronts),
            human(logs),
            human(stride)
        ),
    ))
}

/// That drives of this capacity have room for the logs of all lanes.
pub(super) fn check_log_room(identity: &PoolIdentity, capacity: u64) -> Result<(), PoolError> {
    let fronts = u64::from(identity.lanes) * identity.data_start;
    if capacity >= fronts {
        return Ok(());
    }
    let (there, needed) = human_pair(capacity, fronts);
    Err(PoolError::new(
        PoolErrorKind::TooSmall,
        format!(
            "drives of {there} are too small for the log of pool '{}': a drive of its log group needs {needed}",
            identity.name
        ),
    ))
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
        groups: Vec<(impl Into<Protection>, Vec<NamedDrive<W>>)>,
        spares: Vec<NamedDrive<W>>,
    ) -> Result<Self, PoolError> {
        Self::create_lane(world, LaneSlot::alone(), spec, groups, spares).await
    }

    /// Makes a lane of a new pool of several groups, and spares, out of unlabelled
    /// drives, and opens it. The last lane is made first, and the first last: with it
    /// there is a pool.
    ///
    /// # Errors
    /// `Invalid`, `TooSmall` or `TooManyPages` for what can't be made, `Exists` when a drive has a
    /// label already; nothing has been written then. `Drive` when a write fails.
    pub async fn create_lane(
        world: W,
        lane: LaneSlot,
        spec: PoolSpec,
        groups: Vec<(impl Into<Protection>, Vec<NamedDrive<W>>)>,
        spares: Vec<NamedDrive<W>>,
    ) -> Result<Self, PoolError> {
        let groups = groups.into_iter().map(|(of, drives)| (of.into(), drives));
        let groups: Vec<(Protection, Vec<NamedDrive<W>>)> = groups.collect();
        let shapes: Vec<(Protection, usize)> = groups
            .iter()
            .map(|(of, drives)| (*of, drives.len()))
            .collect();
        check_spec(&spec, &shapes)?;
        let all: Vec<_> = groups
            .iter()
            .flat_map(|(_, drives)| drives)
            .chain(&spares)
            .collect();
        check_unlabelled(&world, &spec, &all).await?;
        let sizes: Vec<Planned> = groups
            .iter()
            .map(|(of, drives)| (*of, drives.len(), smallest_bytes(drives)))
            .collect();
        let place = (lane.registry.lanes(), lane.index);
        let (identity, entries) = lay_out(names(&world, &lane, &spec), place, &spec, &sizes)?;
        check_spares(&spec, &spares, &sizes)?;
        // All lanes get the same drives.
        lane.registry.say_completed();
        let drives = new_drives(&world, lane, identity, entries, groups, spares);
        let drives = Rc::new(drives);
        hung::guard(&drives);
        let made = label_all(Rc::clone(&drives)).await;
        made.map_err(|error| drives.because_of_silence(error))
    }
}

fn smallest_bytes<W: World>(drives: &[NamedDrive<W>]) -> u64 {
    let capacities = drives
        .iter()
        .map(|named| named.drive.geometry().capacity_bytes);
    capacities.min().unwrap_or(0)
}

/// That the drives are not too many, and no pool's yet.
async fn check_unlabelled<W: World>(
    world: &W,
    spec: &PoolSpec,
    drives: &[&NamedDrive<W>],
) -> Result<(), PoolError> {
    if drives.len() > MEMBERS_MAX {
        return Err(invalid(format!(
            "{} drives in pool '{}': allowed are {MEMBERS_MAX}",
            drives.len(),
            spec.name
        )));
    }
    for NamedDrive { name, drive } in drives {
        check_name("drive", name)?;
        if let Some(label) = Lane::probe(world, drive).await? {
            return Err(PoolError::new(
                PoolErrorKind::Exists,
                format!(
                    "drive '{name}' belongs to pool '{}' already; it is not taken for pool '{}'",
                    label.pool_name, spec.name
                ),
            ));
        }
    }
    Ok(())
}

/// That each spare can stand in for every drive.
fn check_spares<W: World>(
    spec: &PoolSpec,
    spares: &[NamedDrive<W>],
    groups: &[Planned],
) -> Result<(), PoolError> {
    // A drive of the log group needs less.
    let data = groups
        .iter()
        .enumerate()
        .filter(|(at, _)| Some(*at) != spec.log_group);
    let capacities = data.map(|(_, (_, _, capacity))| *capacity);
    let least = capacities.max().unwrap_or(0);
    let mut spares = spares.iter();
    let small = spares.find(|spare| spare.drive.geometry().capacity_bytes < least);
    let Some(small) = small else { return Ok(()) };
    let there = small.drive.geometry().capacity_bytes;
    let (there, needed) = human_pair(there, least);
    Err(PoolError::new(
        PoolErrorKind::TooSmall,
        format!(
            "spare '{}' of pool '{}' has {there}, and {needed} are needed to stand in for every drive",
            small.name, spec.name
        ),
    ))
}

/// Writes what a new pool has, labels last, and starts it.
async fn label_all<W: World>(drives: Rc<Drives<W>>) -> Result<Lane<W>, PoolError> {
    // Metadata first: a drive with a label is a drive with a pool.
    let inner = LaneState::assemble(drives, State::default(), true).await?;
    inner.journal().begin_generation(1);
    inner
        .journal()
        .write_checkpoint(inner.journal().checkpoint_now())
        .await?;
    // A label that is cut short does not say whose it is.
    inner.drives().stamp_all().await;
    // Only with the second generation there is a pool: until then, some drives may
    // have no label yet, and could not be told from lost ones.
    inner.drives().write_labels_alone(|_| ()).await?;
    inner.drives().write_labels_alone(|_| ()).await?;
    if let Some(failed) = inner
        .drives()
        .members()
        .iter()
        .find(|member| !member.is_whole())
    {
        let context = format!("drive '{}' failed while it was labelled", failed.name);
        return Err(PoolError::new(PoolErrorKind::Drive, context));
    }
    Ok(Lane::start(inner))
}

/// Makes the members of a new pool, one after the other.
struct NewMembers<'a, W: World> {
    world: &'a W,
    prng: Prng,
    part: Part,
    carriers: Carriers,
}

impl<W: World> NewMembers<'_, W> {
    fn member(
        &mut self,
        named: NamedDrive<W>,
        group: u16,
        place: u16,
        state: MemberState,
    ) -> Rc<Member<W>> {
        let drive = View::new(Rc::new(named.drive), self.part);
        let at = (usize::from(group), usize::from(place));
        let entry = MemberEntry {
            uuid: self.prng.uuid(),
            group,
            place,
            state,
            metadata: self.carriers.metadata.contains(&at),
            log: self.carriers.logs.contains(&at),
            ordered_out: false,
            reserved: false,
            succeeds: None,
            capacity_bytes: drive.geometry().capacity_bytes,
            name: named.name,
        };
        Rc::new(Member::new(self.world, drive, &entry))
    }

    fn all(
        &mut self,
        drives: Vec<NamedDrive<W>>,
        group: u16,
        state: MemberState,
    ) -> Vec<Rc<Member<W>>> {
        (0..)
            .zip(drives)
            .map(|(place, named)| self.member(named, group, place, state))
            .collect()
    }
}

fn new_drives<W: World>(
    world: &W,
    lane: LaneSlot,
    identity: PoolIdentity,
    entries: Vec<GroupEntry>,
    groups: Vec<(Protection, Vec<NamedDrive<W>>)>,
    spares: Vec<NamedDrive<W>>,
) -> Drives<W> {
    let spins = |(group, place): Place| groups[group].1[place].drive.geometry().rotational;
    let mut spans = Spans::default();
    for (index, group) in entries.iter().enumerate() {
        let of_group = spans_of(index, group.protection(), usize::from(group.drives));
        spans.add(group.is_log(), of_group);
    }
    let mut new = NewMembers {
        world,
        prng: drive_names(world, &identity),
        part: identity.part(),
        carriers: carriers::plan(&spans, (identity.lanes, identity.lane), spins),
    };
    let groups = (0..)
        .zip(groups)
        .map(|(group, (_, drives))| new.all(drives, group, MemberState::Healthy))
        .collect();
    let spares = new.all(spares, SPARE_GROUP, MemberState::Spare);
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
