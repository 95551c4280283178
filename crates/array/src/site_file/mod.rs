//! Compares a site file with an array, and changes the array to match.
//!
//! Invariants:
//! - Only somebody who asks applies a file; a start does it once, before anything is there.
//! - Nothing is deleted, shrunk or moved. What the file does not name stays.
//! - Who may log in to a target that the file describes is what the file says, whole.

mod access;
mod pools;
mod portals;
mod reconcile;
mod renamed;
mod settings;
mod volumes;
mod whole;

pub(crate) use access::configuration;
pub(crate) use reconcile::apply as apply_attributes;
pub(crate) use renamed::forget;
pub use renamed::{follow, renamed};
pub use settings::OF_FILES;
pub(crate) use volumes::{make, name_of, plan, tell};
pub use whole::{left_out, site_of};

use crate::control::{ArrayError, ControlPlane};
use crate::openings::Openings;
use engine::World;
use site::Site;
use std::sync::Arc;

/// What becomes of a difference when the file is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is made.
    Create,
    /// It is changed.
    Change,
    /// It stays as it is.
    Keep,
}

/// Something that a site file says and the array is not, or the other way round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub action: Action,
    /// The thing, such as "target iqn.…".
    pub what: String,
    /// How it differs, for people.
    pub how: String,
}

/// A difference that could not be settled, and why.
#[derive(Debug)]
pub struct Unsettled {
    pub difference: Difference,
    pub why: String,
}

/// What came of an application.
#[derive(Debug)]
pub struct Outcome {
    /// The differences that are settled.
    pub done: Vec<Difference>,
    /// Those that are still there.
    pub left: Vec<Unsettled>,
}

/// Where the array is not what `site` says, which has the names that volumes have now
/// ([`follow`]).
///
/// # Errors
/// A shard has stopped.
pub async fn differences<W: World>(
    site: &Site,
    array: &ControlPlane<W>,
) -> Result<Vec<Difference>, ArrayError> {
    let mut found = settings::differences(site, array);
    found.extend(portals::differences(site, array));
    found.extend(pools::pools(site, array).await?);
    found.extend(volumes::differences(site, array).await?);
    found.extend(reconcile::differences(site, array).await?);
    found.extend(access::differences(site, &array.configuration()));
    Ok(found)
}

/// Has the array be what `site` says. What can't be is no reason to leave the rest. Where files are,
/// only the owner of the array may say.
///
/// # Errors
/// A shard has stopped.
pub async fn apply<W: World>(
    site: &Site,
    (array, openings): (&Arc<ControlPlane<W>>, &Arc<Openings<W>>),
    is_owner: bool,
) -> Result<Outcome, ArrayError> {
    renamed::forget(site, array).await?;
    let site = &renamed::follow(site, &renamed(site, array).await?);
    let before = differences(site, array).await?;
    let mut failed = settings::apply(site, array, is_owner).await;
    failed.extend(portals::apply(site, array).await);
    failed.extend(pools::apply_pools(site, (array, openings), is_owner).await);
    for step in volumes::plan(site, array).await?.steps {
        let what = format!("volume {}", volumes::name_of(&step));
        let made = volumes::make(step, site, array).await;
        failed.extend(made.err().map(|error| (what, error.context)));
    }
    failed.extend(reconcile::apply(site, array).await?);
    failed.extend(access::apply(site, array).await);
    let after = differences(site, array).await?;
    let is_to_do = |difference: &&Difference| difference.action != Action::Keep;
    let (left, done): (Vec<Difference>, Vec<Difference>) = before
        .into_iter()
        .filter(|difference| is_to_do(&difference))
        .partition(|difference| {
            let mut still = after.iter().filter(is_to_do);
            still.any(|other| other.what == difference.what)
        });
    let why = |difference: &Difference| {
        let about = failed.iter().filter(|(what, _)| *what == difference.what);
        let said: Vec<&str> = about.map(|(_, why)| why.as_str()).collect();
        match said.is_empty() {
            true => "something else is in its way; see the log".to_owned(),
            false => said.join("; "),
        }
    };
    for difference in &done {
        tracing::info!(
            "the site file is applied: {}: {}",
            difference.what,
            difference.how
        );
    }
    let unsettled = |difference: Difference| Unsettled {
        why: why(&difference),
        difference,
    };
    Ok(Outcome {
        left: left.into_iter().map(unsettled).collect(),
        done,
    })
}
