//! What faults and administrators do to drives.

use super::POOL;
use super::oracle::Oracle;
use super::places::{Fit, Offer, Places, Tenants, some_of};
use crate::control::UNWRITTEN;
use array::control::{ArrayError, ControlPlane, NewGroup};
use array::openings::Openings;
use base::Prng;
use engine::Level;
use engine::pool::GroupRole;
use std::path::Path;
use std::sync::Arc;
use world_sim::SimWorld;

/// One of them.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// The pool itself finds that it has to do without the drive.
    Fault {
        name: String,
    },
    Fail {
        name: String,
    },
    AddSpare {
        new: Offer,
    },
    Replace {
        name: String,
        new: Offer,
    },
    /// By whatever is in its place now.
    Renew {
        name: String,
        new: Offer,
    },
    Remove {
        name: String,
    },
    AddGroup {
        level: Level,
        new: Vec<Offer>,
    },
    ConvertGroup {
        index: u16,
        level: Level,
    },
    /// These are its drives.
    RemoveGroup {
        index: u16,
        drives: Vec<String>,
    },
}

/// What came of it, as far as who asked knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The power went.
    Open,
    /// A record could not be written.
    Unwritten,
    Done,
    Refused(ArrayError),
}

impl Outcome {
    pub(super) fn of(done: Result<(), ArrayError>) -> Self {
        match done {
            Ok(()) => Outcome::Done,
            Err(error) if error.context.contains(UNWRITTEN) => Outcome::Unwritten,
            Err(error) => Outcome::Refused(error),
        }
    }

    /// Whether somebody was told that it is not done.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self, Outcome::Unwritten | Outcome::Refused(_))
    }

    /// After a restart: what could not be written may be on media all the same.
    pub(super) fn forget_failure(&mut self) {
        if *self == Outcome::Unwritten {
            *self = Outcome::Open;
        }
    }
}

impl Request {
    /// The drives that it is about.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Request::Fault { name } | Request::Fail { name } | Request::Remove { name } => {
                vec![name.clone()]
            }
            Request::AddSpare { new } => new.names().collect(),
            Request::Replace { name, new } | Request::Renew { name, new } => {
                new.names().chain([name.clone()]).collect()
            }
            Request::AddGroup { new, .. } => new.iter().flat_map(Offer::names).collect(),
            Request::ConvertGroup { .. } => Vec::new(),
            Request::RemoveGroup { drives, .. } => drives.clone(),
        }
    }

    /// The new drives that somebody offers.
    pub(super) fn offers(&self) -> &[Offer] {
        match self {
            Request::AddSpare { new }
            | Request::Replace { new, .. }
            | Request::Renew { new, .. } => std::slice::from_ref(new),
            Request::AddGroup { new, .. } => new,
            _ => &[],
        }
    }

    /// The places of these.
    pub(super) fn paths(&self) -> Vec<&Path> {
        let offers = self.offers().iter();
        offers.map(|offer| offer.drive.path.as_path()).collect()
    }

    /// What is wrong with the end of it, as far as places of new drives are concerned.
    pub(super) fn wrong_with(&self, outcome: &Outcome) -> Option<String> {
        let offers = self.offers();
        let barred = offers.iter().find_map(|offer| match offer.fit {
            Fit::Barred(kind) => Some((kind, &offer.drive)),
            _ => None,
        });
        match (outcome, barred) {
            (Outcome::Done, Some((_, drive))) => Some(format!("{drive:?} is taken")),
            (Outcome::Refused(error), Some((kind, drive)))
                if matches!(self, Request::AddSpare { .. }) && error.kind != kind =>
            {
                Some(format!("{drive:?} is refused, not for {kind:?}: {error:?}"))
            }
            (Outcome::Refused(error), _) => {
                let mut free = offers.iter().filter(|offer| offer.is_free());
                let named = free.find(|offer| offer.is_named_in(&error.context))?;
                Some(format!("{:?} is free: {error:?}", named.drive))
            }
            _ => None,
        }
    }
}

/// Draws a request to an array that is so; none where there is nothing to ask for.
pub(super) fn draw(
    prng: &mut Prng,
    oracle: &Oracle,
    (places, tenants): (&Places, &Tenants),
) -> Option<Request> {
    let (there, told) = (oracle.in_pool(), oracle.told());
    let one = |prng: &mut Prng, of: &[String]| some_of(prng, of).cloned();
    Some(match prng.below(11) {
        0..=2 => Request::Fault {
            name: one(prng, &there)?,
        },
        3 => Request::Fail {
            name: one(prng, &[there, told].concat())?,
        },
        4..=6 => {
            let new = places.some(prng, tenants)?;
            match prng.chance(1, 4) {
                true => Request::AddSpare {
                    new: new.called(one(prng, &told)?),
                },
                false => Request::AddSpare { new },
            }
        }
        7 => {
            let name = one(prng, &[there, told].concat())?;
            let new = places.some(prng, tenants)?.in_stead_of(&name);
            Request::Replace { name, new }
        }
        8 => Request::Remove {
            name: one(prng, &told)?,
        },
        9 => return renewal(prng, &there, (places, tenants)),
        _ => Request::Remove {
            name: one(prng, &[there, told].concat())?,
        },
    })
}

/// Has a drive be replaced by what is in its place.
fn renewal(
    prng: &mut Prng,
    there: &[String],
    (places, tenants): (&Places, &Tenants),
) -> Option<Request> {
    if let Some(old) = some_of(prng, &tenants.departed).filter(|_| prng.chance(2, 3)) {
        let (name, path) = (old.name.clone(), old.path.as_ref()?);
        let new = places.where_one_failed(prng, (name.clone(), path), tenants)?;
        return Some(Request::Renew { name, new });
    }
    let name = some_of(prng, there)?.clone();
    let mut known = tenants.taken.iter();
    let (_, path) = known.find(|(taken, _)| *taken == name)?;
    let new = places.own(&name, path);
    Some(Request::Renew { name, new })
}

/// Does it, and waits for its end.
///
/// # Errors
/// What the array says.
pub(super) async fn perform(
    (array, openings): (&Arc<ControlPlane<SimWorld>>, &Arc<Openings<SimWorld>>),
    request: Request,
) -> Result<(), ArrayError> {
    match request {
        Request::Fault { name } => {
            // In its turn: a pool does not lose a drive while it is ordered to let go of another.
            let fault = array.change(move |array| async move {
                let (_, member) = array.drive(&name).await?;
                array.pool_of(POOL)?.fail_drive(&member).await
            });
            fault.await
        }
        Request::Fail { name } => array.fail_drive(name).await,
        Request::AddSpare { new } => {
            array
                .add_spare(POOL.to_owned(), new.drive, openings.bays())
                .await
        }
        Request::Replace { name, new } => {
            let replaced = array.replace_drive(name, Some(new.drive), openings.bays());
            replaced.await.map(drop)
        }
        Request::Renew { name, .. } => array
            .replace_drive(name, None, openings.bays())
            .await
            .map(drop),
        Request::Remove { name } => array.remove_drive(&name).await,
        other => of_groups((array, openings), other).await,
    }
}

async fn of_groups(
    (array, openings): (&Arc<ControlPlane<SimWorld>>, &Arc<Openings<SimWorld>>),
    request: Request,
) -> Result<(), ArrayError> {
    match request {
        Request::AddGroup { level, new } => {
            let group = NewGroup {
                level: Some(level),
                spread: site::SpreadKeys::default(),
                role: GroupRole::Data,
                drives: new.into_iter().map(|new| new.drive).collect(),
                by_force: true,
            };
            array
                .add_group(POOL.to_owned(), group, openings.bays())
                .await
        }
        Request::ConvertGroup { index, level } => {
            array.convert_group(POOL.to_owned(), index, level).await
        }
        Request::RemoveGroup { index, .. } => {
            array.remove_group(POOL.to_owned(), index, true).await
        }
        other => unreachable!("{other:?} is not of groups"),
    }
}
