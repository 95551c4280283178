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
pub use renamed::{follow, renamed_as_shown};
pub(crate) use renamed::{forget, renamed};
pub use settings::OF_FILES;
pub(crate) use volumes::{make, name_of, plan, tell, tell_withheld};
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
    let followed = renamed::follow(site, &renamed_as_shown(site, array).await?);
    let before = differences(&followed, array).await?;
    let mut failed = settings::apply(&followed, array, is_owner).await;
    failed.extend(portals::regroup(&followed, array).await);
    failed.extend(pools::apply_pools(&followed, (array, openings), is_owner).await);
    failed.extend(apply_volumes((site, &followed), array).await?);
    failed.extend(reconcile::apply(&followed, array).await?);
    failed.extend(access::apply(&followed, array).await);
    let after = differences(&followed, array).await?;
    let outcome = outcome(&before, &after, &failed);
    for Difference { what, how, .. } in &outcome.done {
        tracing::info!("the site file is applied: {what}: {how}");
    }
    if outcome.left.is_empty() && !outcome.done.is_empty() {
        let mark = "site file applied, and nothing left";
        array.runtime().reached(mark);
    }
    Ok(outcome)
}

/// Makes and grows volumes of a site file, as it was written and as it is followed. Gives those that
/// could not be, and why.
async fn apply_volumes<W: World>(
    (written, followed): (&Site, &Site),
    array: &Arc<ControlPlane<W>>,
) -> Result<Vec<(String, String)>, ArrayError> {
    let mut failed = Vec::new();
    let plan = volumes::plan(followed, array).await?;
    volumes::tell_withheld(&plan);
    for step in plan.steps {
        let name = volumes::name_of(&step);
        let what = format!("volume {name}");
        let made = volumes::make(step, (written, followed), array).await;
        failed.extend(made.err().map(|error| (what, error.context)));
    }
    Ok(failed)
}

/// What came of an application: what was to be done `before`, and is not any more.
fn outcome(before: &[Difference], after: &[Difference], failed: &[(String, String)]) -> Outcome {
    let is_to_do = |difference: &&Difference| difference.action != Action::Keep;
    let mut outcome = Outcome {
        done: Vec::new(),
        left: Vec::new(),
    };
    for difference in before.iter().filter(is_to_do).cloned() {
        let what = &difference.what;
        let about = failed.iter().filter(|(failed, _)| failed == what);
        let said: Vec<&str> = about.map(|(_, why)| why.as_str()).collect();
        let mut still = after.iter().filter(is_to_do);
        match (still.any(|other| other.what == *what), said.is_empty()) {
            (false, true) => outcome.done.push(difference),
            (true, true) => outcome.left.push(Unsettled {
                difference,
                why: "something else is in its way; see the log".to_owned(),
            }),
            (_, false) => outcome.left.push(Unsettled {
                why: said.join("; "),
                difference,
            }),
        }
    }
    outcome.left.extend(unexpected(before, failed));
    outcome
}

/// What could not be, and was not to be done `before`: something was changed meanwhile.
fn unexpected(before: &[Difference], failed: &[(String, String)]) -> Vec<Unsettled> {
    let is_to_do = |difference: &&Difference| difference.action != Action::Keep;
    let is_new = |what: &str| {
        let mut to_do = before.iter().filter(is_to_do);
        to_do.all(|difference| difference.what != what)
    };
    let new = failed.iter().filter(|(what, _)| is_new(what));
    new.map(|(what, why)| Unsettled {
        difference: Difference {
            action: Action::Change,
            what: what.clone(),
            how: "was changed while the file was applied".to_owned(),
        },
        why: why.clone(),
    })
    .collect()
}
