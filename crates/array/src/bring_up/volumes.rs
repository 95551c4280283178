//! Makes the volumes of the site file at the first start, or as soon as that can be.

use super::{StartError, StartErrorKind};
use crate::control::{ArrayErrorKind, ControlPlane};
use crate::overcommitment::{Sizes, warnings};
use crate::site_file;
use engine::World;
use site::Site;
use site::diff::{Step, VolumePlan};
use std::sync::Arc;

/// Makes the volumes of the site file, as it was `written` and as it is followed, and has them be what
/// it says.
///
/// # Errors
/// What the first one that can't be made says.
pub(super) async fn make<W: World>(
    plan: VolumePlan,
    (written, site): (&Site, &Site),
    array: &Arc<ControlPlane<W>>,
) -> Result<(), StartError> {
    for step in plan.steps {
        let what = site_file::name_of(&step).to_owned();
        match site_file::make(step, (written, site), array).await {
            Ok(()) => {}
            // A job that was interrupted goes on with it, as it is. That is no reason not to
            // serve the others.
            Err(error) if error.kind == ArrayErrorKind::Busy => {
                tracing::warn!("volume {what} is left as it is: {error}");
            }
            Err(error) => {
                let context = format!("volume {what}: {error}");
                return Err(StartError::new(StartErrorKind::Volume, context));
            }
        }
    }
    site_file::apply_attributes(site, array).await?;
    Ok(())
}

/// Does not make the volumes of pools that are not in the settings of the array: such a pool came into the
/// site file later, or is no more.
pub(super) fn withhold_those_of_new_pools(plan: &mut VolumePlan, settings: &Site) {
    let steps = std::mem::take(&mut plan.steps).into_iter();
    for step in steps {
        match step {
            Step::Create(volume) if settings.pool(&volume.pool).is_none() => {
                let pool = &volume.pool;
                let why = format!(
                    "is of pool {pool}, which the array does not have: `ashlar site apply` makes what is \
                     missing"
                );
                plan.withheld.push((volume.name, why));
            }
            step => plan.steps.push(step),
        }
    }
}

/// Says in the log which pools have more volumes than they can hold.
pub(super) async fn tell_overcommitted<W: World>(
    array: &ControlPlane<W>,
) -> Result<(), StartError> {
    let volumes = array.volumes().await?;
    for (_, pool) in array.pools().await? {
        let ours = volumes.iter().filter(|volume| volume.pool == pool.name);
        let sizes = ours.map(|volume| (&volume.info.name[..], volume.info.size_bytes));
        let place = (&pool.name[..], pool.capacity_bytes);
        for warning in warnings(place, &Sizes::new(), &sizes.collect()) {
            tracing::warn!("{warning}");
        }
    }
    Ok(())
}
