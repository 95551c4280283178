//! From labelled drives to an open pool.
//!
//! Nothing is written before all drives and the metadata have been found good.
//! Then two generations of labels are written before anything else, so that a
//! drive that is not there now is known to be stale later (`docs/FORMAT.md`,
//! "Label").

use super::create::assemble;
use super::{Inner, LabelSummary, MemberState, NamedDrive, Pool, PoolError, PoolErrorKind};
use crate::drive::Drive;
use crate::label::{Label, PoolIdentity, SLOT_BYTES, SLOT_OFFSETS, Slot};
use crate::meta::{Record, State, checkpoint, journal};
use crate::raid::Member;
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset, Uuid};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Large metadata reads go in pieces of this size.
const TRANSFER_BYTES: u64 = 1 << 20;

/// A drive with the newest label that it carries.
struct Labelled<W: World> {
    name: String,
    drive: W::Drive,
    label: Label,
}

fn refuse(kind: PoolErrorKind, context: String) -> PoolError {
    PoolError::new(kind, context)
}

impl<W: World> Pool<W> {
    /// Reads a drive's label: `None` when it has none.
    ///
    /// # Errors
    /// `Version` for a label of a newer format, `Drive` when it can't be read.
    pub async fn probe(world: &W, drive: &W::Drive) -> Result<Option<LabelSummary>, PoolError> {
        let label = read_label(world, drive).await?;
        Ok(label.and_then(|label| {
            let own = label
                .members
                .iter()
                .find(|member| member.uuid == label.drive_uuid)?;
            Some(LabelSummary {
                pool_uuid: label.pool.uuid,
                pool_name: label.pool.name.clone(),
                drive_uuid: label.drive_uuid,
                group: own.group,
                place: own.place,
            })
        }))
    }

    /// Opens the pool that the labels of `drives` describe, whatever their order
    /// and names, recovering from whatever happened before.
    ///
    /// # Errors
    /// `Unlabelled`, `Foreign`, `Missing`, `Stale`, `TooSmall` and `Version` name the
    /// drive; `Corrupt` when no copy of the metadata is whole. Nothing has been
    /// written then.
    pub async fn open(world: W, drives: Vec<NamedDrive<W>>) -> Result<Self, PoolError> {
        let mut labelled = Vec::new();
        for named in drives {
            labelled.push(labelled_drive::<W>(&world, named).await?);
        }
        let newest = newest_label(&labelled)?;
        let behind: Vec<Uuid> = labelled
            .iter()
            .filter(|drive| drive.label.generation < newest.generation)
            .map(|drive| drive.label.drive_uuid)
            .collect();
        let members = match_members(&newest, labelled)?;
        let laggards: Vec<usize> = (0..members.len())
            .filter(|place| behind.contains(&members[*place].uuid))
            .collect();
        let (generation, mut state) = recover(&world, &newest.pool, &members).await?;
        let unfinished: Vec<_> = state
            .volumes
            .values()
            .filter(|core| !core.ready.get())
            .map(|core| core.id)
            .collect();
        for id in unfinished {
            // A creation cut short: its pages are free, as if it had never begun.
            let dropped = state.apply(&Record::Delete { id });
            assert!(dropped.is_ok(), "{dropped:?}");
        }
        let inner = assemble(world, newest, members, state)?;
        take_over(&inner, &laggards, generation).await?;
        Ok(Pool::start(inner))
    }
}

/// Takes ownership: labels first, then a checkpoint of what was recovered.
async fn take_over<W: World>(
    inner: &Inner<W>,
    laggards: &[usize],
    generation: u64,
) -> Result<(), PoolError> {
    // A killed owner leaves writes in drive caches. They can be read, so they may be
    // answered with, so they must not go away any more.
    inner.flush_members().await?;
    // Who lags by one would lag by two if the next writes were cut short, and be
    // taken for stale: first everybody gets the label that the newest has.
    inner.repeat_labels(laggards).await?;
    inner
        .write_labels(|label| {
            label.epoch += 1;
            label.clean = false;
            for (entry, member) in label.members.iter_mut().zip(&inner.group.members) {
                entry.name.clone_from(&member.name);
            }
        })
        .await?;
    inner.write_labels(|_| ()).await?;
    // A drive that failed just now is out of use before anything else happens.
    inner.settle_labels().await;
    inner.check()?;
    // Three ahead: the other checkpoint slot, and a generation of which neither
    // journal area can hold a batch (the last owner was at most one ahead).
    inner.begin_generation(generation + 3);
    inner.write_checkpoint(inner.checkpoint_now()).await
}

async fn read_label<W: World>(world: &W, drive: &W::Drive) -> Result<Option<Label>, PoolError> {
    let mut newest: Option<Label> = None;
    let mut failure = None;
    for offset in SLOT_OFFSETS {
        if offset + SLOT_BYTES as u64 > drive.geometry().capacity_bytes {
            continue;
        }
        let buf = world.buffers().bytes(SLOT_BYTES);
        let (buf, outcome) = drive.read(DriveOffset(offset), buf).await;
        if let Err(error) = outcome {
            failure = Some(refuse(PoolErrorKind::Drive, error.to_string()));
            continue;
        }
        match Label::decode(buf.bytes().unwrap_or_default()) {
            Slot::Empty => {}
            Slot::Newer(version) => {
                return Err(refuse(
                    PoolErrorKind::Version,
                    format!(
                        "a label of format version {version}, and this program knows {}: use a newer one",
                        crate::label::FORMAT_VERSION
                    ),
                ));
            }
            Slot::Label(label) => {
                if newest
                    .as_ref()
                    .is_none_or(|newest| newest.generation < label.generation)
                {
                    newest = Some(*label);
                }
            }
        }
    }
    match (newest, failure) {
        (None, Some(failure)) => Err(failure),
        (newest, _) => Ok(newest),
    }
}

async fn labelled_drive<W: World>(
    world: &W,
    NamedDrive { name, drive }: NamedDrive<W>,
) -> Result<Labelled<W>, PoolError> {
    let label = read_label::<W>(world, &drive)
        .await
        .map_err(|error| PoolError {
            context: format!("drive '{name}': {}", error.context),
            ..error
        })?;
    let label = label.ok_or_else(|| {
        let context =
            format!("drive '{name}' has no label: it belongs to no pool, or was replaced");
        refuse(PoolErrorKind::Unlabelled, context)
    })?;
    Ok(Labelled { name, drive, label })
}

/// The newest label, when all drives are of one pool and each is there once.
fn newest_label<W: World>(drives: &[Labelled<W>]) -> Result<Label, PoolError> {
    let mut pools: BTreeMap<Uuid, usize> = BTreeMap::new();
    for drive in drives {
        *pools.entry(drive.label.pool.uuid).or_default() += 1;
    }
    let majority = pools
        .iter()
        .max_by_key(|(_, drives)| **drives)
        .map(|(uuid, _)| *uuid);
    let ours = || {
        drives
            .iter()
            .filter(|drive| Some(drive.label.pool.uuid) == majority)
    };
    let newest = ours()
        .map(|drive| &drive.label)
        .max_by_key(|label| label.generation);
    let newest = newest.ok_or_else(|| {
        refuse(
            PoolErrorKind::Invalid,
            "a pool can't be opened from no drives".to_owned(),
        )
    })?;
    if let Some(foreign) = drives.iter().find(|d| Some(d.label.pool.uuid) != majority) {
        return Err(refuse(
            PoolErrorKind::Foreign,
            format!(
                "drive '{}' belongs to pool '{}' ({}), the others to pool '{}' ({}): take it out",
                foreign.name,
                foreign.label.pool.name,
                foreign.label.pool.uuid,
                newest.pool.name,
                newest.pool.uuid
            ),
        ));
    }
    for (index, drive) in drives.iter().enumerate() {
        let twin = drives[..index]
            .iter()
            .find(|d| d.label.drive_uuid == drive.label.drive_uuid);
        if let Some(twin) = twin {
            return Err(refuse(
                PoolErrorKind::Invalid,
                format!(
                    "drives '{}' and '{}' are the same drive ({}), or one is a copy of the other",
                    twin.name, drive.name, drive.label.drive_uuid
                ),
            ));
        }
    }
    Ok(newest.clone())
}

/// The members by place, every healthy one with its drive.
fn match_members<W: World>(
    newest: &Label,
    drives: Vec<Labelled<W>>,
) -> Result<Vec<Rc<Member<W>>>, PoolError> {
    let pool = &newest.pool.name;
    let mut by_uuid: BTreeMap<Uuid, Labelled<W>> = drives
        .into_iter()
        .map(|drive| (drive.label.drive_uuid, drive))
        .collect();
    let mut members = Vec::new();
    for entry in &newest.members {
        let Some(found) = by_uuid.remove(&entry.uuid) else {
            if entry.state == MemberState::Failed {
                members.push(Rc::new(Member::absent(entry)));
                continue;
            }
            return Err(refuse(
                PoolErrorKind::Missing,
                format!(
                    "drive '{}' (place {} of group {}, {}) of pool '{pool}' is missing: bring it back",
                    entry.name, entry.place, entry.group, entry.uuid
                ),
            ));
        };
        if entry.state == MemberState::Healthy {
            check_member(newest, entry.capacity_bytes, &found)?;
        }
        let entry = crate::label::MemberEntry {
            name: found.name,
            ..entry.clone()
        };
        members.push(Rc::new(Member::new(found.drive, &entry)));
    }
    if let Some(stranger) = by_uuid.into_values().next() {
        return Err(refuse(
            PoolErrorKind::Stale,
            format!(
                "drive '{}' is not a member of pool '{pool}' any more: take it out",
                stranger.name
            ),
        ));
    }
    Ok(members)
}

fn check_member<W: World>(
    newest: &Label,
    labelled_bytes: u64,
    found: &Labelled<W>,
) -> Result<(), PoolError> {
    let Labelled { name, drive, label } = found;
    if label.generation + 1 < newest.generation {
        return Err(refuse(
            PoolErrorKind::Stale,
            format!(
                "drive '{name}' has an old state of pool '{}' (label generation {}, the others {}): it was away while the pool was in use, or is an old copy; bring the right one back",
                newest.pool.name, label.generation, newest.generation
            ),
        ));
    }
    let needed = newest.pool.data_start + newest.pool.data_bytes;
    let capacity = drive.geometry().capacity_bytes;
    if capacity < needed {
        return Err(refuse(
            PoolErrorKind::TooSmall,
            format!(
                "drive '{name}' has {capacity} bytes and had {labelled_bytes} when it was labelled; pool '{}' uses {needed} of them: it was cut short or copied to a smaller one",
                newest.pool.name
            ),
        ));
    }
    Ok(())
}

/// The generation of the newest checkpoint, and the state after every record
/// journalled since.
async fn recover<W: World>(
    world: &W,
    pool: &PoolIdentity,
    members: &[Rc<Member<W>>],
) -> Result<(u64, State), PoolError> {
    let copies = || {
        members
            .iter()
            .filter(|m| m.metadata && m.is_healthy())
            .map(AsRef::as_ref)
    };
    let corrupt = |what: String| {
        refuse(
            PoolErrorKind::Corrupt,
            format!("metadata of pool '{}': {what}", pool.name),
        )
    };
    let mut best: Option<(u64, State)> = None;
    for member in copies() {
        for slot in 0..2 {
            let found = read_checkpoint(world, pool, member, slot).await;
            let Some((generation, state)) = found.map_err(corrupt)? else {
                continue;
            };
            if best.as_ref().is_none_or(|(newest, _)| *newest < generation) {
                best = Some((generation, state));
            }
        }
    }
    let (generation, mut state) =
        best.ok_or_else(|| corrupt("no copy of it is whole".to_owned()))?;
    // The generation after it, too: a crash may have come between the switch of the
    // journal area and the end of the checkpoint that goes with it.
    for generation in [generation, generation + 1] {
        let mut longest = (0, Vec::new());
        for member in copies() {
            let at = pool.journal_offset(generation);
            let len = u64::from(pool.journal_bytes);
            // A copy that can't be read is one copy fewer.
            let Some(area) = read_run(world, member, at, len).await else {
                continue;
            };
            let found = journal::scan(&area, pool.uuid, generation).map_err(corrupt)?;
            if found.0 > longest.0 {
                longest = found;
            }
        }
        for record in &longest.1 {
            state.apply(record).map_err(corrupt)?;
        }
    }
    Ok((generation, state))
}

async fn read_checkpoint<W: World>(
    world: &W,
    pool: &PoolIdentity,
    member: &Member<W>,
    slot: u64,
) -> Result<Option<(u64, State)>, String> {
    let at = pool.checkpoint_offset(slot);
    let Some(block) = read_run(world, member, at, checkpoint::HEADER_BYTES as u64).await else {
        return Ok(None);
    };
    let Some(header) = checkpoint::decode_header(&block, pool.uuid) else {
        return Ok(None);
    };
    let room = pool.checkpoint_bytes - checkpoint::HEADER_BYTES as u64;
    if header.payload_bytes > room || header.generation % 2 != slot {
        return Ok(None);
    }
    let at = at + checkpoint::HEADER_BYTES as u64;
    let Some(payload) = read_run(world, member, at, header.payload_bytes).await else {
        return Ok(None);
    };
    let state = checkpoint::decode_payload(&header, &payload)?;
    Ok(state.map(|state| (header.generation, state)))
}

/// `len` bytes of a member, or `None` when they can't be read.
async fn read_run<W: World>(world: &W, member: &Member<W>, at: u64, len: u64) -> Option<Vec<u8>> {
    let mut run = Vec::new();
    while (run.len() as u64) < len {
        let left = len - run.len() as u64;
        let piece = left.min(TRANSFER_BYTES) as usize;
        let buf = world.buffers().bytes(piece.next_multiple_of(BLOCK_BYTES));
        let buf = member
            .read(DriveOffset(at + run.len() as u64), buf)
            .await
            .ok()?;
        run.extend_from_slice(&buf.bytes()?[..piece]);
    }
    Some(run)
}
