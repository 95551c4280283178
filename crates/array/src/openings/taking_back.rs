//! Takes back makings of pools that did not end, and wipes pools that are destroyed.
//!
//! Invariants:
//! - What a making has left is on record until it is gone, and the record says what that is. A drive
//!   that is away may have it.
//! - It is tried again by each start, and before a pool of that name is made.
//! - Nothing is taken back of a pool that the record may call made: its drives would be missed.
//! - Nothing is taken from another pool, or from another array.

use super::bays::{DriveBays, NotOpenKind, Patience, WIPE_TIME, in_time};
use super::error::OpeningError;
use super::look::{DriveContent, DrivePlace};
use super::made::MadePool;
use super::{Openings, old_makings};
use crate::error::{ArrayError, ArrayErrorKind};
use crate::shard::{ShardGone, ShardHandle, ShardState};
use base::Uuid;
use engine::World;
use engine::pool::Lane;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The pool that labels may be of.
#[derive(Clone, Debug)]
pub(super) struct LabelOwner {
    pub(super) name: String,
    /// Nothing, where a build of before has put the making of a pool on record: then it is any pool of
    /// that name.
    uuid: Option<Uuid>,
}

impl LabelOwner {
    pub(super) fn new(name: &str, uuid: Option<Uuid>) -> Self {
        LabelOwner {
            name: name.to_owned(),
            uuid,
        }
    }

    /// One whose identity a record says.
    ///
    /// # Errors
    /// It is no identity.
    pub(super) fn on_record(name: &str, uuid: Option<&str>) -> Result<Self, OpeningError> {
        let uuid = uuid.map(Uuid::parse_str).transpose().map_err(|_| {
            OpeningError::record(format!(
                "the record of pools: the identity of pool {name} is none"
            ))
        })?;
        Ok(LabelOwner::new(name, uuid))
    }

    /// Whether a label is of it; one of which only the stamp is left has no `name`.
    fn has(&self, name: Option<&str>, uuid: Uuid) -> bool {
        let is_called = name.is_some_and(|name| name == self.name);
        self.uuid.map_or(is_called, |own| own == uuid)
    }
}

impl<W: World> Openings<W> {
    /// Removes the files that the making of a pool has made, and takes its labels off the drives that
    /// were there `before`. Gives the mark that says what is left.
    ///
    /// # Errors
    /// The shard has stopped.
    pub(super) async fn take_back(
        &self,
        shard: &ShardHandle<W>,
        owner: LabelOwner,
        (new_files, before): (Vec<PathBuf>, Vec<PathBuf>),
    ) -> Result<MadePool, ShardGone> {
        Ok(MadePool::BeingMade {
            uuid: owner.uuid.map(|uuid| uuid.to_string()),
            of_before: {
                let (away, there) = self.unlabel(shard, owner.clone(), before).await?;
                [away, there].concat()
            },
            new_files: self.remove_unfinished(shard, owner, new_files).await?,
        })
    }

    /// The same for a pool that the record says is being made; nothing for any other. Whether the array
    /// has no such pool.
    async fn take_back_on_record(
        &self,
        shard: &ShardHandle<W>,
        name: &str,
    ) -> Result<bool, OpeningError> {
        if !self.settle_without_identity(shard, name).await? {
            return Ok(false);
        }
        // It may say that the pool is made.
        self.made.settle().await.map_err(OpeningError::record)?;
        let Some(MadePool::BeingMade {
            new_files,
            of_before,
            uuid,
        }) = self.made.pool(name)
        else {
            return Ok(false);
        };
        let planted = "making is taken back by the name of its pool";
        let uuid = uuid.filter(|_| !self.bays.planted(planted));
        let owner = LabelOwner::on_record(name, uuid.as_deref())?;
        let left = self.take_back(shard, owner, (new_files, of_before)).await?;
        let noted = self.made.set(name, Some(left)).await;
        noted.map_err(OpeningError::record)?;
        Ok(true)
    }

    /// Takes back the makings of pools that a crash has cut short, or that failed, and gives the names
    /// of those that are no pools of the array. Nobody was told that there is such a pool. A first
    /// start that was cut short makes its pools anew, on drives that hold nothing.
    ///
    /// # Errors
    /// The shard has stopped, or the record can't be written.
    pub(super) async fn take_back_makings(
        &self,
        shard: &ShardHandle<W>,
    ) -> Result<Vec<String>, OpeningError> {
        let made = self.made.now();
        let planted = "labels of a first start that was cut short stay";
        if !made.is_configured && self.bays.planted(planted) {
            return Ok(Vec::new());
        }
        let unfinished = made.pools.iter().filter(|(_, state)| state.is_being_made());
        let mut names = Vec::new();
        for (name, _) in unfinished {
            if self.take_back_on_record(shard, name).await? {
                self.bays.reached("making of a pool taken back at a start");
                tracing::info!("pool {name}: its making was cut short, and is taken back");
                names.push(name.clone());
            }
        }
        Ok(if made.is_configured {
            names
        } else {
            Vec::new()
        })
    }

    /// Takes back what a making of before has left, so that a pool of its name can be made. The settings
    /// do not name the pool.
    ///
    /// # Errors
    /// Something is left still, a shard has stopped, or the record can't be written.
    pub(super) async fn before_making(
        &self,
        shard: &ShardHandle<W>,
        name: &str,
    ) -> Result<(), ArrayError> {
        let is_none = self.take_back_on_record(shard, name).await?;
        let state = self.made.pool(name);
        if !state.is_some_and(|state| state.is_being_made()) {
            return Ok(());
        }
        if !is_none {
            let context = format!("pool {name}: {}", old_makings::REMEDY);
            return Err(ArrayError::new(ArrayErrorKind::Busy, context));
        }
        let forgotten = self.made.forget(name).await;
        forgotten.map_err(OpeningError::record)?;
        let left = self.made.pool(name).map(|state| state.left_by_making());
        let mut there = Vec::new();
        for path in left.unwrap_or_default() {
            let place = DrivePlace::at(String::new(), path.clone());
            let look = self.glance(shard, place).await?;
            // One that is away may be away for good.
            if !matches!(look.found, DriveContent::Nothing(_)) {
                there.push(path);
            }
        }
        let left = there;
        if left.is_empty() {
            let forgotten = self.made.set(name, None).await;
            return forgotten.map_err(|why| OpeningError::record(why).into());
        }
        let left: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
        let context = format!(
            "pool {name} could not be made before, and {} may still be labelled as its: see that \
             nobody else uses it, and that it answers, or choose another name",
            left.join(", ")
        );
        Err(ArrayError::new(ArrayErrorKind::Busy, context))
    }

    /// Takes the labels of a pool that is no more off the drives at `paths`. Leaves those of another
    /// array alone. Warns of a drive that can't be wiped, for it may still say that it is of that pool;
    /// gives those that are away, and the others.
    ///
    /// # Errors
    /// The shard has stopped.
    pub(super) async fn unlabel(
        &self,
        shard: &ShardHandle<W>,
        owner: LabelOwner,
        paths: Vec<PathBuf>,
    ) -> Result<(Vec<PathBuf>, Vec<PathBuf>), ShardGone> {
        let bays = Arc::clone(&self.bays);
        let visit = move |state: Rc<ShardState<W>>| async move {
            let (mut away, mut there) = (Vec::new(), Vec::new());
            for path in paths {
                let Err((why, is_away)) = wipe(&state, &*bays, &path, &owner).await else {
                    continue;
                };
                let (pool, shown) = (&owner.name, path.display());
                tracing::warn!("pool {pool} is no more, and {shown} may keep its label: {why}");
                match is_away {
                    true => away.push(path),
                    false => there.push(path),
                }
            }
            (away, there)
        };
        shard.call(visit).await
    }

    /// Removes files that the making of a pool has left, since it did not end: nothing was ever
    /// acknowledged there. A file that another pool has by now, or that is another array's, stays.
    /// Warns of a file that can't be removed; gives those.
    ///
    /// # Errors
    /// The shard has stopped.
    async fn remove_unfinished(
        &self,
        shard: &ShardHandle<W>,
        owner: LabelOwner,
        files: Vec<PathBuf>,
    ) -> Result<Vec<PathBuf>, ShardGone> {
        let (pool, bays) = (owner.name.clone(), Arc::clone(&self.bays));
        let visit = move |state: Rc<ShardState<W>>| async move {
            let mut found = Vec::new();
            for path in files {
                let user = user_of(&state, &*bays, &path, &owner).await;
                found.push((path, user));
            }
            found
        };
        let mut left = Vec::new();
        for (path, user) in shard.call(visit).await? {
            let is_another = matches!(user, Some(FileUser::Another(_)));
            let removed = match user {
                Some(FileUser::Another(why) | FileUser::Unknown(why)) => Err(why),
                None => self.bays.remove_file(&path).await,
            };
            let shown = path.display();
            match removed {
                Ok(()) => {
                    tracing::info!("{shown} is removed: the making of pool {pool} was cut short");
                }
                Err(why) => {
                    tracing::warn!(
                        "the making of pool {pool} was cut short, and {shown} stays: {why}"
                    );
                    if !is_another {
                        left.push(path);
                    }
                }
            }
        }
        Ok(left)
    }
}

/// Takes the labels of a pool off a drive.
///
/// # Errors
/// Why it may have them still, and whether nothing is there.
async fn wipe<W: World>(
    state: &ShardState<W>,
    bays: &dyn DriveBays<W>,
    path: &Path,
    owner: &LabelOwner,
) -> Result<(), (String, bool)> {
    let opened = bays.open(path, &mut Patience::default()).await;
    let open = opened.map_err(|error| {
        let is_away = error.kind == NotOpenKind::NotFound;
        (error.context, is_away)
    })?;
    if bays.foreign(path).await.is_some() {
        return Ok(());
    }
    let drive = Rc::new(open.door(state));
    let is_its = |name: Option<&str>, uuid: Uuid| owner.has(name, uuid);
    let wiping = Lane::unlabel(state.world(), drive, is_its);
    match in_time(state.world(), WIPE_TIME, wiping).await {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err((error.to_string(), false)),
        None => Err((format!("it does not answer within {WIPE_TIME:?}"), false)),
    }
}

/// Who uses a file that was made for a pool; says why it may not be removed.
enum FileUser {
    /// Somebody has it open, or it does not answer.
    Unknown(String),
    /// Another pool, or another array: it is this pool's no more.
    Another(String),
}

/// Who else uses a file that was made for the pool `owner`, if anybody does.
async fn user_of<W: World>(
    state: &ShardState<W>,
    bays: &dyn DriveBays<W>,
    path: &Path,
    owner: &LabelOwner,
) -> Option<FileUser> {
    let open = match bays.open(path, &mut Patience::default()).await {
        Ok(open) => open,
        Err(error) => {
            let is_kept = matches!(error.kind, NotOpenKind::InUse | NotOpenKind::Silent);
            return is_kept.then_some(FileUser::Unknown(error.context));
        }
    };
    if let Some(why) = bays.foreign(path).await {
        return Some(FileUser::Another(why));
    }
    let label = Lane::probe(state.world(), &open.door(state)).await;
    let label = label.ok().flatten();
    let other = label.filter(|label| !owner.has(Some(&label.pool_name), label.pool_uuid))?;
    let why = format!("it is a drive of pool {}", other.pool_name);
    Some(FileUser::Another(why))
}
