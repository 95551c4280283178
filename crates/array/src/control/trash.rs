//! Deletes volumes, by way of the trash.
//!
//! Invariants:
//! - What is exported is not deleted, unless its export goes with it by force.
//! - What is in the trash keeps its pages until its time is over, somebody empties the
//!   trash, or its pool has no room left (`space_reclaim`).

use super::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume};
use crate::shard::ShardState;
use engine::pool::{EventKind, SNAPSHOT_MARK};
use engine::{Lane, World};
use std::rc::Rc;
use std::sync::Arc;

/// What came of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// The volume as it was.
    pub volume: PlacedVolume,
    /// Until when it is in the trash, in seconds since 1970; `None` when it is gone.
    pub until_unix_s: Option<u64>,
    /// Snapshots of it that stay.
    pub snapshots: Vec<String>,
    /// Clones of it that stay.
    pub clones: Vec<String>,
}

/// How to delete a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Its export goes as well, whoever uses it.
    pub by_force: bool,
    /// It does not pass the trash.
    pub at_once: bool,
    /// Nothing is deleted: it is only checked that it could be.
    pub only_check: bool,
}

impl<W: World> ControlPlane<W> {
    /// Deletes the volume called `name`, into the trash if there is one. What was taken
    /// from it stays as it is.
    ///
    /// # Errors
    /// No such volume, it is behind a target, reserved, or what the pool says.
    pub async fn delete_volume(
        self: &Arc<Self>,
        name: String,
        how: Deletion,
    ) -> Result<Deleted, ArrayError> {
        let all = self.volumes().await?;
        let there = all.iter().find(|volume| volume.info.name == name);
        let there = there.ok_or_else(|| ArrayError::no_volume(&name))?.clone();
        self.jobs.check_free(&name, None)?;
        let shown_by = match how.by_force {
            true => self.sole_target(&there)?,
            false => {
                self.check_unreserved(&there)?;
                self.check_not_shown(&there)?;
                None
            }
        };
        let called = |snapshots: bool| {
            let of = all.iter().filter(|other| other.is_of(&there));
            let of = of.filter(|other| other.is_snapshot() == snapshots);
            of.map(|other| other.info.name.clone()).collect()
        };
        let (snapshots, clones) = (called(true), called(false));
        if how.only_check {
            return Ok(Deleted {
                volume: there,
                until_unix_s: None,
                snapshots,
                clones,
            });
        }
        if let Some(target) = shown_by {
            self.delete_export(&target).await?;
        }
        let kept_s = self.trash_kept().as_secs();
        let until_unix_s = match how.at_once || kept_s == 0 {
            true => {
                self.delete_at_once(name).await?;
                None
            }
            false => Some(self.put_into_trash(name).await?.saturating_add(kept_s)),
        };
        Ok(Deleted {
            volume: there,
            until_unix_s,
            snapshots,
            clones,
        })
    }

    /// That no initiator has left a reservation, or an erasure, on a volume that nobody serves
    /// now.
    pub(super) fn check_unreserved(&self, there: &PlacedVolume) -> Result<(), ArrayError> {
        let name = &there.info.name;
        if there.properties.memo.is_empty() || self.lun_of(name, Some(there.info.uuid)).is_some() {
            return Ok(());
        }
        let context = format!(
            "volume {name} is not exported now, but initiators have left persistent reservations, \
             or a SANITIZE that has not ended, for when it is again: export it and clear them \
             there, or say --force"
        );
        Err(ArrayError::new(ArrayErrorKind::Busy, context))
    }

    /// The target that shows a volume, and no other.
    fn sole_target(&self, there: &PlacedVolume) -> Result<Option<String>, ArrayError> {
        let name = &there.info.name;
        let Some((target, _)) = self.lun_of(name, Some(there.info.uuid)) else {
            return Ok(None);
        };
        if self.export(&target)?.volumes.len() > 1 {
            let context = format!(
                "target {target} has volume {name} and others: `ashlar export remove-lun {target} \
                 {name}` first"
            );
            return Err(ArrayError::new(ArrayErrorKind::Busy, context));
        }
        Ok(Some(target))
    }

    /// That no target shows a volume.
    pub(super) fn check_not_shown(&self, there: &PlacedVolume) -> Result<(), ArrayError> {
        let name = &there.info.name;
        let Some((target, lun)) = self.lun_of(name, Some(there.info.uuid)) else {
            return Ok(());
        };
        let way = self.way_to_hide(&target, name)?;
        let context =
            format!("volume {name} is LUN {lun} of target {target}: `ashlar {way}` first");
        Err(ArrayError::new(ArrayErrorKind::Busy, context))
    }

    /// The command that has a target show a volume no more. A target has one LUN at least.
    pub(super) fn way_to_hide(&self, target: &str, volume: &str) -> Result<String, ArrayError> {
        Ok(match self.export(target)?.volumes.len() {
            1 => format!("export delete {target}"),
            _ => format!("export remove-lun {target} {volume}"),
        })
    }

    /// Deletes a volume with all its data.
    pub(super) async fn delete_at_once(self: &Arc<Self>, name: String) -> Result<(), ArrayError> {
        self.delete_at_once_for(name, None).await
    }

    /// As [`ControlPlane::delete_at_once`], for a job that is at work on it.
    pub async fn delete_at_once_for(
        self: &Arc<Self>,
        name: String,
        job: Option<u64>,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let there = array.unused(&name, job).await?;
            array.delete_now(there).await
        })
        .await
    }

    /// As above, for one whose turn it is, of a volume that nobody uses.
    pub(super) async fn delete_now(&self, there: PlacedVolume) -> Result<(), ArrayError> {
        let name = there.info.name.clone();
        let visit = move |_, pool: Lane<W>| async move { Ok(pool.delete_volume(&name).await?) };
        self.revoke(&there).await;
        self.with_lane(&there.pool, there.lane, visit).await?;
        self.forget_schedules(&there);
        Ok(())
    }

    /// Gives the time as of which the volume is in the trash.
    async fn put_into_trash(self: &Arc<Self>, name: String) -> Result<u64, ArrayError> {
        self.change(move |array| async move {
            let there = array.unused(&name, None).await?;
            let runtime = Arc::clone(&array.runtime);
            let visit = move |_, pool: Lane<W>| async move {
                let at = runtime.unix_s();
                pool.trash_volume(&name, at).await?;
                Ok(at)
            };
            array.revoke(&there).await;
            let at = array.with_lane(&there.pool, there.lane, visit).await?;
            array.forget_schedules(&there);
            Ok(at)
        })
        .await
    }

    /// Ends copies by token of a volume that goes.
    async fn revoke(&self, there: &PlacedVolume) {
        let revoked = self.offload.revoke_volume(there.info.uuid);
        self.turns.wait(&there.pool, revoked).await;
    }

    /// The volume called `name`, when nobody uses it, but `job`.
    async fn unused(&self, name: &str, job: Option<u64>) -> Result<PlacedVolume, ArrayError> {
        let there = self.volume(name).await?;
        self.jobs.check_free(name, job)?;
        self.check_not_shown(&there)?;
        Ok(there)
    }

    /// What is in the trash, what came in first at the front.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn trash(&self) -> Result<Vec<PlacedVolume>, ArrayError> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let visit = |state: Rc<ShardState<W>>| async move { trash_on(&state) };
            all.extend(shard.call(visit).await?);
        }
        all.sort_by_key(|volume| volume.properties.trashed_unix_s);
        Ok(all)
    }

    /// The volume in the trash that `name` is the name or the identity of; the one that
    /// came in last, when there are several.
    ///
    /// # Errors
    /// There is none, or a shard has stopped.
    pub async fn trashed(&self, name: &str) -> Result<PlacedVolume, ArrayError> {
        let is_it = |volume: &PlacedVolume| {
            volume.info.name == name || volume.info.uuid.to_string() == name
        };
        let found = self.trash().await?.into_iter().rfind(is_it);
        found.ok_or_else(|| {
            let kind = match name.contains(SNAPSHOT_MARK) {
                true => "snapshot",
                false => "volume",
            };
            ArrayError::not_there(&format!("{kind} {name} in the trash"), "trash list")
        })
    }

    /// Takes a volume out of the trash, under `new` or its old name.
    ///
    /// # Errors
    /// It is not there, the name is taken, or what the pool says.
    pub async fn recover_volume(
        self: &Arc<Self>,
        name: String,
        new: Option<String>,
    ) -> Result<PlacedVolume, ArrayError> {
        self.change(move |array| async move {
            let there = array.trashed(&name).await?;
            let new = new.map(|new| name_out_of_the_trash(&there, new));
            let called = new.as_ref().unwrap_or(&there.info.name).clone();
            if called != there.info.name {
                array.jobs.check_name_stays(&there.info.name)?;
            }
            array.check_names_free(&there, &called).await?;
            let before = there.info.name.clone();
            let uuid = there.info.uuid;
            let visit = move |_, pool: Lane<W>| async move {
                pool.recover_trashed(uuid, new.as_deref()).await?;
                let volume = pool.volume_of(uuid);
                let said = volume.map(|volume| (volume.info(), volume.properties()));
                said.ok_or_else(|| ArrayError::no_volume(&name))
            };
            let (info, properties) = array.with_lane(&there.pool, there.lane, visit).await?;
            let back = PlacedVolume {
                info,
                properties,
                ..there
            };
            array.learn_schedules(&back);
            if called != before {
                // Its snapshots may be exported.
                array.follow_identities(&before, &called).await;
            }
            array.runtime.reached("volume comes out of the trash");
            Ok(array.back_in_its_group(back).await)
        })
        .await
    }

    /// Deletes a volume that is in the trash, with all its data.
    ///
    /// # Errors
    /// It is not there, or what the pool says.
    pub async fn delete_trashed(self: &Arc<Self>, name: &str) -> Result<(), ArrayError> {
        let there = self.trashed(name).await?;
        self.delete_for_good(there, None).await
    }

    /// Empties the trash, and says how many volumes were in it. What others take out of it meanwhile
    /// is passed over.
    ///
    /// # Errors
    /// What the first that can't be deleted says.
    pub async fn empty_trash(self: &Arc<Self>) -> Result<u64, ArrayError> {
        let all = self.trash().await?;
        let ends_there = self
            .runtime
            .planted("emptying the trash ends at what others took out of it");
        let mut count = 0;
        for volume in all {
            match self.delete_for_good(volume, None).await {
                Ok(()) => count += 1,
                Err(error) if error.kind == ArrayErrorKind::NotFound && !ends_there => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Deletes a volume of the trash; where it goes without having been asked for, an event
    /// says why.
    pub(super) async fn delete_for_good(
        self: &Arc<Self>,
        there: PlacedVolume,
        why: Option<&'static str>,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let kind = there.kind();
            let mut trash = array.trash().await?.into_iter();
            let now = trash.find(|one| one.info.uuid == there.info.uuid);
            // It may have been out of the trash meanwhile, and has its time again.
            let since = now.map(|one| one.properties.trashed_unix_s);
            if why.is_some() && since != Some(there.properties.trashed_unix_s) {
                return Ok(());
            }
            let PlacedVolume { info, .. } = there;
            let visit = move |_, pool: Lane<W>| async move {
                pool.delete_trashed(info.uuid).await?;
                if let Some(why) = why {
                    let text = format!("{kind} '{}' is gone from the trash: {why}", info.name);
                    pool.tell(EventKind::Trash, text);
                }
                Ok(())
            };
            array.with_lane(&there.pool, there.lane, visit).await
        })
        .await
    }
}

/// What a volume is called that comes out of the trash as `new`. A snapshot is called by its volume,
/// whatever else it is called.
fn name_out_of_the_trash(there: &PlacedVolume, new: String) -> String {
    let volume = there.info.name.split_once(SNAPSHOT_MARK);
    match volume.filter(|_| there.is_snapshot()) {
        Some((volume, _)) => format!("{volume}{SNAPSHOT_MARK}{new}"),
        None => new,
    }
}

fn trash_on<W: World>(state: &ShardState<W>) -> Vec<PlacedVolume> {
    let pools = state.pools().into_iter();
    let placed = pools.flat_map(|pool| PlacedVolume::of(&pool, pool.trash()));
    placed.collect()
}
