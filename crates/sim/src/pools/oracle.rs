//! Which pools there are to be, of which drives, and with which volumes.
//!
//! What was under way when the power went may have happened or not: all of it, or nothing.

use super::request::{Request, Wanted};
use array::control::ArrayErrorKind;
use std::collections::{BTreeMap, BTreeSet};

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nobody was told.
    Open,
    Done,
    Refused(ArrayErrorKind),
}

impl Outcome {
    /// Whether it may have happened or not: also where a record could not be written.
    fn is_unsure(&self) -> bool {
        matches!(
            self,
            Outcome::Open | Outcome::Refused(ArrayErrorKind::Internal)
        )
    }
}

/// A pool that is to be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pool {
    /// Names of its drives; the first may be away without the others, if one may be.
    pub(super) drives: Vec<String>,
    pub(super) is_redundant: bool,
    /// Whether what each volume holds is known.
    pub(super) volumes: BTreeMap<String, bool>,
}

/// What an array says of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// No settings name it.
    Nothing,
    /// Settings name it, and it is not open.
    Closed,
    /// It is open, with these volumes.
    Open(BTreeSet<String>),
}

/// What there is to be.
#[derive(Clone, Debug, Default)]
pub(super) struct Oracle {
    pub(super) pools: BTreeMap<String, Pool>,
    /// Pools of which this boot can't say any more what they are.
    pub(super) unsure: BTreeSet<String>,
    /// Pools that were open when nothing was under way.
    pub(super) open: BTreeSet<String>,
    /// Drives that may have the label of a pool that is gone: they were away.
    pub(super) marked: BTreeSet<String>,
    /// Drives that were away when the making of a pool was taken back: the next start takes it back.
    pub(super) left: BTreeSet<String>,
}

impl Oracle {
    /// The drives that some pool has.
    pub(super) fn used(&self) -> BTreeSet<String> {
        let pools = self.pools.values();
        pools.flat_map(|pool| pool.drives.iter().cloned()).collect()
    }

    /// A new pool has the name of one whose making has left labels on drives that are away: nobody
    /// takes them back any more.
    pub(super) fn forget_left(&mut self, request: &Request) {
        if let Request::Create(_) = request {
            self.marked.append(&mut self.left);
        }
    }

    /// Whether a drive may have a label of a pool that is none.
    pub(super) fn is_marked(&self, name: &str) -> bool {
        self.marked.contains(name) || self.left.contains(name)
    }

    /// What may have become of `name` after these requests.
    fn possible(&self, name: &str, asked: &[(Request, Outcome)]) -> Vec<Option<Pool>> {
        let mut possible = vec![self.pools.get(name).cloned()];
        let about = asked.iter().filter(|(request, _)| request.pool() == name);
        for (request, outcome) in about {
            let mut after = Vec::new();
            for before in possible {
                let changed = match request {
                    Request::Create(wanted) => Some(Pool::of(wanted)),
                    Request::Destroy { .. } => None,
                    Request::Fill { volume, .. } => before.clone().map(|mut pool| {
                        let is_known = *outcome == Outcome::Done;
                        pool.volumes.insert(volume.clone(), is_known);
                        pool
                    }),
                };
                match outcome {
                    Outcome::Done => after.push(changed),
                    _ if outcome.is_unsure() => {
                        after.extend([before, changed]);
                    }
                    _ => after.push(before),
                }
            }
            possible = after;
        }
        possible
    }

    /// Compares what the array says of a pool with what it may be, and knows it from then on. `away`
    /// are the drives that nobody finds.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn observe(
        &mut self,
        name: &str,
        seen: &Seen,
        (asked, away): (&[(Request, Outcome)], &BTreeSet<String>),
    ) -> Result<(), String> {
        match seen {
            Seen::Open(_) => self.open.insert(name.to_owned()),
            _ => self.open.remove(name),
        };
        let destroyed = |(request, outcome): &(Request, Outcome)| {
            matches!(request, Request::Destroy { pool } if pool == name) && outcome.is_unsure()
        };
        let may_lack = asked.iter().any(destroyed);
        let possible = self.possible(name, asked);
        if *seen == Seen::Closed
            && let Some(pool) = any_of(&possible, may_lack)
        {
            self.pools.insert(name.to_owned(), pool.clone());
            return fits(name, Some(&pool), seen, (may_lack, away)).map(drop);
        }
        let mut wrong = None;
        for one in possible {
            match fits(name, one.as_ref(), seen, (may_lack, away)) {
                Ok(None) => {
                    self.pools.remove(name);
                    return Ok(());
                }
                Ok(Some(pool)) => {
                    self.pools.insert(name.to_owned(), pool);
                    return Ok(());
                }
                Err(what) => wrong = Some(what),
            }
        }
        Err(wrong.unwrap_or_else(|| format!("pool {name}: nothing is possible")))
    }
}

impl Pool {
    pub(super) fn of(wanted: &Wanted) -> Pool {
        let drives = wanted.drives.iter().map(|drive| drive.name.clone());
        Pool {
            drives: drives.collect(),
            is_redundant: wanted.pool.groups[0].level.redundancy() > 0,
            volumes: BTreeMap::new(),
        }
    }

    /// Whether it can be opened: a redundant one also without its first drive.
    pub(super) fn can_open(&self, away: &BTreeSet<String>) -> bool {
        let needed = &self.drives[usize::from(self.is_redundant)..];
        needed.iter().all(|drive| !away.contains(drive))
    }
}

/// A pool of which nobody can say which of these it is: what its volumes are is known only where all
/// say the same.
fn any_of(possible: &[Option<Pool>], may_lack: bool) -> Option<Pool> {
    let mut all = possible.iter().flatten();
    let mut pool = all.next()?.clone();
    for other in all {
        for volume in other.volumes.keys() {
            pool.volumes.entry(volume.clone()).or_insert(false);
        }
        for (volume, is_known) in &mut pool.volumes {
            *is_known &= other.volumes.get(volume) == Some(&true);
        }
    }
    if may_lack {
        pool.volumes.values_mut().for_each(|known| *known = false);
    }
    Some(pool)
}

/// Whether a pool that is to be `one` may be `seen` so. Gives it as it is then.
fn fits(
    name: &str,
    one: Option<&Pool>,
    seen: &Seen,
    (may_lack, away): (bool, &BTreeSet<String>),
) -> Result<Option<Pool>, String> {
    match (one, seen) {
        (None, Seen::Nothing) => Ok(None),
        (None, seen) => Err(format!("pool {name} is {seen:?}, and there is to be none")),
        (Some(_), Seen::Nothing) => Err(format!("pool {name} is not there any more")),
        (Some(pool), Seen::Closed) => match pool.can_open(away) {
            true => Err(format!("pool {name} is not open, and its drives are there")),
            false => Ok(Some(pool.clone())),
        },
        (Some(pool), Seen::Open(volumes)) => {
            let known = pool.volumes.iter();
            let mut needed = known.filter(|(_, is_known)| **is_known && !may_lack);
            if let Some((volume, _)) = needed.find(|(volume, _)| !volumes.contains(*volume)) {
                return Err(format!("pool {name} has no volume {volume}"));
            }
            if let Some(more) = volumes.iter().find(|one| !pool.volumes.contains_key(*one)) {
                return Err(format!("pool {name} has volume {more}, which nobody made"));
            }
            let mut pool = pool.clone();
            pool.volumes.retain(|volume, _| volumes.contains(volume));
            Ok(Some(pool))
        }
    }
}
