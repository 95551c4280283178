//! Adds spares, and puts new drives in the places of others.

use super::{NewDrive, WaitingReplacement};
use crate::bays::DriveBays;
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane, KnownDrive};
use engine::World;
use engine::pool::{MemberInfo, MemberState, PoolInfo};
use std::sync::Arc;
use std::time::Duration;

/// How often, and how far apart, is looked for the drive that stands in.
const STAND_IN_LOOKS: u32 = 60;
const STAND_IN_PAUSE: Duration = Duration::from_millis(50);
/// After so many looks at a drive that waits for a rebuild, it does.
const WAITING_LOOKS: u32 = 10;

/// What came of replacing a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Name of the pool that both drives are of.
    pub pool: String,
    /// Name of the new drive.
    pub new: String,
    /// Name of the drive that has the place of the old one; none while nothing has, and of a spare.
    pub stands_in: Option<String>,
    /// Name of the drive whose rebuild has to end before one gets the place.
    pub waits_for: Option<String>,
    /// The old drive answers, and is copied to the new one before it leaves.
    pub is_copied: bool,
}

impl<W: World> ControlPlane<W> {
    /// Adds a drive that stands in for one that fails, or has failed.
    ///
    /// # Errors
    /// No such pool; the name or the drive is taken; it is too small or not there.
    pub async fn add_spare(
        self: &Arc<Self>,
        pool: String,
        new: NewDrive,
        bays: &Arc<dyn DriveBays<W>>,
    ) -> Result<(), ArrayError> {
        let bays = Arc::clone(bays);
        self.change(move |array| async move {
            let (_, info) = array.pool(&pool).await?;
            // One that has failed may come back under its name.
            let has_failed = |member: &MemberInfo| {
                member.name == new.name && member.state == MemberState::Failed
            };
            if !info.members.iter().any(has_failed) {
                array.check_free(&new.name).await?;
            }
            let placed = array.place(&bays, &info, vec![new.clone()], None);
            array
                .pool_of(&pool)?
                .add_spares(None, &placed.await?)
                .await?;
            array.forget_other_places(&pool, &new).await;
            Ok(())
        })
        .await?;
        self.note_drives_and_warn().await;
        // The settings may name the place of a failed drive with its name.
        self.follow_departures().await;
        Ok(())
    }

    /// Puts `new` in the place of the drive called `name`; without it, whatever is now
    /// where that drive was.
    ///
    /// # Errors
    /// As [`ControlPlane::fail_drive`] and [`ControlPlane::add_spare`].
    pub async fn replace_drive(
        self: &Arc<Self>,
        name: String,
        new: Option<NewDrive>,
        bays: &Arc<dyn DriveBays<W>>,
    ) -> Result<Replaced, ArrayError> {
        let bays = Arc::clone(bays);
        let changed = self.change(move |array| async move {
            match array.drive(&name).await {
                Ok((info, member)) => array.replace_member(info, member, (new, bays)).await,
                Err(error) if error.kind == ArrayErrorKind::NotFound => {
                    match array.departed_failure(&name).await? {
                        Some((info, old)) => array.replace_departed(info, old, (new, bays)).await,
                        None => Err(error),
                    }
                }
                Err(error) => Err(error),
            }
        });
        let (old, new, is_copied) = changed.await?;
        self.drive_is_replaced(&old.uuid).await;
        let stands_in = match old.is_spare() || is_copied {
            true => None,
            false => self.wait_stand_in(&old).await,
        };
        if let Err(error) = self.settle_settings().await {
            tracing::warn!("the settings name drive {} still: {error}", old.name);
        }
        self.follow_departures().await;
        let waits_for = match is_copied || stands_in.is_some() {
            true => None,
            false => self.rebuild_before(&old).await,
        };
        Ok(Replaced {
            pool: old.pool,
            new,
            stands_in,
            waits_for,
            is_copied,
        })
    }

    /// Replaces a drive that its pool has. Gives it, the name of the new one, and whether it is copied
    /// first.
    async fn replace_member(
        self: &Arc<Self>,
        info: PoolInfo,
        member: MemberInfo,
        (new, bays): (Option<NewDrive>, Arc<dyn DriveBays<W>>),
    ) -> Result<(KnownDrive, String, bool), ArrayError> {
        let name = member.name.clone();
        let new = match new {
            // A file is made as large as the drive that it replaces.
            Some(new) => NewDrive {
                size_bytes: new.size_bytes.or(Some(member.capacity_bytes)),
                ..new
            },
            None => NewDrive {
                size_bytes: Some(member.capacity_bytes),
                name: name.clone(),
                ..self.place_of(&name)?
            },
        };
        if new.name != name {
            self.check_free(&new.name).await?;
        }
        let pool = self.pool_of(&info.name)?;
        let placed = self.place(&bays, &info, vec![new.clone()], Some(&name));
        let is_copied = pool.replace_drive(&member, &placed.await?).await?;
        self.forget_other_places(&info.name, &new).await;
        Ok((KnownDrive::new(&info, &member), new.name, is_copied))
    }

    /// Adds a drive in the stead of one that has failed, and that another stands in for. Gives
    /// that one, and the name of the new one.
    async fn replace_departed(
        self: &Arc<Self>,
        info: PoolInfo,
        old: KnownDrive,
        (new, bays): (Option<NewDrive>, Arc<dyn DriveBays<W>>),
    ) -> Result<(KnownDrive, String, bool), ArrayError> {
        let new = match (new, &old.path) {
            (Some(new), _) => NewDrive {
                size_bytes: new.size_bytes.or(Some(old.capacity_bytes)),
                ..new
            },
            (None, Some(path)) => NewDrive {
                name: old.name.clone(),
                path: path.clone(),
                is_device: old.is_device,
                size_bytes: Some(old.capacity_bytes),
            },
            (None, None) => self.place_of(&old.name)?,
        };
        if new.name != old.name {
            self.check_free(&new.name).await?;
        }
        let pool = self.pool_of(&info.name)?;
        let group = (!old.is_spare()).then_some(old.group);
        let placed = self.place(&bays, &info, vec![new.clone()], None);
        pool.add_spares(group, &placed.await?).await?;
        self.forget_other_places(&info.name, &new).await;
        Ok((old, new.name, false))
    }

    /// The drive that comes to have the place of `old`. It takes a moment.
    async fn wait_stand_in(&self, old: &KnownDrive) -> Option<String> {
        let mut waiting_looks = 0;
        for _ in 0..STAND_IN_LOOKS {
            let (_, info) = self.pool(&old.pool).await.ok()?;
            if let Some(member) = old.stand_in(&info) {
                return Some(member.name.clone());
            }
            waiting_looks +=
                u32::from(WaitingReplacement::of(&info, (old.group, old.place)).is_some());
            if waiting_looks == WAITING_LOOKS {
                return None;
            }
            self.runtime.sleep(STAND_IN_PAUSE).await;
        }
        None
    }

    /// The drive whose rebuild the replacement of `old` waits for.
    async fn rebuild_before(&self, old: &KnownDrive) -> Option<String> {
        let (_, info) = self.pool(&old.pool).await.ok()?;
        let waiting = WaitingReplacement::of(&info, (old.group, old.place))?;
        Some(waiting.rebuilding.to_owned())
    }

    /// What is now where a drive was.
    fn place_of(&self, name: &str) -> Result<NewDrive, ArrayError> {
        let place = self.places().find(name).ok_or_else(|| {
            let context = format!(
                "where drive {name} was is not known: say what replaces it, with --file or --device"
            );
            ArrayError::new(ArrayErrorKind::Invalid, context)
        })?;
        Ok(NewDrive {
            name: place.name,
            path: place.path,
            is_device: place.is_device,
            size_bytes: None,
        })
    }
}
