//! What faults and administrators do to drives.

use super::oracle::Oracle;
use super::shelf::{OnTheShelf, Shelf};
use crate::control::UNWRITTEN;
use array::control::{ArrayError, ControlPlane, NewDrive, NewGroup};
use base::Prng;
use engine::Level;
use engine::pool::GroupRole;
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
        new: NewDrive,
    },
    Replace {
        name: String,
        new: NewDrive,
    },
    Remove {
        name: String,
    },
    AddGroup {
        level: Level,
        new: Vec<NewDrive>,
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
            Request::AddSpare { new } => vec![new.name.clone()],
            Request::Replace { name, new } => vec![name.clone(), new.name.clone()],
            Request::AddGroup { new, .. } => new.iter().map(|one| one.name.clone()).collect(),
            Request::ConvertGroup { .. } => Vec::new(),
            Request::RemoveGroup { drives, .. } => drives.clone(),
        }
    }
}

/// Draws a request to an array that is so; none where there is nothing to ask for.
pub(super) fn draw(prng: &mut Prng, oracle: &Oracle, shelf: &Shelf) -> Option<Request> {
    let (there, told) = (oracle.in_pool(), oracle.told());
    let one = |prng: &mut Prng, of: &[String]| (!of.is_empty()).then(|| prng.pick(of).clone());
    Some(match prng.below(10) {
        0..=2 => Request::Fault {
            name: one(prng, &there)?,
        },
        3 => Request::Fail {
            name: one(prng, &[there, told].concat())?,
        },
        4..=6 => {
            let new = shelf.take()?;
            match prng.chance(1, 4) {
                true => Request::AddSpare {
                    new: NewDrive {
                        name: one(prng, &told)?,
                        ..new
                    },
                },
                false => Request::AddSpare { new },
            }
        }
        7 => Request::Replace {
            name: one(prng, &[there, told].concat())?,
            new: shelf.take()?,
        },
        8 => Request::Remove {
            name: one(prng, &told)?,
        },
        _ => Request::Remove {
            name: one(prng, &[there, told].concat())?,
        },
    })
}

/// Does it, and waits for its end.
///
/// # Errors
/// What the array says.
pub(super) async fn perform(
    array: &Arc<ControlPlane<SimWorld>>,
    pool: &str,
    request: Request,
    placing: OnTheShelf,
) -> Result<(), ArrayError> {
    match request {
        Request::Fault { name } => {
            let pool = pool.to_owned();
            // In its turn: a pool does not lose a drive while it is ordered to let go of another.
            let fault = array.change(move |array| async move {
                let (_, member) = array.drive(&name).await?;
                array.pool_of(&pool)?.fail_drive(&member).await
            });
            fault.await
        }
        Request::Fail { name } => array.fail_drive(name).await,
        Request::AddSpare { new } => array.add_spare(pool.to_owned(), new, placing).await,
        Request::Replace { name, new } => {
            let replaced = array.replace_drive(name, Some(new), placing);
            replaced.await.map(drop)
        }
        Request::Remove { name } => array.remove_drive(&name).await,
        other => of_groups(array, pool.to_owned(), other, placing).await,
    }
}

async fn of_groups(
    array: &Arc<ControlPlane<SimWorld>>,
    pool: String,
    request: Request,
    placing: OnTheShelf,
) -> Result<(), ArrayError> {
    match request {
        Request::AddGroup { level, new } => {
            let group = NewGroup {
                level: Some(level),
                role: GroupRole::Data,
                drives: new,
                by_force: true,
            };
            array.add_group(pool, group, placing).await
        }
        Request::ConvertGroup { index, level } => array.convert_group(pool, index, level).await,
        Request::RemoveGroup { index, .. } => array.remove_group(pool, index, true).await,
        other => unreachable!("{other:?} is not of groups"),
    }
}
