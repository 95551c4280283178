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
use super::pools::KnownPool;
use crate::array::Roster;
use crate::data_dir::DataDir;
use crate::drive_files::{self, READ_TIME};
use crate::shard::{ShardGone, ShardHandle};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use world_real::within;

/// A smaller file is no drive.
const DRIVE_BYTES_MIN: u64 = 1 << 20;

/// Pools by name, with the places of their drives.
pub(crate) type Pools = BTreeMap<String, Vec<PathBuf>>;

/// The pools that are not in the settings, without those that are `gone` since. Where the record was
/// lost once, or is gone now, drives of the roster and labels count, too.
///
/// # Errors
/// The shard has stopped.
pub(crate) async fn find(
    known: &KnownPool<'_>,
    (roster, gone): (&Roster, &[String]),
    shard: &ShardHandle,
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
        for (pool, path) in labelled(known, shard).await? {
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

fn note(found: &mut Pools, pool: &str, path: Option<&PathBuf>) {
    let drives = found.entry(pool.to_owned()).or_default();
    drives.extend(path.cloned());
}

/// Whether a pool has no data yet, or none any more.
fn is_unfinished(made: &Made, pool: &str) -> bool {
    let state = made.pools.get(pool);
    state.is_some_and(|state| !matches!(state, MadePool::Made { .. }))
}

/// The pools that files in the data directory are labelled for, and those files. Drives that the
/// settings or a record name are looked at elsewhere.
async fn labelled(
    known: &KnownPool<'_>,
    shard: &ShardHandle,
) -> Result<Vec<(String, PathBuf)>, ShardGone> {
    let of_site = known.site.drives.iter();
    let mut others: BTreeSet<PathBuf> = of_site.map(|drive| known.data.place(drive).path).collect();
    others.extend(known.added.iter().map(|drive| drive.path.clone()));
    let mut files = files_in(known.data).await;
    files.retain(|path| !others.contains(path));
    drive_files::labels(shard, files).await
}

/// The files in the data directory that may be drives.
async fn files_in(data: &DataDir) -> Vec<PathBuf> {
    let listed = within(data.path(), READ_TIME, |path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let is_large = |entry: &std::fs::DirEntry| {
            let about = entry.metadata();
            about.is_ok_and(|about| about.is_file() && about.len() >= DRIVE_BYTES_MIN)
        };
        let files = entries.filter(is_large).map(|entry| entry.path());
        Ok(files.collect::<Vec<_>>())
    });
    let mut files = listed.await.unwrap_or_default();
    files.sort();
    files
}
