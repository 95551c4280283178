//! Knows which pools are not open, and which drives open pools are without.
//!
//! Invariants:
//! - A pool is open, or it is known here with the reason, so that nobody is told that there is
//!   none of that name.
//! - A volume that is not found while a pool is not open may be in that pool: nothing is made
//!   in its stead, and a target that shows it is withheld.

use super::unlisted::Unlisted;
use super::{ArrayError, ArrayErrorKind, ControlPlane};
use engine::pool::PoolInfo;
use engine::{MemberState, World};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};

/// A pool of the site that is not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedPool {
    /// Name that the site gives the pool.
    pub name: String,
    /// Why, one line for each thing that is wrong, with what can be done.
    pub why: Vec<String>,
    /// Since when, in seconds since 1970.
    pub since_unix_s: u64,
    /// The name that a volume of it has, and one of another pool as well: with its drives it
    /// is not open either before that is settled.
    pub clash: Option<String>,
}

/// How many things that are wrong with a pool a line names.
const NAMED: usize = 3;

/// Why a pool is not open, in one line: the first things that are wrong, and how many more there
/// are.
pub fn in_brief(pool: &str, why: &[String]) -> String {
    let named = why.iter().take(NAMED).map(String::as_str);
    let named = named.collect::<Vec<_>>().join("; ");
    match why.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}; and {more} more: `ashlar pool show {pool}` lists all"),
    }
}

/// A drive that its pool came up without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingDrive {
    /// Name of the drive in its pool.
    pub name: String,
    /// Where it should be.
    pub path: PathBuf,
    /// What is wrong there, and what can be done.
    pub why: String,
    /// It was seen there since.
    pub is_back: bool,
}

impl MissingDrive {
    pub fn new(name: String, path: PathBuf, why: String) -> Self {
        MissingDrive {
            name,
            path,
            why,
            is_back: false,
        }
    }
}

impl fmt::Display for MissingDrive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drive {}: {}", self.name, self.why)
    }
}

/// What an array is without.
#[derive(Debug, Default)]
pub(super) struct Absent {
    closed: BTreeMap<String, ClosedPool>,
    /// By pool.
    missing: BTreeMap<String, Vec<MissingDrive>>,
    /// Pools that are open, and that the array has not come to terms with yet: `openings::late`.
    unsettled: BTreeSet<String>,
    /// Pools that were made here and that the settings do not name.
    pub(super) unlisted: Unlisted,
}

impl Absent {
    /// The missing drives of a pool that have this name.
    fn missing_called(
        &mut self,
        pool: &str,
        drive: &str,
    ) -> impl Iterator<Item = &mut MissingDrive> {
        let missing = self.missing.get_mut(pool).into_iter().flatten();
        missing.filter(move |known| known.name == drive)
    }
}

impl<W: World> ControlPlane<W> {
    // Whoever panicked with this lock held has left whole maps behind.
    pub(super) fn absent(&self) -> MutexGuard<'_, Absent> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pools of the site that are not open, by name.
    pub fn closed_pools(&self) -> Vec<ClosedPool> {
        self.absent().closed.values().cloned().collect()
    }

    /// Their names, for people; none when all pools are open.
    pub fn closed_names(&self) -> Option<String> {
        let names: Vec<String> = self.absent().closed.keys().cloned().collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Whether a pool of the site is not open.
    pub fn is_closed(&self, name: &str) -> bool {
        self.absent().closed.contains_key(name)
    }

    /// Says that a pool is not open, and why; where that is a name, which one. Returns why, in
    /// brief, if that is news.
    pub fn pool_is_closed(
        &self,
        name: &str,
        why: Vec<String>,
        clash: Option<String>,
    ) -> Option<String> {
        let mut absent = self.absent();
        absent.missing.remove(name);
        let before = absent.closed.get(name);
        let is_news = before.is_none_or(|before| before.why != why);
        let since_unix_s = before.map_or_else(|| self.unix_s(), |before| before.since_unix_s);
        let closed = ClosedPool {
            name: name.to_owned(),
            why,
            since_unix_s,
            clash,
        };
        let brief = is_news.then(|| in_brief(name, &closed.why));
        absent.closed.insert(name.to_owned(), closed);
        brief
    }

    /// Says that a pool is open, with its lanes on these shards, and without these drives.
    pub fn pool_is_open(&self, name: &str, homes: Vec<usize>, missing: Vec<MissingDrive>) {
        self.home_map().insert(name.to_owned(), homes);
        let mut absent = self.absent();
        absent.closed.remove(name);
        absent.missing.insert(name.to_owned(), missing);
        self.roster.look_again();
    }

    /// Says that there is no such pool any more.
    pub fn pool_is_gone(&self, name: &str) {
        self.home_map().remove(name);
        let mut absent = self.absent();
        absent.closed.remove(name);
        absent.missing.remove(name);
        absent.unsettled.remove(name);
    }

    /// Says whether all that a start does once a pool is open was done for this one.
    pub fn pool_is_settled(&self, name: &str, settled: bool) {
        let mut absent = self.absent();
        match settled {
            true => absent.unsettled.remove(name),
            false => absent.unsettled.insert(name.to_owned()),
        };
    }

    /// The open pools for which that was not done yet, by name.
    pub fn unsettled_pools(&self) -> Vec<String> {
        self.absent().unsettled.iter().cloned().collect()
    }

    /// The drives that a pool came up without, and is without still.
    pub fn missing_drives(&self, info: &PoolInfo) -> Vec<MissingDrive> {
        let missing = self.absent().missing.get(&info.name).cloned();
        let is_missed = |drive: &MissingDrive| {
            let mut members = info.members.iter();
            members.any(|one| one.name == drive.name && one.state == MemberState::Failed)
        };
        let mut missing = missing.unwrap_or_default();
        missing.retain(is_missed);
        missing
    }

    /// The drives and spares that a pool came up without.
    pub fn came_without(&self, pool: &str) -> Vec<MissingDrive> {
        let absent = self.absent();
        absent.missing.get(pool).cloned().unwrap_or_default()
    }

    /// Notes that a drive which is missing was seen again.
    pub fn drive_is_back(&self, pool: &str, drive: &str) {
        for known in self.absent().missing_called(pool, drive) {
            known.is_back = true;
        }
    }

    /// Notes that a drive is to be looked for at `path` from now on, if it is missing.
    pub fn drive_is_elsewhere(&self, pool: &str, drive: &str, path: &Path) {
        for known in self.absent().missing_called(pool, drive) {
            known.path = path.to_owned();
            known.is_back = false;
        }
    }

    /// That there is no such pool, or that it is not open.
    pub fn no_such_pool(&self, name: &str) -> ArrayError {
        let Some(closed) = self.absent().closed.get(name).cloned() else {
            return ArrayError::no_pool(name);
        };
        let context = format!("pool {name} is not open: {}", closed.why.join("\n"));
        ArrayError::new(ArrayErrorKind::Unavailable, context)
    }
}

#[cfg(test)]
mod tests {
    use super::in_brief;

    #[test]
    fn a_line_names_the_first_reasons_and_counts_the_others() {
        let why: Vec<String> = (0..24).map(|at| format!("drive d{at} is away")).collect();
        assert_eq!(in_brief("p0", &why[..1]), "drive d0 is away");
        assert_eq!(
            in_brief("p0", &why),
            "drive d0 is away; drive d1 is away; drive d2 is away; and 21 more: `ashlar pool show \
             p0` lists all"
        );
    }
}
