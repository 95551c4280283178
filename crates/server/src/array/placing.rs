//! Finds places for new drives, and brings them to their pool.
//!
//! Invariants:
//! - What holds something that nobody here knows of is never taken for a drive.
//! - When new drives are not taken, nothing is left of them.

use super::drive_files::{make_files, remove_files};
use super::{Array, ArrayError, ArrayErrorKind, NewDrive};
use crate::drive_files::{Patience, is_open_here};
use crate::own_files::foreign;
use crate::shard::ShardState;
use ::array::control::Placing;
use ::array::openings::blank;
use ::array::pool;
use engine::pool::{Lane, MemberInfo, MemberState, NamedDrive, PoolInfo};
use engine::{Drive, PoolError, PoolErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world_real::{OpenDrive, OpenError, OpenErrorKind, RealDrive, RealWorld};

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

impl Placed {
    async fn open_for(
        &self,
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
        self.check_nobody_uses(state, &drive).await?;
        Ok(NamedDrive { name, drive })
    }

    /// That a drive holds nothing which nobody here knows of.
    async fn check_nobody_uses(
        &self,
        state: &ShardState,
        drive: &RealDrive,
    ) -> Result<(), ArrayError> {
        let label = Lane::probe(state.world(), drive).await;
        let is_labelled = label
            .map_err(|error| ArrayError::from(error).of_drive(&self.name))?
            .is_some();
        if self.is_known || is_labelled {
            return Ok(());
        }
        let path = self.path.display();
        let context = match blank::is_blank(state.world(), drive).await {
            Ok(true) => return Ok(()),
            Ok(false) => format!("{path} {}", blank::REMEDY),
            Err(error) => format!("{path}: {error}"),
        };
        Err(ArrayError::new(ArrayErrorKind::Exists, context).of_drive(&self.name))
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

impl pool::NewDrive<RealWorld> for Placed {
    fn name(&self) -> &str {
        &self.name
    }

    fn holder(&self) -> Option<pool::Holder<'_>> {
        Some(pool::Holder {
            name: self.holder.as_deref()?,
            is_replaced: self.held_bytes.is_some(),
        })
    }

    fn is_its_own_successor(&self) -> bool {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        self.held_bytes.is_some() && self.planned_bytes.is_none() && opened.is_none()
    }

    async fn look_at(
        &self,
        state: &ShardState,
        pool: &Lane<RealWorld>,
    ) -> Result<(Option<NamedDrive<RealWorld>>, u64), ArrayError> {
        if let Some(bytes) = self.planned_bytes {
            return Ok((None, bytes));
        }
        match (self.open_for(state, pool).await, self.held_bytes) {
            (Ok(named), _) => {
                let bytes = named.drive.geometry().capacity_bytes;
                Ok((Some(named), bytes))
            }
            // The pool has it open: it is its own successor.
            (Err(error), Some(bytes)) if error.kind == ArrayErrorKind::Busy => {
                match is_open_here(&self.path).await {
                    true => Ok((None, bytes)),
                    false => Err(error),
                }
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn open(
        &self,
        state: &ShardState,
        pool: &Lane<RealWorld>,
    ) -> Result<NamedDrive<RealWorld>, ArrayError> {
        self.open_for(state, pool).await
    }
}

/// New drives at their places, for a pool to take.
pub(super) struct PlacedDrives {
    placed: Vec<Placed>,
    /// The files that were made for them.
    made: Mutex<Vec<PathBuf>>,
}

impl PlacedDrives {
    // Whoever panicked with this lock held has left it whole.
    fn made(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl pool::NewDrives<RealWorld> for PlacedDrives {
    type Drive = Placed;

    fn drives(&self) -> &[Placed] {
        &self.placed
    }

    async fn make(&self) -> Result<(), ArrayError> {
        let wanted = self.placed.iter().filter_map(|drive| {
            let size_bytes = drive.planned_bytes?;
            Some((drive.name.clone(), drive.path.clone(), size_bytes))
        });
        let made = make_files(wanted.collect()).await?;
        *self.made() = made;
        Ok(())
    }

    async fn unmake(&self) {
        let made = std::mem::take(&mut *self.made());
        remove_files(made).await;
    }
}

/// The files and devices of this machine.
pub(super) struct OnThisMachine(pub(super) Arc<Array>);

impl Placing<RealWorld> for OnThisMachine {
    type Drives = PlacedDrives;

    async fn place(
        &self,
        info: &PoolInfo,
        new: Vec<NewDrive>,
        replaced: Option<&str>,
    ) -> Result<PlacedDrives, ArrayError> {
        let array = &self.0;
        let pools = array.pools().await?;
        let pools: Vec<PoolInfo> = pools.into_iter().map(|(_, pool)| pool).collect();
        let mut placed = Vec::new();
        for new in &new {
            let mut place = array.placed(&pools, &info.name, new, replaced);
            place.planned_bytes = planned_bytes(info, new, &place.path).await;
            placed.push(place);
        }
        array.check_placed(info, &placed).await?;
        Ok(PlacedDrives {
            placed,
            made: Mutex::default(),
        })
    }
}

impl Array {
    fn placed(
        &self,
        pools: &[PoolInfo],
        pool: &str,
        new: &NewDrive,
        replaced: Option<&str>,
    ) -> Placed {
        let path = self.places().data().join(&new.path);
        let (mut holder, mut user, mut held_bytes) = (None, None, None);
        for info in pools {
            let is_here = |member: &&MemberInfo| {
                let place = self.places().find_of(&info.name, &member.name);
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
            is_known: of_pool.any(|info| self.places().has_at(info, &path)),
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
                let allowed = self.check_allowed(&drive.path);
                allowed.map_err(|error| error.of_drive(&drive.name))?;
            }
        }
        // Not before: whoever may add drives may not know of all files.
        for drive in placed {
            let of_drive = |error: ArrayError| error.of_drive(&drive.name);
            let unused = self.check_unused(&drive.path, &info.name).await;
            unused.map_err(of_drive)?;
            if let Some(why) = foreign(self.places().data(), &drive.path).await {
                return Err(of_drive(ArrayError::new(ArrayErrorKind::Invalid, why)));
            }
        }
        Ok(())
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

fn is_busy(error: PoolError) -> bool {
    error.kind == PoolErrorKind::Busy
}
