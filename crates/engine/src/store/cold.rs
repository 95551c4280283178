//! Reads of data whose sums are not in RAM: the data is read at the same time as its sums, and of
//! these no more copies than it takes ([`crate::integrity`], `partial`).
//!
//! Invariants, beside those of [`super::read`]:
//! - What is given out has been checked against its sum.
//! - Only data that is in place alone is read like this: nothing is in the log, and the caller keeps
//!   writes away. So data and sums belong together, whichever is read first.
//! - Whatever is not as it should be is left to the reads that load all sums.

use super::Store;
use super::address::{StripeRef, ZoneAddress};
use super::counts::Purpose;
use crate::drives::vitals::Patience;
use crate::drives::{Member, Zone};
use crate::integrity::Sum;
use crate::raid::Code;
use crate::world::World;
use base::buffer::POOLED_BYTES_MAX;
use base::{BLOCK_BYTES, Slice};
use futures_util::future::join;
use smallvec::SmallVec;
use std::ops::Range;
use std::rc::Rc;

type SumsOfRun = SmallVec<[Sum; 4]>;

impl<W: World> Store<W> {
    /// Reads a run of blocks of one drive. `None` when their sums are in RAM, when they are not on
    /// one drive, or when anything is not as it should be.
    pub(super) async fn read_cold(
        &self,
        zone: &Rc<Zone<W>>,
        first: u64,
        count: u64,
    ) -> Option<Slice> {
        let blocks = first..first + count;
        if self.integrity.has(zone.shape.zone, blocks.clone()) || !self.is_cold(zone, first, count)
        {
            return None;
        }
        let at = zone.locate(first);
        let column = (at.index / zone.rows()) as usize;
        let (place, member) = self.cold_reader(zone, at.stripe, column, &blocks)?;
        let filling = self.cache.is_on().then(|| {
            let blocks = self.pool_blocks(zone, first, count);
            self.cache.fills().begin_read(blocks)
        });
        let len = count as usize * BLOCK_BYTES;
        self.counts.count(Purpose::HostRead, len);
        let on_drive = zone.on_drive(at.stripe, at.index % zone.rows());
        let data = self.world.buffers().data(len);
        let data = member.read_patiently(on_drive, data, Patience::Leaves);
        let (sums, data) = join(self.sums_for(zone, blocks, place), data).await;
        let (sums, data) = (sums?, data?.ok()?.freeze());
        if !self.matches(&data, &sums) {
            return None;
        }
        self.world.reached("data read beside its sums");
        self.cache.count_missed(count);
        self.keep(zone, first, &data);
        drop(filling);
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

    /// The drive to ask, which is neither suspect nor late: of several copies one that the sums in RAM
    /// prove, if there is such.
    fn cold_reader(
        &self,
        zone: &Zone<W>,
        stripe: StripeRef,
        column: usize,
        blocks: &Range<u64>,
    ) -> Option<(usize, Rc<Member<W>>)> {
        let places: SmallVec<[usize; 3]> = match zone.shape.geometry.code {
            Code::Mirror => self.copies_in_turn(zone, stripe),
            Code::P | Code::PQ => SmallVec::from_elem(zone.data_place(stripe, column), 1),
        };
        let asked = places
            .into_iter()
            .map(|place| (place, zone.group.place(place)));
        let well = asked
            .filter(|(_, member)| member.is_readable(zone.shape.zone) && !member.is_asked_last());
        well.min_by_key(|(place, member)| {
            let is_proved = self.integrity.proves(zone, blocks, *place);
            (!is_proved, member.outstanding())
        })
    }

    /// The sums of a run on the drive at `place`, of as many copies as it takes; `None` when some of it
    /// has no content.
    async fn sums_for(
        &self,
        zone: &Zone<W>,
        blocks: Range<u64>,
        place: usize,
    ) -> Option<SumsOfRun> {
        let sums = self.integrity.sums_beside(zone, blocks.clone(), place);
        if let Some(sums) = sums.await {
            return Some(sums);
        }
        let pinned = self.integrity.pin(zone.shape.zone, blocks.clone()).await;
        let sums = blocks.map(|block| pinned.get(block));
        sums.map(|sum| sum.is_written().then_some(sum)).collect()
    }
}
