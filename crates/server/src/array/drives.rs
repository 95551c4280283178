//! What is done to drives and pools while they serve: drives taken out of use, added
//! and replaced, and scrubs.

use super::places::{NewDrive, Placed};
use super::{Array, ArrayError, ArrayErrorKind};
use crate::shard::ShardState;
use engine::pool::{MemberInfo, MemberState, Pool, PoolInfo};
use std::rc::Rc;
use std::sync::Arc;
use world::real::RealWorld;

impl Array {
    /// Takes a drive out of use; a spare is free then, and forgotten.
    ///
    /// # Errors
    /// No such drive, or its pool can't do without it.
    pub async fn fail_drive(self: &Arc<Self>, name: String) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let (info, member) = array.drive(&name).await?;
            array.check_dispensable(&info.name, &member).await?;
            // Not by name: another may come to its place under the same one.
            let name = match info.lanes {
                1 => name,
                _ => member.uuid.to_string(),
            };
            let visit = |_, pool: Pool<RealWorld>| async move { Ok(pool.fail_drive(&name).await?) };
            array.with_pool_backwards(&info.name, visit).await
        })
        .await?;
        self.watch_departures();
        Ok(())
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
            let (_, info) = array.pool(&pool).await?;
            // One that has failed may come back under its name.
            let has_failed = |member: &MemberInfo| {
                member.name == new.name && member.state == MemberState::Failed
            };
            if !info.members.iter().any(has_failed) {
                array.check_free(&new.name).await?;
            }
            let take = |state: Rc<ShardState>, pool: Pool<RealWorld>, placed: Vec<Placed>| async move {
                for drive in placed {
                    pool.add_spare(drive.open(&state, &pool).await?).await?;
                }
                Ok(())
            };
            array.bring_in(&info, vec![new], None, take).await
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
                Some(new) => new,
                None => NewDrive {
                    size_bytes: Some(member.capacity_bytes),
                    name: name.clone(),
                    ..array.place_of(&name)?
                },
            };
            if new.name != name {
                array.check_free(&new.name).await?;
            }
            array.check_dispensable(&info.name, &member).await?;
            let old = match info.lanes {
                1 => name.clone(),
                _ => member.uuid.to_string(),
            };
            let take = |state: Rc<ShardState>, pool: Pool<RealWorld>, placed: Vec<Placed>| async move {
                for drive in placed {
                    put_in_place(&state, &pool, &old, drive).await?;
                }
                Ok(())
            };
            array.bring_in(&info, vec![new], Some(&name), take).await
        })
        .await
    }

    /// Begins or ends a scrub.
    ///
    /// # Errors
    /// No such pool, or it has stopped.
    pub async fn scrub(self: &Arc<Self>, pool: &str, wanted: bool) -> Result<(), ArrayError> {
        let visit = move |_, pool: Pool<RealWorld>| async move {
            match wanted {
                true => pool.start_scrub()?,
                false => pool.stop_scrub(),
            }
            Ok(())
        };
        self.with_pool(pool, visit).await
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

    /// That every lane of a pool could do without a drive: one that can't would be found
    /// after others have let it go.
    async fn check_dispensable(&self, pool: &str, member: &MemberInfo) -> Result<(), ArrayError> {
        let name = member.uuid.to_string();
        let visit = |_, pool: Pool<RealWorld>| async move {
            match pool.has_drive(&name) {
                true => Ok(pool.can_do_without(&name)?),
                false => Ok(()),
            }
        };
        self.with_pool(pool, visit).await
    }

    /// What is now where a drive was.
    fn place_of(&self, name: &str) -> Result<NewDrive, ArrayError> {
        let place = self.drives.find(name).ok_or_else(|| {
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

    /// That no drive has this name.
    pub(crate) async fn check_free(&self, name: &str) -> Result<(), ArrayError> {
        match self.drive(name).await {
            Err(error) if error.kind == ArrayErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok((info, _)) => {
                let pool = info.name;
                let context =
                    format!("there is a drive {name} already, in pool {pool}; choose another name");
                Err(ArrayError::new(ArrayErrorKind::Exists, context))
            }
        }
    }
}

/// Has `new` stand in for the drive called `old`, which may hold its place.
async fn put_in_place(
    state: &ShardState,
    pool: &Pool<RealWorld>,
    old: &str,
    new: Placed,
) -> Result<(), ArrayError> {
    match new.clone().open(state, pool).await {
        Ok(drive) => Ok(pool.replace_drive(old, drive).await?),
        // Then the old one goes first.
        Err(error) if error.kind == ArrayErrorKind::Busy && new.is_held_by(old) => {
            pool.fail_drive(old).await?;
            Ok(pool.add_spare(new.open(state, pool).await?).await?)
        }
        Err(error) => Err(error),
    }
}
