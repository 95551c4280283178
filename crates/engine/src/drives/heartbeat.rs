//! The owner's heartbeat: two hosts that see the same drives do not both open a pool.
//!
//! Layout: `docs/internals/format.md`, "Heartbeat". Locks keep processes of one host apart; hosts
//! that share drives see nothing of each other but what is on these.
//!
//! Invariants:
//! - An opening that finds another host's heartbeat waits for three periods, and is
//!   refused when it still beats.
//! - An opening beats before it writes anything else, and until the pool is closed. Where
//!   another host had the pool last, it waits then until that host, if it opens the pool at
//!   the same time, has seen the beat. So at most one of the two goes on.
//! - An owner that finds another's with an epoch that is not below its own has been
//!   replaced, and stops.
//! - A beat is best effort: no drive goes out of use for it, and none is waited for by the
//!   others.

use super::Drives;
use super::{PoolError, PoolErrorKind};
use crate::codec::{Reader, Writer};
use crate::drive::Drive;
use crate::drives::Limits;
use crate::drives::Member;
use crate::drives::NamedDrive;
use crate::drives::doubt::{read_again, read_drive_again};
use crate::drives::hung::in_time;
use crate::label::NAME_BYTES_MAX;
use crate::lane::Part;
use crate::world::{Host, World};
use base::{BLOCK_BYTES, DriveOffset, Uuid, crc32c};
use futures_channel::oneshot;
use futures_util::future::join_all;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::time::Duration;

/// How often the owner beats.
pub const PERIOD: Duration = Duration::from_secs(2);

/// How many of them an opening waits for.
const PERIODS: u32 = 3;

/// How long an opening waits that may not be alone: an owner beats meanwhile, and sees that
/// it has been replaced.
const ALONE: Duration = Duration::from_secs(3);

/// Where it lies in each lane's part of a drive: between the label slots.
pub(super) const PLACE: DriveOffset = DriveOffset(16 << 10);

const MAGIC: &[u8; 8] = b"ASHLARHB";
const CRC_OFFSET: usize = 8;

/// What the owner of a pool says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    pub pool: Uuid,
    pub epoch: u64,
    /// Drawn at each opening.
    pub owner: Uuid,
    pub host: Host,
    /// One more with each.
    pub count: u64,
    /// The owner has closed the pool.
    pub closed: bool,
}

impl Beat {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.bytes.extend_from_slice(MAGIC);
        w.u32(0);
        w.u32(u32::from(self.closed));
        w.uuid(self.pool);
        w.u64(self.epoch);
        w.uuid(self.owner);
        w.uuid(self.host.id);
        w.uuid(self.host.boot);
        w.u64(self.count);
        w.name(&self.host.name, NAME_BYTES_MAX);
        w.pad_to(BLOCK_BYTES);
        let crc = crc32c(&w.bytes);
        w.bytes[CRC_OFFSET..CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
        w.bytes
    }

    pub(super) fn decode(block: &[u8]) -> Option<Beat> {
        let mut r = Reader::new(block);
        if block.len() != BLOCK_BYTES || r.take(8)? != MAGIC {
            return None;
        }
        let crc = r.u32()?;
        let (head, tail) = block.split_at(CRC_OFFSET);
        if base::checksum::crc32c_of([head, &[0; 4], tail.get(4..)?]) != crc {
            return None;
        }
        let closed = r.u32()? != 0;
        Some(Beat {
            pool: r.uuid()?,
            epoch: r.u64()?,
            owner: r.uuid()?,
            host: Host {
                id: r.uuid()?,
                boot: r.uuid()?,
                name: String::new(),
            },
            count: r.u64()?,
            closed,
        })
        .and_then(|beat| {
            let name = r.name(NAME_BYTES_MAX)?;
            let host = Host { name, ..beat.host };
            Some(Beat { host, ..beat })
        })
    }
}

/// The heartbeat on a drive.
async fn read<W: World>(world: &W, drive: &impl Drive, part: Part) -> Option<Beat> {
    let at = part.place(PLACE, BLOCK_BYTES as u64);
    if at.0 + BLOCK_BYTES as u64 > drive.geometry().capacity_bytes {
        return None;
    }
    let reading = read_drive_again(world, drive, at, BLOCK_BYTES);
    // One that does not answer says nothing; its label is waited for next.
    let buf = in_time(world, Limits::default().hung, reading)
        .await?
        .ok()?;
    Beat::decode(buf.bytes()?)
}

/// The heartbeats of other hosts that have not closed their pool: of each pool those of
/// the last epoch.
pub(crate) async fn of_others<W: World>(
    world: &W,
    drives: impl Iterator<Item = &W::Drive>,
    part: Part,
) -> Vec<Beat> {
    others(world, newest(world, drives, part).await)
}

/// Those of other hosts, but for owners that have closed the pool.
fn others<W: World>(world: &W, mut beats: Vec<Beat>) -> Vec<Beat> {
    // Of one drive only, where a drive missed it.
    let closed: Vec<Uuid> = beats.iter().filter(|b| b.closed).map(|b| b.owner).collect();
    let own = world.host();
    beats.retain(|beat| !closed.contains(&beat.owner) && !beat.host.is_same(&own));
    beats
}

/// Of each pool the heartbeats of the last epoch.
async fn newest<W: World>(
    world: &W,
    drives: impl Iterator<Item = &W::Drive>,
    part: Part,
) -> Vec<Beat> {
    let reads = drives.map(|drive| read(world, drive, part));
    let mut found: Vec<Beat> = join_all(reads).await.into_iter().flatten().collect();
    let mut last: BTreeMap<Uuid, u64> = BTreeMap::new();
    for beat in &found {
        let epoch = last.entry(beat.pool).or_default();
        *epoch = beat.epoch.max(*epoch);
    }
    found.retain(|beat| last[&beat.pool] == beat.epoch);
    found
}

/// What the drives say of openings before this one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Past {
    /// The last epoch that a heartbeat has.
    epoch: u64,
    /// Another host had the pool last: it may open it now, too.
    is_others: bool,
}

/// Ends when no other host has the pool open; one that does is seen to beat.
///
/// # Errors
/// `InUse`, and who has it.
pub(crate) async fn wait_for_others<W: World>(
    world: &W,
    drives: &[NamedDrive<W>],
    part: Part,
) -> Result<Past, PoolError> {
    if world.buffers().is_length_only() {
        return Ok(Past::default());
    }
    let all = || drives.iter().map(|named| &named.drive);
    let own = world.host();
    let last = newest(world, all(), part).await;
    let past = Past {
        epoch: last.iter().map(|beat| beat.epoch).max().unwrap_or(0),
        is_others: last.iter().any(|beat| !beat.host.is_same(&own)),
    };
    let before = others(world, last);
    if before.is_empty() {
        return Ok(past);
    }
    world.sleep(PERIOD * PERIODS).await;
    let after = of_others(world, all(), part).await;
    match after.into_iter().find(|beat| !before.contains(beat)) {
        None => Ok(past),
        Some(beat) => Err(PoolError::new(
            PoolErrorKind::InUse,
            format!(
                "the pool is in use on host {}: stop it there, or take its drives away from there",
                beat.host
            ),
        )),
    }
}

/// Beats from before the first write of an opening until the pool is closed.
pub(crate) struct Heart {
    owner: Uuid,
    /// That of this opening, above all others on the drives; zero before the first beat.
    epoch: Cell<u64>,
    count: Cell<u64>,
    closed: Cell<bool>,
    /// The opening has failed: nothing more is said.
    ended: Cell<bool>,
    /// Who beats instead.
    replaced_by: RefCell<Option<Host>>,
    /// Drives whose last beat has not ended.
    late: RefCell<BTreeSet<Uuid>>,
}

impl Heart {
    /// That of an opening.
    pub fn new<W: World>(world: &W, pool: Uuid) -> Self {
        Heart {
            owner: world.prng(&format!("owner of {pool}")).uuid(),
            epoch: Cell::new(0),
            count: Cell::new(0),
            closed: Cell::new(false),
            ended: Cell::new(false),
            replaced_by: RefCell::default(),
            late: RefCell::default(),
        }
    }

    /// Whether the pool has been closed to its end, or its opening has failed: others may have it.
    pub fn has_ended(&self) -> bool {
        self.closed.get() || self.ended.get()
    }
}

/// Says on the drives that this opening takes the pool over, and goes on to say so. Where
/// another host may do just that, it makes sure that it is alone.
///
/// # Errors
/// `InUse` when one does.
pub(crate) async fn claim<W: World>(drives: &Rc<Drives<W>>, past: Past) -> Result<(), PoolError> {
    let world = drives.world();
    if world.buffers().is_length_only() {
        return Ok(());
    }
    // An opening that came to nothing may have left a heartbeat of a later epoch than the
    // labels have.
    drives.heart.epoch.set(drives.epoch().max(past.epoch) + 1);
    beat_now(drives).await;
    world.spawn(beat_on(world.clone(), Rc::downgrade(drives)));
    if past.is_others {
        world.sleep(ALONE).await;
        beat_now(drives).await;
    }
    match drives.heart.replaced_by.borrow().as_ref() {
        None => Ok(()),
        Some(host) => Err(PoolError::new(
            PoolErrorKind::InUse,
            format!(
                "the pool is being opened on host {host} as well: one of the two has to have it"
            ),
        )),
    }
}

/// Beats for a pool that has just been made: nobody else can have it.
pub(crate) fn begin<W: World>(drives: &Rc<Drives<W>>) {
    let world = drives.world();
    if drives.heart.epoch.get() == 0 && !world.buffers().is_length_only() {
        drives.heart.epoch.set(drives.epoch());
        world.spawn(beat_on(world.clone(), Rc::downgrade(drives)));
    }
}

/// Beats until the pool ends, also while it is being closed: that may take minutes.
async fn beat_on<W: World>(world: W, drives: Weak<Drives<W>>) {
    loop {
        {
            let Some(drives) = drives.upgrade() else {
                return;
            };
            if drives.check_failure().is_err() || drives.heart.has_ended() {
                return;
            }
            drop(beats(&drives));
        }
        world.sleep(PERIOD).await;
    }
}

/// Beats on all drives that are not late with the last one, and waits for none that hangs.
async fn beat_now<W: World>(drives: &Rc<Drives<W>>) {
    let (world, patience) = (drives.world(), Limits::default().hung);
    let beats = beats(drives).into_iter();
    let beats = beats.map(|ended| in_time(world, patience, ended));
    join_all(beats.collect::<Vec<_>>()).await;
}

/// A beat on each drive that is not late with the last one; each goes on by itself.
fn beats<W: World>(drives: &Rc<Drives<W>>) -> Vec<oneshot::Receiver<()>> {
    let heart = &drives.heart;
    heart.count.set(heart.count.get() + 1);
    let mut members = drives.metadata_members();
    members.retain(|member| heart.late.borrow_mut().insert(member.uuid));
    let world = drives.world();
    let begun = members.into_iter().map(|member| {
        let (ended, end) = oneshot::channel();
        let beat = beat_once(world.clone(), Rc::downgrade(drives), member);
        world.spawn(async move {
            beat.await;
            // Nobody may wait for it.
            let _ = ended.send(());
        });
        end
    });
    begun.collect()
}

/// Looks who beat last on a drive, and beats, unless that was another who came later.
async fn beat_once<W: World>(world: W, drives: Weak<Drives<W>>, member: Rc<Member<W>>) {
    let found = found_on(&world, &member).await;
    // Nothing is held while the drive takes its time: a pool may end meanwhile.
    let own = drives.upgrade().and_then(|drives| drives.answer(found));
    if let Some(own) = own {
        let block = world.buffers().copy_of(&own.encode()).freeze();
        // What fails here is counted as an error of the drive, and is no more than that.
        let _ = member.write_durably(PLACE, block).await;
    }
    if let Some(drives) = drives.upgrade() {
        drives.heart.late.borrow_mut().remove(&member.uuid);
    }
}

/// The heartbeat on a drive in use. One that was cut off for a moment is asked again: another
/// host may have beaten there. One that stays unreadable is written over.
async fn found_on<W: World>(world: &W, member: &Member<W>) -> Option<Beat> {
    let read = async || {
        let buf = world.buffers().bytes(BLOCK_BYTES);
        member.read_uncounted(PLACE, buf).await
    };
    Beat::decode(read_again(world, read).await.ok()?.bytes()?)
}

impl<W: World> Drives<W> {
    /// What to write where that was found; nothing by an owner that has been replaced.
    fn answer(&self, found: Option<Beat>) -> Option<Beat> {
        let own = Beat {
            pool: self.uuid(),
            epoch: self.heart.epoch.get(),
            owner: self.heart.owner,
            host: self.world().host(),
            count: self.heart.count.get(),
            closed: self.heart.closed.get(),
        };
        let is_other = |found: &Beat| {
            found.pool == own.pool && found.owner != own.owner && found.epoch >= own.epoch
        };
        let Some(other) = found.filter(is_other) else {
            return Some(own);
        };
        self.stop(format!("host {} has taken it over", other.host));
        self.heart.replaced_by.replace(Some(other.host));
        None
    }

    /// Ends an opening that failed. Labels that are being written end first, and no others begin: the
    /// next opening may read them at once, and would find generations that lie too far apart.
    pub(crate) async fn end_opening(&self, why: &str) {
        if self.world().planted("failed opening goes on with labels") {
            return;
        }
        self.heart.ended.set(true);
        self.labels_ended().await;
        self.stop(why.to_owned());
    }

    /// The last beat, of an owner that has closed the pool: the next need not wait.
    pub(crate) async fn last_beat(self: &Rc<Self>) {
        if self.world().buffers().is_length_only() {
            return;
        }
        self.heart.closed.set(true);
        beat_now(self).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_comes_back_and_a_changed_one_is_none() {
        let beat = Beat {
            pool: Uuid::from_u128(1),
            epoch: 2,
            owner: Uuid::from_u128(3),
            host: Host {
                id: Uuid::from_u128(4),
                boot: Uuid::from_u128(5),
                name: "alpha".to_owned(),
            },
            count: 6,
            closed: true,
        };
        let bytes = beat.encode();
        assert_eq!(bytes.len(), BLOCK_BYTES);
        assert_eq!(Beat::decode(&bytes), Some(beat));
        for at in 0..200 {
            let mut torn = bytes.clone();
            torn[at] ^= 1;
            assert_eq!(Beat::decode(&torn), None);
        }
    }
}
