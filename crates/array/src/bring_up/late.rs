//! Makes what the first start could not make, once the pools are open that came late.

use super::{StartError, volumes};
use crate::control::ControlPlane;
use crate::openings::{LateRounds, LateWork, Openings};
use crate::site_file;
use engine::World;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use site::Site;
use std::sync::{Arc, Weak};

/// The volumes that the first start could not make.
struct FirstStart<W: World> {
    /// None where nobody says which they are.
    site: Option<Site>,
    array: Weak<ControlPlane<W>>,
}

/// Rounds that look for what an array is without, which was to be as `site` says, if that is known.
pub fn late_rounds<W: World>(
    openings: &Arc<Openings<W>>,
    array: &Arc<ControlPlane<W>>,
    site: Option<Site>,
) -> LateRounds<W> {
    let work = FirstStart {
        site,
        array: Arc::downgrade(array),
    };
    LateRounds::new(Arc::clone(openings), array, Arc::new(work))
}

impl<W: World> LateWork for FirstStart<W> {
    fn complete(&self) -> BoxFuture<'_, Result<(), String>> {
        let completed = async {
            match (self.array.upgrade(), &self.site) {
                (Some(array), Some(site)) => complete(site, &array).await,
                _ => Ok(()),
            }
        };
        completed
            .map(|ended| ended.map_err(|error| error.to_string()))
            .boxed()
    }
}

/// Makes what the first start could not make.
async fn complete<W: World>(site: &Site, array: &Arc<ControlPlane<W>>) -> Result<(), StartError> {
    site_file::forget(site, array).await?;
    let renamed = site_file::renamed(site, array).await?;
    let followed = site_file::follow(site, &renamed);
    let mut plan = site_file::plan(&followed, array).await?;
    volumes::withhold_those_of_new_pools(&mut plan, &array.settings());
    site_file::tell_withheld(&plan);
    if !plan.steps.is_empty() {
        array
            .runtime()
            .reached("volumes of a first start made late");
    }
    volumes::make(plan, (site, &followed), array).await?;
    if array.closed_names().is_none() {
        array.settle_configuration(true).await?;
    }
    Ok(())
}
