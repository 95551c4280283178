//! The record of the pools that were made in a data directory.
//!
//! It answers the one question that drives can't: whether a drive that isn't
//! there, or is empty, has never been made or has been lost. A pool is recorded as
//! *being made* before its first file is made, and as *made* after its last label
//! is written; data comes only after that. So files of a pool that is still being
//! made hold nothing and may be removed.

use super::{BringUpError, data_dir::DataDir};
use crate::own_files::kept_path;
use crate::record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The pools that were made or are being made here, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) pools: BTreeMap<String, MadePool>,
    /// The array has kept its configuration here: without one, it is lost.
    #[serde(default)]
    pub(super) is_configured: bool,
}

/// How far a pool is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum MadePool {
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

impl Made {
    /// The record of `data`; an empty one for a new directory.
    pub(super) fn read(data: &DataDir) -> Result<Self, BringUpError> {
        let kept: Option<Made> = record::read(&data.made_file())?;
        Ok(kept.unwrap_or_default().at(|path| data.path().join(path)))
    }

    /// Records, durably, that there is a configuration from now on.
    pub(super) fn set_configured(&mut self, data: &DataDir) -> Result<(), BringUpError> {
        if !self.is_configured {
            self.is_configured = true;
            self.write(data)?;
        }
        Ok(())
    }

    /// Records what has become of a pool, durably; `None` forgets it.
    pub(super) fn set(
        &mut self,
        data: &DataDir,
        pool: &str,
        state: Option<MadePool>,
    ) -> Result<(), BringUpError> {
        match state {
            Some(state) => self.pools.insert(pool.to_owned(), state),
            None => self.pools.remove(pool),
        };
        self.write(data)
    }

    fn write(&self, data: &DataDir) -> Result<(), BringUpError> {
        let kept = self.clone().at(|path| kept_path(data.path(), path));
        Ok(record::write(&data.made_file(), &kept)?)
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
