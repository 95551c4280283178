//! The record of the pools that were made in a data directory.
//!
//! It answers the one question that drives can't: whether a drive that isn't
//! there, or is empty, has never been made or has been lost. A pool is recorded as
//! *being made* before its first file is made, and as *made* after its last label
//! is written; data comes only after that. So files of a pool that is still being
//! made hold nothing and may be removed.

use super::{BringUpError, data_dir::DataDir};
use crate::record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

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
        Ok(record::read(&data.made_file())?.unwrap_or_default())
    }

    /// Records, durably, that there is a configuration from now on.
    pub(super) fn set_configured(&mut self, data: &DataDir) -> Result<(), BringUpError> {
        if !self.is_configured {
            self.is_configured = true;
            record::write(&data.made_file(), self)?;
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
        Ok(record::write(&data.made_file(), self)?)
    }
}
