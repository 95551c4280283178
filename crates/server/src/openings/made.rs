//! The record of the pools that were made in a data directory.
//!
//! It answers the one question that drives can't: whether a drive that isn't
//! there, or is empty, has never been made or has been lost. A pool is recorded as
//! *being made* before its first file is made, and as *made* after its last label
//! is written; data comes only after that. So files of a pool that is still being
//! made hold nothing and may be removed.

use crate::bring_up_error::BringUpError;
use crate::data_dir::DataDir;
use crate::own_files::kept_path;
use crate::record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Held while a record is changed.
static CHANGING: Mutex<()> = Mutex::new(());

/// The pools that were made or are being made here, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    pub(crate) pools: BTreeMap<String, MadePool>,
    /// The array has kept its configuration here: without one, it is lost.
    #[serde(default)]
    pub(crate) is_configured: bool,
    /// The array's record was lost here once: drives in the directory may be of pools that no
    /// record names.
    #[serde(default)]
    pub(crate) was_lost: bool,
}

/// How far a pool is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum MadePool {
    /// Its making has begun and not ended.
    BeingMade {
        /// Files that weren't there when it began.
        new_files: Vec<PathBuf>,
        /// Drives that were there before, and empty.
        #[serde(default)]
        of_before: Vec<PathBuf>,
    },
    /// It is there.
    Made {
        /// Its identity.
        uuid: String,
        /// Names of its drives when it was made, for messages and people.
        drives: Vec<String>,
    },
    /// Its destruction has begun and not ended.
    BeingDestroyed {
        /// Its identity.
        uuid: String,
        /// Where its drives are.
        drives: Vec<PathBuf>,
    },
}

impl MadePool {
    /// The making of a pool which has made nothing yet, or of which nothing is left.
    pub(crate) fn made_of_nothing() -> Self {
        MadePool::BeingMade {
            new_files: Vec::new(),
            of_before: Vec::new(),
        }
    }

    /// Its making has not ended, or has left something.
    pub(crate) fn is_being_made(&self) -> bool {
        matches!(self, MadePool::BeingMade { .. })
    }

    /// The drives on which a making that did not end may have left something.
    pub(crate) fn left_by_making(&self) -> Vec<PathBuf> {
        match self {
            MadePool::BeingMade {
                new_files,
                of_before,
            } => [&new_files[..], of_before].concat(),
            MadePool::Made { .. } | MadePool::BeingDestroyed { .. } => Vec::new(),
        }
    }
}

impl Made {
    /// The record of `data`; an empty one for a new directory.
    pub(crate) fn read(data: &DataDir) -> Result<Self, BringUpError> {
        let kept: Option<Made> = record::read(&data.made_file())?;
        Ok(kept.unwrap_or_default().at(|path| data.path().join(path)))
    }

    /// Whether a first start was cut short: nobody has had anything of its pools. `is_kept` is
    /// whether there is a configuration.
    pub(crate) fn is_cut_short(&self, data: &DataDir, is_kept: bool) -> bool {
        // Versions of before had files of their own.
        let is_kept = is_kept || data.exports_file().exists() || data.hosts_file().exists();
        !is_kept && !self.is_configured && !self.was_lost && !self.pools.is_empty()
    }

    /// Records, durably, that there is a configuration from now on. Pools that a first start has
    /// made, and that `site` does not name, are none of the array's where that `was_cut_short`.
    pub(crate) fn set_configured(
        &mut self,
        data: &DataDir,
        (site, was_cut_short): (&site::Site, bool),
    ) -> Result<(), BringUpError> {
        if self.is_configured {
            return Ok(());
        }
        self.change(data, |made| {
            made.is_configured = true;
            let pools = &mut made.pools;
            pools.retain(|name, _| !was_cut_short || site.pool(name).is_some());
        })
    }

    /// Records, durably, that the array's record was lost, if it `is_lost`.
    pub(crate) fn note_lost(&mut self, data: &DataDir, is_lost: bool) -> Result<(), BringUpError> {
        match is_lost && !self.was_lost {
            true => self.change(data, |made| made.was_lost = true),
            false => Ok(()),
        }
    }

    /// Records what has become of a pool, durably; `None` forgets it.
    pub(crate) fn set(
        &mut self,
        data: &DataDir,
        pool: &str,
        state: Option<MadePool>,
    ) -> Result<(), BringUpError> {
        self.change(data, |made| {
            match state {
                Some(state) => made.pools.insert(pool.to_owned(), state),
                None => made.pools.remove(pool),
            };
        })
    }

    /// Forgets, durably, a pool that is none. One whose making has left something stays: that is
    /// still to be taken back.
    pub(crate) fn forget(&mut self, data: &DataDir, pool: &str) -> Result<(), BringUpError> {
        self.change(data, |made| {
            let left = made.pools.get(pool).map(MadePool::left_by_making);
            if left.is_some_and(|left| left.is_empty()) {
                made.pools.remove(pool);
            }
        })
    }

    /// Changes the record as it is by now: another pool may have been made since it was read.
    fn change(
        &mut self,
        data: &DataDir,
        change: impl FnOnce(&mut Self),
    ) -> Result<(), BringUpError> {
        // Whoever panicked with this lock held has left a whole record behind.
        let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = Self::read(data)?;
        change(&mut now);
        let kept = now.clone().at(|path| kept_path(data.path(), path));
        record::write(&data.made_file(), &kept)?;
        *self = now;
        Ok(())
    }

    /// The pools, with the places of their drives named in another way.
    fn at(mut self, named: impl Fn(&Path) -> PathBuf) -> Self {
        let name = |paths: &mut Vec<PathBuf>| {
            for path in paths {
                *path = named(path);
            }
        };
        for state in self.pools.values_mut() {
            match state {
                MadePool::BeingMade {
                    new_files,
                    of_before,
                } => {
                    name(new_files);
                    name(of_before);
                }
                MadePool::BeingDestroyed { drives, .. } => name(drives),
                MadePool::Made { .. } => {}
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Option<MadePool> {
        Some(MadePool::Made {
            uuid: String::new(),
            drives: Vec::new(),
        })
    }

    #[test]
    fn pools_that_are_made_at_one_time_are_all_on_record() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::take(&dir.path().join("data")).unwrap();
        let (mut one, mut other) = (Made::read(&data).unwrap(), Made::read(&data).unwrap());
        one.set(&data, "a", made()).unwrap();
        other.set(&data, "b", made()).unwrap();
        one.set(&data, "c", made()).unwrap();
        other.set(&data, "a", None).unwrap();
        let kept = Made::read(&data).unwrap();
        assert_eq!(kept.pools.keys().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(kept, other);
    }

    #[test]
    fn places_in_the_data_directory_move_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        let data = DataDir::take(&old).unwrap();
        let outside = PathBuf::from("/dev/sdb");
        let drives = vec![data.path().join("d0.img"), outside.clone()];
        let uuid = String::new();
        let state = MadePool::BeingDestroyed { uuid, drives };
        let mut made = Made::default();
        made.set(&data, "p", Some(state)).unwrap();
        drop(data);
        std::fs::rename(&old, &new).unwrap();
        let data = DataDir::take(&new).unwrap();
        let kept = Made::read(&data).unwrap();
        let own = data.path().join("d0.img");
        let is_there = |state: &MadePool| match state {
            MadePool::BeingDestroyed { drives, .. } => *drives == [own.clone(), outside.clone()],
            _ => false,
        };
        assert!(kept.pools.values().all(is_there), "{kept:?}");
    }
}
