//! Notes of changes that have begun and not ended, as they are kept.

use crate::array::{AttributeChange, TakeBack};
use crate::record::RecordError;
use base::Uuid;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A step that takes a part of a change back.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum KeptTakeBack {
    Snapshot {
        name: String,
        of: String,
        at_unix_s: u64,
    },
    Attributes {
        volume: String,
        changes: Vec<KeptChange>,
    },
}

/// How an attribute changed; an empty value is none.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptChange {
    key: String,
    from: String,
    to: String,
}

impl KeptTakeBack {
    pub(super) fn of(step: &TakeBack) -> Self {
        match step.clone() {
            TakeBack::Snapshot {
                name,
                of,
                at_unix_s,
            } => KeptTakeBack::Snapshot {
                name,
                of: of.to_string(),
                at_unix_s,
            },
            TakeBack::Attributes { volume, changes } => KeptTakeBack::Attributes {
                volume: volume.to_string(),
                changes: changes.into_iter().map(KeptChange::of).collect(),
            },
        }
    }

    /// The step.
    ///
    /// # Errors
    /// It names no volume.
    pub(super) fn restored(self, file: &Path) -> Result<TakeBack, RecordError> {
        let identity = |text: &str| {
            Uuid::parse_str(text).map_err(|_| RecordError {
                path: file.to_owned(),
                context: format!(
                    "an unfinished change is of {text:?}, which is no identity of a volume; restore \
                     the file from a copy"
                ),
            })
        };
        Ok(match self {
            KeptTakeBack::Snapshot {
                name,
                of,
                at_unix_s,
            } => TakeBack::Snapshot {
                name,
                of: identity(&of)?,
                at_unix_s,
            },
            KeptTakeBack::Attributes { volume, changes } => TakeBack::Attributes {
                volume: identity(&volume)?,
                changes: changes.into_iter().map(KeptChange::restored).collect(),
            },
        })
    }
}

impl KeptChange {
    fn of(change: AttributeChange) -> Self {
        let AttributeChange { key, from, to } = change;
        KeptChange { key, from, to }
    }

    fn restored(self) -> AttributeChange {
        let KeptChange { key, from, to } = self;
        AttributeChange { key, from, to }
    }
}
