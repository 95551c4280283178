//! The content of a row in place: each data block checked against its sum, and reconstructed from
//! the others where it is bad.
//!
//! The caller holds the stripe's lock, so the row is whole: no change of it is under
//! way. What is in the log and not in place does not matter here.

use super::Store;
use super::address::{InStripe, StripeRef, ZoneAddress};
use super::counts::Purpose;
use crate::drive::DriveErrorKind;
use crate::drives::vitals::Patience;
use crate::drives::{Doubt, DriveFault, Member, Verdict};
use crate::drives::{Mended, Zone};
use crate::integrity::{Pinned, Sum};
use crate::raid::Code;
use crate::raid::parity;
use crate::world::World;
use base::{BLOCK_BYTES, Slice};
use futures_util::future::{join, join_all};
use std::rc::Rc;

/// What the caller needs of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// One data column; others are read only when it is bad.
    Column(usize),
    /// All data columns.
    Data,
    /// All data columns and the parity, compared (all copies, for a mirror).
    Everything,
}

/// A data column of a row.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub sum: Sum,
    /// What it holds; none when it was not asked for, or can't be had.
    pub content: Option<Slice>,
    /// Not what its sum says, or not to be read.
    pub bad: bool,
    /// An earlier destaging may have been cut short: its sum may be out of date.
    pub unknown: bool,
}

/// Something in place that is not what it should be, and what it should be.
#[derive(Clone, Debug)]
pub(crate) struct Bad {
    pub place: usize,
    pub content: Slice,
}

/// A row as it is in place.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub stripe: StripeRef,
    pub row: u32,
    pub columns: Vec<Column>,
    /// What can be put right, by place.
    pub bad: Vec<Bad>,
    /// Places that were not read: their drives were not whole in the zone.
    unread: Vec<usize>,
}

/// A drive lets a read wait that somebody else can answer.
struct Late;

impl Row {
    /// What a data column holds, if it can be had.
    pub fn content(&self, column: usize) -> Option<Slice> {
        self.columns[column].content.clone()
    }

    /// Columns that should hold something and can't be had.
    pub fn lost(&self) -> impl Iterator<Item = usize> + '_ {
        let lost =
            |column: &Column| column.sum.is_written() && column.bad && column.content.is_none();
        self.columns
            .iter()
            .enumerate()
            .filter(move |(_, column)| lost(column))
            .map(|(index, _)| index)
    }
}

impl<W: World> Store<W> {
    /// As [`Store::load_row`]; where something is lost, with the drive that may have it and
    /// does not answer.
    pub(crate) async fn look_at_row(
        &self,
        zone: &Rc<Zone<W>>,
        (stripe, row): (StripeRef, u32),
        pinned: &Pinned,
        want: Want,
    ) -> (Row, Option<Rc<Member<W>>>) {
        let mut doubt = Doubt::default();
        loop {
            let began = self.world.now();
            let loaded = self.load_row(zone, stripe, row, pinned, want).await;
            if loaded.lost().next().is_none() {
                return (loaded, None);
            }
            let places = zone.group.places();
            match doubt.judge(&self.world, &places, began).await {
                Verdict::Away(member) => return (loaded, Some(member)),
                Verdict::Damaged => return (loaded, None),
                Verdict::LookAgain => self.world.reached("row looked at again"),
            }
        }
    }

    /// Reads a row, as far as `want` says, and puts together what is bad.
    async fn load_row(
        &self,
        zone: &Rc<Zone<W>>,
        stripe: StripeRef,
        row: u32,
        pinned: &Pinned,
        want: Want,
    ) -> Row {
        let columns = zone.shape.geometry.data_columns();
        let blocks = zone.blocks_of(stripe);
        let column = |index: usize| {
            let at = index as u32 * zone.rows() + row;
            let unknown = self
                .index
                .borrow()
                .get(InStripe { stripe, index: at })
                .is_some_and(|logged| logged.replayed);
            Column {
                sum: pinned.get(blocks.start + u64::from(at)),
                content: None,
                bad: false,
                unknown,
            }
        };
        let places = 0..zone.shape.geometry.places();
        let is_unread = |place: &usize| !zone.is_readable(*place);
        let mut loaded = Row {
            stripe,
            row,
            columns: (0..columns).map(column).collect(),
            bad: Vec::new(),
            unread: places.filter(is_unread).collect(),
        };
        if zone.shape.geometry.code == Code::Mirror {
            self.load_copies(zone, &mut loaded, want).await;
        } else {
            self.load_columns(zone, &mut loaded, want).await;
        }
        loaded
    }

    /// A block of a place; none when it can't be read.
    async fn read_block(
        &self,
        member: &Rc<Member<W>>,
        zone: &Zone<W>,
        stripe: StripeRef,
        row: u32,
    ) -> Option<Slice> {
        let read = self.read_block_or_leave(member, zone, (stripe, row), Patience::Waits);
        read.await.unwrap_or(None)
    }

    /// As [`Store::read_block`], while its drive is not late.
    async fn read_block_or_leave(
        &self,
        member: &Rc<Member<W>>,
        zone: &Zone<W>,
        (stripe, row): (StripeRef, u32),
        patience: Patience,
    ) -> Result<Option<Slice>, Late> {
        if !member.is_readable(zone.shape.zone) {
            return Ok(None);
        }
        self.counts.count(Purpose::RepairRead, BLOCK_BYTES);
        let buf = self.world.buffers().data(BLOCK_BYTES);
        let place = zone.on_drive(stripe, row);
        match member.read_patiently(place, buf, patience).await {
            None => Err(Late),
            Some(Ok(buf)) => Ok(Some(buf.freeze())),
            Some(Err(error)) => {
                if error.kind == DriveErrorKind::Gone {
                    let fault = DriveFault {
                        member: Rc::clone(member),
                        error,
                    };
                    self.drives.absorb_read(fault).await;
                }
                Ok(None)
            }
        }
    }

    async fn load_copies(&self, zone: &Rc<Zone<W>>, row: &mut Row, want: Want) {
        let sum = row.columns[0].sum;
        if !sum.is_written() {
            return;
        }
        let mut bad = Vec::new();
        let geometry = zone.shape.geometry;
        let mut places: Vec<usize> = geometry
            .mirror_places(usize::from(row.stripe.span))
            .collect();
        places.sort_by_key(|place| zone.place(*place).is_asked_last());
        for place in places {
            let member = zone.place(place);
            let found = self.read_block(&member, zone, row.stripe, row.row).await;
            // What a destaging that was cut short has left is in the log, too.
            match found.filter(|data| row.columns[0].unknown || Sum::of(data) == sum) {
                Some(data) => {
                    row.columns[0].content.get_or_insert(data);
                    if want != Want::Everything {
                        break;
                    }
                }
                None => bad.push(place),
            }
        }
        row.columns[0].bad = !bad.is_empty();
        if let Some(content) = row.content(0) {
            row.bad = bad
                .into_iter()
                .map(|place| Bad {
                    place,
                    content: content.clone(),
                })
                .collect();
        }
    }

    async fn load_columns(&self, zone: &Rc<Zone<W>>, row: &mut Row, want: Want) {
        if let Want::Column(column) = want
            && self.read_around(zone, row, column).await
        {
            return;
        }
        let wanted = |index| match want {
            Want::Column(column) => index == column,
            Want::Data | Want::Everything => true,
        };
        // Who waits for all of them leaves none.
        let _ = self.read_columns(zone, row, wanted, Patience::Waits).await;
        let wanted_bad = row.columns.iter().any(|column| column.bad);
        if wanted_bad {
            let _ = self
                .read_columns(zone, row, |_| true, Patience::Waits)
                .await;
        }
        if !(wanted_bad || want == Want::Everything)
            || !row.columns.iter().any(|column| column.sum.is_written())
        {
            return;
        }
        let parity = self.read_parity(zone, row, |_| true, Patience::Waits).await;
        let [(p, found_p), (q, found_q)] = parity.unwrap_or_default();
        if wanted_bad {
            let bad = row.columns.iter().filter(|column| column.bad).count();
            self.counts.add(|counts| &counts.bad_blocks, bad as u64);
            self.recover(row, found_p.as_ref(), found_q.as_ref());
        }
        self.collect_bad(zone, row);
        if want == Want::Everything {
            self.compare_parity(zone, row, [(p, found_p), (q, found_q)]);
        }
    }

    /// The parity of a row, from those places for which `concerns` says so.
    async fn read_parity(
        &self,
        zone: &Rc<Zone<W>>,
        row: &Row,
        concerns: impl Fn(usize) -> bool,
        patience: Patience,
    ) -> Result<[(Option<usize>, Option<Slice>); 2], Late> {
        let geometry = zone.shape.geometry;
        let (p, q) =
            geometry.parity_places(u64::from(row.stripe.number), usize::from(row.stripe.span));
        let at = (row.stripe, row.row);
        let read = async |place: Option<usize>| {
            let Some(place) = place.filter(|place| concerns(*place)) else {
                return Ok(None);
            };
            let member = zone.place(place);
            self.read_block_or_leave(&member, zone, at, patience).await
        };
        let (found_p, found_q) = join(read(p), read(q)).await;
        Ok([(p, found_p?), (q, found_q?)])
    }

    /// Whether a place can be asked for what it holds, and answers.
    fn is_trusted(&self, zone: &Zone<W>, place: usize) -> bool {
        let member = zone.place(place);
        member.is_readable(zone.shape.zone) && !member.is_asked_last()
    }

    /// Whether the places of a stripe's span that are trusted give what the others hold,
    /// `place` among those.
    fn can_do_without(&self, zone: &Zone<W>, stripe: StripeRef, place: usize) -> bool {
        let geometry = zone.shape.geometry;
        let others = geometry.span_places(usize::from(stripe.span));
        let lacking = others
            .filter(|other| *other != place && !self.is_trusted(zone, *other))
            .count();
        lacking < geometry.redundancy()
    }

    /// Whether what a place holds is had from the others first: its drive is suspect or
    /// late, and they can give it.
    pub(super) fn goes_around(&self, zone: &Zone<W>, stripe: StripeRef, place: usize) -> bool {
        zone.place(place).is_asked_last() && self.can_do_without(zone, stripe, place)
    }

    /// Puts a column together from the others because its drive is suspect or late;
    /// false when it is not, or that does not give what the sum says.
    async fn read_around(&self, zone: &Rc<Zone<W>>, row: &mut Row, column: usize) -> bool {
        let place = zone.data_place(row.stripe, column);
        let wanted = &row.columns[column];
        // Content that has no sum to be checked with is not put together.
        if !wanted.sum.is_written() || wanted.unknown {
            return false;
        }
        // One more of them may turn out to be late.
        for _ in 0..zone.shape.geometry.redundancy() {
            if !self.goes_around(zone, row.stripe, place) {
                return false;
            }
            let Ok(found) = self.try_around(zone, row, column).await else {
                continue;
            };
            if found {
                self.world.reached(match zone.place(place).is_suspect() {
                    true => "read around a suspect drive",
                    false => "read around a late drive",
                });
            }
            return found;
        }
        false
    }

    /// Puts a column together from places that are trusted. Whether that could be.
    async fn try_around(
        &self,
        zone: &Rc<Zone<W>>,
        row: &mut Row,
        column: usize,
    ) -> Result<bool, Late> {
        let stripe = row.stripe;
        let is_around = |index: usize| {
            index == column || !self.is_trusted(zone, zone.data_place(stripe, index))
        };
        let columns = 0..row.columns.len();
        let mut around: Vec<usize> = columns.filter(|index| is_around(*index)).collect();
        around.retain(|index| row.columns[*index].sum.is_written());
        if around.iter().any(|index| row.columns[*index].unknown) {
            return Ok(false);
        }
        let others = |index: usize| !around.contains(&index);
        self.read_columns(zone, row, others, Patience::Leaves)
            .await?;
        if row.columns.iter().any(|column| column.bad) {
            return Ok(false);
        }
        let trusted = |place: usize| self.is_trusted(zone, place);
        let parity = self.read_parity(zone, row, trusted, Patience::Leaves);
        let [(_, p), (_, q)] = parity.await?;
        around
            .iter()
            .for_each(|index| row.columns[*index].bad = true);
        self.recover(row, p.as_ref(), q.as_ref());
        // Nothing is known to be wrong with what lies there.
        around
            .iter()
            .for_each(|index| row.columns[*index].bad = false);
        Ok(row.columns[column].content.is_some())
    }

    /// Reads the written columns for which `concerns` says so and that were not read
    /// yet, and checks them. Those of drives that are late stay as they were.
    async fn read_columns(
        &self,
        zone: &Rc<Zone<W>>,
        row: &mut Row,
        concerns: impl Fn(usize) -> bool,
        patience: Patience,
    ) -> Result<(), Late> {
        let missing = |(index, column): &(usize, &Column)| {
            column.sum.is_written() && column.content.is_none() && !column.bad && concerns(*index)
        };
        let at = (row.stripe, row.row);
        let reads = row
            .columns
            .iter()
            .enumerate()
            .filter(missing)
            .map(|(index, column)| {
                let member = zone.place(zone.data_place(at.0, index));
                let (sum, unknown) = (column.sum, column.unknown);
                async move {
                    let read = self.read_block_or_leave(&member, zone, at, patience);
                    let found = read.await;
                    let good = |data: &Slice| unknown || Sum::of(data) == sum;
                    (index, found.map(|found| found.filter(good)))
                }
            });
        let mut outcome = Ok(());
        for (index, found) in join_all(reads).await {
            match found {
                Ok(good) => {
                    let column = &mut row.columns[index];
                    column.bad = good.is_none();
                    column.content = good;
                }
                Err(Late) => outcome = Err(Late),
            }
        }
        outcome
    }

    /// Puts together the bad columns from the others and the parity; what comes out
    /// counts only when it is what the sums say.
    fn recover(&self, row: &mut Row, p: Option<&Slice>, q: Option<&Slice>) {
        let bad: Vec<usize> = (0..row.columns.len())
            .filter(|i| row.columns[*i].bad)
            .collect();
        // What an earlier destaging left in place may be what the parity is over, or not.
        let doubtful: Vec<usize> = (0..row.columns.len())
            .filter(|i| row.columns[*i].unknown && !row.columns[*i].bad)
            .collect();
        // So as many of them as the parity can give besides are put together, too.
        let spare = (usize::from(p.is_some()) + usize::from(q.is_some())).saturating_sub(bad.len());
        for also in subsets(&doubtful, spare) {
            let missing: Vec<usize> = bad.iter().copied().chain(also).collect();
            for (p, q) in [(p, None), (None, q), (p, q)] {
                let parities = usize::from(p.is_some()) + usize::from(q.is_some());
                if missing.len() > parities || parities == 0 {
                    continue;
                }
                let Some(found) = self.solve(row, &missing, p, q) else {
                    continue;
                };
                let right = |(index, data): &(usize, Slice)| {
                    let column = &row.columns[*index];
                    column.unknown || Sum::of(data) == column.sum
                };
                if found.iter().all(right) {
                    for (index, data) in found {
                        row.columns[index].content = Some(data);
                    }
                    return;
                }
            }
        }
        for index in bad {
            // Unknown content that can't be put together either is nothing to go by.
            row.columns[index].content = None;
        }
    }

    fn solve(
        &self,
        row: &Row,
        missing: &[usize],
        p: Option<&Slice>,
        q: Option<&Slice>,
    ) -> Option<Vec<(usize, Slice)>> {
        if self.world.buffers().is_length_only() {
            return Some(
                missing
                    .iter()
                    .map(|index| (*index, self.world.buffers().data(BLOCK_BYTES).freeze()))
                    .collect(),
            );
        }
        let known: Vec<Option<&[u8]>> = row
            .columns
            .iter()
            .enumerate()
            .map(|(index, column)| match missing.contains(&index) {
                true => None,
                false => column.content.as_ref().and_then(Slice::bytes),
            })
            .collect();
        let solved = parity::solve(
            &known,
            missing,
            p.and_then(Slice::bytes),
            q.and_then(Slice::bytes),
        )?;
        let pairs = missing.iter().copied().zip(solved);
        Some(
            pairs
                .map(|(index, bytes)| (index, self.world.buffers().copy_of(&bytes).freeze()))
                .collect(),
        )
    }

    fn collect_bad(&self, zone: &Zone<W>, row: &mut Row) {
        for (index, column) in row
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.bad)
        {
            if let Some(content) = &column.content {
                let place = zone.data_place(row.stripe, index);
                row.bad.push(Bad {
                    place,
                    content: content.clone(),
                });
            }
        }
    }

    /// Names the parity that is not what the data says; where a data column can't be
    /// had, nothing can be said.
    fn compare_parity(
        &self,
        zone: &Zone<W>,
        row: &mut Row,
        found: [(Option<usize>, Option<Slice>); 2],
    ) {
        let unknown = row.columns.iter().any(|column| column.unknown);
        if unknown || row.lost().next().is_some() {
            return;
        }
        let contents: Vec<Option<Slice>> = row
            .columns
            .iter()
            .map(|column| column.content.clone())
            .collect();
        let right = self.parity_of(&contents, BLOCK_BYTES, zone.shape.geometry.code);
        for ((place, found), right) in found.into_iter().zip(right) {
            let Some(place) = place else { continue };
            let same = found.is_some_and(|found| found.bytes() == right.bytes());
            if !same {
                row.bad.push(Bad {
                    place,
                    content: right,
                });
            }
        }
    }

    /// Writes what is bad over, where its drive takes it. Nothing that can be read
    /// changes, so no intent is needed.
    pub(crate) async fn mend(&self, zone: &Rc<Zone<W>>, row: &Row) -> u64 {
        let mut mended = 0;
        for bad in &row.bad {
            let member = zone.place(bad.place);
            // A drive that was not whole in this zone gets it by its rebuild, and may have it by
            // now: nothing was wrong with it.
            if row.unread.contains(&bad.place) || !member.is_readable(zone.shape.zone) {
                continue;
            }
            self.counts.count(Purpose::RepairWrite, BLOCK_BYTES);
            let at = zone.on_drive(row.stripe, row.row);
            match member.write_durably(at, bad.content.clone()).await {
                Ok(()) => {
                    mended += 1;
                    member.vitals().note_mend();
                    self.counts.add(|counts| &counts.mended_blocks, 1);
                    self.world.reached("block mended");
                    self.drives.mended(&member.name, Mended::Data, at);
                }
                // What is bad on the drive was so before: the pool need not stop.
                Err(error) => self.drives.absorb_read(DriveFault { member, error }).await,
            }
        }
        mended
    }
}

/// All subsets of up to `most` (0 to 2) of `all`, small ones first.
fn subsets(all: &[usize], most: usize) -> Vec<Vec<usize>> {
    let singles = all.iter().map(|one| vec![*one]);
    let pairs = all
        .iter()
        .enumerate()
        .flat_map(|(at, one)| all[at + 1..].iter().map(|other| vec![*one, *other]));
    let mut found = vec![Vec::new()];
    found.extend(singles.filter(|_| most >= 1));
    found.extend(pairs.filter(|_| most >= 2));
    found
}
