//! A site file, applied to an array: what it says that the array is not, and having it be so.
//!
//! Invariants:
//! - Only somebody who asks applies a file; a start does it once, before anything is there.
//! - Nothing is deleted, shrunk or moved. What the file does not name stays.
//! - Who may log in to a target that the file describes is what the file says, whole.

mod access;
mod renamed;
mod said;
mod volumes;

pub(crate) use access::configuration;
pub(crate) use renamed::{follow, forget, renamed};
pub(crate) use said::apply as apply_words;

use crate::array::{Array, ArrayError, differences_from};
use engine::pool::PoolInfo;
use site::Site;
use std::sync::Arc;

pub(crate) use volumes::{make, name_of, plan, tell};

/// What becomes of a difference when the file is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It is made.
    Create,
    /// It is changed.
    Change,
    /// It stays as it is.
    Keep,
}

/// Something that a site file says and the array is not, or the other way round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) action: Action,
    /// The thing, such as "target iqn.…".
    pub(crate) what: String,
    /// How it differs, for people.
    pub(crate) how: String,
}

/// A difference that could not be settled, and why.
pub(crate) struct Unsettled {
    pub(crate) difference: Difference,
    pub(crate) why: String,
}

/// What came of an application.
pub(crate) struct Outcome {
    /// The differences that are settled.
    pub(crate) done: Vec<Difference>,
    /// Those that are still there.
    pub(crate) left: Vec<Unsettled>,
}

/// Where the array is not what `site` says, which has the names that volumes have now
/// ([`follow`]).
///
/// # Errors
/// A shard has stopped.
pub(crate) async fn differences(site: &Site, array: &Array) -> Result<Vec<Difference>, ArrayError> {
    let mut found = portals(site, array);
    found.extend(pools(site, array).await?);
    found.extend(volumes::differences(site, array).await?);
    found.extend(said::differences(site, array).await?);
    found.extend(access::differences(site, &array.configuration()));
    Ok(found)
}

/// Has the array be what `site` says. What can't be is no reason to leave the rest.
///
/// # Errors
/// A shard has stopped.
pub(crate) async fn apply(site: &Site, array: &Arc<Array>) -> Result<Outcome, ArrayError> {
    renamed::forget(site, array).await?;
    let site = &renamed::follow(site, &renamed(site, array).await?);
    let before = differences(site, array).await?;
    let mut failed: Vec<(String, String)> = Vec::new();
    for step in volumes::plan(site, array).await?.steps {
        let what = format!("volume {}", volumes::name_of(&step));
        let made = volumes::make(step, site, array).await;
        failed.extend(made.err().map(|error| (what, error.context)));
    }
    failed.extend(said::apply(site, array).await?);
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

/// Pools that are not there, and those that are not what the file says.
async fn pools(site: &Site, array: &Array) -> Result<Vec<Difference>, ArrayError> {
    let there = array.pools().await?;
    let mut found = Vec::new();
    for pool in &site.pools {
        let what = format!("pool {}", pool.name);
        let kept = |how: String| Difference {
            action: Action::Keep,
            what: what.clone(),
            how,
        };
        match there.iter().find(|(_, info)| info.name == pool.name) {
            Some((_, info)) => found.extend(differences_from(pool, info).into_iter().map(kept)),
            None if array.is_closed(&pool.name) => {
                found.push(kept("is not open; see ashlar status".to_owned()));
            }
            None => found.push(kept(absent(pool, &there))),
        }
    }
    let described = |name: &str| site.pool(name).is_some();
    let others = there.iter().filter(|(_, info)| !described(&info.name));
    found.extend(others.map(|(_, info)| Difference {
        action: Action::Keep,
        what: format!("pool {}", info.name),
        how: "is not in the site file: the next start leaves it alone".to_owned(),
    }));
    Ok(found)
}

/// What is to be said of a pool that is not there.
fn absent(pool: &site::Pool, there: &[(usize, PoolInfo)]) -> String {
    let user = |drive: &String| {
        let has = |info: &PoolInfo| {
            let mut all = info.members.iter().chain(&info.spares);
            all.any(|member| member.name == *drive)
        };
        there.iter().find(|(_, info)| has(info))
    };
    let used = pool.drives().find_map(|drive| Some((drive, user(drive)?)));
    match used {
        None => "is not there: the next start makes it".to_owned(),
        Some((drive, (_, other))) => format!(
            "is not there, and can't be made: drive {drive} is of pool {}",
            other.name
        ),
    }
}

/// Portals are opened at a start.
fn portals(site: &Site, array: &Array) -> Vec<Difference> {
    let open: Vec<_> = array.directory().portals();
    // With one instead of all that are described, nothing can be said.
    if open.iter().any(|portal| portal.described.is_none()) {
        return Vec::new();
    }
    let is_open = |address| open.iter().any(|portal| portal.described == Some(address));
    let new = site.portals.iter().map(|portal| portal.address);
    let new = new.filter(|address| !is_open(*address));
    let new = new.map(|address| (address, "is not open: the next start opens it"));
    let described = |address| site.portals.iter().any(|portal| portal.address == address);
    let old = open.iter().filter_map(|portal| portal.described);
    let old = old.filter(|address| !described(*address));
    let old = old.map(|address| {
        (
            address,
            "is not in the site file: the next start leaves it out",
        )
    });
    let difference = |(address, how): (std::net::SocketAddr, &str)| Difference {
        action: Action::Keep,
        what: format!("portal {address}"),
        how: how.to_owned(),
    };
    new.chain(old).map(difference).collect()
}
