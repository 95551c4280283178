//! Knows the pools that were made here and that the settings do not name.
//!
//! Invariant: a volume that is not found while there is such a pool may be in it, so none is made
//! in its stead by a site file.

use super::ControlPlane;
use engine::World;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Those pools, by name, each with the places of its drives, as far as they are known.
pub(super) type Unlisted = BTreeMap<String, Vec<PathBuf>>;

impl<W: World> ControlPlane<W> {
    /// Notes that there are such pools; the log says so.
    pub fn note_unlisted(&self, pools: BTreeMap<String, Vec<PathBuf>>) {
        self.absent().unlisted = pools;
        for pool in self.unlisted_pools() {
            tracing::warn!("{pool}");
        }
    }

    /// Says that the settings name a pool from now on.
    pub fn is_listed(&self, pool: &str) {
        self.absent().unlisted.remove(pool);
    }

    /// Whether a pool was made here that the settings do not name.
    pub fn is_unlisted(&self, pool: &str) -> bool {
        self.absent().unlisted.contains_key(pool)
    }

    /// The names of those pools, for people; none where there are none.
    pub fn unlisted_names(&self) -> Option<String> {
        let names: Vec<String> = self.absent().unlisted.keys().cloned().collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// What there is to say of each of them, for people.
    pub fn unlisted_pools(&self) -> Vec<String> {
        let absent = self.absent();
        let said = absent
            .unlisted
            .iter()
            .map(|(pool, drives)| how_to_list(pool, drives));
        said.collect()
    }
}

/// That a pool is not in the settings, and how it gets there.
fn how_to_list(pool: &str, drives: &[PathBuf]) -> String {
    let places: Vec<String> = drives.iter().map(|at| at.display().to_string()).collect();
    let places = match places.is_empty() {
        true => String::new(),
        false => format!(" (drives: {})", places.join(", ")),
    };
    format!(
        "pool {pool} was made here and is not in the settings{places}: its volumes are not served; \
         write the pool and its drives into a site file, and `ashlar site apply`"
    )
}
