//! The memo of a volume, which protocols keep over a restart, such as persistent reservations. The
//! engine keeps the bytes and knows nothing of their meaning.
//!
//! Invariants:
//! - A memo changes as a whole: a crash leaves the one before or the new one.
//! - It is the volume's: it goes with it to another pool, but not to snapshots and clones.

use super::{IoError, IoErrorKind, Volume, io::failed};
use crate::error::PoolErrorKind;
use crate::meta::Record;
use crate::meta::properties::MEMO_BYTES_MAX;
use crate::world::World;
use base::VolumeOffset;

impl<W: World> Volume<W> {
    /// The memo; empty when there is none.
    pub fn memo(&self) -> Vec<u8> {
        self.core.properties.get().whole_memo()
    }

    /// Keeps `memo` instead of the one that there is. It is durable when this ends.
    ///
    /// # Errors
    /// `PoolFull` when the metadata has no room for it: the one before holds then.
    /// `Deleted`, `PoolFailed`.
    pub async fn keep_memo(&self, memo: Vec<u8>) -> Result<(), IoError> {
        let at = VolumeOffset(0);
        let _operation = self.core.live.begin().ok_or_else(|| self.deleted(at))?;
        // One after the other, and none while the volume is handed over to another pool.
        let turn = self.core.live.ranges.exclusive(0, 1).await;
        if let Some(there) = self.core.live.moved() {
            drop(turn);
            return there.keep_memo(memo).await;
        }
        let inner = &self.inner;
        let properties = self.core.properties.get().new_memo(&memo);
        let record = |property| Record::Property(self.core.id, property);
        let records: Vec<Record> = properties.into_iter().map(record).collect();
        let fits =
            memo.len() <= MEMO_BYTES_MAX && records.len() <= inner.journal().records_at_once();
        let reserved = inner.metadata_room().reserve_properties(&records);
        let full = |context| IoError {
            kind: IoErrorKind::PoolFull,
            at,
            context,
        };
        if !fits {
            let context = format!(
                "volume '{}' can't keep a memo of {} bytes",
                self.core.name,
                memo.len()
            );
            return Err(full(context));
        }
        let reserved = reserved.map_err(|error| match error.kind {
            PoolErrorKind::Full => full(error.context),
            _ => failed(at, error),
        })?;
        let kept = match inner.world().planted("memo is not made durable") {
            true => Ok(()),
            false => inner.journal().commit(records).await,
        };
        drop(reserved);
        kept.map_err(|error| failed(at, error))
    }
}
