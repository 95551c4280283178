//! Shrinking volumes: only with force, since the data behind the new end is lost.
//!
//! Invariants:
//! - Who uses what is behind the new end has ended before; who comes later is told that it is
//!   outside.
//! - Size and map change by one record: after a crash the volume is as it was, or ends there
//!   with nothing behind it. Only the rest of its last page is made zeroes before that.
//! - Snapshots keep what they have, and their size.

use super::{Lane, PoolError, PoolErrorKind};
use crate::meta::Record;
use crate::volume::{IoError, IoErrorKind};
use crate::world::World;
use base::size::human_pair;
use base::{PageIndex, VolumeOffset};

impl<W: World> Lane<W> {
    /// Bytes of a volume that are mapped behind `size_bytes`: what shrinking it to that size
    /// would lose. Whole pages; one that the new end would lie in counts for what is behind.
    ///
    /// # Errors
    /// `NotFound`, or when the pool has stopped.
    pub fn mapped_behind(&self, name: &str, size_bytes: u64) -> Result<u64, PoolError> {
        self.inner.check()?;
        let core = self.existing(name)?;
        let (mut at, end) = (size_bytes, core.size_bytes.get());
        let volume = self.handle(&core);
        let mut mapped = 0;
        while at < end {
            let (is_mapped, len) = volume.mapped_run(at, end - at);
            mapped += if is_mapped { len } else { 0 };
            at += len;
        }
        Ok(mapped)
    }

    /// Makes a volume smaller. What is behind its new end is lost, and reads as zeroes should
    /// it grow again.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a snapshot, and for a size that is not smaller; `Full` when
    /// a page that others have, too, would have to be copied and can't.
    pub async fn shrink_volume(&self, name: &str, size_bytes: u64) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let pages = self.check_size(name, size_bytes)?;
        let _administration = inner.administration().await;
        let core = self.still(name)?;
        let present = core.size_bytes.get();
        if core.read_only || size_bytes >= present {
            let (size, present) = human_pair(size_bytes, present);
            let why = match core.read_only {
                true => "it is a snapshot and does not change: clone it".to_owned(),
                false => format!("it has {present}, which is no more than that"),
            };
            let context = format!("volume '{name}' can't shrink to {size}: {why}");
            return Err(PoolError::new(PoolErrorKind::Invalid, context));
        }
        let volume = self.handle(&core);
        let _held = volume.hold_behind(size_bytes).await;
        let cleared = volume.clear_behind(size_bytes).await;
        cleared.map_err(|error| self.refused(error))?;
        let end = PageIndex(pages);
        let reserved = volume.reserve_maps(end, 1, VolumeOffset(size_bytes));
        let _reserved = reserved.map_err(|error| self.refused(error))?;
        let shrink = Record::Shrink {
            id: core.id,
            size_bytes,
            end,
        };
        inner.journal().commit(vec![shrink]).await?;
        inner.world().reached("volume shrunk");
        self.release_all().await;
        Ok(())
    }

    fn refused(&self, error: IoError) -> PoolError {
        let kind = match error.kind {
            IoErrorKind::PoolFull => PoolErrorKind::Full,
            IoErrorKind::PoolFailed => PoolErrorKind::Failed,
            _ => PoolErrorKind::Drive,
        };
        PoolError::new(kind, error.context)
    }
}
