//! Decides where new drives of pools may be, and which drives of before had those places.
//!
//! Invariants:
//! - A drive of another pool, open or not, is never placed, nor one of another array.
//! - Drives come from directories that the settings allow, and to where a drive of the pool was.

use super::placed::{Placed, Tenants};
use super::{AddedDrive, NewDrive, Recorded};
use crate::bays::DriveBays;
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane};
use engine::World;
use engine::pool::{MemberInfo, MemberState, PoolInfo};
use std::path::Path;
use std::sync::{Arc, Mutex};

impl<W: World> ControlPlane<W> {
    /// New drives for a pool, where they may be. The drive called `replaced` is about to go.
    ///
    /// # Errors
    /// One may not be there, or failed in another pool.
    pub(in crate::control) async fn place(
        self: &Arc<Self>,
        bays: &Arc<dyn DriveBays<W>>,
        info: &PoolInfo,
        new: Vec<NewDrive>,
        replaced: Option<&str>,
    ) -> Result<Recorded<W>, ArrayError> {
        for drive in &new {
            self.check_not_failed_elsewhere(&drive.name, &info.name)
                .await?;
        }
        let pools = self.pools().await?;
        let pools: Vec<PoolInfo> = pools.into_iter().map(|(_, pool)| pool).collect();
        let mut placed = Vec::new();
        for new in &new {
            let path = self.places().data().join(&new.path);
            placed.push(Arc::new(Placed {
                name: new.name.clone(),
                planned_bytes: planned_bytes(&**bays, info, new, &path).await,
                is_known: self.is_of_pool(&pools, &info.name, &path),
                tenants: self.tenants_at(&pools, &path, replaced),
                path,
                bays: Arc::clone(bays),
                opened: Mutex::default(),
            }));
        }
        self.check_placed(bays, info, &placed).await?;
        let kept_by = (Arc::clone(self), Arc::clone(bays));
        Ok(Recorded::new(kept_by, &info.name, &new, placed))
    }

    /// Whether the pool called `name` has a drive at `path`.
    fn is_of_pool(&self, pools: &[PoolInfo], name: &str, path: &Path) -> bool {
        let mut of_pool = pools.iter().filter(|info| info.name == name);
        of_pool.any(|info| self.places().has_at(info, path))
    }

    /// Who has the place at `path`, as far as open pools know.
    fn tenants_at(&self, pools: &[PoolInfo], path: &Path, replaced: Option<&str>) -> Tenants {
        let mut tenants = Tenants::default();
        for info in pools {
            let is_here = |member: &&MemberInfo| {
                let place = self.places().find_of(&info.name, &member.name);
                place.is_some_and(|place| place.path == path)
            };
            for member in info.members.iter().chain(&info.spares).filter(is_here) {
                let is_replaced = replaced == Some(member.name.as_str());
                if is_replaced {
                    tenants.replaced_bytes = Some(member.capacity_bytes);
                }
                match is_replaced || member.state == MemberState::Failed {
                    true => tenants.holder = Some(member.name.clone()),
                    false => {
                        let user = format!("drive {} of pool {}", member.name, info.name);
                        tenants.user = Some(user);
                    }
                }
            }
        }
        tenants
    }

    /// That drives may be where they are to be.
    async fn check_placed(
        &self,
        bays: &Arc<dyn DriveBays<W>>,
        info: &PoolInfo,
        placed: &[Arc<Placed<W>>],
    ) -> Result<(), ArrayError> {
        // Where a drive failed, another may come, though not over what somebody keeps there.
        let failed = self.departed_failures(info);
        let was_there = |path: &Path| failed.iter().any(|old| old.path.as_deref() == Some(path));
        let refused = |mark, drive: &Placed<W>, error: ArrayError| {
            bays.reached(mark);
            error.of_drive(&drive.name)
        };
        let may_be_anywhere = bays.planted("drive outside the allowed directories is placed");
        for drive in placed.iter().filter(|drive| !drive.is_known) {
            if !was_there(&drive.path) && !may_be_anywhere {
                let allowed = self.check_allowed(&**bays, &drive.path);
                allowed
                    .map_err(|error| refused("drive refused for its directory", drive, error))?;
            }
        }
        // Not before: whoever may add drives may not know of all files.
        for drive in placed {
            if !bays.planted("drive of another pool is placed") {
                let unused = self.check_unused(&drive.path, &info.name).await;
                unused.map_err(|error| refused("drive refused as another pool's", drive, error))?;
            }
            let foreign = bays.foreign(&drive.path).await;
            let is_ours = bays.planted("drive of another array is placed");
            if let Some(why) = foreign.filter(|_| !is_ours) {
                let error = ArrayError::new(ArrayErrorKind::Invalid, why);
                return Err(refused("drive refused as another array's", drive, error));
            }
        }
        Ok(())
    }

    /// Whether a new drive may be at `path`: the directory that it really is in is allowed. A
    /// link at `path` itself is followed, as those of `/dev/disk` are.
    ///
    /// # Errors
    /// It may not.
    pub fn check_allowed(&self, bays: &dyn DriveBays<W>, path: &Path) -> Result<(), ArrayError> {
        let allowed = self.places().allowed();
        if bays.is_below(path, &allowed) {
            return Ok(());
        }
        let allowed = allowed.iter().map(|at| at.display().to_string());
        let context = format!(
            "{}: drives may be added from {} only; `ashlar settings set api.drive_directories=DIR` \
             allows others",
            path.display(),
            allowed.collect::<Vec<_>>().join(", ")
        );
        Err(ArrayError::new(ArrayErrorKind::Invalid, context))
    }

    /// Takes all places but that of `new` off the record where a drive of its name was: it has
    /// replaced that one.
    pub(in crate::control) async fn forget_other_places(&self, pool: &str, new: &NewDrive) {
        let path = self.places().data().join(&new.path);
        let mut kept = self.places().added().clone();
        let all = kept.len();
        let is_other =
            |drive: &AddedDrive| drive.pool == pool && drive.name == new.name && drive.path != path;
        kept.retain(|drive| !is_other(drive));
        if kept.len() < all
            && let Err(error) = self.places().keep(kept).await
        {
            tracing::warn!("where drive {} was stays on record: {error}", new.name);
        }
    }
}

/// Bytes of the file that is to be made for a new drive, where none is.
async fn planned_bytes<W: World>(
    bays: &dyn DriveBays<W>,
    info: &PoolInfo,
    new: &NewDrive,
    path: &Path,
) -> Option<u64> {
    if new.is_device || bays.is_taken(path).await {
        return None;
    }
    let sizes = info.members.iter().map(|member| member.capacity_bytes);
    Some(new.size_bytes.or(sizes.max()).unwrap_or(0))
}
