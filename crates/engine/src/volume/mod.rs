//! A volume, which protocols read and write.
//!
//! `io` is the data path, `clear` gives pages back, [`ahead`] reads what sequential readers will
//! want next; `mirror` and `copy` are for volumes that go to another pool. What is in progress on
//! a volume is in [`crate::space::live`].

pub mod ahead;
mod alter;
mod available_space;
mod clear;
mod copy;
mod disk;
mod fill;
mod io;
mod lay_out;
mod memo;
mod mirror;
pub(crate) mod moving;
mod over;
mod private;
mod range_copy;
mod shrink;
mod zeroes;

pub use crate::meta::properties::{Origin, Stage, Transit, VolumeProperties};
pub use crate::space::{Live, Mirror, MoveProgress};
pub use crate::volume_io::{
    Alteration, Altered, AvailableSpace, CancelToken, IoError, IoErrorKind, Mapping, Provisioning,
    VolumeInfo, VolumeIo, VolumeSpec, WHOLE_BYTES_MAX,
};
pub use disk::Disk;

use crate::space::{LaneState, VolumeCore};
use crate::world::World;
use std::rc::Rc;

/// A handle on a volume. Clones share it.
///
/// Operations run to the end once polled first; a caller that loses interest
/// lets them run (spawn them) and drops the answer.
pub struct Volume<W: World> {
    inner: Rc<LaneState<W>>,
    core: Rc<VolumeCore>,
}

impl<W: World> Clone for Volume<W> {
    fn clone(&self) -> Self {
        Volume {
            inner: Rc::clone(&self.inner),
            core: Rc::clone(&self.core),
        }
    }
}

impl<W: World> Volume<W> {
    pub(crate) fn new(inner: Rc<LaneState<W>>, core: Rc<VolumeCore>) -> Self {
        Volume { inner, core }
    }

    /// What it is now.
    pub fn info(&self) -> VolumeInfo {
        VolumeInfo {
            name: self.core.name.to_string(),
            uuid: self.core.uuid,
            size_bytes: self.core.size_bytes.get(),
            provisioning: self.core.provisioning.get(),
            detects_zeroes: self.core.detects_zeroes.get(),
            promised_bytes: self.core.promise(self.inner.page_bytes()).pages
                * self.inner.page_bytes(),
            read_only: self.core.read_only,
            mapped_bytes: self.core.map.borrow().mapped() * self.inner.page_bytes(),
            page_bytes: self.inner.page_bytes(),
            whole_bytes_max: self.whole_bytes_max() as u64,
        }
    }

    /// What is said of it: origin, attributes, trash.
    pub fn properties(&self) -> VolumeProperties {
        self.core.properties.get()
    }

    /// Size that initiators see, in bytes (cheap).
    pub fn size_bytes(&self) -> u64 {
        self.core.size_bytes.get()
    }

    /// Where it is by now, if it has moved to another pool.
    pub fn moved(&self) -> Option<Rc<dyn VolumeIo>> {
        self.core.live.moved()
    }

    /// The world that it runs in (its buffers take data to write).
    pub fn world(&self) -> &W {
        self.inner.world()
    }
}
