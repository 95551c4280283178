//! The record of the pools that were made in a data directory.
//!
//! It answers the one question that drives can't: whether a drive that isn't
//! there, or is empty, has never been made or has been lost. A pool is recorded as
//! *being made* before its first file is made, and as *made* after its last label
//! is written; data comes only after that. So files of a pool that is still being
//! made hold nothing and may be removed.
//!
//! Invariants:
//! - A change is on record before it counts, and what can't be kept has not changed. A write that
//!   failed may have changed the record all the same, so what counts is written again.
//! - Changes happen one at a time, each of the record as it is by then: pools may be made side by
//!   side.

use crate::control::line::Line;
use crate::records::Store;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pools that were made or are being made here, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub pools: BTreeMap<String, MadePool>,
    /// The array has kept its configuration here: without one, it is lost.
    #[serde(default)]
    pub is_configured: bool,
    /// The array's record was lost here once: drives in the directory may be of pools that no
    /// record names.
    #[serde(default)]
    pub was_lost: bool,
}

/// How far a pool is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum MadePool {
    /// Its making has begun and not ended.
    BeingMade {
        /// Files that weren't there when it began.
        new_files: Vec<PathBuf>,
        /// Drives that were there before, and empty.
        #[serde(default)]
        of_before: Vec<PathBuf>,
        /// The identity that it is to have. Builds of before did not put that on record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uuid: Option<String>,
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
    pub fn made_of_nothing() -> Self {
        MadePool::BeingMade {
            new_files: Vec::new(),
            of_before: Vec::new(),
            uuid: None,
        }
    }

    /// Its making has not ended, or has left something.
    pub fn is_being_made(&self) -> bool {
        matches!(self, MadePool::BeingMade { .. })
    }

    /// What a making has left of a pool whose identity is not known: new files, and drives that were
    /// there before.
    pub(super) fn without_identity(self) -> Option<(Vec<PathBuf>, Vec<PathBuf>)> {
        let is_left = !self.left_by_making().is_empty();
        match self {
            MadePool::BeingMade {
                new_files,
                of_before,
                uuid: None,
            } if is_left => Some((new_files, of_before)),
            _ => None,
        }
    }

    /// The drives on which a making that did not end may have left something.
    pub fn left_by_making(&self) -> Vec<PathBuf> {
        match self {
            MadePool::BeingMade {
                new_files,
                of_before,
                uuid: _,
            } => [&new_files[..], of_before].concat(),
            MadePool::Made { .. } | MadePool::BeingDestroyed { .. } => Vec::new(),
        }
    }
}

impl Made {
    /// Whether a first start was cut short: nobody has had anything of its pools. `is_kept` is
    /// whether there is a configuration.
    pub fn is_cut_short(&self, is_kept: bool) -> bool {
        !is_kept && !self.is_configured && !self.was_lost && !self.pools.is_empty()
    }

    /// The pools, with the places of their drives named in another way.
    pub fn at(mut self, named: impl Fn(&Path) -> PathBuf) -> Self {
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
                    uuid: _,
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

/// The pools that were made here, and where that is kept.
pub struct MadePools {
    now: Mutex<Made>,
    record: Arc<dyn Store<Made>>,
    /// At its head stands a change.
    changing: Arc<Line>,
    /// The record may say something else.
    is_stale: AtomicBool,
}

impl MadePools {
    /// Those that are on `record`.
    pub fn new(made: Made, record: Arc<dyn Store<Made>>) -> Self {
        MadePools {
            now: Mutex::new(made),
            record,
            changing: Arc::default(),
            is_stale: AtomicBool::new(false),
        }
    }

    /// The record as it is.
    pub fn now(&self) -> Made {
        self.lock().clone()
    }

    /// What became of a pool; none of one that was never made here.
    pub fn pool(&self, name: &str) -> Option<MadePool> {
        self.lock().pools.get(name).cloned()
    }

    // Whoever panicked with this lock held has left a whole record behind.
    fn lock(&self) -> MutexGuard<'_, Made> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records, durably, that there is a configuration from now on. Pools that a first start has
    /// made, and that `site` does not name, are none of the array's where that `was_cut_short`.
    ///
    /// # Errors
    /// The record can't be written; so below.
    pub async fn set_configured(
        &self,
        (site, was_cut_short): (&site::Site, bool),
    ) -> Result<(), String> {
        if self.lock().is_configured {
            return Ok(());
        }
        self.change(|made| {
            made.is_configured = true;
            let pools = &mut made.pools;
            pools.retain(|name, _| !was_cut_short || site.pool(name).is_some());
        })
        .await
    }

    /// Records, durably, that the array's record was lost.
    pub async fn note_lost(&self) -> Result<(), String> {
        if self.lock().was_lost {
            return Ok(());
        }
        self.change(|made| made.was_lost = true).await
    }

    /// Records what has become of a pool, durably; `None` forgets it.
    pub async fn set(&self, pool: &str, state: Option<MadePool>) -> Result<(), String> {
        self.change(|made| {
            match state {
                Some(state) => made.pools.insert(pool.to_owned(), state),
                None => made.pools.remove(pool),
            };
        })
        .await
    }

    /// Forgets, durably, a pool that is none. One whose making has left something stays: that is
    /// still to be taken back.
    pub async fn forget(&self, pool: &str) -> Result<(), String> {
        let left = self.pool(pool).map(|state| state.left_by_making());
        match left.is_some_and(|left| left.is_empty()) {
            true => self.set(pool, None).await,
            false => Ok(()),
        }
    }

    /// Changes the record as it is by now: another pool may have been made since.
    async fn change(&self, change: impl FnOnce(&mut Made)) -> Result<(), String> {
        let _turn = self.changing.stand().await;
        let mut made = self.now();
        change(&mut made);
        let Err(why) = self.record.keep(made.clone()).await else {
            self.is_stale.store(false, Ordering::Relaxed);
            *self.lock() = made;
            return Ok(());
        };
        // A pool that is on record as being destroyed would be gone at the next start.
        let is_stale = self.record.keep(self.now()).await.is_err();
        self.is_stale.store(is_stale, Ordering::Relaxed);
        Err(why)
    }

    /// Writes the record again, if it may say something else than what counts.
    ///
    /// # Errors
    /// It can't be written.
    pub async fn settle(&self) -> Result<(), String> {
        match self.is_stale.load(Ordering::Relaxed) {
            true => self.change(|_| {}).await,
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;

    /// Keeps the record in memory.
    #[derive(Default)]
    struct InMemory(Arc<Mutex<Made>>);

    impl Store<Made> for InMemory {
        fn keep(&self, made: Made) -> BoxFuture<'static, Result<(), String>> {
            *self.0.lock().unwrap() = made;
            std::future::ready(Ok(())).boxed()
        }
    }

    fn made() -> Option<MadePool> {
        Some(MadePool::Made {
            uuid: String::new(),
            drives: Vec::new(),
        })
    }

    #[test]
    fn pools_that_are_made_at_one_time_are_all_on_record() {
        let record = InMemory::default();
        let kept = Arc::clone(&record.0);
        let pools = MadePools::new(Made::default(), Arc::new(record));
        let all = async {
            let sets = [("a", made()), ("b", made()), ("c", made()), ("a", None)];
            let sets = sets.map(|(name, state)| pools.set(name, state));
            futures_util::future::join_all(sets).await
        };
        let ended = all.now_or_never().expect("nobody waits");
        assert!(ended.iter().all(Result::is_ok));
        let kept = kept.lock().unwrap().clone();
        assert_eq!(kept.pools.keys().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(kept, pools.now());
    }
}
