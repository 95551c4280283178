//! Keeps the paths of all drives, and takes new drives in.
//!
//! Invariants:
//! - A drive that the API adds is on record before it is part of a pool, so that it is
//!   found at the next start; one that is part of no pool any more is off the record, and the
//!   settings do not name it.
//! - An open pool says itself which drives it has. Records count for pools that are not open.
//! - What holds something that nobody here knows of is never taken for a drive.
//! - When new drives are not taken, nothing is left of them.

use super::departures::names;
use super::drive_files::{make_files, remove_files};
use super::{Array, ArrayError, ArrayErrorKind};
use crate::blank;
use crate::drive_files::{Patience, is_open_here};
use crate::own_files::{foreign, kept_path};
use crate::record::{self, RecordError};
use crate::shard::ShardState;
use engine::lane::steps::{self, Halted};
use engine::pool::maintenance::candidates::Candidate;
use engine::pool::{Lane, Level, MemberInfo, MemberState, NamedDrive, PoolInfo};
use engine::{Drive, PoolError, PoolErrorKind};
use serde::{Deserialize, Serialize};
use site::{DriveSource, Site};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world_real::{OpenDrive, OpenError, OpenErrorKind, RealDrive, RealWorld};

/// Where a drive is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedDrive {
    /// The pool it was added to.
    pub pool: String,
    /// Name that it has in its pool.
    pub name: String,
    /// Its file or device.
    pub path: PathBuf,
    /// It is a device: never made.
    #[serde(default)]
    pub is_device: bool,
}

/// A drive to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDrive {
    /// The name that it is to have.
    pub name: String,
    /// A file relative to the data directory, or an absolute path.
    pub path: PathBuf,
    /// It is a device: never made.
    pub is_device: bool,
    /// Size to make the file with when it is not there; as large as the pool's
    /// largest drive unless said otherwise.
    pub size_bytes: Option<u64>,
}

/// Where the drives of an array are.
#[derive(Debug)]
pub struct DrivePlaces {
    data: PathBuf,
    settled: Mutex<Settled>,
    added: Mutex<Vec<AddedDrive>>,
}

/// What the settings say of drives.
#[derive(Debug)]
struct Settled {
    /// New drives come from these directories only.
    allowed: Vec<PathBuf>,
    drives: Vec<AddedDrive>,
}

impl Settled {
    /// A file's path is relative to the directory `data`.
    fn of(settings: &Site, data: &Path) -> Self {
        let place = |pool: &str, drive: &site::Drive| AddedDrive {
            pool: pool.to_owned(),
            name: drive.name.clone(),
            path: data.join(drive.source.path()),
            is_device: matches!(drive.source, DriveSource::Device { .. }),
        };
        let of_pool = |pool: &site::Pool| {
            let drives = pool.drives().filter_map(|name| settings.drive(name));
            drives
                .map(|drive| place(&pool.name, drive))
                .collect::<Vec<_>>()
        };
        let drives: Vec<AddedDrive> = settings.pools.iter().flat_map(of_pool).collect();
        let mut allowed = settings.api.drive_directories.clone();
        let parents = drives.iter().filter_map(|drive| drive.path.parent());
        allowed.extend(parents.map(Path::to_owned));
        allowed.push(data.to_owned());
        allowed.sort();
        allowed.dedup();
        Settled { allowed, drives }
    }
}

/// The record of the drives that the API added, in the data directory.
pub(crate) const DRIVES_FILE: &str = "ashlar-drives.json";

/// The drives that the API added before, as kept in the directory `data`.
///
/// # Errors
/// The record is there and can't be read or understood.
pub fn added(data: &Path) -> Result<Vec<AddedDrive>, RecordError> {
    let kept: Option<Vec<AddedDrive>> = record::read(&data.join(DRIVES_FILE))?;
    let there = |drive: AddedDrive| AddedDrive {
        path: data.join(&drive.path),
        ..drive
    };
    Ok(kept.unwrap_or_default().into_iter().map(there).collect())
}

/// Keeps which drives the API has added, in the directory `data`.
///
/// # Errors
/// The record can't be written.
pub(crate) fn keep_added(data: &Path, drives: &[AddedDrive]) -> Result<(), RecordError> {
    let kept = |drive: &AddedDrive| AddedDrive {
        path: kept_path(data, &drive.path),
        ..drive.clone()
    };
    let kept: Vec<AddedDrive> = drives.iter().map(kept).collect();
    record::write(&data.join(DRIVES_FILE), &kept)
}

impl DrivePlaces {
    /// Those of the settings, and those that were `added`; files and records are in `data`.
    ///
    /// New drives come from the directories of the settings' drives, from `data`, and from the
    /// directories that the settings allow.
    pub fn new(data: PathBuf, settings: &Site, added: Vec<AddedDrive>) -> Self {
        DrivePlaces {
            settled: Mutex::new(Settled::of(settings, &data)),
            data,
            added: Mutex::new(added),
        }
    }

    /// Has other settings count.
    pub(super) fn follow(&self, settings: &Site) {
        *self.settled() = Settled::of(settings, &self.data);
    }

    /// Whether a new drive may be at `path`: the directory that it really is in is allowed. A
    /// link at `path` itself is followed, as those of `/dev/disk` are.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn check_allowed(&self, path: &Path) -> Result<(), ArrayError> {
        let parent = path.parent().unwrap_or(path);
        let parent = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
        let allows = |directory: &PathBuf| match directory.canonicalize() {
            Ok(real) => parent.starts_with(real),
            Err(_) => false,
        };
        let settled = self.settled();
        if settled.allowed.iter().any(allows) {
            return Ok(());
        }
        let allowed = settled.allowed.iter().map(|at| at.display().to_string());
        let context = format!(
            "{}: drives may be added from {} only; `ashlar settings set api.drive_directories=DIR` \
             allows others",
            path.display(),
            allowed.collect::<Vec<_>>().join(", ")
        );
        Err(ArrayError::new(ArrayErrorKind::Invalid, context))
    }

    // As below.
    fn settled(&self) -> MutexGuard<'_, Settled> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The drives that the settings name.
    pub(super) fn named(&self) -> Vec<AddedDrive> {
        self.settled().drives.clone()
    }

    // Whoever panicked with this lock held has left a whole list behind.
    pub(super) fn added(&self) -> MutexGuard<'_, Vec<AddedDrive>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the drive called `name` is.
    pub(super) fn find(&self, name: &str) -> Option<AddedDrive> {
        self.find_where(|drive| drive.name == name)
    }

    /// Where the drive called `name` of this pool is.
    pub(super) fn find_of(&self, pool: &str, name: &str) -> Option<AddedDrive> {
        self.find_where(|drive| drive.name == name && drive.pool == pool)
    }

    /// How records and settings name the file at `path`.
    pub(super) fn kept_path(&self, path: &Path) -> PathBuf {
        kept_path(&self.data, path)
    }

    /// Where a drive of the settings is.
    pub(crate) fn path_of(&self, drive: &site::Drive) -> PathBuf {
        self.data.join(drive.source.path())
    }

    /// The drives that records say are at `path`.
    fn recorded_at(&self, path: &Path) -> Vec<AddedDrive> {
        let added = self.added().clone();
        let settled = self.named();
        let all = added.into_iter().chain(settled);
        all.filter(|drive| drive.path == path).collect()
    }

    /// Whether a drive that an open pool has is at `path`, as far as records say.
    fn has_at(&self, info: &PoolInfo, path: &Path) -> bool {
        let is_at = |name: &String| {
            let place = self.find_of(&info.name, name);
            place.is_some_and(|place| place.path == path)
        };
        names(info).any(is_at)
    }

    /// Where the drives of a pool are, or have been.
    pub(crate) fn of_pool(&self, pool: &str) -> Vec<PathBuf> {
        let added = self.added().clone();
        let settled = self.named();
        let all = added.into_iter().chain(settled);
        let mut paths: Vec<PathBuf> = all
            .filter(|drive| drive.pool == pool)
            .map(|drive| drive.path)
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }

    fn find_where(&self, is_it: impl Fn(&AddedDrive) -> bool) -> Option<AddedDrive> {
        let added = self.added().iter().find(|drive| is_it(drive)).cloned();
        let settled = || {
            self.settled()
                .drives
                .iter()
                .find(|drive| is_it(drive))
                .cloned()
        };
        added.or_else(settled)
    }

    /// Whether the settings say that the drive called `name` of this pool is at `path`.
    fn is_of_settings(&self, path: &Path, pool: &str, name: &str) -> bool {
        let is_it = |known: &AddedDrive| known.path == path && known.name == name;
        let settled = self.settled();
        let mut drives = settled.drives.iter();
        drives.any(|known| known.pool == pool && is_it(known))
    }

    /// Forgets where the drive called `name` of this pool was added: the settings say it.
    ///
    /// # Errors
    /// The record can't be written.
    pub(crate) async fn forget_added(&self, pool: &str, name: &str) -> Result<(), ArrayError> {
        let mut kept = self.added().clone();
        let all = kept.len();
        kept.retain(|drive| drive.pool != pool || drive.name != name);
        match kept.len() < all {
            true => self.keep(kept).await,
            false => Ok(()),
        }
    }

    pub(super) async fn keep(&self, drives: Vec<AddedDrive>) -> Result<(), ArrayError> {
        let (data, kept) = (self.data.clone(), drives.clone());
        let written = tokio::task::spawn_blocking(move || keep_added(&data, &kept)).await;
        let failed = |context: String| ArrayError::new(ArrayErrorKind::Internal, context);
        match written {
            Ok(Ok(())) => *self.added() = drives,
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Err(error) => return Err(failed(format!("writing the drives ended early: {error}"))),
        }
        Ok(())
    }
}

/// A drive to be opened on the shard of its pool.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    name: String,
    path: PathBuf,
    /// What is on it may go: nobody knew of it before, and it has to be blank, unless
    /// this says that it was of the pool.
    is_known: bool,
    /// A drive of the pool that is out of use, and may have this place open still.
    holder: Option<String>,
    /// The drive that is in use there, for messages.
    user: Option<String>,
    /// Bytes of the file that is to be made there.
    planned_bytes: Option<u64>,
    /// Bytes of the drive that is replaced and has this place still: it may be the new one.
    held_bytes: Option<u64>,
    /// Once the first lane of the pool has it: the others take it as it is.
    opened: Arc<Mutex<Option<OpenDrive>>>,
}

/// What new drives are for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// A group of this level.
    Group(Level),
    /// To stand in, in one group or in any.
    Spare(Option<u16>),
}

impl Purpose {
    /// That a lane could take the drives. Nothing changes.
    async fn judge(
        self,
        state: Rc<ShardState>,
        pool: Lane<RealWorld>,
        placed: Vec<Placed>,
    ) -> Result<(), ArrayError> {
        let mut drives = Vec::new();
        for place in placed {
            let name = place.name.clone();
            drives.push((name, place.look_at(&state, &pool).await?));
        }
        let candidates = drives
            .iter()
            .map(|(name, (drive, capacity_bytes))| Candidate {
                name,
                capacity_bytes: *capacity_bytes,
                drive: drive.as_ref().map(|named| &named.drive),
            });
        match self {
            Purpose::Group(level) => {
                let candidates: Vec<_> = candidates.collect();
                pool.check_add_group(level, &candidates).await?;
            }
            Purpose::Spare(group) => {
                for candidate in candidates {
                    pool.check_add_spare(group, candidate).await?;
                }
            }
        }
        Ok(())
    }
}

impl Placed {
    /// Opens it, for `pool`.
    pub(super) async fn open(
        self,
        state: &ShardState,
        pool: &Lane<RealWorld>,
    ) -> Result<NamedDrive<RealWorld>, ArrayError> {
        let failed = |error: OpenError| {
            let context = format!("drive {}: {error}", self.name);
            match (error.kind, &self.user) {
                (OpenErrorKind::InUse, Some(user)) => {
                    let context = format!("{context}: it is {user}");
                    ArrayError::new(ArrayErrorKind::Busy, context)
                }
                (OpenErrorKind::InUse, None) => ArrayError::new(ArrayErrorKind::Busy, context),
                _ => ArrayError::new(ArrayErrorKind::Invalid, context),
            }
        };
        let name = self.name.clone();
        let opened = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let before = opened().clone();
        if let Some(open) = before {
            let drive = RealDrive::of(state.world(), &open);
            return Ok(NamedDrive { name, drive });
        }
        let open = self.open_free(pool).await.map_err(failed)?;
        opened().replace(open.clone());
        let drive = RealDrive::of(state.world(), &open);
        let label = Lane::probe(state.world(), &drive).await;
        let is_labelled = label
            .map_err(|error| ArrayError {
                context: format!("drive {}: {}", self.name, error.context),
                ..ArrayError::from(error)
            })?
            .is_some();
        if !self.is_known && !is_labelled {
            let path = self.path.display();
            let is_blank = blank::is_blank(state.world(), &drive).await;
            let context = match is_blank {
                Ok(true) => None,
                Ok(false) => Some(format!("{path} {}", blank::REMEDY)),
                Err(error) => Some(format!("{path}: {error}")),
            };
            if let Some(context) = context {
                let context = format!("drive {}: {context}", self.name);
                return Err(ArrayError::new(ArrayErrorKind::Exists, context));
            }
        }
        Ok(NamedDrive { name, drive })
    }

    /// The drive that is there, if it can be opened before anything changes, and its size.
    async fn look_at(
        self,
        state: &ShardState,
        pool: &Lane<RealWorld>,
    ) -> Result<(Option<NamedDrive<RealWorld>>, u64), ArrayError> {
        if let Some(bytes) = self.planned_bytes {
            return Ok((None, bytes));
        }
        let (held_bytes, path) = (self.held_bytes, self.path.clone());
        match (self.open(state, pool).await, held_bytes) {
            (Ok(named), _) => {
                let bytes = named.drive.geometry().capacity_bytes;
                Ok((Some(named), bytes))
            }
            // The pool has it open: it is its own successor.
            (Err(error), Some(bytes)) if error.kind == ArrayErrorKind::Busy => {
                match is_open_here(&path).await {
                    true => Ok((None, bytes)),
                    false => Err(error),
                }
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Whether the drive that is replaced has this place, and no other can be opened there.
    fn is_its_own_successor(&self) -> bool {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        self.held_bytes.is_some() && self.planned_bytes.is_none() && opened.is_none()
    }

    /// Whether that drive, which goes, is in this place.
    pub(super) fn is_held_by(&self, name: &str) -> bool {
        self.holder.as_deref() == Some(name)
    }

    /// Opens it, once whoever is about to close it has.
    async fn open_free(&self, pool: &Lane<RealWorld>) -> Result<OpenDrive, OpenError> {
        let may_wait = || {
            if self.user.is_some() {
                return false;
            }
            // Where somebody stands in for it by now, it closes by itself.
            let let_go = self.holder.as_ref().map(|holder| pool.let_go(holder));
            !let_go.is_some_and(|let_go| let_go.is_err_and(is_busy))
        };
        let mut patience = Patience::default();
        patience.open_while(&self.path, may_wait).await
    }
}

impl Array {
    /// Has `take` make new drives part of a pool, on its shards; files are made where there
    /// are none. The drive called `replaced` is about to go. All lanes are asked first.
    pub(super) async fn bring_in<F, Fut>(
        &self,
        info: &PoolInfo,
        new: Vec<NewDrive>,
        (purpose, replaced): (Purpose, Option<&str>),
        take: F,
    ) -> Result<(), ArrayError>
    where
        F: FnOnce(Rc<ShardState>, Lane<RealWorld>, Vec<Placed>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<(), ArrayError>> + 'static,
    {
        for drive in &new {
            self.check_not_failed_elsewhere(&drive.name, &info.name)
                .await?;
        }
        let pools: Vec<PoolInfo> = self
            .pools()
            .await?
            .into_iter()
            .map(|(_, pool)| pool)
            .collect();
        let mut placed = Vec::new();
        for new in &new {
            let mut place = self.placed(&pools, &info.name, new, replaced);
            place.planned_bytes = planned_bytes(info, new, &place.path).await;
            placed.push(place);
        }
        self.check_placed(info, &placed).await?;
        // One that has failed may be open still where the new one is.
        self.free_places(info, &placed).await?;
        let ask = |lane| {
            let placed = placed.clone();
            let judge = move |state, pool| purpose.judge(state, pool, placed);
            self.with_lane(&info.name, lane, judge)
        };
        steps::ask_all(info.lanes, ask).await?;
        let wanted = placed.iter().filter_map(|drive| {
            let size_bytes = drive.planned_bytes?;
            Some((drive.name.clone(), drive.path.clone(), size_bytes))
        });
        let made = make_files(wanted.collect()).await?;
        let before = self.drives.added().clone();
        let ours: Vec<PathBuf> = placed.iter().map(|drive| drive.path.clone()).collect();
        let kept = self
            .drives
            .keep(self.record_with(info, &placed, &new))
            .await;
        let taken = match kept {
            Ok(()) => self.take_in_all(info, placed, take).await,
            Err(error) => Err(Halted::from(error)),
        };
        let Err(halted) = taken else {
            return Ok(());
        };
        if self.is_taken_back(info, &new).await {
            // Others may have been added to other pools meanwhile.
            let mut now = self.drives.added().clone();
            now.retain(|known| !ours.contains(&known.path));
            now.extend(
                before
                    .into_iter()
                    .filter(|known| ours.contains(&known.path)),
            );
            if let Err(error) = self.drives.keep(now).await {
                tracing::error!("drives that are not taken stay on record: {error}");
            }
            remove_files(made).await;
        }
        Err(with_lanes_that_keep(&info.name, halted))
    }

    /// The record of drives with new ones.
    fn record_with(&self, info: &PoolInfo, placed: &[Placed], new: &[NewDrive]) -> Vec<AddedDrive> {
        let mut after = self.drives.added().clone();
        for (drive, new) in placed.iter().zip(new) {
            after.retain(|known| known.path != drive.path);
            let settled = self
                .drives
                .is_of_settings(&drive.path, &info.name, &drive.name);
            if !settled {
                after.push(AddedDrive {
                    pool: info.name.clone(),
                    name: drive.name.clone(),
                    path: drive.path.clone(),
                    is_device: new.is_device,
                });
            }
        }
        after
    }

    /// Has all lanes take drives, or none.
    async fn take_in_all<F, Fut>(
        &self,
        info: &PoolInfo,
        placed: Vec<Placed>,
        take: F,
    ) -> Result<(), Halted<ArrayError>>
    where
        F: FnOnce(Rc<ShardState>, Lane<RealWorld>, Vec<Placed>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<(), ArrayError>> + 'static,
    {
        if info.lanes > 1 {
            self.fail_successors(info, &placed).await?;
        }
        // Lanes that had nothing to do: the drive that is replaced is gone from them.
        let idle = AtomicU16::new(0);
        let idle = &idle;
        let names: Vec<String> = placed.iter().map(|drive| drive.name.clone()).collect();
        let change = |lane| {
            let (take, placed) = (take.clone(), placed.clone());
            let visit = move |state, pool| take(state, pool, placed);
            let said = self.with_lane(&info.name, lane, visit);
            async move {
                match said.await {
                    // A lane may have lost the drive that is replaced before.
                    Err(error) if error.kind == ArrayErrorKind::NotFound => {
                        let others = info.lanes - idle.fetch_add(1, Relaxed) - 1;
                        if others == 0 { Err(error) } else { Ok(()) }
                    }
                    said => said,
                }
            }
        };
        let take_back = |lane, others_have| {
            let names = names.clone();
            let visit = move |_, pool: Lane<RealWorld>| async move {
                Ok(pool.take_back(&names, others_have).await?)
            };
            self.with_lane(&info.name, lane, visit)
        };
        steps::change_all(info.lanes, change, take_back).await
    }

    /// Whether no lane has any of these drives: else they stay where they are, since a lane may
    /// have data on them.
    async fn is_taken_back(&self, info: &PoolInfo, new: &[NewDrive]) -> bool {
        let kept: Vec<String> = new.iter().map(|new| new.name.clone()).collect();
        let Ok(pools) = self.pools().await else {
            return false;
        };
        let before: Vec<_> = info.members.iter().chain(&info.spares).collect();
        let is_new = |member: &MemberInfo| {
            kept.contains(&member.name) && before.iter().all(|old| old.uuid != member.uuid)
        };
        let mut all = pools.iter().filter(|(_, pool)| pool.name == info.name);
        let is_there = all.any(|(_, pool)| {
            let mut members = pool.members.iter().chain(&pool.spares);
            members.any(is_new) || pool.departed.iter().any(|name| kept.contains(name))
        });
        if is_there {
            tracing::warn!(
                "pool {}: {} could not be added to all lanes; what has them keeps them until the \
                 next start, or until their group has left",
                info.name,
                kept.join(", ")
            );
        }
        !is_there
    }

    /// Has all lanes of a pool close drives that are out of use where new ones come.
    async fn free_places(&self, info: &PoolInfo, placed: &[Placed]) -> Result<(), ArrayError> {
        for drive in placed {
            let Some(holder) = drive.holder.clone() else {
                continue;
            };
            let visit = move |_, pool: Lane<RealWorld>| async move { Ok(pool.let_go(&holder)?) };
            match self.pool_of(&info.name)?.visit_all(visit).await {
                Err(error) if error.kind == ArrayErrorKind::NotFound => {}
                // It is in use until the new one is judged.
                Err(error) if error.kind == ArrayErrorKind::Busy && drive.held_bytes.is_some() => {}
                freed => freed?,
            }
        }
        Ok(())
    }

    /// Has all lanes of a pool fail and close drives that come back to their own places.
    async fn fail_successors(&self, info: &PoolInfo, placed: &[Placed]) -> Result<(), ArrayError> {
        for drive in placed.iter().filter(|place| place.is_its_own_successor()) {
            let Some(holder) = drive.holder.clone() else {
                continue;
            };
            if info.spares.iter().any(|spare| spare.name == holder) {
                let context = format!("spare {holder} is in that place already, and is whole");
                return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
            }
            let visit = move |_, pool: Lane<RealWorld>| async move {
                pool.fail_drive(&holder).await?;
                Ok(pool.let_go(&holder)?)
            };
            match self.pool_of(&info.name)?.visit_all(visit).await {
                Err(error) if error.kind == ArrayErrorKind::NotFound => {}
                freed => freed?,
            }
        }
        Ok(())
    }

    fn placed(
        &self,
        pools: &[PoolInfo],
        pool: &str,
        new: &NewDrive,
        replaced: Option<&str>,
    ) -> Placed {
        let path = self.drives.data.join(&new.path);
        let (mut holder, mut user, mut held_bytes) = (None, None, None);
        for info in pools {
            let is_here = |member: &&MemberInfo| {
                let place = self.drives.find_of(&info.name, &member.name);
                place.is_some_and(|place| place.path == path)
            };
            for member in info.members.iter().chain(&info.spares).filter(is_here) {
                let has_failed = member.state == MemberState::Failed;
                let is_replaced = replaced == Some(member.name.as_str());
                if is_replaced {
                    held_bytes = Some(member.capacity_bytes);
                }
                match has_failed || is_replaced {
                    true => holder = Some(member.name.clone()),
                    false => user = Some(format!("drive {} of pool {}", member.name, info.name)),
                }
            }
        }
        let mut of_pool = pools.iter().filter(|info| info.name == pool);
        Placed {
            name: new.name.clone(),
            is_known: of_pool.any(|info| self.drives.has_at(info, &path)),
            path,
            holder,
            user,
            planned_bytes: None,
            held_bytes,
            opened: Arc::default(),
        }
    }

    /// That drives may be where they are to be.
    async fn check_placed(&self, info: &PoolInfo, placed: &[Placed]) -> Result<(), ArrayError> {
        // Where a drive failed, another may come, though not over what somebody keeps there.
        let failed = self.departed_failures(info);
        let was_there = |path: &Path| failed.iter().any(|old| old.path.as_deref() == Some(path));
        for drive in placed.iter().filter(|drive| !drive.is_known) {
            if !was_there(&drive.path) {
                let allowed = self.drives.check_allowed(&drive.path);
                allowed.map_err(|error| error.of_drive(&drive.name))?;
            }
        }
        // Not before: whoever may add drives may not know of all files.
        for drive in placed {
            let of_drive = |error: ArrayError| error.of_drive(&drive.name);
            let unused = self.check_unused(&drive.path, &info.name).await;
            unused.map_err(of_drive)?;
            if let Some(why) = foreign(&self.drives.data, &drive.path).await {
                return Err(of_drive(ArrayError::new(ArrayErrorKind::Invalid, why)));
            }
        }
        Ok(())
    }

    /// That what is at `path` is no drive of another pool than `pool`, be that open, not open, or
    /// about to be made.
    ///
    /// # Errors
    /// It is.
    pub(crate) async fn check_unused(&self, path: &Path, pool: &str) -> Result<(), ArrayError> {
        let user = self.user_of(path).await?.filter(|user| user.pool != pool);
        user.map_or(Ok(()), |user| {
            let (path, name) = (path.display(), &user.name);
            let context = format!("{path} is drive {name} of pool {}", user.pool);
            Err(ArrayError::new(ArrayErrorKind::Exists, context))
        })
    }

    /// The drive that is at `path`: one that an open pool has, or one that records name of a pool
    /// that is not open.
    ///
    /// # Errors
    /// A shard has stopped.
    async fn user_of(&self, path: &Path) -> Result<Option<AddedDrive>, ArrayError> {
        let pools = self.pools().await?;
        let is_had = |drive: &AddedDrive| {
            let pool = pools.iter().find(|(_, info)| info.name == drive.pool);
            pool.is_none_or(|(_, info)| {
                let place = self.drives.find_of(&drive.pool, &drive.name);
                let is_at = place.is_some_and(|place| place.path == drive.path);
                is_at && names(info).any(|name| *name == drive.name)
            })
        };
        let mut all = self.drives.recorded_at(path).into_iter();
        Ok(all.find(is_had))
    }

    /// Takes all places but that of `new` off the record where a drive of its name was: it has
    /// replaced that one.
    pub(super) async fn forget_other_places(&self, pool: &str, new: &NewDrive) {
        let path = self.drives.data.join(&new.path);
        let mut kept = self.drives.added().clone();
        let all = kept.len();
        let is_other =
            |drive: &AddedDrive| drive.pool == pool && drive.name == new.name && drive.path != path;
        kept.retain(|drive| !is_other(drive));
        if kept.len() < all
            && let Err(error) = self.drives.keep(kept).await
        {
            tracing::warn!("where drive {} was stays on record: {error}", new.name);
        }
    }
}

/// Bytes of the file that is to be made for a new drive, where none is.
async fn planned_bytes(info: &PoolInfo, new: &NewDrive, path: &Path) -> Option<u64> {
    let path = path.to_owned();
    let looking = tokio::task::spawn_blocking(move || path.exists());
    if new.is_device || looking.await.unwrap_or(true) {
        return None;
    }
    let sizes = info.members.iter().map(|member| member.capacity_bytes);
    Some(new.size_bytes.or(sizes.max()).unwrap_or(0))
}

/// Why drives were not taken, and the lanes that could not take them back.
fn with_lanes_that_keep(pool: &str, halted: Halted<ArrayError>) -> ArrayError {
    let Halted { mut error, kept } = halted;
    for (lane, why) in kept {
        let text = format!("lane {lane} of pool {pool} could not take the drives back: {why}");
        tracing::warn!("{text}");
        error.context += &format!("; {text}");
    }
    error
}

fn is_busy(error: PoolError) -> bool {
    error.kind == PoolErrorKind::Busy
}
