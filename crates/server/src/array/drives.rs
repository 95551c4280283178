//! What is done to drives and pools while they serve: drives taken out of use, added
//! and replaced, scrubs, and the events that tell of all this.
//!
//! Invariant: a drive that the API adds is on record before it is part of a pool, so
//! that it is found at the next start.

use super::{Array, ArrayError, ArrayErrorKind};
use crate::record::{self, RecordError};
use crate::shard::{ShardHandle, ShardState};
use engine::World;
use engine::pool::life::Rates;
use engine::pool::{MemberInfo, NamedDrive, Pool, PoolInfo};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use world::real::{OpenError, OpenErrorKind, RealDrive, RealWorld};

/// Where a drive is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedDrive {
    /// The pool it was added to.
    pub pool: String,
    /// Its name.
    pub name: String,
    /// Its file or device.
    pub path: PathBuf,
}

/// A drive to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDrive {
    /// The name that it is to have.
    pub name: String,
    /// A file relative to the data directory, or an absolute path.
    pub path: PathBuf,
    /// Size to make the file with when it is not there; as large as the pool's
    /// largest drive unless said otherwise.
    pub size_bytes: Option<u64>,
}

/// Where the drives of an array are.
#[derive(Debug)]
pub struct DrivePlaces {
    data: PathBuf,
    file: PathBuf,
    site: Vec<AddedDrive>,
    added: Mutex<Vec<AddedDrive>>,
}

/// An event of a pool.
#[derive(Clone, Debug)]
pub struct PoolEvent {
    /// The pool.
    pub pool: String,
    /// How long ago.
    pub age: Duration,
    /// What happened.
    pub event: engine::pool::Event,
}

/// The drives that the API added before, as kept in `file`.
///
/// # Errors
/// The file is there and can't be read or understood.
pub(crate) fn added(file: &Path) -> Result<Vec<AddedDrive>, RecordError> {
    Ok(record::read(file)?.unwrap_or_default())
}

impl DrivePlaces {
    /// Those that the site describes, and those that were `added` and are kept in
    /// `file`; files are in `data`.
    pub fn new(
        data: PathBuf,
        file: PathBuf,
        site: Vec<AddedDrive>,
        added: Vec<AddedDrive>,
    ) -> Self {
        let added = Mutex::new(added);
        DrivePlaces {
            data,
            file,
            site,
            added,
        }
    }

    // Whoever panicked with this lock held has left a whole list behind.
    fn added(&self) -> MutexGuard<'_, Vec<AddedDrive>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Option<AddedDrive> {
        let added = self.added();
        let mut all = added.iter().chain(&self.site);
        all.find(|drive| drive.name == name).cloned()
    }

    fn is_of_site(&self, path: &Path) -> bool {
        self.site.iter().any(|drive| drive.path == path)
    }
}

impl Array {
    /// Takes a drive out of use.
    ///
    /// # Errors
    /// No such drive, or its pool can't do without it.
    pub async fn fail_drive(self: &Arc<Self>, name: String) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let (info, _) = array.drive(&name).await?;
            let visit = |pool: Pool<RealWorld>| async move { Ok(pool.fail_drive(&name).await?) };
            array.with_pool(&info.name, visit).await
        })
        .await
    }

    /// Adds a drive that stands in for one that fails, or has failed.
    ///
    /// # Errors
    /// No such pool; the name or the drive is taken; it is too small or not there.
    pub async fn add_spare(
        self: &Arc<Self>,
        pool: String,
        new: NewDrive,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            if array.drive(&new.name).await.is_ok() {
                let context = format!("there is a drive {} already; choose another name", new.name);
                return Err(ArrayError::new(ArrayErrorKind::Exists, context));
            }
            let (_, info) = array.pool(&pool).await?;
            array.bring_in(&info, new, None).await
        })
        .await
    }

    /// Puts `new` in the place of the drive called `name`; without it, whatever is now
    /// where that drive was.
    ///
    /// # Errors
    /// As [`Array::fail_drive`] and [`Array::add_spare`].
    pub async fn replace_drive(
        self: &Arc<Self>,
        name: String,
        new: Option<NewDrive>,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let (info, member) = array.drive(&name).await?;
            let new = match new {
                Some(new) if new.name != name && array.drive(&new.name).await.is_ok() => {
                    let context =
                        format!("there is a drive {} already; choose another name", new.name);
                    return Err(ArrayError::new(ArrayErrorKind::Exists, context));
                }
                Some(new) => new,
                None => NewDrive {
                    path: array.place_of(&name)?,
                    size_bytes: Some(member.capacity_bytes),
                    name: name.clone(),
                },
            };
            array.bring_in(&info, new, Some(name)).await
        })
        .await
    }

    /// Begins or ends a scrub.
    ///
    /// # Errors
    /// No such pool, or it has stopped.
    pub async fn scrub(self: &Arc<Self>, pool: &str, wanted: bool) -> Result<(), ArrayError> {
        let visit = move |pool: Pool<RealWorld>| async move {
            match wanted {
                true => pool.start_scrub()?,
                false => pool.stop_scrub(),
            }
            Ok(())
        };
        self.with_pool(pool, visit).await
    }

    /// Changes the limits of work in the background.
    ///
    /// # Errors
    /// No such pool.
    pub async fn change_rates(
        self: &Arc<Self>,
        pool: &str,
        change: impl FnOnce(Rates) -> Rates + Send + 'static,
    ) -> Result<(), ArrayError> {
        let visit = move |pool: Pool<RealWorld>| async move {
            pool.set_rates(change(pool.info().rates));
            Ok(())
        };
        self.with_pool(pool, visit).await
    }

    /// Events of all pools, oldest first.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn events(&self) -> Result<Vec<PoolEvent>, ArrayError> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.call(|state| async move { events_on(&state) }).await?);
        }
        all.sort_by_key(|event: &PoolEvent| std::cmp::Reverse(event.age));
        Ok(all)
    }

    /// The drive called `name`, and its pool.
    async fn drive(&self, name: &str) -> Result<(PoolInfo, MemberInfo), ArrayError> {
        for (_, info) in self.pools().await? {
            let mut all = info.members.iter().chain(&info.spares);
            if let Some(member) = all.find(|member| member.name == name).cloned() {
                return Ok((info, member));
            }
        }
        let context = format!("there is no drive {name}");
        Err(ArrayError::new(ArrayErrorKind::NotFound, context))
    }

    fn place_of(&self, name: &str) -> Result<PathBuf, ArrayError> {
        let place = self.drives.find(name).map(|drive| drive.path);
        place.ok_or_else(|| {
            let context = format!("where drive {name} was is not known: say what replaces it");
            ArrayError::new(ArrayErrorKind::Invalid, context)
        })
    }

    async fn with_pool<F, Fut>(&self, pool: &str, visit: F) -> Result<(), ArrayError>
    where
        F: FnOnce(Pool<RealWorld>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), ArrayError>> + 'static,
    {
        let shard = self.home(pool)?;
        let name = pool.to_owned();
        let visit = move |state: Rc<ShardState>| async move {
            match state.pool(&name) {
                Some(pool) => visit(pool).await,
                None => Err(ArrayError::no_pool(&name)),
            }
        };
        shard.call(visit).await?
    }

    /// Makes a drive part of a pool, in the place of another or as a spare.
    async fn bring_in(
        &self,
        info: &PoolInfo,
        new: NewDrive,
        replaced: Option<String>,
    ) -> Result<(), ArrayError> {
        let path = self.drives.data.join(&new.path);
        let largest = info
            .members
            .iter()
            .map(|member| member.capacity_bytes)
            .max();
        let size_bytes = new.size_bytes.or(largest).unwrap_or(0);
        let made = make_file(path.clone(), size_bytes).await?;
        let before = self.drives.added().clone();
        if !self.drives.is_of_site(&path) {
            let mut after = before.clone();
            after.retain(|drive| drive.path != path);
            after.push(AddedDrive {
                pool: info.name.clone(),
                name: new.name.clone(),
                path: path.clone(),
            });
            self.keep_drives(after).await?;
        }
        let shard = self.home(&info.name)?.clone();
        let taken = take_in(&shard, &info.name, new.name, path.clone(), replaced).await;
        if taken.is_err() {
            self.keep_drives(before).await?;
            if made {
                // It was ours, and nobody else has it.
                let _ = std::fs::remove_file(&path);
            }
        }
        taken
    }

    async fn keep_drives(&self, drives: Vec<AddedDrive>) -> Result<(), ArrayError> {
        let (file, kept) = (self.drives.file.clone(), drives.clone());
        let written = tokio::task::spawn_blocking(move || record::write(&file, &kept)).await;
        let failed = |context: String| ArrayError::new(ArrayErrorKind::Internal, context);
        match written {
            Ok(Ok(())) => *self.drives.added() = drives,
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Err(error) => return Err(failed(format!("writing the drives ended early: {error}"))),
        }
        Ok(())
    }
}

/// Makes the file of a drive when nothing is there. True when it did.
async fn make_file(path: PathBuf, size_bytes: u64) -> Result<bool, ArrayError> {
    let made = tokio::task::spawn_blocking(move || {
        if path.exists() {
            return Ok(false);
        }
        RealDrive::create_file(&path, size_bytes).map(|()| true)
    });
    let failed = |context: String| ArrayError::new(ArrayErrorKind::Invalid, context);
    match made.await {
        Ok(outcome) => outcome.map_err(|error| failed(error.to_string())),
        Err(error) => Err(failed(format!("making a drive file ended early: {error}"))),
    }
}

/// Opens a drive on its pool's shard and hands it over.
async fn take_in(
    shard: &ShardHandle,
    pool: &str,
    name: String,
    path: PathBuf,
    replaced: Option<String>,
) -> Result<(), ArrayError> {
    let pool = pool.to_owned();
    let visit = move |state: Rc<ShardState>| async move {
        let Some(pool) = state.pool(&pool) else {
            return Err(ArrayError::no_pool(&pool));
        };
        let open = || RealDrive::open(state.world(), &path);
        let failed = |error: OpenError| {
            ArrayError::new(ArrayErrorKind::Invalid, format!("drive {name}: {error}"))
        };
        let named = |drive| NamedDrive {
            name: name.clone(),
            drive,
        };
        let Some(old) = &replaced else {
            return Ok(pool.add_spare(named(open().map_err(failed)?)).await?);
        };
        match open() {
            Ok(drive) => Ok(pool.replace_drive(old, named(drive)).await?),
            // It may be the old one that holds it: that goes first then.
            Err(error) if error.kind == OpenErrorKind::InUse => {
                pool.fail_drive(old).await?;
                pool.let_go(old)?;
                Ok(pool.add_spare(named(open().map_err(failed)?)).await?)
            }
            Err(error) => Err(failed(error)),
        }
    };
    shard.call(visit).await?
}

fn events_on(state: &ShardState) -> Vec<PoolEvent> {
    let now = state.world().now();
    let of = |pool: &Pool<RealWorld>| {
        let name = pool.info().name;
        let events = pool.events(0).into_iter().map(move |event| PoolEvent {
            pool: name.clone(),
            age: now.since(event.at),
            event,
        });
        events.collect::<Vec<_>>()
    };
    state.pools().iter().flat_map(of).collect()
}
