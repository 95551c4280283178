//! Writes that go to the copy of a volume as well, which moves to another pool: see [`Mirror`].

use super::Volume;
use crate::space::Mirror;
use crate::world::World;
use base::{Slice, VolumeOffset};
use std::ops::Range;
use std::rc::Rc;

impl<W: World> Volume<W> {
    /// Has the copy get what was written at `at`; the caller holds the range alone. A write
    /// that went wrong may have happened in part: the copy gets what is there now.
    pub(super) async fn mirror_write(&self, at: u64, data: Slice, went_well: bool) {
        let Some((mirror, part)) = self.mirrored(at..at + data.len() as u64) else {
            return;
        };
        let data = match went_well {
            true => Ok(data),
            false => self.read_held(part.start, part.end - part.start).await,
        };
        let written = match data {
            Ok(data) => {
                let data = data.slice(0, (part.end - part.start) as usize);
                mirror.to.write(VolumeOffset(part.start), data).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            mirror.fail(error.context);
        }
    }

    /// Has the copy cleared where the volume was; the caller holds the range alone.
    pub(super) async fn mirror_clear(&self, bytes: Range<u64>, went_well: bool) {
        let Some((mirror, part)) = self.mirrored(bytes) else {
            return;
        };
        let at = VolumeOffset(part.start);
        let written = match went_well {
            true => mirror.to.clear(at, part.end - part.start).await,
            false => match self.read_held(at.0, part.end - part.start).await {
                Ok(data) => mirror.to.write(at, data).await,
                Err(error) => Err(error),
            },
        };
        if let Err(error) = written {
            mirror.fail(error.context);
        }
    }

    /// What of a run a copy has to have, and which.
    fn mirrored(&self, run: Range<u64>) -> Option<(Rc<Mirror>, Range<u64>)> {
        let mirror = self.core.live.mirror()?;
        if self
            .inner
            .world()
            .planted("mirror skipped below the cursor")
        {
            return None;
        }
        let part = mirror.part(run)?;
        self.inner.world().reached("write mirrored to another pool");
        Some((mirror, part))
    }
}
