//! Opening a pool from its labelled drives.
//!
//! Nothing is written before all drives and the metadata have been found good.
//! Then the heartbeat says who opens the pool ([`heartbeat`]), and two generations of
//! labels are written before anything else, so that a drive that is not there now is
//! known to be stale later (`docs/internals/format.md`, "Label").
//!
//! No drive is waited for without end: one that does not answer counts as missing
//! ([`hung`]).

use super::label_reads::read_label;
use super::maintenance::Departures;
use super::recover::{Recovered, recover};
use super::strangers;
use super::{LabelSummary, Lane, MemberState, NamedDrive, PoolError, PoolErrorKind};
use crate::drive::Drive;
use crate::drives::Member;
use crate::drives::heartbeat;
use crate::drives::hung::{self};
use crate::drives::{Drives, EventKind, Places};
use crate::label::{Label, MemberEntry, PoolIdentity};
use crate::lane::{LaneSlot, Part, View};
use crate::meta::{Record, Stage};
use crate::space::{LaneState, State};
use crate::world::World;
use base::Uuid;
use base::size::human_pair;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// A drive with the newest label that it carries.
struct Labelled<W: World> {
    name: String,
    drive: View<W::Drive>,
    label: Label,
}

/// How often a lane looks whether the others could be opened.
const OTHERS_READY: Duration = Duration::from_millis(1);

fn refuse(kind: PoolErrorKind, context: String) -> PoolError {
    PoolError::new(kind, context)
}

impl<W: World> Lane<W> {
    /// Reads the label that the first lane has on a drive: `None` when it has none, which
    /// is so of every drive that belongs to no pool. See [`Lane::probe_beside`].
    ///
    /// # Errors
    /// `Version` for a label of another format, `Drive` when it can't be read.
    pub async fn probe(world: &W, drive: &W::Drive) -> Result<Option<LabelSummary>, PoolError> {
        let label = read_label(world, drive, 0).await?;
        Ok(label.and_then(|label| LabelSummary::of(&label)))
    }

    /// Opens a pool of one lane, as [`Lane::open_lane`].
    ///
    /// # Errors
    /// As there, and `Invalid` when it has several.
    pub async fn open(world: W, drives: Vec<NamedDrive<W>>) -> Result<Self, PoolError> {
        Self::open_lane(world, LaneSlot::alone(), drives).await
    }

    /// Opens a lane of the pool that the labels of `drives` describe, whatever their order
    /// and names, recovering from whatever happened before. Drives that are missing,
    /// blank, stale or cut short are out of use from now on, where the others can do
    /// without them; events name them. All lanes are opened side by side: each waits
    /// until all could be.
    ///
    /// # Errors
    /// `Missing`, `Stale`, `TooSmall`, `Unlabelled` and `Drive` name what the pool
    /// can't do without; `InUse` when another host has it; `Foreign` and `Version` what should not be there; `Corrupt`
    /// when no copy of the metadata is whole. Nothing has been written then.
    pub async fn open_lane(
        world: W,
        lane: LaneSlot,
        drives: Vec<NamedDrive<W>>,
    ) -> Result<Self, PoolError> {
        let found = look(&world, &lane, drives).await;
        lane.registry.say_ready(lane.index, found.is_ok());
        let found = found?;
        all_ready(&world, &lane, found.drives.name()).await?;
        let drives = Rc::clone(&found.drives);
        let opened = go_on(&world, found).await;
        if let Err(error) = &opened {
            drives.end_opening(&error.context).await;
        }
        opened.map_err(|error| drives.because_of_silence(error))
    }
}

/// Takes over what was found, recovers the logs, and starts the pool.
async fn go_on<W: World>(world: &W, found: FoundLane<W>) -> Result<Lane<W>, PoolError> {
    let FoundLane {
        drives,
        laggards,
        recovered: found,
        notes,
    } = found;
    let pool = drives.identity().clone();
    for (_, text) in &notes {
        world.reached("degraded start");
        drives.event(EventKind::DriveMissing, text.clone());
    }
    take_over(&drives, &laggards).await?;
    // The other checkpoint slot, and a generation of which neither journal area can hold a batch
    // (the last owner was at most one ahead).
    let mut ahead = 3;
    if let Some(behind) = &found.behind {
        let faults = behind.put_right(world, &pool).await.unwrap_or_else(|| {
            // They keep the one before, and the journals since: the next goes over the newest.
            ahead = 4;
            Vec::new()
        });
        drives.absorb(faults).await.map_err(|error| {
            let what = format!("metadata of pool '{}': {error}", pool.name);
            refuse(PoolErrorKind::Drive, what)
        })?;
    }
    let inner = LaneState::assemble(Rc::clone(&drives), found.state, false).await?;
    inner.journal().begin_generation(found.generation + ahead);
    inner
        .journal()
        .write_checkpoint(inner.journal().checkpoint_now())
        .await?;
    if drives.lane().index == 0 {
        // The first lane decides: there is no such group.
        Departures::of(&inner).part_with_reserved().await?;
    }
    inner.check()?;
    Ok(Lane::start(inner))
}

/// What the drives of a lane hold.
struct FoundLane<W: World> {
    drives: Rc<Drives<W>>,
    /// Drives whose labels lag.
    laggards: Vec<Uuid>,
    recovered: Recovered<W>,
    notes: Notes,
}

/// Ends when all lanes could be opened.
async fn all_ready<W: World>(world: &W, lane: &LaneSlot, pool: &str) -> Result<(), PoolError> {
    loop {
        match lane.registry.all_ready() {
            Some(true) => return Ok(()),
            Some(false) => {
                let context = format!("another lane of pool '{pool}' can't be opened");
                return Err(refuse(PoolErrorKind::Failed, context));
            }
            None => world.sleep(OTHERS_READY).await,
        }
    }
}

fn cut_short(pool: &str) -> PoolError {
    let context = format!(
        "the creation of pool '{pool}' was cut short and it holds nothing: wipe its drives and create it again"
    );
    refuse(PoolErrorKind::Unlabelled, context)
}

/// Drives with a label of the lane, and the names of those without one.
type Read<W> = (Vec<Labelled<W>>, Vec<(String, Rc<<W as World>::Drive>)>);

/// Reads the labels of a lane. What can't be read is a note, as long as there is any label.
async fn read_labels<W: World>(
    world: &W,
    lane: &LaneSlot,
    part: Part,
    drives: Vec<NamedDrive<W>>,
    notes: &mut Notes,
) -> Result<Read<W>, PoolError> {
    let mut labelled = Vec::new();
    let mut unlabelled = Vec::new();
    // All at once: several may not answer.
    let reads = drives.into_iter().map(async |NamedDrive { name, drive }| {
        let drive = View::new(Rc::new(drive), part);
        let read = read_label(world, &drive, lane.index).await;
        (name, drive, read)
    });
    for (name, mut drive, read) in join_all(reads).await {
        match read {
            Ok(Some(label)) => {
                drive.set_part(label.pool.part());
                labelled.push(Labelled { name, drive, label });
            }
            Ok(None) => unlabelled.push((name, Rc::clone(drive.whole()))),
            Err(error) if error.kind == PoolErrorKind::Version => {
                let context = format!("drive '{name}': {}", error.context);
                return Err(PoolError { context, ..error });
            }
            Err(error) => notes.push((error.kind, format!("drive '{name}': {}", error.context))),
        }
    }
    if labelled.is_empty() {
        if let Some((kind, text)) = notes.first() {
            return Err(refuse(*kind, text.clone()));
        }
        if let Some((name, _)) = unlabelled.first() {
            let text = strangers::has_no_label(name);
            return Err(refuse(PoolErrorKind::Unlabelled, text));
        }
    }
    Ok((labelled, unlabelled))
}

/// Reads labels and metadata of a lane. When they are good it writes the heartbeat, and
/// nothing else.
async fn look<W: World>(
    world: &W,
    lane: &LaneSlot,
    drives: Vec<NamedDrive<W>>,
) -> Result<FoundLane<W>, PoolError> {
    let mut notes = Vec::new();
    let part = part_of(world, lane, &drives).await?;
    let past = heartbeat::wait_for_others(world, &drives, part).await?;
    let (labelled, unlabelled) = read_labels(world, lane, part, drives, &mut notes).await?;
    let newest = newest_label(&labelled)?;
    strangers::unlabelled(world, &newest, unlabelled, &mut notes).await;
    check_lanes(lane, &newest.pool)?;
    let numbers = newest.check_numbers();
    numbers.map_err(|context| refuse(PoolErrorKind::Corrupt, context))?;
    if newest.generation == 1 {
        return Err(cut_short(&newest.pool.name));
    }
    let laggards: Vec<Uuid> = labelled
        .iter()
        .filter(|drive| drive.label.generation < newest.generation)
        .map(|drive| drive.label.drive_uuid)
        .collect();
    let (groups, spares, strange) = match_members(world, &newest, labelled, &mut notes);
    let leftovers = strangers::leftovers(world, &newest, strange, &mut notes).await;
    let pool = newest.pool.clone();
    let drives = Drives::new(world.clone(), lane.clone(), newest, groups, spares);
    for (group, leftovers) in leftovers {
        drives.group(group).set_leftovers(world, leftovers);
    }
    let drives = Rc::new(drives);
    drives.take_up_successors();
    hung::guard(&drives);
    let recovered = recovered(world, &drives, &pool, &notes).await;
    let recovered = recovered.map_err(|error| drives.because_of_silence(error))?;
    heartbeat::claim(&drives, past).await?;
    Ok(FoundLane {
        drives,
        laggards,
        recovered,
        notes,
    })
}

type Notes = Vec<(PoolErrorKind, String)>;

/// Drives that are no members, with their labels.
type Strange<W> = Vec<(String, View<<W as World>::Drive>, Label)>;

/// What is wrong with a pool, and the drives that are the reason; a line for each, as who shows them
/// may leave the last ones out.
fn with_reasons(reasons: &[(PoolErrorKind, String)], kind: PoolErrorKind, what: &str) -> PoolError {
    let Some((first, _)) = reasons.first() else {
        return refuse(kind, what.to_owned());
    };
    let texts: Vec<&str> = reasons.iter().map(|(_, text)| text.as_str()).collect();
    refuse(*first, format!("{what}: {}", texts.join("\n")))
}

/// What is wrong with the drives, those that did not answer since their labels were read included.
fn reasons<W: World>(drives: &Rc<Drives<W>>, notes: &Notes) -> Notes {
    let events = drives.events_since(0).into_iter();
    let failed = events.filter(|event| event.kind == EventKind::DriveFailed);
    let failed = failed.map(|event| (PoolErrorKind::Missing, event.text));
    notes.iter().cloned().chain(failed).collect()
}

/// That no metadata could be read. People can do something about the drives that carry it.
fn unread(reasons: &Notes, pool: &PoolIdentity, error: PoolError) -> PoolError {
    if reasons.is_empty() {
        return refuse(error.kind, error.context);
    }
    let what = format!("drives of pool '{}' can't be used", pool.name);
    let mut refused = with_reasons(reasons, error.kind, &what);
    refused.context += &format!("\nso its metadata can't be read: {}", error.context);
    refused
}

/// The metadata, when it is to be had and the drives that are there suffice.
async fn recovered<W: World>(
    world: &W,
    drives: &Rc<Drives<W>>,
    pool: &PoolIdentity,
    notes: &Notes,
) -> Result<Recovered<W>, PoolError> {
    // What is wrong with the drives is the reason for what is wrong with the pool.
    let because =
        |kind: PoolErrorKind, what: String| with_reasons(&reasons(drives, notes), kind, &what);
    let found = recover(world, pool, &drives.members()).await;
    let mut found = found.map_err(|error| unread(&reasons(drives, notes), pool, error))?;
    check_zones(drives, pool, &found.state)?;
    check_drives(drives, pool).map_err(|what| because(PoolErrorKind::Missing, what))?;
    let state = &mut found.state;
    take_rebuilt(drives, state);
    drop_unfinished(state);
    for core in state.volumes.values() {
        let stage = core.properties.stage();
        let may_be_old = matches!(stage, Some(Stage::Leaving | Stage::Arrived));
        core.live.withheld.set(may_be_old);
    }
    Ok(found)
}

/// That all zones in use are there.
fn check_zones<W: World>(
    drives: &Drives<W>,
    pool: &PoolIdentity,
    state: &State,
) -> Result<(), PoolError> {
    for (number, zone) in &state.zones {
        let moved = state.moved.get(number);
        let on = drives.take_up_zone(*number, (zone.level, zone.incarnation), moved);
        on.map_err(|what| {
            refuse(
                PoolErrorKind::Corrupt,
                format!("metadata of pool '{}': {what}", pool.name),
            )
        })?;
    }
    Ok(())
}

/// That the drives that are there suffice for all data and for the logs; else what is missing.
fn check_drives<W: World>(drives: &Drives<W>, pool: &PoolIdentity) -> Result<(), String> {
    for group in drives.groups() {
        if !drives.survives_without(&group, &[]) {
            return Err(format!(
                "pool '{}' can't do without these drives (group {}, level {})",
                pool.name,
                group.index,
                group.level()
            ));
        }
    }
    match drives.log_members().is_empty() {
        true => Err(format!(
            "pool '{}' has no drive left that carries its logs",
            pool.name
        )),
        false => Ok(()),
    }
}

/// Tells the drives that are being rebuilt what of them is whole.
fn take_rebuilt<W: World>(drives: &Drives<W>, state: &mut State) {
    // What was whole of a drive that is not being rebuilt any more says nothing.
    let members = || drives.members().into_iter().chain(drives.successors());
    let rebuilding = |uuid: &Uuid| {
        let mut of_it = members().filter(|member| member.uuid == *uuid);
        of_it.any(|member| member.state() == MemberState::Rebuilding)
    };
    state.rebuilt.retain(|uuid, _| rebuilding(uuid));
    for member in members() {
        if let Some(zones) = state.rebuilt.get(&member.uuid) {
            member.rebuilt().borrow_mut().extend(zones);
        }
    }
}

/// Drops volumes whose creation was cut short: their pages are free, as if it had never begun.
fn drop_unfinished(state: &mut State) {
    let unfinished: Vec<_> = state
        .volumes
        .values()
        .filter(|core| !core.ready.get())
        .map(|core| core.id)
        .collect();
    for id in unfinished {
        let dropped = state.apply(&Record::Delete { id });
        assert!(dropped.is_ok(), "{dropped:?}");
    }
}

/// Takes ownership, durably on the labels of all drives in use.
async fn take_over<W: World>(drives: &Drives<W>, laggards: &[Uuid]) -> Result<(), PoolError> {
    drives.check()?;
    // A killed owner leaves writes in drive caches. They can be read, so they may be
    // answered with, so they must not go away any more.
    if !drives.world().planted("caches not flushed at the opening") {
        drives.flush_members().await?;
    }
    // Who lags by one would lag by two if the next writes were cut short, and be
    // taken for stale: first everybody gets the label that the newest has.
    if !drives.world().planted("laggard left behind at the opening") {
        drives.repeat_labels(laggards).await?;
    }
    let own = |label: &mut Label| {
        label.epoch += 1;
        label.clean = false;
    };
    drives.write_labels_alone(own).await?;
    drives.write_labels_alone(|_| ()).await?;
    // A drive that failed just now is out of use before anything else happens.
    drives.settle_labels().await;
    drives.check()
}

/// Where a lane's part of the drives is: the label of the first lane says it.
async fn part_of<W: World>(
    world: &W,
    lane: &LaneSlot,
    drives: &[NamedDrive<W>],
) -> Result<Part, PoolError> {
    if lane.index == 0 {
        return Ok(Part::WHOLE);
    }
    let mut found: Vec<(PoolIdentity, usize)> = Vec::new();
    let reads = drives
        .iter()
        .map(|named| read_label(world, &named.drive, 0));
    for label in join_all(reads).await {
        let Ok(Some(label)) = label else { continue };
        match found.iter_mut().find(|(pool, _)| *pool == label.pool) {
            Some((_, drives)) => *drives += 1,
            None => found.push((label.pool, 1)),
        }
    }
    // One of another pool among them is refused when it is the turn of its label.
    let Some((pool, _)) = found.into_iter().max_by_key(|(_, drives)| *drives) else {
        return Err(refuse(
            PoolErrorKind::Unlabelled,
            "none of the drives has a label: they belong to no pool".to_owned(),
        ));
    };
    check_lanes_are(lane, &pool)?;
    Ok(Part {
        lane: lane.index,
        ..pool.part()
    })
}

fn check_lanes(lane: &LaneSlot, pool: &PoolIdentity) -> Result<(), PoolError> {
    check_lanes_are(lane, pool)?;
    assert_eq!(pool.lane, lane.index, "a label of another lane was read");
    Ok(())
}

fn check_lanes_are(lane: &LaneSlot, pool: &PoolIdentity) -> Result<(), PoolError> {
    let lanes = lane.registry.lanes();
    match pool.lanes == lanes {
        true => Ok(()),
        false => Err(refuse(
            PoolErrorKind::Invalid,
            format!(
                "pool '{}' has {} lanes and is not opened as one of {lanes}",
                pool.name, pool.lanes
            ),
        )),
    }
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
                "drive '{}' belongs to pool '{}' ({}), the others to pool '{}' ({}): leave it out, \
                 or correct its path",
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

/// The members by group and place, the spares, and the drives that are neither. Members
/// that can't be used are failed, and `notes` says why.
fn match_members<W: World>(
    world: &W,
    newest: &Label,
    drives: Vec<Labelled<W>>,
    notes: &mut Notes,
) -> (Places<W>, Vec<Rc<Member<W>>>, Strange<W>) {
    let mut by_uuid: BTreeMap<Uuid, Labelled<W>> = drives
        .into_iter()
        .map(|drive| (drive.label.drive_uuid, drive))
        .collect();
    let mut groups: Places<W> = newest.groups.iter().map(|_| Vec::new()).collect();
    let mut spares = Vec::new();
    for entry in &newest.members {
        let found = by_uuid.remove(&entry.uuid);
        if entry.state == MemberState::Spare {
            spares.extend(match_spare(world, newest, entry, found, notes));
            continue;
        }
        let member = match_member(world, newest, entry, found, notes);
        if let Some(group) = groups.get_mut(usize::from(entry.group)) {
            group.push(Rc::new(member));
        }
    }
    let strange = by_uuid.into_values();
    let strange = strange.map(|drive| (drive.name, drive.drive, drive.label));
    (groups, spares, strange.collect())
}

/// The spare that a label names, if it is there and large enough.
fn match_spare<W: World>(
    world: &W,
    newest: &Label,
    entry: &MemberEntry,
    found: Option<Labelled<W>>,
    notes: &mut Notes,
) -> Option<Rc<Member<W>>> {
    let Some(found) = found else {
        let (name, pool) = (&entry.name, &newest.pool.name);
        let text = format!("spare '{name}' of pool '{pool}' is missing");
        notes.push((PoolErrorKind::Missing, text));
        return None;
    };
    if let Some(fault) = capacity_fault(newest, entry, &found) {
        notes.push(fault);
        return None;
    }
    // A drive is copied to it: it may have missed what was written while it was away.
    let is_stale = found.label.generation + 1 < newest.generation;
    let entry = MemberEntry {
        name: found.name,
        succeeds: entry.succeeds.filter(|_| !is_stale),
        ..entry.clone()
    };
    Some(Rc::new(Member::new(world, found.drive, &entry)))
}

/// The member that a label names: out of use when the drive is not there, or has a fault.
fn match_member<W: World>(
    world: &W,
    newest: &Label,
    entry: &MemberEntry,
    found: Option<Labelled<W>>,
    notes: &mut Notes,
) -> Member<W> {
    let missing = |what: &str| {
        let text = format!(
            "drive '{}' (place {} of group {}, {}) of pool '{}' is {what}",
            entry.name, entry.place, entry.group, entry.uuid, newest.pool.name
        );
        Some((PoolErrorKind::Missing, text))
    };
    let fault = match &found {
        _ if entry.state == MemberState::Failed => {
            missing("out of use since before: replace it, or add a spare")
        }
        None => missing("missing: bring it back"),
        Some(found) => member_fault(newest, entry, found),
    };
    let mut entry = entry.clone();
    if fault.is_some() {
        entry.state = MemberState::Failed;
    }
    notes.extend(fault);
    match found {
        Some(found) => {
            entry.name = found.name;
            Member::new(world, found.drive, &entry)
        }
        None => Member::absent(world, &entry),
    }
}

/// Why a drive that is there can't be used.
fn member_fault<W: World>(
    newest: &Label,
    entry: &MemberEntry,
    found: &Labelled<W>,
) -> Option<(PoolErrorKind, String)> {
    let Labelled { name, label, .. } = found;
    if label.generation + 1 < newest.generation {
        return Some((
            PoolErrorKind::Stale,
            format!(
                "drive '{name}' has an old state of pool '{}' (label generation {}, the others {}): it was away while the pool was in use, or is an old copy; bring the right one back",
                newest.pool.name, label.generation, newest.generation
            ),
        ));
    }
    capacity_fault(newest, entry, found)
}

/// Says of a drive that is smaller than it was that it is.
fn capacity_fault<W: World>(
    newest: &Label,
    entry: &MemberEntry,
    found: &Labelled<W>,
) -> Option<(PoolErrorKind, String)> {
    let capacity = found.drive.geometry().capacity_bytes;
    (capacity < entry.capacity_bytes).then(|| {
        let (capacity, was) = human_pair(capacity, entry.capacity_bytes);
        let text = format!(
            "drive '{}' has {capacity} and had {was} when it was labelled for pool '{}': it was cut short or copied to a smaller one",
            found.name, newest.pool.name
        );
        (PoolErrorKind::TooSmall, text)
    })
}
