//! The roster of all drives that pools have, and of those that failed.
//!
//! The array remembers a failed drive after a spare has its place: where it was, its serial number,
//! and the reason.
//!
//! A pool's labels forget a drive when another has its place. So the array keeps a roster, and
//! compares: whoever was in a place that another has by now has failed, however that came about.
//!
//! Invariants:
//! - A failed drive is told of until another drive takes its name, somebody replaces or removes
//!   it, or its group has left.
//! - The roster is only told of. No pool is opened, and no drive is used, because of it; nor does
//!   a start fail.
//! - Changes happen one at a time, each from what it looks at to the record. The record comes
//!   first: what can't be kept has not changed.

use super::events::events_on;
use super::{Array, ArrayError, ArrayErrorKind, PoolEvent};
use super::{lanes_on, merged};
use crate::calendar::utc;
use crate::own_files::kept_path;
use crate::record::{self, RecordError};
use crate::shard::ShardState;
use crate::wall_clock::now_unix_s;
use engine::drives::SPARE_GROUP;
use engine::pool::{MemberInfo, MemberState, PoolInfo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// The record of the roster, in the data directory.
const ROSTER_FILE: &str = "ashlar-roster.json";

/// What the name of a record ends with that could not be read.
const UNREADABLE: &str = ".unreadable";

/// Kinds of events after which drives may be others, or in other states.
const KINDS: [&str; 6] = [
    "drive_failed",
    "drive_missing",
    "drive_back",
    "spare_taken",
    "rebuild",
    "group",
];

/// What events say of a drive that was found where no drive of the pool is any more: it failed
/// before that.
const LEFTOVER: &str = "is not a member of";

/// A drive that a pool has, or had until it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownDrive {
    /// Name of the pool that has or had it.
    pub pool: String,
    /// Identity of that pool, as text: another pool may get its name.
    pub pool_uuid: String,
    /// Name of the drive in that pool.
    pub name: String,
    /// Its identity, from its label.
    pub uuid: String,
    /// Its group; 65535 of a spare.
    pub group: u16,
    /// Its place in the group.
    pub place: u16,
    /// Where it was opened last, where that is known.
    pub path: Option<PathBuf>,
    /// It is a device.
    #[serde(default)]
    pub is_device: bool,
    /// Its serial number, as it was read while the drive was there.
    pub serial: Option<String>,
    /// Size of the whole drive in bytes.
    pub capacity_bytes: u64,
    /// Set while it is out of use.
    pub failure: Option<Failure>,
    /// Somebody has replaced it: nothing is told of it once another has its place.
    #[serde(default)]
    pub is_replaced: bool,
}

/// Why a drive is out of use, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// For people, to be read after the drive's name.
    pub why: String,
    /// In seconds since 1970.
    pub since_unix_s: u64,
}

impl KnownDrive {
    /// Whether it was a spare.
    pub fn is_spare(&self) -> bool {
        self.group == SPARE_GROUP
    }

    /// The drive that has its place by now.
    pub fn stand_in<'a>(&self, info: &'a PoolInfo) -> Option<&'a MemberInfo> {
        let is_there = |member: &&MemberInfo| {
            (member.group, member.place) == (self.group, self.place)
                && member.uuid.to_string() != self.uuid
        };
        info.members.iter().find(is_there)
    }

    /// A drive that a pool has, as far as that says.
    pub(crate) fn new(info: &PoolInfo, member: &MemberInfo) -> Self {
        KnownDrive {
            pool: info.name.clone(),
            pool_uuid: info.uuid.to_string(),
            name: member.name.clone(),
            uuid: member.uuid.to_string(),
            group: member.group,
            place: member.place,
            path: None,
            is_device: false,
            serial: None,
            capacity_bytes: member.capacity_bytes,
            failure: None,
            is_replaced: false,
        }
    }

    /// The drive, with its place named in another way.
    fn at(self, named: impl Fn(&Path) -> PathBuf) -> Self {
        KnownDrive {
            path: self.path.as_deref().map(named),
            ..self
        }
    }

    /// The drive as its pool has it now.
    fn seen_as(self, member: &MemberInfo, why: impl Fn(&Self) -> Failure) -> Self {
        let failure = (member.state == MemberState::Failed)
            .then(|| self.failure.clone().unwrap_or_else(|| why(&self)));
        KnownDrive {
            name: member.name.clone(),
            group: member.group,
            place: member.place,
            serial: member.serial.clone().or(self.serial),
            failure,
            ..self
        }
    }
}

/// Where the roster is kept.
#[derive(Debug)]
pub struct Roster {
    path: PathBuf,
    known: Arc<Mutex<Vec<KnownDrive>>>,
    /// Held by a change.
    changing: Arc<tokio::sync::Mutex<()>>,
    /// Something has changed that no event tells of.
    is_due: AtomicBool,
}

impl Roster {
    /// The roster in the directory `data`. One that can't be read or understood is set aside, with
    /// an error in the log, and counts as empty.
    pub fn read(data: &Path) -> Self {
        let path = data.join(ROSTER_FILE);
        let known: Option<Vec<KnownDrive>> = record::read(&path).unwrap_or_else(|error| {
            tracing::error!("failed drives of before are forgotten: {error}");
            set_aside(&path);
            None
        });
        let there = |drive: KnownDrive| drive.at(|path| data.join(path));
        let known: Vec<KnownDrive> = known.unwrap_or_default().into_iter().map(there).collect();
        Roster {
            known: Arc::new(Mutex::new(known)),
            path,
            changing: Arc::default(),
            is_due: AtomicBool::new(true),
        }
    }

    /// The drives that are out of use, by identity; why, to be read after the drive's name.
    pub fn failed(&self) -> BTreeMap<String, String> {
        let known = self.known();
        let failed = known.iter().filter_map(|drive| {
            let failure = drive.failure.as_ref()?;
            let why = format!("is out of use since {}", utc(failure.since_unix_s));
            Some((drive.uuid.clone(), why))
        });
        failed.collect()
    }

    /// All drives that are known.
    pub(crate) fn drives(&self) -> Vec<KnownDrive> {
        self.known().clone()
    }

    /// The failed drives of a pool that have no place in it any more.
    pub(super) fn departed_failures(&self, info: &PoolInfo) -> Vec<KnownDrive> {
        let known = self.known().clone();
        let mut followed = followed(&known, info, untold);
        let has_no_place = |drive: &KnownDrive| !members(info).any(|one| is_it(drive, one));
        followed.retain(|drive| drive.failure.is_some() && has_no_place(drive));
        followed
    }

    fn known(&self) -> MutexGuard<'_, Vec<KnownDrive>> {
        lock(&self.known)
    }

    /// Waits until no other change is under way.
    async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.changing).lock_owned().await
    }

    /// Has the next look at events compare, too.
    pub(super) fn look_again(&self) {
        self.is_due.store(true, Ordering::Relaxed);
    }

    /// Whether to compare after these events.
    pub(super) fn is_due(&self, events: &[PoolEvent]) -> bool {
        let tells = |event: &PoolEvent| KINDS.contains(&event.kind.as_str());
        self.is_due.swap(false, Ordering::Relaxed) || events.iter().any(tells)
    }

    /// Changes what is known, durably. The turn lasts until the record is written, also when
    /// nobody waits for that any more.
    async fn keep(
        &self,
        turn: OwnedMutexGuard<()>,
        change: impl FnOnce(&mut Vec<KnownDrive>),
    ) -> Result<(), ArrayError> {
        let before = self.known().clone();
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return Ok(());
        }
        let (path, known) = (self.path.clone(), Arc::clone(&self.known));
        let writing = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let data = path.parent().unwrap_or(&path);
            let kept = |drive: &KnownDrive| drive.clone().at(|path| kept_path(data, path));
            let kept: Vec<KnownDrive> = after.iter().map(kept).collect();
            record::write(&path, &kept)?;
            *lock(&known) = after;
            Ok::<(), RecordError>(())
        });
        let failed = |why: String| ArrayError::new(ArrayErrorKind::Internal, why);
        match writing.await {
            Ok(written) => written.map_err(|error| failed(error.to_string())),
            Err(error) => Err(failed(format!("writing the roster ended early: {error}"))),
        }
    }
}

// Whoever panicked with this lock held has left a whole list behind.
fn lock(known: &Mutex<Vec<KnownDrive>>) -> MutexGuard<'_, Vec<KnownDrive>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a record that can't be read be out of the way of the next one.
fn set_aside(path: &Path) {
    let mut aside = path.as_os_str().to_owned();
    aside.push(UNREADABLE);
    match std::fs::rename(path, &aside) {
        Ok(()) => tracing::error!("{} is kept as {}", path.display(), aside.display()),
        Err(error) => tracing::error!("{}: can't set it aside: {error}", path.display()),
    }
}

impl Array {
    /// [`Roster::failed`].
    pub(crate) fn failed_by_uuid(&self) -> BTreeMap<String, String> {
        self.roster.failed()
    }

    /// As the roster has them: [`Roster::departed_failures`].
    pub fn departed_failures(&self, info: &PoolInfo) -> Vec<KnownDrive> {
        self.roster.departed_failures(info)
    }

    /// What is known of a drive that a pool has.
    pub fn known_drive(&self, info: &PoolInfo, member: &MemberInfo) -> KnownDrive {
        let known = self.roster.known();
        let before = known.iter().find(|drive| is_it(drive, member)).cloned();
        let drive = before.unwrap_or_else(|| KnownDrive::new(info, member));
        drive.seen_as(member, untold)
    }

    /// The failed drive of this name that has no place in its pool any more, and the pool.
    pub(super) async fn departed_failure(
        &self,
        name: &str,
    ) -> Result<Option<(PoolInfo, KnownDrive)>, ArrayError> {
        for (_, info) in self.pools().await? {
            let mut departed = self.departed_failures(&info).into_iter();
            if let Some(drive) = departed.find(|drive| drive.name == name) {
                return Ok(Some((info, drive)));
            }
        }
        Ok(None)
    }

    /// Notes which drives pools have by now, and which they have lost. Of a pool with a lane on a
    /// shard that does not answer, the roster keeps what it knows, until it does.
    ///
    /// # Errors
    /// A shard has stopped, or the record can't be written.
    async fn note_drives(&self) -> Result<(), ArrayError> {
        let turn = self.roster.turn().await;
        let (pools, events) = self.pools_that_answer().await?;
        let keep = self.roster.keep(turn, |known| {
            for (_, info) in &pools {
                let why = |drive: &KnownDrive| told(drive, &events);
                let mut now = followed(known, info, why);
                for drive in &mut now {
                    if let Some(place) = self.places().find(&drive.name) {
                        drive.path = Some(place.path);
                        drive.is_device = place.is_device;
                    }
                }
                known.retain(|drive| drive.pool != info.name);
                known.extend(now);
            }
            // A pool that was destroyed has no drives.
            let settings = self.settings();
            known.retain(|drive| {
                settings.pool(&drive.pool).is_some() || self.is_unlisted(&drive.pool)
            });
        });
        keep.await
    }

    /// The pools of which all shards answer, and the events of those shards, oldest first.
    async fn pools_that_answer(
        &self,
    ) -> Result<(Vec<(usize, PoolInfo)>, Vec<PoolEvent>), ArrayError> {
        let visit =
            |_| |state: Rc<ShardState>| async move { (lanes_on(&state), events_on(&state)) };
        let (mut lanes, mut since, mut silent) = (Vec::new(), Vec::new(), Vec::new());
        for (shard, answer) in self.ask_all(false, visit).await? {
            match answer {
                Some((of_shard, events)) => {
                    let here = |(lane, info)| (lane, shard, info);
                    lanes.extend(of_shard.into_iter().map(here));
                    since.extend(events);
                }
                None => silent.push(shard),
            }
        }
        if !silent.is_empty() {
            self.roster.look_again();
        }
        let mut pools = merged(lanes);
        pools.retain(|(_, info)| self.silent_homes(&info.name, &silent).is_empty());
        Ok((pools, self.with_earlier(since)))
    }

    /// Notes the same; where that fails, the log says so.
    pub(crate) async fn note_drives_and_warn(&self) {
        if let Err(error) = self.note_drives().await {
            tracing::warn!("the drives of the pools are not on record: {error}");
            // A start asks the record which drives are out of use.
            self.roster.look_again();
        }
    }

    /// Notes that somebody has replaced or let go a drive: it is forgotten once it has no place.
    pub(super) async fn drive_is_replaced(&self, uuid: &str) {
        let turn = self.roster.turn().await;
        let marked = self.roster.keep(turn, |known| {
            for drive in known.iter_mut().filter(|drive| drive.uuid == uuid) {
                drive.is_replaced = true;
            }
        });
        if let Err(error) = marked.await {
            tracing::warn!("that a drive is replaced is not on record: {error}");
        }
        self.note_drives_and_warn().await;
    }

    /// Forgets a failed drive that another stands in for.
    ///
    /// # Errors
    /// There is none of that name, it is in use, nothing stands in for it yet, or it can't be kept.
    pub async fn remove_drive(self: &Arc<Self>, name: &str) -> Result<(), ArrayError> {
        let drive = self.removable(name).await?;
        self.settle_settings().await?;
        let forgotten = |known: &mut Vec<KnownDrive>| {
            known.retain(|known| known.uuid != drive.uuid);
        };
        let turn = self.roster.turn().await;
        self.roster.keep(turn, forgotten).await
    }

    /// The failed drive of this name that can be forgotten.
    ///
    /// # Errors
    /// As [`Array::remove_drive`].
    pub async fn removable(&self, name: &str) -> Result<KnownDrive, ArrayError> {
        if let Some((_, drive)) = self.departed_failure(name).await? {
            return Ok(drive);
        }
        let (info, member) = self.drive(name).await?;
        let why = match member.state {
            MemberState::Failed => format!(
                "drive {name} has failed, and no other stands in for it: `ashlar drive replace \
                 {name}`, or add a spare to pool {} first",
                info.name
            ),
            MemberState::Spare => format!(
                "drive {name} is a spare of pool {}: `ashlar drive fail {name}` lets it go",
                info.name
            ),
            _ => format!(
                "drive {name} is in use in pool {}: only a failed drive can be removed",
                info.name
            ),
        };
        Err(ArrayError::new(ArrayErrorKind::Busy, why))
    }

    /// That no pool but `pool` had a drive of this name which has failed: it would be listed
    /// twice.
    pub(super) async fn check_not_failed_elsewhere(
        &self,
        name: &str,
        pool: &str,
    ) -> Result<(), ArrayError> {
        match self.departed_failure(name).await? {
            Some((info, _)) if info.name != pool => {
                let other = info.name;
                let context = format!(
                    "a drive {name} of pool {other} has failed: choose another name, or `ashlar \
                     drive remove {name}` first"
                );
                Err(ArrayError::new(ArrayErrorKind::Exists, context))
            }
            _ => Ok(()),
        }
    }
}

fn members(info: &PoolInfo) -> impl Iterator<Item = &MemberInfo> {
    info.members.iter().chain(&info.spares)
}

fn is_it(drive: &KnownDrive, member: &MemberInfo) -> bool {
    drive.uuid == member.uuid.to_string()
}

/// The drives of a pool: those that it has now, and of those `known` those that have failed.
fn followed(
    known: &[KnownDrive],
    info: &PoolInfo,
    why: impl Fn(&KnownDrive) -> Failure,
) -> Vec<KnownDrive> {
    let uuid = info.uuid.to_string();
    let of_pool = |drive: &&KnownDrive| drive.pool == info.name && drive.pool_uuid == uuid;
    let known: Vec<&KnownDrive> = known.iter().filter(of_pool).collect();
    let now = members(info).map(|member| {
        let before = known.iter().find(|drive| is_it(drive, member));
        let drive = before.map_or_else(|| KnownDrive::new(info, member), |drive| (*drive).clone());
        drive.seen_as(member, &why)
    });
    let mut all: Vec<KnownDrive> = now.collect();
    for drive in &known {
        let is_there =
            members(info).any(|member| is_it(drive, member) || member.name == drive.name);
        // A group that has left has no places.
        let is_missed = drive.is_spare() || drive.stand_in(info).is_some();
        if is_there || drive.is_replaced || !is_missed {
            continue;
        }
        let mut drive = (*drive).clone();
        drive.failure = drive.failure.take().or_else(|| Some(why(&drive)));
        all.push(drive);
    }
    all
}

/// Why a drive is out of use, as the newest event says that is about it.
fn told(drive: &KnownDrive, events: &[PoolEvent]) -> Failure {
    let quoted = format!("'{}'", drive.name);
    let mut newest = events.iter().rev();
    let found = newest.find_map(|event| {
        let is_failure = matches!(event.kind.as_str(), "drive_failed" | "drive_missing");
        let (before, after) = event.text.split_once(&quoted)?;
        // The first name in a text is that of the drive which it is about.
        let is_about = event.pool == drive.pool && !before.contains('\'');
        let is_reason = is_failure && is_about && !after.contains(LEFTOVER);
        is_reason.then(|| Failure {
            why: after.trim().to_owned(),
            since_unix_s: event.at_unix_us / 1_000_000,
        })
    });
    found.unwrap_or_else(|| untold(drive))
}

/// What there is to say before an event was read.
fn untold(_: &KnownDrive) -> Failure {
    Failure {
        why: "is out of use".to_owned(),
        since_unix_s: now_unix_s(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, text: &str, at_s: u64) -> PoolEvent {
        PoolEvent {
            pool: "p0".to_owned(),
            pool_uuid: String::new(),
            lane: 0,
            sequence: 1,
            at_unix_us: at_s * 1_000_000,
            kind: kind.to_owned(),
            text: text.to_owned(),
            lost_blocks: None,
            before_start: false,
        }
    }

    #[test]
    fn the_newest_event_about_a_drive_says_why_it_failed() {
        let drive = KnownDrive {
            pool: "p0".to_owned(),
            pool_uuid: String::new(),
            name: "d1".to_owned(),
            uuid: String::new(),
            group: 0,
            place: 1,
            path: None,
            is_device: false,
            serial: None,
            capacity_bytes: 0,
            failure: None,
            is_replaced: false,
        };
        let mut events = vec![
            event("drive_failed", "drive 'd1' is out of use: first", 1),
            event("drive_failed", "lane 1: drive 'd1' is out of use: then", 2),
            event("drive_failed", "drive 'd10' is out of use: another", 3),
            event("drive_missing", "drive 'd2' is not 'd1'", 4),
            event(
                "drive_missing",
                "drive 'd1' is not a member of pool 'p0'",
                5,
            ),
            event("spare_taken", "drive 's0' stands in for 'd1'", 5),
        ];
        let of_another_pool = PoolEvent {
            pool: "p1".to_owned(),
            ..event("drive_failed", "drive 'd1' is out of use: there", 6)
        };
        events.push(of_another_pool);
        let found = told(&drive, &events);
        assert_eq!(found.why, "is out of use: then");
        assert_eq!(found.since_unix_s, 2);
        assert_eq!(told(&drive, &[]).why, "is out of use");
    }
}
