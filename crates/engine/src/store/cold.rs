//! Reads of data whose sums are not in RAM: the data is read at the same time as its sums.
//!
//! Invariants, beside those of [`super::read`]:
//! - What is given out has been checked against its sum, of all copies of that.
//! - Only data that is in place alone is read like this: nothing is in the log, and the caller keeps
//!   writes away. So data and sums belong together, whichever is read first.
//! - Whatever is not as it should be is left to the reads that load sums first.

use super::Store;
use super::address::ZoneAddress;
use super::counts::Purpose;
use crate::drives::Zone;
use crate::integrity::Sum;
use crate::world::World;
use base::buffer::POOLED_BYTES_MAX;
use base::{BLOCK_BYTES, Slice};
use futures_util::future::join;
use smallvec::SmallVec;
use std::rc::Rc;

impl<W: World> Store<W> {
    /// Reads a run of blocks whose sums are not in RAM. `None` when they are not on one drive, or when
    /// anything is not as it should be.
    pub(super) async fn read_cold(
        &self,
        zone: &Rc<Zone<W>>,
        first: u64,
        count: u64,
    ) -> Option<Slice> {
        let blocks = first..first + count;
        if !self.is_cold(zone, first, count) {
            return None;
        }
        let at = zone.locate(first);
        let column = (at.index / zone.rows()) as usize;
        let member = self.reader(zone, at.stripe, column)?;
        if member.is_asked_last() {
            return None;
        }
        let of_pool = self.pool_blocks(zone, first, count);
        let filling = self.cache.fills().begin_read(of_pool);
        let len = count as usize * BLOCK_BYTES;
        self.counts.count(Purpose::HostRead, len);
        let on_drive = zone.on_drive(at.stripe, at.index % zone.rows());
        let data = self.world.buffers().data(len);
        let data = member.read_in_line(on_drive, data);
        let sums = self.integrity.pin(&zone.shape, blocks.clone());
        let (sums, data) = join(sums, data).await;
        let data = data?.ok()?.freeze();
        let sums = blocks.map(|block| Some(sums.get(block)).filter(|sum| sum.is_written()));
        let sums: SmallVec<[Sum; 4]> = sums.collect::<Option<_>>()?;
        if !self.matches(&data, &sums) {
            return None;
        }
        self.world.reached("data read beside its sums");
        self.cache.count_missed(count);
        self.keep(zone, first, &data, Some(&filling));
        Some(data)
    }

    /// Whether all of a run lies side by side on one drive, and nowhere else.
    fn is_cold(&self, zone: &Zone<W>, first: u64, count: u64) -> bool {
        let index = self.index.borrow();
        let is_in_place = |block: u64| {
            let is_logged = index.get(zone.locate(block)).is_some();
            !is_logged && !self.cache.contains(self.pool_block(zone, block))
        };
        count as usize <= POOLED_BYTES_MAX / BLOCK_BYTES
            && (first + 1..first + count).all(|block| self.goes_on(zone, block))
            && (first..first + count).all(is_in_place)
    }
}
