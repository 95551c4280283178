//! The plan of a change in place, so that a stripe gets the log's content.
//!
//! Row by row, whichever reads least: nothing, where all of the row is new; the
//! blocks that stay (and parity is reckoned anew); or the blocks that go, and the
//! parity (read-modify-write). Rows that go the same way go together, so that a run
//! of blocks is one operation. Where something needed can't be read, or is not what
//! its sum says, the row is put together from what is left.
//!
//! Read-modify-write needs parity that is known to be over what lies in place. It is
//! not, where a destaging may have been cut short (`replayed`), nor where a block of
//! a free page has a sum (a write around the log may have been cut short there): such
//! rows are reckoned anew, and blocks of free pages are dropped from the parity. Of a
//! page that has an owner and is not mapped yet, blocks may be of one before: they are
//! looked at, and what is not as it should be is the owner's to write anew.

use super::address::{StripeRef, ZoneAddress};
use super::change::{Change, PlaceWrite};
use super::counts::Purpose;
use super::index::{Content, Logged};
use super::row::Want;
use super::{Store, StripeGuard};
use crate::drives::Zone;
use crate::integrity::{Pinned, Sum};
use crate::raid::Code;
use crate::world::World;
use base::{BLOCK_BYTES, Slice};
use futures_util::future::{join, join_all};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What becomes of a block of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// New data over what was never written, or is lost.
    Fresh,
    /// New data over old.
    Over,
    /// Old data goes, zeroes come.
    Cleared,
    /// Old data of a free page: forgotten.
    Dropped,
    /// Stays, and holds something.
    Kept,
    /// Holds nothing, before and after.
    Empty,
}

/// How a row gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowUpdate {
    /// Parity from what is new; nothing is read.
    Whole,
    /// Parity from what is new and what stays.
    Reconstruct,
    /// Parity from its old value and what changes.
    Modify,
    /// As above, but something can't be read as it should.
    Hard,
}

/// Rows that go the same way.
struct Run {
    row: u32,
    rows: u32,
    way: RowUpdate,
    fates: Vec<Fate>,
}

/// A stripe to be destaged.
pub(super) struct Job<W: World> {
    pub zone: Rc<Zone<W>>,
    pub stripe: StripeRef,
    pub entries: BTreeMap<u32, Logged>,
    pub _alone: StripeGuard,
}

impl<W: World> Store<W> {
    /// The change that puts a job's entries in place.
    pub(super) async fn plan(&self, job: &Job<W>) -> Change<W> {
        let pinned = self
            .integrity
            .pin(&job.zone.shape, job.zone.blocks_of(job.stripe))
            .await;
        let mut change = Change::new(&job.zone, job.stripe, pinned);
        if job.zone.shape.geometry.code == Code::Mirror {
            self.plan_copies(job, &mut change);
            return change;
        }
        let runs = self.runs(job, &change.pinned);
        let partial = runs.iter().any(|run| run.way != RowUpdate::Whole);
        let counter = if partial {
            &self.counts.partial_stripes
        } else {
            &self.counts.whole_stripes
        };
        counter.set(counter.get() + 1);
        let outcomes = join_all(
            runs.iter()
                .map(|run| self.plan_run(job, run, &change.pinned)),
        )
        .await;
        for outcome in outcomes {
            change.writes.extend(outcome.writes);
            change.sums.extend(outcome.sums);
            change.needs_intent |= outcome.needs_intent;
        }
        change
    }

    /// A mirror: every copy gets what is new.
    fn plan_copies(&self, job: &Job<W>, change: &mut Change<W>) {
        let first = job.zone.blocks_of(job.stripe).start;
        let mut run = Vec::with_capacity(job.entries.len());
        change.sums.reserve(job.entries.len());
        for (index, logged) in &job.entries {
            let block = first + u64::from(*index);
            match &logged.content {
                Content::Zero if self.world.planted("sums kept where blocks are zeroed") => {}
                Content::Zero => change.sums.push((block, self.sum_of_zeros())),
                Content::Data(new) => {
                    change.sums.push((block, new.sum()));
                    if run.last().is_some_and(|(last, _)| last + 1 != *index) {
                        self.put_copies(job, change, &mut run);
                    }
                    run.push((*index, new.data.clone()));
                }
            }
        }
        self.put_copies(job, change, &mut run);
    }

    fn put_copies(&self, job: &Job<W>, change: &mut Change<W>, run: &mut Vec<(u32, Slice)>) {
        let Some((row, _)) = run.first() else { return };
        let row = *row;
        let data = self.join(run.drain(..).map(|(_, data)| Some(data)));
        let mut places = job
            .zone
            .shape
            .geometry
            .mirror_places(usize::from(job.stripe.span));
        if self.world.planted("destage skips a copy") {
            places.next_back();
        }
        for place in places {
            let data = data.clone();
            change.writes.push(PlaceWrite {
                place,
                row,
                data,
                purpose: Purpose::DataWrite,
            });
        }
    }

    /// Blocks one after the other in one buffer; none of them counts as zeroes.
    fn join(&self, blocks: impl ExactSizeIterator<Item = Option<Slice>>) -> Slice {
        let mut blocks = blocks;
        if blocks.len() == 1
            && let Some(Some(only)) = blocks.next()
        {
            return only;
        }
        let mut whole = self.world.buffers().zeroed(blocks.len() * BLOCK_BYTES);
        for (index, block) in blocks.enumerate() {
            if let Some(block) = block {
                whole.put(index * BLOCK_BYTES, &block);
            }
        }
        whole.freeze()
    }

    /// What a block's sum becomes when it is to read as zeroes.
    fn sum_of_zeros(&self) -> Sum {
        Sum::UNWRITTEN
    }

    /// The rows that have entries, in runs.
    fn runs(&self, job: &Job<W>, pinned: &Pinned) -> Vec<Run> {
        let rows = job.zone.rows();
        let mut runs: Vec<Run> = Vec::new();
        let mut concerned: SmallVec<[u32; 16]> =
            job.entries.keys().map(|index| index % rows).collect();
        concerned.sort_unstable();
        concerned.dedup();
        for row in concerned {
            let (fates, unknown) = self.fates(job, row, pinned);
            let way = self.way(job, &fates, unknown);
            match runs.last_mut() {
                Some(run)
                    if run.row + run.rows == row
                        && run.way == way
                        && run.fates == fates
                        && way != RowUpdate::Hard =>
                {
                    run.rows += 1;
                }
                _ => runs.push(Run {
                    row,
                    rows: 1,
                    way,
                    fates,
                }),
            }
        }
        runs
    }

    /// What becomes of each block of a row, and whether the parity may be over
    /// something else than the sums say.
    fn fates(&self, job: &Job<W>, row: u32, pinned: &Pinned) -> (Vec<Fate>, bool) {
        let zone = &job.zone;
        let first = zone.blocks_of(job.stripe).start;
        let mut unknown = false;
        let fates = (0..zone.shape.geometry.data_columns() as u32).map(|column| {
            let index = column * zone.rows() + row;
            let block = first + u64::from(index);
            let sum = pinned.get(block);
            // Whether the parity takes what was lost for zeroes is not certain.
            unknown |= sum == Sum::LOST;
            match job.entries.get(&index) {
                Some(logged) => {
                    unknown |= logged.replayed;
                    match (&logged.content, sum.is_written()) {
                        (Content::Data(_), true) => Fate::Over,
                        (Content::Data(_), false) => Fate::Fresh,
                        (Content::Zero, true) => Fate::Cleared,
                        (Content::Zero, false) => Fate::Empty,
                    }
                }
                None if !sum.is_written() => Fate::Empty,
                None if self.is_used(zone, block) => {
                    // Or of an owner before, and not what its sum says.
                    unknown |= self.is_young(zone, block);
                    Fate::Kept
                }
                None => Fate::Dropped,
            }
        });
        (fates.collect(), unknown)
    }

    fn way(&self, job: &Job<W>, fates: &[Fate], unknown: bool) -> RowUpdate {
        let zone = &job.zone;
        let kept = fates.iter().filter(|fate| **fate == Fate::Kept).count();
        if kept == 0 {
            return RowUpdate::Whole;
        }
        let readable = |place: usize| zone.is_readable(place);
        let all = |wanted: &dyn Fn(Fate) -> bool| {
            let mut columns = fates.iter().enumerate().filter(|(_, fate)| wanted(**fate));
            columns.all(|(column, _)| readable(zone.data_place(job.stripe, column)))
        };
        let changes = |fate: Fate| matches!(fate, Fate::Over | Fate::Cleared);
        let parities: Vec<usize> = self.parities(job).into_iter().flatten().collect();
        // A parity drive that takes writes and can't be read (it is being rebuilt, or the place of one
        // that is lost goes there) must get parity reckoned anew.
        let takes = |place: usize| match self.world.planted("parity on its way left as it was") {
            true => zone.place(place).is_writable(),
            false => zone.takers(place).next().is_some(),
        };
        let steady = parities
            .iter()
            .all(|place| readable(*place) || !takes(*place));
        let modify = !unknown && steady && !fates.contains(&Fate::Dropped) && all(&changes);
        let readable_parities = parities.iter().filter(|place| readable(**place)).count();
        let modify_reads = fates.iter().filter(|fate| changes(**fate)).count() + readable_parities;
        let reconstruct = all(&|fate| fate == Fate::Kept);
        match (modify, reconstruct) {
            (true, true) if modify_reads < kept => RowUpdate::Modify,
            (_, true) => RowUpdate::Reconstruct,
            (true, false) => RowUpdate::Modify,
            (false, false) => RowUpdate::Hard,
        }
    }

    fn parities(&self, job: &Job<W>) -> [Option<usize>; 2] {
        let geometry = job.zone.shape.geometry;
        let (p, q) =
            geometry.parity_places(u64::from(job.stripe.number), usize::from(job.stripe.span));
        [p, q]
    }

    async fn plan_run(&self, job: &Job<W>, run: &Run, pinned: &Pinned) -> Part {
        let planned = match run.way {
            RowUpdate::Whole => Some(self.rebuild_parity(job, run, vec![None; run.fates.len()])),
            RowUpdate::Reconstruct => self.reconstruct(job, run, pinned).await,
            RowUpdate::Modify => self.modify(job, run, pinned).await,
            RowUpdate::Hard => None,
        };
        if let Some(part) = planned {
            return part;
        }
        self.world.reached("stripe put together to be changed");
        let mut whole = Part::default();
        for row in run.row..run.row + run.rows {
            whole.extend(self.hard_row(job, run, row, pinned).await);
        }
        whole
    }

    /// What the entries say a column of a run is to hold.
    fn news(&self, job: &Job<W>, run: &Run, column: usize) -> Option<Slice> {
        if !matches!(run.fates[column], Fate::Fresh | Fate::Over) {
            return None;
        }
        let first = column as u32 * job.zone.rows() + run.row;
        let blocks: Vec<Option<Slice>> = (first..first + run.rows)
            .map(
                |index| match job.entries.get(&index).map(|logged| &logged.content) {
                    Some(Content::Data(new)) => Some(new.data.clone()),
                    _ => None,
                },
            )
            .collect();
        Some(self.join(blocks.into_iter()))
    }

    /// Reads a column of a run in place; none when any block is not what it should be.
    async fn old(&self, job: &Job<W>, run: &Run, column: usize, pinned: &Pinned) -> Option<Slice> {
        let data = self
            .modify_read(job, run, job.zone.data_place(job.stripe, column))
            .await?;
        let first = job.zone.blocks_of(job.stripe).start
            + u64::from(column as u32 * job.zone.rows() + run.row);
        let sums: Vec<Sum> = (0..u64::from(run.rows))
            .map(|index| pinned.get(first + index))
            .collect();
        self.matches(&data, &sums).then_some(data)
    }

    async fn modify_read(&self, job: &Job<W>, run: &Run, place: usize) -> Option<Slice> {
        let member = job.zone.place(place);
        if !member.is_readable(job.zone.shape.zone) {
            return None;
        }
        let len = run.rows as usize * BLOCK_BYTES;
        self.counts.count(Purpose::ModifyRead, len);
        let buf = self.world.buffers().data(len);
        let at = job.zone.on_drive(job.stripe, run.row);
        member.read(at, buf).await.ok().map(base::Buf::freeze)
    }

    async fn reconstruct(&self, job: &Job<W>, run: &Run, pinned: &Pinned) -> Option<Part> {
        let reads = run
            .fates
            .iter()
            .enumerate()
            .map(async |(column, fate)| match fate {
                Fate::Kept => self.old(job, run, column, pinned).await.map(Some),
                _ => Some(None),
            });
        let kept: Option<Vec<Option<Slice>>> = join_all(reads).await.into_iter().collect();
        Some(self.rebuild_parity(job, run, kept?))
    }

    /// Parity from what is new and what is kept.
    fn rebuild_parity(&self, job: &Job<W>, run: &Run, kept: Vec<Option<Slice>>) -> Part {
        let mut part = self.data_part(job, run);
        let after: Vec<Option<Slice>> = kept
            .into_iter()
            .enumerate()
            .map(|(column, kept)| kept.or_else(|| self.news(job, run, column)))
            .collect();
        let stale = self.world.planted("parity from stale data");
        if after.iter().any(Option::is_some) && !stale {
            let len = run.rows as usize * BLOCK_BYTES;
            let parity = self.parity_of(&after, len, job.zone.shape.geometry.code);
            for (place, data) in self.parities(job).into_iter().zip(parity) {
                part.parity(place, run.row, data);
            }
        }
        part.needs_intent = run
            .fates
            .iter()
            .any(|fate| matches!(fate, Fate::Kept | Fate::Dropped));
        part
    }

    async fn modify(&self, job: &Job<W>, run: &Run, pinned: &Pinned) -> Option<Part> {
        let befores = run
            .fates
            .iter()
            .enumerate()
            .map(async |(column, fate)| match fate {
                Fate::Over | Fate::Cleared => self.old(job, run, column, pinned).await.map(Some),
                _ => Some(None),
            });
        let parities = self.parities(job);
        let olds = parities.into_iter().map(async |place| match place {
            Some(place) if job.zone.is_readable(place) => {
                self.modify_read(job, run, place).await.map(Some)
            }
            _ => Some(None),
        });
        let (befores, olds) = join(join_all(befores), join_all(olds)).await;
        let befores: Vec<Option<Slice>> = befores.into_iter().collect::<Option<_>>()?;
        let olds: Vec<Option<Slice>> = olds.into_iter().collect::<Option<_>>()?;
        let mut part = self.data_part(job, run);
        let changes: Vec<_> = befores
            .into_iter()
            .enumerate()
            .filter(|(column, _)| {
                matches!(run.fates[*column], Fate::Fresh | Fate::Over | Fate::Cleared)
            })
            .map(|(column, before)| (column, before, self.news(job, run, column)))
            .collect();
        let stale_q = self.world.planted("Q left as it was");
        for (which, (place, old)) in parities.into_iter().zip(olds).enumerate() {
            if let Some(old) = old.filter(|_| which == 0 || !stale_q) {
                part.parity(
                    place,
                    run.row,
                    self.parity_after(&old, which == 1, &changes),
                );
            }
        }
        part.needs_intent = true;
        Some(part)
    }

    /// What changes in the data columns of a run, and in the sums.
    fn data_part(&self, job: &Job<W>, run: &Run) -> Part {
        let mut part = Part::default();
        let first = job.zone.blocks_of(job.stripe).start;
        for (column, fate) in run.fates.iter().enumerate() {
            let at = first + u64::from(column as u32 * job.zone.rows() + run.row);
            let blocks = at..at + u64::from(run.rows);
            match fate {
                Fate::Fresh | Fate::Over => {
                    let Some(data) = self.news(job, run, column) else {
                        continue;
                    };
                    let sums = blocks.enumerate().map(|(index, block)| {
                        (
                            block,
                            Sum::of(&data.slice(index * BLOCK_BYTES, BLOCK_BYTES)),
                        )
                    });
                    part.sums.extend(sums);
                    let place = job.zone.data_place(job.stripe, column);
                    part.writes.push(PlaceWrite {
                        place,
                        row: run.row,
                        data,
                        purpose: Purpose::DataWrite,
                    });
                }
                // Zeroes over what was lost make it whole again, too.
                Fate::Cleared if self.world.planted("sums kept where blocks are zeroed") => {}
                Fate::Cleared | Fate::Dropped => part
                    .sums
                    .extend(blocks.map(|block| (block, self.sum_of_zeros()))),
                Fate::Empty => {
                    let cleared =
                        blocks.filter(|block| job.entries.contains_key(&((*block - first) as u32)));
                    part.sums
                        .extend(cleared.map(|block| (block, self.sum_of_zeros())));
                }
                Fate::Kept => {}
            }
        }
        part
    }

    /// A row of which something can't be read as it should: what is left of it is put
    /// together, put right, and parity reckoned anew.
    async fn hard_row(&self, job: &Job<W>, run: &Run, row: u32, pinned: &Pinned) -> Part {
        let (loaded, silent) = self
            .look_at_row(&job.zone, (job.stripe, row), pinned, Want::Data)
            .await;
        let one = Run {
            row,
            rows: 1,
            way: RowUpdate::Hard,
            fates: run.fates.clone(),
        };
        let first = job.zone.blocks_of(job.stripe).start;
        let mut kept = vec![None; one.fates.len()];
        let mut lost = Vec::new();
        for (column, _) in one
            .fates
            .iter()
            .enumerate()
            .filter(|(_, fate)| **fate == Fate::Kept)
        {
            match loaded.content(column) {
                Some(content) => kept[column] = Some(content),
                None => lost.push(first + u64::from(column as u32 * job.zone.rows() + row)),
            }
        }
        let mut part = self.rebuild_parity(job, &one, kept);
        for bad in &loaded.bad {
            let is_data = |place: usize| {
                (0..one.fates.len()).any(|column| {
                    job.zone.data_place(job.stripe, column) == place
                        && one.fates[column] == Fate::Kept
                })
            };
            if is_data(bad.place) && job.zone.is_readable(bad.place) {
                let (place, data) = (bad.place, bad.content.clone());
                part.writes.push(PlaceWrite {
                    place,
                    row,
                    data,
                    purpose: Purpose::RepairWrite,
                });
            }
        }
        if !lost.is_empty()
            && let Some(member) = silent
        {
            // Of a pool that has stopped nothing is changed: the blocks may be whole.
            self.drives.stop_without(&member);
        }
        for block in lost {
            self.note_lost(&job.zone, block);
            part.sums.push((block, Sum::LOST));
        }
        part.needs_intent = true;
        part
    }
}

/// What a run of rows adds to the change of its stripe.
#[derive(Default)]
struct Part {
    writes: Vec<PlaceWrite>,
    sums: Vec<(u64, Sum)>,
    needs_intent: bool,
}

impl Part {
    fn parity(&mut self, place: Option<usize>, row: u32, data: Slice) {
        if let Some(place) = place {
            self.writes.push(PlaceWrite {
                place,
                row,
                data,
                purpose: Purpose::ParityWrite,
            });
        }
    }

    fn extend(&mut self, other: Part) {
        self.writes.extend(other.writes);
        self.sums.extend(other.sums);
        self.needs_intent |= other.needs_intent;
    }
}
