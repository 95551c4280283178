//! Finds the pools that were made here and that the settings do not name.
//!
//! Records of the data directory name them: those of pools that were made, and of drives that
//! commands added. Where the array's record was lost once, the labels of drive files in the data
//! directory do so, too, and the roster.
//!
//! Invariants:
//! - Nothing is opened but files in the data directory, and nothing is written.
//! - What can't be read names no pool.

use super::made::{Made, MadePool};
use super::plan::KnownPools;
use super::{Openings, look};
use crate::control::Roster;
use crate::shard::{ShardGone, ShardHandle};
use engine::World;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Pools by name, with the places of their drives.
pub type Pools = BTreeMap<String, Vec<PathBuf>>;

impl<W: World> Openings<W> {
    /// The pools that are not in the settings, without those that are `gone` since. Where the record was
    /// lost once, or is gone now, drives of the roster and labels count, too.
    ///
    /// # Errors
    /// The shard has stopped.
    pub async fn unlisted(
        &self,
        known: &KnownPools<'_>,
        (roster, gone): (&Roster, &[String]),
        shard: &ShardHandle<W>,
        (is_lost, was_cut_short): (bool, bool),
    ) -> Result<Pools, ShardGone> {
        let made = known.made;
        if was_cut_short {
            // Another site file may do better.
            return Ok(Pools::new());
        }
        let whole = made.pools.iter();
        let whole = whole.filter(|(_, state)| matches!(state, MadePool::Made { .. }));
        let mut found: Pools = whole.map(|(name, _)| (name.clone(), Vec::new())).collect();
        for drive in known.added {
            note(&mut found, &drive.pool, Some(&drive.path));
        }
        if is_lost || made.was_lost {
            for drive in roster.drives() {
                note(&mut found, &drive.pool, drive.path.as_ref());
            }
            for (pool, path) in self.labelled(known, shard).await? {
                note(&mut found, &pool, Some(&path));
            }
        }
        let is_none = |name: &String| gone.contains(name) || is_unfinished(known.made, name);
        found.retain(|name, _| known.site.pool(name).is_none() && !is_none(name));
        for drives in found.values_mut() {
            drives.sort();
            drives.dedup();
        }
        Ok(found)
    }

    /// The pools that files in the data directory are labelled for, and those files. Drives that the
    /// settings or a record name are looked at elsewhere.
    async fn labelled(
        &self,
        known: &KnownPools<'_>,
        shard: &ShardHandle<W>,
    ) -> Result<Vec<(String, PathBuf)>, ShardGone> {
        let of_site = known.site.drives.iter();
        let mut others: BTreeSet<PathBuf> = of_site
            .map(|drive| self.data.join(drive.source.path()))
            .collect();
        others.extend(known.added.iter().map(|drive| drive.path.clone()));
        let mut files = self.bays.files().await;
        files.retain(|path| !others.contains(path));
        look::labels(&self.bays, shard, files).await
    }
}

fn note(found: &mut Pools, pool: &str, path: Option<&PathBuf>) {
    let drives = found.entry(pool.to_owned()).or_default();
    drives.extend(path.cloned());
}

/// Whether a pool has no data yet, or none any more.
fn is_unfinished(made: &Made, pool: &str) -> bool {
    let state = made.pools.get(pool);
    state.is_some_and(|state| !matches!(state, MadePool::Made { .. }))
}
