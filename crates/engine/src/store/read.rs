//! Reads: from the log, from RAM, or from one drive; checked, and repaired when they are wrong.
//!
//! Whoever reads holds the blocks against writes through the volume (shared range),
//! so a block does not change its content meanwhile. It may move from the log into
//! place: entry and sum are looked at in one instant, without a wait in between, and
//! what was taken from either stays true.
//!
//! Volumes that share pages may be read for the same blocks at once: one asks the drive, and
//! the others wait for the cache to have them.

use super::address::{StripeRef, ZoneAddress};
use super::counts::Purpose;
use super::index::Content;
use super::row::Want;
use super::{BLOCK, Store};
use crate::cache::Filling;
use crate::drive::DriveErrorKind;
use crate::drives::Zone;
use crate::drives::{DriveFault, Member};
use crate::integrity::{Pinned, Sum};
use crate::raid::Code;
use crate::world::World;
use base::{BLOCK_BYTES, Payload, PoolOffset, Slice};
use futures_util::future::join_all;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use std::rc::Rc;

/// A block that no redundancy can give.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// Offset in the run that was asked for.
    pub start: usize,
    /// A drive that does not answer may have it: it is not lost yet.
    pub may_be_whole: bool,
    /// A sentence for people that gives the reason.
    pub context: String,
}

/// A block of a zone that no redundancy can give.
struct LostBlock {
    block: u64,
    /// As [`Unreadable::may_be_whole`].
    may_be_whole: bool,
    /// For people.
    context: String,
}

impl LostBlock {
    /// As a part of the run from block `first` on.
    fn in_run(self, first: u64) -> Unreadable {
        Unreadable {
            start: (self.block - first) as usize * BLOCK_BYTES,
            may_be_whole: self.may_be_whole,
            context: self.context,
        }
    }
}

/// Where the content of a run of blocks comes from.
enum Source {
    Here(Slice),
    /// Blocks of one place, one after the other.
    Drive {
        block: u64,
        count: u32,
        sums: SmallVec<[Sum; 4]>,
    },
    /// Known to be lost.
    Lost {
        block: u64,
    },
}

type Sources = SmallVec<[Source; 2]>;

impl<W: World> Store<W> {
    /// Reads `len` bytes at `at`, whole blocks inside one zone.
    ///
    /// # Errors
    /// The first block that can't be had.
    pub async fn read(&self, at: PoolOffset, len: usize) -> Result<Payload, Unreadable> {
        self.counts.add(|counts| &counts.commands, 1);
        let place = self.block_at(at);
        let (zone, first, count) = (place.zone, place.block, (len / BLOCK_BYTES) as u64);
        let blocks = self.pool_blocks(&zone, first, count);
        if self.cache.fills().concern(&blocks) {
            Box::pin(self.wait_for_fills(&zone, first, count)).await;
        }
        if count == 1 {
            // The common read: no list, no join.
            let source = match self.source_now(&zone, first) {
                Some(source) => source,
                None => {
                    if let Some(data) = Box::pin(self.read_cold(&zone, first, 1)).await {
                        return Ok(data.into());
                    }
                    let _pinned = self.integrity.pin(&zone.shape, first..first + 1).await;
                    Box::pin(self.wait_for_fills(&zone, first, 1)).await;
                    match self.source_now(&zone, first) {
                        Some(source) => source,
                        None => unreachable!("a pinned block has its sum in RAM"),
                    }
                }
            };
            let filling = self.begin_fill(std::slice::from_ref(&source), blocks);
            return self
                .fetch(&zone, source, filling.as_ref())
                .await
                .map(Payload::from)
                .map_err(|lost| lost.in_run(first));
        }
        Box::pin(self.read_many(&zone, first, count)).await
    }

    async fn read_many(
        &self,
        zone: &Rc<Zone<W>>,
        first: u64,
        count: u64,
    ) -> Result<Payload, Unreadable> {
        let sums = first..first + count;
        let mut _pinned = None;
        if !self.integrity.has(&zone.shape, sums.clone()) {
            if let Some(data) = self.read_cold(zone, first, count).await {
                return Ok(data.into());
            }
            _pinned = Some(self.integrity.pin(&zone.shape, sums.clone()).await);
        }
        // Others that waited for the same sums may have begun meanwhile.
        if self
            .cache
            .fills()
            .concern(&self.pool_blocks(zone, first, count))
        {
            // What is in RAM by chance may go while they are waited for.
            _pinned = Some(self.integrity.pin(&zone.shape, sums).await);
            self.wait_for_fills(zone, first, count).await;
        }
        let sources = self.sources_now(zone, first, count);
        if sources
            .iter()
            .all(|source| matches!(source, Source::Here(_)))
        {
            // Common in sequential reads of what is in RAM: nothing to wait for.
            let mut payload = Payload::new();
            for source in sources {
                if let Source::Here(slice) = source {
                    payload.push(slice);
                }
            }
            return Ok(payload);
        }
        let filling = self.begin_fill(&sources, self.pool_blocks(zone, first, count));
        self.fetch_all(zone, first, sources, filling.as_ref()).await
    }

    /// Fetches all parts of a run from block `first` on.
    async fn fetch_all(
        &self,
        zone: &Rc<Zone<W>>,
        first: u64,
        sources: Sources,
        filling: Option<&Filling<'_>>,
    ) -> Result<Payload, Unreadable> {
        let mut payload = Payload::new();
        if sources.len() == 1 {
            // Common, too: no list of those that are waited for.
            for source in sources {
                let read = self.fetch(zone, source, filling).await;
                payload.push(read.map_err(|lost| lost.in_run(first))?);
            }
            return Ok(payload);
        }
        let sources = sources.into_iter();
        let reads = sources.map(|source| self.fetch(zone, source, filling));
        for outcome in join_all(reads).await {
            payload.push(outcome.map_err(|lost| lost.in_run(first))?);
        }
        Ok(payload)
    }

    /// Has others wait who want the same blocks, when a drive is asked for them and they
    /// will be in RAM then. To be called in the instant in which the sources were found.
    fn begin_fill(&self, sources: &[Source], blocks: Range<u64>) -> Option<Filling<'_>> {
        let asks_drive = |source: &Source| matches!(source, Source::Drive { .. });
        let fills = self.cache.is_on() && sources.iter().any(asks_drive);
        fills.then(|| self.cache.fills().begin_read(blocks))
    }

    /// The names that blocks of a zone have in the cache.
    pub(super) fn pool_blocks(&self, zone: &Zone<W>, first: u64, count: u64) -> Range<u64> {
        let start = self.pool_block(zone, first);
        start..start + count
    }

    pub(super) async fn pin_unless_cached(
        &self,
        zone: &Zone<W>,
        first: u64,
        count: u64,
    ) -> Option<Pinned> {
        match self.integrity.has(&zone.shape, first..first + count) {
            true => None,
            false => Some(self.integrity.pin(&zone.shape, first..first + count).await),
        }
    }

    /// Where one block comes from, at this instant; `None` when its sum is not in
    /// RAM.
    fn source_now(&self, zone: &Zone<W>, block: u64) -> Option<Source> {
        if let Some(logged) = self.index.borrow().get(zone.locate(block)) {
            return Some(match &logged.content {
                Content::Data(new) => Source::Here(new.data.clone()),
                Content::Zero => Source::Here(self.zeros(1)),
            });
        }
        let sum = self.integrity.peek(&zone.shape, block)?;
        Some(match sum {
            Sum::UNWRITTEN => Source::Here(self.zeros(1)),
            Sum::LOST => Source::Lost { block },
            sum => match self.cache.get(self.pool_block(zone, block)) {
                Some(slice) => Source::Here(slice),
                None => Source::Drive {
                    block,
                    count: 1,
                    sums: smallvec![sum],
                },
            },
        })
    }

    /// Where a run comes from, in pieces.
    fn sources_now(&self, zone: &Zone<W>, first: u64, count: u64) -> Sources {
        let mut sources = Sources::new();
        for block in first..first + count {
            let Some(source) = self.source_now(zone, block) else {
                unreachable!("a pinned block has its sum in RAM")
            };
            if let Source::Drive { sums: sum, .. } = &source
                && let Some(Source::Drive {
                    block: start,
                    count,
                    sums,
                }) = sources.last_mut()
                && *start + u64::from(*count) == block
                && self.goes_on(zone, block)
                && *count < (base::buffer::POOLED_BYTES_MAX / BLOCK_BYTES) as u32
            {
                *count += 1;
                sums.extend_from_slice(sum);
                continue;
            }
            sources.push(source);
        }
        sources
    }

    /// Whether a block lies right behind the one before it, on the same drives.
    pub(super) fn goes_on(&self, zone: &Zone<W>, block: u64) -> bool {
        let geometry = zone.shape.geometry;
        (geometry.spans == 1 && geometry.data_columns() == 1)
            || !block.is_multiple_of(u64::from(zone.rows()))
    }

    pub(super) fn zeros(&self, blocks: u32) -> Slice {
        self.world.buffers().zeros(blocks as usize * BLOCK_BYTES)
    }

    async fn fetch(
        &self,
        zone: &Rc<Zone<W>>,
        source: Source,
        filling: Option<&Filling<'_>>,
    ) -> Result<Slice, LostBlock> {
        match source {
            Source::Here(slice) => Ok(slice),
            Source::Lost { block } => Err(self.lost(zone, block)),
            Source::Drive { block, count, sums } => {
                let run = (block, count, &sums[..]);
                self.ask_drive(zone, run, filling).await
            }
        }
    }

    fn lost(&self, zone: &Zone<W>, block: u64) -> LostBlock {
        let context = format!(
            "block {block} of zone {} is lost: more of its stripe was damaged than its level covers",
            zone.shape.zone
        );
        LostBlock {
            block,
            may_be_whole: false,
            context,
        }
    }

    fn away(&self, zone: &Zone<W>, block: u64, member: &Member<W>) -> LostBlock {
        let (name, zone) = (&member.name, zone.shape.zone);
        LostBlock {
            block,
            may_be_whole: true,
            context: format!(
                "block {block} of zone {zone} can't be read: drive '{name}' does not answer, and is needed"
            ),
        }
    }

    async fn ask_drive(
        &self,
        zone: &Rc<Zone<W>>,
        (block, count, sums): (u64, u32, &[Sum]),
        filling: Option<&Filling<'_>>,
    ) -> Result<Slice, LostBlock> {
        let at = zone.locate(block);
        let (column, row) = ((at.index / zone.rows()) as usize, at.index % zone.rows());
        // Of copies the next one is asked when a drive is late.
        for _ in 0..=zone.shape.geometry.redundancy() {
            let Some(member) = self.reader(zone, at.stripe, column) else {
                break;
            };
            let len = count as usize * BLOCK_BYTES;
            self.counts.count(Purpose::HostRead, len);
            let buf = self.world.buffers().data(len);
            let place = zone.on_drive(at.stripe, row);
            match member.read_in_line(place, buf).await {
                None => {
                    self.world.reached("late drive not waited for");
                    continue;
                }
                Some(Ok(buf)) => {
                    let data = buf.freeze();
                    if self.matches(&data, sums) {
                        self.keep(zone, block, &data, filling);
                        return Ok(data);
                    }
                }
                Some(Err(error)) if error.kind == DriveErrorKind::Gone => {
                    // It is out of use from now on, if the pool can do without it.
                    Box::pin(self.drives.absorb_read(DriveFault { member, error })).await;
                }
                Some(Err(_)) => {}
            }
            break;
        }
        Box::pin(self.put_together(zone, block, count)).await
    }

    /// Whether every block of `data` is what its sum says.
    pub(super) fn matches(&self, data: &Slice, sums: &[Sum]) -> bool {
        if self.world.planted("sums not verified on reads") {
            return true;
        }
        if data.is_length_only() {
            return sums.iter().all(|sum| *sum == Sum::BYTELESS);
        }
        sums.iter()
            .enumerate()
            .all(|(index, sum)| Sum::of(&data.slice(index * BLOCK_BYTES, BLOCK_BYTES)) == *sum)
    }

    /// Takes what a fill has read into the cache. What was read of a page that has another owner by
    /// now is not: whoever asked for it asks again.
    pub(super) fn keep(
        &self,
        zone: &Zone<W>,
        block: u64,
        data: &Slice,
        filling: Option<&Filling<'_>>,
    ) {
        if !self.cache.is_on() || filling.is_some_and(|filling| !filling.is_sound()) {
            return;
        }
        let first = self.pool_block(zone, block);
        for index in 0..data.len() / BLOCK_BYTES {
            self.cache
                .insert(first + index as u64, self.block_alone(data, index));
        }
    }

    /// A block with memory of its own: one that goes out of the cache gives it back,
    /// whatever becomes of its neighbours.
    pub(super) fn block_alone(&self, data: &Slice, index: usize) -> Slice {
        let block = data.slice(index * BLOCK_BYTES, BLOCK_BYTES);
        match block.bytes() {
            Some(bytes) if data.len() > BLOCK_BYTES => self.world.buffers().copy_of(bytes).freeze(),
            _ => block,
        }
    }

    /// The drive to ask for a data column: of several copies one that is neither
    /// suspect nor late, with the fewest operations in flight.
    pub(super) fn reader(
        &self,
        zone: &Zone<W>,
        stripe: StripeRef,
        column: usize,
    ) -> Option<Rc<Member<W>>> {
        let number = zone.shape.zone;
        if zone.shape.geometry.code == Code::Mirror {
            let places = zone.shape.geometry.mirror_places(usize::from(stripe.span));
            let turn = self.counts.operations(Purpose::HostRead) as usize;
            let copies = places.len();
            let rotated = (0..copies).map(|i| places.start + (turn + i) % copies);
            return rotated
                .map(|place| zone.place(place))
                .filter(|member| member.is_readable(number))
                .min_by_key(|member| (member.is_asked_last(), member.outstanding()));
        }
        let place = zone.data_place(stripe, column);
        let member = zone.place(place);
        // What a suspect or late drive holds is put together from the others, where
        // they can: that is what the slow path does.
        (member.is_readable(number) && !self.goes_around(zone, stripe, place)).then_some(member)
    }

    /// The slow way: block by block under the stripe's lock, from whatever is left,
    /// and what is wrong is put right.
    async fn put_together(
        &self,
        zone: &Rc<Zone<W>>,
        first: u64,
        count: u32,
    ) -> Result<Slice, LostBlock> {
        let mut whole = self.world.buffers().data(count as usize * BLOCK_BYTES);
        for index in 0..count {
            let block = first + u64::from(index);
            let at = zone.locate(block);
            let _alone = self.locks.lock(at.stripe).await;
            let pinned = self
                .integrity
                .pin(&zone.shape, zone.blocks_of(at.stripe))
                .await;
            let content = match self.source_now(zone, block) {
                Some(Source::Here(slice)) => slice,
                Some(Source::Lost { block }) => return Err(self.lost(zone, block)),
                _ => {
                    let row = at.index % zone.rows();
                    let column = (at.index / zone.rows()) as usize;
                    let want = match zone.shape.geometry.code {
                        // Which copy was bad is not known: all are looked at.
                        Code::Mirror => Want::Everything,
                        Code::P | Code::PQ => Want::Column(column),
                    };
                    let place = (at.stripe, row);
                    let (row, silent) = self.look_at_row(zone, place, &pinned, want).await;
                    self.mend(zone, &row).await;
                    match row.content(column) {
                        Some(slice) => slice,
                        // What a drive that does not answer holds may be whole.
                        None => match silent {
                            Some(member) => return Err(self.away(zone, block, &member)),
                            None => {
                                self.note_lost(zone, block);
                                return Err(self.lost(zone, block));
                            }
                        },
                    }
                }
            };
            whole.put(index as usize * BLOCK_BYTES, &content);
        }
        Ok(whole.freeze())
    }

    /// The pool address of a zone's block, in bytes.
    pub(crate) fn offset_of(&self, zone: &Zone<W>, block: u64) -> PoolOffset {
        PoolOffset(self.pool_block(zone, block) * BLOCK)
    }
}
