//! Making a pool out of drives without labels.

use super::inner::{Inner, JournalCursor, Labels};
use super::space::Space;
use super::{
    JOURNAL_BYTES_MIN, Level, MemberState, NamedDrive, Pool, PoolError, PoolErrorKind, PoolSpec,
};
use crate::drive::Drive;
use crate::label::{
    LABEL_AREA_BYTES, Label, MEMBERS_MAX, MemberEntry, NAME_BYTES_MAX, PoolIdentity,
};
use crate::meta::{State, checkpoint};
use crate::raid::{Group, Layout, Member, Regions};
use crate::world::World;
use base::{BLOCK_BYTES, PhysPage};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Copies of the metadata, where there are that many drives.
const METADATA_COPIES: usize = 3;

/// How long a region is without writes before it is marked clean.
const REGION_IDLE: Duration = Duration::from_secs(5);

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

fn layout_of(level: Level, drives: usize, unit_bytes: u32) -> Option<Layout> {
    let unit_bytes = u64::from(unit_bytes);
    match level {
        Level::Simple if drives == 1 => Some(Layout {
            columns: 1,
            copies: 1,
            unit_bytes,
        }),
        Level::Raid10 { copies: 2 } if drives >= 2 && drives.is_multiple_of(2) => Some(Layout {
            columns: drives / 2,
            copies: 2,
            unit_bytes,
        }),
        _ => None,
    }
}

fn check_spec(spec: &PoolSpec, drives: usize) -> Result<(), PoolError> {
    check_name("pool", &spec.name)?;
    let block = BLOCK_BYTES as u32;
    let sizes = [
        ("stripe unit", spec.stripe_unit_bytes),
        ("page", spec.page_bytes),
        ("region", spec.region_bytes),
    ];
    for (what, bytes) in sizes {
        if !bytes.is_power_of_two() || !(block..=1 << 30).contains(&bytes) {
            return Err(invalid(format!(
                "{what} of {bytes} bytes in pool '{}': allowed are powers of two from {block} to {}",
                spec.name,
                1 << 30
            )));
        }
    }
    if spec.journal_bytes < JOURNAL_BYTES_MIN || !spec.journal_bytes.is_multiple_of(block) {
        return Err(invalid(format!(
            "journal of {} bytes in pool '{}': allowed are multiples of {block} from {JOURNAL_BYTES_MIN}",
            spec.journal_bytes, spec.name
        )));
    }
    if drives > MEMBERS_MAX || layout_of(spec.level, drives, spec.stripe_unit_bytes).is_none() {
        let allowed = match spec.level {
            Level::Simple => "exactly one".to_owned(),
            _ => format!("an even number from 2 to {MEMBERS_MAX}"),
        };
        return Err(invalid(format!(
            "{drives} drives in pool '{}' of level {:?}: allowed is {allowed}",
            spec.name, spec.level
        )));
    }
    Ok(())
}

/// Lays out drives whose smallest has `capacity_bytes`.
fn lay_out<W: World>(
    world: &W,
    spec: &PoolSpec,
    drives: usize,
    capacity_bytes: u64,
) -> Result<PoolIdentity, PoolError> {
    let unit = u64::from(spec.stripe_unit_bytes);
    let columns = layout_of(spec.level, drives, spec.stripe_unit_bytes).map_or(1, |l| l.columns);
    // Sized for the whole drive as data: a little too large, never too small.
    let data_max = capacity_bytes * columns as u64;
    let pages = data_max / u64::from(spec.page_bytes);
    let regions = data_max.div_ceil(u64::from(spec.region_bytes));
    let checkpoint_bytes = checkpoint::slot_bytes(pages, regions, spec.volumes_max);
    let metadata = LABEL_AREA_BYTES + 2 * u64::from(spec.journal_bytes) + 2 * checkpoint_bytes;
    let data_start = metadata.next_multiple_of(unit);
    let data_bytes = capacity_bytes.saturating_sub(data_start) / unit * unit;
    if data_bytes * (columns as u64) < u64::from(spec.page_bytes) {
        return Err(PoolError::new(
            PoolErrorKind::TooSmall,
            format!(
                "drives of {capacity_bytes} bytes are too small for pool '{}': {data_start} bytes go to labels and metadata, and no page fits in the rest",
                spec.name
            ),
        ));
    }
    if pages >= u64::from(u32::MAX) {
        return Err(invalid(format!(
            "pool '{}' would have {pages} pages, and the format ends at {}: choose a larger page",
            spec.name,
            u32::MAX
        )));
    }
    Ok(PoolIdentity {
        uuid: world.prng(&format!("pool {}", spec.name)).uuid(),
        name: spec.name.clone(),
        level: spec.level,
        stripe_unit_bytes: spec.stripe_unit_bytes,
        page_bytes: spec.page_bytes,
        journal_bytes: spec.journal_bytes,
        region_bytes: spec.region_bytes,
        volumes_max: spec.volumes_max,
        checkpoint_bytes,
        data_start,
        data_bytes,
    })
}

impl<W: World> Pool<W> {
    /// Makes a new pool of one group out of unlabelled drives, and opens it.
    ///
    /// # Errors
    /// `Invalid` or `TooSmall` for what can't be made, `Exists` when a drive has a
    /// label already; nothing has been written then. `Drive` when a write fails.
    pub async fn create(
        world: W,
        spec: PoolSpec,
        drives: Vec<NamedDrive<W>>,
    ) -> Result<Self, PoolError> {
        check_spec(&spec, drives.len())?;
        for NamedDrive { name, drive } in &drives {
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
        let smallest = drives
            .iter()
            .map(|named| named.drive.geometry().capacity_bytes)
            .min();
        let identity = lay_out(&world, &spec, drives.len(), smallest.unwrap_or(0))?;
        let mut prng = world.prng(&format!("drives of {}", identity.uuid));
        let entry = |(place, named): (usize, &NamedDrive<W>)| MemberEntry {
            uuid: prng.uuid(),
            group: 0,
            place: place as u16,
            state: MemberState::Healthy,
            metadata: place < METADATA_COPIES,
            capacity_bytes: named.drive.geometry().capacity_bytes,
            name: named.name.clone(),
        };
        let members: Vec<MemberEntry> = drives.iter().enumerate().map(entry).collect();
        let members_and_drives = members
            .iter()
            .cloned()
            .zip(drives.into_iter().map(|n| n.drive));
        let label = Label {
            generation: 0,
            epoch: 1,
            clean: false,
            drive_uuid: identity.uuid,
            pool: identity.clone(),
            members: members.clone(),
        };
        let members = members_and_drives
            .map(|(entry, drive)| Rc::new(Member::new(drive, &entry)))
            .collect();
        let inner = assemble(world, label, members, State::default())?;
        // Metadata first: a drive with a label is a drive with a pool.
        inner.begin_generation(1);
        inner.write_checkpoint(inner.checkpoint_now()).await?;
        inner.write_labels(|_| ()).await?;
        if let Some(failed) = inner
            .group
            .members
            .iter()
            .find(|member| !member.is_healthy())
        {
            let context = format!("drive '{}' failed while it was labelled", failed.name);
            return Err(PoolError::new(PoolErrorKind::Drive, context));
        }
        Ok(Pool::start(inner))
    }
}

/// An open pool out of its parts, as recovered or new.
pub(super) fn assemble<W: World>(
    world: W,
    label: Label,
    members: Vec<Rc<Member<W>>>,
    state: State,
) -> Result<Rc<Inner<W>>, PoolError> {
    let identity = label.pool.clone();
    let corrupt = |what: String| {
        let context = format!("metadata of pool '{}': {what}", identity.name);
        PoolError::new(PoolErrorKind::Corrupt, context)
    };
    let layout = layout_of(identity.level, members.len(), identity.stripe_unit_bytes)
        .ok_or_else(|| corrupt(format!("{} drives don't make its level", members.len())))?;
    let capacity = identity.data_bytes * layout.columns as u64;
    let mut space = Space::new(capacity / u64::from(identity.page_bytes));
    for core in state.volumes.values() {
        for (page, phys) in core.map.borrow().iter() {
            if !space.claim(PhysPage(phys.0)) {
                return Err(corrupt(format!(
                    "page {page} of volume '{}' lies at {phys}, which is taken or not there",
                    core.name
                )));
            }
        }
    }
    let regions = Regions::new(identity.region_bytes, &state.dirty);
    Ok(Rc::new(Inner {
        group: Group::new(world.clone(), members, layout, identity.data_start),
        world,
        identity,
        labels: Labels {
            current: RefCell::new(label),
            writing: Default::default(),
            wanted: Cell::new(0),
            durable: Cell::new(0),
        },
        journal: JournalCursor::default(),
        state: RefCell::new(state),
        space: RefCell::new(space),
        regions: RefCell::new(regions),
        equalising: Default::default(),
        administration: Default::default(),
        failure: RefCell::new(None),
        closed: Cell::new(false),
        region_idle: Cell::new(REGION_IDLE),
    }))
}
